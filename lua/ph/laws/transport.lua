--- Laws of the transport channel: orthogonality, volume, reach, phase (docs/laws.md, sections 1.1, 1.5, 3).

local native = require "ph.native"
local maps = require "ph.laws.maps"
local result = require "ph.laws.result"
local la = native.la

local transport = {}

--- max |C^T C - I|. Tolerance 2e-14 sqrt(d): rounding of one inverse and one product, at every norm of the generator.
function transport.orthogonality(C)
  local d = result.square("orthogonality", C)
  local value = result.max_abs(C:transpose() * C - native.eye(d))
  local tol = 2e-14 * math.sqrt(d)
  return result.new { law = "orthogonality max|C'C - I|", value = value, tol = tol, ok = value <= tol,
                      means = "transport keeps every norm and every angle" }
end

--- ln|det C| and its sign. A Cayley transport has determinant exactly +1, never -1.
function transport.transport_volume(C)
  local d = result.square("transport_volume", C)
  local value, sign = la.logdet(C)
  local tol = 2e-14 * d
  return result.new {
    law = "transport volume ln|det C|", value = value, sign = sign, tol = tol,
    ok = math.abs(value) <= tol and sign == 1,
    means = string.format("transport spends no volume; det has sign %+d", sign),
  }
end

--- How far C is from what no Cayley transport can be: the smallest singular value of I + C. It is 0 for reflections
--- (det -1) and for rotations by pi; the generator grows like 2/value. `sign` is that of the determinant.
function transport.reach(C)
  result.meant("reach", "o", C)
  local s = la.svd(native.eye(C:shape()[1]) + C)
  local _, sign = la.logdet(C)
  local value, tol = s:at(s:count()), 1e-12
  local ok = value > tol and sign == 1
  return result.new { law = "distance from an unreachable rotation", value = value, sign = sign, tol = tol, ok = ok,
                      means = ok and "a skew generator gives this rotation"
                      or "no skew generator gives this matrix (eigenvalue -1)" }
end

--- S with C = cayley(S), and the tolerance its conditioning leaves: an error eps of C becomes (1 + sigma^2/4) eps in S.
function transport.generator(C)
  local d = result.square("generator", C)
  local S = maps.inverse_cayley(C)
  local sigma = la.svd(S):at(1)
  local back = maps.cayley((S - S:transpose()) / 2.0)
  local tol = 1e-14 * d * (1 + sigma * sigma / 4)
  local value = result.max_abs(back - C)
  return result.new {
    law = "transport round trip max|cayley(S) - C|", value = value, tol = tol, ok = value <= tol, S = S,
    condition = 1 + sigma * sigma / 4, means = "S = 2(I - C)(I + C)^-1 is the generator",
  }
end

return transport
