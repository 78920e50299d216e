--- What a matrix has to be for an op or a law to mean what it says: skew, positive semidefinite, orthogonal. Rounding
-- is allowed for; anything else would give a number that looks like an answer.

local native = require "ph.native"
local la = native.la

local domains = {}

--- Room for the rounding of whatever made the matrix, relative to its largest entry.
local slack <const> = { f32 = 1e-4, f64 = 1e-8 }

local function largest(t) return math.max(math.abs(t:min()), math.abs(t:max())) end

local function exceeds(defect, t) return largest(defect) > slack[t:dtype()] * largest(t) end

local function skew(t)
  local defect = t + t:transpose()
  if exceeds(defect, t) then
    return string.format("not skew: S + S^T has an entry of size %.4g; the skew part is (S - S^T)/2", largest(defect))
  end
end

local function semidefinite(t)
  local defect = t - t:transpose()
  if exceeds(defect, t) then
    return string.format("not symmetric: R - R^T has an entry of size %.4g; the symmetric part is (R + R^T)/2",
      largest(defect))
  end
  local wide = t:cast "f64"
  local least = la.eigh((wide + wide:transpose()) / 2.0):at(1)
  if least < -slack[t:dtype()] * largest(t) then
    return string.format("not positive semidefinite: its smallest eigenvalue is %.4g", least)
  end
end

local function orthogonal(t)
  local defect = t:transpose() * t - native.eye(t:shape()[1]):cast(t:dtype())
  if largest(defect) > slack[t:dtype()] then
    return string.format("not orthogonal: C^T C - I has an entry of size %.4g", largest(defect))
  end
end

local function positive(t)
  if t:min() <= 0 then return string.format("not above 0 everywhere: its smallest entry is %.4g", t:min()) end
end

local kinds <const> = { k = skew, p = semidefinite, o = orthogonal, a = positive }

--- What is wrong with a tensor for an argument of this letter (core/ir/op.h; o: orthogonal), nil when nothing is: "not
-- skew: ...". Letters that ask for nothing let everything pass, and so does what is not a square matrix: its shape is
-- told elsewhere.
function domains.problem(letter, t)
  local shape = t:shape()
  local square = #shape == 2 and shape[1] == shape[2]
  if not kinds[letter] or t:count() == 0 or (letter ~= "a" and not square) then return nil end
  if t:first_nonfinite() then return "not finite: it holds nan or an infinity" end
  return kinds[letter](t)
end

return domains
