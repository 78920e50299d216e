--- Which runs of a directory are of one plan and differ in their seeds alone, so that a mean over them means something.
--
-- A directory may hold runs of several plans: a spec that was edited, another learning rate on the command line. Two
-- runs of a cell are of one plan when what they depend on is the same but for the seed and what was selected, or when
-- the same spec text made them with the same changes of the command line: a spec may give each seed its own task.

local axes = require "ph.schema.axes"
local canon = require "ph.util.canon"
local changes = require "ph.run.changes"

local plans = {}

--- The parts of a record (ph.run.job) without what may differ between the seeds of a plan: what was selected, the seed
-- of the task and what is made from it.
local function parts_of(record)
  local parts = {}
  for k, v in pairs(record.parts or {}) do parts[k] = v end
  local task = parts.task or ""
  parts.train = changes.without(parts.train or "", record.select or {})
  parts.task = changes.without(task, { seed = true })
  if parts.data == canon.short_hash(task):sub(1, 12) then parts.data = nil end
  return parts
end

--- Two texts, of which two records of one plan share at least one.
local function marks_of(record, parts)
  local marks = { "parts " .. canon.encode(parts) }
  if record.overrides then marks[2] = "spec " .. record.spec_hash .. canon.encode(record.overrides) end
  return marks
end

local function find(groups, marks)
  for _, mark in ipairs(marks) do
    for _, group in ipairs(groups) do
      if group.marks[mark] then return group end
    end
  end
end

local function last_of(groups)
  local last = groups[1]
  for _, group in ipairs(groups) do
    if group.at > last.at then last = group end
  end
  return last
end

-- What all cells of a plan have in common.
local common <const> = { "train", "experiment", "lock" }

--- What the plan of the directory's last run would make of a group's parts.
local function as_of(last, parts)
  local now = {}
  for k, v in pairs(parts) do now[k] = v end
  for _, k in ipairs(common) do now[k] = last.parts[k] end
  return now
end

local function share_a_mark(a, b)
  for mark in pairs(a.marks) do
    if b.marks[mark] then return true end
  end
  return false
end

--- Says of a group how its plan differs from that of its cell's last run, or else from that of the last run of all.
local function tell_older(groups, last)
  local newest = last_of(groups)
  for _, group in ipairs(groups) do
    local now = group ~= newest and newest.parts or as_of(last, group.parts)
    local same = share_a_mark(group, last) or canon.encode(now) == canon.encode(group.parts)
    group.older = not same and changes.between(now, group.parts) or nil
  end
end

--- Groups the chosen records by cell and plan, seeds taken together, in order of appearance: list of { axes (as from
-- ph.schema.axes), records, older (what has changed since, when later runs are of another plan) }.
-- of_one_plan: the records are known to be of one plan.
function plans.groups(records, of_one_plan)
  local order, by_cell = {}, {}
  for at, record in ipairs(records) do
    if record.chosen then
      local list = axes.list(record.cell, { seed = true })
      local cell = axes.text(list)
      by_cell[cell] = by_cell[cell] or {}
      local parts = of_one_plan and {} or parts_of(record)
      local marks = of_one_plan and { "one" } or marks_of(record, parts)
      local group = find(by_cell[cell], marks)
      if not group then
        group = { axes = list, records = {}, marks = {} }
        table.insert(by_cell[cell], group)
        order[#order + 1] = group
      end
      table.insert(group.records, record)
      group.parts, group.at = parts, at
      for _, mark in ipairs(marks) do group.marks[mark] = true end
    end
  end
  for _, groups in pairs(by_cell) do tell_older(groups, last_of(order)) end
  return order
end

return plans
