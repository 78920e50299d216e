-- Faults that people of the field report again and again, as small trials of the library; those of the whole program
-- are in tests/e2e/cases.py. The names carry the numbers of that list.
local checkpoint = require "ph.run.checkpoint"
local job = require "ph.run.job"
local native = require "ph.native"
local ph = require "ph"
local spec = require "ph.spec"
local train = require "ph.run.train"

local function temp_file()
  local path = os.tmpname()
  os.remove(path)
  finally(function() os.remove(path) end)
  return path
end

-- ---- P7, P13: training whose validation says what is written here ----

local small <const> = [[
local ph = require "ph"
return ph.experiment {
  name = "small",
  task = ph.task.circles { classes = 3, width = 6, split = { train = 50, val = 20, test = 20 } },
  model = function()
    local function block(z) return z + ph.affine(6)(ph.relu(ph.affine(6)(z))) end
    return { ph.stream { depth = 3, block = block }, ph.affine(3) }
  end,
  train = ph.adam { lr = 1e-2, batch = 16, epochs = 20, patience = 4 },
}]]

--- The plan, whose validation says what the script says for the epoch of `t.state`, as loss and as accuracy.
local function scripted(plan, t, script)
  local function eval()
    local v = script[t.state.epoch]
    return { loss = v, hits = 100 * v, n = 100, finite = v == v }
  end
  return setmetatable({ eval = eval },
    { __index = function(_, name) return function(_, ...) return plan[name](plan, ...) end end })
end

local function hashes(group)
  local out = {}
  for name, tensor in pairs(group) do out[name] = native.sha256(tensor:bytes()) end
  return out
end

local function job_of(text) return job.cells(assert(spec.load_text(text, "small.lua")))[1].jobs[1] end

--- Trains until it ends or epoch `last` is over; returns status, training, hashes of the weights after each epoch.
local function scripted_run(one, script, path, last)
  local set, after = one.load(), {}
  local train_data <close> = native.data(set.train.x, set.train.y)
  local val_data <close> = native.data(set.val.x, set.val.y)
  local plan <close> = assert(native.plan(one.ir, { batch = one.protocol.batch }))
  local t
  t = train.new {
    protocol = one.protocol, seed = one.seed, classifies = true, data = { train = train_data, val = val_data },
    n_train = 50, path = path, every = 1e9,
    on_epoch = function(row) after[row[1]] = hashes(checkpoint.snapshot(plan)) end,
    stopped = function() return last ~= nil and t.state.epoch > last end,
  }
  t.plan = scripted(plan, t, script)
  t:begin()
  local status = t:run()
  return status, t, after
end

describe("early stopping through a stop and a second start (P7)", function()
  it("ends at the same epoch and keeps the weights of epoch 2", function()
    local one, script = job_of(small), { 0.50, 0.60, 0.55, 0.54, 0.53, 0.52, 0.51, 0.90, 0.91, 0.92 }
    local status, straight, want = scripted_run(one, script, temp_file())
    assert.same({ "trained", 6, 2 }, { status, #straight.rows, straight.stop.best_epoch })
    assert.same(want[2], hashes(straight.best))
    assert.not_same(want[2], want[6])

    local path = temp_file()
    local first, t = scripted_run(one, script, path, 4)
    assert.same({ "interrupted", 4 }, { first, #t.rows })
    local second, resumed, got = scripted_run(one, script, path)
    assert.same({ "trained", 6, 2 }, { second, #resumed.rows, resumed.stop.best_epoch })
    assert.is_nil(got[4]) -- it went on, it did not begin again
    assert.same(want[6], got[6])
    assert.same(want[2], hashes(resumed.best))
    assert.same(straight.rows, resumed.rows)
    assert.same(straight.stop:save(), resumed.stop:save())
  end)
end)

describe("validation that is not a number (P13)", function()
  local script <const> = { 0 / 0, 0.9, 0.8, 0 / 0, 0.7, 0 / 0, 0 / 0, 0 / 0, 0 / 0, 0 / 0 }
  local by_loss = small:gsub("patience = 4", "patience = 4, monitor = 'val.loss'")

  --- Epochs trained, best epoch, its value, whether the weights kept are those of that epoch;
  -- stopped after `last` and gone on, if given.
  local function outcome(text, last)
    local one, path, before = job_of(text), temp_file(), {}
    if last then
      local status, _, seen = scripted_run(one, script, path, last)
      assert.equal("interrupted", status)
      before = seen
    end
    local status, t, after = scripted_run(one, script, path)
    assert.equal("trained", status)
    local best = t.stop.best_epoch
    assert.same(before[best] or after[best], hashes(t.best))
    return { #t.rows, best, t.stop.best }
  end

  it("is never best: a loss falls to .7 in epoch 5, four epochs of patience end at 9", function()
    for last = 0, 8 do assert.same({ 9, 5, 0.7 }, outcome(by_loss, last > 0 and last or nil)) end
  end)

  it("is never best: an accuracy is .9 in epoch 2, four epochs of patience end at 6", function()
    for last = 0, 5 do assert.same({ 6, 2, 0.9 }, outcome(small, last > 0 and last or nil)) end
  end)

  it("from the first epoch on leaves no best, and patience counts", function()
    local status, t = scripted_run(job_of(small), { 0 / 0, 0 / 0, 0 / 0, 0 / 0, 0.5 }, temp_file())
    assert.same({ "trained", 4 }, { status, #t.rows })
    assert.is_nil(t.best)
    assert.is_nil(t.stop.best_epoch)
  end)
end)

-- ---- P17: a whole stream whose layers have coinciding eigenvalues, in float64 ----

local stream <const> = [[
phrun-ir 1
dtype f64
input 1 4
segment depth 3
param L 4 4 zeros
param A 4 4 normal 0.5
param W 4 4 uniform 0.5
param b 1 4 uniform 0.5
param B 4 4 uniform 0.5
node 0 guard step=0.5 budget=1 p0
node 1 gram n0
node 2 damping step=0.5 n1
node 3 skew p1
node 4 cayley n3
node 5 state
node 6 apply n4 n5
node 7 apply n2 n6
node 8 apply p2 n5
node 9 bias n8 p3
node 10 tanh n9
node 11 apply p4 n10
node 12 scale by=0.5 n11
node 13 add n7 n12
result n13
end
loss softmax_cross_entropy
]]

--- L (3, 4, 4): level * I in each layer.
local function level_of(level)
  local L = native.tensor({ 3, 4, 4 }, "f64")
  for t = 1, 3 do
    for i = 1, 4 do L:put(level, t, i, i) end
  end
  return L
end

describe("a stream of coinciding eigenvalues (P17)", function()
  local labels = {}
  for i = 1, 12 do labels[i] = i % 4 end

  -- R = L^2: 0.09 I and 0 lie under the budget, where the guard does nothing; 2 I is above it
  for _, level in ipairs { 0.3, 0.0, 2.0 } do
    it("has the gradient of central differences: L = " .. level .. " I", function()
      local data <close> = native.data(native.random("normal", 2, "cases.x", { 12, 4 }), native.from(labels, "i32"))
      local plan <close> = assert(native.plan(stream, { batch = 12 }))
      plan:init(3)
      local function loss_at(slot, value)
        plan:set(slot, "value", value)
        plan:refresh()
        return plan:eval(data, nil, false).loss
      end
      local L = level_of(level)
      assert(loss_at("s1.L", L) > 0)
      plan:grad(data, nil, false)
      local kept, most = {}, 0
      for _, name in ipairs { "s1.L", "s1.A", "s1.W" } do
        kept[name] = plan:get(name, "grad"):copy()
        assert.is_nil(kept[name]:first_nonfinite())
        most = math.max(most, kept[name]:norm())
      end
      for name, g in pairs(kept) do
        local at, wrong, e = plan:get(name, "value"):copy(), 0, 1e-5
        -- at 2 I each entry alone raises the largest eigenvalue, so the difference has a kink there: a
        -- direction that keeps L = c I has none
        local steps = name == "s1.L" and level == 2 and { level_of(1) } or {}
        if #steps == 0 then
          for k = 1, at:count() do
            local step = native.tensor({ at:count() }, "f64")
            step:put(1, k)
            steps[k] = step:reshape(at:shape())
          end
        end
        for _, step in ipairs(steps) do
          local difference = (loss_at(name, at + step * e) - loss_at(name, at - step * e)) / (2 * e)
          wrong = math.max(wrong, math.abs(difference - g:mul(step):sum()))
        end
        loss_at(name, at)
        near(0, wrong,
          { atol = 1e-6 * most, why = "central difference: eps / e + e^2, against the norm of the gradient" })
      end
      assert(most > 1e-3, "a gradient that is not there proves nothing")
    end)
  end
end)

-- ---- P20: what LayerNorm does where there is next to no variance, in float32 ----

describe("LayerNorm at the edge (P20)", function()
  local d <const> = 33
  local ones, zeros = native.tensor({ d }, "f32") + 1, native.tensor({ d }, "f32")

  local function row(value)
    local x = native.tensor({ 1, d }, "f64")
    for i = 1, d do x:put(value(i), 1, i) end
    return x:cast "f32"
  end

  local rows <const> = {
    ["a constant row"] = function() return 0.1 end,
    ["a row of zeros"] = function() return 0 end,
    ["variance 1e-16 around 0"] = function(i) return i % 2 == 0 and 1e-8 or -1e-8 end,
    ["variance 1e-16 around 1, less than float32 can hold"] = function(i) return 1 + (i % 2 == 0 and 1e-8 or -1e-8) end,
    ["variance 1e-16 in one place around 1000"] = function(i) return i == 7 and 1000 + 1e-7 or 1000 end,
  }
  for name, value in pairs(rows) do
    for _, eps in ipairs { 1e-5, 1e-12 } do
      it(name .. ", eps " .. eps .. ": finite value and gradient", function()
        local args, samples = { row(value), ones, zeros }, { true, false, false }
        local y = native.op("layernorm", args, { eps = eps }, samples)
        assert.is_nil(y:first_nonfinite())
        -- |y| is at most |x - mean| / sqrt(eps), whatever the variance
        assert(y:cast("f64"):norm() <= math.sqrt(d) * 1e-2, tostring(y))
        local g = native.op_bwd("layernorm", args, { eps = eps }, samples,
          native.random("normal", 1, "cases.g", { 1, d }, 1, "f32"))
        for k = 1, 3 do assert.is_nil(g[k]:first_nonfinite()) end
        assert(g[1]:cast("f64"):norm() <= 2 * math.sqrt(d) / math.sqrt(eps), "no steeper than 1 / sqrt(eps)")
      end)
    end
  end

  it("follows eps: at variance 1e-16 the slope is 1 / sqrt(1e-16 + eps)", function()
    for _, eps in ipairs { 1e-5, 1e-12 } do
      local x = row(rows["variance 1e-16 around 0"])
      local y = native.op("layernorm", { x, ones, zeros }, { eps = eps }, { true, false, false })
      near(2e-8 / math.sqrt(1e-16 + eps), y:at(1, 2) - y:at(1, 1), { rtol = 1e-5, why = "float32" })
    end
  end)

  it("refuses eps 0, in a spec and in the IR", function()
    local ok, e = pcall(ph.layernorm, { eps = 0 })
    assert.is_false(ok)
    assert.matches("layernorm: 'eps' must be greater than 0, got 0", tostring(e))
    local text, problem = native.ir_check(
      "phrun-ir 1\ndtype f32\ninput 1 3\nsegment once 1\nparam g 1 3 ones\nparam b 1 3 zeros\nnode 0 state\nnode 1 "
      .. "layernorm eps=0 n0 p0 p1\nresult n1\nend\nloss none\n")
    assert.is_nil(text)
    assert.matches("eps", problem)
  end)

  it("keeps eps in what is recorded of a run, and so in its name", function()
    local function recorded(eps)
      local e = assert(
        spec.load_text((small:gsub("return z %+", "return ph.layernorm { eps = " .. eps .. " } (z) +")), "eps.lua"))
      return job.cells(e)[1].jobs[1]
    end
    assert.matches("layernorm eps=1e%-12 ", recorded("1e-12").ir)
    assert.matches("layernorm eps=1e%-05 ", recorded("1e-5").ir)
    assert.not_equal(recorded("1e-12").run, recorded("1e-5").run)
  end)
end)
