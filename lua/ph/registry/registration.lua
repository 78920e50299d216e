--- The plan of an experiment before its runs, frozen under a hash: DIR/registration.json, and a `locked` event in the
-- ledger.
--
--   lock = SHA-256 of the canonical JSON of the plan
--   plan = name, note, grid, select, train, tasks, measure, seeds, rules, categories, predictions, gates, and for every
--          cell the SHA-256 of its IR, the digest of its data, and its candidates
--
-- The plan holds meanings, no text of the spec: comments and indentation may change, a threshold may not. The hash is
-- part of the text that names a run, so runs made under a lock are never those made without it. The event carries the
-- plan once more, inside the ledger's chain: an edit of registration.json is found, with the field and both values.

local native = require "ph.native"
local canon = require "ph.util.canon"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local meaning = require "ph.schema.meaning"
local plan = require "ph.rules.plan"
local results = require "ph.run.results"
local rules = require "ph.rules"
local schema = require "ph.schema"

local registration = {}

local format_name <const> = "phrun registration 1"
local most_lines <const> = 8

function registration.path(dir)
  return dir .. "/registration.json"
end

-- ---- from an experiment to its plan ----

local function copy(t)
  local out = {}
  for k, v in pairs(t) do out[k] = type(v) == "table" and copy(v) or v end
  return out
end

-- The distinct tasks of the cells in order, named by their kind, "circles", "circles#2".
local function tasks_of(experiment)
  local out, by_text, count = json.list {}, {}, {}
  for _, cell in ipairs(experiment:cells()) do
    local task = experiment:task_of(cell)
    local text = task:canonical()
    if not by_text[text] then
      count[task.kind] = (count[task.kind] or 0) + 1
      local values = task:meaning()
      values.name = task.kind .. (count[task.kind] > 1 and "#" .. count[task.kind] or "")
      by_text[text] = values.name
      out[#out + 1] = values
    end
  end
  return out, by_text
end

local function train_of(experiment)
  local values = experiment.train:meaning()
  values.optimizer = experiment.train.kind
  return values
end

local function grid_of(experiment)
  local list = json.list {}
  for i, axes in ipairs(experiment.axes) do
    list[i] = {}
    for _, axis in ipairs(axes) do list[i][axis.key] = axis.values end
  end
  return #list == 1 and list[1] or list
end

local function texts_of_measures(list)
  local texts = json.list {}
  for i, m in ipairs(list) do texts[i] = m:canonical() end
  table.sort(texts)
  return texts
end

-- Measures that a function gives stand with each cell, those of a list once.
local function cells_of(experiment, cells, task_names)
  local out, by_cell = json.list {}, type(experiment.measure) == "function"
  for i, cell in ipairs(cells) do
    local first, runs = cell.jobs[1], json.list {}
    for k, one in ipairs(cell.jobs) do runs[k] = { name = one.label, select = one.select } end
    out[i] = {
      name = cell.label, values = cell.values, ir = native.sha256(first.ir), data = first.digest, runs = runs,
      task = task_names[first.task_text],
      measure = by_cell and texts_of_measures(experiment:measures(experiment:cells()[i])) or nil,
    }
  end
  return out
end

local function missing_data(cells)
  for _, cell in ipairs(cells) do
    for _, one in ipairs(cell.jobs) do
      if one.problem then fault.raise(fault.RUNTIME, "%s", one.problem) end
    end
  end
end

--- The plan of an experiment whose cells (from ph.run.job) are given.
function registration.plan(experiment, cells)
  local tasks, task_names = tasks_of(experiment)
  local p = rules.plan(experiment)
  p.name, p.note, p.seeds = experiment.name, experiment.note, experiment.seeds or "cell"
  p.grid, p.select, p.train, p.tasks = grid_of(experiment), experiment:selection(), train_of(experiment), tasks
  p.measure = texts_of_measures(type(experiment.measure) == "table" and experiment.measure or {})
  p.cells = cells_of(experiment, cells, task_names)
  for k, v in pairs(experiment:newer(true)) do p[k] = v end
  return json.decode(canon.encode(p))
end

--- The hash of a plan.
function registration.hash(p)
  return native.sha256(json.encode(p))
end

local function runs_of(cells)
  local out = {}
  for _, cell in ipairs(cells) do
    for _, one in ipairs(cell.jobs) do out[one.label] = one.run end
  end
  return out
end

-- The distinct IR texts of the cells by hash: what the hashes in the plan stand for.
local function texts_of(cells)
  local out = {}
  for _, cell in ipairs(cells) do out[native.sha256(cell.jobs[1].ir)] = cell.jobs[1].ir end
  return out
end

--- The whole registration of an experiment as a table { format, lock, plan, runs, ir, figures, source, time, version }.
-- What is outside the plan decides nothing and is not hashed. The experiment is under that lock from then on.
function registration.of(experiment)
  local bare = job.cells(experiment)
  missing_data(bare)
  local p = registration.plan(experiment, bare)
  local lock = registration.hash(p)
  experiment.lock = lock
  local source = experiment.source or {}
  return {
    format = format_name, lock = lock, plan = p, runs = runs_of(job.cells(experiment)), ir = texts_of(bare),
    time = native.date(native.time()),
    version = native.machine().version, figures = experiment.figures,
    source = { file = source.file, text = source.text, files = json.list(copy(source.files or {})) },
  }
end

-- ---- reading, comparing ----

local function is_registration(reg)
  if type(reg) ~= "table" or reg.format ~= format_name then return false end
  if type(reg.lock) ~= "string" or type(reg.runs) ~= "table" then return false end
  local p = reg.plan
  return type(p) == "table" and type(p.cells) == "table" and type(p.tasks) == "table" and type(p.train) == "table"
end

--- The registration of a directory; nil without one. Raises when it cannot be read, or
-- is missing though the ledger knows it.
function registration.read(dir)
  local path = registration.path(dir)
  if not native.stat(path) then
    local state = native.stat(ledger.path(dir)) and ledger.read(dir)
    for _, e in ipairs(state and state.events or {}) do
      if e.event == "locked" then
        fault.raise(fault.TAMPERED, "%s: deleted; the ledger was locked under %s", path, tostring(e.lock):sub(1, 12))
      end
    end
    return nil
  end
  local text = fault.check(fault.RUNTIME, native.read_file(path))
  local reg, problem = json.decode(text)
  if not is_registration(reg) then
    fault.raise(fault.TAMPERED, "%s: not a registration%s", path, problem and " (" .. problem .. ")" or "")
  end
  return reg
end

--- The deviations recorded in a directory's ledger: list of events.
function registration.deviations(dir)
  local out = {}
  for _, e in ipairs(fault.check(fault.RUNTIME, ledger.read(dir)).events) do
    if e.event == "deviation" then out[#out + 1] = e end
  end
  return out
end

-- The last recorded departure in each field; a later one of the same field replaces the earlier.
local function allowed(deviations)
  local out = {}
  for _, e in ipairs(deviations) do
    for _, f in ipairs(e.fields or {}) do out[f.field] = f.now or "absent" end
  end
  return out
end

-- A part of a plan that holds the values of a constructor, complete. A plan that was edited may name none.
local function part(constructor, values)
  return type(values) == "table" and schema.get(constructor) and meaning.complete(constructor, values) or values
end

-- A plan with the keys that are newer than its text at the defaults that their absence means.
local function complete(p)
  local out = part("experiment", p)
  out.select, out.train, out.tasks = part("select", p.select), part(p.train.optimizer, p.train), {}
  for i, task in ipairs(p.tasks) do
    local kind = type(task) == "table" and tostring(task.name):gsub("#%d+$", "")
    out.tasks[i] = part(kind, task)
  end
  return out
end

--- Fields in which two plans differ (ph.rules.plan). A key that one of them does not
-- name, being older, has its default there.
function registration.compare(locked, now)
  return plan.differences(complete(locked), complete(now))
end

-- Where the cells differ only because the grid, a task or the protocol does, those say it better.
local function without_consequences(list)
  local causes = {}
  for _, d in ipairs(list) do
    if not plan.under(d.field, "cells") then causes[#causes + 1] = d end
  end
  return #causes > 0 and causes or list
end

--- Every field in which an experiment's plan departs from the locked one without a
-- recorded deviation, in the plan's order.
function registration.unrecorded(reg, now, deviations)
  local known, out = allowed(deviations), {}
  for _, d in ipairs(registration.compare(reg.plan, now)) do
    if known[d.field] ~= (d.now or "absent") then out[#out + 1] = d end
  end
  return out
end

--- The same without the cells that differ only because the grid, a task or the protocol does.
function registration.differences(reg, now, deviations)
  return without_consequences(registration.unrecorded(reg, now, deviations))
end

--- Lines for a list of differences, the first ones in full.
function registration.lines(differences)
  local out = {}
  for i = 1, math.min(#differences, most_lines) do out[i] = "  " .. plan.line(differences[i]) end
  if #differences > most_lines then out[#out + 1] = string.format("  and %d more", #differences - most_lines) end
  return out
end

local function only_data(differences)
  for _, d in ipairs(differences) do
    if not d.field:find "^cells%..*%.data$" then return false end
  end
  return true
end

--- Raises when a spec is not the locked one: exit code 3 naming fields and both values, 11 when only the data changed.
function registration.require_same(dir, reg, now, deviations)
  local differences = registration.differences(reg, now, deviations)
  if #differences == 0 and #deviations == 0 and registration.hash(now) ~= reg.lock then
    fault.raise(fault.TAMPERED, "%s: the spec's plan has the hash %s, the lock is %s", dir,
      registration.hash(now):sub(1, 12), reg.lock:sub(1, 12))
  end
  if #differences == 0 then return end
  local lines = table.concat(registration.lines(differences), "\n")
  if only_data(differences) then fault.raise(fault.GUARD, "%s: the data changed since the lock\n%s", dir, lines) end
  fault.raise(fault.TAMPERED, "%s: the spec is not the one that was locked\n%s", dir, lines)
end

-- ---- before a run ----

-- A part of the grid may run alone; what runs must be the plan's.
local function require_subset(dir, reg, now, deviations)
  local planned, differences = {}, {}
  for _, cell in ipairs(reg.plan.cells) do planned[cell.name] = true end
  for _, cell in ipairs(now.cells) do
    if not planned[cell.name] then
      differences[#differences + 1] = { field = "cells." .. cell.name, now = "a cell that the plan has not" }
    end
  end
  for _, d in ipairs(registration.differences(reg, now, deviations)) do
    local restricted = plan.under(d.field, "grid") or d.field == "cells (order)" or d.field == "tasks (order)"
      or (not d.now and (plan.under(d.field, "cells") or plan.under(d.field, "tasks")))
    if not restricted then differences[#differences + 1] = d end
  end
  if #differences > 0 then
    fault.raise(fault.TAMPERED,
      "%s: the spec is not the one that was locked; `phrun deviate SPEC --reason ...` records a departure, --out "
      .. "chooses another directory\n%s", dir, table.concat(registration.lines(differences), "\n"))
  end
end

--- Called before a run: puts the experiment under the lock that its runs belong to and returns it; nil without
-- registration. Raises when the spec is not the locked one, or needs a lock and has none.
function registration.prepare(experiment, dir)
  local reg = registration.read(dir)
  if not reg then
    if experiment.seeds == "lock" then
      fault.raise(fault.GUARD, "%s: the seeds come from the lock; `phrun lock` first", experiment.name)
    end
    return nil
  end
  local cells = job.cells(experiment)
  missing_data(cells)
  require_subset(dir, reg, registration.plan(experiment, cells), registration.deviations(dir))
  experiment.lock = reg.lock
  return reg.lock
end

-- ---- locking ----

local function already(dir, old, reg)
  if old.lock == reg.lock then return true end
  fault.raise(fault.TAMPERED, "%s is already locked under %s; --out chooses another directory\n%s", dir,
    old.lock:sub(1, 12),
    table.concat(registration.lines(without_consequences(registration.compare(old.plan, reg.plan))), "\n"))
end

local function older_runs(store)
  local n = 0
  for _ in pairs(store.records) do n = n + 1 end
  return n
end

-- The file first, the event after: a crash between them leaves a file that the next `lock` overwrites.
local function write(store, reg)
  local ok, problem = native.write_file(registration.path(store.dir), json.encode(reg) .. "\n")
  if not ok then fault.raise(fault.RUNTIME, "%s", problem) end
  ok, problem = store:append {
    event = "locked", lock = reg.lock, plan = reg.plan, spec = reg.plan.name, version = reg.version,
  }
  if not ok then fault.raise(fault.RUNTIME, "%s", problem) end
end

local function knows_lock(store)
  for _, e in ipairs(store.book.state.events) do
    if e.event == "locked" then return true end
  end
end

--- Locks an experiment into a directory. Returns the registration, the number of runs older than it, and true when it
-- was locked like this before.
function registration.lock(experiment, dir)
  local reg = registration.of(experiment)
  local store, problem, kind = results.open(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  local ok, old, older = pcall(function()
    local known = registration.read(dir)
    if known and knows_lock(store) and already(dir, known, reg) then return known, 0 end
    write(store, reg)
    return nil, older_runs(store)
  end)
  store:release()
  if not ok then error(old, 0) end
  return old or reg, older, old ~= nil
end

return registration
