--- L2, figure 2: transport spends no volume; the meter's cubic error (docs/laws.md, 1.3 and 9).

local native = require "ph.native"
local dissipation = require "ph.laws.dissipation"
local m = require "ph.laws.measures"
local maps = require "ph.laws.maps"
local result = require "ph.laws.result"

local law = { name = "volume", figure = "fig2" }

law.keys = {
  { "layers", kind = "integer", min = 10, max = 1000000, default = 10000, doc = "transports composed" },
  { "width", kind = "integer", min = 1, max = 512, default = 32, doc = "width of the state" },
  { "draws", kind = "integer", min = 1, max = 10000, default = 20, doc = "damping matrices for the meter" },
  { "halvings", kind = "integer", min = 1, max = 40, default = 20, doc = "halvings of the step, from 1/2" },
}

--- Running sums of ln|det C| for generators of one strength: largest single, total, largest
-- running, largest over chains of `chain`.
local function transports(v, seed, scale)
  local d, running, total, single, most, negative = v.width, {}, 0.0, 0.0, 0.0, 0
  local chain, chain_most = 0.0, 0.0
  for k = 0, v.layers - 1 do
    local A = native.random("normal", seed, "laws.A", { d, d }, scale, "f64", k * d * d)
    local value, sign = native.la.logdet(maps.cayley(maps.skew(A)))
    if sign ~= 1 then negative = negative + 1 end
    if k % 300 == 0 then chain = 0.0 end
    total, chain = total + value, chain + value
    single, most = result.most(single, math.abs(value)), result.most(most, math.abs(total))
    chain_most = result.most(chain_most, math.abs(chain))
    if (k + 1) % (v.layers // 100 > 0 and v.layers // 100 or 1) == 0 then
      running[#running + 1] = { k + 1, math.max(math.abs(total), 1e-17) }
    end
  end
  return {
    single = single, total = math.abs(total), most = most, chain = chain_most, negative = negative, running = running,
  }
end

local function factor(v, seed, name, k)
  return native.random("normal", seed, name, { v.width, v.width }, 1 / math.sqrt(v.width), "f64", k * v.width * v.width)
end

--- Errors of the meter, summed over the draws, at steps 1/2, 1/4, ...; `law_of(x, k)`
-- may change the eigenvalues at halving k.
local function meter(v, spectra, law_of)
  local errors, ratios = {}, {}
  for k = 0, v.halvings do
    local sum = 0.0
    for i, xs in ipairs(spectra) do
      for _, x in ipairs(law_of(xs, k, i)) do sum = sum + maps.meter_excess(x) end
    end
    errors[k + 1] = sum
    if k > 0 then ratios[k] = errors[k] / sum end
  end
  return errors, ratios
end

local function scaled(xs, s)
  local out = {}
  for i, x in ipairs(xs) do out[i] = x * s end
  return out
end

--- The paper's steps, 0.4 .. 0.025: ratios of errors for one R, for R drawn anew at every step, and
-- with the guard acting at the coarse end.
local function paper_ratios(v, seed, spectra)
  local fixed, fresh, guarded = {}, {}, {}
  local function error_at(h, guard, offset)
    local sum = 0.0
    for i, xs in ipairs(spectra) do
      local r = offset and maps.spectrum(maps.gram(factor(v, seed, "laws.fresh", offset + i)), 1) or xs
      local top = guard and math.max(1, h * r[#r]) or 1
      for _, x in ipairs(r) do sum = sum + maps.meter_excess(math.min(h * x / top, 1.999999)) end
    end
    return sum
  end
  local hs = { 0.4, 0.2, 0.1, 0.05, 0.025 }
  for k = 1, 4 do
    fixed[k] = error_at(hs[k]) / error_at(hs[k + 1])
    fresh[k] = error_at(hs[k], false, 1000 * k) / error_at(hs[k + 1], false, 1000 * k + 500)
    guarded[k] = error_at(2 * hs[k], true) / error_at(2 * hs[k + 1], true)
  end
  return fixed, fresh, guarded
end

--- One matrix at a time, drawn anew for each step: what single ratios can be.
local function single_ratios(v, seed)
  local all = {}
  for k = 0, 59 do
    local function error_at(h, name)
      local sum = 0.0
      for _, x in ipairs(maps.spectrum(maps.gram(factor(v, seed, name, k)), h)) do
        sum = sum + maps.meter_excess(math.min(x, 1.999999))
      end
      return sum
    end
    all[#all + 1] = error_at(0.2, "laws.single1") / error_at(0.1, "laws.single2")
  end
  local t = native.from(all, "f64")
  return t:quantile(0.05), t:quantile(0.95)
end

local function figure(strong, weak, errors)
  local points, slope = {}, {}
  for k, e in ipairs(errors) do
    local h = 0.5 ^ k
    points[k], slope[k] = { h, e }, { h, errors[#errors] * (h / 0.5 ^ #errors) ^ 3 }
  end
  return { name = "fig2", title = "Volume: transport spends none, the meter errs by h^3", panels = {
    { xlabel = "transports composed", ylabel = "|sum of ln|det C||", logy = true,
      series = { m.line("A ~ N(0, 1)", strong.running, 1), m.line("A ~ N(0, 1/d)", weak.running, 3) } },
    { xlabel = "step h", ylabel = "error of the meter", logx = true, logy = true,
      series = { m.line("error, one R", points, 1, "points"), m.line("slope 3", slope, 7) } } } }
end

--- Runs the law: metrics, tensors by path, figure.
function law.run(v, seed)
  local strong, weak = transports(v, seed, 1.0), transports(v, seed, 1 / math.sqrt(v.width))
  local spectra = {}
  for i = 1, v.draws do spectra[i] = maps.spectrum(maps.gram(factor(v, seed, "laws.meter", i)), 1) end
  local errors, ratios = meter(v, spectra, function(xs, k) return scaled(xs, 0.4 * 0.5 ^ k) end)
  local least, last = math.huge, ratios[#ratios]
  for _, r in ipairs(ratios) do least = result.least(least, r) end
  local fixed, fresh, guarded = paper_ratios(v, seed, spectra)
  local low, high = single_ratios(v, seed)
  local metrics = {
    layers = v.layers, ["det.negative"] = strong.negative + weak.negative, ["det.single"] = strong.single,
    ["det.total"] = strong.total, ["det.most"] = strong.most, ["det.chain300"] = strong.chain,
    ["det.weak.total"] = weak.total, ["det.weak.most"] = weak.most, ["ratio.least"] = least, ["ratio.last"] = last,
    ["ratio.single.p5"] = low, ["ratio.single.p95"] = high, ["meter.smallest_step"] = 0.4 * 0.5 ^ v.halvings,
  }
  for k = 1, 4 do
    metrics["ratio.fixed." .. k], metrics["ratio.fresh." .. k] = fixed[k], fresh[k]
    metrics["ratio.guard." .. k] = guarded[k]
  end
  local tensors = {
    ["running/strong"] = m.matrix(strong.running), ["running/weak"] = m.matrix(weak.running),
    ["meter/error"] = native.from(errors, "f64"), ["meter/ratio"] = native.from(ratios, "f64"),
    ["meter/series"] = native.from(dissipation.series(spectra[1], 8), "f64"),
  }
  return metrics, tensors, figure(strong, weak, errors)
end

law.table = {
  { "ln|det| of 1e4 transports", "4.4e-14, det = +-1", function(x)
    return string.format("single %s, sum %s (A/sqrt d: %s), chains of 300 %s; det = +1 always, %d negative",
      m.short(x["det.single"]), m.short(x["det.total"]), m.short(x["det.weak.total"]), m.short(x["det.chain300"]),
      x["det.negative"]) end, "rounding of the sum; det C is +1, reflections are out of reach" },
  { "halving ratios of the meter", "6.4 to 8.7", function(x)
    return string.format("one R: %s, %s, %s, %s; R drawn anew: 5 to 95 %% %s .. %s", m.short(x["ratio.fixed.1"]),
      m.short(x["ratio.fixed.2"]), m.short(x["ratio.fixed.3"]), m.short(x["ratio.fixed.4"]),
      m.short(x["ratio.single.p5"]), m.short(x["ratio.single.p95"])) end,
    "6.4 cannot be right for one R: every term of the series gains at least 8; below 8 means R changed with h, "
    .. "or the guard acted" },
  { "smallest ratio down to the smallest step", "-",
    function(x) return string.format("%.12g at h >= %s", x["ratio.least"], m.short(x["meter.smallest_step"])) end,
    "computed without cancellation" },
}

return law
