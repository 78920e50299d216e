-- Grids, candidates, overrides, and what makes a rerun.
local grid = require "ph.lang.grid"
local job = require "ph.run.job"
local spec = require "ph.spec"

local base <const> = [[
local ph = require "ph"
local d = 8
local function branch(z) return ph.linear(d)(ph.tanh(ph.affine(d)(z))) end
local block = {
  ph = function(z) return ph.damping { d, step = 0.5 } * (ph.cayley { d } * z) + branch(z) end,
  resnet = function(z) return z + branch(z) end,
}
return ph.experiment {
  name = "t",
  task = ph.task.circles { width = d, split = { train = 8, val = 4, test = 4 } },
  model = function(cell) return { ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(4) } end,
  grid = { family = { "ph", "resnet" }, depth = { 3, 5 }, seed = { 0, 1 } },
  select = { lr = { 0.1, 0.2 } },
  train = ph.adam { epochs = 2 },
  measure = { ph.growth() },
}
]]

local function load(text, overrides)
  local e, errors = spec.load_text(text, "t.lua", overrides)
  return e, errors and errors[1].text
end

local function replaced(old, new)
  local from, to = base:find(old, 1, true)
  assert(from, old)
  return base:sub(1, from - 1) .. new .. base:sub(to + 1)
end

local function labels(e)
  local out = {}
  for i, cell in ipairs(e:cells()) do out[i] = cell:text() end
  return out
end

local function run_names(text)
  local out = {}
  for _, cell in ipairs(job.cells(assert(load(text)))) do
    for _, one in ipairs(cell.jobs) do out[one.label] = one.run end
  end
  return out
end

--- Labels of runs that got another name.
local function changed(text)
  local before, after, out = run_names(base), run_names(text), {}
  for label, run in pairs(before) do
    if after[label] ~= run then out[#out + 1] = label end
  end
  table.sort(out)
  return out
end

describe("cells", function()
  it("come in the order of axes and values, seed fastest", function()
    assert.same({
      "family=ph depth=3 seed=0", "family=ph depth=3 seed=1", "family=ph depth=5 seed=0", "family=ph depth=5 seed=1",
      "family=resnet depth=3 seed=0", "family=resnet depth=3 seed=1", "family=resnet depth=5 seed=0",
      "family=resnet depth=5 seed=1",
    }, labels(assert(load(base))))
  end)

  it("of other axes stand between width and seed, by name", function()
    local cells = grid.cells { { { key = "x", values = { 1 } } } }
    assert.equal("x=1", cells[1]:text())
    local e = assert(load(replaced("seed = { 0, 1 }", "zeta = { true }, alpha = { 'a b', '3' }, width = 8")
      :gsub("cell.depth,", "cell.depth + 0 * #(tostring(cell.zeta) .. cell.alpha .. cell.width),"), nil))
    assert.equal('family=ph depth=3 width=8 alpha="a b" zeta=true seed=0', e:cells()[1]:text())
    assert.equal('family=ph depth=3 width=8 alpha="3" zeta=true seed=0', e:cells()[2]:text())
  end)

  it("of sub-grids follow one another", function()
    local e = assert(load(replaced("{ family = { \"ph\", \"resnet\" }, depth = { 3, 5 }, seed = { 0, 1 } }",
      "{ { family = 'ph', depth = { 3, 5 } }, { family = 'resnet', depth = 5 } }")))
    assert.same({ "family=ph depth=3 seed=0", "family=ph depth=5 seed=0", "family=resnet depth=5 seed=0" }, labels(e))
  end)

  it("that are there twice are refused", function()
    local _, problem = load(replaced("{ family = { \"ph\", \"resnet\" }, depth = { 3, 5 }, seed = { 0, 1 } }",
      "{ { family = 'ph', depth = { 3, 5 } }, { family = 'ph', depth = 5 } }"))
    assert.matches("the cell family=ph depth=5 seed=0 appears twice", problem)
  end)

  it("have only the axes of their grid", function()
    local _, problem = load(replaced("cell.depth", "cell.dept"))
    assert.matches("t.lua:11: cell: no axis 'dept' in this cell %(did you mean 'depth'%?%)", problem)
    _, problem = load(replaced("seed = { 0, 1 }", "seed = 0, widht = 8"))
    assert.matches("grid: axis 'widht' is read by neither model nor task.*did you mean 'width'", problem)
  end)

  it("may keep one value that the cells left over do not read", function()
    local text = replaced("{ family = { \"ph\", \"resnet\" }, depth = { 3, 5 }, seed = { 0, 1 } }",
      "{ { variant = 'a', family = 'ph', depth = 3 }, { variant = 'b', family = 'ph', width = 8 } }")
    text = text:gsub("function%(cell%)",
      "function(cell) if cell.variant == 'b' then return { ph.affine(cell.width), ph.affine(4) } end", 1)
    local e = assert(load(text))
    assert.same({ "family=ph depth=3 variant=a seed=0", "family=ph width=8 variant=b seed=0" }, labels(e))
    assert.same({ "family=ph width=8 variant=b seed=0" }, labels(assert(load(text, { "variant=b" }))))
  end)

  it("share a model when they differ in what it does not read", function()
    local e = assert(load(base))
    local cells = e:cells()
    assert.equal(e:ir(cells[1]), e:ir(cells[2]))
    assert.not_equal(e:ir(cells[1]), e:ir(cells[3]))
  end)

  it("can have a task each", function()
    local e = assert(load(replaced("task = ph.task.circles { width = d, split = { train = 8, val = 4, test = 4 } }",
      "task = function(cell) return ph.task.circles { width = d, noise = cell.noise, split = { train = 8, val = "
      .. "4, test = 4 } } end")
      :gsub("seed = { 0, 1 }", "noise = { 0.1, 0.3 }"), nil))
    assert.equal(0.1, e:task_of(e:cells()[1]).values.noise)
    assert.equal(0.3, e:task_of(e:cells()[2]).values.noise)
    assert.is_nil(e.task)
  end)
end)

describe("candidates", function()
  it("come in order", function()
    local e = assert(load(replaced("lr = { 0.1, 0.2 }", "lr = { 0.2, 0.1 }, batch = { 4, 8 }")))
    assert.same({
      { batch = 4, lr = 0.2 }, { batch = 4, lr = 0.1 }, { batch = 8, lr = 0.2 }, { batch = 8, lr = 0.1 },
    }, e:candidates())
  end)

  it("are one without select, which needs a rate", function()
    local e = assert(
      load(replaced("select = { lr = { 0.1, 0.2 } },", ""):gsub("epochs = 2", "epochs = 2, lr = 0.1"), nil))
    assert.same({ {} }, e:candidates())
    local _, problem = load(replaced("select = { lr = { 0.1, 0.2 } },", ""))
    assert.matches("no learning rate", problem)
    _, problem = load(replaced("epochs = 2", "epochs = 2, lr = 0.3"))
    assert.matches("lr is given twice, by train and by select", problem)
    _, problem = load(base, { "train.lr=0.3" })
    assert.matches("lr is given twice", problem)
  end)
end)

describe("key=value", function()
  it("keeps values of an axis", function()
    local e = assert(load(base, { "family=ph", "depth=5", "seed=1" }))
    assert.same({ "family=ph depth=5 seed=1" }, labels(e))
    assert.equal(1,
      #assert(
        load(base,
          { { key = "family", value = "ph" }, { key = "depth", value = "5" }, { key = "seed", value = "1" } })):cells())
  end)

  it("puts new values in their place", function()
    assert.same({ "family=ph depth=7 seed=0", "family=ph depth=9 seed=0" },
      labels(assert(load(base, { "family=ph", "depth=7,9", "seed=0" }))))
  end)

  it("drops sub-grids that have none of the values", function()
    local text = replaced("{ family = { \"ph\", \"resnet\" }, depth = { 3, 5 }, seed = { 0, 1 } }",
      "{ { family = 'ph', depth = { 3, 5 } }, { family = 'resnet', depth = 5 } }")
    assert.same({ "family=ph depth=3 seed=0" }, labels(assert(load(text, { "depth=3" }))))
    assert.same({ "family=ph depth=5 seed=0", "family=resnet depth=5 seed=0" },
      labels(assert(load(text, { "depth=5" }))))
  end)

  it("changes keys of train, task and select", function()
    local e = assert(load(base, { "train.epochs=7", "task.noise=0.5", "select.lr=0.3" }))
    assert.equal(7, e.train.epochs)
    assert.equal(0.5, e.task.values.noise)
    assert.same({ { lr = 0.3 } }, e:candidates())
  end)

  it("changes the tasks that a function gives", function()
    local e = assert(
      load(replaced("task = ph.task", "task = function() return ph.task"):gsub("test = 4 } },", "test = 4 } } end,"),
        { "task.noise=0.5" }))
    assert.equal(0.5, e:task_of(e:cells()[1]).values.noise)
  end)

  it("that means nothing is refused with the nearest word", function()
    local cases = {
      ["famly=ph"] = "command line: unknown key 'famly' %(did you mean 'family'%?%)",
      ["epochs=3"] = "did you mean 'train.epochs'",
      ["train.epoch=3"] = "did you mean 'train.epochs'",
      ["depth=2.5"] = "command line: depth element 1 must be a whole number, got 2.5",
      ["train.epochs=1,2"] = "train.epochs takes one value", ["depth="] = "depth= has no value",
      ["depth=3,,4"] = "an empty value",
      depth = "'depth' is not key=value", ["train.lr=nan"] = "command line: adam: 'lr' must be a number",
      ["task.turns=2"] = "unknown key 'task.turns'",
      ["data=/x"] = "unknown key 'task.dir'", ["select.by=test.loss"] = "choosing by test data is refused",
      ["train.lr=-1"] = "must be greater than 0",
    }
    for override, pattern in pairs(cases) do
      local e, problem = load(base, { override })
      assert.is_nil(e, override)
      assert.matches(pattern, problem)
    end
  end)

  it("changes the names of the runs it concerns", function()
    local function names(overrides) return job.cells(assert(load(base, overrides)))[1].jobs[1].run end
    assert.equal(names {}, names { "family=ph" })
    assert.not_equal(names {}, names { "train.epochs=3" })
    assert.not_equal(names {}, names { "task.noise=0.3" })
  end)
end)

describe("a rerun", function()
  it("is not made by a comment, indentation, order of keys, or a moved helper", function()
    assert.same({}, changed("-- a comment\n" .. base:gsub("\n", "\n   ")))
    assert.same({}, changed(replaced("name = \"t\",", ""):gsub("measure =", "name = 't', measure =")))
    assert.same({},
      changed(
        replaced("{ width = d, split = { train = 8, val = 4, test = 4 } }",
          "{ split = { test = 4, val = 4, train = 8 }, width = 16 / 2 }")))
    assert.same({},
      changed(
        replaced("return ph.linear(d)(ph.tanh(ph.affine(d)(z)))",
          "local inner = ph.affine(d)\n local t = ph.tanh(inner(z))\n return ph.linear(d)(t)")))
    assert.same({},
      changed(
        replaced("train = ph.adam { epochs = 2 }", "train = ph.adam { epochs = 2, checkpoint = 5, beta1 = 0.9 }")))
  end)

  it("is made by a changed meaning, of exactly the runs concerned", function()
    assert.equal(16, #changed(replaced("epochs = 2", "epochs = 3")))
    assert.equal(16, #changed(replaced("ph.tanh(ph", "ph.relu(ph")))
    assert.equal(8, #changed(replaced("step = 0.5", "step = 0.25")))
    assert.equal(16, #changed(replaced("train = 8", "train = 9")))
    assert.equal(8, #changed(replaced("lr = { 0.1, 0.2 }", "lr = { 0.1, 0.3 }")))
    assert.equal(4, #changed(replaced("depth = { 3, 5 }", "depth = { 3, 6 }")) - 4)
    assert.equal(16, #changed(replaced("ph.growth()", "ph.growth(), ph.port_budget()")))
  end)
end)

describe("schedules", function()
  local ph = require "ph"

  it("give the rate of every step", function()
    local constant = ph.adam { lr = 0.1, epochs = 1 }
    assert.equal(0.1, constant:rate(1, 100, 10))
    assert.equal(0.1, constant:rate(100, 100, 10))
    local cosine = ph.adam { lr = 0.1, epochs = 1, schedule = "cosine", lr_min = 0.02 }
    near(0.1, cosine:rate(1, 101, 10), { atol = 1e-16, why = "starts at lr" })
    near(0.06, cosine:rate(51, 101, 10) + 0, { atol = 1e-3, why = "about the middle" })
    assert.is_true(cosine:rate(101, 101, 10) >= 0.02 and cosine:rate(101, 101, 10) < 0.0201)
    local warm = ph.sgd { lr = 0.1, epochs = 10, schedule = "warmup", warmup = 2 }
    near(0.005, warm:rate(1, 100, 10), { atol = 1e-17, why = "a twentieth of lr" })
    assert.equal(0.1, warm:rate(20, 100, 10))
    assert.equal(0.1, warm:rate(21, 100, 10))
    local both = ph.sgd { lr = 0.1, epochs = 10, schedule = "warmup_cosine", warmup = 2 }
    near(0.1, both:rate(21, 100, 10), { atol = 1e-16, why = "cosine starts after the warm-up" })
    assert.is_true(both:rate(60, 100, 10) < 0.06)
  end)

  it("never rise after the warm-up", function()
    local p = ph.adam { lr = 0.1, epochs = 10, schedule = "warmup_cosine", warmup = 1 }
    local last = math.huge
    for step = 10, 100 do
      local rate = p:rate(step, 100, 10)
      assert.is_true(rate <= last and rate >= 0)
      last = rate
    end
  end)
end)
