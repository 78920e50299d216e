--- What is known of a sample value v as a function of the state z (and of the input u of a step):
-- v = lin z + rest(z, u), with
--
--   lin          a matrix (ph.certify.matrix) or nil: the state channel, exactly linear
--   steep, flat  bounds of the rest { z, u, one }: ||rest|| <= z ||z|| + u ||u|| + one. `flat` uses saturation
--                (|tanh| <= 1) where it can
--   lip, lip_u   Lipschitz constants of the rest in z and in u
--   entry        bound of every |entry| of v, whatever z; inf when there is none
--   reads        the rest depends on z
--
-- Norms are those of one position (the largest over positions for images): every op acts position by position.

local matrix = require "ph.certify.matrix"
local times = matrix.times

local value = {}

local function bound(z, u, one) return { z = z, u = u, one = one } end
local function nothing() return bound(0.0, 0.0, 0.0) end
local function plus(a, b) return bound(a.z + b.z, a.u + b.u, a.one + b.one) end
local function joined(a, b)
  return bound(matrix.hypot(a.z, b.z), matrix.hypot(a.u, b.u), matrix.hypot(a.one, b.one))
end
local function stretched(a, s) return bound(times(s, a.z), times(s, a.u), times(s, a.one)) end

local function whole(v, which)
  local b = v[which]
  return v.lin and bound(v.lin:norm() + b.z, b.u, b.one) or b
end

--- Bounds of v as a whole: { z, u, one }.
function value.steep(v) return whole(v, "steep") end
function value.flat(v) return whole(v, "flat") end

--- Lipschitz constant of v as a whole in z.
function value.lip(v) return (v.lin and v.lin:norm() or 0.0) + v.lip end

local function reads(v) return v.reads or v.lin ~= nil end

local function nonlinear(v, width, steep, flat, slope, entry)
  return {
    width = width, steep = steep, flat = flat, lip = times(slope, value.lip(v)), lip_u = times(slope, v.lip_u),
    entry = entry, reads = reads(v),
  }
end

-- ---- rules by gain: f(args, attrs, row, shape, concrete); args are values or
-- matrices; concrete: weights are given ----

local rules = {}

function rules.state(_, _, _, shape, concrete)
  return {
    width = shape.cols, lin = matrix.identity(shape.cols, concrete), steep = nothing(), flat = nothing(), lip = 0.0,
    lip_u = 0.0, entry = math.huge, reads = false,
  }
end

function rules.input(_, _, _, shape)
  return {
    width = shape.cols, steep = bound(0.0, 1.0, 0.0), flat = bound(0.0, 1.0, 0.0), lip = 0.0, lip_u = 1.0,
    entry = math.huge, reads = false,
  }
end

function rules.apply(args)
  local M, v = args[1], args[2]
  local norm = (v.steep.z + v.steep.u + v.steep.one + v.lip + v.lip_u > 0 or not v.lin) and M:norm() or 0.0
  return {
    width = M.rows, lin = v.lin and matrix.product(M, v.lin), steep = stretched(v.steep, norm),
    flat = stretched(v.flat, norm), lip = times(norm, v.lip), lip_u = times(norm, v.lip_u), entry = math.huge,
    reads = v.reads,
  }
end

function rules.affine(args)
  local v, b = args[1], args[2]
  local shift = bound(0.0, 0.0, b:norm())
  return {
    width = v.width, lin = v.lin, steep = plus(v.steep, shift), flat = plus(v.flat, shift), lip = v.lip,
    lip_u = v.lip_u, entry = v.entry + b:entry(), reads = v.reads,
  }
end

function rules.scale(args, attrs)
  local v, s = args[1], math.abs(attrs.by)
  return {
    width = v.width, lin = v.lin and matrix.scaled(v.lin, attrs.by), steep = stretched(v.steep, s),
    flat = stretched(v.flat, s), lip = times(s, v.lip), lip_u = times(s, v.lip_u), entry = times(s, v.entry),
    reads = v.reads,
  }
end

local function sum(sign)
  return function(args)
    local a, b = args[1], args[2]
    local lin = a.lin and b.lin and matrix.sum(a.lin, b.lin, sign) or a.lin or (b.lin and matrix.scaled(b.lin, sign))
    return {
      width = a.width, lin = lin, steep = plus(a.steep, b.steep), flat = plus(a.flat, b.flat), lip = a.lip + b.lip,
      lip_u = a.lip_u + b.lip_u, entry = a.entry + b.entry, reads = a.reads or b.reads,
    }
  end
end

rules.sum, rules.difference = sum(1), sum(-1)

--- Largest |entry| of v whatever the state and the input: its entry bound, or its norm where that is bounded.
local function largest(v)
  local b = value.flat(v)
  return b.z == 0 and b.u == 0 and math.min(v.entry, b.one) or v.entry
end

local function finite(b) return b.z < math.huge and b.u < math.huge and b.one < math.huge end

--- ||x y|| <= factor max|x_i| ||y||. Where x is bounded neither by its entries nor by its norm, this says nothing.
local function product_bound(x, y, which, factor)
  local most, b = largest(x), value.flat(x)
  if most < math.huge or (b.z == 0 and b.u == 0) then return stretched(whole(y, which), times(factor, most)) end
  return bound(math.huge, math.huge, math.huge)
end

--- The better of two bounds: a finite one, else the one that depends on the state the least.
local function better(x, y)
  if finite(x) ~= finite(y) then return finite(x) and x or y end
  if x.z ~= y.z then return x.z < y.z and x or y end
  return x.u + x.one <= y.u + y.one and x or y
end

--- A product of a and b that is linear in each: at most `factor` times the entries of one times the norm of the other;
-- a Lipschitz bound needs both bounded. out: what else is known of it.
local function bilinear(a, b, factor, out)
  local most_a, most_b = times(factor, a.entry), times(factor, b.entry)
  local function best(which) return better(product_bound(a, b, which, factor), product_bound(b, a, which, factor)) end
  local function slope(la, lb) return times(most_a, lb) + times(most_b, la) end
  out.steep, out.flat, out.lip = best "steep", best "flat", slope(value.lip(a), value.lip(b))
  out.lip_u, out.reads = slope(a.lip_u, b.lip_u), reads(a) or reads(b)
  return out
end

function rules.schur(args)
  local a, b = args[1], args[2]
  return bilinear(a, b, 1.0, { width = a.width, entry = times(a.entry, b.entry) })
end

function rules.inner(args)
  local a, b = args[1], args[2]
  return bilinear(a, b, math.sqrt(a.width), { width = 1, entry = times(a.width, times(a.entry, b.entry)) })
end

--- The features of both, one after the other.
function rules.join(args)
  local a, b = args[1], args[2]
  return {
    width = a.width + b.width, lin = (a.lin or b.lin) and matrix.on_top(a.lin, b.lin, { a.width, b.width }),
    steep = joined(a.steep, b.steep), flat = joined(a.flat, b.flat), lip = matrix.hypot(a.lip, b.lip),
    lip_u = matrix.hypot(a.lip_u, b.lip_u), entry = math.max(a.entry, b.entry), reads = a.reads or b.reads,
  }
end

--- Some of the features.
function rules.part(args, attrs)
  local v = args[1]
  return {
    width = attrs.to - attrs.from + 1, lin = v.lin and matrix.some_rows(v.lin, attrs.from, attrs.to), steep = v.steep,
    flat = v.flat, lip = v.lip, lip_u = v.lip_u, entry = v.entry, reads = v.reads,
  }
end

function rules.stretch(args)
  local out = rules.apply { matrix.diagonal(args[2]), args[1] }
  out.entry = times(args[1].entry, args[2]:entry())
  return out
end

--- Each entry is one of x or of y. Where the condition moves with the state or the input, the value may jump.
function rules.choice(args)
  local c, x, y = args[1], args[2], args[3]
  return {
    width = x.width, steep = plus(value.steep(x), value.steep(y)), flat = plus(value.flat(x), value.flat(y)),
    lip = reads(c) and math.huge or value.lip(x) + value.lip(y), lip_u = c.lip_u > 0 and math.huge or x.lip_u + y.lip_u,
    entry = math.max(x.entry, y.entry), reads = reads(c) or reads(x) or reads(y),
  }
end

--- Softmax: entries above 0 with sum 1, so a norm of at most 1.
function rules.simplex(args)
  local v, one = args[1], bound(0.0, 0.0, 1.0)
  return nonlinear(v, v.width, plus(stretched(value.steep(v), 0.5), one), one, 0.5, 1.0)
end

--- A position that is made of others: its norm is at most `factor` times the largest of theirs.
local function regrouped(v, width, factor)
  return nonlinear(v, width, stretched(value.steep(v), factor), stretched(value.flat(v), factor), factor, v.entry)
end

function rules.gather(args, attrs, _, shape)
  return regrouped(args[1], shape.cols, math.sqrt(attrs.lines * attrs.wide))
end

function rules.spread(args, _, _, shape) return regrouped(args[1], shape.cols, 1.0) end

function rules.lipschitz(args, _, row)
  local v, root = args[1], math.sqrt(args[1].width)
  local shift, slope = bound(0.0, 0.0, math.abs(row.at_zero) * root), row.lipschitz
  local flat = row.output_bound > 0 and bound(0.0, 0.0, row.output_bound * root)
    or plus(stretched(value.flat(v), slope), shift)
  return nonlinear(v, v.width, plus(stretched(value.steep(v), slope), shift), flat, slope,
    row.output_bound > 0 and row.output_bound or math.huge)
end

--- ||gamma xh + beta|| <= max|gamma| sqrt(d) + ||beta|| whatever comes in; its slope is at most max|gamma| / sqrt(eps),
-- which is true and of little use.
function rules.normalize(args, attrs)
  local v, gamma, beta = args[1], args[2], args[3]
  local g, root = gamma:entry(), math.sqrt(args[1].width)
  local slope = g / math.sqrt(attrs.eps)
  local flat = bound(0.0, 0.0, times(g, root) + beta:norm())
  return nonlinear(v, v.width, plus(stretched(value.steep(v), slope), bound(0.0, 0.0, beta:norm())), flat, slope,
    times(g, root) + beta:entry())
end

--- Nothing is known of an op without a rule.
local function unknown(args, _, _, shape)
  local inf = math.huge
  local uses_z, uses_u = false, false
  for _, v in ipairs(args) do
    if v.steep then uses_z, uses_u = uses_z or reads(v), uses_u or v.lip_u > 0 end
  end
  return {
    width = shape.cols, steep = bound(uses_z and inf or 0, uses_u and inf or 0, inf),
    flat = bound(uses_z and inf or 0, uses_u and inf or 0, inf), lip = uses_z and inf or 0.0,
    lip_u = uses_u and inf or 0.0, entry = inf, reads = uses_z,
  }
end

--- The value of a sample node.
function value.node(row, args, attrs, shape, concrete)
  return (rules[row.gain] or unknown)(args, attrs, row, shape, concrete)
end

--- Whether the op has a rule; one that has none makes every bound infinite.
function value.has_rule(row) return rules[row.gain] ~= nil end

return value
