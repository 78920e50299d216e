--- Wrong code that each assertion of the law suite must catch (docs/laws.md, section
-- 10): id -> list of { name, change(m) }.

local native = require "ph.native"
local maps = require "ph.laws.maps"
local la = native.la

local function eye_of(X) return native.eye(X:shape()[1]) end

--- V f(w) V^T of a symmetric matrix.
local function spectral(X, f)
  local w, V = la.eigh((X + X:transpose()) / 2.0)
  local scaled, n = V:copy(), w:count()
  for j = 1, n do
    for i = 1, n do scaled:put(V:at(i, j) * f(w:at(j)), i, j) end
  end
  return scaled * V:transpose()
end

local function explicit_transport(m) m.cayley = function(S) return eye_of(S) - S end end
local function truncated_exp(m) m.cayley = function(S) return eye_of(S) - S + (S * S) / 2.0 - (S * S * S) / 6.0 end end
local function not_skew(m) m.skew = function(A) return A end end
local function damping_sign(m) m.gram = function(L) return -maps.gram(L) end end
local function absolute(m) m.damping = function(R, h) return spectral(maps.damping(R, h), math.abs) end end
local function clamped(m)
  m.damping = function(R, h) return spectral(maps.damping(R, h), function(v) return math.max(v, 0) end) end
end
local function no_guard(m) m.guard = function(L) return L end end

--- The factor (h lambda_max)^{-1/2} belongs on L; on R it is the square root of what is needed.
local function guard_on_R(m)
  m.guard = function(L, h)
    local top = h * la.svd(L):at(1) ^ 2
    return top <= 1 and L or L * top ^ -0.25
  end
end

local function no_two(m) m.inverse_cayley = function(T) return maps.inverse_cayley(T) / 2.0 end end

local function explicit_step(m)
  m.step = function(C, Lam, x, port) return x - maps.inverse_cayley(C) * x - maps.inverse_cayley(Lam) * x + port end
end

local function no_h_on_port(m) m.port = function(_, B, u) return B * u end end
local function half_meter(m) m.meter = function(xs) return maps.meter(xs) / 2 end end
local function sign_of_logdet(m) m.log_volume = function(xs) return -maps.log_volume(xs) end end
local function allowance_of_u(m) m.allowance = function(h, _, u) return h * u:norm() end end
local function trace_for_logdet(m) m.log_volume = maps.meter end
local function backward_with_M(m) m.backward = function(C, Lam, g) return Lam * (C * g) end end
local function sign_of_S(m) m.cayley = function(S) return maps.cayley(-S) end end
local function sign_of_R(m) m.damping = function(R, h) return maps.damping(-R, h) end end
local function end_point(m) m.midpoint = function(a) return a end end
local function no_port(m) m.port_jacobian = function(M) return M end end

local function right_polar(m)
  m.polar = function(M)
    local H, C = maps.polar(M:transpose())
    return H, C:transpose()
  end
end

local function C_for_N(m) m.cayley_adjoint = function(C, G) return -(C:transpose() * G * C:transpose()) end end
local function no_transpose(m)
  m.cayley_adjoint = function(C, G)
    local N = (eye_of(C) + C) / 2.0
    return -(N * G * N)
  end
end

return {
  T1 = { { "explicit step I - S", explicit_transport }, { "truncated exponential", truncated_exp } },
  T2 = { { "A in place of A - A'", not_skew } },
  T3 = { { "sign of R", damping_sign } },
  T4 = { { "absolute value of the spectrum", absolute }, { "spectrum clamped at 0", clamped } },
  T5 = { { "guard missing", no_guard }, { "guard factor applied to R", guard_on_R } },
  T6 = { { "factor 2 dropped", no_two } },
  T7 = { { "factor 2 dropped", no_two } },
  T8 = { { "explicit step", explicit_step }, { "h lost on the port", no_h_on_port } },
  T9 = { { "meter with h/2", half_meter }, { "sign of ln|det|", sign_of_logdet } },
  T10 = { { "ceiling accumulates ||u||", allowance_of_u } },
  T11 = { { "trace in place of ln|det|", trace_for_logdet }, { "sign of ln|det|", sign_of_logdet } },
  T12 = { { "backward with M in place of M'", backward_with_M } },
  T13 = { { "sign of S", sign_of_S }, { "sign of R", sign_of_R } },
  E1 = { { "exp(+S)", sign_of_S }, { "explicit step I - S", explicit_transport } },
  E2 = { { "damping read at the start, not the midpoint", end_point } },
  E3 = { { "Jacobian without the port", no_port } },
  E4 = { { "right polar factors", right_polar } },
  E5 = { { "trace in place of ln|det|", trace_for_logdet } },
  E6 = { { "trace in place of ln|det|", trace_for_logdet } },
  E7 = { { "explicit step", explicit_step } },
  E8 = { { "C in place of N", C_for_N }, { "transposes lost", no_transpose } },
}
