-- The version of the arithmetic: in events and checkpoints, never in what names a run; mixed results are reported.
local checkpoint = require "ph.run.checkpoint"
local ledger = require "ph.run.ledger"
local native = require "ph.native"

local function temporary()
  local path = os.tmpname()
  os.remove(path)
  return path
end

--- Runs f as a program of another arithmetic would.
local function with_arithmetic(version, f)
  local mine = native.arithmetic
  native.arithmetic = version
  local ok, problem = pcall(f)
  native.arithmetic = mine
  assert(ok, problem)
end

describe("the version of the arithmetic", function()
  it("is in the machine's description", function()
    assert.equal(native.arithmetic, native.machine().arithmetic)
  end)

  it("keeps a checkpoint of another version from being resumed", function()
    local path = temporary() .. ".h5"
    local weights = { final = { ["s1.A"] = native.tensor({ 1, 2, 2 }, "f32") } }
    assert(checkpoint.write(path, { status = "running" }, {}, { "epoch" }, weights))
    assert.truthy(checkpoint.read(path))
    with_arithmetic(native.arithmetic + 1, function()
      local saved, problem = checkpoint.read(path)
      assert.is_nil(saved)
      local mine = native.arithmetic
      assert.equal(string.format("%s: made with arithmetic %d, this program has %d", path, mine - 1, mine), problem)
    end)
    os.remove(path)
  end)

  it("is written with every event, is 1 in older ledgers, and a mixture is reported", function()
    local dir = temporary()
    native.mkdir(dir)
    local writer = assert(ledger.open(dir))
    local function done(run)
      return { event = "done", run = run, record = { run = run, status = "done", cell_label = run } }
    end
    assert(writer:append(done "a"))
    assert.is_nil(ledger.mixed(assert(ledger.read(dir)).runs))
    with_arithmetic(native.arithmetic + 1, function() assert(writer:append(done "b")) end)
    local state = assert(ledger.read(dir))
    assert.same({ native.arithmetic, native.arithmetic + 1 }, ledger.arithmetics(state.runs))
    local said = "runs with arithmetic %d and %d are compared: they differ by rounding too"
    assert.equal(said:format(native.arithmetic, native.arithmetic + 1), ledger.mixed(state.runs))
    local old = ledger.parse((ledger.line(done "c", 1, "", "2026-01-01T00:00:00Z")) .. "\n")
    assert.is_nil(old.events[1].arithmetic)
    os.remove(ledger.path(dir))
    os.remove(dir)
  end)
end)
