--- Symbols: what a block's values are while it is traced into the IR.
--
-- A block is a Lua function; it is called once with symbols, and every operation on them becomes a node. A symbol knows
-- its shape: pos = 0 is a parameter matrix (rows, cols), pos > 0 a state of `pos` positions and `cols` features. Shape
-- errors are found here, where the spec's line is known; the rules are those of the op table (core/ir/op_shape.c).
-- A block has no control flow over values: it is traced once and runs for every layer and every sample.

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
  return string.format("states of %d positions and width %d", s.pos, s.cols)
end

local shape_text <const> = symbol.shape_text

local function want(op, i, what, s)
  schema.fail(op, "argument %d must be %s, got a %s", i, what, shape_text(s))
end

local function mismatch(op, a, b)
  schema.fail(op, "a %s does not fit a %s", shape_text(a), shape_text(b))
end

local function matrix(op, i, s) if s.pos ~= 0 then want(op, i, "a matrix", s) end end
local function state(op, i, s) if s.pos == 0 then want(op, i, "a state", s) end end

local function square(op, s)
  if s.pos ~= 0 or s.rows ~= s.cols then want(op, 1, "a square matrix", s) end
  return 0, s.rows, s.cols
end

local function same(_, s) return s.pos, s.rows, s.cols end

local function pair(op, a, b)
  if a.pos ~= b.pos or a.rows ~= b.rows or a.cols ~= b.cols then mismatch(op, a, b) end
  return a.pos, a.rows, a.cols
end

local function with_vectors(op, z, ...)
  state(op, 1, z)
  for i, v in ipairs { ... } do
    if v.pos ~= 0 or v.rows ~= 1 then want(op, i + 1, "a parameter vector (1, d)", v) end
    if v.cols ~= z.cols then mismatch(op, z, v) end
  end
  return z.pos, 1, z.cols
end

--- Output shape (pos, rows, cols) of each op; ops that are not named keep the shape of their argument.
local shape_rules <const> = {
  skew = square, cayley = square, damping = square,
  gram = function(op, l) matrix(op, 1, l) return 0, l.rows, l.rows end,
  guard = function(op, l) matrix(op, 1, l) return 0, l.rows, l.cols end,
  transpose = function(op, m) matrix(op, 1, m) return 0, m.cols, m.rows end,
  matmul = function(op, a, b)
    matrix(op, 1, a)
    matrix(op, 2, b)
    if a.cols ~= b.rows then mismatch(op, a, b) end
    return 0, a.rows, b.cols
  end,
  apply = function(op, m, z)
    matrix(op, 1, m)
    state(op, 2, z)
    if m.cols ~= z.cols then mismatch(op, m, z) end
    return z.pos, 1, m.rows
  end,
  add = pair, sub = pair, mul = pair,
  bias = with_vectors, layernorm = with_vectors,
}

local rows_by_name

--- The row of the op table for a name, or nil.
function symbol.op(name)
  if not rows_by_name then
    rows_by_name = {}
    for _, row in ipairs(native.ops()) do rows_by_name[row.name] = row end
  end
  return rows_by_name[name]
end

local function make(trace, op, args, attrs, pos, rows, cols)
  return setmetatable({ trace = trace, op = op, args = args, attrs = attrs or {}, pos = pos, rows = rows, cols = cols }, Symbol)
end

--- A leaf of the current trace: `state` or `input`.
function symbol.leaf(trace, op, pos, cols)
  return make(trace, op, {}, nil, pos, 1, cols)
end

local most_numbers <const> = 1 << 26 -- as the IR has it

--- A parameter of the current trace. base: its letter; init: a ph.init.
function symbol.parameter(trace, base, rows, cols, init)
  if rows * cols > most_numbers then schema.fail("parameter", "a matrix of %d x %d numbers; at most %d fit", rows, cols, most_numbers) end
  local s = { trace = trace, op = "param", args = {}, attrs = {}, pos = 0, rows = rows, cols = cols, base = base, init = init }
  return setmetatable(s, Symbol)
end

--- An operation on symbols becomes a node of the current trace.
function symbol.node(op, args, attrs)
  local trace = symbol.current()
  for i, a in ipairs(args) do
    if not symbol.is(a) then
      schema.fail(op, "argument %d is %s; inside a block only its own values, parameters and numbers can be used", i, kinds.describe(a))
    end
    if not rawequal(a.trace, trace) then schema.fail(op, "argument %d is a value of another block; a block sees only its own", i) end
  end
  return make(trace, op, args, attrs, (shape_rules[op] or same)(op, table.unpack(args)))
end

local function refuse(what, instead)
  return function() schema.fail("block", "%s of a value inside a block: it is traced once for all samples and layers%s", what, instead or "") end
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
  schema.fail("block", "indexing ('%s') of a value inside a block: it is traced once for all samples and layers", tostring(k))
end

function Symbol:__tostring()
  return string.format("%s: %s", self.op, shape_text(self))
end

symbol.metatable = Symbol

return symbol
