--- Symbols: what a block's values are while it is traced into the IR.
--
-- A block is a Lua function; it is called once with symbols, and every operation on them becomes a node. A symbol knows
-- its shape: pos = 0 is a parameter matrix (rows, cols), pos > 0 a state of `pos` positions, `wide` of them in
-- a line, and `cols` features. Shape errors are found here, where the spec's line is known; the rules are
-- those of the op table, asked of the host. A block has no control flow over values: it is traced once and
-- runs for every layer and every sample.

local iteration = require "ph.lang.iteration"
local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local schema = require "ph.schema"
local where = require "ph.schema.where"

local symbol = {}

local Symbol = { __name = "ph.symbol" }
local traces = {} -- stack of traces; the innermost is last

--- The trace being recorded, or nil outside a block.
function symbol.current() return traces[#traces] end

--- Is v a symbol?
function symbol.is(v) return debug.getmetatable(v) == Symbol end

--- Runs `f` while `trace` records. Errors pass through; the trace is left in any case.
function symbol.record(trace, f, ...)
  traces[#traces + 1] = trace
  local results = table.pack(pcall(where.of, f, f, ...))
  traces[#traces] = nil
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- "matrix (3, 4)", "state of width 32".
function symbol.shape_text(s)
  if s.pos == 0 then return string.format("matrix (%d, %d)", s.rows, s.cols) end
  if s.pos == 1 then return string.format("state of width %d", s.cols) end
  local positions = s.wide > 1 and string.format("%d x %d", s.pos // s.wide, s.wide) or s.pos
  return string.format("state of %s positions and width %d", positions, s.cols)
end

local function make(s, shape)
  s.pos, s.wide, s.rows, s.cols = shape.pos, shape.wide, shape.rows, shape.cols
  return setmetatable(s, Symbol)
end

--- A leaf of the current trace: `state` or `input`. shape = { pos, wide, cols }.
function symbol.leaf(trace, op, shape)
  return make({ trace = trace, op = op, args = {}, attrs = {} },
    { pos = shape.pos, wide = shape.wide, rows = 1, cols = shape.cols })
end

local most_numbers <const> = native.ir_limits().numbers

--- A parameter of the current trace. base: its letter; init: a ph.init.
function symbol.parameter(trace, base, rows, cols, init)
  if rows * cols > most_numbers then
    schema.fail("parameter", "a matrix of %d x %d numbers; at most %d fit", rows, cols, most_numbers)
  end
  local s = { trace = trace, op = "param", args = {}, attrs = {}, base = base, init = init }
  return make(s, { pos = 0, wide = 0, rows = rows, cols = cols })
end

--- A message of the host about an op, without the op's name at its start.
function symbol.without_name(op, message) return (tostring(message):gsub("^" .. op .. ": ", "")) end

--- Attributes at the first iteration: shapes do not depend on the others.
local function first_of(attrs)
  local out = {}
  for name, v in pairs(attrs or {}) do out[name] = iteration.is(v) and rawget(v, 1) or v end
  return out
end

--- An operation on symbols becomes a node of the current trace.
function symbol.node(op, args, attrs)
  local trace = symbol.current()
  for i, a in ipairs(args) do
    if type(a) == "number" then
      schema.fail(op, "argument %d must be a value of the block, got the number %s", i, kinds.describe(a))
    end
    if not symbol.is(a) then
      schema.fail(op, "argument %d is %s; inside a block only its own values, parameters and numbers can be used", i,
        kinds.describe(a))
    end
    if not rawequal(a.trace, trace) then
      schema.fail(op, "argument %d is a value of another block; a block sees only its own", i)
    end
  end
  local shape, problem = native.op_shape(op, args, first_of(attrs))
  if not shape then schema.fail(op, "%s", symbol.without_name(op, problem)) end
  return make({ trace = trace, op = op, args = args, attrs = attrs or {} }, shape)
end

local function refuse(what, instead)
  return function()
    schema.fail("block", "%s of a value inside a block: it is traced once for all samples and layers%s", what,
      instead or "")
  end
end

-- Operators are set by ph.lang.ops; what has no meaning on a symbol is refused here.
Symbol.__eq = refuse("comparison")
Symbol.__lt = refuse("comparison")
Symbol.__le = refuse("comparison")
Symbol.__len = refuse("the length")
Symbol.__concat = refuse("concatenation")
Symbol.__pow = refuse("a power", "; ph.mul(a, b) multiplies elementwise")
Symbol.__mod = refuse("the remainder")
Symbol.__idiv = refuse("floor division")
Symbol.__newindex = refuse("assignment to an element")
Symbol.__call = refuse("a call")

function Symbol.__index(_, k)
  schema.fail("block", "indexing ('%s') of a value inside a block: it is traced once for all samples and layers",
    tostring(k))
end

function Symbol:__tostring()
  return string.format("%s: %s", self.op, symbol.shape_text(self))
end

symbol.metatable = Symbol

return symbol
