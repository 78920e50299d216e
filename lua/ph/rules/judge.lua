--- Conditions of rules under three truth values: true, false, and nil for "not evaluable" (Kleene's strong logic).
--
--   all          false if one is false, else not evaluable if one is not, else true
--   any          true if one is true, else not evaluable if one is not, else false
--   none         any with true and false swapped
--   every, some  all, any over the values of an axis; not evaluable over no values, or when one of them is not
--
-- So "any" with one true and one not evaluable is true, "all" with one false and one not evaluable is false: what is
-- missing could not change the outcome. A missing cell never counts as a pass, nor as a failure.
--
-- The outcome of a condition is a tree for the report: { truth = true|false|nil, text =, reasons = { ... },
-- numbers = { { text =, value = | reasons = } ... }, children = { ... } }.

local aggregate = require "ph.rules.aggregate"
local select = require "ph.rules.select"
local text = require "ph.rules.text"

local judge = {}

local condition = {}

--- Judges one condition. `ctx.rules` maps names of rules to their outcomes (judged before).
function judge.condition(ctx, node, binding)
  local out = condition[node.op](ctx, node, binding)
  out.text = out.text or text.condition(node)
  return out
end

local function number(ctx, node, binding)
  local r = aggregate.evaluate(ctx, node, binding)
  r.text = text.number(node)
  return r
end

local function gather(parts)
  local seen, out = {}, {}
  for _, p in ipairs(parts) do
    for _, r in ipairs(p.reasons or {}) do
      if not seen[r] then
        seen[r] = true
        out[#out + 1] = r
      end
    end
  end
  return out
end

function condition.compare(ctx, node, binding)
  local a, b = number(ctx, node.left, binding), number(ctx, node.right, binding)
  local out = { numbers = { a, b }, cmp = node.cmp, reasons = gather { a, b } }
  if a.value and b.value then out.truth = aggregate.compare[node.cmp](a.value, b.value) end
  return out
end

function condition.band(ctx, node, binding)
  local v, low, high = number(ctx, node.value, binding), number(ctx, node.low, binding), number(ctx, node.high, binding)
  local out = { numbers = { v, low, high }, reasons = gather { v, low, high } }
  if v.value and low.value and high.value then out.truth = low.value <= v.value and v.value <= high.value end
  return out
end

-- Joins outcomes: `decisive` (false for all, true for any) wins over not evaluable, which wins over the rest.
local function join(children, decisive)
  local out = { children = children, truth = not decisive, reasons = {} }
  for _, c in ipairs(children) do
    if c.truth == decisive then
      out.truth, out.reasons = decisive, {}
      return out
    end
    if c.truth == nil then out.truth = nil end
  end
  if out.truth == nil then out.reasons = gather(children) end
  return out
end

local function listed(decisive)
  return function(ctx, node, binding)
    local children = {}
    for i, c in ipairs(node.of) do children[i] = judge.condition(ctx, c, binding) end
    return join(children, decisive)
  end
end
condition.all, condition.any = listed(false), listed(true)

function condition.none(ctx, node, binding)
  local out = condition.any(ctx, node, binding)
  if out.truth ~= nil then out.truth = not out.truth end
  return out
end

local function bound_text(binding, axes)
  local out = {}
  for i, axis in ipairs(axes) do out[i] = axis .. "=" .. text.word(binding[axis]) end
  return table.concat(out, ", ")
end

-- A claim over all values of an axis is not decided while one of them is missing, whatever the others say: a grid that
-- was cut must not be judged by what was left of it.
local function over(decisive)
  return function(ctx, node, binding)
    local children = {}
    local bindings, axes = select.bindings(ctx.cells, node.over, binding)
    for i, b in ipairs(bindings) do
      children[i] = judge.condition(ctx, node.of, b)
      children[i].at = bound_text(b, axes)
    end
    if #children == 0 then return { reasons = { "no values of " .. text.filter(node.over) }, children = {} } end
    for _, c in ipairs(children) do
      if c.truth == nil then return { children = children, reasons = gather(children) } end
    end
    return join(children, decisive)
  end
end
condition.every, condition.some = over(false), over(true)

function condition.rule(ctx, node)
  local known = ctx.rules[node.name]
  return { truth = known.truth, reasons = known.reasons, refers = node.name }
end

function condition.unevaluable(ctx, node, binding)
  local inner = judge.condition(ctx, node.of, binding)
  return { truth = inner.truth == nil, children = { inner }, reasons = {} }
end

local function judge_rules(ctx, rules)
  ctx.rules = {}
  local out = {}
  for i, rule in ipairs(rules) do
    local r = judge.condition(ctx, rule.when, nil)
    r.name, r.note, r.claim = rule.name, rule.note, rule.claim
    ctx.rules[rule.name], out[i] = r, r
  end
  return out
end

-- The decision table: the first line that is true decides, but only if no line before it is not evaluable.
local function judge_categories(ctx, categories)
  local out, decided, open = {}, nil, {}
  for i, c in ipairs(categories) do
    local r = c.when and judge.condition(ctx, c.when, nil) or { truth = true, text = "otherwise", reasons = {} }
    r.name, r.holds = c.name, c.holds
    out[i] = r
    if not decided and #open == 0 and r.truth == true then decided = r
    elseif not decided and r.truth == nil then open[#open + 1] = r
    end
  end
  return out, decided, open
end

local function without_categories(rules)
  local whole = join(rules, false)
  local names = { [true] = "the rules hold", [false] = "the rules say no" }
  return {
    truth = whole.truth, category = whole.truth ~= nil and names[whole.truth] or "not evaluable",
    reasons = whole.reasons,
  }
end

local function decide(rules, categories, decided, open)
  if #categories == 0 then return without_categories(rules) end
  if decided then return { truth = decided.holds == true, category = decided.name, reasons = {} } end
  if #open > 0 then return { category = "not evaluable", reasons = gather(open) } end
  return { truth = false, category = "none of the categories", reasons = {} }
end

local function score(ctx, p)
  local r = number(ctx, p.value, nil)
  local out = {
    name = p.name, text = r.text, band = text.band(p), value = r.value, reasons = r.reasons or {}, note = p.note,
    paper = p.paper,
  }
  if r.value then out.hit = (not p.low or r.value >= p.low) and (not p.high or r.value <= p.high) end
  return out
end

--- Judges a registration's rules, categories and predictions over a table of cells. Returns
-- { rules = outcomes, categories = outcomes, predictions = scores, truth = true|false|nil, category = name, reasons }.
function judge.all(ctx, plan)
  local rules = judge_rules(ctx, plan.rules)
  local categories, decided, open = judge_categories(ctx, plan.categories or {})
  local out = decide(rules, plan.categories or {}, decided, open)
  out.rules, out.categories, out.predictions = rules, categories, {}
  for i, p in ipairs(plan.predictions or {}) do out.predictions[i] = score(ctx, p) end
  return out
end

return judge
