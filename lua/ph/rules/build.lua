--- From the words of a spec to the data of a rule. Every builder takes what the spec wrote and gives a plain table of
-- strings, numbers and lists, or nil, one message, and the key it is about.
--
-- Forms a spec may write:
--   number      2        ph.mean { "growth", depth = 240 }        ph.gap(a, b)
--   condition   { a, "<=", b }        ph.band(a, low, high)        "name of an earlier rule"        ph.all { ... }
--   values      240        { 48, 96 }        ph.at_least(48)        ph.except("ph")        "*" (each value of the grid)

local suggest = require "ph.util.suggest"

local build = {}

local signs <const> = { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true, ["=="] = true, ["~="] = true }
local statistics <const> = { "mean", "sd", "median", "min", "max", "sum" }
local numbers <const> = {
  mean = 1, sd = 1, median = 1, min = 1, max = 1, sum = 1, count = 1, rank = 1, gap = 1, ratio = 1,
}
local conditions <const> = {
  compare = 1, band = 1, all = 1, any = 1, none = 1, every = 1, some = 1, rule = 1, unevaluable = 1,
}
--- Words that a grid axis can not have as its name when rules are to speak of it.
build.reserved = {
  runs = true, diverged = true, status = true, below = true, above = true, at_least = true, at_most = true,
  order = true, ties = true, among = true, name = true, note = true,
}

local function finite(v)
  return type(v) == "number" and v == v and v ~= math.huge and v ~= -math.huge
end

-- Integral floats are integers, as everywhere in a spec.
local function whole(v)
  return type(v) == "number" and math.tointeger(v) or v
end

local function scalar(v)
  return type(v) == "string" or type(v) == "boolean" or finite(v)
end

local function what(v)
  if type(v) == "string" then return "'" .. v .. "'" end
  if type(v) == "table" and v.op then return "ph." .. v.op end
  return type(v) == "table" and "a table" or tostring(v)
end

local function list_of(t)
  local out, n = {}, 0
  for k in pairs(t) do
    if math.type(k) ~= "integer" then return nil, string.format("unknown key '%s'", tostring(k)), k end
    n = math.max(n, k)
  end
  for i = 1, n do
    if t[i] == nil then return nil, string.format("the list has a hole at %d", i), i end
    out[i] = t[i]
  end
  return out
end

--- A number expression: a number or what a number constructor made.
function build.number(v)
  if type(v) == "table" and numbers[v.op or ""] then return v end
  if finite(v) then return whole(v) end
  if type(v) == "string" then
    return nil, string.format("'%s' is a name; say how its runs become one number, as in ph.mean { \"%s\" }", v, v)
  end
  return nil, "expected a number or an aggregate such as ph.mean, got " .. what(v)
end

local function compare(t)
  local left, e1 = build.number(t[1])
  if not left then return nil, e1, 1 end
  if not signs[t[2]] then return nil, string.format("%s is no comparison; there are < <= > >= == ~=", what(t[2])), 2 end
  local right, e2 = build.number(t[3])
  if not right then return nil, e2, 3 end
  if #t > 3 then return nil, "a comparison has three parts: { a, \"<=\", b }", 4 end
  return { op = "compare", left = left, cmp = t[2], right = right }
end

--- A condition: what a condition constructor made, { a, "<=", b }, or the name of an earlier rule.
function build.condition(v)
  if type(v) == "string" then return { op = "rule", name = v } end
  if type(v) == "function" then return nil, "a Lua function is no rule: rules are data that can be locked" end
  if type(v) ~= "table" then return nil, "expected a condition, got " .. what(v) end
  if v.op and conditions[v.op] then return v end
  if v.op then
    return nil,
      "expected a condition, got the number " .. what(v) .. "; compare it: { " .. what(v) .. " {...}, \"<=\", 2 }"
  end
  if #v == 0 then return nil, "expected a condition { a, \"<=\", b }, got an empty table" end
  return compare(v)
end

local function scalars(list)
  local out = {}
  for i, v in ipairs(list) do
    if not scalar(v) then return nil, string.format("value %d is %s", i, what(v)) end
    out[i] = whole(v)
  end
  return out
end

--- Which values of an axis: a value, a list of values, "*", or what ph.at_least, ph.at_most, ph.except made.
function build.selector(v)
  if v == "*" then return { each = true } end
  if type(v) ~= "table" then
    if scalar(v) then return { is = whole(v) } end
    return nil, "expected a value of the grid, got " .. what(v)
  end
  if v.op then return nil, "expected values of the grid, got " .. what(v) end
  if v.at_least or v.at_most or v.except then return v end
  local list, problem = list_of(v)
  if not list then return nil, problem end
  if #list == 0 then return nil, "the list of values is empty" end
  local any, why = scalars(list)
  if not any then return nil, why end
  return { any = any }
end

function build.at_least(v)
  if not finite(v) then return nil, "expected a number, got " .. what(v) end
  return { at_least = whole(v) }
end

function build.at_most(v)
  if not finite(v) then return nil, "expected a number, got " .. what(v) end
  return { at_most = whole(v) }
end

function build.except(...)
  local list, why = scalars { ... }
  if not list then return nil, why end
  if #list == 0 then return nil, "expected the values to leave out" end
  return { except = list }
end

-- Splits what a spec wrote into its first item, the options a constructor knows, and filters by axis.
local function parts(t, options)
  if type(t) ~= "table" then return nil, "expected { \"metric\", axis = value, ... }, got " .. what(t) end
  local first, opts, where = t[1], {}, nil
  for k, v in pairs(t) do
    if k == 1 then first = v
    elseif type(k) ~= "string" then return nil, string.format("unexpected item %s", tostring(k)), k
    elseif options[k] then opts[k] = v
    elseif build.reserved[k] then return nil, string.format("'%s' has no meaning here", k), k
    else
      local s, problem = build.selector(v)
      if not s then return nil, k .. ": " .. problem, k end
      where = where or {}
      where[k] = s
    end
  end
  return { first = first, opts = opts, where = where }
end

local function run_options(opts)
  if opts.runs ~= nil and opts.runs ~= "all" and opts.runs ~= "chosen" then
    return nil,
      string.format("runs is \"chosen\" (by validation, the default) or \"all\" candidates, got %s", what(opts.runs)),
      "runs"
  end
  if opts.diverged ~= nil and not finite(opts.diverged) then
    return nil, "diverged is the number that a diverged run counts as", "diverged"
  end
  return { runs = opts.runs == "all" and "all" or nil, diverged = whole(opts.diverged) }
end

local function over_runs(op, p)
  local o, problem, key = run_options(p.opts)
  if not o then return nil, problem, key end
  return { op = op, metric = p.first, where = p.where, runs = o.runs, diverged = o.diverged }
end

local function over_axis(op, p)
  local of, problem = build.number(p.first)
  if not of then return nil, problem, 1 end
  if type(of) == "number" then return nil, "a constant needs no " .. op, 1 end
  if next(p.opts) then return nil, "runs and diverged belong to the inner aggregate", (next(p.opts)) end
  if not p.where then
    return nil, "over which axis? as in ph." .. op .. " { ph.mean { \"growth\" }, family = \"*\" }"
  end
  return { op = op, of = of, over = p.where }
end

for _, op in ipairs(statistics) do
  build[op] = function(t)
    local p, problem, key = parts(t, { runs = true, diverged = true })
    if not p then return nil, problem, key end
    if p.first == nil then return nil, "which metric? as in ph." .. op .. " { \"test.accuracy\" }", 1 end
    return (type(p.first) == "string" and over_runs or over_axis)(op, p)
  end
end

local bounds <const> = { below = "<", above = ">", at_least = ">=", at_most = "<=" }
local statuses <const> = { done = true, diverged = true, failed = true, killed = true }

local function one_bound(opts)
  local cmp, bound
  for key, sign in pairs(bounds) do
    if opts[key] ~= nil then
      if cmp then return nil, "one bound only: below, above, at_least or at_most" end
      if not finite(opts[key]) then return nil, key .. " is a number" end
      cmp, bound = sign, whole(opts[key])
    end
  end
  return { cmp = cmp, bound = bound }
end

function build.count(t)
  local p, problem, key = parts(t,
    { runs = true, diverged = true, status = true, below = true, above = true, at_least = true, at_most = true })
  if not p then return nil, problem, key end
  local o, e1, k1 = run_options(p.opts)
  if not o then return nil, e1, k1 end
  local b, e2 = one_bound(p.opts)
  if not b then return nil, e2 end
  if p.opts.status and not statuses[p.opts.status] then
    return nil, what(p.opts.status) .. " is no status: done, diverged, failed, killed", "status"
  end
  if p.first ~= nil and type(p.first) ~= "string" then
    return nil, "expected the name of a metric, got " .. what(p.first), 1
  end
  if b.cmp and not p.first then return nil, "a bound needs a metric: ph.count { \"test.accuracy\", below = 0.5 }" end
  return {
    op = "count", metric = p.first, where = p.where, runs = o.runs, diverged = o.diverged, status = p.opts.status,
    cmp = b.cmp, bound = b.bound,
  }
end

local function rank_options(o)
  if o.order ~= nil and o.order ~= "low" and o.order ~= "high" then
    return nil, "order is \"low\" (1 is the lowest) or \"high\"", "order"
  end
  if o.ties ~= nil and o.ties ~= "best" and o.ties ~= "worst" then
    return nil, "ties is \"best\" (equal values share the better rank) or \"worst\"", "ties"
  end
  return true
end

function build.rank(t)
  local p, problem, key = parts(t, { order = true, ties = true, among = true })
  if not p then return nil, problem, key end
  local ok, e, k = rank_options(p.opts)
  if not ok then return nil, e, k end
  local of, why = build.number(p.first)
  if not of then return nil, why, 1 end
  local axis, own = next(p.where or {})
  if not axis or next(p.where, axis) or own.is == nil then
    return nil, "rank needs one axis with one value: ph.rank { ph.mean { \"growth\" }, family = \"ph\" }"
  end
  local among
  if p.opts.among ~= nil then
    among, why = build.selector(p.opts.among)
    if not among then return nil, "among: " .. why, "among" end
  end
  return {
    op = "rank", of = of, at = { [axis] = own.is }, among = among, order = p.opts.order == "high" and "high" or "low",
    ties = p.opts.ties == "worst" and "worst" or "best",
  }
end

local function two(op)
  return function(a, b)
    local left, e1 = build.number(a)
    if not left then return nil, "first: " .. e1 end
    local right, e2 = build.number(b)
    if not right then return nil, "second: " .. e2 end
    return { op = op, left = left, right = right }
  end
end
build.gap, build.ratio = two "gap", two "ratio"

function build.band(value, low, high)
  local v, e1 = build.number(value)
  if not v then return nil, e1 end
  local a, e2 = build.number(low)
  if not a then return nil, "low end: " .. e2 end
  local b, e3 = build.number(high)
  if not b then return nil, "high end: " .. e3 end
  if type(a) == "number" and type(b) == "number" and a > b then
    return nil, string.format("the band is empty: %s > %s", a, b)
  end
  return { op = "band", value = v, low = a, high = b }
end

local function many(op)
  return function(t)
    if type(t) ~= "table" or t.op then return nil, "expected a list of conditions" end
    local list, problem, key = list_of(t)
    if not list then return nil, problem, key end
    if #list == 0 then return nil, "the list of conditions is empty" end
    local of = {}
    for i, c in ipairs(list) do
      local node, why = build.condition(c)
      if not node then return nil, string.format("condition %d: %s", i, why), i end
      of[i] = node
    end
    return { op = op, of = of }
  end
end
build.all, build.any, build.none = many "all", many "any", many "none"

local function over(op)
  return function(t)
    local p, problem, key = parts(t, {})
    if not p then return nil, problem, key end
    local of, why = build.condition(p.first)
    if not of then return nil, why, 1 end
    if not p.where then return nil, string.format("over which axis? as in ph.%s { condition, depth = \"*\" }", op) end
    return { op = op, over = p.where, of = of }
  end
end
build.every, build.some = over "every", over "some"

function build.unevaluable(v)
  local of, why = build.condition(v)
  if not of then return nil, why end
  return { op = "unevaluable", of = of }
end

local function unknown_key(t, known)
  local words = {}
  for k in pairs(known) do words[#words + 1] = k end
  for k in pairs(t) do
    if type(k) == "string" and not known[k] then
      return string.format("unknown key '%s'%s", k, suggest.hint(k, words)), k
    end
    if type(k) ~= "string" and k ~= 1 and k ~= 2 then return string.format("unexpected item %s", tostring(k)), k end
  end
end

local function named(t, known, example)
  if type(t) ~= "table" then return "expected " .. example end
  local problem, key = unknown_key(t, known)
  if problem then return problem, key end
  if type(t[1]) ~= "string" or t[1] == "" then return "the first item is its name: " .. example, 1 end
  if t.note ~= nil and type(t.note) ~= "string" then return "note is a text", "note" end
end

--- { "name", condition, note = } -> { kind = "rule", name, when, note }
function build.rule(t)
  local problem, key = named(t, { note = true }, "ph.rule { \"name\", { a, \"<=\", b } }")
  if problem then return nil, problem, key end
  local when, why = build.condition(t[2])
  if not when then return nil, string.format("'%s': %s", t[1], why), 2 end
  return { kind = "rule", name = t[1], when = when, note = t.note }
end

--- { "name", when = condition or nil (otherwise), holds = true|false } -> { kind = "category", ... }
function build.category(t)
  local problem, key = named(t, { when = true, holds = true, note = true },
    "ph.category { \"name\", when = condition }")
  if problem then return nil, problem, key end
  if t[2] ~= nil then return nil, "the condition of a category stands under `when`", 2 end
  if t.holds ~= nil and type(t.holds) ~= "boolean" then
    return nil, "holds is true (exit code 0) or false (exit code 10)", "holds"
  end
  local when, why
  if t.when ~= nil then
    when, why = build.condition(t.when)
    if not when then return nil, string.format("'%s': %s", t[1], why), "when" end
  end
  return { kind = "category", name = t[1], when = when, holds = t.holds == true, note = t.note }
end

local function band_of(t)
  local low, high = t.at_least, t.at_most
  if t.band ~= nil then
    if low ~= nil or high ~= nil then return nil, "band, or at_least and at_most, not both" end
    if type(t.band) ~= "table" or #t.band ~= 2 then return nil, "band is { low, high }" end
    low, high = t.band[1], t.band[2]
  end
  if low == nil and high == nil then return nil, "what is predicted? band = { low, high }, at_least = or at_most =" end
  if (low ~= nil and not finite(low)) or (high ~= nil and not finite(high)) then
    return nil, "the ends of a band are numbers"
  end
  if low and high and low > high then return nil, string.format("the band is empty: %s > %s", low, high) end
  return { low = whole(low), high = whole(high) }
end

--- { "name", number, band = { low, high } | at_least = | at_most =, note =, paper = } -> { kind = "prediction", ... }
function build.prediction(t)
  local problem, key = named(t, { band = true, at_least = true, at_most = true, note = true, paper = true },
    "ph.prediction { \"name\", ph.mean {...}, band = { 0.5, 2 } }")
  if problem then return nil, problem, key end
  local value, why = build.number(t[2])
  if not value or type(value) == "number" then
    return nil, string.format("'%s': %s", t[1], why or "a constant is no prediction"), 2
  end
  local b, e = band_of(t)
  if not b then return nil, string.format("'%s': %s", t[1], e) end
  if t.paper ~= nil and not finite(t.paper) then return nil, "paper is the number that the source prints", "paper" end
  return {
    kind = "prediction", name = t[1], value = value, low = b.low, high = b.high, note = t.note, paper = whole(t.paper),
  }
end

--- { dir = | spec =, verdict = name of a category or "holds" } -> { kind = "gate", ... }
function build.gate(t)
  if type(t) ~= "table" then return nil, "expected ph.gate { dir = ..., verdict = ... }" end
  local problem, key = unknown_key(t, { dir = true, verdict = true, note = true })
  if problem then return nil, problem, key end
  if type(t.dir) ~= "string" then return nil, "dir is the results directory whose verdict opens the gate", "dir" end
  if t.verdict ~= nil and type(t.verdict) ~= "string" then
    return nil, "verdict is the name of a category, or \"holds\"", "verdict"
  end
  return { kind = "gate", dir = t.dir, verdict = t.verdict or "holds", note = t.note }
end

return build
