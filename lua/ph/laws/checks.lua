--- The assertions of the law suite: each takes the code under test, a source of normal numbers and its tolerance, and
--- returns the measured value and whether the law holds. Statements: ph.laws.suite; proofs: docs/laws.md.

local native = require "ph.native"
local la = native.la
local result = require "ph.laws.result"
local max_abs, most_of = result.max_abs, result.most

local checks = {}
local width <const> = 32

local function eye(n) return native.eye(n or width) end
local function norm2(X) return la.svd(X):at(1) end
local function square(draw, name, scale, n) return draw(name, { n or width, n or width }, scale) end
local function dot(a, b) return a:mul(b):sum() end

local function diagonal(list)
  local D = native.tensor({ #list, #list }, "f64")
  for i, v in ipairs(list) do D:put(v, i, i) end
  return D
end

--- x scaled by the scalar of each halving.
local function scaled(xs, factor)
  local out = {}
  for i, x in ipairs(xs) do out[i] = x * factor end
  return out
end

function checks.T1(m, draw, tol)
  local value = 0.0
  for _, s in ipairs { 1e-3, 0.1, 1, 10 } do
    local C = m.cayley(m.skew(square(draw, "A" .. s, s)))
    local error = max_abs(C:transpose() * C - eye())
    value = most_of(value, error)
  end
  return value, value <= tol
end

function checks.T2(m, draw, tol)
  local sum, positive = 0.0, true
  for k = 1, 20 do
    local v, sign = la.logdet(m.cayley(m.skew(square(draw, "A" .. k, 10.0 ^ (k % 4 - 2)))))
    sum, positive = sum + v, positive and sign == 1
  end
  return math.abs(sum), math.abs(sum) <= tol and positive
end

function checks.T3(m, draw, tol)
  local most = 0.0
  for _, h in ipairs { 1e-3, 0.1, 1, 10, 1e3 } do
    most = most_of(most, norm2(m.damping(m.gram(square(draw, "L" .. h, 1)), h)))
  end
  local Lam = m.damping(m.gram(draw("thin", { width, width // 2 })), 0.7)
  local w, ones = la.eigh((Lam + Lam:transpose()) / 2.0):totable(), 0
  for _, v in ipairs(w) do
    if v > 1 - 1e-10 then ones = ones + 1 end
  end
  return most - 1, most - 1 <= tol and ones == width - width // 2 and w[1] > -1
end

function checks.T4(m, _, tol)
  local value = max_abs(m.damping(eye(3) * 4.0, 1) + eye(3) / 3.0)
  local b = m.damping(diagonal { 2, 1.9, 2.1 }, 1)
  return value, value <= tol and math.abs(b:at(1, 1)) <= 1e-16 and b:at(2, 2) > 0 and b:at(3, 3) < 0
end

function checks.T5(m, draw, tol)
  local value, ok, h = -math.huge, true, 0.5
  for _, s in ipairs { 0.01, 0.3, 3 } do
    local L = square(draw, "L" .. s, s)
    local Le = m.guard(L, h, 1)
    local xs = m.spectrum(m.gram(Le), h)
    value = most_of(value, xs[width] - 1)
    ok = ok and m.damped(xs[width]) >= 1 / 3 - tol and m.damped(xs[1]) <= 1 + tol
    if h * norm2(L) ^ 2 <= 1 then ok = ok and Le:bytes() == L:bytes() end
  end
  return value, ok and value <= tol
end

function checks.T6(m, draw, tol)
  local S = m.skew(square(draw, "A", 1 / math.sqrt(width)))
  local value = max_abs(m.inverse_cayley(m.cayley(S)) - S) / (1 + norm2(S) ^ 2 / 4)
  return value, value <= tol
end

function checks.T7(m, draw, tol)
  local R = m.gram(square(draw, "L", 1 / math.sqrt(width)))
  local value = max_abs(m.inverse_cayley(m.damping(R, 0.3)) - R * 0.3)
  return value, value <= tol
end

--- Parameters of one layer of a random stream.
local function layer(m, draw, k, transport, damping, h)
  local R = m.gram(square(draw, "L" .. k, damping / math.sqrt(width)))
  return m.cayley(m.skew(square(draw, "A" .. k, transport))), m.damping(R, h), R
end

function checks.T8(m, draw, tol)
  local h, x, value = 0.1, draw("x0", { width }), -math.huge
  local bound = x:norm()
  for k = 1, 200 do
    local C, Lam = layer(m, draw, k, 1, 0.3, h)
    local B, u = square(draw, "B" .. k, 1), draw("u" .. k, { width })
    x, bound = m.step(C, Lam, x, m.port(h, B, u)), bound + m.allowance(h, B, u)
    value = most_of(value, x:norm() / bound - 1)
  end
  return value, value <= tol
end

function checks.T9(m, draw, tol)
  local xs, error, exact = m.spectrum(m.gram(square(draw, "L", 1 / math.sqrt(width))), 0.05), {}, {}
  for k = 0, 2 do
    local x = scaled(xs, 0.5 ^ k)
    error[k], exact[k] = math.abs(m.log_volume(x) - m.meter(x)), 0.0
    for _, v in ipairs(x) do exact[k] = exact[k] + m.meter_excess(v) end
  end
  local cubes = 0.0
  for _, x in ipairs(xs) do cubes = cubes + (x / 4) ^ 3 / 12 end
  local first, second = error[0] / error[1], error[1] / error[2]
  local value = most_of(math.abs(first - 8), math.abs(second - 8))
  local ok = value <= tol and first >= 8 - 1e-6 and math.abs(error[2] / cubes - 1) <= 1e-2
  return value, ok and math.abs(error[0] / exact[0] - 1) <= 1e-9
end

function checks.T10(m, _, tol)
  local h, B, u, x = 0.1, eye(4) * 50.0, native.from({ 1, 0, 0, 0 }, "f64"), native.tensor({ 4 }, "f64")
  local bound, proxy = 0.0, 0.0
  for _ = 1, 10 do
    x, bound, proxy = m.step(eye(4), eye(4), x, m.port(h, B, u)), bound + m.allowance(h, B, u), proxy + h * u:norm()
  end
  local value = x:norm() / bound - 1
  return value, value <= tol and x:norm() > proxy
end

function checks.T11(m, draw, tol)
  local sum, product = 0.0, eye()
  for k = 1, 20 do
    local C, Lam, R = layer(m, draw, k, 1, 1, 0.1)
    product, sum = Lam * C * product, sum + m.log_volume(m.spectrum(R, 0.1))
  end
  local value = math.abs(la.logdet(product) - sum)
  return value, value <= tol
end

function checks.T12(m, draw, tol)
  local g, value, lower, ok = draw("g", { width }), -math.huge, 1.0, true
  local start = g:norm()
  for k = 1, 60 do
    local C, Lam, R = layer(m, draw, k, 1, 0.3, 0.1)
    local below, x = m.backward(C, Lam, g), draw("x" .. k, { width })
    local xs = m.spectrum(R, 0.1)
    lower = lower * math.abs(m.damped(xs[width]))
    value = most_of(value, below:norm() / g:norm() - 1)
    ok = ok and math.abs(dot(below, x) - dot(g, Lam * (C * x))) <= tol * g:norm() * x:norm()
    g = below
  end
  return value, ok and value <= tol and g:norm() / start >= lower * (1 - 1e-9)
end

function checks.T13(m, draw, tol)
  local S0, R, e = m.skew(square(draw, "A", 1 / math.sqrt(width))), m.gram(square(draw, "L", 1 / math.sqrt(width))), {}
  for i, h in ipairs { 1e-2, 5e-3, 2.5e-3 } do
    e[i] = norm2(m.damping(R, h) * m.cayley(S0 * h) - (eye() - S0 * h - R * h))
  end
  local value = most_of(math.abs(e[1] / e[2] - 4), math.abs(e[2] / e[3] - 4))
  return value, value <= tol
end

-- ---- corrections to the paper, each as a number ----

local small <const> = 12

function checks.E1(m, draw, tol)
  local S = m.skew(square(draw, "A", 1 / math.sqrt(small), small))
  local function error(q, sign) return norm2(m.cayley(S * q) - m.exp(S * (sign * q))) end
  local value = math.abs(error(0.02, -1) / error(0.01, -1) - 8)
  return value, value <= tol and error(0.01, 1) > 100 * error(0.01, -1)
end

function checks.E2(m, draw, tol)
  local h = 0.3
  local C, R = m.cayley(m.skew(square(draw, "A", 1, small))), m.gram(square(draw, "L", 1 / math.sqrt(small), small))
  local Lam, x, port = m.damping(R, h), draw("x", { small }), draw("f", { small }, h)
  local a = C * x
  local b = Lam * a
  local y, mid = m.step(C, Lam, x, port), m.midpoint(a, b)
  local change = (dot(y, y) - dot(x, x)) / 2
  local value = math.abs(change + h * dot(mid, R * mid) - dot(port, b + port / 2.0)) / (1 + dot(y, y))
  return value, value <= tol
end

function checks.E3(m, _, tol)
  local I, zero = eye(4), native.tensor({ 4 }, "f64")
  local value = math.abs(norm2(m.port_jacobian(I, 1, I, I, zero, zero)) - 2)
  return value, value <= tol
end

function checks.E4(m, draw, tol)
  local h, S = 0.3, m.skew(square(draw, "A", 1, small))
  local R = m.gram(square(draw, "L", 1 / math.sqrt(small), small))
  local C, Lam = m.cayley(S), m.damping(R, h)
  local polar, transport = m.polar(Lam * C)
  local value = most_of(max_abs(polar - Lam), max_abs(transport - C))
  local strong = m.damping(R * (4 / m.spectrum(R, h)[small]), h)
  local above = max_abs(m.polar(strong * C) - strong)
  return value, value <= tol and above > 1e-3
end

function checks.E5(m, _, tol)
  local value = math.abs(-m.log_volume { 1.0 } - math.log(3))
  return value, value <= tol
end

function checks.E6(m, _, tol)
  local v = {}
  for i, x in ipairs { 1.5, 3.0, 10.0, 100.0 } do v[i] = -m.log_volume { x } end
  return v[4], v[4] < v[3] and v[3] < v[2] and v[2] < v[1] and v[4] <= tol
end

function checks.E7(m, draw, tol)
  local T, x = draw("T", { small * small, small }, 1 / small), draw("x", { small })
  local start, value = x:norm(), -math.huge
  for _ = 1, 50 do
    local A, before = (T * x):reshape { small, small }, x:norm()
    x = m.step(m.cayley(m.skew(A)), m.damping(m.gram(A * 0.2), 0.5), x, native.tensor({ small }, "f64"))
    value = most_of(value, x:norm() / before - 1)
  end
  return value, value <= tol and x:norm() <= start
end

function checks.E8(m, draw, tol)
  local S, R = m.skew(square(draw, "A", 1, small)), m.gram(square(draw, "L", 1 / math.sqrt(small), small))
  local C, Lam, G = m.cayley(S), m.damping(R, 0.3), square(draw, "G", 1, small)
  local N, gS = (eye(small) + C) / 2.0, m.cayley_adjoint(C, Lam * G)
  local value = max_abs(gS + N * ((Lam * C):transpose() * G) * N:transpose())
  value = most_of(value, max_abs(gS - native.op_bwd("cayley", { S }, {}, {}, Lam * G)[1]))
  return value, value <= tol
end

return checks
