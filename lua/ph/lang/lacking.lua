--- Numbers that a cell cannot have, known before it runs: measures of which its model has no value, and the accuracy
-- of a task without classes. A rule that asks for one could never be evaluated.

local native = require "ph.native"
local observe = require "ph.lang.observe"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"

local lacking = {}

local function segments_of(ir, seen)
  seen[ir] = seen[ir] or assert(native.ir_parse(ir)).segments
  return seen[ir]
end

-- Names of all measures of an experiment: one of them may belong to some cells alone.
local function declared(experiment)
  local out = {}
  for _, cell in ipairs(experiment:cells()) do
    for _, m in ipairs(experiment:measures(cell)) do out[m.name] = true end
    if type(experiment.measure) ~= "function" then break end
  end
  return out
end

--- Measure -> why a cell has no value of it; measures that have one are left out.
local function reasons(experiment, cell, names, seen)
  local out, measured = {}, {}
  for _, m in ipairs(experiment:measures(cell)) do measured[m.name] = true end
  for name in pairs(names) do
    out[name] = not measured[name] and "it is not measured there"
      or observe.missing(name, segments_of(experiment:ir(cell), seen))
  end
  return out
end

local function metrics_without(experiment, cell, by_measure)
  local out = {}
  for name, reason in pairs(by_measure) do
    for _, metric in ipairs(schema.get(name).metrics) do out[metric[1]] = reason end
  end
  if not experiment:task_of(cell).classes then
    for _, split in ipairs { "train", "val", "test" } do out[split .. ".accuracy"] = "its task has no classes" end
  end
  return out
end

--- The cells of an experiment that lack something: list of { cell, measures = { name = reason }, metrics = { name =
-- reason } }; and the names of all measures as a set.
function lacking.of(experiment)
  local names, seen, out = declared(experiment), {}, {}
  for _, cell in ipairs(experiment:cells()) do
    local by_measure = reasons(experiment, cell, names, seen)
    local metrics = metrics_without(experiment, cell, by_measure)
    if next(metrics) then out[#out + 1] = { cell = cell, measures = by_measure, metrics = metrics } end
  end
  return out, names
end

-- What each measure lacks, by reason: name -> reason -> cells.
local function by_reason(list)
  local out = {}
  for _, at in ipairs(list) do
    for name, reason in pairs(at.measures) do
      out[name] = out[name] or {}
      out[name][reason] = out[name][reason] or {}
      table.insert(out[name][reason], at.cell)
    end
  end
  return out
end

--- Lines for people: "port_budget has no value in 3 of 12 cells (family=tln depth=30, ...): its stream ...".
function lacking.notes(experiment)
  local out, found = {}, by_reason((lacking.of(experiment)))
  for _, name in ipairs(sorted_keys(found)) do
    for _, reason in ipairs(sorted_keys(found[name])) do
      local cells = found[name][reason]
      local first = cells[1]:text { seed = true }
      out[#out + 1] = string.format("%s has no value in %d of %d cells (%s%s): %s", name, #cells, #experiment:cells(),
        first ~= "" and first or "seed=" .. cells[1]:get "seed", #cells > 1 and ", ..." or "", reason)
    end
  end
  return out
end

--- Measures that no cell has a value of: list of { name, reason }.
function lacking.everywhere(experiment)
  local list, names = lacking.of(experiment)
  local out, count, reason = {}, {}, {}
  for _, at in ipairs(list) do
    for name, why in pairs(at.measures) do count[name], reason[name] = (count[name] or 0) + 1, why end
  end
  for _, name in ipairs(sorted_keys(names)) do
    if count[name] == #experiment:cells() then out[#out + 1] = { name = name, reason = reason[name] } end
  end
  return out
end

return lacking
