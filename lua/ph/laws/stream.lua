--- Laws of whole streams: ceiling, energy, volume, gradients, necessity of dissipation, graded
-- spectra (docs/laws.md, sections 1.2-1.6).

local native = require "ph.native"
local maps = require "ph.laws.maps"
local result = require "ph.laws.result"
local la = native.la

local stream = {}

local Stream = { __name = "ph.law_stream" }
Stream.__index = Stream
Stream.__tostring = function(s)
  return string.format("stream of %d layers, width %d, step %.6g%s", s.depth, s.width, s.step,
    s.layers[1].C and "" or " (matrices only)")
end

--- True for what stream.new and its sisters make.
function stream.is(v) return getmetatable(v) == Stream end

local function check(law, v)
  if not stream.is(v) then
    error(law .. ": the argument must be a stream (ph.law_stream { A =, L =, step = } or ph.random_stream { ... })", 0)
  end
  return v
end

local function stack_depth(name, t)
  local shape = type(t) == "userdata" and t:shape() or {}
  if #shape ~= 3 then error(string.format("stream: %s must be a stack (layers, d, d)", name), 0) end
  local bad = t:first_nonfinite()
  if bad then
    local layer = (bad - 1) // (shape[2] * shape[3]) + 1
    error(string.format("stream: %s of layer %d has an entry that is not finite", name, layer), 0)
  end
  return shape[1], shape[2]
end

local function must_be_finite(law, name, t)
  if t:first_nonfinite() then error(string.format("%s: %s has an entry that is not finite", law, name), 0) end
end

--- A stream from its parameters: A, L (layers, d, d), B optional (layers, d, d),
-- step, budget (default 1; false: no guard).
function stream.new(p)
  local depth, width = stack_depth("A", p.A)
  if stack_depth("L", p.L) ~= depth then error("stream: A and L have different depths", 0) end
  if p.B and stack_depth("B", p.B) ~= depth then error("stream: A and B have different depths", 0) end
  if type(p.step) ~= "number" or p.step <= 0 then error("stream: step must be a number above 0", 0) end
  local layers = {}
  for t = 1, depth do
    local L = p.L:index(1, t)
    if p.budget ~= false then L = maps.guard(L, p.step, p.budget or 1) end
    local S, R = maps.skew(p.A:index(1, t)), maps.gram(L)
    local C, Lam = maps.cayley(S), maps.damping(R, p.step)
    layers[t] = {
      S = S, R = R, C = C, Lam = Lam, M = Lam * C, B = p.B and p.B:index(1, t), x = maps.spectrum(R, p.step),
    }
  end
  return setmetatable({ depth = depth, width = width, step = p.step, layers = layers }, Stream)
end

--- A (layers, d, d) as the native loops draw it: the strict upper triangle, sqrt(2)
-- times as large, for only A - A^T acts.
local function upper_triangles(seed, index, L, d, scale)
  local n, A = d * (d - 1) // 2, native.tensor({ L, d, d }, "f64")
  local numbers = native.random("normal", seed, "laws.A", { L, n }, scale * math.sqrt(2), "f64", index * L * n)
  for t = 1, L do
    local row, k = n > 0 and numbers:index(1, t):totable(), 0
    for i = 1, d - 1 do
      for j = i + 1, d do
        k = k + 1
        A:put(row[k], t, i, j)
      end
    end
  end
  return A
end

--- A random stream: { depth =, width =, step =, transport =, damping =, port =, seed =, budget = }. The entries of A,
--- L, B are normal with deviation transport (1), damping (1/sqrt(width)), port (1); the same numbers as the native
--- loops use for stream `index` (default 0).
function stream.random(p)
  local L, d, index = p.depth or 12, p.width or 32, p.index or 0
  local function draw(name, scale)
    return native.random("normal", p.seed or 0, "laws." .. name, { L, d, d }, scale, "f64", index * L * d * d)
  end
  return stream.new {
    A = upper_triangles(p.seed or 0, index, L, d, p.transport or 1.0), L = draw("L", p.damping or 1 / math.sqrt(d)),
    B = draw("B", p.port or 1.0), step = p.step or 0.1, budget = p.budget,
  }
end

--- A stream of bare matrices (layers, d, d), for instance I + W of a standard net: only its
-- spectrum and its gradients are known.
function stream.of_matrices(M)
  local depth, width = stack_depth("M", M)
  local layers = {}
  for t = 1, depth do layers[t] = { M = M:index(1, t) } end
  return setmetatable({ depth = depth, width = width, step = 1.0, layers = layers }, Stream)
end

--- Exact log-volume of a stream (eq. 5), its meter and its series.
function stream.volume(s)
  check("volume", s)
  local value, meter, sign, excess = 0.0, 0.0, 1, 0.0
  for _, layer in ipairs(s.layers) do
    if layer.x then
      value, meter = value + maps.log_volume(layer.x), meter + maps.meter(layer.x)
      for _, x in ipairs(layer.x) do
        if x > 2 then sign = -sign elseif x == 2 then sign = 0 end
        excess = excess + (x < 2 and maps.meter_excess(x) or 0 / 0)
      end
    else
      local v, sg = la.logdet(layer.M)
      value, sign, meter, excess = value + v, sign * sg, 0 / 0, 0 / 0
    end
  end
  return result.new { law = "log-volume of the stream", value = value, sign = sign, meter = meter, error = excess,
                      means = string.format("volume is multiplied by e^%.6g", value) ..
                        (meter == meter and string.format(", whatever the transport; the meter reads %.6g", meter)
                          or "; the meter needs R, and only the matrices are known") }
end

local function inputs_of(s, u)
  local shape = u:shape()
  if #shape ~= 2 or shape[1] ~= s.depth then
    error(string.format("ceiling: u must be (%d, inputs of a port), got (%s)", s.depth, table.concat(shape, ", ")), 0)
  end
  must_be_finite("ceiling", "u", u)
end

--- By how much a is above b, as a part of b; 0 is not above 0.
local function excess(a, b) return a == 0 and b == 0 and 0.0 or a / b - 1 end

--- Runs the stream from x0 with inputs u (depth, columns of B) and sets every state beside the ceiling (3) and the
--- energy beside (4). `norms`, `bounds` (from layer 0), `energy` = list of { change, dissipated, supplied }, `residual`
--- of (4), `x` the last state.
function stream.ceiling(s, x0, u)
  check("ceiling", s)
  inputs_of(s, u)
  must_be_finite("ceiling", "x0", x0)
  local x, bound, worst, residual = x0, x0:norm(), -math.huge, 0.0
  local norms, bounds, energy = { bound }, { bound }, {}
  for t, layer in ipairs(s.layers) do
    if not layer.B then error("ceiling: this stream has no ports (B)", 0) end
    local ut = u:index(1, t)
    local port = maps.port(s.step, layer.B, ut)
    local ledger, y = stream.energy(layer, s.step, x, port)
    bound = bound + maps.allowance(s.step, layer.B, ut)
    local scale = 1 + y:norm() ^ 2 + norms[t] ^ 2
    residual = result.most(residual, math.abs(ledger.change + ledger.dissipated - ledger.supplied) / scale)
    x, energy[t] = y, ledger
    norms[t + 1], bounds[t + 1] = x:norm(), bound
    worst = result.most(worst, excess(norms[t + 1], bound))
  end
  return result.new {
    law = "largest norm above the ceiling", value = worst, tol = 1e-12, ok = worst <= 1e-12, norms = norms,
    bounds = bounds, energy = energy, residual = residual, x = x,
    means = string.format("||x|| <= ||x_0|| + sum h||B u||; at the end %.3g of the ceiling is used",
      norms[#norms] / bound),
  }
end

local function dot(a, b) return (a:mul(b)):sum() end

--- Exact energy ledger of one layer (eq. 4): change = -dissipated + supplied. Returns it and the next state.
function stream.energy(layer, h, x, port)
  local a = layer.C * x
  local b = layer.Lam * a
  local y = maps.step(layer.C, layer.Lam, x, port)
  local m = maps.midpoint(a, b)
  return
    { change = (dot(y, y) - dot(x, x)) / 2, dissipated = h * dot(m, layer.R * m),
      supplied = dot(port, b + port / 2.0) }, y
end

--- Gradients from the last layer down (eq. 14) beside the bracket (15). `norms[1]` is layer 0.
function stream.gradient(s, gL)
  check("gradient", s)
  must_be_finite("gradient_bracket", "the gradient", gL)
  local g, norms, lower, upper = gL, {}, {}, {}
  norms[s.depth + 1] = g:norm()
  lower[s.depth + 1], upper[s.depth + 1] = norms[s.depth + 1], norms[s.depth + 1]
  local worst = -math.huge
  for t = s.depth, 1, -1 do
    local layer = s.layers[t]
    local lo, hi = stream.layer_bracket(layer)
    g = layer.C and maps.backward(layer.C, layer.Lam, g) or layer.M:transpose() * g
    norms[t], lower[t], upper[t] = g:norm(), lower[t + 1] * lo, upper[t + 1] * hi
    worst = result.most(worst, excess(norms[t], upper[t]), excess(lower[t], norms[t]))
  end
  return result.new {
    law = "gradient outside its bracket", value = worst, tol = 1e-9, ok = worst <= 1e-9, norms = norms, lower = lower,
    upper = upper,
    means = string.format("||g_0||/||g_L|| = %.6g, between %.3g and %.3g", norms[1] / norms[s.depth + 1],
      lower[1] / upper[s.depth + 1], upper[1] / upper[s.depth + 1]),
  }
end

--- Smallest and largest factor by which a layer can change a gradient: min and max |lambda| of
-- the damping, singular values otherwise.
function stream.layer_bracket(layer)
  if not layer.x then
    local s = la.svd(layer.M)
    return s:at(s:count()), s:at(1)
  end
  local lo, hi = math.huge, 0.0
  for _, x in ipairs(layer.x) do
    local v = math.abs(maps.damped(math.max(x, 0)))
    lo, hi = math.min(lo, v), math.max(hi, v)
  end
  return lo, hi
end

--- Proposition 3 made a number: a product of layers keeps at least d - sum rank R singular
-- values at exactly 1. `least`, `ones`.
function stream.necessity(s)
  check("necessity", s)
  local ranks = 0
  for _, layer in ipairs(s.layers) do
    for _, x in ipairs(layer.x or error("necessity: the damping of the stream must be known", 0)) do
      if x > 1e-12 then ranks = ranks + 1 end
    end
  end
  local least, ones = math.max(0, s.width - ranks), 0
  for _, v in ipairs(stream.product_spectrum(stream.stack(s))) do
    if math.abs(v - 1) < 1e-10 then ones = ones + 1 end
  end
  return result.new {
    law = "directions no damping touches", value = ones, tol = 0, ok = ones >= least, least = least, ones = ones,
    means = string.format("damping of total rank %d leaves at least %d of %d singular values at 1", ranks, least,
      s.width),
  }
end

--- All matrices of a stream as a stack (depth, d, d).
function stream.stack(s)
  local d = s.width
  local all = native.tensor({ s.depth, d, d }, "f64")
  for t, layer in ipairs(s.layers) do
    for i = 1, d do
      for j = 1, d do all:put(layer.M:at(i, j), t, i, j) end
    end
  end
  return all
end

--- Singular spectrum of the whole product, by QR accumulation layer by layer: `logs` natural logarithms, descending,
--- `change` the last move of one (passes converge by the square of the ratio of neighbours). `product` is what an SVD
--- of the multiplied-out product says: below e^-36 of the largest that is rounding, not spectrum.
function stream.spectrum(s, passes)
  local M = stream.is(s) and stream.stack(s) or s
  local logs, change = native.laws.spectrum(M, passes or 12, 1)
  local list = logs:totable()
  local span = (list[1] - list[#list]) / math.log(10)
  return result.new {
    law = "span of the singular spectrum, decades", value = span, logs = list, change = change:at(1),
    product = stream.product_spectrum(M),
    means = string.format("singular values from 10^%.4g down to 10^%.4g", list[1] / math.log(10),
      list[#list] / math.log(10)),
  }
end

--- Singular values of the multiplied-out product: a list.
function stream.product_spectrum(M)
  local P = native.eye(M:shape()[2])
  for t = 1, M:shape()[1] do P = M:index(1, t) * P end
  if P:first_nonfinite() then return {} end
  return la.svd(P):totable()
end

return stream
