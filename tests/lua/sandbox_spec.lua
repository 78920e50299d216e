local native = require "ph.native"

local small <const> = { instructions = 2000000, bytes = 8 * 1024 * 1024 }

--- An environment as narrow as a spec's, with some of what specs do not get, so that
-- the limits are tried without its help.
local function env()
  return {
    string = string, table = table, math = math, pairs = pairs, ipairs = ipairs, pcall = pcall, xpcall = xpcall,
    error = error, setmetatable = setmetatable, tostring = tostring, coroutine = coroutine, native = native,
    select = select,
  }
end

local function run(text, limits, e) return native.spec_load(text, "@trial.lua", e or env(), limits or small) end

local function refused(pattern, text, limits)
  local v, message, code = run(text, limits)
  assert.is_nil(v)
  assert.matches(pattern, tostring(message))
  assert.is_nil(tostring(message):find "\n")
  return code
end

describe("native.spec_load", function()
  it("returns what the chunk returns", function()
    assert.same({ 1, "two", nil, 4 }, { run "return 1, 'two', nil, 4" })
    assert.equal(0, select("#", run "local x = 1"))
  end)

  it("gives the chunk its environment and nothing else", function()
    local e = env()
    assert.is_true(run("x = 5 return os == nil and require == nil", nil, e))
    assert.equal(5, e.x)
    assert.is_nil(rawget(_G, "x"))
  end)

  it("names file and line of errors", function()
    assert.equal("PH_E_ARG", refused("^trial.lua:2: attempt to call a nil value", "local y\nnothing()"))
    refused("^trial.lua:3: unexpected symbol near '%)'", "\n\nx = )")
    refused("^trial.lua:1: .*<eof>", "x = (")
  end)

  it("hands on error values that are tables", function()
    local v, problem = run "error({ code = 7 })"
    assert.is_nil(v)
    assert.equal(7, problem.code)
  end)

  it("says where an error was raised that does not say so itself", function()
    local function place_of(text) return (select(4, run(text))) end
    assert.equal("trial.lua:2", place_of "\nerror({})")
    assert.equal("trial.lua:3", place_of "local function f()\n local x = 1\n error('no place', 0) end\nlocal y = f()")
    assert.equal("trial.lua:1", place_of "local v = native.tensor({ -1 }, 'f64')")
    assert.equal("trial.lua", place_of(("("):rep(100000)))
    assert.matches("a nil value instead of a message", (select(2, run "error()")))
  end)

  it("refuses compiled code", function()
    local code = refused("must be Lua text, got compiled code", string.dump(function() return 1 end))
    assert.equal("PH_E_PARSE", code)
    refused("trial.lua", "\0\1\2")
  end)

  it("checks its own arguments", function()
    assert.is_false(pcall(native.spec_load, "return 1", "@x", nil))
    assert.is_false(pcall(native.spec_load, "return 1", "@x", {}, { instructions = 0 }))
    assert.is_false(pcall(native.spec_load, "return 1", "@x", {}, { bytes = "much" }))
  end)
end)

describe("instruction limit", function()
  it("ends endless loops at their line", function()
    assert.equal("PH_E_LIMIT",
      refused("^trial.lua:2: more than 2000000 instructions", "local i = 0\nwhile true do i = i + 1 end"))
    refused("instructions", "while true do end")
    refused("instructions", "local function f() return f() end f()")
  end)

  it("cannot be caught", function()
    refused("instructions", "while true do pcall(function() while true do end end) end")
    refused("instructions", "pcall(pcall, pcall, function() while true do end end) for i = 1, 1e9 do pcall(error) end")
  end)

  it("cannot be outlived in a message handler, a coroutine or a closing value", function()
    refused("instructions",
      "xpcall(function() while true do end end, function() while true do end end) while true do end")
    refused("instructions", "xpcall(error, function() while true do end end)")
    refused("instructions", "while true do coroutine.wrap(function() while true do end end)() end")
    refused("instructions",
      "local t <close> = setmetatable({}, { __close = function() while true do end end }) while true do end")
  end)

  it("leaves no trace afterwards", function()
    refused("instructions", "while true do end")
    for _ = 1, 100000 do assert(true) end
    assert.is_nil(debug.gethook())
    assert.equal(1, run "return 1")
  end)

  it("is shared by what a chunk loads in turn", function()
    local e = env()
    e.inner = function(text, limits) return native.spec_load(text, "@inner.lua", env(), limits) end
    local v, message = run("return inner('while true do end', { instructions = 1 << 40, bytes = 1 << 40 })", nil, e)
    assert.is_nil(v)
    assert.matches("instructions", message)
    assert.same({ 3 }, { run("return inner('return 3')", nil, e) })
  end)
end)

describe("memory limit", function()
  it("ends hungry chunks", function()
    assert.equal("PH_E_LIMIT", refused("more than 8 MiB of memory", "local t = {} for i = 1, 1e6 do t[i] = { i } end"))
    refused("memory", "return ('x'):rep(1e9)")
    refused("memory", "local s = 'x' while true do s = s .. s end")
    refused("memory", "return string.format('%099d', 1):rep(1e6)")
    refused("memory", "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1e6) end) end",
      { instructions = 1 << 40, bytes = 1 << 22 })
  end)

  it("counts tensors", function()
    refused("left to this spec", "return native.tensor { 1000, 1000, 10 }")
    refused("left to this spec", "local t = {} for i = 1, 100 do t[i] = native.tensor { 1000, 100 } end")
  end)

  it("does not stay", function()
    refused("memory", "return ('x'):rep(1e9)")
    assert.equal(20000000, #("x"):rep(20000000))
    native.tensor({ 1000, 1000, 2 }):close()
  end)

  it("holds while the text is compiled", function()
    local parts = {}
    for i = 1, 200000 do parts[i] = "{" .. i .. "}" end
    refused("memory", "return {" .. table.concat(parts, ",") .. "}", { bytes = 1 << 20 })
  end)
end)

describe("depth", function()
  it("of recursion and nesting ends in one line", function()
    refused("stack overflow", "local function f() return 1 + f() end return f()", { bytes = 1 << 30 })
    refused("overflow", "return " .. ("("):rep(1000) .. "1" .. (")"):rep(1000))
    refused("overflow",
      "local t = setmetatable({}, {}) getmetatable = nil local m = t for i = 1, 300 do m = setmetatable({}, { "
      .. "__index = function() return m.x end }) end return m.x")
  end)
end)

describe("native.limited", function()
  it("calls a function under limits", function()
    assert.same({ 5, 6 }, { native.limited(small, function(a, b) return a + 1, b + 1 end, 4, 5) })
    local v, message, code = native.limited(small, function() while true do end end)
    assert.is_nil(v)
    assert.matches("sandbox_spec.lua:%d+: more than 2000000 instructions", message)
    assert.equal("PH_E_LIMIT", code)
  end)
end)
