--- The words of number expressions and conditions, as a spec calls them: each gives the data of one expression, or nil,
-- one message, and the key it is about.

local read = require "ph.rules.read"

local build = {}

local statistics <const> = { "mean", "sd", "median", "min", "max", "sum" }

local function run_options(opts)
  if opts.runs ~= nil and opts.runs ~= "all" and opts.runs ~= "chosen" then
    return nil,
      string.format("runs is \"chosen\" (by validation, the default) or \"all\" candidates, got %s",
        read.what(opts.runs)),
      "runs"
  end
  if opts.diverged ~= nil and not read.finite(opts.diverged) then
    return nil, "diverged is the number that a diverged run counts as", "diverged"
  end
  return { runs = opts.runs == "all" and "all" or nil, diverged = read.whole(opts.diverged) }
end

local function over_runs(op, p)
  local o, problem, key = run_options(p.opts)
  if not o then return nil, problem, key end
  return { op = op, metric = p.first, where = p.where, runs = o.runs, diverged = o.diverged }
end

local function over_axis(op, p)
  local of, problem = read.number(p.first)
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
    local p, problem, key = read.parts(t, { runs = true, diverged = true })
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
      if not read.finite(opts[key]) then return nil, key .. " is a number" end
      cmp, bound = sign, read.whole(opts[key])
    end
  end
  return { cmp = cmp, bound = bound }
end

function build.count(t)
  local p, problem, key = read.parts(t,
    { runs = true, diverged = true, status = true, below = true, above = true, at_least = true, at_most = true })
  if not p then return nil, problem, key end
  local o, e1, k1 = run_options(p.opts)
  if not o then return nil, e1, k1 end
  local b, e2 = one_bound(p.opts)
  if not b then return nil, e2 end
  if p.opts.status and not statuses[p.opts.status] then
    return nil, read.what(p.opts.status) .. " is not a status: done, diverged, failed, killed", "status"
  end
  if p.first ~= nil and type(p.first) ~= "string" then
    return nil, "expected the name of a metric, got " .. read.what(p.first), 1
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
  local p, problem, key = read.parts(t, { order = true, ties = true, among = true })
  if not p then return nil, problem, key end
  local ok, e, k = rank_options(p.opts)
  if not ok then return nil, e, k end
  local of, why = read.number(p.first)
  if not of then return nil, why, 1 end
  local axis, own = next(p.where or {})
  if not axis or next(p.where, axis) or own.is == nil then
    return nil, "rank needs one axis with one value: ph.rank { ph.mean { \"growth\" }, family = \"ph\" }"
  end
  local among
  if p.opts.among ~= nil then
    among, why = read.selector(p.opts.among)
    if not among then return nil, "among: " .. why, "among" end
  end
  return {
    op = "rank", of = of, at = { [axis] = own.is }, among = among, order = p.opts.order == "high" and "high" or "low",
    ties = p.opts.ties == "worst" and "worst" or "best",
  }
end

local function two(op)
  return function(a, b)
    local left, e1 = read.number(a)
    if not left then return nil, "first: " .. e1 end
    local right, e2 = read.number(b)
    if not right then return nil, "second: " .. e2 end
    return { op = op, left = left, right = right }
  end
end
build.gap, build.ratio = two "gap", two "ratio"

function build.band(value, low, high)
  local v, e1 = read.number(value)
  if not v then return nil, e1 end
  local a, e2 = read.number(low)
  if not a then return nil, "low end: " .. e2 end
  local b, e3 = read.number(high)
  if not b then return nil, "high end: " .. e3 end
  if type(a) == "number" and type(b) == "number" and a > b then
    return nil, string.format("the band is empty: %s > %s", a, b)
  end
  return { op = "band", value = v, low = a, high = b }
end

local function many(op)
  return function(t)
    if type(t) ~= "table" or t.op then return nil, "expected a list of conditions" end
    local list, problem, key = read.list(t)
    if not list then return nil, problem, key end
    if #list == 0 then return nil, "the list of conditions is empty" end
    local of = {}
    for i, c in ipairs(list) do
      local node, why = read.condition(c)
      if not node then return nil, string.format("condition %d: %s", i, why), i end
      of[i] = node
    end
    return { op = op, of = of }
  end
end
build.all, build.any, build.none = many "all", many "any", many "none"

local function over(op)
  return function(t)
    local p, problem, key = read.parts(t, {})
    if not p then return nil, problem, key end
    local of, why = read.condition(p.first)
    if not of then return nil, why, 1 end
    if not p.where then return nil, string.format("over which axis? as in ph.%s { condition, depth = \"*\" }", op) end
    return { op = op, over = p.where, of = of }
  end
end
build.every, build.some = over "every", over "some"

function build.unevaluable(v)
  local of, why = read.condition(v)
  if not of then return nil, why end
  return { op = "unevaluable", of = of }
end

return build
