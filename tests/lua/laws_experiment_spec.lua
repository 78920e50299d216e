-- The experiment on laws from outside: a small one runs, is not run again, can be verified and drawn; the suite's exit
-- codes.

local native = require "ph.native"

local exe = native.realpath "/proc/self/exe"

local function phrun(...)
  local code, out, err = native.popen({ exe, ... }, "")
  return code, out, err or ""
end

local small <const> = [[
local ph = require "ph"
return ph.laws_experiment { name = "small", seed = 4, laws = {
  ph.law.conservation { streams = 3, inputs = 4, own = 9, depth = 40, width = 8 },
  ph.law.volume { layers = 50, width = 8, draws = 3, halvings = 20 },
  ph.law.gradient { trials = 5, depth = 20, width = 8 },
  ph.law.oscillation { points = 1001 },
  ph.law.capacity { depth = 10, width = 8, seeds = 2, train = 20, test = 20 } } }
]]

local function place(text)
  local dir = os.tmpname()
  os.remove(dir)
  assert(native.mkdir(dir))
  assert(native.write_file(dir .. "/s.lua", text))
  return dir
end

describe("an experiment on laws", function()
  local dir = place(small)

  it("is refused in a line where a grid of cells is asked for", function()
    for _, words in ipairs { { "lock" }, { "verdict" }, { "inspect", "--program" } } do
      local code, _, err = phrun(words[1], dir .. "/s.lua", words[2])
      assert.equal(2, code)
      assert.equal(dir .. "/s.lua: experiment on laws small has no cells; it can only be run and checked\n",
        (err:gsub("^phrun: ", "")))
    end
  end)

  it("runs, keeps the laws, and writes its table", function()
    local code, out, err = phrun("run", dir .. "/s.lua", "--out", dir .. "/r")
    assert.equal(0, code, err)
    assert.matches("0 of 12; own layers: 0 of 9", out)
    assert.matches("conservation .- done in", err)
    local page = assert(native.read_file(dir .. "/r/table.md"))
    assert.matches("| what | paper | here | why they differ |", page)
    assert.matches("cannot be right", page)
  end)

  it("is not run again, and says why", function()
    local before = native.sha256_file(dir .. "/r/ledger.jsonl")
    local code, _, err = phrun("run", dir .. "/s.lua", "--out", dir .. "/r")
    assert.equal(0, code)
    assert.matches("capacity .- already done", err)
    assert.equal(before, native.sha256_file(dir .. "/r/ledger.jsonl"))
    local _, out = phrun("run", dir .. "/s.lua", "--out", dir .. "/r", "-n")
    assert.matches("already done: same settings and seed", out)
  end)

  it("gives the same bits with other threads", function()
    local code, _, err = phrun("run", dir .. "/s.lua", "--out", dir .. "/r3", "-t", "3")
    assert.equal(0, code, err)
    assert.equal(native.read_file(dir .. "/r/table.md"), native.read_file(dir .. "/r3/table.md"))
    for _, name in ipairs(native.list_dir(dir .. "/r/runs")) do
      local a <close> = assert(native.h5_read(dir .. "/r/runs/" .. name))
      local b <close> = assert(native.h5_read(dir .. "/r3/runs/" .. name))
      assert.equal(a:tensor "/history":bytes(), b:tensor "/history":bytes())
    end
  end)

  it("is sound for verify, and its figures are drawn from its files alone", function()
    local code, out = phrun("verify", dir .. "/r")
    assert.equal(0, code, out)
    code, out = phrun("plot", dir .. "/r", "--to", "svg")
    assert.equal(0, code, out)
    for k = 1, 6 do assert(native.stat(string.format("%s/r/figures/fig%d.svg", dir, k)), "figure " .. k) end
    code, out = phrun("plot", dir .. "/r", "4", "--to", "text")
    assert.equal(0, code)
    for line in out:gmatch "[^\n]*" do assert((utf8.len(line) or 0) <= 80, line) end
  end)

  it("refuses unknown keys and words on the command line, with the place", function()
    local bad = place(
      'local ph = require "ph"\nreturn ph.laws_experiment { name = "x", laws = { ph.law.volume { layer = 3 } } }\n')
    local code, _, err = phrun("run", bad .. "/s.lua")
    assert.equal(2, code)
    assert.matches("s%.lua:2: law%.volume: unknown key 'layer' %(did you mean 'layers'%?%)", err)
    code, _, err = phrun("run", dir .. "/s.lua", "depth=3")
    assert.equal(2, code)
    assert.matches("takes no key=value", err)
  end)

  it("has no certificate: a law's file holds no model", function()
    local name = native.list_dir(dir .. "/r/runs")[1]
    local code, _, err = phrun("check", dir .. "/r/runs/" .. name)
    assert.equal(2, code)
    assert.matches("it holds no model", err)
    code = phrun("check", dir .. "/s.lua")
    assert.equal(0, code)
  end)
end)

describe("phrun laws", function()
  it("prints a line an assertion and ends with 0", function()
    local code, out = phrun "laws"
    assert.equal(0, code)
    assert.matches("ok   T13", out)
    assert.matches("21 laws, 0 failed", out)
  end)

  it("catches all wrong code", function()
    local code, out = phrun("laws", "--mutate")
    assert.equal(0, code)
    assert.matches("0 missed", out)
    assert.is_nil(out:find "MISSED")
  end)
end)
