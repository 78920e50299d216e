--- Numbers that depend on the iteration: t, the third (or, undriven, the second) argument of a block, counts 0, 1,
-- ..., N - 1, and its arithmetic folds into a table of N numbers, written into the IR once. A table scales values, or
-- gives an op's attribute (the step of a damping) another value at each iteration.

local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local schema = require "ph.schema"

local iteration = {}

local Table = { __name = "ph.iteration" }
Table.__index = function(_, key)
  schema.fail("block", "indexing ('%s') of the number of the iteration: it is a symbol, not a list", tostring(key))
end

--- Is v a table of numbers, one for each iteration?
function iteration.is(v) return debug.getmetatable(v) == Table end

local function new(values) return setmetatable(values, Table) end

--- The numbers 0 .. n - 1.
function iteration.count(n)
  local values = {}
  for k = 1, n do values[k] = k - 1.0 end
  return new(values)
end

local function finite(name, v)
  if v ~= v or v == math.huge or v == -math.huge then
    schema.fail(name, "gives %s at some iteration; a number of every iteration must be finite", kinds.describe(v))
  end
  return v
end

--- f(a, b) at each iteration, for numbers and tables.
local function combine(name, f)
  return function(a, b)
    if not (type(a) == "number" or iteration.is(a)) or not (type(b) == "number" or iteration.is(b)) then
      local other = iteration.is(a) and b or a
      local class = debug.getmetatable(other)
      local meta = type(class) == "table" and rawget(class, "__" .. name)
      if meta then return meta(a, b) end
      schema.fail(name, "cannot take %s", kinds.describe(other))
    end
    local n, values = iteration.is(a) and #a or #b, {}
    for k = 1, n do
      values[k] = finite(name, f(type(a) == "number" and a or rawget(a, k), type(b) == "number" and b or rawget(b, k)))
    end
    return new(values)
  end
end

Table.__add = combine("add", function(a, b) return a + b end)
Table.__sub = combine("sub", function(a, b) return a - b end)
Table.__mul = combine("mul", function(a, b) return a * b end)
Table.__div = combine("div", function(a, b) return a / b end)
Table.__pow = combine("pow", function(a, b)
  if math.type(b) ~= "integer" and b ~= math.floor(b) then
    schema.fail("pow", "the power must be a whole number, got %s", kinds.describe(b))
  end
  local out = 1.0
  for _ = 1, math.abs(b) do out = out * a end
  return b < 0 and 1 / out or out
end)
function Table.__unm(a) return 0 - a end

local function refuse(what)
  return function()
    schema.fail("block", "%s of the number of the iteration: a block is traced once for all iterations", what)
  end
end
Table.__eq, Table.__lt, Table.__le = refuse "comparison", refuse "comparison", refuse "comparison"
Table.__concat, Table.__call = refuse "concatenation", refuse "a call"
Table.__tostring = function(self) return string.format("table of %d numbers, one an iteration", #self) end

--- A function of the op table of one argument, at each iteration.
function iteration.apply(op, v)
  local values = {}
  for k = 1, #v do values[k] = rawget(v, k) end
  local out = native.op(op, { native.from({ values }, "f64") }, {}, { false }):reshape { #v }:totable()
  for k = 1, #out do finite(op, out[k]) end
  return new(out)
end

--- The value of an attribute: a number, or the same check (number -> number, or nil and the reason) at each iteration.
function iteration.check(v, check)
  for k = 1, #v do
    local _, reason = check(rawget(v, k))
    if reason then return nil, string.format("%s, at iteration %d", reason, k - 1) end
  end
  return v
end

--- The number that a table holds at every iteration, or nil when it holds several.
function iteration.constant(v)
  local first = rawget(v, 1)
  for k = 2, #v do
    if rawget(v, k) ~= first then return nil end
  end
  return first
end

--- The numbers with all their digits; the host writes them in the IR's shortest form.
function iteration.text(v)
  local words, format = {}, string.format
  for k = 1, #v do words[k] = format("%.17g", rawget(v, k)) end
  return table.concat(words, " ")
end

--- In place of t where the number of iterations comes from the data: every use is refused.
local Unknown = { __name = "ph.iteration" }
iteration.unknown = setmetatable({}, Unknown)
local function unknown()
  schema.fail("block", "uses the number of the iteration, but how many there are comes from the data: "
    .. "give the stream depth or steps")
end
for _, event in ipairs { "add", "sub", "mul", "div", "pow", "unm", "index", "call", "concat", "eq", "lt", "le" } do
  Unknown["__" .. event] = unknown
end

return iteration
