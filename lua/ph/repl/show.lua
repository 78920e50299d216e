--- Values as text for a person: tensors clipped (by the tensor itself), tables to a small depth, functions by name.

local names = require "ph.repl.names"

local show = {}

local max_items <const>, max_depth <const> = 20, 3

local keywords <const> = {
  ["and"] = 1, ["break"] = 1, ["do"] = 1, ["else"] = 1, ["elseif"] = 1, ["end"] = 1, ["false"] = 1, ["for"] = 1,
  ["function"] = 1, ["goto"] = 1, ["if"] = 1, ["in"] = 1, ["local"] = 1, ["nil"] = 1, ["not"] = 1, ["or"] = 1,
  ["repeat"] = 1, ["return"] = 1, ["then"] = 1, ["true"] = 1, ["until"] = 1, ["while"] = 1,
}

local function order(a, b)
  local ta, tb = type(a), type(b)
  if ta ~= tb then return ta < tb end
  if ta == "number" or ta == "string" then return a < b end
  return tostring(a) < tostring(b)
end

local function key_text(k)
  if type(k) == "string" and k:find "^[%a_][%w_]*$" and not keywords[k] then return k end
  return "[" .. (type(k) == "string" and string.format("%q", k) or tostring(k)) .. "]"
end

local value_text

--- "{ 1, 2, width = 3 }"
local function table_text(t, depth, open)
  if open[t] then return "{ itself }" end
  if depth > max_depth then return "{ ... }" end
  open[t] = true
  local parts, keys, shown = {}, {}, 0
  for i, v in ipairs(t) do
    if i <= max_items then parts[i] = value_text(v, depth + 1, open) end
    shown = i
  end
  for k in next, t do
    if not (math.type(k) == "integer" and k >= 1 and k <= shown) then keys[#keys + 1] = k end
  end
  table.sort(keys, order)
  for i = 1, math.min(#keys, max_items) do
    parts[#parts + 1] = key_text(keys[i]) .. " = " .. value_text(rawget(t, keys[i]), depth + 1, open)
  end
  if shown + #keys > #parts then parts[#parts + 1] = string.format("... %d more", shown + #keys - #parts) end
  open[t] = nil
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

function value_text(v, depth, open)
  local class = getmetatable(v)
  if type(v) == "string" then return depth > 1 and string.format("%q", v) or v end
  if type(v) == "table" and not (type(class) == "table" and class.__tostring) then return table_text(v, depth, open) end
  if type(v) == "userdata" and depth > 1 then return (tostring(v):match "^[^\n]*") end
  if type(v) == "function" then
    local name = names.of(v)
    return name and "function " .. name or "function"
  end
  return tostring(v)
end

--- One value as text, without a newline at the end.
function show.text(v) return value_text(v, 1, {}) end

return show
