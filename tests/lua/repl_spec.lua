local complete = require "ph.repl.complete"
local help = require "ph.repl.help"
local native = require "ph.native"
local session = require "ph.repl.session"

--- Feeds lines to a fresh session; returns what it said, its errors, the session.
local function feed(...)
  local out, err = {}, {}
  local s = session.new(function(text) out[#out + 1] = text end, function(text) err[#err + 1] = text end)
  for _, line in ipairs { ... } do s:feed(line) end
  return out, err, s
end

local function says(want, ...)
  local out, err = feed(...)
  assert.same({}, err)
  assert.same(want, out)
end

local function complains(pattern, ...)
  local _, err = feed(...)
  assert.equal(1, #err)
  assert.matches(pattern, err[1])
  assert.is_nil(err[1]:find "\n")
end

describe("the libraries of a session", function()
  it("are its own: what is written into them reaches neither the program nor specs", function()
    local out, err = feed('getmetatable("").__index = function() return 1 end',
      "string.format, string.gmatch, table.concat = nil, nil, nil", "math.pi = 3", "foo.bar", "help(cayley)", "math.pi",
      '("x"):rep(3)')
    assert.same({ "undefined name 'foo'  in 'foo.bar'" }, err)
    assert.same({ "3", "xxx" }, { out[#out - 1], out[#out] })
    assert.is_true(math.pi > 3.14 and string.format ~= nil and getmetatable("").__index == string)
    says({ "3.1415926535898" }, "math.pi")
  end)
end)

describe("expressions", function()
  it("print their values, all of them", function()
    says({ "2", "1", "nil", "x" }, "1 + 1", "1, nil, 'x'")
    says({ "nil" }, "nil")
    says({}, "x = 5", "", "   ", "local y = 2")
  end)

  it("leave the last value in _", function()
    says({ "4", "5", "10" }, "4", "_ + 1", "_ * 2")
    says({ "4", "nil", "4" }, "4", "nil", "_")
    says({ "nil" }, "_")
  end)

  it("show tables, functions, tensors", function()
    says({ '{ 1, "two", { 3 }, x = { y = 4 } }' }, "{ 1, 'two', { 3 }, x = { y = 4 } }")
    says({ "{}", "function randn", "function" }, "{}", "randn", "function() end")
    says({ "{ { { { ... } } } }", "{ 1, [3] = 3 }" }, "{{{{{}}}}}", "{ 1, nil, 3 }")
    local out = feed("t = {} for i = 1, 100 do t[i] = i end", "t", "t[1] = t", "t")
    assert.matches("19, 20, ... 80 more }$", out[1])
    assert.matches("^{ { itself }, 2", out[2])
    assert.matches("^f64 %(3, 3%)  range %[.*\n", feed("cayley(skew(3))")[1])
    assert.equal('{ f64 (2)  range [0, 0] }', feed("{ zeros(2) }")[1])
  end)

  it("see everything of ph and Lua's libraries", function()
    says({ "true", "3", "true", "3.0" }, "ph.randn == randn", "math.max(1, 3)", "type(la.eigh) == 'function'",
      "math.sqrt(9)")
  end)

  it("keep their variables to the session", function()
    feed "leak = 1"
    assert.is_nil(rawget(_G, "leak"))
  end)
end)

describe("longer input", function()
  it("is gathered until complete", function()
    says({ "1", "2" }, "for i = 1, 2 do", "print(i)", "end")
    says({ "6" }, "1 +", "2 +", "3")
    says({ "a\nb" }, "[[a", "b]]")
    says({ "7" }, "f = function()", "", "return 7", "end", "f()")
  end)

  it("can be asked questions in the middle", function()
    local out = feed("x = {", "?cayley", "1 }", "x")
    assert.matches("^cayley ", out[1])
    assert.equal("{ 1 }", out[2])
  end)

  it("is dropped or reported when it stays unfinished", function()
    local _, err, s = feed("foo(", "1,")
    assert.is_truthy(s.pending)
    s:drop()
    assert.is_nil(s.pending)
    assert.same({}, err)
    s:feed "bar("
    s:finish()
    assert.equal("unfinished input at the end, begun at line 3: 'bar('", err[1])
  end)

  it("answers questions that stand in unfinished input", function()
    local out, err, s = feed("foo(", "help(cayly)")
    s:finish()
    assert.equal(1, #err)
    assert.equal("no help on 'cayly' (did you mean 'cayley'?)", out[1])
  end)
end)

describe("errors", function()
  it("are one line with the offending expression", function()
    complains("^attempt to index a nil value %(field 'y'%)  in 'x%.y%.z'$", "x = {}", "x.y.z")
    complains("^boom  in 'error%(\"boom\"%)'$", 'error("boom")')
    complains("^unexpected symbol near '%)'  in 'local a = %)'$", "local a = )")
    complains("no product of f64 %(2, 3%) and f64 %(2%)  in 'randn%(2, 3%) %* randn%(2%)'", "randn(2, 3) * randn(2)")
    complains("^a; b  in", "error('a\\nb')")
    complains("in 'error%({}%)'", "error({})")
  end)

  it("show the line of longer input", function()
    complains("^attempt to index a nil value %(local 'y'%)  in 'y%.z = 1'$", "for i = 1, 2 do", "  local y = nil",
      "  y.z = 1", "end")
    complains("near 'b'  in 'a b'$", "f = function()", "a b")
  end)

  it("suggest the nearest name", function()
    complains("^undefined name 'cayly' %(did you mean 'cayley'%?%)  in 'cayly%(3%)'$", "cayly(3)")
    complains("^undefined name 'zzzzzzz'  in", "zzzzzzz")
  end)

  it("do not end the session", function()
    local out, err = feed("error()", "x = = 1", "1 + nil", "40 + 2")
    assert.equal(3, #err)
    assert.same({ "42" }, out)
  end)

  it("stop at Ctrl-C, and the session lives on", function()
    local me = native.pid()
    local pid = native.fork()
    if pid == 0 then
      native.sleep(0.2)
      native.kill(me, "SIGINT")
      native.exit(0)
    end
    local out, err = feed("while true do end", "1")
    native.wait(true)
    assert.same({ "interrupted" }, err)
    assert.same({ "1" }, out)
  end)
end)

describe("help", function()
  it("tells what names are", function()
    assert.matches("Transport: the orthogonal matrix", feed("?cayley")[1])
    assert.matches("Transport: the orthogonal matrix", feed("help(cayley)")[1])
    assert.matches("Transport: the orthogonal matrix", feed("help 'cayley'")[1])
    assert.matches("Transport: the orthogonal matrix", feed("? ph.cayley")[1])
    assert.matches("t:shape%(%)", feed("x = randn(2)", "help(x)")[1])
    assert.matches("LayerNorm", feed("?layernorm")[1])
    assert.equal("a integer", feed("help(3)")[1])
  end)

  it("gives an overview", function()
    for _, line in ipairs { "help()", "?" } do
      local text = feed(line)[1]
      assert.matches("cayley", text)
      for l in text:gmatch "[^\n]+" do assert.is_true(#l <= 80, l) end
    end
  end)

  it("suggests the nearest name", function()
    assert.equal("no help on 'cayly' (did you mean 'cayley'?)", feed("?cayly")[1])
    assert.equal("no help on 'cayly' (did you mean 'cayley'?)", feed("help(cayly)")[1])
    assert.equal("no help on 'qqqqqq'", feed("?qqqqqq")[1])
  end)

  it("has a word on everything in ph and every op", function()
    local missing = {}
    for name in pairs(require "ph") do
      local _, known = help.of_name(name)
      if not known then missing[#missing + 1] = name end
    end
    for _, row in ipairs(native.ops()) do
      local _, known = help.of_name(row.name)
      if not known then missing[#missing + 1] = row.name end
    end
    table.sort(missing)
    assert.same({}, missing)
  end)
end)

describe("completion", function()
  local _, _, s = feed("value_one, value_two = { field = 1 }, 2")

  it("finds names of the session, of ph and of Lua", function()
    assert.same({ "value_one", "value_two" }, (complete.candidates(s.env, "x = valu")))
    assert.same("ley", (complete.answer(s.env, "cay")))
    assert.same({ "math" }, (complete.candidates(s.env, "math")))
  end)

  it("finds fields and methods", function()
    assert.same("ley", (complete.answer(s.env, "ph.cay")))
    assert.same({ "cayley", "cayley_of" }, (complete.candidates(s.env, "1 + ph.cay")))
    assert.same({ "field" }, (complete.candidates(s.env, "value_one.")))
    local _, _, t = feed("x = randn(2)")
    assert.same({ "transpose" }, (complete.candidates(t.env, "x:tr")))
    assert.same({ "circles" }, (complete.candidates(t.env, "ph.task.c")))
  end)

  it("lists choices when there is nothing to add", function()
    local more, list = complete.answer(s.env, "value_")
    assert.equal("", more)
    assert.matches("value_one +value_two", list)
  end)

  it("is silent where nothing fits", function()
    for _, text in ipairs { "", "1 + ", "nothing_here", "no.such.thing", "value_two.", "x..", "(" } do
      assert.same({ "", nil }, { complete.answer(s.env, text) })
    end
  end)
end)
