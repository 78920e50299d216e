--- Selectors: which values of a grid axis a rule speaks of. A selector is data:
--
--   { is = v }  { any = { v, ... } }  { except = { v, ... } }  { at_least = n }  { at_most = n }  { each = true }
--
-- A binding is a table axis -> value, made by `every`, `some` and aggregates over an axis; it holds for everything
-- inside that does not name the axis itself.

local sorted_keys = require "ph.util.sorted_keys"

local select = {}

local function among(list, v)
  for _, x in ipairs(list) do
    if x == v then return true end
  end
  return false
end

--- True when the selector takes the value.
function select.takes(selector, v)
  if selector.is ~= nil then return v == selector.is end
  if selector.any then return among(selector.any, v) end
  if selector.except then return not among(selector.except, v) end
  if selector.at_least then return type(v) == "number" and v >= selector.at_least end
  if selector.at_most then return type(v) == "number" and v <= selector.at_most end
  return selector.each == true
end

--- The cells that a filter and a binding leave, in grid order. An axis named by the filter hides the binding.
function select.cells(cells, where, binding)
  local out = {}
  for _, cell in ipairs(cells) do
    local ok = true
    for axis, selector in pairs(where or {}) do
      if not select.takes(selector, cell.values[axis]) then ok = false break end
    end
    for axis, v in pairs(ok and binding or {}) do
      if not (where and where[axis]) and cell.values[axis] ~= v then ok = false break end
    end
    if ok then out[#out + 1] = cell end
  end
  return out
end

--- The distinct values of an axis among some cells, in grid order.
function select.values(cells, axis)
  local out, seen = {}, {}
  for _, cell in ipairs(cells) do
    local v = cell.values[axis]
    if v ~= nil and not seen[v] then
      seen[v] = true
      out[#out + 1] = v
    end
  end
  return out
end

local function extended(binding, axis, v)
  local out = {}
  for k, x in pairs(binding or {}) do out[k] = x end
  out[axis] = v
  return out
end

--- The bindings that `over` (axis -> selector) makes of one binding: all combinations that the grid has, in grid order,
-- axes by name.
function select.bindings(cells, over, binding)
  local axes = sorted_keys(over)
  local out = { binding or {} }
  for _, axis in ipairs(axes) do
    local grown = {}
    for _, b in ipairs(out) do
      for _, v in ipairs(select.values(select.cells(cells, { [axis] = over[axis] }, b), axis)) do
        grown[#grown + 1] = extended(b, axis, v)
      end
    end
    out = grown
  end
  return out, axes
end

return select
