--- What differs between two runs of a cell, in words: the reason why a run is made again.
--
-- It compares the parts that jobs and records keep (ph.run.job). A text that does not name a newer key means the key's
-- default.

local canon = require "ph.util.canon"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"

local changes = {}

--- The values of a canonical text "adam{batch=128,lr=0.001}" by key; nested braces stay together.
local function values_of(text)
  local out, name, inside = {}, text:match "^([^{]*){(.*)}$"
  if not inside then return { [""] = text } end
  out.kind = name
  local depth, from = 0, 1
  inside = inside .. ","
  for at, sign in inside:gmatch "()([{},%[%]])" do
    if sign == "," and depth == 0 then
      local key, value = inside:sub(from, at - 1):match "^([%w_]+)=(.*)$"
      if key then out[key] = value end
      from = at + 1
    elseif sign ~= "," then
      depth = depth + ((sign == "{" or sign == "[") and 1 or -1)
    end
  end
  return out
end

-- The text of a key's value, that of its default when the text leaves a newer key out, or nil.
local function value_in(values, name)
  if values[name] then return values[name] end
  local block = schema.get(values.kind)
  local key = block and block.by_name[name]
  if key and key.since > 1 and key.default ~= nil then return canon.encode(key.default) end
end

local function text_changes(what, now, before, out)
  local a, b, keys = values_of(now), values_of(before), {}
  for k in pairs(a) do keys[k] = true end
  for k in pairs(b) do keys[k] = true end
  for _, k in ipairs(sorted_keys(keys)) do
    local new, old = value_in(a, k), value_in(b, k)
    local subject = k == "" and what or what .. " " .. k
    if new ~= old then out[#out + 1] = string.format("%s: %s -> %s", subject, old or "none", new or "none") end
  end
end

-- Versions of the measures in a text such as "growth gradient_envelope@2" by name; a measure without one has version 1.
local function versions_of(text)
  local out = {}
  for name, version in text:gsub("%b{}", ""):gmatch "([%w_]+)@?(%d*)" do out[name] = tonumber(version) or 1 end
  return out
end

-- A measure whose version is another is named with both; otherwise the lists differ, and both are.
local function measure_changes(now, before, out)
  local new, old, known = versions_of(now), versions_of(before), #out
  for _, name in ipairs(sorted_keys(new)) do
    if old[name] and old[name] ~= new[name] then
      local line <const> = "measure %s has version %d, the run was measured with version %d"
      out[#out + 1] = string.format(line, name, new[name], old[name])
    end
  end
  if #out == known then text_changes("measure", now, before, out) end
end

--- A canonical text without some of its keys (a set).
function changes.without(text, keys)
  local values = values_of(text)
  if not values.kind then return text end
  local parts = {}
  for _, k in ipairs(sorted_keys(values)) do
    if k ~= "kind" and not keys[k] then parts[#parts + 1] = k .. "=" .. values[k] end
  end
  return values.kind .. "{" .. table.concat(parts, ",") .. "}"
end

--- now, before: `parts` of a job and of the record of an earlier run.
function changes.between(now, before)
  local out = {}
  if now.ir ~= before.ir then out[1] = string.format("model: %s -> %s", tostring(before.ir), now.ir) end
  text_changes("task", now.task, before.task or "", out)
  if now.task == before.task and now.data ~= before.data then
    out[#out + 1] = string.format("data: %s -> %s", tostring(before.data), now.data)
  end
  text_changes("train", now.train, before.train or "", out)
  text_changes("experiment", now.experiment or "experiment{}", before.experiment or "experiment{}", out)
  if now.measure ~= before.measure then measure_changes(now.measure, before.measure or "", out) end
  if now.lock ~= before.lock then
    out[#out + 1] = string.format("lock: %s -> %s", before.lock or "none", now.lock or "none")
  end
  return #out > 0 and "changed: " .. table.concat(out, ", ") or "its configuration changed"
end

return changes
