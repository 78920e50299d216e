-- Losses in a spec: words and keys, what fits a task, what the model's text says; the direction of monitored values.
local choice = require "ph.run.choice"
local job = require "ph.run.job"
local monitor = require "ph.lang.monitor"
local native = require "ph.native"
local ph = require "ph"
local spec = require "ph.spec"

local nan <const> = 0 / 0

--- A spec with these further keys. task: the constructor of its task; width: what the model gives.
local function text_of(keys, task, width)
  return string.format([[
local ph = require "ph"
return ph.experiment {
  name = "t", task = %s, model = function(cell) return { ph.affine(%d) } end,
  train = ph.adam { epochs = 2, lr = 0.1, monitor = "val.loss" }, %s
}
]], task or "ph.task.teacher { width = 3, outputs = 2, split = { train = 8, val = 4, test = 4 } }", width or 2, keys)
end

local circles <const> = "ph.task.circles { width = 3, split = { train = 8, val = 4, test = 4 } }"

local function load(...)
  local e, errors = spec.load_text(text_of(...), "t.lua")
  return e, errors and errors[1].text
end

--- The end of the text of the first cell's model, after its segments.
local function loss_text(...)
  local e, problem = load(...)
  return assert(e, problem):ir(e:cells()[1]):match "end\n([^\n]*\n?[^\n]*)\n$"
end

local function fails(pattern, ...)
  local e, problem = load(...)
  assert.is_nil(e)
  assert.matches(pattern, problem)
end

describe("the loss of an experiment", function()
  it("is by default what fits the task", function()
    assert.equal("loss mse", loss_text "")
    assert.equal("loss softmax_cross_entropy", loss_text("", circles, 4))
  end)

  it("is a word, an object with keys, or a function of the cell", function()
    assert.equal("loss mae", loss_text "loss = 'mae'")
    assert.equal("loss huber", loss_text "loss = 'huber'")
    assert.equal("loss huber delta=0.5", loss_text "loss = ph.huber { delta = 0.5 }")
    assert.equal("loss huber delta=2",
      loss_text "grid = { d = { 2, 3 } }, loss = function(cell) return ph.huber { delta = cell.d } end")
    assert.equal("loss softmax_cross_entropy smoothing=0.1",
      loss_text("loss = ph.cross_entropy { smoothing = 0.1 }", circles, 4))
    assert.equal("table weights 1 0.5 0 2\nloss softmax_cross_entropy weights=@weights",
      loss_text("loss = ph.cross_entropy { weights = { 1, 0.5, 0, 2 } }", circles, 4))
  end)

  it("changes the runs, and a default that is said does not", function()
    local function run(keys) return job.cells(assert(load(keys)))[1].jobs[1].run end
    assert.equal(run "", run "loss = 'mse'")
    assert.equal(run "loss = 'huber'", run "loss = ph.huber { delta = 1 }")
    assert.not_equal(run "", run "loss = 'mae'")
    assert.not_equal(run "loss = 'huber'", run "loss = ph.huber { delta = 2 }")
  end)

  it("must fit the task", function()
    fails("loss: cross_entropy compares with labels, the task has targets: use mse, huber, mae",
      "loss = 'cross_entropy'")
    fails("loss: mse compares with targets, the task has labels: use cross_entropy", "loss = 'mse'", circles, 4)
    fails("weights of cross_entropy has 3 numbers, the task has 4 classes",
      "loss = ph.cross_entropy { weights = { 1, 2, 3 } }", circles, 4)
    fails("gives a state of width 3, the task has targets of width 2", "", nil, 3)
  end)

  it("is refused with the nearest word and the range", function()
    fails("t.lua:4: experiment: 'loss' must be a loss %(cross_entropy, mse, huber, mae.*"
      .. "got the string 'hubr' %(did you mean 'huber'%?%)", "loss = 'hubr'")
    fails("huber: 'delta' must be greater than 0, got 0", "loss = ph.huber { delta = 0 }")
    fails("cross_entropy: 'smoothing' must be less than 1, got 1", "loss = ph.cross_entropy { smoothing = 1 }")
    fails("cross_entropy: 'weights' element 2 must be at least 0, got %-1",
      "loss = ph.cross_entropy { weights = { 1, -1 } }")
    fails("huber: unknown key 'smoothing'", "loss = ph.huber { smoothing = 0.1 }")
    fails("loss: must be a loss", "loss = function() return 3 end")
  end)

  it("is every row of the table that has a word", function()
    local words = {}
    for _, row in ipairs(native.losses()) do
      words[#words + 1] = row.word
      assert.is_true(row.needs == "labels" or row.needs == "targets" or row.name == "none")
    end
    for _, word in ipairs(words) do assert.equal("ph.loss", getmetatable(ph[word] {}).__name) end
  end)
end)

describe("a spec with a loss and a term", function()
  it("trains: both become smaller, and the loss counts both", function()
    local e = assert(spec.load_text([[
local ph = require "ph"
return ph.experiment {
  name = "t", task = ph.task.teacher { width = 3, split = { train = 64, val = 4, test = 4 } }, loss = "mse",
  train = ph.adam { epochs = 2, lr = 0.1, monitor = "val.loss" },
  model = function()
    return { ph.affine(4), ph.stream { depth = 5, tied = true, block = function(z)
      local size = ph.square(ph.linear(1)(z))
      ph.term(0.01, size)
      ph.observe("size", size)
      return z + ph.affine(4)(ph.tanh(z)) / 5
    end }, ph.affine(1) }
  end,
}
]], "t.lua"))
    local one = job.cells(e)[1].jobs[1]
    local set = one.load().train
    local data <close> = native.data(set.x, set.y)
    local plan <close> = native.plan(one.ir, { batch = 64 })
    plan:init(1)
    local function measured()
      local out = plan:eval(data, nil, true)
      local sizes = plan:probe(data, nil, { segment = 2, observe = true }).observe
      assert.same({ 64, 5 }, sizes:shape())
      local fit, term = (out.out:cast "f64" - set.y:cast "f64"):norm() ^ 2 / 64, 0
      for i = 1, 64 do
        for t = 1, 5 do term = term + 0.01 * sizes:at(i, t) / 64 end
      end
      near(out.loss, fit + term, { atol = 1e-5, why = "float32 outputs" })
      return fit, term
    end
    local fit, term = measured()
    for _ = 1, 150 do plan:step(data, nil, { kind = "adam", lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8 }) end
    local fit_after, term_after = measured()
    assert.is_true(fit_after < 0.5 * fit)
    assert.is_true(term_after < term)
  end)
end)

describe("a monitored value", function()
  it("that the task cannot have is refused", function()
    local e, errors = spec.load_text((text_of "" :gsub(", monitor = \"val.loss\"", "")), "t.lua")
    assert.is_nil(e)
    assert.matches("train: monitor = 'val.accuracy' needs a task with classes, this one has targets: use val.loss",
      errors[1].text)
    fails("select: by = 'val.accuracy' needs a task with classes", "select = { batch = { 4, 8 } }")
    assert(load "select = { batch = { 4, 8 }, by = 'val.loss' }")
  end)

  it("says in which direction it is better", function()
    assert.is_true(monitor.is_better("higher", 2, 1))
    assert.is_false(monitor.is_better("higher", 1, 1))
    assert.is_true(monitor.is_better("lower", 1, 2))
    assert.is_true(monitor.is_better("lower", 1, nil))
    assert.is_false(monitor.is_better("lower", nan, nil))
    for _, row in ipairs(monitor.rows) do assert.is_true(row.better == "higher" or row.better == "lower") end
  end)

  it("chooses among candidates: the best, the first of equals, a diverged one last", function()
    local function chosen(by, ...)
      local candidates = {}
      for i, v in ipairs { ... } do
        candidates[i] = v == "diverged" and { diverged = true, value = 9 } or { value = v ~= "none" and v or nil }
      end
      return choice.among(candidates, by)
    end
    assert.equal(2, chosen("val.accuracy", 0.5, 0.9, 0.9))
    assert.equal(3, chosen("val.loss", 0.5, 0.9, 0.1))
    assert.equal(2, chosen("val.loss", "diverged", nan, "none"))
    assert.equal(2, chosen("val.accuracy", "diverged", 0.1))
    assert.equal(1, chosen("val.accuracy", "diverged", "diverged"))
  end)
end)
