--- Words of the language for rules, predictions and gates. Each makes plain data; no Lua function is ever a rule.
--
-- read.lua, build.lua and declare.lua turn what a spec wrote into data, check.lua holds the data against the grid and
-- metrics of an experiment, judge.lua and aggregate.lua apply it to a ledger, text.lua prints it. docs/registration.md
-- explains them.

local aggregate = require "ph.rules.aggregate"
local build = require "ph.rules.build"
local check = require "ph.rules.check"
local declare = require "ph.rules.declare"
local json = require "ph.util.json"
local kinds = require "ph.schema.kinds"
local meaning = require "ph.schema.meaning"
local native = require "ph.native"
local read = require "ph.rules.read"
local schema = require "ph.schema"
local where = require "ph.schema.where"

local rules = { words = {} }

local section <const> = "rules"

local function key(name, kind, doc, extra)
  local out = { name = name, kind = kind, doc = doc }
  for k, v in pairs(extra or {}) do out[k] = v end
  return out
end

local axis_doc <const> = "a value, a list, ph.at_least(n), ph.at_most(n), ph.except(...) or \"*\" (each value)"
local runs_key <const> = key("runs", "choice", "which runs of a cell: the one chosen on validation, or all candidates",
  { allowed = { "chosen", "all" }, default = "chosen" })
local diverged_key <const> = key("diverged", "number",
  "what a diverged run counts as; without it a diverged run leaves no value")

-- True when one of the arguments, at any depth of lists, stands for something already reported.
local function holds_broken(v)
  if rawequal(v, kinds.broken) then return true end
  if type(v) ~= "table" or v.op then return false end
  for _, x in pairs(v) do
    if holds_broken(x) then return true end
  end
  return false
end

-- Registers a word and makes its constructor.
local function word(name, tag, doc, keys, example)
  schema.define { name = name, section = section, doc = doc, keys = keys, example = example, open = true }
  local mt <const> = { __name = tag }
  local builder <const> = build[name] or declare[name] or read[name]
  rules.words[name] = function(...)
    for i = 1, select("#", ...) do
      if holds_broken((select(i, ...))) then return kinds.broken end
    end
    local node, problem, at = builder(...)
    if node then return setmetatable(meaning.of(name, node), mt) end
    schema.report(where.prefix(name, at and { at }) .. name .. ": " .. problem)
    return kinds.broken
  end
end

local first <const> = key("first", "any", "name of a metric (over runs), or a number expression (over the axes named)")
local along <const> = key("axis", "any", "axis = values, for any axis of the grid: " .. axis_doc)

local statistics <const> = {
  { "mean", "Mean of a metric over the runs that the filter takes, or of an expression over the values of axes." },
  { "sd", "Sample standard deviation (divisor n - 1); of one value it is not defined, so the rule is not evaluable." },
  { "median", "Median; of an even number of values the mean of the two middle ones." },
  { "min", "Smallest value." }, { "max", "Largest value." }, { "sum", "Sum." },
}
for _, s in ipairs(statistics) do
  word(s[1], "ph.number", s[2], { first, along, runs_key, diverged_key },
    string.format('ph.%s { "test.accuracy", family = "ph", depth = 240 }', s[1]))
end

word("count", "ph.number", "Number of runs with a status, or with a metric beyond a bound.", {
  key("first", "any", "name of a metric, or nothing"), along, runs_key, diverged_key,
  key("status", "choice", "count runs with this status", { allowed = { "done", "diverged", "failed", "killed" } }),
  key("below", "number", "count runs whose metric is < this"),
  key("above", "number", "count runs whose metric is > this"),
  key("at_least", "number", "count runs whose metric is >= this"),
  key("at_most", "number", "count runs whose metric is <= this"),
}, 'ph.count { "test.accuracy", below = 0.5, family = "resnet_tln", runs = "all" }')

word("rank", "ph.number", "Rank of one value of an axis among the others; equal values share the better rank.", {
  key("first", "any", "the number to rank by"), key("axis", "any", "axis = the one value that is ranked"),
  key("order", "choice", "rank 1 is the lowest or the highest value", { allowed = { "low", "high" }, default = "low" }),
  key("ties", "choice", "equal values share the better rank, or the worse",
    { allowed = { "best", "worst" }, default = "best" }),
  key("among", "any", "only these values compete: " .. axis_doc),
}, 'ph.rank { ph.mean { "growth" }, family = "ph" }')

local a <const>, b <const> = key("a", "number", "a number expression"), key("b", "number", "a number expression")
word("gap", "ph.number", "The difference a - b.", { a, b },
  'ph.gap(ph.mean { "test.accuracy", family = "ph" }, ph.mean { "test.accuracy", family = "resnet" })')
word("ratio", "ph.number", "The quotient a / b; with b = 0 the rule is not evaluable.", { a, b },
  'ph.ratio(1, ph.min { "grad.min" })')

word("band", "ph.condition", "True when low <= a <= high.", {
  a, key("low", "number", "lower end, included"), key("high", "number", "upper end, included"),
}, 'ph.band(ph.mean { "growth" }, 0.5, 2)')
local conditions <const> = key("list", "list", "conditions, or names of earlier rules")
word("all", "ph.condition", "True when all are true, false when one is false, else not evaluable.", { conditions },
  'ph.all { "parity", "stable" }')
word("any", "ph.condition",
  "True when one is true, not evaluable when none is true and one is not evaluable, else false.", { conditions },
  'ph.any { "deficit", "divergence" }')
word("none", "ph.condition", "True when all are false: `not` of one condition, `not any` of several.", { conditions },
  'ph.none { "deficit" }')
word("every", "ph.condition", "True when the condition holds at every value of the axes named.", {
  key("first", "any", "a condition"), along,
}, 'ph.every { { ph.rank { ph.mean { "growth" }, family = "ph" }, "==", 1 }, depth = ph.at_least(48) }')
word("some", "ph.condition", "True when the condition holds at some value of the axes named.",
  { key("first", "any", "a condition"), along }, 'ph.some { { ph.mean { "test.accuracy" }, "<", 0.5 }, family = "*" }')
word("unevaluable", "ph.condition",
  "True when the condition is not evaluable, else false: the only way to ask for that.",
  { key("condition", "any", "a condition or the name of an earlier rule") }, 'ph.unevaluable "growth"')

word("at_least", "ph.values", "Values of an axis from n upwards.", { key("n", "number", "smallest value") },
  "depth = ph.at_least(48)")
word("at_most", "ph.values", "Values of an axis up to n.", { key("n", "number", "largest value") },
  "depth = ph.at_most(48)")
word("except", "ph.values", "All values of an axis but these.", { key("values", "any", "the values left out") },
  'family = ph.except("ph")')

local note <const> = key("note", "string", "a sentence for the report")
word("rule", "ph.rule", "A named condition, shown in the report with its numbers.", {
  key("name", "string", "name; later rules and categories refer to it"),
  key("condition", "any", "{ a, \"<=\", b }, ph.band, ph.all, ... or the name of an earlier rule"), note,
}, 'ph.rule { "parity", { ph.gap(...), ">=", -0.01 } }')
word("category", "ph.rule",
  "A line of the decision table: the first category whose condition is true is the verdict.", {
  key("name", "string", "name of the verdict"), key("when", "any", "its condition; without it the line always applies"),
  key("holds", "boolean", "exit code 0 (true) or 10 (false)", { default = false }), note,
}, 'ph.category { "evidence for", when = ph.all { "parity", "stable" }, holds = true }')
word("prediction", "ph.prediction", "A number guessed before the runs; scored hit or missed, no part of the verdict.", {
  key("name", "string", "name"), key("number", "any", "what is guessed"),
  key("band", "list", "{ low, high }, both included"),
  key("at_least", "number", "lower end alone"), key("at_most", "number", "upper end alone"), note,
  key("paper", "number", "what the source prints, shown beside ours"),
}, 'ph.prediction { "accuracy at 240", ph.mean { "test.accuracy", depth = 240 }, at_least = 0.95 }')
word("gate", "ph.gate",
  "The experiment runs only when the results in `dir` are registered and their verdict is this.", {
  key("dir", "string", "results directory of the other experiment, relative to the spec"),
  key("verdict", "string", "name of a category there, or \"holds\" (exit code 0)", { default = "holds" }), note,
}, 'ph.gate { dir = "../experiments/e7", verdict = "evidence for" }')

-- ---- an experiment's rules as a plan ----

-- The items of a key of experiment that have one of the kinds, as plain data; what does not belong is reported.
local function items(experiment, name, accepted, reject)
  local given, out = experiment[name], {}
  if given == nil or rawequal(given, kinds.broken) then return out end
  if type(given) ~= "table" then return out, reject(name, "must be a list, got " .. kinds.describe(given)) end
  if given.kind then given = { given } end
  local n, problem = kinds.list_length(given)
  if not n then return out, reject(name, problem) end
  for i = 1, n do
    local item = given[i]
    if type(item) == "table" and accepted[item.kind] then out[#out + 1] = item
    elseif not rawequal(item, kinds.broken) then
      reject(name, string.format("element %d must be made by %s, got %s", i, accepted.text, kinds.describe(item)))
    end
  end
  return out
end

local function of_kind(list, kind)
  local out = json.list {}
  for _, item in ipairs(list) do
    if item.kind == kind then out[#out + 1] = item end
  end
  return out
end

--- { rules, categories, predictions, gates } of an experiment, each a list of plain data. reject(key, message) gets
-- what does not belong there.
function rules.plan(experiment, reject)
  reject = reject or function() end
  local judged = items(experiment, "rules", { rule = true, category = true, text = "ph.rule or ph.category" }, reject)
  local guessed = items(experiment, "predictions", { prediction = true, text = "ph.prediction" }, reject)
  local gates = items(experiment, "gates", { gate = true, text = "ph.gate" }, reject)
  return {
    rules = of_kind(judged, "rule"), categories = of_kind(judged, "category"), predictions = json.list(guessed),
    gates = json.list(gates),
  }
end

-- What the records of an experiment will hold, so that rules can name nothing else.
local function metrics_of(experiment)
  local out = {}
  for field in pairs(aggregate.fields) do out[field] = true end
  for _, split in ipairs { "train", "val", "test" } do
    out[split .. ".loss"], out[split .. ".accuracy"] = true, true
  end
  for _, cell in ipairs(experiment:cells()) do
    for _, m in ipairs(experiment:measures(cell)) do
      for _, metric in ipairs(schema.get(m.name).metrics) do out[metric[1]] = true end
    end
  end
  return out
end

local function axes_of(experiment)
  local out = {}
  for _, cell in ipairs(experiment:cells()) do
    for _, kv in ipairs(cell.values) do
      local axis = out[kv.key] or { seen = {} }
      out[kv.key] = axis
      if not axis.seen[kv.value] then axis[#axis + 1], axis.seen[kv.value] = kv.value, true end
    end
  end
  return out
end

--- Seed of a run whose seeds come from the lock: 52 bits of SHA-256(lock, seed of the
-- cell). Cells with the same seed share it.
function rules.seed(lock, seed)
  return tonumber(native.sha256(lock .. "\nseed " .. json.encode(seed)):sub(1, 13), 16)
end

--- Holds an experiment's rules against its grid and measures; reports what is wrong. A grid that the command line
-- restricted is not held against them: the missing part is then not evaluable. lacks: the cells that cannot have some
-- metrics, list of { cell, metrics = { name = reason } }.
function rules.check(experiment, restricted, lacks)
  local function reject(name, message)
    schema.report(where.prefix("experiment", { name }) .. "experiment: '" .. name .. "' " .. message)
  end
  local plan = rules.plan(experiment, reject)
  local candidates = experiment.select and experiment:selection().candidates or {}
  local vocabulary = {
    metrics = metrics_of(experiment), axes = axes_of(experiment), candidates = candidates, any_value = restricted,
    lacks = lacks,
  }
  for _, problem in ipairs(check.plan(plan, vocabulary)) do
    schema.report(where.prefix("experiment", { "rules" }) .. "experiment: " .. problem)
  end
end

return rules
