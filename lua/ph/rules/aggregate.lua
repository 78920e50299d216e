--- Numbers of a ledger: evaluates the number expressions of rules over the cells of a locked grid.
--
--   mean    m = sum x / n
--   sd      s = sqrt(sum (x - m)^2 / (n - 1)), of a sample
--   median  of an even number of values the mean of the two in the middle
--   gap     a - b
--   ratio   a / b
--   rank    1 + number of values that beat it
--
-- Every run that the filter asks for must have its value. A missing run, a value that is not a number, a deviation of
-- fewer than two values, a ratio to zero: the expression has no value, and says why. Infinite values are numbers; what
-- they make not a number (inf - inf) has no value. Sums run in grid order, so the same ledger gives the same bits.
--
-- The table of cells (`ctx`) comes from ph.registry.verdict. A number comes back as { value =, n = values used } or
-- { reasons = { text, ... } }.

local select = require "ph.rules.select"

local aggregate = {}

--- Fields of a record that rules may name beside its metrics.
aggregate.fields = { seconds = true, epochs = true, steps = true, params = true, best_epoch = true }

local statistic = {}
aggregate.statistic = statistic

function statistic.sum(xs)
  local s = 0
  for _, x in ipairs(xs) do s = s + x end
  return s
end

local function is_finite(v) return v - v == 0 end

-- Where sums overflow although values do not, parts of them are summed.
function statistic.mean(xs)
  local mean = statistic.sum(xs) / #xs
  if is_finite(mean) then return mean end
  local s = 0
  for _, x in ipairs(xs) do s = s + x / #xs end
  return s
end

function statistic.sd(xs)
  if #xs < 2 then return nil, "the sample deviation of one value is not defined" end
  local m, s, largest = statistic.mean(xs), 0, 0
  for _, x in ipairs(xs) do
    s = s + (x - m) * (x - m)
    largest = math.max(largest, math.abs(x - m))
  end
  if is_finite(s) or not is_finite(largest) then return math.sqrt(s / (#xs - 1)) end
  s = 0
  for _, x in ipairs(xs) do s = s + ((x - m) / largest) ^ 2 end
  return largest * math.sqrt(s / (#xs - 1))
end

function statistic.median(xs)
  local sorted = table.move(xs, 1, #xs, 1, {})
  table.sort(sorted)
  local k = #sorted // 2
  if #sorted % 2 == 1 then return sorted[k + 1] end
  return statistic.mean { sorted[k], sorted[k + 1] }
end

function statistic.min(xs)
  local m = xs[1]
  for _, x in ipairs(xs) do if x < m then m = x end end
  return m
end

function statistic.max(xs)
  local m = xs[1]
  for _, x in ipairs(xs) do if x > m then m = x end end
  return m
end

local function add_reasons(into, from)
  for _, r in ipairs(from) do
    if not into[r] then
      into[r] = true
      into[#into + 1] = r
    end
  end
end

local function plain(reasons)
  local out = {}
  for i, r in ipairs(reasons) do out[i] = r end
  return out
end

-- The finished number of a list of values, or the reason why there is none.
local function finish(op, xs)
  if #xs == 0 then return { reasons = { "no values" } } end
  local v, why = statistic[op](xs)
  if not v then return { reasons = { why }, n = #xs } end
  if v ~= v then return { reasons = { op .. " of infinite values is not a number" }, n = #xs } end
  return { value = v, n = #xs }
end

-- A filter on a candidate axis (lr) speaks of all candidates; `pick` has those axes, `where` the axes of the grid.
local function split(ctx, where)
  local grid, pick
  for axis, selector in pairs(where or {}) do
    if ctx.candidate_axes[axis] then
      pick = pick or {}
      pick[axis] = selector
    else
      grid = grid or {}
      grid[axis] = selector
    end
  end
  return grid, pick
end

local function picked(run, pick)
  for axis, selector in pairs(pick or {}) do
    if not select.takes(selector, run.select[axis]) then return false end
  end
  return true
end

-- The value of one run for a metric, or nil and the reason.
local function value_of(run, node)
  local record = run.record
  if record.status == "diverged" then
    if node.diverged ~= nil then return node.diverged end
    return nil, string.format("%s diverged", run.label)
  end
  if record.status ~= "done" then return nil, string.format("%s %s", run.label, record.status) end
  local v = (record.metrics or {})[node.metric]
  if v == nil and aggregate.fields[node.metric] then v = record[node.metric] end
  if type(v) ~= "number" then return nil, string.format("%s has no %s", run.label, node.metric) end
  if v ~= v then return nil, string.format("%s of %s is not a number", node.metric, run.label) end
  return v
end

-- Calls visit(run or nil, cell) for every run that a node asks for: the chosen run of a cell, or all its candidates.
local function each_run(ctx, node, binding, visit)
  local where, pick = split(ctx, node.where)
  for _, cell in ipairs(select.cells(ctx.cells, where, binding)) do
    if node.runs == "all" or pick then
      for _, run in ipairs(cell.runs) do
        if picked(run, pick) then visit(run, cell) end
      end
    else
      visit(cell.chosen, cell)
    end
  end
end

-- Values of axes at which the whole table has not one run, axes by name: { { axis,
-- value, text }, ... }. Found once a table.
local function lost_values(ctx)
  if ctx.lost then return ctx.lost end
  local alive, axes = {}, {}
  for _, cell in ipairs(ctx.cells) do
    for axis, v in pairs(cell.values) do
      if not alive[axis] then
        alive[axis] = {}
        axes[#axes + 1] = axis
      end
      alive[axis][v] = alive[axis][v] or cell.chosen ~= nil
    end
  end
  table.sort(axes)
  ctx.lost = {}
  for _, axis in ipairs(axes) do
    for _, v in ipairs(select.values(ctx.cells, axis)) do
      if not alive[axis][v] then
        ctx.lost[#ctx.lost + 1] = { axis, v, string.format("no runs at %s=%s", axis, tostring(v)) }
      end
    end
  end
  return ctx.lost
end

-- Why a cell has no run: "no runs at depth=96" where the whole grid has none there, else the cell itself.
local function absence(ctx, cell)
  for _, lost in ipairs(lost_values(ctx)) do
    if cell.values[lost[1]] == lost[2] then return lost[3] end
  end
  return cell.problem or ("no run at " .. cell.label)
end

local function collect(ctx, node, binding)
  local xs, reasons = {}, {}
  each_run(ctx, node, binding, function(run, cell)
    local v, why
    if run and run.record then v, why = value_of(run, node) else why = absence(ctx, cell) end
    if v then xs[#xs + 1] = v else add_reasons(reasons, { why }) end
  end)
  return xs, reasons
end

local evaluate = {}

--- The number of an expression; `binding` holds the axes that a surrounding `every` or aggregate has fixed.
function aggregate.evaluate(ctx, node, binding)
  if type(node) == "number" then return { value = node } end
  return evaluate[node.op](ctx, node, binding)
end

local function over_axis(ctx, node, binding)
  local xs, reasons = {}, {}
  for _, b in ipairs(select.bindings(ctx.cells, node.over, binding)) do
    local r = aggregate.evaluate(ctx, node.of, b)
    if r.value then xs[#xs + 1] = r.value else add_reasons(reasons, r.reasons) end
  end
  if #reasons > 0 then return { reasons = plain(reasons) } end
  return finish(node.op, xs)
end

local function over_runs(ctx, node, binding)
  local xs, reasons = collect(ctx, node, binding)
  if #reasons > 0 then return { reasons = plain(reasons), n = #xs } end
  return finish(node.op, xs)
end

for op in pairs(statistic) do
  evaluate[op] = function(ctx, node, binding)
    return (node.of and over_axis or over_runs)(ctx, node, binding)
  end
end

local beats <const> = {
  ["<"] = function(a, b) return a < b end, ["<="] = function(a, b) return a <= b end,
  [">"] = function(a, b) return a > b end,
  [">="] = function(a, b) return a >= b end, ["=="] = function(a, b) return a == b end,
  ["~="] = function(a, b) return a ~= b end,
}
aggregate.compare = beats

local function counts(run, node)
  if node.status and run.record.status ~= node.status then return false end
  if not node.metric then return true end
  local v, why = value_of(run, node)
  if not v then return nil, why end
  return node.cmp == nil or beats[node.cmp](v, node.bound)
end

function evaluate.count(ctx, node, binding)
  local n, reasons, looked = 0, {}, 0
  each_run(ctx, node, binding, function(run, cell)
    looked = looked + 1
    local yes, why
    if run and run.record then yes, why = counts(run, node) else why = absence(ctx, cell) end
    if yes then n = n + 1 elseif yes == nil then add_reasons(reasons, { why }) end
  end)
  if looked == 0 then reasons = { "no values" } end
  if #reasons > 0 then return { reasons = plain(reasons) } end
  return { value = n, n = looked }
end

local function both(ctx, node, binding)
  local a, b = aggregate.evaluate(ctx, node.left, binding), aggregate.evaluate(ctx, node.right, binding)
  local reasons = {}
  add_reasons(reasons, a.reasons or {})
  add_reasons(reasons, b.reasons or {})
  if #reasons > 0 then return nil, { reasons = plain(reasons), parts = { a, b } } end
  return a.value, b.value, { a, b }
end

local function numeric(v, parts, what)
  if v ~= v then return { reasons = { what .. " is not a number" }, parts = parts } end
  return { value = v, parts = parts }
end

function evaluate.gap(ctx, node, binding)
  local a, b, parts = both(ctx, node, binding)
  if not a then return b end
  return numeric(a - b, parts, "the gap of infinite values")
end

function evaluate.ratio(ctx, node, binding)
  local a, b, parts = both(ctx, node, binding)
  if not a then return b end
  if b == 0 then return { reasons = { "the ratio has a zero baseline" }, parts = parts } end
  return numeric(a / b, parts, "the ratio of infinite values")
end

--- Rank 1 is the lowest value (order "low") or the highest. Equal values share the best rank, or
-- the worst of theirs with ties = "worst".
function evaluate.rank(ctx, node, binding)
  local axis, own = next(node.at)
  local mine, others, reasons = nil, {}, {}
  for _, b in ipairs(select.bindings(ctx.cells, { [axis] = node.among or { each = true } }, binding)) do
    local r = aggregate.evaluate(ctx, node.of, b)
    if not r.value then add_reasons(reasons, r.reasons)
    elseif b[axis] == own then mine = r.value
    else others[#others + 1] = r.value
    end
  end
  if #reasons > 0 then return { reasons = plain(reasons) } end
  if not mine then return { reasons = { string.format("no runs at %s=%s", axis, tostring(own)) } } end
  local ahead = beats[(node.order == "high" and ">" or "<") .. (node.ties == "worst" and "=" or "")]
  local rank = 1
  for _, v in ipairs(others) do
    if ahead(v, mine) then rank = rank + 1 end
  end
  return { value = rank, n = #others + 1 }
end

return aggregate
