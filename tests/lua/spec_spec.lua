-- Loading specs: the sandbox, siblings, and what comes back when something is wrong.
local native = require "ph.native"
local spec = require "ph.spec"

local function problem(text, path)
  local e, errors = spec.load_text(text, path or "t.lua")
  assert.is_nil(e)
  for _, x in ipairs(errors) do assert.is_nil(x.text:find("\n", 1, true)) end
  return errors[1].text, errors
end

local tail <const> = [[
return require "ph".experiment {
  name = "t", task = require "ph".task.circles { width = 4, split = { train = 8, val = 4, test = 4 } },
  model = function() return { require "ph".affine(4) } end, train = require "ph".adam { lr = 0.1, epochs = 1 },
}
]]

describe("a spec", function()
  it("that returns something else is reported", function()
    assert.matches("^t.lua: a spec must return an experiment, this one returns nothing; does it end with",
      (problem("local x = 1")))
    assert.matches("this one returns 3", (problem("return 3")))
    assert.matches("this one returns a table", (problem("return {}")))
  end)

  it("with a syntax error is reported with its place", function()
    assert.matches("^t.lua:2: ", (problem("local x = 1\nlocal local")))
  end)

  it("that is a compiled chunk is refused", function()
    assert.matches("compiled", (problem(string.dump(function() return 1 end))))
    local path = os.tmpname()
    assert(native.write_file(path, "\27Lua"))
    local _, errors = spec.load(path)
    assert.matches("compiled", errors[1].text)
    os.remove(path)
  end)

  it("that does not end, or eats memory, is stopped", function()
    assert.matches("t.lua:%d+: more than %d+ instructions", (problem("while true do end")))
    assert.matches("MiB of memory", (problem("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end")))
    assert.matches("t.lua:3: more than %d+ instructions",
      (problem((tail:gsub("return { req", "while true do end return { req")))))
  end)

  it("that is missing is one line", function()
    local _, errors = spec.load("/nonexistent/spec.lua")
    assert.equal(1, #errors)
    assert.matches("^/nonexistent/spec.lua: ", errors[1].text)
  end)

  it("raises its own errors with their place", function()
    assert.matches("^t.lua:1: my own", (problem("error 'my own'")))
    assert.matches("^t.lua:1: attempt to index a nil value", (problem("local x; x.y = 1")))
    assert.matches("^a%nb$" and "first second", (problem("error('first\\nsecond', 0)")))
  end)

  it("with a long path keeps it whole", function()
    local path = ("deep/"):rep(20) .. "t.lua"
    assert.matches("^" .. path .. ":1: attempt", (problem("local x; x.y = 1", path)))
  end)

  it("shows at most twenty errors", function()
    local text = "local ph = require 'ph'\n" .. ("local a = ph.adam { epochs = 1, nope = 1 }\n"):rep(30)
    local _, errors = problem(text)
    assert.equal(21, #errors)
    assert.matches("and %d+ more errors", errors[21].text)
  end)
end)

describe("the sandbox", function()
  it("has no files, no time, no chance, no code loading", function()
    for _, name in ipairs {
      "io", "os", "debug", "load", "loadstring", "dofile", "loadfile", "pcall", "coroutine", "package", "rawget",
      "getmetatable", "setmetatable", "_G",
    } do
      assert.matches("undeclared name '" .. name .. "'", (problem("return " .. name)))
    end
    assert.matches("math.random does not exist in a spec %(numbers are drawn by init and by tasks, from seeds%)",
      (problem("return math.random()")))
    assert.matches("string.dump does not exist in a spec", (problem("return string.dump(tostring)")))
    assert.matches("math.sqr does not exist in a spec %(did you mean 'sqrt'%?%)", (problem("return math.sqr(4)")))
  end)

  it("cannot change the language", function()
    assert.matches("ph.cayley cannot be changed", (problem("local ph = require 'ph'; ph.cayley = 1")))
    assert.matches("ph.task.circles cannot be changed", (problem("local ph = require 'ph'; ph.task.circles = 1")))
    assert(spec.load_text("math.pi = 3; string.rep = nil\n" .. tail, "t.lua"))
    assert.equal("xx", ("x"):rep(2))
    assert.is_true(math.pi > 3.1)
  end)

  it("goes through tables in order", function()
    local e = assert(
      spec.load_text(
        "local s = '' for k in pairs { c = 1, a = 1, b = 1, 9, 8 } do s = s .. k end assert(s == '12abc', s)\n" .. tail,
        "t.lua"))
    assert.equal("t", e.name)
  end)
end)

describe("require", function()
  local function dir_with(files)
    local dir = os.tmpname()
    os.remove(dir)
    assert(native.mkdir(dir))
    for name, text in pairs(files) do
      if name:find "/" then assert(native.mkdir(dir .. "/" .. name:match "^(.*)/")) end
      assert(native.write_file(dir .. "/" .. name, text))
    end
    return dir
  end

  it("loads files beside the spec and keeps their text", function()
    local dir = dir_with {
      ["t.lua"] =
      "local h = require 'helpers'\nassert(h.width() == 4 and require 'helpers' == h and require 'sub.more' == true)\n"
      .. tail,
      ["helpers.lua"] = "return { width = function() return 4 end }", ["sub/more.lua"] = "local x = 1",
    }
    local e = assert(spec.load(dir .. "/t.lua"))
    assert.same({ dir .. "/helpers.lua", dir .. "/sub/more.lua" }, { e.source.files[1].path, e.source.files[2].path })
    assert.equal("local x = 1", e.source.files[2].text)
    assert.equal(dir .. "/t.lua", e.source.file)
  end)

  it("tells errors in the file where they are", function()
    local dir = dir_with {
      ["t.lua"] = "local b = require 'b'\n" .. tail,
      ["b.lua"] = "local ph = require 'ph'\n\nreturn ph.adam { epochs = 1, epoch = 3 }",
    }
    local _, errors = spec.load(dir .. "/t.lua")
    assert.equal(dir .. "/b.lua:3: adam: unknown key 'epoch' (did you mean 'epochs'?)", errors[1].text)
  end)

  it("refuses what is missing, circular, or elsewhere", function()
    local dir = dir_with { ["a.lua"] = "require 'b'", ["b.lua"] = "require 'a'" }
    local function first(text)
      local _, errors = spec.load_text(text, dir .. "/t.lua")
      return errors[1].text
    end
    assert.matches("t.lua:1: require 'nope': .*nope.lua", first("require 'nope'"))
    assert.matches("b.lua:1: require: 'a' requires itself", first("require 'a'"))
    assert.matches("'../x' is not the name of a file beside the spec", first("require '../x'"))
    assert.matches("'/etc/passwd' is not the name", first("require '/etc/passwd'"))
    assert.matches("'ph.native' is not the name",
      first("require 'ph.native'"):gsub("require 'ph.native': .*", "'ph.native' is not the name"))
  end)
end)
