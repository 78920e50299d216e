--- From an experiment to what has to be run: cells, and in each cell one job for every candidate of the selection.
--
-- A job's name is the hash of its canonical text: everything that can change a result and nothing else (no comment, no
-- indentation, no directory, no number of threads). Two jobs with the same text are the same run.
--
--   cell  { label, values (plain table), jobs }
--   job   { run, label, cell_label, cell, select, seed, ir, text, parts, protocol, by, classifies, measures,
--           weight, short (label for people), task_text, train_text, measure_text, experiment_text (newer keys of the
--           experiment, or nil), source, spec, spec_hash, lock, load() -> data, problem (nil, or why it cannot run) }

local native = require "ph.native"
local axes = require "ph.schema.axes"
local canon = require "ph.util.canon"
local fault = require "ph.util.fault"

local job = {}

--- Version of the run text; results of another version are other runs.
local text_version <const> = 1

local function label_of(cell_label, candidate)
  return next(candidate) and cell_label .. " " .. axes.text(axes.list(candidate)) or cell_label
end

--- Work of one sample through the net, up to a factor: nodes times layers. Only the progress bar uses it.
local function weight_of(ir)
  local n = 0
  for _, segment in ipairs(native.ir_parse(ir).segments) do n = n + segment.repeat_ * #segment.nodes end
  return n
end

local function measures_of(experiment, cell)
  local names, texts = {}, {}
  for i, m in ipairs(experiment:measures(cell)) do names[i], texts[i] = m.name, m:canonical() end
  return names, table.concat(texts, " ")
end

--- The canonical text of a run. A run under a lock is not the run without one: it is trained again.
local function text_of(one)
  local lines = {
    "phrun-run " .. text_version, "cell " .. one.cell_label, "seed " .. canon.number(one.seed),
    "select " .. canon.encode(one.select), "task " .. one.task_text, "data " .. (one.digest or "absent"),
    "train " .. one.train_text, "measure " .. one.measure_text, "ir " .. native.sha256(one.ir),
  }
  lines[#lines + 1] = one.experiment_text
  lines[#lines + 1] = one.lock and "lock " .. one.lock
  return table.concat(lines, "\n") .. "\n"
end

--- What a run depends on, short: ph.run.changes says from it what changed when a cell has to run again.
local function parts_of(one)
  return {
    ir = native.sha256(one.ir):sub(1, 12), task = one.task_text, data = (one.digest or "absent"):sub(1, 12),
    train = one.train_text,
    measure = one.measure_text, experiment = one.experiment_text, lock = one.lock and one.lock:sub(1, 12),
  }
end

--- Data of a task, whose contents are known by their digest; made once and kept for the next job that needs the same.
-- A task's text says how its data are made, and nothing of what lies in its files: the digest does.
local function loader(cache, task, seed, digest)
  local key = table.concat({ task:canonical(), tostring(digest), tostring(seed) }, "\0")
  return function()
    if cache.key ~= key then
      cache.key, cache.data = nil, nil
      local data = task:load(seed)
      if data.digest ~= digest then
        error(string.format("%s: the data changed after this run was planned; start again", task.kind), 0)
      end
      cache.key, cache.data = key, data
    end
    return cache.data
  end
end

--- SHA-256 of the spec's text and of every file beside it that it requires, first 16 digits.
function job.spec_hash(experiment)
  local source = experiment.source
  local parts = { source.text }
  for _, file in ipairs(source.files) do parts[#parts + 1] = file.path .. "\n" .. file.text end
  return canon.short_hash(table.concat(parts, "\0"))
end

local Maker = {}
Maker.__index = Maker

--- What all candidates of a cell have in common.
function Maker:shared(cell)
  local experiment, task = self.experiment, self.experiment:task_of(cell)
  local digest, problem = task:digest()
  local seed, ir = experiment:seed(cell), experiment:ir(cell)
  local measures, measure_text = measures_of(experiment, cell)
  self.weights[ir] = self.weights[ir] or weight_of(ir)
  return {
    cell = cell:plain(), cell_label = cell:text(), seed = seed, ir = ir, weight = self.weights[ir],
    task_text = task:canonical(), classifies = task.classes ~= nil,
    measures = measures, measure_text = measure_text, experiment_text = self.experiment_text,
    source = experiment.source, overrides = experiment.changes,
    spec = experiment.name, spec_hash = self.spec_hash, lock = self.lock,
    digest = digest, problem = problem, load = loader(self.cache, task, seed, digest),
  }
end

function Maker:job(shared, candidate)
  local one, experiment = {}, self.experiment
  for k, v in pairs(shared) do one[k] = v end
  one.select = candidate
  one.label = label_of(shared.cell_label, candidate)
  one.protocol = next(candidate) and experiment.train:with(candidate) or experiment.train
  one.train_text = one.protocol:canonical()
  one.by = experiment.select and experiment.select.by or one.protocol.monitor
  one.text = text_of(one)
  one.run = canon.short_hash(one.text)
  one.parts = parts_of(one)
  return one
end

-- Axes and values of a job or a record: those of its cell, then what was selected.
local function point_of(one)
  local point = axes.list(one.cell)
  local selected = axes.list(one.select or {})
  return table.move(selected, 1, #selected, #point + 1, point)
end

--- Axes whose value is not the same in all of a list of jobs or records, as a set.
function job.varying(list)
  local first, out = {}, {}
  for _, one in ipairs(list) do
    for _, at in ipairs(point_of(one)) do
      if first[at.key] ~= nil and first[at.key] ~= at.value then out[at.key] = true end
      if first[at.key] == nil then first[at.key] = at.value end
    end
  end
  return out
end

--- What tells a job or a record from the others: "ph" or "ph depth=30 lr=0.001"; its whole label when nothing does.
function job.short_label(one, varying)
  local parts = {}
  for _, at in ipairs(point_of(one)) do
    local word = axes.word(at.value)
    if varying[at.key] then parts[#parts + 1] = at.key == "family" and word or at.key .. "=" .. word end
  end
  return #parts > 0 and table.concat(parts, " ") or one.label
end

local function name_shortly(cells)
  local all = {}
  for _, cell in ipairs(cells) do table.move(cell.jobs, 1, #cell.jobs, #all + 1, all) end
  local varying = job.varying(all)
  for _, one in ipairs(all) do one.short = job.short_label(one, varying) end
  return cells
end

-- What all cells have in common.
local function new_maker(experiment)
  local newer = experiment:newer()
  local self = {
    experiment = experiment, cache = {}, weights = {}, spec_hash = job.spec_hash(experiment), lock = experiment.lock,
  }
  self.experiment_text = next(newer) and canon.call("experiment", newer) or nil
  return setmetatable(self, Maker)
end

--- All cells of an experiment in order. Under a lock (experiment.lock) the runs are others than without.
function job.cells(experiment)
  if not experiment.cells then
    local file = experiment.source and experiment.source.file or experiment.name
    fault.raise(fault.USAGE, "%s: %s has no cells; it can only be run and checked", file, tostring(experiment))
  end
  local maker, cells = new_maker(experiment), {}
  for i, cell in ipairs(experiment:cells()) do
    local shared = maker:shared(cell)
    cells[i] = { label = shared.cell_label, values = shared.cell, jobs = {} }
    for k, candidate in ipairs(experiment:candidates()) do cells[i].jobs[k] = maker:job(shared, candidate) end
  end
  return name_shortly(cells)
end

return job
