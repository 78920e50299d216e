--- What a plan consists of, as a spec declares it: rules, categories, predictions, gates. Each gives plain data, or
-- nil, one message, and the key it is about.

local kinds = require "ph.schema.kinds"
local read = require "ph.rules.read"
local suggest = require "ph.util.suggest"

local declare = {}

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
  local illegible = kinds.illegible(t[1])
  if illegible then return "its name " .. illegible, 1 end
  if t.note ~= nil and type(t.note) ~= "string" then return "note is a text", "note" end
end

--- { "name", condition, note = } -> { kind = "rule", name, when, note }
function declare.rule(t)
  local problem, key = named(t, { note = true }, "ph.rule { \"name\", { a, \"<=\", b } }")
  if problem then return nil, problem, key end
  local when, why = read.condition(t[2])
  if not when then return nil, string.format("'%s': %s", t[1], why), 2 end
  return { kind = "rule", name = t[1], when = when, note = t.note }
end

--- { "name", when = condition or nil (otherwise), holds = true|false } -> { kind = "category", ... }
function declare.category(t)
  local problem, key = named(t, { when = true, holds = true, note = true },
    "ph.category { \"name\", when = condition }")
  if problem then return nil, problem, key end
  if t[2] ~= nil then return nil, "the condition of a category stands under `when`", 2 end
  if t.holds ~= nil and type(t.holds) ~= "boolean" then
    return nil, "holds is true (exit code 0) or false (exit code 10)", "holds"
  end
  local when, why
  if t.when ~= nil then
    when, why = read.condition(t.when)
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
  if (low ~= nil and not read.finite(low)) or (high ~= nil and not read.finite(high)) then
    return nil, "the ends of a band are numbers"
  end
  if low and high and low > high then return nil, string.format("the band is empty: %s > %s", low, high) end
  return { low = read.whole(low), high = read.whole(high) }
end

--- { "name", number, band = { low, high } | at_least = | at_most =, note =, paper = } -> { kind = "prediction", ... }
function declare.prediction(t)
  local problem, key = named(t, { band = true, at_least = true, at_most = true, note = true, paper = true },
    "ph.prediction { \"name\", ph.mean {...}, band = { 0.5, 2 } }")
  if problem then return nil, problem, key end
  local value, why = read.number(t[2])
  if not value or type(value) == "number" then
    return nil, string.format("'%s': %s", t[1], why or "a prediction cannot be a constant"), 2
  end
  local b, e = band_of(t)
  if not b then return nil, string.format("'%s': %s", t[1], e) end
  if t.paper ~= nil and not read.finite(t.paper) then
    return nil, "paper is the number that the source prints", "paper"
  end
  return {
    kind = "prediction", name = t[1], value = value, low = b.low, high = b.high, note = t.note,
    paper = read.whole(t.paper),
  }
end

--- { dir = | spec =, verdict = name of a category or "holds" } -> { kind = "gate", ... }
function declare.gate(t)
  if type(t) ~= "table" then return nil, "expected ph.gate { dir = ..., verdict = ... }" end
  local problem, key = unknown_key(t, { dir = true, verdict = true, note = true })
  if problem then return nil, problem, key end
  if type(t.dir) ~= "string" then return nil, "dir is the results directory whose verdict opens the gate", "dir" end
  if t.verdict ~= nil and type(t.verdict) ~= "string" then
    return nil, "verdict is the name of a category, or \"holds\"", "verdict"
  end
  return { kind = "gate", dir = t.dir, verdict = t.verdict or "holds", note = t.note }
end

return declare
