--- Operations, the same on symbols (inside a block) and on tensors (outside).
--
-- Outside a block a state is a rank-1 tensor, or ph.batch(t) with one sample a row; a rank-2 tensor is
-- a parameter matrix. Both ways the row of the op table decides: symbols become nodes of the IR,
-- tensors are evaluated by the same kernels.

local domains = require "ph.lang.domains"
local iteration = require "ph.lang.iteration"
local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local op_table = require "ph.schema.op_table"
local schema = require "ph.schema"
local symbol = require "ph.lang.symbol"

local ops = {}

local Batch = { __name = "ph.batch" }
local Identity = { __name = "ph.identity" }
Identity.__index = Identity

local function is_tensor(v) return kinds.tag(v) == "ph.tensor" end
local function is_batch(v) return debug.getmetatable(v) == Batch end
local function is_identity(v) return debug.getmetatable(v) == Identity end
local function is_broken(v) return rawequal(v, kinds.broken) end

schema.describe("batch", "functions", "ph.batch(t)",
  "Outside a block: a tensor (n, d) as n states that go through channels together; with positions (n, positions, "
  .. "d) or (n, height, width, d).")

function ops.batch(t)
  local rank = is_tensor(t) and #t:shape() or 0
  if rank < 2 then
    schema.fail("batch", "expects a tensor (n, d), (n, positions, d) or (n, height, width, d), got %s",
      kinds.describe(t))
  end
  return setmetatable({ tensor = t }, Batch)
end

Batch.__index = { shape = function(self) return self.tensor:shape() end }
Batch.__tostring = function(self) return "batch of " .. tostring(self.tensor) end

--- The identity channel: multiplying by it leaves a value as it is and emits nothing.
function ops.identity(width)
  return setmetatable({ width = width }, Identity)
end

Identity.__tostring = function(self) return string.format("identity (%d, %d)", self.width, self.width) end

--- "matrix", "state" or nil for anything an operation does not take.
local function domain(v)
  if symbol.is(v) then return v.pos == 0 and "matrix" or "state" end
  if is_batch(v) then return "state" end
  if is_tensor(v) then
    local rank = #v:shape()
    return rank == 2 and "matrix" or rank == 1 and "state" or nil
  end
end

local function eager_argument(row, i, v)
  local d = domain(v)
  if not d then
    schema.fail(row.name, "argument %d must be a tensor of rank 1 or 2 or ph.batch(t), got %s", i, kinds.describe(v))
  end
  local is_parameter = op_table.is_parameter(row, i)
  if is_batch(v) then return v.tensor, not is_parameter end
  if is_parameter or d == "matrix" then return v, false end
  return v:reshape { 1, v:count() }, true
end

--- Refuses what the op is not meant for. Inside a block nothing is known of a matrix but how it was made; there the
-- certificate says what that means.
local function check_domains(row, tensors)
  for i, t in ipairs(tensors) do
    local problem = domains.problem(row.args:sub(i, i), t)
    if problem then schema.fail(row.name, "the matrix is %s", problem) end
  end
end

local function eager(name, args, attrs)
  local tensors, samples, batched, single = {}, {}, false, false
  for i, v in ipairs(args) do
    tensors[i], samples[i] = eager_argument(op_table.row(name), i, v)
    batched = batched or is_batch(v)
    single = single or (samples[i] and not is_batch(v))
  end
  check_domains(op_table.row(name), tensors)
  local ok, out = pcall(native.op, name, tensors, attrs or {}, samples)
  if not ok then schema.fail(name, "%s", symbol.without_name(name, out)) end
  if batched then return ops.batch(out) end
  return single and out:reshape { out:count() } or out
end

--- c when t is c times the identity, or nil.
local function multiple_of_identity(t)
  local shape = t:shape()
  if #shape ~= 2 or shape[1] ~= shape[2] or shape[1] == 0 then return nil end
  local c = t:at(1, 1)
  local rest = t:cast "f64" - native.eye(shape[1]) * c
  return rest:min() == 0 and rest:max() == 0 and c or nil
end

local function eye_node(n) return symbol.node("eye", {}, { n = n }) end

--- What stands in a block for a value that was made outside of it: of constants the IR can say the identity and its
-- multiples.
local function lifted(name, i, v)
  if is_identity(v) then return eye_node(v.width) end
  if not is_tensor(v) then return v end
  local c = multiple_of_identity(v)
  if not c then
    schema.fail(name, "argument %d is %s from outside the block; of these a block takes multiples of the identity "
      .. "only: declare a ph.param", i, kinds.describe(v))
  end
  return c == 1 and eye_node(v:shape()[1]) or symbol.node("scale", { eye_node(v:shape()[1]) }, { by = c })
end

local function is_symbolic(args)
  for _, v in ipairs(args) do
    if symbol.is(v) then return true end
  end
  return #args == 0 and symbol.current() ~= nil
end

--- Applies an op of the table to symbols or tensors.
function ops.call(name, args, attrs)
  local symbolic, given = is_symbolic(args), {}
  for i, v in ipairs(args) do
    if is_broken(v) then return v end
    given[i] = symbolic and lifted(name, i, v) or is_identity(v) and native.eye(v.width) or v
  end
  return (symbolic and symbol.node or eager)(name, given, attrs)
end

--- Multiplies by a number.
function ops.scale(by, v)
  if by ~= by or by == math.huge or by == -math.huge then
    schema.fail("scale", "the factor must be finite, got %s", kinds.describe(by))
  end
  if iteration.is(by) and not symbol.is(v) then
    schema.fail("scale", "a number of the iteration scales values of its block, got %s", kinds.describe(v))
  end
  if by == 1 then return v end
  return ops.call("scale", { v }, { by = by })
end

--- A number, or one of every iteration.
local function is_number(v) return type(v) == "number" or iteration.is(v) end

local function operand(name, v)
  if is_number(v) or is_broken(v) or is_identity(v) or domain(v) then return v end
  if type(v) == "table" and kinds.tag(v) == "ph.layer" then
    schema.fail(name, "a layer is a function: call it, as in ph.linear(d)(z)")
  end
  schema.fail(name, "cannot take %s", kinds.describe(v))
end

--- The value that the identity multiplies; `side` is the dimension it must fit: rows
-- from the left, columns from the right.
local function times_identity(one, v, side)
  if is_identity(v) then return v end
  if is_number(v) then return ops.scale(v, ops.eye(one.width)) end
  local is_state = domain(v) == "state"
  if is_state and side == "cols" then schema.fail("multiply", "a matrix stands left of the state: write M * z") end
  local shape = symbol.is(v) and { v.rows, v.cols } or v:shape()
  local size = (is_state or side == "cols") and shape[#shape] or shape[1]
  if size ~= one.width then
    schema.fail("multiply", "the identity of width %d does not fit a %s of %d", one.width, domain(v), size)
  end
  return v
end

--- a * b: matrix by matrix, matrix by state, number by anything.
function ops.times(a, b)
  a, b = operand("multiply", a), operand("multiply", b)
  if is_broken(a) or is_broken(b) then return kinds.broken end
  if is_identity(a) then return times_identity(a, b, "rows") end
  if is_identity(b) then return times_identity(b, a, "cols") end
  if is_number(a) then return ops.scale(a, b) end
  if is_number(b) then return ops.scale(b, a) end
  local da, db = domain(a), domain(b)
  if da == "matrix" then return ops.call(db == "matrix" and "matmul" or "apply", { a, b }) end
  if db == "matrix" then schema.fail("multiply", "a matrix stands left of the state: write M * z") end
  schema.fail("multiply", "two states have no product; ph.mul(a, b) multiplies elementwise")
end

local function number_in(name, a, b)
  if is_number(a) or is_number(b) then
    schema.fail(name, "a number and a value inside a stream do not add; use a bias (ph.affine)")
  end
end

--- Is v a parameter vector, and w a state that it acts on?
local function is_vector_on(v, w)
  if domain(v) ~= "matrix" or domain(w) ~= "state" then return false end
  return (symbol.is(v) and v.rows or v:shape()[1]) == 1
end

--- a + b: two values of one shape, or a state and a parameter vector (bias).
function ops.plus(a, b)
  a, b = operand("add", a), operand("add", b)
  number_in("add", a, b)
  if is_broken(a) or is_broken(b) then return kinds.broken end
  if is_vector_on(b, a) then return ops.call("bias", { a, b }) end
  if is_vector_on(a, b) then return ops.call("bias", { b, a }) end
  return ops.call("add", { a, b })
end

function ops.minus(a, b)
  a, b = operand("sub", a), operand("sub", b)
  number_in("sub", a, b)
  return ops.call("sub", { a, b })
end

function ops.negate(v) return ops.scale(-1, operand("scale", v)) end

function ops.over(a, b)
  if not is_number(b) then
    schema.fail("divide", "only a number can divide a value; ph.div(x, y) divides elementwise, ph.solve(A, B) solves "
      .. "A X = B")
  end
  if b == 0 then schema.fail("divide", "by zero") end
  return ops.scale(1 / b, operand("divide", a))
end

-- A tensor on the left leaves the operation to these (vm/bind_tensor_math.c).
for _, class in ipairs { symbol.metatable, Batch, Identity } do
  class.__mul, class.__add, class.__sub, class.__unm, class.__div = ops.times, ops.plus, ops.minus, ops.negate, ops.over
end

--- The identity matrix (n, n): a value of the block inside one, a tensor outside.
function ops.eye(n)
  local size, reason = kinds.integer(n, { min = 1, max = 8192 })
  if not size then schema.fail("eye", "n %s", reason) end
  return ops.call("eye", {}, { n = size })
end

--- A parameter: a symbol inside a block; outside, a tensor drawn from (seed, name).
function ops.parameter(base, rows, cols, init, seed)
  local trace = symbol.current()
  if trace then
    if seed then schema.fail("param", "'seed' has a meaning only outside a block; inside, the run's seed decides") end
    return symbol.parameter(trace, base, rows, cols, init)
  end
  if init.kind == "normal" or init.kind == "uniform" then
    return native.random(init.kind, seed or 0, base, { rows, cols }, init.value, "f64")
  end
  local value = init.kind == "zeros" and 0 or init.kind == "ones" and 1 or init.value
  local t = native.tensor({ rows, cols }, "f64")
  for i = 1, rows do
    for j = 1, cols do t:put(value, i, j) end
  end
  return t
end

--- Width of a value: features of a state, rows of a matrix.
function ops.width(name, v)
  if symbol.is(v) then return v.pos == 0 and v.rows or v.cols end
  if not domain(v) then schema.fail(name, "expects a state, got %s", kinds.describe(v)) end
  local shape = v:shape()
  return shape[#shape]
end

ops.domain, ops.operand, ops.is_vector_on = domain, operand, is_vector_on

return ops
