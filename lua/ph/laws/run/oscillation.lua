--- L4, figure 4: where the explicit step makes energy and the Cayley step does not (docs/laws.md, 1.5).

local native = require "ph.native"
local boundary = require "ph.laws.boundary"
local m = require "ph.laws.measures"
local result = require "ph.laws.result"

local law = { name = "oscillation", figure = "fig4" }

law.keys = {
  { "damping", kind = "number", min = 0, max = 2, default = 0.05, doc = "h r at which the boundary is crossed" },
  { "points", kind = "integer", min = 100, max = 100000000, default = 1000001, doc = "points on 0 <= h j <= 1" },
}

--- The first h j of the grid at which the explicit step grows.
local function crossing(hr, n)
  for i = 0, n - 1 do
    local hj = i / (n - 1)
    if (1 - hr) ^ 2 + hj * hj > 1 then return hj end
  end
  return 0 / 0
end

local function moduli(hr)
  local rows = { explicit = {}, transport = {}, damping = {}, joint = {} }
  for i = 0, 100 do
    local o = boundary.oscillation { r = hr, j = i / 100, h = 1 }
    for name, list in pairs(rows) do list[i + 1] = { i / 100, o[name] } end
  end
  return rows
end

local function figure(hr, at)
  local rows, circle, phase = moduli(hr), {}, {}
  for i = 0, 120 do circle[i + 1] = { math.sin(i * math.pi / 120), 1 - math.cos(i * math.pi / 120) } end
  for i = 1, 100 do
    local o = boundary.oscillation { r = 0, j = i / 20, h = 1 }
    phase[i] = { i / 20, o.phase_error }
  end
  return { name = "fig4", title = "The oscillation boundary", panels = {
    { xlabel = "h j", ylabel = "modulus of a step",
      series = {
        m.line("explicit", rows.explicit, 2), m.line("Cayley transport", rows.transport, 1),
        m.line("Cayley damping", rows.damping, 3), m.line("Cayley, both at once", rows.joint, 4),
        m.line("h j = " .. m.short(at), { { at, 0.94 }, { at, 1.4 } }, 7, "rule"),
      } },
    { xlabel = "h j", ylabel = "h r", xmin = 0, xmax = 2, ymin = 0, ymax = 2.2,
      series = { m.line("explicit step contracts inside", circle, 2) } },
    { xlabel = "h j", ylabel = "phase error h j - 2 atan(h j/2)",
      series = { m.line("Cayley transport", phase, 1) } } } }
end

--- Runs the law: metrics, tensors by path, figure.
function law.run(v)
  local at = crossing(v.damping, v.points)
  local o = boundary.oscillation { r = v.damping, j = at, h = 1 }
  local least = 1.0
  for i = 0, 1000 do
    least = result.least(least, 1 - boundary.oscillation { r = v.damping, j = i / 10, h = 1 }.joint)
  end
  local metrics = {
    crossing = at, predicted = o.crossing, loose = math.sqrt(2 * v.damping), ["damping.modulus"] = o.damping,
    ["joint.modulus"] = o.joint, ["joint.margin"] = least,
  }
  local rows = moduli(v.damping)
  return metrics,
    { explicit = m.matrix(rows.explicit), joint = m.matrix(rows.joint), damping = native.from({ o.damping }, "f64") },
    figure(v.damping, at)
end

law.table = {
  { "crossing at h r = 0.05", "0.312",
    function(x) return string.format("%.5f (predicted %.5f)", x.crossing, x.predicted) end,
    "the same; the paper's rule h j^2 <= 2 r would give " .. string.format("%.4f", math.sqrt(0.1)) },
  { "modulus of the Cayley damping", "2 - O(hr)",
    function(x) return string.format("%.6f at h r = 0.05", x["damping.modulus"]) end,
    "cannot be right: it is (1 - hr/2)/(1 + hr/2) = 1 - hr + ..., below 1 for every h r > 0; the transport modulus "
    .. "is 1 exactly" },
}

return law
