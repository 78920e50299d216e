--- Measures on a trained net: numbers for the ledger, per-layer profiles and tables for the run file.
--
--   growth             median over the samples of ||z_L|| / ||z_0||; profile of medians over the layers
--   gradient_envelope  g_t = ||dLoss/dz_t|| over all samples, and the ratios g_t / g_L: first (t = 0), largest,
--                      smallest
--   port_budget        ||z_t|| <= ||z_0|| + sum_{s<t} ||port_s||: violations beyond 1e-5 relative, and the largest
--                      quotient
--   confusion          samples by label (rows) and first largest logit (columns)
--
-- z_0 is the state that enters the stream, z_L the one that leaves it. With more than one stream the scalars are
-- those of the longest; the profiles of all are kept. A stream that starts from zero has none of these ratios, and a
-- sample that starts at zero has no growth: it is left out, and counted. Nothing here is a bound: these are figures of
-- the samples given.

local native = require "ph.native"
local observe = require "ph.lang.observe"

local measure = {}

--- Relative excess over the port budget that counts as a violation; rounding of float32 norms stays far below it.
measure.tolerance = 1e-5

--- Median of a list of numbers; nil of an empty one.
local function median(list) return #list > 0 and native.from(list, "f64"):quantile(0.5) or nil end

--- Medians over the samples of ||z_t|| / ||z_0||, t = 0 .. L, and the number of samples left out: those that start at
-- zero, where the ratio is undefined. nil when all do. state: norms (n, L + 1).
function measure.growth_profile(state, L)
  local profile, first = {}, state:index(2, 1)
  local n, zeros = first:count(), 0
  for i = 1, n do zeros = zeros + (first:at(i) == 0 and 1 or 0) end
  for t = 1, L + 1 do
    local now, ratios = state:index(2, t), {}
    for i = 1, n do
      if first:at(i) ~= 0 then ratios[#ratios + 1] = now:at(i) / first:at(i) end
    end
    profile[t] = median(ratios)
  end
  return zeros < n and profile or nil, zeros
end

function measure.growth(plan, data, segment, L)
  local state = plan:probe(data, nil, { segment = segment, state = true }).state
  local profile, zeros = measure.growth_profile(state, L)
  local left_out = { growth = { zeros, state:shape()[1] } }
  if not profile then return {}, {}, left_out end
  return { growth = profile[L + 1] }, { growth = native.from(profile, "f64") }, left_out
end

--- Ratios of a list of gradient norms g[1..L+1] to the last: first, largest, smallest, and the profile.
function measure.envelope(g)
  local last, profile = g[#g], {}
  local largest, smallest = -math.huge, math.huge
  for t = 1, #g do
    profile[t] = g[t] / last
    largest, smallest = math.max(largest, profile[t]), math.min(smallest, profile[t])
  end
  return { ["grad.first"] = profile[1], ["grad.max"] = largest, ["grad.min"] = smallest }, profile
end

function measure.gradient_envelope(plan, data, segment)
  local g = plan:probe(data, nil, { segment = segment, grad = true }).grad
  local metrics, profile = measure.envelope(g:totable())
  return metrics, { ["grad.norm"] = g, ["grad.ratio"] = native.from(profile, "f64") }
end

--- Checks one sample's norms against its budget. z: norms of states 1..L+1, ports: norms 1..L.
-- Returns the number of states above the budget and the largest quotient ||z_t|| / budget_t for t >= 1. A state of norm
-- zero under a budget of zero keeps it and has no quotient; the largest is nil when no state has one.
function measure.budget_of_sample(z, ports)
  local budget, above, largest = z[1], 0, nil
  for t = 1, #ports do
    budget = budget + ports[t]
    local q = z[t + 1] / budget
    if not (z[t + 1] == 0 and budget == 0) then
      if not (q <= 1 + measure.tolerance) then above = above + 1 end
      if not largest or q > largest or q ~= q then largest = q end
    end
  end
  return above, largest
end

function measure.port_budget(plan, data, segment)
  local res = plan:probe(data, nil, { segment = segment, state = true, port = true })
  local n, violations, largest, zeros = res.state:shape()[1], 0, nil, 0
  for i = 1, n do
    local above, q = measure.budget_of_sample(res.state:index(1, i):totable(), res.port:index(1, i):totable())
    violations = violations + above
    if not q then zeros = zeros + 1
    elseif not largest or q > largest or q ~= q then largest = q
    end
  end
  return { ["port.violations"] = violations, ["port.ratio"] = largest }, {}, { ["port.ratio"] = { zeros, n } }
end

--- Column of the first largest logit of row i; nil where the largest is not a finite number.
local function first_largest(logits, i, classes)
  local best, at = -math.huge, nil
  for k = 1, classes do
    local v = logits:at(i, k)
    if v ~= v or v == math.huge then return nil end
    if v > best then best, at = v, k end
  end
  return at
end

--- Table (classes, classes) i32 of label by answer, from logits (n, classes) and labels from 0. A sample whose
-- largest logit is not finite counts in no column, and not as a hit.
function measure.confusion(logits, labels, classes)
  local counts = {}
  for r = 1, classes do
    counts[r] = {}
    for c = 1, classes do counts[r][c] = 0 end
  end
  for i = 1, labels:count() do
    local row, answer = counts[labels:at(i) + 1], first_largest(logits, i, classes)
    if answer then row[answer] = row[answer] + 1 end
  end
  return native.from(counts, "i32")
end

--- Profiles "observe.NAME" of a segment: means over the samples at each iteration.
function measure.observed(plan, data, segment, iterations, observes)
  local seen = plan:probe(data, nil, { segment = segment, observe = true }).observe
  local n, width, profiles = seen:shape()[1], #observes, {}
  local rows = seen:reshape { n, iterations * width }
  for k, one in ipairs(observes) do
    local means = {}
    for t = 1, iterations do means[t] = rows:index(2, (t - 1) * width + k):sum() / n end
    profiles["observe." .. one.name] = native.from(means, "f64")
  end
  return {}, profiles
end

local known <const> = {
  growth = measure.growth, gradient_envelope = measure.gradient_envelope, port_budget = measure.port_budget,
}

-- Profiles of the segments that observe something.
local function observations(plan, data, segments, profiles)
  for i, s in ipairs(segments) do
    if #s.observes > 0 then
      local _, curves = measure.observed(plan, data, i, s.repeat_, s.observes)
      for key, curve in pairs(curves) do profiles["s" .. i .. "/" .. key] = curve end
    end
  end
end

--- Takes the measures named in `names` for every stream of the plan that has them. Returns metrics (of the main
-- stream), profiles, a map "s2/growth" -> tensor, and metric -> { samples that its figure leaves out, of how many }
-- where there are any. Nets without such a stream have none.
function measure.all(plan, data, names)
  local segments = plan:model().segments
  local main, streams = observe.streams(segments)
  local metrics, profiles, left_out = {}, {}, {}
  for _, segment in ipairs(streams) do
    for _, name in ipairs(names) do
      if known[name] and observe.has(name, segments[segment]) then
        local numbers, curves, without = known[name](plan, data, segment, segments[segment].repeat_)
        for key, curve in pairs(curves) do profiles["s" .. segment .. "/" .. key] = curve end
        for key, v in pairs(segment == main and numbers or {}) do metrics[key] = v end
        for key, n in pairs(segment == main and without or {}) do left_out[key] = n[1] > 0 and n or nil end
      end
    end
  end
  for _, name in ipairs(names) do
    if observe.anywhere(name) then observations(plan, data, segments, profiles) end
  end
  return metrics, profiles, left_out
end

return measure
