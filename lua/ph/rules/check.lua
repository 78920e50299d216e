--- Holds rules against the experiment they belong to: metrics that are measured, axes and values that the grid has,
-- names of rules that exist, no choice by test data. Faults are reported before anything is locked or run.
--
-- vocabulary = { metrics = { name = true }, axes = { name = { values } }, candidates = { name = { values } },
-- any_value = true when values that the grid has not are let pass, lacks = the cells that cannot have some metrics:
-- list of { cell, metrics = { name = reason } } }

local aggregate = require "ph.rules.aggregate"
local read = require "ph.rules.read"
local select = require "ph.rules.select"
local sorted_keys = require "ph.util.sorted_keys"
local suggest = require "ph.util.suggest"
local text = require "ph.rules.text"

local check = {}

local Check = {}
Check.__index = Check

function Check:say(format, ...)
  self.errors[#self.errors + 1] = self.place .. ": " .. string.format(format, ...)
end

-- Tasks may name further metrics; only those the experiment will really record pass.
function Check:metric(name)
  local known = self.vocabulary.metrics
  if known[name] then return end
  local hint = suggest.hint(name, sorted_keys(known))
  if hint == "" then hint = " (metrics: " .. table.concat(sorted_keys(known), ", ") .. ")" end
  self:say("unknown metric '%s'%s", name, hint)
end

--- Runs f inside an aggregate, `every` or `some` over axes: what it reads is read at their values.
function Check:within(over, f)
  local outer, inner = self.scope, {}
  for axis, s in pairs(outer) do inner[axis] = s end
  for axis, s in pairs(over) do inner[axis] = s end
  self.scope = inner
  f()
  self.scope = outer
end

--- Whether an aggregate with this filter reads a cell, here where it stands. Its own filter hides the axes around it.
function Check:reads(cell, where)
  for axis, s in pairs(self.scope) do
    local v = cell:get(axis)
    if not where[axis] and (v == nil or not select.takes(s, v)) then return false end
  end
  for axis, s in pairs(where) do
    if not self.vocabulary.candidates[axis] and not select.takes(s, cell:get(axis)) then return false end
  end
  return true
end

--- A metric that some cell cannot have makes every aggregate over that cell one without a value, for good.
function Check:has_value(name, where)
  local first, n = nil, 0
  for _, at in ipairs(self.vocabulary.lacks or {}) do
    if at.metrics[name] and self:reads(at.cell, where or {}) then first, n = first or at, n + 1 end
  end
  if not first then return end
  self:say("'%s' has no value at %s%s: %s; leave such cells out", name, first.cell:text { seed = n > 1 },
    n > 1 and string.format(" and %d more cells", n - 1) or "", first.metrics[name])
end

function Check:values_of(axis)
  return self.vocabulary.axes[axis] or self.vocabulary.candidates[axis]
end

function Check:axis(axis)
  if self:values_of(axis) then return true end
  local known = sorted_keys(self.vocabulary.axes)
  for _, name in ipairs(sorted_keys(self.vocabulary.candidates)) do known[#known + 1] = name end
  local hint = suggest.hint(axis, known)
  if hint == "" then hint = " (axes: " .. table.concat(known, ", ") .. ")" end
  self:say("the grid has no axis '%s'%s", axis, hint)
  return false
end

function Check:value(axis, v)
  if self.vocabulary.any_value then return end
  local shown = {}
  for i, known in ipairs(self:values_of(axis)) do
    if known == v then return end
    shown[i] = text.word(known)
  end
  self:say("%s has no value %s%s; the grid has %s", axis, text.word(v),
    type(v) == "string" and suggest.hint(v, shown) or "", table.concat(shown, ", "))
end

function Check:selector(axis, s)
  if not self:axis(axis) then return end
  if s.is ~= nil then self:value(axis, s.is) end
  for _, v in ipairs(s.any or s.except or {}) do self:value(axis, v) end
  for _, v in ipairs(self:values_of(axis)) do
    if select.takes(s, v) then return end
  end
  if s.is == nil and not s.any and not self.vocabulary.any_value then
    self:say("no value of the grid is in %s", text.selector(axis, s))
  end
end

function Check:filter(where)
  for _, axis in ipairs(sorted_keys(where or {})) do self:selector(axis, where[axis]) end
end

function Check:over(over)
  self:filter(over)
  for axis in pairs(over) do
    if self.vocabulary.candidates[axis] then
      self:say("'%s' is chosen on validation and has no place here; name it inside an aggregate with runs = \"all\"",
        axis)
    end
  end
end

local walk = {}

function Check:node(node)
  if type(node) == "table" then walk[node.op](self, node) end
end

-- Candidates are chosen on validation; only the chosen one opens the test set and is measured.
local function of_candidates(self, node)
  local all = node.runs == "all"
  for axis in pairs(node.where or {}) do all = all or self.vocabulary.candidates[axis] ~= nil end
  local name = node.metric
  if all and name and not (name:find "^train%." or name:find "^val%." or aggregate.fields[name]) then
    self:say(
      "'%s' over all candidates: only the candidate chosen on validation has it; a choice by test data is refused",
      name)
  end
end

local function statistic(self, node)
  if node.of then
    self:over(node.over)
    return self:within(node.over, function() self:node(node.of) end)
  end
  self.looks = true
  self:metric(node.metric)
  self:filter(node.where)
  self:has_value(node.metric, node.where)
  of_candidates(self, node)
end
for _, op in ipairs { "mean", "sd", "median", "min", "max", "sum" } do walk[op] = statistic end

function walk.count(self, node)
  self.looks = true
  self:filter(node.where)
  if node.metric then
    self:metric(node.metric)
    self:has_value(node.metric, node.where)
  end
  of_candidates(self, node)
end

function walk.rank(self, node)
  local axis, own = next(node.at)
  self:over { [axis] = { is = own } }
  if node.among and self:values_of(axis) then self:selector(axis, node.among) end
  self:within({ [axis] = node.among or { each = true } }, function() self:node(node.of) end)
end

local function pair(self, node)
  self:node(node.left)
  self:node(node.right)
end
walk.gap, walk.ratio, walk.compare = pair, pair, pair

function walk.band(self, node)
  self:node(node.value)
  self:node(node.low)
  self:node(node.high)
end

local function each(self, node)
  for _, c in ipairs(node.of) do self:node(c) end
end
walk.all, walk.any, walk.none = each, each, each

local function over(self, node)
  self:over(node.over)
  self:within(node.over, function() self:node(node.of) end)
end
walk.every, walk.some = over, over

function walk.rule(self, node)
  self.looks = true
  if self.known[node.name] then return end
  local hint = suggest.hint(node.name, sorted_keys(self.known))
  if hint == "" then
    hint = next(self.known) and " (rules before this one: " .. table.concat(sorted_keys(self.known), ", ") .. ")"
      or " (this is the first rule)"
  end
  self:say("no earlier rule is named '%s'%s", node.name, hint)
end

function walk.unevaluable(self, node)
  self:node(node.of)
end

-- Names are unique among rules, among categories and among predictions.
local function once(self, seen, kind, name)
  self.place = string.format("%s '%s'", kind, name)
  if seen[kind .. name] then self:say("the name is used twice") end
  seen[kind .. name] = true
end

--- A condition or a number that looks at no result is decided before anything runs.
local function must_look(self, node)
  self.looks = false
  self:node(node)
  if not self.looks then self:say("looks at no result of a run, so nothing can change it") end
end

local function check_rules(self, plan, seen)
  for _, rule in ipairs(plan.rules) do
    once(self, seen, "rule", rule.name)
    must_look(self, rule.when)
    self.known[rule.name] = true
  end
  for i, c in ipairs(plan.categories) do
    once(self, seen, "category", c.name)
    if c.when then must_look(self, c.when)
    elseif i < #plan.categories then self:say("a category without `when` always applies, so it must be the last")
    end
  end
end

local function check_axes(self)
  for _, axis in ipairs(sorted_keys(self.vocabulary.axes)) do
    self.place = "grid"
    if read.reserved[axis] then
      self:say("axis name '%s' clashes with a rule option; rename the axis", axis)
    end
  end
end

--- The errors of a plan { rules, categories, predictions } as a list of lines; empty when all is well.
function check.plan(plan, vocabulary)
  local self = setmetatable({ vocabulary = vocabulary, errors = {}, known = {}, scope = {} }, Check)
  if #plan.rules + #plan.categories + #plan.predictions > 0 then check_axes(self) end
  local seen = {}
  check_rules(self, plan, seen)
  for _, p in ipairs(plan.predictions) do
    once(self, seen, "prediction", p.name)
    must_look(self, p.value)
  end
  return self.errors
end

return check
