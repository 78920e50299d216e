--- Integrators: the oscillation boundary, the explicit twin, splitting and polar factors
-- (docs/laws.md, sections 1.5, 1.7, 3).

local native = require "ph.native"
local maps = require "ph.laws.maps"
local result = require "ph.laws.result"
local la = native.la

local boundary = {}

--- A mode -r + ij stepped by h, one row per integrator: `explicit`, `damping` and `transport` (split Cayley),
--- `joint` (Cayley of both), the `angle` the transport turns by and its `phase_error`. value: explicit
--- modulus. Arguments: { r =, j =, h = (1) }.
function boundary.oscillation(mode)
  local h = mode.h or 1
  local hr, hj = h * (mode.r or 0), h * (mode.j or 0)
  if hr < 0 then error("oscillation: r must not be negative", 0) end
  local angle = 2 * math.atan(hj / 2)
  local r, j = mode.r or 0, mode.j or 0
  local explicit = boundary.hypot(1 - hr, hj)
  local stable = (r * r + j * j) * h <= 2 * r
  return result.new {
    law = "explicit step |1 + h(-r + ij)|", value = explicit, tol = 1, ok = explicit <= 1, explicit = explicit,
    transport = 1.0, damping = math.abs(1 - hr / 2) / (1 + hr / 2), joint = boundary.joint(hr, hj), angle = angle,
    phase_error = hj - angle, largest_step = (r * r + j * j) > 0 and 2 * r / (r * r + j * j) or math.huge,
    crossing = hr <= 2 and math.sqrt(hr * (2 - hr)) or 0.0,
    means = stable and "the explicit step contracts: h (r^2 + j^2) <= 2 r"
      or "the explicit step makes energy; the Cayley step cannot, at any h",
  }
end

--- sqrt(a^2 + b^2) without overflow.
function boundary.hypot(a, b)
  a, b = math.abs(a), math.abs(b)
  if a < b then a, b = b, a end
  return a == 0 and 0.0 or a * math.sqrt(1 + (b / a) ^ 2)
end

--- |1 + z/2| / |1 - z/2| for z = -hr + i hj (eq. 12): at most 1 exactly when r >= 0.
function boundary.joint(hr, hj)
  return boundary.hypot(1 - hr / 2, hj / 2) / boundary.hypot(1 + hr / 2, hj / 2)
end

--- I - S - hR with S and hR rebuilt from (C, Lam) by the inverse maps: same generator, explicit step. `twin`, `S`,
-- `hR`; value: its largest singular value.
function boundary.euler_twin(C, Lam)
  local d = result.square("euler_twin", C)
  result.square("euler_twin", Lam)
  local S, hR = maps.inverse_cayley(C), maps.inverse_cayley(Lam)
  local twin = native.eye(d) - S - hR
  local value = la.svd(twin):at(1)
  local s, x = la.svd(S):at(1), la.svd(hR):at(1)
  return result.new {
    law = "norm of the explicit twin", value = value, twin = twin, S = S, hR = hR,
    tol = 1e-14 * d * math.max(1 + s * s / 4, (1 + x / 2) ^ 2),
    means = value > 1 and "the explicit step of the same generator can amplify"
      or "the explicit step of the same generator contracts too",
  }
end

--- ||Lam C - exp(-S - hR)||: the three parts (transport and damping of third order, the commutator of second).
function boundary.splitting(S, R, h)
  result.meant("splitting_error", "k", S)
  result.meant("splitting_error", "p", R)
  local C, Lam, hR = maps.cayley(S), maps.damping(R, h), R * h
  local function norm(X) return la.svd(X):at(1) end
  local value = norm(Lam * C - maps.exp(-S - hR))
  return result.new {
    law = "splitting error ||Lambda C - exp(-S - hR)||", value = value, transport = norm(C - maps.exp(-S)),
    damping = norm(Lam - maps.exp(-hR)), commutator = norm(hR * S - S * hR) / 2,
    means = "modulus exact, phase and damping of third order, the split of first order",
  }
end

--- (Lam, C) from M alone: left polar factors. They are the channels exactly when h lambda_max(R) < 2. `Lam`, `C`,
--- `condition` = largest/smallest singular value of M; value: smallest.
function boundary.polar_split(M)
  result.square("polar_split", M)
  local Lam, C = maps.polar(M)
  local s = la.svd(M)
  local value = s:at(s:count())
  return result.new {
    law = "smallest singular value of M", value = value, tol = 0, ok = value > 0, Lam = Lam, C = C,
    condition = s:at(1) / value, means = "M = Lambda C; unique while h lambda_max(R) < 2",
  }
end

--- Euclidean norm that does not overflow before the elements do.
function boundary.scaled_norm(t)
  local value = t:norm()
  return result.new {
    law = "scaled norm", value = value,
    means = value < 1.3407807929942596e154 and "its square is finite" or "its square overflows, the norm does not",
  }
end

return boundary
