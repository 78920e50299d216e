--- A session of work: the scheduler between a ledger and its workers.
--
-- Cells are trained candidate by candidate; when the last candidate of a cell is trained, one is chosen on validation
-- and the cell is finished (test set, measures, run files). What is finished is not done again; what was interrupted
-- resumes where it stopped. A diverged run is a result; a failed one is reported when it happens.

local choice = require "ph.run.choice"
local native = require "ph.native"
local fault = require "ph.util.fault"
local json = require "ph.util.json"
local lines = require "ph.run.lines"
local Progress = require "ph.run.progress"
local results = require "ph.run.results"
local runner = require "ph.run.runner"
local work = require "ph.run.work"

local Session = {}
Session.__index = Session

local function short_labels(cells)
  local out = {}
  for _, cell in ipairs(cells) do
    for _, one in ipairs(cell.jobs) do out[one.run] = one.short end
  end
  return out
end

--- A cell's state: which candidates are still to be trained, what the others came to.
local function cell_state(store, cell)
  local state = { cell = cell, outcomes = {}, open = {}, waiting = 0 }
  for _, one in ipairs(cell.jobs) do
    local record = store:finished(one.run)
    if record then
      state.outcomes[one.run] = { status = record.status, value = (record.metrics or {})[one.by], record = record }
    else
      state.open[#state.open + 1] = one
    end
  end
  return state
end

--- The run of the candidate that is chosen on validation; nil while a candidate has no result.
local function choose(jobs, outcomes)
  local candidates = {}
  for i, one in ipairs(jobs) do
    local o = outcomes[one.run]
    if not o then return nil end
    candidates[i] = { value = o.value, diverged = o.status == "diverged" }
  end
  return jobs[choice.among(candidates, jobs[1].by)].run
end

--- A session over the cells (ph.run.job) of a results directory that is open for writing; what is to be done is
-- planned. After its work `failures` and `closed` count runs, `confusions` has the tables of confused images,
-- `interrupted` says that there is more to do.
function Session.new(store, cells, keep_going)
  local session = setmetatable({ store = store, cells = cells, short = short_labels(cells), failures = 0, closed = 0,
                                 confusions = {}, keep_going = keep_going }, Session)
  session:plan()
  return session
end

function Session:note(text, always) self.progress:say(text, always) end

function Session:append(event)
  local ok, problem = self.store:append(event)
  if not ok then fault.raise(fault.RUNTIME, "%s", problem) end
end

local function epochs_of(one) return one.protocol.epochs * one.weight end

--- Fills the queue with candidates to train, and `ready` with cells whose candidates are done but whose choice is new.
function Session:plan()
  self.queue, self.at, self.total, self.skipped, self.cells_of, self.ready = {}, 1, 0, 0, {}, {}
  for _, cell in ipairs(self.cells) do
    local state = cell_state(self.store, cell)
    self.skipped = self.skipped + #cell.jobs - #state.open
    for _, one in ipairs(state.open) do
      self.cells_of[one.run] = state
      state.waiting = state.waiting + 1
      self.queue[#self.queue + 1] = { kind = "train", job = one }
      self.total = self.total + epochs_of(one)
    end
    if state.waiting == 0 and not self.store.records[choose(cell.jobs, state.outcomes)].chosen then
      self.ready[#self.ready + 1] = state
    end
  end
end

local function job_of(cell, run_hash)
  for _, one in ipairs(cell.jobs) do
    if one.run == run_hash then return one end
  end
end

--- The candidates that a finish has to write: those without record, and a chosen one
-- that was not chosen when it was written.
local function to_finish(state, chosen)
  local jobs, record = table.move(state.open, 1, #state.open, 1, {}), state.outcomes[chosen].record
  if record and record.status == "done" and record.test_opened == 0 then
    jobs[#jobs + 1] = job_of(state.cell, chosen)
  end
  return jobs
end

function Session:select(state)
  local chosen = choose(state.cell.jobs, state.outcomes)
  if not chosen then return end
  local candidates, values = json.list {}, {}
  for i, one in ipairs(state.cell.jobs) do
    candidates[i] = one.run
    values[one.run] = state.outcomes[one.run].value
  end
  if #candidates > 1 or self.store:rivals(state.cell.label, chosen) then
    self:append {
      event = "selected", run = chosen, label = state.cell.label, by = state.cell.jobs[1].by, candidates = candidates,
      values = values,
    }
    self.store:choose(state.cell.label, chosen)
  end
  local jobs = to_finish(state, chosen)
  if #jobs > 0 then table.insert(self.queue, self.at, { kind = "finish", jobs = jobs, chosen = chosen }) end
end

--- What a unit starts with: events of the ledger, or an outcome known from a checkpoint.
function Session:next()
  while true do
    if self.halted then return nil end
    local unit = self.queue[self.at]
    if not unit then return nil end
    self.at = self.at + 1
    if unit.kind == "finish" then return unit end
    local one = unit.job
    local known = one.problem and { status = "failed", reason = one.problem }
      or work.trained_before(self.store.dir, one)
    if not known then
      if not native.stat(results.checkpoint_path(self.store.dir, one.run)) then
        self:append { event = "started", run = one.run, label = one.label, spec_hash = one.spec_hash }
      end
      return unit
    end
    self:ended(unit, known)
  end
end

local function epoch_note(one, message)
  local at = {}
  for i, name in ipairs(message.columns) do at[name] = message.row[i] end
  local value = at["val.accuracy"] and string.format("val %.1f%%", 100 * at["val.accuracy"])
    or string.format("val loss %.4g", at["val.loss"])
  return string.format("%s  epoch %d/%d  %s", one.short, at.epoch, one.protocol.epochs, value)
end

--- Messages of a unit at work.
function Session:receive(unit, message)
  local one = unit.job
  if message.kind == "work" then
    self.progress:advance(message.epochs * one.weight, message.samples)
    unit.worked = (unit.worked or 0) + message.epochs
  elseif message.kind == "epoch" then
    self.progress:advance(0, 0, epoch_note(one, message))
  elseif message.kind == "resumed" then
    self:append { event = "resumed", run = one.run, label = one.label, epoch = message.epoch, step = message.step }
    self:note(string.format("%s resumes in epoch %d, after step %d", one.short, message.epoch, message.step))
    self.progress:drop(message.epochs * one.weight)
    unit.worked = (unit.worked or 0) + message.epochs
  elseif message.kind == "note" then
    self:note(one.short .. ": " .. message.text, true)
  end
end

function Session:fail(one, outcome)
  local record = {
    run = one.run, spec = one.spec, spec_hash = one.spec_hash, label = one.label, cell = one.cell, select = one.select,
    seed = one.seed, parts = one.parts,
    cell_label = one.cell_label, status = outcome.status, reason = outcome.reason, version = native.machine().version,
    lock = one.lock, chosen = false, metrics = {}, test_opened = 0,
  }
  local ok, problem = self.store:close_run(outcome.status, record)
  if not ok then fault.raise(fault.RUNTIME, "%s", problem) end
  self.failures = self.failures + 1
  self:note(string.format("%s: %s: %s", outcome.status, one.label, outcome.reason), true)
  lines.print_record(record)
  if not self.keep_going then
    self.halted = true
    if #self.queue >= self.at then self:note("stopped; -k continues with the other cells", true) end
  end
end

function Session:trained(unit, outcome)
  local one = unit.job
  self.progress:drop((one.protocol.epochs - (unit.worked or 0)) * one.weight)
  local state = self.cells_of[one.run]
  state.outcomes[one.run] = outcome
  state.waiting = state.waiting - 1
  if #state.cell.jobs > 1 or outcome.diverged then self:note(lines.trained_line(one, outcome)) end
  if state.waiting == 0 then self:select(state) end
end

function Session:finished(outcome)
  for _, closed in ipairs(outcome.closed) do
    local record = closed.record
    local ok, problem = self.store:close_run(closed.again and "measured" or record.status, record, closed.file)
    if not ok then fault.raise(fault.RUNTIME, "%s", problem) end
    native.remove(results.checkpoint_path(self.store.dir, record.run))
    lines.print_record(record)
    if record.chosen then self:note(lines.done_line(record, self.short[record.run])) end
    if closed.confusion and closed.images then
      self.confusions[#self.confusions + 1] = { label = record.label, table = closed.confusion }
    end
    self.closed = self.closed + 1
  end
end

--- A unit has ended.
function Session:ended(unit, outcome)
  if outcome.status == "interrupted" then
    self.interrupted = true
  elseif outcome.status == "failed" or outcome.status == "killed" then
    self:fail(unit.job or unit.jobs[1], outcome)
  elseif unit.kind == "train" then
    self:trained(unit, outcome)
  else
    self:finished(outcome)
  end
end

--- True when something is to be trained, chosen or finished.
function Session:has_work() return #self.queue + #self.ready > 0 end

--- Does what is planned; args: jobs (workers), threads (of each), checkpoint, quiet, debug.
function Session:work(args)
  for _, state in ipairs(self.ready) do self:select(state) end
  local context = { dir = self.store.dir, every = args.checkpoint, threads = args.threads }
  local pool = runner.new {
    workers = args.jobs, execute = work.execute(context), debugging = args.debug,
    receive = function(unit, message) self:receive(unit, message) end,
    ended = function(unit, outcome) self:ended(unit, outcome) end,
    next = function() return self:next() end,
    prepare = function(unit) (unit.job or unit.jobs[1]).load() end,
  }
  self.progress = Progress.new { total = self.total, unit = "sample", quiet = args.quiet }
  local ok, problem = xpcall(pool.run,
    function(e) return args.debug and type(e) == "string" and debug.traceback(e, 2) or e end, pool)
  self.progress:finish()
  if not ok then error(problem, 0) end
end

return Session
