local EarlyStop = require "ph.run.earlystop"
local json = require "ph.util.json"

local nan <const> = 0 / 0

--- Feeds values until the policy stops; goes through save and restore after epoch `stop_at`, as a resumed run does.
local function play(better, patience, values, stop_at)
  local stop = EarlyStop.new(better, patience)
  for epoch, v in ipairs(values) do
    stop:update(v)
    if epoch == stop_at then stop = EarlyStop.restore(json.decode(json.encode(stop:save()))) end
    if stop:should_stop() then break end
  end
  return stop.epoch, stop.best_epoch, stop.best
end

describe("early stopping", function()
  it("stops at the same epoch and keeps the same best whether or not it was interrupted", function()
    local values = { 0.5, 0.6, 0.55, 0.54, 0.53, 0.52, 0.51, 0.9 }
    for stop_at = 0, 5 do
      assert.same({ 6, 2, 0.6 }, { play("higher", 4, values, stop_at) })
    end
  end)

  it("never takes a value that is not a number for the best", function()
    assert.same({ 5, 5, 0.7 }, { play("lower", 4, { nan, 0.9, 0.8, nan, 0.7 }) })
    assert.same({ 5, 2, 0.9 }, { play("higher", 4, { nan, 0.9, 0.8, nan, 0.7 }) })
  end)

  it("counts such an epoch as one without improvement", function()
    assert.same({ 3, 1, 0.9 }, { play("lower", 2, { 0.9, nan, nan, 0.1 }) })
    assert.same({ 2 }, { (play("lower", 2, { nan, nan, 0.1 })) })
  end)

  it("keeps the first of equal values and runs to the end without patience", function()
    assert.same({ 3, 1, 0.5 }, { play("higher", nil, { 0.5, 0.5, 0.5 }) })
    assert.same({ 3, 1, 0.5 }, { play("higher", 2, { 0.5, 0.5, 0.5, 0.5 }) })
  end)

  it("takes infinity as a value", function()
    assert.same({ 2, 2, 0.5 }, { play("lower", 5, { math.huge, 0.5 }) })
  end)
end)

local checkpoint = require "ph.run.checkpoint"
local job = require "ph.run.job"
local native = require "ph.native"
local spec = require "ph.spec"
local train = require "ph.run.train"

local text <const> = [[
local ph = require "ph"
return ph.experiment {
  name = "small",
  task = ph.task.circles { classes = 3, width = 6, split = { train = 50, val = 20, test = 20 } },
  model = function()
    local function block(z) return z + ph.affine(6)(ph.relu(ph.affine(6)(z))) end
    return { ph.stream { depth = 3, block = block }, ph.affine(3) }
  end,
  train = ph.adam { lr = %s, batch = 16, epochs = %d, patience = %d, schedule = "cosine" },
}]]

local function small_job(lr, epochs, patience)
  local experiment, problems = spec.load_text(text:format(lr or "1e-2", epochs or 3, patience or 0), "small.lua")
  return assert(experiment and job.cells(experiment)[1].jobs[1], problems and problems[1].text)
end

--- Trains with a plan of its own, up to `steps` steps of this call; returns the status, the
-- training, hashes of the last weights.
local function session(one, path, steps, every)
  local set, done, seen = one.load(), 0, {}
  local data = { train = native.data(set.train.x, set.train.y), val = native.data(set.val.x, set.val.y) }
  local plan <close> = assert(native.plan(one.ir, { batch = one.protocol.batch }))
  local t = train.new {
    plan = plan, protocol = one.protocol, seed = one.seed, classifies = true, data = data,
    n_train = set.train.x:shape()[1], path = path, every = every or 1e9,
    on_step = function(n)
      done = done + 1
      seen[#seen + 1] = n
    end,
    stopped = function() return steps ~= nil and done >= steps end,
  }
  t:begin()
  local status = t:run()
  local bits = {}
  for name, tensor in pairs(checkpoint.snapshot(plan)) do bits[name] = native.sha256(tensor:bytes()) end
  data.train:close()
  data.val:close()
  return status, t, bits, seen
end

local function temp_file()
  local path = os.tmpname()
  os.remove(path)
  finally(function() os.remove(path) end)
  return path
end

describe("training", function()
  it("ends with the same bits when it is stopped after any step and goes on", function()
    local one = small_job()
    local _, straight, want = session(one, temp_file())
    for stop = 1, 11 do
      local path = temp_file()
      assert.equal("interrupted", (session(one, path, stop)))
      local status, t, got = session(one, path)
      assert.equal("trained", status)
      assert.same(want, got)
      assert.same(straight.rows, t.rows)
      assert.same(straight.stop:save(), t.stop:save())
      for name, tensor in pairs(straight.best) do assert.equal(tensor:bytes(), t.best[name]:bytes()) end
    end
  end)

  it("goes on from a checkpoint on disk after a kill, in the middle of an epoch", function()
    local one, path = small_job(), temp_file()
    local _, _, want = session(one, temp_file())
    local set = one.load()
    local data = { train = native.data(set.train.x, set.train.y), val = native.data(set.val.x, set.val.y) }
    do -- a run that vanishes: no save at its end
      local plan <close> = assert(native.plan(one.ir, { batch = 16 }))
      local t = train.new {
        plan = plan, protocol = one.protocol, seed = 0, classifies = true, data = data, n_train = 50, path = path,
        every = 0, stopped = function() return false end,
      }
      t:begin()
      t.started = native.now()
      local order = native.permutation(0, "order/1", 0, 50)
      t:one_step(order)
      t:save_if_due(1)
      t:one_step(order)
    end
    assert.equal(1, checkpoint.read(path).state.step)
    local _, _, got = session(one, path)
    assert.same(want, got)
    data.train:close()
    data.val:close()
  end)

  it("takes every sample once an epoch, the short last batch with its own size", function()
    local _, t, _, seen = session(small_job(nil, 1), temp_file())
    assert.same({ 16, 16, 16, 2 }, seen)
    assert.equal(4, t.state.steps)
    local order = native.permutation(0, "order/1", 0, 50):totable()
    table.sort(order)
    for i = 1, 50 do assert.equal(i, order[i]) end
  end)

  it("weights the mean loss by samples", function()
    local one = small_job("1e-12", 1) -- weights stay where they are: the mean over batches is the loss over the set
    local _, t = session(one, temp_file())
    local set = one.load()
    local data <close> = native.data(set.train.x, set.train.y)
    local plan <close> = assert(native.plan(one.ir, { batch = 16 }))
    plan:init(one.seed)
    plan:refresh()
    local res = plan:eval(data, nil, false)
    near(res.loss, t.rows[1][3], { rtol = 1e-6, why = "float32 sums in other groups, and steps of 1e-12" })
    assert.equal(res.hits / 50, t.rows[1][4])
  end)

  it("keeps the weights of the best epoch, not of the last", function()
    local one = small_job("5e-2", 12, 3)
    local _, t, last = session(one, temp_file())
    local best_row = t.rows[t.stop.best_epoch]
    for epoch, row in ipairs(t.rows) do
      if epoch < t.stop.best_epoch then
        assert.is_true(row[6] < best_row[6])
      else
        assert.is_true(row[6] <= best_row[6])
      end
    end
    local differs = false
    for name, tensor in pairs(t.best) do differs = differs or native.sha256(tensor:bytes()) ~= last[name] end
    assert.equal(t.stop.best_epoch ~= #t.rows, differs)
    assert.equal(one.protocol.patience, t.state.ended_by == "patience" and t.stop.waited or one.protocol.patience)
  end)

  it("follows the schedule step by step", function()
    local _, t = session(small_job("1e-2", 3), temp_file())
    assert.equal(3, #t.rows)
    assert.is_true(t.rows[1][2] > t.rows[2][2] and t.rows[2][2] > t.rows[3][2] and t.rows[3][2] > 0)
  end)

  it("records a run whose loss is not finite, with the place, and changes no weight by it", function()
    local path = temp_file()
    local status, t = session(small_job("1e6", 20), path)
    assert.equal("diverged", status)
    local d = t.state.diverged
    assert.is_true(d.step > 1 and d.epoch >= 1)
    assert.equal("number", type(d.last_loss))
    assert.is_true(d.last_loss == d.last_loss and d.last_loss < math.huge)
    for _, tensor in pairs(checkpoint.read(path).final) do assert.is_nil(tensor:first_nonfinite()) end
  end)

  it("starts over with a note when its checkpoint cannot be read", function()
    local path = temp_file()
    assert(native.write_file(path, "not a checkpoint"))
    local saved, problem = checkpoint.read(path)
    assert.is_nil(saved)
    assert.is_string(problem)
    assert.equal("trained", (session(small_job(nil, 1), path)))
  end)
end)
