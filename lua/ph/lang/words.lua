--- The functions of the op table that a spec calls by name: ph.tanh(x), ph.mul(x, y), ph.slice(x, from, to) ...
--
-- Arguments come first, attributes after them in the order of the row; on symbols and on tensors alike (ph.lang.ops).

local iteration = require "ph.lang.iteration"
local kinds = require "ph.schema.kinds"
local op_table = require "ph.schema.op_table"
local ops = require "ph.lang.ops"
local schema = require "ph.schema"

local words = { names = {} }
local operand <const> = ops.operand

local matrices <const>, values <const> = { "A", "B" }, { "x", "y" }
local letters <const> = { v = { "v", "w" }, x = values, a = values, s = values }

--- "ph.solve(A, B)", "ph.slice(x, from, to)"; "..." where more arguments are joined alike.
local function usage(row)
  local list, seen = {}, {}
  if #row.args == 3 then list[1] = "c" end -- a condition comes first
  for i = #list + 1, #row.args do
    local pool = letters[row.args:sub(i, i)] or matrices
    seen[pool] = (seen[pool] or 0) + 1
    list[i] = pool[seen[pool]]
  end
  if row.gain == "join" then list[#list + 1] = "..." end
  table.move(row.attrs, 1, #row.attrs, #list + 1, list)
  return string.format("ph.%s(%s)", row.name, table.concat(list, ", "))
end

local function take_attrs(row, given)
  local attrs = {}
  for i, key in ipairs(row.attrs) do
    local v = given[#row.args + i]
    if type(v) ~= "number" then schema.fail(row.name, "'%s' must be a number, got %s", key, kinds.describe(v)) end
    attrs[key] = math.tointeger(v) or v
  end
  return attrs
end

--- Arguments first, then attributes in their order.
local function word(row)
  return function(...)
    local given, args, most = table.pack(...), {}, #row.args + #row.attrs
    -- a word may stand for a block, which is called with its iteration too
    if given.n == most + 1 and iteration.is(given[given.n]) then given.n = most end
    if given.n > most then schema.fail(row.name, "is called %s, got %d arguments", usage(row), given.n) end
    for i = 1, #row.args do args[i] = operand(row.name, given[i]) end
    if #args == 1 and iteration.is(args[1]) then return iteration.apply(row.name, args[1]) end
    return ops.call(row.name, args, take_attrs(row, given))
  end
end

--- Two or more values side by side, or on top of each other.
local function joining_word(row)
  return function(...)
    local given = table.pack(...)
    if given.n < 2 then schema.fail(row.name, "joins at least 2 values, got %d: %s", given.n, usage(row)) end
    local out = operand(row.name, given[1])
    for i = 2, given.n do out = ops.call(row.name, { out, operand(row.name, given[i]) }) end
    return out
  end
end

for _, row in ipairs(op_table.rows) do
  if row.word then
    words.names[#words.names + 1] = row.name
    words[row.name] = (row.gain == "join" and joining_word or word)(row)
    schema.describe(row.name, "functions", usage(row), row.doc)
  end
end

--- ph.mul(x, y); a parameter vector stretches the features of a state.
local mul <const> = words.mul
function words.mul(...)
  local a, b = ...
  if ops.is_vector_on(a, b) then return words.stretch(b, a) end
  if ops.is_vector_on(b, a) then return words.stretch(a, b) end
  return mul(...)
end

--- ph.solve(A, B); of a state z the inverse of A, made once a layer, acts on it.
local solve <const> = words.solve
function words.solve(...)
  local a, b = ...
  if ops.domain(b) == "state" then return ops.times(words.inverse(a), b) end
  return solve(...)
end

--- ph.fold(x, 4) on one axis, ph.fold(x, 2, 2) on two; ph.unfold undoes it.
for _, name in ipairs { "fold", "unfold" } do
  local full <const> = words[name]
  words[name] = function(x, lines, wide, ...) return full(x, lines, wide or 1, ...) end
end

schema.describe("cayley_of", "functions", "ph.cayley_of(S)",
  "C = (I + S/2)^-1 (I - S/2) of a given skew matrix S.")
function words.cayley_of(s) return ops.call("cayley", { operand("cayley_of", s) }) end

return words
