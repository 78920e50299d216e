--- Validation values that say which epoch of a run and which candidate of a cell is best, and in which direction.
--
-- Nothing here sees test data: choosing by it is refused.

local kinds = require "ph.schema.kinds"
local suggest = require "ph.util.suggest"

local monitor = {}

--- better: "higher" or "lower"; needs: what a task must have for it ("labels"), nil: nothing.
monitor.rows = {
  { name = "val.accuracy", better = "higher", needs = "labels" },
  { name = "val.loss", better = "lower" },
}

local by_name, names = {}, {}
for i, row in ipairs(monitor.rows) do by_name[row.name], names[i] = row, row.name end

--- The row of a name, or nil.
function monitor.get(name) return by_name[name] end

--- Is v better than `best` (nil: than nothing)? better: "higher" or "lower". A value that is not a number is never
-- better.
function monitor.is_better(better, v, best)
  if v ~= v then return false end
  if best == nil then return true end
  if better == "lower" then return v < best end
  return v > best
end

--- The kind of a key whose value is one of the names.
function kinds.monitor(v)
  if by_name[v] then return v end
  local list = table.concat(names, ", ")
  if type(v) == "string" and v:lower():find("test", 1, true) then
    return nil, string.format("must be one of %s: choosing by test data is refused, got '%s'", list, v)
  end
  local hint = type(v) == "string" and suggest.hint(v, names) or ""
  return nil, string.format("must be one of %s, got %s%s", list, kinds.describe(v), hint)
end

return monitor
