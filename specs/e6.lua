-- E6: do nets with built-in stability train as well as residual nets when they are deep, and how do their norms behave?
--
-- The source paper prints neither the geometry of its tasks nor its step size and initial scales. The values here were fitted:
-- they are the ones that come closest to every figure the paper prints for this experiment (norm growth of the trunk-LayerNorm
-- net fixes the noise, accuracy the spread of the angle, growth of the ph net h and the scale of L). A match with the paper's
-- growth is therefore no independent confirmation; the accuracies and the growth of the plain residual nets are.
local ph = require "ph"

local d <const> = 32
local h <const> = 0.6
local function normal(scale) return ph.normal(scale / math.sqrt(d)) end

local function port(z)
  return h * ph.linear { d, init = normal(1) } (ph.tanh(ph.affine(d)(z)))
end

local block = {}

function block.ph(z)
  local C = ph.cayley { d, init = normal(0.5) }
  local Lambda = ph.damping { d, step = h, budget = 1, init = normal(0.1) }
  return Lambda * (C * z) + port(z)
end

function block.cayley(z)
  return ph.cayley { d, init = normal(0.5) } * z + port(z)
end

function block.resnet(z)
  return z + ph.affine(d)(ph.tanh(ph.affine(d)(z)))
end

function block.resnet_ln(z)
  return z + ph.affine(d)(ph.tanh(ph.layernorm(ph.affine(d)(z))))
end

local split = { train = 3600, val = 1200, test = 1200 }
local task = {
  circles = ph.task.circles { classes = 4, width = d, spread = 0.2, noise = 0.25, split = split },
  spirals = ph.task.spirals { classes = 2, width = d, turns = 2.5, noise = 0.1, split = split },
}
local classes = { circles = 4, spirals = 2 }
local families = { "ph", "resnet", "resnet_ln", "cayley" }
local seeds = { 0, 1, 2 }

return ph.experiment {
  name    = "e6",
  task    = function(cell) return task[cell.task] end,
  model   = function(cell)
    return { ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(classes[cell.task]) }
  end,
  grid    = {
    { task = "circles", family = families, depth = { 30, 120, 240 }, seed = seeds },
    { task = "spirals", family = families, depth = 120, seed = seeds },
  },
  select  = { lr = { 1e-3, 3e-3 }, by = "val.accuracy" },
  train   = ph.adam { batch = 128, epochs = 80, patience = 15 },
  measure = { ph.growth(), ph.gradient_envelope(), ph.port_budget() },
}
