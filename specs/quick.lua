-- A first look: a stream with built-in stability and a residual net, both 30 layers deep, on four classes around a circle.
local ph = require "ph"

local d, h = 32, 0.6

local block = {}

function block.ph(z)
  local C, Lambda = ph.cayley { d }, ph.damping { d, step = h, budget = 1 }
  local B = ph.linear { d, init = ph.normal(1 / math.sqrt(d)) }
  return Lambda * (C * z) + h * B(ph.tanh(ph.affine(d)(z)))
end

function block.resnet(z)
  return z + ph.affine(d)(ph.tanh(ph.affine(d)(z)))
end

return ph.experiment {
  name    = "quick",
  task    = ph.task.circles { classes = 4, width = d, spread = 0.2, noise = 0.25, split = { train = 3600, val = 1200, test = 1200 } },
  model   = function(cell) return { ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(4) } end,
  grid    = { family = { "ph", "resnet" }, depth = 30, seed = 0 },
  train   = ph.adam { lr = 1e-4, batch = 128, epochs = 30, patience = 10 },
  measure = { ph.growth(), ph.gradient_envelope(), ph.port_budget() },
}
