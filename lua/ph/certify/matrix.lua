--- What is known of a parameter matrix: by construction (`up` bounds its spectral norm, `lo` its smallest singular
-- value, `volume` = { low, high } brackets ln|det|), and, when weights are given, the matrix itself in float64, from
-- which the same is read exactly. `meter` is the first-order figure of ln|det| that dampings, transports and factors
-- have: - step tr R for each damping; nil where there is none.
--
-- The rule of an op is that of its gain in the op table; what an op is meant for (a skew argument, a positive
-- semidefinite one) must hold by construction (docs/laws.md, 1.3 and 5).

local native = require "ph.native"
local la = native.la

local matrix = {}

local Matrix = {}
Matrix.__index = Matrix

--- Room for the rounding of an SVD and of the products before it, so that a bound stays a bound.
local slack <const> = 1e-12

--- x y with 0 times anything 0: an absent term stays absent however large its factor may be.
function matrix.times(x, y)
  if x == 0 or y == 0 then return 0.0 end
  return x * y
end

local times = matrix.times

--- sqrt(x^2 + y^2)
function matrix.hypot(x, y) return math.sqrt(x * x + y * y) end

local function new(fields)
  fields.up, fields.lo = fields.up or math.huge, fields.lo or 0.0
  fields.volume = fields.volume or { -math.huge, math.huge }
  return setmetatable(fields, Matrix)
end

--- A parameter: nothing is known of it but its value, if that is given.
function matrix.parameter(rows, cols, tensor) return new { rows = rows, cols = cols, tensor = tensor } end

--- The identity of a state's width.
function matrix.identity(width, concrete)
  return new {
    rows = width, cols = width, up = 1.0, lo = 1.0, volume = { 0.0, 0.0 }, meter = 0.0, one = true, psd = true,
    tensor = concrete and native.eye(width) or nil,
  }
end

--- Singular values, exact up to rounding; nil without weights. A vector's is its norm.
function Matrix:singular()
  if not self.tensor then return nil end
  if native.interrupted() then error("interrupted", 0) end -- LAPACK is deaf while it is at one matrix
  if not self.values then self.values = la.svd(self.tensor):totable() end
  return self.values
end

--- Upper bound of the spectral norm.
function Matrix:norm()
  local s = self:singular()
  return s and math.min(self.up, s[1] * (1 + slack)) or self.up
end

--- Lower bound of the smallest singular value.
function Matrix:least()
  local s = self:singular()
  return s and math.max(self.lo, s[#s] * (1 - slack) - slack) or self.lo
end

--- Largest |entry|.
function Matrix:entry()
  if self.tensor then return math.max(math.abs(self.tensor:min()), math.abs(self.tensor:max())) end
  return self.up
end

--- ln|det| as a bracket.
function Matrix:log_volume()
  if self.tensor and self.rows == self.cols then
    local v = la.logdet(self.tensor)
    return { v, v }
  end
  return self.volume
end

local function both(a, b, f) return a.tensor and b.tensor and f(a.tensor, b.tensor) or nil end

--- A B; exact when both are known.
function matrix.product(a, b)
  if b.one then return a end
  if a.one then return b end
  local square = a.rows == a.cols and b.rows == b.cols
  return new {
    rows = a.rows, cols = b.cols, up = times(a.up, b.up), lo = square and a.lo * b.lo or 0.0,
    volume = square and { a.volume[1] + b.volume[1], a.volume[2] + b.volume[2] } or nil,
    meter = square and a.meter and b.meter and a.meter + b.meter or nil,
    tensor = both(a, b, function(x, y) return x * y end),
  }
end

--- Lower bound of the smallest singular value of A + sign B. A skew term leaves a positive semidefinite one its
-- quadratic form, and those of two positive semidefinite ones add up.
local function least_of_sum(a, b, sign)
  local least = math.max(0, a.lo - b.up, b.lo - a.up)
  if a.psd and b.skew then least = math.max(least, a.lo) end
  if sign > 0 and a.skew and b.psd then least = math.max(least, b.lo) end
  if sign > 0 and a.psd and b.psd then least = math.max(least, a.lo + b.lo) end
  return least
end

--- A + sign B.
function matrix.sum(a, b, sign)
  return new {
    rows = a.rows, cols = a.cols, up = a.up + b.up, lo = least_of_sum(a, b, sign),
    psd = sign > 0 and a.psd and b.psd, skew = a.skew and b.skew,
    tensor = both(a, b, function(x, y) return sign > 0 and x + y or x - y end),
  }
end

--- The diagonal matrix of a vector.
function matrix.diagonal(v)
  local t = v.tensor and native.op("diag", { v.tensor }, {})
  return new { rows = v.cols, cols = v.cols, up = v:entry(), tensor = t }
end

--- A on top of B; nil stands for zeros, of as many rows as `rows` says.
function matrix.on_top(a, b, rows)
  local known = a or b
  local concrete = (not a or a.tensor) and (not b or b.tensor)
  local function part(m, i) return m and m.tensor or native.tensor({ rows[i], known.cols }, "f64") end
  local up = matrix.hypot(a and a.up or 0.0, b and b.up or 0.0)
  return new {
    rows = rows[1] + rows[2], cols = known.cols, up = up,
    tensor = concrete and native.op("vstack", { part(a, 1), part(b, 2) }, {}) or nil,
  }
end

--- Rows `from` to `to` of A.
function matrix.some_rows(a, from, to)
  local columns = a.tensor and native.op("slice", { a.tensor:transpose() }, { from = from, to = to })
  return new { rows = to - from + 1, cols = a.cols, up = a.up, tensor = columns and columns:transpose() }
end

--- c A.
function matrix.scaled(a, c)
  local size = math.abs(c)
  local shift = a.rows == a.cols and (size > 0 and a.rows * math.log(size) or -math.huge)
  return new {
    rows = a.rows, cols = a.cols, up = times(size, a.up), lo = size * a.lo, psd = a.psd and c >= 0, skew = a.skew,
    volume = shift and { a.volume[1] + shift, a.volume[2] + shift },
    meter = shift and a.meter and a.meter + shift, tensor = a.tensor and a.tensor * c,
  }
end

-- ---- rules by gain: f(out, args, attrs) says what is known of out ----

local rules = {}

function rules.product(_, args) return matrix.product(args[1], args[2]) end
function rules.sum(_, args) return matrix.sum(args[1], args[2], 1) end
function rules.difference(_, args) return matrix.sum(args[1], args[2], -1) end
function rules.scale(_, args, attrs) return matrix.scaled(args[1], attrs.by) end

--- The norm of an elementwise product is at most the product of the norms (Schur).
function rules.schur(out, args)
  out.up = times(args[1].up, args[2].up)
  return out
end

function rules.skew(out)
  out.skew = true
  return out
end

function rules.transpose(out, args)
  local a = args[1]
  out.up, out.lo, out.psd, out.skew, out.volume, out.meter = a.up, a.lo, a.psd, a.skew, a.volume, a.meter
  return out
end

function rules.gram(out, args)
  out.up, out.psd = args[1].up ^ 2, true
  return out
end

function rules.clip(out, args, attrs)
  out.up = math.min(args[1].up, math.sqrt(attrs.budget / attrs.step))
  return out
end

function rules.orthogonal(out)
  out.up, out.lo, out.volume, out.meter = 1.0, 1.0, { 0.0, 0.0 }, 0.0
  return out
end

local function trace(tensor)
  local sum = 0.0
  for k = 1, tensor:shape()[1] do sum = sum + tensor:at(k, k) end
  return sum
end

function rules.contraction(out, args, attrs)
  local x = attrs.step * args[1].up -- largest eigenvalue of step R
  out.up = 1.0
  if x < 2 then out.lo = (1 - x / 2) / (1 + x / 2) end
  out.volume = { x < 2 and out.rows * math.log((1 - x / 2) / (1 + x / 2)) or -math.huge, 0.0 }
  out.meter = args[1].tensor and -attrs.step * trace(args[1].tensor)
  return out
end

function rules.identity(out) return matrix.identity(out.rows, out.tensor ~= nil) end

function rules.diagonal(_, args) return matrix.diagonal(args[1]) end

function rules.entries(out, args)
  out.up = times(math.sqrt(out.cols), args[1].up)
  return out
end

local function reciprocal(x) return x > 0 and 1 / x or math.huge end

function rules.inverse(out, args)
  local a = args[1]
  out.up, out.lo, out.psd, out.skew = reciprocal(a.lo), reciprocal(a.up), a.psd, a.skew
  out.volume = { -a.volume[2], -a.volume[1] }
  return out
end

function rules.solution(out, args)
  out.up = times(reciprocal(args[1].lo), args[2].up)
  return out
end

--- Squares of the factor's singular values are those of the matrix.
function rules.root(out, args)
  local a = args[1]
  out.up, out.lo, out.volume = math.sqrt(a.up), math.sqrt(a.lo), { a.volume[1] / 2, a.volume[2] / 2 }
  return out
end

function rules.join(out, args)
  out.up = matrix.hypot(args[1].up, args[2].up)
  return out
end

function rules.part(out, args)
  out.up = args[1].up
  return out
end

--- Rows above 0 with sum 1.
function rules.simplex(out)
  out.up = math.sqrt(out.rows)
  return out
end

--- What is left of a matrix when others of its entries become 0 may have its Frobenius norm.
function rules.choice(out, args)
  out.up = times(math.sqrt(math.min(out.rows, out.cols)), args[2].up + args[3].up)
  return out
end

--- Whether the arguments are by construction what the op is meant for: a cayley of a free matrix is not a transport.
local function promised(row, args)
  for i, a in ipairs(args) do
    local kind = row.args:sub(i, i)
    if (kind == "k" and not a.skew) or (kind == "p" and not a.psd) then return false end
  end
  return true
end

--- The value of a parameter node. row: the op's row; args: matrices; shape { rows, cols }.
function matrix.node(row, args, attrs, shape)
  local tensors, known = {}, true
  for i, a in ipairs(args) do
    tensors[i] = a.tensor
    known = known and a.tensor ~= nil
  end
  local out = new {
    rows = shape.rows, cols = shape.cols, tensor = known and native.op(row.name, tensors, attrs) or nil,
  }
  if out.tensor and out.tensor:first_nonfinite() then -- the inverse of a singular matrix: nothing bounds it
    return new { rows = shape.rows, cols = shape.cols }
  end
  local rule = rules[row.gain]
  if rule and promised(row, args) then out = rule(out, args, attrs) end
  if row.output_bound > 0 then out.up = math.min(out.up, row.output_bound * math.sqrt(shape.rows * shape.cols)) end
  return out
end

return matrix
