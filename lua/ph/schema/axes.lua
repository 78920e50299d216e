--- Axes of a grid: their order, and their values as words. A label is made of these words for people; nothing is ever
-- read back from it, for a value may hold any character.

local json = require "ph.util.json"
local sorted_keys = require "ph.util.sorted_keys"

local axes = {}

local rank <const> = { family = 1, task = 2, depth = 3, width = 4, seed = 6 }

--- The order of axes: family, task, depth, width, then the others by name, seed last.
function axes.before(a, b)
  local ra, rb = rank[a] or 5, rank[b] or 5
  if ra ~= rb then return ra < rb end
  return a < b
end

--- A value in one word; strings that could be read as something else are quoted.
function axes.word(v)
  if type(v) == "number" then return json.number(v) end
  if type(v) == "string" and (not v:find "^[%a_][%w_%-%.]*$" or v == "true" or v == "false") then
    return json.encode(v)
  end
  return tostring(v)
end

--- Axes and values of a plain table in order: { { key =, value = }, ... }; without the axes in `skip`.
function axes.list(values, skip)
  local out = {}
  for _, key in ipairs(sorted_keys(values)) do
    if not (skip and skip[key]) then out[#out + 1] = { key = key, value = values[key] } end
  end
  table.sort(out, function(a, b) return axes.before(a.key, b.key) end)
  return out
end

--- "family=ph depth=240 seed=0" of such a list; without the axes in `skip`.
function axes.text(list, skip)
  local parts = {}
  for _, kv in ipairs(list) do
    if not (skip and skip[kv.key]) then parts[#parts + 1] = kv.key .. "=" .. axes.word(kv.value) end
  end
  return table.concat(parts, " ")
end

return axes
