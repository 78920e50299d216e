--- What no constructor of an experiment can see alone: keys that do not go together, axes that nothing reads, words
-- that name nothing in any model.

local grid = require "ph.lang.grid"
local groups = require "ph.lang.groups"
local lacking = require "ph.lang.lacking"
local monitor = require "ph.lang.monitor"
local native = require "ph.native"
local rules = require "ph.rules"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"
local suggest = require "ph.util.suggest"
local where = require "ph.schema.where"

local consistency = {}

local function report(path, format, ...)
  schema.report(where.prefix("experiment", path) .. "experiment: " .. string.format(format, ...))
end

--- True when the axis has one value in every sub-grid.
local function is_single(axes, name)
  for _, list in ipairs(axes) do
    for _, axis in ipairs(list) do
      if axis.key == name and #axis.values > 1 then return false end
    end
  end
  return true
end

--- Axes that no function reads: the runs along them would be equal. Of a grid that the command line cut, an axis with
-- one value may be one that the cells left over do not need.
local function check_axes(self)
  local names = grid.axis_names(self.axes)
  for _, name in ipairs(names) do
    if name ~= "seed" and not self.read[name] and not (self.restricted and is_single(self.axes, name)) then
      local near = suggest.nearest(name, schema.usual_axes)
      report({ "grid", name }, "grid: axis '%s' is read by neither model nor task; runs along it would be equal%s",
        name, near and near ~= name and string.format(" (did you mean '%s'?)", near) or "")
    end
  end
end

--- A change of the command line that no task has a key for would do nothing.
local function check_changes(self)
  for _, key in ipairs(sorted_keys(self.task_changes)) do
    if not self.task_changed[key] then
      schema.report(string.format("command line: task.%s: no task of the grid has this key", key))
    end
  end
end

local function check_rate(self)
  if not self.train.lr and not (self.select and self.select.lr) then
    report({ "train" }, "no learning rate: give lr to train, or { lr = { ... } } to select")
  elseif self.train.lr and self.select and self.select.lr then
    report({ "select" }, "lr is given twice, by train and by select; candidates belong to select alone")
  end
  local ok, problem = true, nil
  for _, candidate in ipairs(self:candidates()) do
    if ok then ok, problem = pcall(self.train.with, self.train, candidate) end
  end
  if not ok then schema.report(problem) end
end

--- A monitor that no run of some task can have.
local function check_monitors(self)
  local uses = { { "train", "monitor", self.train.monitor }, self.select and { "select", "by", self.select.by } }
  for _, use in ipairs(uses) do
    local needs = monitor.get(use[3]).needs
    for _, cell in ipairs(self:cells()) do
      if needs == "labels" and not self:task_of(cell).classes then
        report({ use[1], use[2] }, "%s: %s = '%s' needs a task with classes, this one has targets: use val.loss",
          table.unpack(use))
        break
      end
    end
  end
end

--- Names of the parameters of a model: "s1.A", ...
local function parameter_names(ir, names)
  for _, segment in ipairs(assert(native.ir_parse(ir)).segments) do
    for _, p in ipairs(segment.params) do names[#names + 1] = segment.name .. "." .. p.name end
  end
end

--- A group must decide for some parameter of some model: a misspelt name would silently train as always.
local function check_groups(self)
  if #self.train.groups == 0 then return end
  local seen, names = {}, {}
  for _, cell in ipairs(self:cells()) do
    local ir = self:ir(cell)
    if not seen[ir] then parameter_names(ir, names) end
    seen[ir] = true
  end
  local problem = groups.problem(self.train.groups, names)
  if problem then report({ "train" }, "train: groups: %s", problem) end
end

--- A measure that no cell has a value of; a grid that the command line cut may have lost those that do.
local function check_measures(self)
  for _, m in ipairs(self.restricted and {} or lacking.everywhere(self)) do
    report({ "measure" }, "measure: %s has no value in any cell: %s", m.name, m.reason)
  end
end

--- Checks an experiment and reports what is wrong.
function consistency.check(self)
  if #self:cells() == 0 then return report({ "grid" }, "grid: has no cell") end
  local twice = grid.duplicate(self:cells())
  if twice then report({ "grid" }, "grid: the cell %s appears twice", twice) end
  check_rate(self)
  local lacks = {}
  if self:check_models() then
    check_axes(self)
    check_monitors(self)
    check_changes(self)
    check_groups(self)
    check_measures(self)
    lacks = lacking.of(self)
  end
  rules.check(self, self.restricted, lacks)
end

return consistency
