local changes = require "ph.run.changes"
local job = require "ph.run.job"
local measure = require "ph.run.measure"
local native = require "ph.native"
local observe = require "ph.lang.observe"
local open = require "ph.repl.open"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"
local runner = require "ph.run.runner"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"
local spec = require "ph.spec"
local work = require "ph.run.work"

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  finally(function() os.execute("rm -rf '" .. path .. "'") end)
  return path
end

local function record(run, more)
  local r = {
    run = run, label = "family=ph lr=" .. run, cell_label = "family=ph", status = "done", chosen = false,
    test_opened = 0, metrics = {},
  }
  for k, v in pairs(more or {}) do r[k] = v end
  return r
end

describe("a results directory", function()
  it("has one writer at a time", function()
    local dir = temp_dir()
    local store = assert(results.open(dir))
    local second, problem = results.open(dir)
    assert.is_nil(second)
    assert.matches("another phrun is writing here", problem)
    store:release()
    assert(results.open(dir)):release()
  end)

  it("removes what a killed program left half-written, and nothing else", function()
    local dir = temp_dir()
    assert(results.open(dir)):release()
    assert(native.write_file(dir .. "/runs/abc.h5.tmp-123", "half"))
    assert(native.write_file(dir .. "/runs/abc.h5", "whole"))
    assert(native.write_file(dir .. "/notes.tmp", "mine"))
    assert(results.open(dir)):release()
    assert.is_nil(native.stat(dir .. "/runs/abc.h5.tmp-123"))
    assert.is_table(native.stat(dir .. "/runs/abc.h5"))
    assert.is_table(native.stat(dir .. "/notes.tmp"))
  end)

  it("takes a run for finished only when its record closes it and its file is there", function()
    local dir = temp_dir()
    local store = assert(results.open(dir))
    assert(store:close_run("done", record("a"), { path = "runs/a.h5", sha256 = "00" }))
    assert.is_nil(store:finished("a"))
    assert(native.write_file(results.run_path(dir, "a"), "x"))
    assert.equal("done", store:finished("a").status)
    assert(store:close_run("failed", record("b", { status = "failed", reason = "no file" })))
    assert(native.write_file(results.run_path(dir, "b"), "x"))
    assert.is_nil(store:finished("b"))
    store:release()
    local again = assert(results.peek(dir))
    assert.equal("done", again:finished("a").status)
    assert.equal("no file", again.records.b.reason)
  end)

  it("keeps who was chosen last, also when it is read again", function()
    local dir = temp_dir()
    local store = assert(results.open(dir))
    assert(store:close_run("done", record("a", { chosen = true, test_opened = 1 })))
    assert(store:close_run("done", record("b")))
    assert.is_true(store:rivals("family=ph", "b"))
    assert.is_false(store:rivals("family=ph", "a"))
    assert(store:append { event = "selected", run = "b", label = "family=ph" })
    store:choose("family=ph", "b")
    store:release()
    for _, s in ipairs { store, assert(results.peek(dir)) } do
      assert.same({ false, true }, { s.records.a.chosen, s.records.b.chosen })
    end
  end)

  it("refuses a directory whose ledger was changed", function()
    local dir = temp_dir()
    local store = assert(results.open(dir))
    assert(store:close_run("done", record("a")))
    store:release()
    local text = native.read_file(dir .. "/ledger.jsonl")
    assert(native.write_file(dir .. "/ledger.jsonl", (text:gsub('"run":"a"', '"run":"z"', 1))))
    local _, problem, kind = results.open(dir)
    assert.equal("tampered", kind)
    assert.matches("line 1 was changed", problem)
  end)

  it("is left unlocked when it cannot be opened", function()
    local dir = temp_dir()
    assert(results.open(dir)):release()
    assert(native.write_file(dir .. "/ledger.jsonl", "{}\n"))
    assert.is_nil((results.open(dir)))
    assert(native.write_file(dir .. "/ledger.jsonl", ""))
    assert(results.open(dir)):release()
  end)
end)

describe("a run file", function()
  it("is refused when it is something else", function()
    local dir = temp_dir()
    assert(native.mkdir(dir))
    assert(native.h5_write(dir .. "/x.h5", { { path = "/", attr = "format", value = "other" } }))
    local run, problem = runfile.open(dir .. "/x.h5")
    assert.is_nil(run)
    assert.matches("not a run file", problem)
    assert(native.write_file(dir .. "/y.h5", "no hdf5"))
    assert.is_nil((runfile.open(dir .. "/y.h5")))
    assert.is_nil((runfile.open(dir .. "/z.h5")))
  end)
end)

describe("what changed between two runs", function()
  local before = {
    ir = "aa", task = 'task.circles{noise=0.25,split={"test":1,"train":2},width=8}', data = "d1",
    train = "adam{epochs=4,lr=0.001}", measure = "growth",
  }

  local function change(more)
    local now = {}
    for k, v in pairs(before) do now[k] = v end
    for k, v in pairs(more) do now[k] = v end
    return changes.between(now, before)
  end

  it("is reported by key with both values", function()
    assert.equal("changed: train lr: 0.001 -> 0.01", change { train = "adam{epochs=4,lr=0.01}" })
    assert.equal("changed: train kind: adam -> sgd", change { train = "sgd{epochs=4,lr=0.001}" })
    assert.equal('changed: task split: {"test":1,"train":2} -> {"test":1,"train":3}',
      change { task = before.task:gsub('"train":2', '"train":3') })
    assert.equal("changed: task classes: none -> 4",
      change { task = before.task:gsub("{noise", "{classes=4,noise", 1) })
    assert.equal("changed: model: aa -> bb, data: d1 -> d2", change { ir = "bb", data = "d2" })
    assert.equal("changed: measure: growth -> none", change { measure = "none" })
    assert.equal("changed: lock: none -> 77", change { lock = "77" })
    assert.equal("its configuration changed", change {})
  end)
end)

describe("short labels", function()
  it("keep what tells runs apart", function()
    local function run(family, lr)
      local label = string.format("family=%s depth=30 seed=0 lr=%g", family, lr)
      return { cell = { family = family, depth = 30, seed = 0 }, select = { lr = lr }, label = label }
    end
    local one = run("ph", 0.001)
    local varying = job.varying { one, run("resnet", 0.003) }
    assert.equal("ph lr=0.001", job.short_label(one, varying))
    assert.equal(one.label, job.short_label(one, {}))
  end)
end)

describe("measures", function()
  it("count states above the port budget and find the largest quotient", function()
    assert.same({ 0, 1 }, { measure.budget_of_sample({ 1, 2, 2.5 }, { 1, 1 }) })
    assert.same({ 1, 2 }, { measure.budget_of_sample({ 1, 4, 2 }, { 1, 1 }) })
    local above, largest = measure.budget_of_sample({ 1, 0 / 0, 2 }, { 1, 1 })
    assert.equal(1, above, "a norm that is not a number is a violation")
    assert.is_true(largest ~= largest)
    assert.same({ 0, 1 + 5e-6 }, { measure.budget_of_sample({ 1, (1 + 5e-6) }, { 0 }) })
  end)

  it("give gradient ratios to the last layer: first, largest, smallest", function()
    local metrics, profile = measure.envelope { 6, 1, 8, 2 }
    assert.same({ ["grad.first"] = 3, ["grad.max"] = 4, ["grad.min"] = 0.5 }, metrics)
    assert.same({ 3, 0.5, 4, 1 }, profile)
  end)

  it("count answers by label, the first of equal logits", function()
    local logits = native.from({ { 1, 0, 0 }, { 0, 2, 2 }, { 0, 0, 3 }, { 1, 1, 1 } }, "f32")
    local confusion = measure.confusion(logits, native.from({ 0, 2, 2, 1 }, "i32"), 3)
    assert.same({ { 1, 0, 0 }, { 1, 0, 0 }, { 0, 1, 1 } }, confusion:totable())
  end)

  it("give the metrics and profiles that they register", function()
    local e = spec.load_text([[
      local ph = require "ph"
      return ph.experiment {
        name = "t", task = ph.task.circles { width = 4, split = { train = 8, val = 4, test = 4 } },
        model = function()
          return { ph.stream { depth = 3, block = function(z) return z + ph.affine(4)(ph.tanh(z)) end }, ph.affine(4) }
        end,
        train = ph.adam { lr = 1e-3, epochs = 1 }, measure = { ph.growth(), ph.gradient_envelope(), ph.port_budget() },
      }]], "t.lua")
    local one = job.cells(e)[1].jobs[1]
    local set = one.load().test
    local data <close> = native.data(set.x, set.y)
    local plan <close> = native.plan(one.ir, { batch = 4, probe = true })
    plan:init(0)
    for _, name in ipairs(one.measures) do
      local metrics, profiles = measure.all(plan, data, { name })
      local block, want = schema.get(name), { metrics = {}, profiles = {} }
      for _, metric in ipairs(block.metrics) do want.metrics[#want.metrics + 1] = metric[1] end
      for _, profile in ipairs(block.profiles or {}) do want.profiles[#want.profiles + 1] = "s1/" .. profile[1] end
      table.sort(want.metrics)
      assert.same(want, { metrics = sorted_keys(metrics), profiles = sorted_keys(profiles) })
    end
  end)

  it("have their names of today when they come from a file of an earlier program", function()
    local dir = temp_dir()
    assert(native.mkdir(dir))
    local path, items = dir .. "/old.h5", {}
    local committed = assert(runfile.open(native.lua_dir .. "/../experiments/digits/runs/7d6fbfe56eb2a162.h5")).file
    for _, at in ipairs { "/record", "/ir" } do items[#items + 1] = { path = at, value = committed:text(at) } end
    committed:close()
    for _, name in ipairs { "growth", "gradient", "gradient_ratio" } do
      items[#items + 1] = { path = "/profiles/s2/" .. name, value = native.from({ 1, 2, 3 }, "f64") }
    end
    for _, at in ipairs {
      { "/", "format", "phrun run" }, { "/", "format_version", 1 }, { "/history", "columns", "epoch" },
    } do
      items[#items + 1] = { path = at[1], attr = at[2], value = at[3] }
    end
    table.insert(items, 1, { path = "/history", value = native.from({ { 1 } }, "f64") })
    assert(native.h5_write(path, items))
    assert.same({ "s2/grad.norm", "s2/grad.ratio", "s2/growth" }, sorted_keys(open.load(path).profiles))
  end)

  it("take the longest stream that starts from what enters for the net's own", function()
    local segments = {
      { once = true, from = "input", repeat_ = 1 }, { from = "input", repeat_ = 5 },
      { tied = true, driven = true, from = "zero", repeat_ = 28 }, { tied = true, from = "input", repeat_ = 9 },
      { from = "input", repeat_ = 9 },
    }
    local main, all = observe.streams(segments)
    assert.equal(4, main)
    assert.same({ 2, 4, 5 }, all)
  end)
end)

describe("a run", function()
  it("reads its model once for each plan: one to train, one to test, one to measure", function()
    local e = spec.load_text([[
      local ph = require "ph"
      return ph.experiment {
        name = "t", task = ph.task.circles { width = 4, split = { train = 8, val = 4, test = 4 } },
        model = function()
          return { ph.stream { depth = 3, block = function(z) return z + ph.affine(4)(ph.tanh(z)) end }, ph.affine(4) }
        end,
        train = ph.adam { lr = 1e-3, epochs = 1 }, measure = { ph.growth() },
      }]], "t.lua")
    local one, dir = job.cells(e)[1].jobs[1], temp_dir()
    local kept = assert(results.open(dir))
    local context, before = { dir = dir, threads = 1 }, native.ir_texts()
    assert.equal("trained", work.train({ job = one }, function() end, context).status)
    assert.equal(before + 1, native.ir_texts())
    work.finish({ jobs = { one }, chosen = one.run }, nil, context)
    assert.equal(before + 3, native.ir_texts())
    kept:release()
  end)
end)

describe("workers", function()
  local function run(workers, units, execute)
    local seen, at = { order = {}, messages = {} }, 0
    runner.new({
      workers = workers, execute = execute,
      next = function()
        at = at + 1
        return units[at]
      end,
      receive = function(unit, message) seen.messages[#seen.messages + 1] = unit .. ":" .. message.text end,
      ended = function(unit, outcome) seen[unit] = outcome end,
    }):run()
    return seen
  end

  local function execute(unit, send)
    send { text = "hello" }
    if unit == "bad" then error("it broke", 0) end
    return { status = "fine", value = #unit, big = ("x"):rep(200000) }
  end

  it("give the same outcomes in this process and in others", function()
    local units = { "a", "bbb", "bad", "cc" }
    local here, there = run(1, units, execute), run(3, units, execute)
    for _, unit in ipairs(units) do assert.same(here[unit], there[unit]) end
    assert.same({ status = "failed", reason = "it broke" }, there.bad)
    assert.equal(4, #there.messages)
    assert.equal(3, there.bbb.value)
  end)

  it("that die are reported, and the others continue", function()
    local seen = run(2, { "dies", "lives" }, function(unit)
      if unit == "dies" then native.kill(native.pid(), "SIGKILL") end
      return { status = "fine" }
    end)
    assert.equal("killed", seen.dies.status)
    assert.matches("was ended by signal 9", seen.dies.reason)
    assert.equal("fine", seen.lives.status)
  end)
end)
