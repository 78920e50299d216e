--- The maps of a layer, by the native ops that also train; and the inverse maps, which only the laws need.
--
--   S = A - A^T      C   = (I + S/2)^{-1} (I - S/2)        x -> C x     moves, keeps every norm
--   R = L L^T        Lam = (I + hR/2)^{-1} (I - hR/2)      y -> Lam y   only shrinks
--
-- `maps` is a plain table of functions: the law suite hands copies with one
-- function replaced to show that a law notices.

local native = require "ph.native"
local la = native.la

local maps = {}

local function op(name, x, attrs) return native.op(name, { x }, attrs or {}) end

function maps.skew(A) return op("skew", A) end
function maps.cayley(S) return op("cayley", S) end
function maps.gram(L) return op("gram", L) end
function maps.damping(R, h) return op("damping", R, { step = h }) end

--- L scaled so that h lambda_max(L L^T) <= budget; the same bits when it already is.
function maps.guard(L, h, budget) return op("guard", L, { step = h, budget = budget or 1 }) end

--- X = 2 (I - T)(I + T)^{-1}: S of a transport (docs/laws.md, eq. 16), hR of a damping (eq. 17).
function maps.inverse_cayley(T)
  local I = native.eye(T:shape()[1])
  local ok, X = pcall(la.solve, (I + T):transpose(), (I - T):transpose())
  if not ok then error("the matrix has the eigenvalue -1, which no Cayley map gives, so it has no generator", 0) end
  return X:transpose() * 2.0
end

--- Adjoint of the transport: G_S = -N^T G N^T with N = (I + C)/2.
function maps.cayley_adjoint(C, G)
  local Nt = ((native.eye(C:shape()[1]) + C) / 2.0):transpose()
  return -(Nt * G * Nt)
end

--- One step of the stream: Lam (C x) + port, the port being h B u.
function maps.step(C, Lam, x, port) return Lam * (C * x) + port end

--- The gradient one layer down: C^T Lam g.
function maps.backward(C, Lam, g) return C:transpose() * (Lam * g) end

--- Where damping is read in the energy ledger (4): halfway between a = C x and b = Lam a.
function maps.midpoint(a, b) return (a + b) / 2.0 end

--- Jacobian of a layer whose port reads the state: M + h B diag(1 - tanh^2(W z + b)) W.
function maps.port_jacobian(M, h, B, W, b, z)
  local t = native.op("tanh", { (W * z + b):reshape { 1, b:count() } }, {}, { true }):reshape { b:count() }
  local d, slope = b:count(), native.tensor({ b:count(), b:count() }, "f64")
  for i = 1, d do slope:put(1 - t:at(i) ^ 2, i, i) end
  return M + (B * slope * W) * h
end

--- h B u
function maps.port(h, B, u) return (B * u) * h end

--- What one port adds to the ceiling: h ||B u||.
function maps.allowance(h, B, u) return h * (B * u):norm() end

--- Eigenvalues x = h r of hR, ascending, as a Lua list.
function maps.spectrum(R, h)
  local w = la.eigh((R + R:transpose()) * (0.5 * h))
  return w:totable()
end

--- lambda = (1 - x/2)/(1 + x/2) of one eigenvalue x of hR.
function maps.damped(x) return (1 - x / 2) / (1 + x / 2) end

--- ln|det Lam| of the eigenvalues x of hR, for any size; -inf when one is 2 (eq. 5).
function maps.log_volume(xs)
  local sum = 0.0
  for _, x in ipairs(xs) do
    if x < 2 then
      sum = sum - 2 * maps.artanh(x / 2)
    elseif x == 2 then
      return -math.huge
    else
      sum = sum - 2 * maps.artanh(2 / x)
    end
  end
  return sum
end

--- -sum h tr R: what the meter reads.
function maps.meter(xs)
  local sum = 0.0
  for _, x in ipairs(xs) do sum = sum - x end
  return sum
end

--- x^3/12 + x^5/80 + ...: how much more than the meter one eigenvalue x < 2 contracts (eq. 6, first term dropped). No
--- cancellation: the series where it converges fast, the difference where it is large.
function maps.meter_excess(x)
  if x > 0.5 then return 2 * maps.artanh(x / 2) - x end
  local q, power, sum = x * x / 4, x, 0.0
  for k = 1, 16 do
    power = power * q
    sum = sum + power / (2 * k + 1)
  end
  return sum
end

--- artanh by its series below 0.1 (all terms of one sign, full relative accuracy), by logarithms above.
function maps.artanh(y)
  if y < 0.1 then
    local q, power, sum = y * y, y, y
    for k = 1, 9 do
      power = power * q
      sum = sum + power / (2 * k + 1)
    end
    return sum
  end
  return 0.5 * math.log((1 + y) / (1 - y))
end

--- Left polar factors of M = Lam C: symmetric positive, orthogonal (docs/laws.md, 1.7).
function maps.polar(M)
  local s, U, Vt = la.svd(M)
  local n = s:count()
  local scaled = U:copy()
  for j = 1, n do
    local v = s:at(j)
    for i = 1, n do scaled:put(U:at(i, j) * v, i, j) end
  end
  return scaled * U:transpose(), U * Vt
end

--- exp(X) by scaling and squaring of the Taylor polynomial of degree 18 (error below 1e-16 of ||X/2^s|| <= 1/2).
function maps.exp(X)
  local n, norm = X:shape()[1], X:norm()
  local s = 0
  while norm > 0.5 do norm, s = norm / 2, s + 1 end
  local Y, I = X * (0.5 ^ s), native.eye(X:shape()[1])
  local sum = native.eye(n)
  for k = 18, 1, -1 do sum = I + (Y * sum) / k end
  for _ = 1, s do sum = sum * sum end
  return sum
end

return maps
