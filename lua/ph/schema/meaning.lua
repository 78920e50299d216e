--- What of a constructor's values belongs into canonical texts, plans and hashes, so that the language can grow.
--
--   affects = false    the key changes no result: no text names it
--   affects = "plan"   the key belongs to the registered plan and to no run
--   since = N, N > 1   the key is newer than the texts of earlier programs: a text names it only when its value is
--                      another than its first default, and a text that does not name it means that default
--
-- So a text that is older than a key stays equal to the byte, and a value that differs is always named.

local canon = require "ph.util.canon"
local schema = require "ph.schema"

local meaning = {}

-- Is `v` what a text says that does not name the key?
local function is_implied(key, v)
  return key.since > 1 and canon.encode(v) == canon.encode(key.default)
end

-- f(constructor, values) of a value that is a table of keys itself (kind = "block"), or of each such table in a list.
local function below(key, v, f)
  if type(v) ~= "table" then return v end
  if key.block then return f(key.block, v) end
  if not (key.of and key.of.block) then return v end
  local out = {}
  for i, x in ipairs(v) do out[i] = f(key.of.block, x) end
  return out
end

--- A copy of the values of a constructor (its registered name) without what texts do not name.
function meaning.of(constructor, values)
  local block, out = schema.get(constructor), {}
  for k, v in pairs(values) do
    local key = block.by_name[k]
    if key then v = below(key, v, meaning.of) end
    if not key or (key.affects ~= false and not is_implied(key, v)) then out[k] = v end
  end
  return out
end

--- The part of `meaning.of` that is newer than the first version of the language: what a text names after its fixed
-- fields. in_plan: also the keys that affect only the plan.
function meaning.newer(constructor, values, in_plan)
  local block, out = schema.get(constructor), {}
  for k, v in pairs(meaning.of(constructor, values)) do
    local key = block.by_name[k]
    if key and key.since > 1 and (in_plan or key.affects ~= "plan") then out[k] = v end
  end
  return out
end

--- The inverse of `meaning.of`: a copy of the values of a text in which the newer keys that it does not name have their
-- first default.
function meaning.complete(constructor, values)
  local block, out = schema.get(constructor), {}
  for k, v in pairs(values) do out[k] = v end
  for _, key in ipairs(block.keys) do
    local v = out[key.name]
    if v == nil and key.since > 1 and key.affects ~= false then v = key.default end
    out[key.name] = below(key, v, meaning.complete)
  end
  return out
end

return meaning
