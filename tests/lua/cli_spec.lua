local cli = require "ph.verb.cli"
local fault = require "ph.util.fault"
local native = require "ph.native"
local verbs = require "ph.verb.list"

--- Runs the command line in this process: exit code, standard output, standard error.
local function phrun(...)
  local write, out = native.write, { "", "" }
  native.write = function(fd, text)
    out[fd] = out[fd] .. text
    return true
  end
  local ok, code = pcall(cli.main, { ... })
  native.write = write
  assert(ok, code)
  return code, out[1], out[2]
end

local function lines(text) return select(2, text:gsub("\n", "")) end

describe("the command line", function()
  it("lists exactly the verbs whose modules are here", function()
    local _, help = phrun "--help"
    for _, v in ipairs(verbs) do
      local here = package.searchpath(v[2], package.path) ~= nil
      assert.equal(here, help:find("\n  " .. v[1] .. " ", 1, true) ~= nil, v[1])
    end
  end)

  it("has help for every verb", function()
    for _, v in ipairs(cli.verbs()) do
      local code, out = phrun(v[1], "--help")
      assert.equal(0, code, v[1])
      assert.matches("Usage: phrun " .. v[1], out)
    end
  end)

  it("writes help with one line an option and the names of the usage line", function()
    local _, help = phrun("run", "--help")
    assert.matches("\n   %-j, %-%-jobs N +runs at the same time", help)
    assert.matches("\n   SPEC +a Lua file", help)
    assert.matches("\n   %-q, %-%-quiet +no progress", help)
  end)

  it("takes options before the file when no verb is named", function()
    local path = os.tmpname() .. ".lua"
    assert(native.write_file(path, "return 1\n"))
    local code, _, problem = phrun("-n", path)
    os.remove(path)
    assert.equal(2, code)
    assert.is_nil(problem:find "unknown option")
    assert.matches("must return an experiment", problem)
  end)

  it("suggests the nearest verb, in one line, with code 2", function()
    local code, out, problem = phrun "verfy"
    assert.same({ 2, "", 1 }, { code, out, lines(problem) })
    assert.matches("phrun: unknown verb or file 'verfy' %(did you mean 'verify'%?%)", problem)
    local second, _, wrong = phrun "--frobnicate"
    assert.equal(2, second)
    assert.matches("unknown option '%-%-frobnicate'", wrong)
  end)

  it("takes a name with .lua or a slash for a spec", function()
    local code, _, problem = phrun "no/such/spec"
    assert.equal(2, code)
    assert.matches("no/such/spec", problem)
    assert.equal(1, lines(problem))
    assert.equal(2, (phrun "nosuch.lua"))
  end)

  it("gives usage errors as one line", function()
    local code, _, problem = phrun("status")
    assert.same({ 2, 1 }, { code, lines(problem) })
    assert.matches("status: .*dir", problem)
    code, _, problem = phrun("run", "x.lua", "depth=3", "not a pair")
    assert.equal(2, code)
    assert.matches("'not a pair' is not key=value", problem)
  end)

  it("tells version, and with -v the machine", function()
    local code, short = phrun "--version"
    assert.equal(0, code)
    assert.matches("^phrun %d+%.%d+%.%d+", short)
    local _, long = phrun("--version", "-v")
    for _, word in ipairs { "cpu", "features", "kernels", "openblas", "core: ", "threads: 1", "compiler" } do
      assert.is_truthy(long:find(word, 1, true), word)
    end
    assert.matches("hdf5 +1%.%d+%.%d+\n", long)
  end)

  it("maps faults to their codes and other errors to 1", function()
    package.preload["ph.verb.plot"], package.loaded["ph.verb.plot"] = nil,
      { main = function() fault.raise(fault.GUARD, "guarded %d", 7) end }
    local code, _, problem = phrun "plot"
    assert.same({ 11, "phrun: guarded 7\n" }, { code, problem })
    package.loaded["ph.verb.plot"].main = function() error("a bug\nwith more", 0) end
    code, _, problem = phrun "plot"
    assert.equal(1, code)
    assert.matches("^phrun: a bug", problem)
    package.loaded["ph.verb.plot"].main = function() error("interrupted", 0) end
    assert.equal(130, (phrun "plot"))
    package.loaded["ph.verb.plot"] = nil
  end)
end)
