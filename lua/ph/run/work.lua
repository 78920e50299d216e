--- The two kinds of work that a run consists of, done in this process or in a worker (see ph.run.runner).
--
--   train   one candidate of a cell: trains it and leaves a finished checkpoint
--   finish  a cell whose candidates are all trained: opens the test set for the chosen one, once; takes the measures;
--           writes every candidate's run file
-- Nothing here touches the ledger.

local native = require "ph.native"
local checkpoint = require "ph.run.checkpoint"
local groups = require "ph.lang.groups"
local json = require "ph.util.json"
local measure = require "ph.run.measure"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"
local runner = require "ph.run.runner"
local train = require "ph.run.train"

local work = {}

local report_seconds <const> = 0.2

local function must(value, problem)
  if value == nil then error(problem, 0) end
  return value
end

--- A split of a task as the plan takes it.
local function as_data(split, plan)
  local dtype = plan:model().dtype
  local x = split.x:dtype() == dtype and split.x or split.x:cast(dtype)
  local y = split.y
  if y:dtype() ~= "i32" and y:dtype() ~= dtype then y = y:cast(dtype) end
  return native.data(x, y)
end

--- Sends what was done since the last time, not more often than five times a second.
local function reporter(send, batches)
  local last, steps, samples = native.now(), 0, 0
  return function(n, now_please)
    steps, samples = steps + (n > 0 and 1 or 0), samples + n
    if not now_please and native.now() - last < report_seconds then return end
    send { kind = "work", epochs = steps / batches, samples = samples }
    last, steps, samples = native.now(), 0, 0
  end
end

--- What the parent needs to know of a trained candidate; plain data.
local function outcome_of(state, rows, monitor_column)
  local best = state.stop.best_epoch
  return {
    status = state.status, epochs = #rows, steps = state.steps, seconds = state.seconds, best_epoch = best,
    ended_by = state.ended_by,
    value = best and rows[best][monitor_column], diverged = state.diverged,
  }
end

local function column_of(columns, name)
  for i, c in ipairs(columns) do
    if c == name then return i end
  end
  error("the history has no column " .. name, 0)
end

--- The outcome of a candidate that a checkpoint shows to be trained already, or nil.
function work.trained_before(dir, job)
  local saved = checkpoint.read(results.checkpoint_path(dir, job.run))
  if not saved or saved.state.status == "running" then return nil end
  return outcome_of(saved.state, saved.rows, column_of(train.columns(job.classifies), job.by))
end

local function training_of(job, plan, sets, context, send)
  local report
  local t = train.new {
    plan = plan, protocol = job.protocol, seed = job.seed, classifies = job.classifies,
    data = { train = sets.train, val = sets.val },
    n_train = sets.n_train, digest = sets.digest, path = results.checkpoint_path(context.dir, job.run),
    every = context.every or job.protocol.checkpoint, stopped = runner.stopped,
    on_step = function(n) report(n) end,
    on_epoch = function(row, columns)
      report(0, true)
      send { kind = "epoch", row = row, columns = columns }
    end,
  }
  report = reporter(send, t.batches)
  return t
end

local function names_of(plan)
  local names = {}
  for i, p in ipairs((plan:params())) do names[i] = p.name end
  return names
end

--- Gives the plan the rates that the protocol's groups ask for.
local function set_rates(plan, protocol)
  for _, r in ipairs(groups.rates(protocol, names_of(plan))) do plan:rates(r.name, r.lr, r.weight_decay, r.frozen) end
end

--- Trains one candidate. Messages: { kind = "resumed" }, { kind = "work" }, { kind = "epoch" }, { kind = "note" }.
function work.train(unit, send, context)
  local job = unit.job
  local set = job.load()
  local plan <close> = must(native.plan(job.ir, { batch = job.protocol.batch, threads = context.threads }))
  local train_data <close> = as_data(set.train, plan)
  local val_data <close> = as_data(set.val, plan)
  set_rates(plan, job.protocol)
  local sets = { train = train_data, val = val_data, n_train = set.train.x:shape()[1], digest = set.digest }
  local t = training_of(job, plan, sets, context, send)
  local resumed, problem = t:begin()
  if problem then send { kind = "note", text = problem .. "; this run starts over" } end
  if resumed then
    send { kind = "resumed", epoch = t.state.epoch, step = t.state.step, epochs = #t.rows + t.state.step / t.batches }
  end
  if t.state.status == "running" and t:run() == "interrupted" then return { status = "interrupted" } end
  return outcome_of(t.state, t.rows, column_of(t.columns, job.by))
end

local function row_metrics(row, columns)
  local out = {}
  for i, name in ipairs(columns) do
    if name:find "%." then out[name] = row[i] end
  end
  return out
end

--- The record of a trained or diverged candidate before the test set is opened.
local function base_record(job, saved, columns)
  local s = saved.state
  local record = {
    run = job.run, spec = job.spec, spec_hash = job.spec_hash, overrides = json.list(job.overrides),
    label = job.label, cell_label = job.cell_label,
    cell = job.cell, select = job.select, seed = job.seed, parts = job.parts, data = s.data,
    status = s.status == "diverged" and "diverged" or "done", chosen = false, metrics = {},
    best_epoch = s.stop.best_epoch, epochs = #saved.rows,
    steps = s.steps, seconds = s.seconds, test_opened = 0, version = native.machine().version, lock = job.lock,
  }
  local d = s.diverged
  if d then
    record.step, record.epoch, record.last_loss = d.step, d.epoch, d.last_loss
    record.segment, record.layer, record.op = d.segment, d.layer, d.op
  elseif s.stop.best_epoch then
    record.metrics = row_metrics(saved.rows[s.stop.best_epoch], columns)
  end
  return record
end

local function count_params(tensors)
  local n = 0
  for _, t in pairs(tensors) do n = n + t:count() end
  return n
end

--- Opens the test set for a chosen candidate and adds to its record. Returns the data for the plans to come, and the
-- confusion table when there is one.
local function open_test(job, saved, set, record, context)
  local plan <close> = must(native.plan(job.ir, { batch = job.protocol.batch, threads = context.threads }))
  local data = as_data(set.test, plan)
  checkpoint.restore(plan, saved.best or saved.final)
  local res = plan:eval(data, nil, job.classifies)
  record.test_opened = 1
  record.metrics["test.loss"] = res.loss
  if not job.classifies then return data end
  record.metrics["test.accuracy"] = res.hits / res.n
  local counted = res.out:shape()[2] == set.classes
  return data, counted and measure.confusion(res.out, set.test.y, set.classes) or nil
end

local function take_measures(job, saved, data, record, context)
  if #job.measures == 0 then return {} end
  local plan <close> = must(
    native.plan(job.ir, { batch = job.protocol.batch, threads = context.threads, probe = true }))
  checkpoint.restore(plan, saved.best or saved.final)
  local metrics, profiles, left_out = measure.all(plan, data, job.measures)
  for k, v in pairs(metrics) do record.metrics[k] = v end
  record.left_out = next(left_out) and left_out or nil
  return profiles
end

local function finish_chosen(job, saved, record, context)
  local data <close>, confusion = open_test(job, saved, job.load(), record, context)
  return { confusion = confusion, profiles = take_measures(job, saved, data, record, context) }
end

local function confusion_list(extras)
  local table_of = extras.confusion
  return table_of and table_of:shape()[1] <= 12 and table_of:totable() or nil
end

--- What a run file keeps of a finished checkpoint, for a candidate that is chosen after it was written.
local function saved_in_run_file(path)
  local run = must(runfile.open(path))
  local r, file <close> = run.record, run.file
  if file:attr("/", "pruned") then error(path .. ": its weights were pruned, so it cannot be measured again", 0) end
  local saved = {
    state = {
      status = "trained", data = r.data, steps = r.steps, seconds = r.seconds, stop = { best_epoch = r.best_epoch },
    },
    rows = file:tensor("/history"):totable(),
  }
  for _, group in ipairs { "final", "best" } do saved[group] = checkpoint.read_group(file, group) end
  return saved
end

--- Finishes one candidate: its record, its file.
local function finish_one(job, chosen, context)
  local saved, problem = checkpoint.read(results.checkpoint_path(context.dir, job.run))
  if problem then error(problem, 0) end
  local again = saved == nil
  saved = saved or saved_in_run_file(results.run_path(context.dir, job.run))
  local columns = train.columns(job.classifies)
  local record = base_record(job, saved, columns)
  record.params = count_params(saved.final)
  record.chosen = chosen
  local extras = {}
  if chosen and record.status == "done" then extras = finish_chosen(job, saved, record, context) end
  local path = results.run_path(context.dir, job.run)
  local sha = must(runfile.write(path, job, record, saved, columns, extras))
  return {
    record = record, file = { path = "runs/" .. job.run .. ".h5", sha256 = sha }, again = again,
    images = job.task_text:find("^task%.images") ~= nil, confusion = confusion_list(extras),
  }
end

--- Finishes a cell: unit = { jobs, chosen (run) }; candidates with a record already are not in `jobs`.
function work.finish(unit, _, context)
  local closed = {}
  for i, job in ipairs(unit.jobs) do closed[i] = finish_one(job, job.run == unit.chosen, context) end
  return { status = "finished", closed = closed }
end

--- For ph.run.runner: does a unit of either kind.
function work.execute(context)
  return function(unit, send)
    return work[unit.kind](unit, send, context)
  end
end

return work
