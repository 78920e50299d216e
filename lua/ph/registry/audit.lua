--- From a registration and a ledger to the table of cells that rules are judged over, and to everything that speaks
-- against it.
--
-- A run counts when it is one that the registration names, ended after the lock, carries the lock's hash, and its file,
-- where it is here, is what the ledger says. Everything else in the directory is reported and does not count:
--   tampered  broken chain; registration edited, replaced or deleted; run file edited or copied over; a run of another
--             lock under a locked name; a choice of candidate that validation does not support
--   guard     a test set opened more than once, data that changed
--   note      runs older than the lock, runs that the plan does not name, files that the ledger does not know
-- One pass over events, runs and files: linear in the ledger.

local choice = require "ph.run.choice"
local native = require "ph.native"
local json = require "ph.util.json"
local evidence = require "ph.run.evidence"
local ledger = require "ph.run.ledger"
local plan = require "ph.rules.plan"
local results = require "ph.run.results"

local audit = {}

local Audit = {}
Audit.__index = Audit

function Audit:add(kind, format, ...)
  local list = self[kind]
  list[#list + 1] = string.format(format, ...)
end

local function last_lock(events)
  for i = #events, 1, -1 do
    if events[i].event == "locked" then return events[i] end
  end
end

local most_lines <const> = 6

-- The registration against itself, and against the ledger's own copy of the plan.
function Audit:check_registration(reg)
  local event, text = last_lock(self.state.events), json.encode(reg.plan)
  self.locked_at = event and event.n or 0
  if not event and not self.recovered then
    self:add("tampered", "the ledger has no lock: registration.json was added later, or the ledger replaced")
  end
  local differences = event and json.encode(event.plan) ~= text and plan.differences(event.plan, reg.plan) or {}
  for i, d in ipairs(differences) do
    if i <= most_lines then self:add("tampered", "registration.json was changed: %s", plan.line(d)) end
  end
  if #differences > most_lines then
    self:add("tampered", "registration.json was changed in %d more fields", #differences - most_lines)
  end
  if #differences == 0 and native.sha256(text) ~= reg.lock then
    self:add("tampered", "registration.json was changed: its plan does not give its hash")
  end
  if event and event.lock ~= reg.lock then
    self:add("tampered", "registration.json has the hash %s, the ledger was locked under %s", reg.lock:sub(1, 12),
      event.lock:sub(1, 12))
  end
end

-- For each run: the last event that closed it, and how often its test set was opened in all.
local function closings(events)
  local out = {}
  for _, e in ipairs(events) do
    if e.run and ledger.carries_record[e.event] then
      local c = out[e.run] or { opened = 0 }
      c.n, c.opened = e.n, c.opened + (e.record.test_opened or 0)
      out[e.run] = c
    end
  end
  return out
end

-- What speaks against the file of a record, or nil; counts its state.
local function file_problem(self, record)
  if record.recovered then
    if native.stat(results.run_path(self.dir, record.run)) then self.kept = (self.kept or 0) + 1 end
    return nil
  end
  local state, problem = evidence.of(self.dir, record)
  self.evidence[state] = self.evidence[state] + 1
  if record.rebuilt then self.rebuilt = self.rebuilt + 1 end
  return problem
end

-- The record as the table may use it, or nil when it does not count.
function Audit:admit(record, closing, run, reg)
  if closing.n < self.locked_at then
    self.older = self.older + 1
    return nil
  end
  if record.lock ~= reg.lock then
    self:add("tampered", "%s is of %s", run.label,
      record.lock and "another lock (" .. record.lock:sub(1, 12) .. ")" or "no lock")
    return nil
  end
  if record.label ~= run.label then
    self:add("tampered", "%s: its record is that of %s", run.label, record.label or "?")
    return nil
  end
  if not ledger.closing[record.status] then return record end
  local problem = file_problem(self, record)
  if problem then
    self:add("tampered", "%s: %s", run.label, problem)
    return nil
  end
  self.opened_most = math.max(self.opened_most, closing.opened)
  if closing.opened > 1 then self:add("guard", "%s opened its test set %d times", run.label, closing.opened) end
  return record
end

local function choose(runs, by)
  local candidates = {}
  for i, run in ipairs(runs) do
    candidates[i] = { value = (run.record.metrics or {})[by], diverged = run.record.status ~= "done" }
  end
  return runs[choice.among(candidates, by)]
end

local function candidate_problem(run)
  if not run.record then return "no run at " .. run.label end
  if not ledger.closing[run.record.status] then
    return string.format("%s %s%s", run.label, run.record.status, run.record.reason and ": " .. run.record.reason or "")
  end
end

function Audit:close_cell(cell, by)
  for _, run in ipairs(cell.runs) do
    local problem = candidate_problem(run)
    if problem then
      cell.problem = cell.problem or problem
      table.insert(self.cut[cell.label] and self.cut_runs or self.missing, problem)
      run.problem, run.record = problem, nil
    end
  end
  if cell.problem then return end
  cell.chosen = #cell.runs == 1 and cell.runs[1] or choose(cell.runs, by)
  for _, run in ipairs(cell.runs) do
    local marked = self.chosen[run.id]
    if marked ~= nil and marked ~= (run == cell.chosen) then
      self:add("tampered", "%s is marked as %s, but by %s the choice is %s", run.label,
        marked and "chosen" or "not chosen", by, cell.chosen.label)
    end
  end
end

-- What the ledger says was chosen: the last word of `selected` events, else the records' own marks.
local function marks(state)
  local out = {}
  for _, r in ipairs(state.runs) do
    if r.chosen ~= nil and #state.runs > 0 and r.recovered then out[r.run] = r.chosen end
  end
  for _, e in ipairs(state.events) do
    if e.event == "selected" then
      for _, id in ipairs(e.candidates or {}) do out[id] = id == e.run end
    end
  end
  return out
end

local function planned_runs(self, reg)
  local planned, labels = {}, {}
  for label, id in pairs(reg.runs) do planned[id], labels[label] = true, true end
  for _, ids in pairs(self.also) do
    for _, id in ipairs(ids) do planned[id] = true end
  end
  return planned, labels
end

-- Runs of the ledger that the plan does not name, and files that the ledger does not.
function Audit:strangers(reg, closed)
  local planned, labels = planned_runs(self, reg)
  local known, other = {}, 0
  for _, r in ipairs(self.state.runs) do
    known[r.run .. ".h5"] = true
    if planned[r.run] then known[r.run] = true -- judged in its cell
    elseif closed[r.run].n < self.locked_at then self.older = self.older + 1
    elseif r.lock and r.lock ~= reg.lock and labels[r.label] then
      self:add("tampered", "%s is of another lock (%s)", r.label, r.lock:sub(1, 12))
    elseif not r.lock then self.unlocked = self.unlocked + 1
    else other = other + 1
    end
  end
  if other > 0 then
    self:add("notes", "%d run%s of the ledger %s not in the plan and do not count", other, other == 1 and "" or "s",
      other == 1 and "is" or "are")
  end
  for _, name in ipairs(native.list_dir(self.dir .. "/runs") or {}) do
    if name:find "%.h5$" and not known[name] then
      self:add("notes", "runs/%s is not in the ledger and does not count", name)
    end
  end
end

-- The run of the plan that stands under a label: as locked, or as a recorded deviation has it.
function Audit:find(label, reg)
  local id = reg.runs[label]
  for _, other in ipairs(self.also[label] or {}) do
    if self.by_run[other] then id = other end
  end
  return id, self.by_run[id]
end

function Audit:cell(planned, reg, closed)
  local cell = { values = planned.values, label = planned.name, runs = {} }
  for k, p in ipairs(planned.runs) do
    local run = { label = p.name, select = p.select or {} }
    local id, record = self:find(p.name, reg)
    run.id, run.deviates = id, id ~= reg.runs[p.name]
    run.record = record and self:admit(record, closed[id], run, reg)
    if run.record then self.present = self.present + 1 end
    cell.runs[k], self.planned = run, self.planned + 1
  end
  return cell
end

function Audit:table_of(reg, closed)
  local chosen_by = reg.plan.select or {}
  for _, record in ipairs(self.state.runs) do self.by_run[record.run] = record end
  local ctx = { cells = {}, candidate_axes = {}, rules = {} }
  for axis in pairs(chosen_by.candidates or {}) do ctx.candidate_axes[axis] = true end
  for i, planned in ipairs(reg.plan.cells) do
    ctx.cells[i] = self:cell(planned, reg, closed)
    self:close_cell(ctx.cells[i], chosen_by.by or "val.accuracy")
  end
  return ctx
end

local function deviations(events)
  local out = {}
  for _, e in ipairs(events) do
    if e.event == "deviation" then out[#out + 1] = e end
  end
  return out
end

-- Cells that a deviation took out of the grid: nobody waits for them.
local function cut_cells(list)
  local out = {}
  for _, e in ipairs(list) do
    for _, f in ipairs(e.fields or {}) do
      local name = f.now == nil and f.field:match "^cells%.(.*)%.ir$"
      if name then out[name] = true end
    end
  end
  return out
end

-- Runs that deviations name beside the locked ones: label -> list of run hashes.
local function alternatives(list)
  local out = {}
  for _, e in ipairs(list) do
    for label, id in pairs(e.runs or {}) do
      out[label] = out[label] or {}
      table.insert(out[label], id)
    end
  end
  return out
end

local function is_recovered(state)
  for _, e in ipairs(state.events) do
    if e.event == "recovered" then return true end
  end
  return false
end

local function summary_notes(self)
  if self.older > 0 then
    self:add("notes", "%d run%s older than the lock and do%s not count", self.older,
      self.older == 1 and " is" or "s are", self.older == 1 and "es" or "")
  end
  if self.unlocked > 0 then
    self:add("notes", "%d run%s made without the lock and do%s not count", self.unlocked,
      self.unlocked == 1 and " was" or "s were", self.unlocked == 1 and "es" or "")
  end
  if self.rebuilt > 0 then
    self:add("notes", "%d run file%s rebuilt: made again later, with the metrics of the ledger", self.rebuilt,
      self.rebuilt == 1 and " was" or "s were")
  end
  local mixed = ledger.mixed(self.state.runs)
  if mixed then self:add("notes", "%s", mixed) end
  if self.kept and self.kept > 0 then
    self:add("notes", "%d run files beside the recovered ledger are not checked against it", self.kept)
  end
end

--- Audits a directory against a registration { plan, lock, runs }. Returns a table, or nil and a message when it cannot
-- be read:
--
--   table                         the cells, for rules
--   tampered, guard, notes        lines
--   missing, cut_runs             lines: runs that are awaited, runs that a deviation took out
--   deviations                    events
--   recovered                     true for a ledger rebuilt from a log
--   planned, present              numbers of runs
--   evidence                      numbers of judged runs by the state of their files (ph.run.evidence)
--   opened_most                   test openings of a run, at most
function audit.run(dir, reg)
  local state, problem = ledger.read(dir)
  if not state then return nil, problem end
  local self = setmetatable({
    dir = dir, state = state, tampered = {}, guard = {}, notes = {}, missing = {}, older = 0, unlocked = 0, planned = 0,
    present = 0, opened_most = 0, locked_at = 0, cut_runs = {}, recovered = is_recovered(state), chosen = marks(state),
    deviations = deviations(state.events), by_run = {}, evidence = evidence.none(), rebuilt = 0,
  }, Audit)
  self.also, self.cut = alternatives(self.deviations), cut_cells(self.deviations)
  if state.problem then self:add("tampered", "%s", state.problem) end
  if reg.lock then self:check_registration(reg) end
  local closed = closings(state.events)
  self.table = self:table_of(reg, closed)
  self:strangers(reg, closed)
  summary_notes(self)
  return self
end

return audit
