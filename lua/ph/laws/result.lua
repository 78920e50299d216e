--- What a law says about a thing: a measured value, the tolerance it is held to, and what that means.
--
-- A result has `law`, `value`, `tol`, `ok` (true, false, or nil where a law only measures) and `means`; a law may add
-- fields of its own, named in its description. Printing it gives one line.

local domains = require "ph.lang.domains"

local result = {}

local Result = { __name = "ph.law" }
Result.__index = Result
result.Result = Result

local function short(v)
  if type(v) ~= "number" then return tostring(v) end
  if math.type(v) == "integer" then return string.format("%d", v) end
  return string.format("%.6g", v)
end

function Result.__tostring(r)
  local verdict = r.ok == nil and "" or r.ok and ": holds" or ": FAILS"
  local tolerance = r.tol and " (tolerance " .. short(r.tol) .. ")" or ""
  return string.format("%s = %s%s%s - %s", r.law, short(r.value), tolerance, verdict, r.means)
end

--- result.new { law =, value =, tol =, ok =, means =, ... } A value that is not a number holds for nothing.
function result.new(fields)
  if fields.value ~= fields.value and fields.ok ~= nil then fields.ok = false end
  return setmetatable(fields, Result)
end

local function extreme(beats)
  return function(first, ...)
    for _, v in ipairs { ... } do
      if first == first and (v ~= v or beats(v, first)) then first = v end
    end
    return first
  end
end

--- The largest and the smallest of some numbers; NaN when one of them is, so that no comparison can succeed: Lua's own
-- math.max and math.min leave NaN out.
result.most = extreme(function(v, most) return v > most end)
result.least = extreme(function(v, least) return v < least end)

--- Largest absolute element; NaN when one is not finite, so that no comparison with a tolerance can succeed.
function result.max_abs(t)
  if t:count() == 0 then return 0.0 end
  if t:first_nonfinite() then return 0 / 0 end
  return math.max(math.abs(t:min()), math.abs(t:max()))
end

--- Raises with a clear line unless `t` is a square matrix that fits the letter (ph.lang.domains); returns its size.
function result.meant(law, letter, t)
  local d = result.square(law, t)
  local problem = domains.problem(letter, t)
  if problem then error(string.format("%s: the matrix is %s", law, problem), 0) end
  return d
end

--- Raises with a clear line unless `t` is a square matrix; returns its size.
function result.square(law, t)
  local shape = type(t) == "userdata" and t:shape() or nil
  if not shape or #shape ~= 2 or shape[1] ~= shape[2] then
    local got = shape and "(" .. table.concat(shape, ", ") .. ")" or type(t)
    error(string.format("%s: the argument must be a square matrix, got %s", law, got), 0)
  end
  return shape[1]
end

return result
