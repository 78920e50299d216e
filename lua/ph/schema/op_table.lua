--- The rows of the op table (core/ir/op.h): `rows` in order, and each by name.

local native = require "ph.native"

local op_table = { rows = native.ops() }

local by_name = {}
for _, row in ipairs(op_table.rows) do by_name[row.name] = row end

--- The row of an op, or nil.
function op_table.row(name) return by_name[name] end

--- Whether argument i of a row is a parameter value whatever its rank; nil when either will do.
function op_table.is_parameter(row, i)
  local kind = row.args:sub(i, i)
  if kind == "x" or kind == "a" then return nil end
  return kind ~= "s"
end

return op_table
