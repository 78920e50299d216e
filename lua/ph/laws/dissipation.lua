--- Laws of the dissipation channel: spectrum, volume, meter, budget (docs/laws.md, sections 1.3, 3, 5).

local native = require "ph.native"
local budgets = require "ph.lang.budget"
local maps = require "ph.laws.maps"
local result = require "ph.laws.result"
local la = native.la

local dissipation = {}

-- Eigenvalues of a symmetric matrix, ascending; singular values of any other, ascending.
local function spectrum_of(M, symmetric)
  if symmetric then return la.eigh((M + M:transpose()) / 2.0):totable() end
  local out = la.svd(M):totable()
  table.sort(out)
  return out
end

--- Norm of a matrix and its spectrum, an ascending list: the eigenvalues of a symmetric one such as Lambda, else the
-- singular values; `kernel` = how many are 1.
function dissipation.contraction(Lam)
  local d, tol = result.square("contraction", Lam), 1e-12
  local symmetric = result.max_abs(Lam - Lam:transpose()) <= tol
  local spectrum, kernel = spectrum_of(Lam, symmetric), 0
  for _, v in ipairs(spectrum) do
    if math.abs(v - 1) < 1e-10 then kernel = kernel + 1 end
  end
  local value = result.most(math.abs(spectrum[1] or 0), math.abs(spectrum[d] or 0))
  return result.new {
    law = symmetric and "contraction ||Lambda||" or "contraction ||M||", value = value, tol = tol,
    ok = value <= 1 + tol, spectrum = spectrum, symmetric = symmetric, kernel = kernel,
    means = string.format(
      symmetric and "damping never amplifies; %d of %d directions are left alone"
        or "the matrix is not symmetric, so these are singular values; %d of %d are 1", kernel, d),
  }
end

--- hR with Lam = damping(R, h): only the product is identifiable. `hR`, and the tolerance (1
-- + x/2)^2 eps of the worst eigenvalue.
function dissipation.generator(Lam)
  local d = result.square("generator", Lam)
  local hR = maps.inverse_cayley(Lam)
  local x = math.max(0, la.svd(hR):at(1))
  local tol = 1e-14 * d * (1 + x / 2) ^ 2
  local value = result.max_abs(maps.damping((hR + hR:transpose()) / 2.0, 1.0) - Lam)
  return result.new {
    law = "damping round trip max|damping(hR) - Lambda|", value = value, tol = tol, ok = value <= tol, hR = hR,
    means = "hR = 2(I - Lambda)(I + Lambda)^-1; h and R alone cannot be told apart",
  }
end

--- ln|det Lam| of hR by its eigenvalues (exact at any size), beside the meter -h tr R and the first terms
--- of the series (7). `sign` of the determinant; `series[k]` with k terms, `error` = meter - value
--- without cancellation (eigenvalues below 2).
function dissipation.volume_of(R, h)
  result.meant("volume", "p", R)
  local xs = maps.spectrum(R, h)
  local value, sign, excess = maps.log_volume(xs), 1, 0.0
  for _, x in ipairs(xs) do
    if x > 2 then sign = -sign elseif x == 2 then sign = 0 end
    excess = excess + (x < 2 and maps.meter_excess(x) or 0 / 0)
  end
  local meter = maps.meter(xs)
  return result.new {
    law = "log-volume ln|det Lambda|", value = value, sign = sign, meter = meter, error = excess, spectrum = xs,
    series = dissipation.series(xs, 8),
    means = string.format("contracts volume by e^%.4g, det has sign %+d; the meter reads %.6g", -value, sign, meter),
  }
end

--- Partial sums of (7): list with 1 .. terms terms.
function dissipation.series(xs, terms)
  local out, sum = {}, 0.0
  for k = 0, terms - 1 do
    for _, x in ipairs(xs) do sum = sum - x ^ (2 * k + 1) / ((2 * k + 1) * 4.0 ^ k) end
    out[k + 1] = sum
  end
  return out
end

--- Below this the numbers of float64 lose digits.
local smallest_error <const> = 1e-290

--- The meter's error at steps h, h/2, ... (`count` halvings) for one R, and the ratios, which
-- are never below 8 for h lambda_max < 2.
function dissipation.meter_error(R, h, count)
  result.meant("meter_error", "p", R)
  local base, errors, ratios = maps.spectrum(R, h), {}, {}
  if (base[#base] or 0) >= 2 then
    error(string.format("meter_error: h lambda_max = %.4g, the series needs less than 2", base[#base]), 0)
  end
  for k = 0, count or 4 do
    local sum = 0.0
    for _, x in ipairs(base) do sum = sum + maps.meter_excess(x * 0.5 ^ k) end
    if k > 0 and sum < smallest_error then break end
    errors[k + 1] = sum
    if k > 0 then ratios[k] = errors[k] / sum end
  end
  local least, halvings = result.least(math.huge, table.unpack(ratios)), #errors - 1
  local cut = halvings < (count or 4)
    and string.format("; after %d halvings float64 has no digits left for it", halvings) or ""
  return result.new {
    law = "meter error, smallest halving ratio", value = least, tol = 1e-9, ok = least >= 8 - 1e-9, errors = errors,
    ratios = ratios, means = "-h tr R is off by sum (h r)^3/12 + ...; halving h gains a factor of at least 8" .. cut,
  }
end

--- Does the guard act, and what does it leave? `Leff`, `active`; value h lambda_max(R_eff).
function dissipation.guarded(L, h, budget)
  budget = budget or 1
  local Leff = maps.guard(L, h, budget)
  local xs = maps.spectrum(maps.gram(Leff), h)
  local value, tol = xs[#xs] or 0, 1e-12 * budget
  local same = Leff:bytes() == L:bytes()
  return result.new {
    law = "guarded budget h lambda_max(R)", value = value, tol = tol, ok = value <= budget + tol, Leff = Leff,
    active = not same, means = same and "the guard leaves L bit for bit" or "the guard scales L",
  }
end

--- The damping that a volume needs: a stream of `depth` layers of `width` that is to contract volume by `contract`
--- (kappa). `budget` is the guard b with depth * width * 2 artanh(b/2) = ln kappa: no weights contract more, and all
--- eigenvalues at b contract exactly that. `meter` is then sum h tr R; `least` and `most` bracket every sum h tr R that
--- contracts by kappa under the guard 1 (eq. 8).
function dissipation.budget_for(request)
  local kappa, width, depth = request.contract, request.width, request.depth or 1
  if not (kappa and kappa > 1 and kappa < math.huge) then error("budget: contract must be a number above 1", 0) end
  if not (width and width >= 1 and depth >= 1) then error("budget: width and depth must be at least 1", 0) end
  local log_kappa, budget = math.log(kappa), budgets.for_contraction(kappa, width, depth)
  return result.new {
    law = "damping for a volume", value = budget, budget = budget, meter = budget * width * depth,
    least = log_kappa / math.log(3), most = log_kappa,
    means = string.format("guard h lambda_max(R) <= %.6g lets %d layers contract by %g and no more", budget, depth,
      kappa),
  }
end

return dissipation
