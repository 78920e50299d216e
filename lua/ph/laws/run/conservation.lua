--- L1, figure 1: norms under their ceiling at depth, the explicit twin, the standard stream (docs/laws.md, 1.2 and 9).

local native = require "ph.native"
local m = require "ph.laws.measures"
local result = require "ph.laws.result"

local law = { name = "conservation", figure = "fig1" }
local overflow <const> = 1.3407807929942596e154 -- the square of more than this is not a float64

law.keys = {
  { "streams", kind = "integer", min = 1, max = 100000, default = 72, doc = "streams with layers of their own" },
  { "inputs", kind = "integer", min = 1, max = 100000, default = 100, doc = "inputs of each stream" },
  { "own", kind = "integer", min = 1, max = 100000, default = 7200,
    doc = "streams of one input in the second reading of the paper's count" },
  { "depth", kind = "integer", min = 1, max = 10000, default = 300, doc = "layers" },
  { "width", kind = "integer", min = 1, max = 512, default = 32, doc = "width of the state" },
  { "step", kind = "number", above = 0, max = 10, default = 0.05, doc = "step size h" },
  { "damping", kind = "number", min = 0, max = 100, default = 0.5,
    doc = "deviation of the entries of L times sqrt(width)" },
}

--- Violations, worst quotient and the median quotient at every depth.
local function tightness(norm, bound)
  local medians, worst, violations = {}, 0.0, 0
  for k = 2, norm:shape()[2] do
    local r = m.ratio(m.column(norm, k), m.column(bound, k))
    for _, v in ipairs(r:totable()) do
      if not (v <= 1 + 1e-12) then violations = violations + 1 end
    end
    worst, medians[k - 1] = result.most(worst, r:max()), r:quantile(0.5)
  end
  return medians, worst, violations
end

--- 0-based layers at which the squared norm, and the norm itself, leave float64: lists over runs.
local function overflows(norm)
  local square, whole = {}, 0
  for i = 1, norm:shape()[1] do
    local row = norm:index(1, i):totable()
    for k, v in ipairs(row) do
      if not (v <= overflow) then
        square[#square + 1] = k - 2
        break
      end
    end
    if not (row[#row] < math.huge) then whole = whole + 1 end
  end
  table.sort(square)
  return square, whole
end

local function figure(v, norm, bound, twin, control)
  local qs, every = { 0.05, 0.5, 0.95 }, math.max(1, v.depth // 60)
  local band, middle = m.band("stream", m.curve(norm, every, qs), 1)
  local ceiling = { label = "ceiling", style = "line", data = m.curve(bound, every, { 0.5 }), color = 7 }
  local cband, cmiddle = m.band("standard x + Wx", m.curve(control, every, qs), 2)
  local explicit = { label = "explicit twin", style = "line", data = m.curve(twin, every, { 0.5 }), color = 4 }
  local function quotient(c, k) return m.ratio(c, m.column(bound, k)) end
  local tband, tmiddle = m.band("norm / ceiling", m.curve(norm, every, qs, quotient), 1)
  return { name = "fig1", title = "Conservation: norms stay below the port budget", panels = {
    { xlabel = "layer", ylabel = "norm of the state", logy = true,
      series = { cband, cmiddle, explicit, band, middle, ceiling } },
    { xlabel = "layer", ylabel = "norm of the state", logy = true, series = { band, middle, ceiling } },
    { xlabel = "layer", ylabel = "norm / ceiling", logy = true, series = { tband, tmiddle } } } }
end

local function measure_own(v, seed, threads)
  local d = v.width
  local s = 1 / math.sqrt(d)
  local start = native.now()
  local norm, bound, guarded = native.laws.conserve {
    seed = seed, streams = v.own, inputs = 1, depth = v.depth, width = d, step = 0.1, transport = s, damping = s,
    port = s, budget = 1, threads = threads,
  }
  local seconds = native.now() - start
  local medians, worst, violations = tightness(norm, bound)
  return { seconds = seconds, tight = medians[#medians], worst = worst, violations = violations, guarded = guarded }
end

--- The explicit twin: how well its maps come back, and where its norms leave float64.
local function put_twin(metrics, twin, roundtrip)
  local square, whole = overflows(twin)
  metrics["twin.roundtrip"] = roundtrip
  metrics["twin.squares_overflow"], metrics["twin.norms_overflow"] = #square, whole
  if #square == 0 then return end
  metrics["twin.first.min"], metrics["twin.first.max"] = square[1], square[#square]
  metrics["twin.first.median"] = square[(#square + 1) // 2]
end

--- The standard stream: decimal logarithms of its norms after the last layer.
local function put_control(metrics, control, depth)
  local last = m.map(m.column(control, depth + 1), function(x) return math.log(x, 10) end)
  metrics["control.log10.p5"], metrics["control.log10.p95"] = last:quantile(0.05), last:quantile(0.95)
  metrics["control.log10.median"] = last:quantile(0.5)
end

local function put_own(metrics, own, runs)
  metrics["own.runs"], metrics["own.violations"], metrics["own.worst"] = runs, own.violations, own.worst
  metrics["own.tightness"], metrics["own.guarded"] = own.tight, own.guarded
end

--- Runs the law: metrics, tensors by path, figure.
function law.run(v, seed, threads)
  local c = {
    seed = seed, streams = v.streams, inputs = v.inputs, depth = v.depth, width = v.width, step = v.step, transport = 1,
    port = 1, damping = v.damping / math.sqrt(v.width), control = 1 / math.sqrt(v.width), budget = 1, threads = threads,
  }
  local norm, bound, guarded = native.laws.conserve(c)
  local twin, roundtrip = native.laws.twin(c)
  local control = native.laws.control(c)
  local medians, worst, violations = tightness(norm, bound)
  local all = m.matrix { medians }:reshape { #medians }
  local own = measure_own(v, seed, threads)
  local metrics = {
    runs = v.streams * v.inputs, depth = v.depth, violations = violations, worst = worst, guarded = guarded,
    ["tightness.last"] = medians[#medians], ["tightness.all_depths"] = all:quantile(0.5),
  }
  put_twin(metrics, twin, roundtrip)
  put_control(metrics, control, v.depth)
  put_own(metrics, own, v.own)
  local tensors = { tightness = all }
  for name, t in pairs { norm = norm, bound = bound, twin = twin, control = control } do
    tensors[name] = m.curve(t, 1, { 0.05, 0.5, 0.95 })
  end
  return metrics, tensors, figure(v, norm, bound, twin, control), { own_seconds = own.seconds }
end

--- Rows of the table: what, paper, key or function of the metrics, why they differ.
law.table = {
  { "violations of the ceiling", "0 of 7,200",
    function(x)
      return string.format("%d of %s; own layers: %d of %s", x.violations, x.runs, x["own.violations"], x["own.runs"])
    end, "the same; counted here at every layer, not only at the last" },
  { "tightness, median", "0.02",
    function(x)
      return string.format("%s at the last layer, %s over all", m.short(x["tightness.last"]),
        m.short(x["tightness.all_depths"]))
    end, "depends on damping and depth; the paper does not say which; h tr(R)/d = 0.0125 here" },
  { "explicit twin overflows float64 at", "depth 171", function(x)
    return string.format("square of the norm: layer %s / %s / %s (min, median, max); the norm itself: %d of %d runs",
      m.short(x["twin.first.min"]), m.short(x["twin.first.median"]), m.short(x["twin.first.max"]),
      x["twin.norms_overflow"], x.runs) end,
    "cannot be right as said: at 171 the squared norm overflows, the state is near 1e154 and stays finite "
    .. "through depth 300" },
  { "standard stream at depth 300", "7.9e43", function(x)
    return string.format("10^%s (5 to 95 %%: 10^%s .. 10^%s)", m.short(x["control.log10.median"]),
      m.short(x["control.log10.p5"]), m.short(x["control.log10.p95"])) end,
    "one draw of this distribution" },
}

return law
