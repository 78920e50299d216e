--- Canonical text: what is hashed to tell whether a run's meaning changed.
--
-- One text per meaning: keys sorted, integral floats printed as integers, numbers in their shortest form. Objects of
-- the language (tasks, protocols, inits, measures) give their own text through a method `canonical`.

local json = require "ph.util.json"
local native = require "ph.native"
local sorted_keys = require "ph.util.sorted_keys"

local canon = {}

canon.number = json.number

--- A number as the IR prints it: the fewest significant digits that read back to the same double (100 is "1e+02").
function canon.ir_number(v)
  for digits = 1, 17 do
    local text = string.format("%." .. digits .. "g", v)
    if tonumber(text) == v then return text end
  end
  error("a number of the IR must be finite", 0)
end

--- A plain copy in which every object is replaced by its canonical text.
local function plain(v)
  if type(v) ~= "table" then return v end
  local mt = getmetatable(v)
  if mt and mt.__index and v.canonical then return v:canonical() end
  local out = {}
  for k, x in pairs(v) do out[k] = plain(x) end
  if mt and mt.__jsontype then setmetatable(out, mt) end
  return out
end

--- Canonical JSON of plain data and objects. Raises on functions.
function canon.encode(v)
  return json.encode(plain(v))
end

--- "adam{batch=128,lr=0.001}": the text of a constructor's values. Absent values are left out.
function canon.call(name, values)
  local keys = sorted_keys(values)
  local parts = {}
  for i, k in ipairs(keys) do parts[i] = k .. "=" .. canon.encode(values[k]) end
  return name .. "{" .. table.concat(parts, ",") .. "}"
end

--- First 16 hexadecimal digits of the SHA-256 of a text: the name of a run.
function canon.short_hash(text)
  return native.sha256(text):sub(1, 16)
end

return canon
