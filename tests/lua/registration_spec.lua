local json = require "ph.util.json"
local native = require "ph.native"
local plan = require "ph.rules.plan"
local recover = require "ph.verb.recover"
local registration = require "ph.registry.registration"
local rules = require "ph.rules"
local spec = require "ph.spec"

local source <const> = [[
local ph = require "ph"
return ph.experiment {
  name = "x",
  task = ph.task.circles { classes = 4, width = 4, split = { train = 16, val = 8, test = 8 } },
  model = function(cell)
    local function block(z) return z + ph.affine(4)(ph.tanh(z)) end
    return { ph.stream { depth = cell.depth, block = block }, ph.affine(4) }
  end,
  grid = { depth = { 2, 4 }, seed = { 0, 1 } },
  select = { lr = { 1e-3, 3e-3 } },
  train = ph.adam { batch = 8, epochs = 3 },
  measure = { ph.growth() },
  rules = { ph.rule { "pinned", ph.band(ph.mean { "growth", depth = 4 }, 0.5, 2.0) } },
  predictions = { ph.prediction { "acc", ph.mean { "test.accuracy" }, at_least = 0.3 } },
}
]]

local function load(text, overrides)
  local e, problems = spec.load_text(text or source, "x.lua", overrides)
  if not e then
    local lines = {}
    for i, p in ipairs(problems) do lines[i] = p.text end
    return nil, table.concat(lines, "\n")
  end
  return e
end

local function changed(old, new)
  local text, n = source:gsub(old:gsub("%p", "%%%0"), (new:gsub("%%", "%%%%")))
  assert(n == 1, old)
  return text
end

local function lock_of(text) return registration.of(assert(load(text))).lock end

describe("a registration", function()
  it("has one hash for one meaning", function()
    local first = lock_of(source)
    assert.equal(first, lock_of(source))
    assert.equal(first,
      lock_of("-- a remark\n" .. changed("batch = 8, epochs = 3", "epochs = 3.0,\n\n   batch = 2 ^ 3")))
    assert.equal(first, lock_of(changed("epochs = 3", "epochs = 3, checkpoint = 5")))
  end)

  it("has another hash, and the field and both values, for every other meaning", function()
    local reg = registration.of(load())
    for _, case in ipairs {
      { "0.5, 2.0", "0.5, 2.5", "rules.pinned.when.high: locked 2, now 2.5" },
      { "epochs = 3", "epochs = 4", "train.epochs: locked 3, now 4" },
      { "at_least = 0.3", "at_least = 0.2", "predictions.acc.low: locked 0.3, now 0.2" },
      { "seed = { 0, 1 }", "seed = { 0 }", "grid.seed: locked [0,1], now [0]" },
      { "ph.tanh(z)", "ph.relu(z)", "cells.depth=2 seed=0.ir: locked" },
      { "test = 8", "test = 9", "split.test: locked 8, now 9" },
      { "measure = { ph.growth() }", "measure = { ph.growth(), ph.port_budget() }",
        'measure: locked ["growth"], now ["growth","port_budget"]' },
    } do
      local now = registration.of(assert(load(changed(case[1], case[2]))))
      assert.are_not.equal(reg.lock, now.lock)
      local lines = table.concat(registration.lines(registration.differences(reg, now.plan, {})), "\n")
      assert.matches(case[3], lines, 1, true)
    end
  end)

  it("knows the order of the decision table", function()
    local a = plan.fields { categories = { { name = "x", holds = true }, { name = "y", holds = true } } }
    local b = { categories = { { name = "y", holds = true }, { name = "x", holds = true } } }
    assert.equal('["x","y"]', a["categories (order)"])
    local d = plan.differences({ categories = { { name = "x", holds = true }, { name = "y", holds = true } } }, b)
    assert.equal('categories (order): locked ["x","y"], now ["y","x"]', plan.line(d[1]))
  end)

  it("can be made of the program's own specs", function()
    for name, runs in pairs { e6 = 96, e6b = 24 } do
      local path = native.lua_dir .. "/../specs/" .. name .. ".lua"
      local e = assert(spec.load(path))
      local n = 0
      for _ in pairs(registration.of(e).runs) do n = n + 1 end
      assert.equal(runs, n)
    end
  end)

  it("survives its way through JSON", function()
    local reg = registration.of(load())
    local back = json.decode(json.encode(reg))
    assert.equal(reg.lock, registration.hash(back.plan))
    assert.same({}, plan.differences(reg.plan, back.plan))
  end)

  it("names other runs than an experiment without lock", function()
    local e = load()
    local job = require "ph.run.job"
    local free = job.cells(e)[1].jobs[1].run
    local reg = registration.of(e)
    assert.are_not.equal(free, reg.runs["depth=2 seed=0 lr=0.001"])
    assert.equal(8, #reg.plan.cells * 2)
  end)

  it("lets a recorded departure pass in its fields, to its values, and no further", function()
    local reg = registration.of(load())
    local now = registration.of(load(changed("epochs = 3", "epochs = 4"))).plan
    local recorded = { { fields = plan.differences(reg.plan, now) } }
    assert.same({}, registration.differences(reg, now, recorded))
    local further = registration.of(load(changed("epochs = 3", "epochs = 5"))).plan
    assert.equal("train.epochs", registration.differences(reg, further, recorded)[1].field)
  end)

  it("may give the seeds, the same for the same cell seed and lock", function()
    assert.equal(rules.seed("a", 1), rules.seed("a", 1))
    assert.are_not.equal(rules.seed("a", 1), rules.seed("a", 2))
    assert.are_not.equal(rules.seed("a", 1), rules.seed("b", 1))
    assert.equal("integer", math.type(rules.seed("a", 1)))
  end)

  it("holds rules against grid and measures, with file and line", function()
    local _, problem = load(changed('"growth", depth = 4', '"growht", depth = 5'))
    assert.matches("x.lua:%d+: experiment: rule 'pinned': unknown metric 'growht' %(did you mean 'growth'%?%)", problem)
    assert.matches("rule 'pinned': depth has no value 5; the grid has 2, 4", problem)
    _, problem = load(changed("measure = { ph.growth() }", "measure = {}"))
    assert.matches("unknown metric 'growth'", problem)
  end)

  it("takes a grid that the command line restricted: the missing part is not evaluable, not wrong", function()
    assert.truthy(load(source, { "depth=2" }))
  end)
end)

describe("the records in a log", function()
  local function line(run, status, growth)
    return "run-record "
      .. json.encode {
        run = run, label = "c=" .. run, status = status, cell = { c = run }, metrics = { growth = growth },
      }
  end

  it("are found among other lines, whatever ends them", function()
    local found = recover.parse("start\r\n" .. line("a", "done", 1) .. "\r\n 50%\r60%\r" .. line("b", "done", 2)
      .. "\nend")
    assert.same({ "a", "b" }, { found.records[1].run, found.records[2].run })
    assert.same({}, found.problems)
  end)

  it("count once a run, the last; different numbers for the same end are reported", function()
    local found = recover.parse(
      table.concat({ line("a", "failed"), line("a", "done", 1), line("a", "done", 1), line("a", "done", 2) }, "\n"))
    assert.equal(1, #found.records)
    assert.equal(2, found.records[1].metrics.growth)
    assert.same({ "line 4: c=a: numbers differ from earlier; these count" }, found.problems)
  end)

  it("are left out when cut short or incomplete, with the line", function()
    local found = recover.parse(line("a", "done", 1) .. "\n" .. line("b", "done", 2):sub(1, 60)
      .. "\nrun-record {\"run\":\"x\"}\n")
    assert.equal(1, #found.records)
    assert.equal(2, found.left_out)
    assert.matches("^line 2: .*left out$", found.problems[1])
    assert.equal("line 3: has no 'label'; left out", found.problems[2])
  end)
end)
