-- E6b: LayerNorm on the trunk. The source registered three guesses for this net before it ran: forward growth in [0.5, 2], a
-- backward gradient ratio of at most 2, accuracy at depth 240 of at least 0.95. It reports all three missed, with a largest
-- ratio ||g_t|| / ||g_L|| of 2.99e8, "explodes".
--
-- Direction of the ratio. Here g_t = dLoss/dz_t, ratios are to g_L at the end of the stream; grad.max and grad.min are the ends
-- of ||g_t|| / ||g_L|| over the layers. The source's numbers are close to the reciprocals of these, so its ratio is probably
-- inverted, and its "explodes" then reads "vanishes". The guess is therefore judged as written, and in the other direction;
-- ||g_L|| / ||g_t|| <= 2 for all t is ||g_t|| / ||g_L|| >= 1/2, a form that also holds against a gradient that is zero.
--
-- Geometry, noise and scales of the tasks are those of e6.lua, fitted there.
local ph = require "ph"

local d <const> = 32

local block = {}

function block.resnet_tln(z)
  return ph.layernorm(z + ph.affine(d)(ph.tanh(ph.affine(d)(z))))
end

local split = { train = 3600, val = 1200, test = 1200 }
local task = {
  circles = ph.task.circles { classes = 4, width = d, spread = 0.2, noise = 0.25, split = split },
  spirals = ph.task.spirals { classes = 2, width = d, turns = 2.5, noise = 0.1, split = split },
}
local classes = { circles = 4, spirals = 2 }
local seeds = { 0, 1, 2 }

-- A diverged net has learned nothing: it counts as accuracy 0.
local function accuracy(name, depth) return ph.mean { "test.accuracy", task = name, depth = depth, diverged = 0 } end
local function growth(name, depth) return ph.mean { "growth", task = name, depth = depth } end
local function largest(name, depth) return ph.max { "grad.max", task = name, depth = depth } end
local function smallest(name, depth) return ph.min { "grad.min", task = name, depth = depth } end

return ph.experiment {
  name    = "e6b",
  note    = "Does LayerNorm on the trunk pin the state's scale, and what does that cost the backward pass and the accuracy at depth 240?",
  task    = function(cell) return task[cell.task] end,
  model   = function(cell)
    return { ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(classes[cell.task]) }
  end,
  grid    = {
    { task = "circles", family = "resnet_tln", depth = { 30, 120, 240 }, seed = seeds },
    { task = "spirals", family = "resnet_tln", depth = 120, seed = seeds },
  },
  select  = { lr = { 1e-3, 3e-3 }, by = "val.accuracy" },
  train   = ph.adam { batch = 128, epochs = 80, patience = 15 },
  measure = { ph.growth(), ph.gradient_envelope() },

  rules = {
    ph.rule { "growth", ph.every { ph.band(ph.mean { "growth" }, 0.5, 2.0), task = "circles", depth = "*" },
      note = "registered: growth in [0.5, 2.0]" },
    ph.rule { "gradient as written", ph.every { { ph.max { "grad.max" }, "<=", 2 }, task = "circles", depth = "*" },
      note = "registered: ||g_t|| / ||g_L|| at most 2, worst layer and worst seed" },
    ph.rule { "gradient inverted", ph.every { { ph.min { "grad.min" }, ">=", 0.5 }, task = "circles", depth = "*" },
      note = "the same guess for ||g_L|| / ||g_t||" },
    ph.rule { "accuracy", { accuracy("circles", 240), ">=", 0.95 }, note = "registered: at least 0.95 at depth 240" },
    ph.rule { "scale is pinned", { ph.ratio(growth("circles", 240), growth("circles", 30)), "<=", 1.25 },
      note = "the trunk's scale at depth 240 is that at depth 30, whatever it is" },
    ph.rule { "backward vanishes at 240", { smallest("circles", 240), "<=", 1e-4 } },
    ph.rule { "backward explodes at 240", { largest("circles", 240), ">=", 1e4 } },

    ph.category { "the guess holds as written", when = ph.all { "growth", "gradient as written", "accuracy" }, holds = true },
    ph.category { "the guess holds with the ratio inverted", when = ph.all { "growth", "gradient inverted", "accuracy" }, holds = true },
    ph.category { "pinned, vanishing backward", when = ph.all { "scale is pinned", "backward vanishes at 240", ph.none { "backward explodes at 240" } } },
    ph.category { "pinned, exploding backward", when = ph.all { "scale is pinned", "backward explodes at 240" } },
    ph.category { "the guess fails otherwise" },
  },

  predictions = {
    ph.prediction { "growth, circles 30", growth("circles", 30), band = { 0.5, 2.0 }, paper = 3.5 },
    ph.prediction { "growth, circles 120", growth("circles", 120), band = { 0.5, 2.0 }, paper = 3.4 },
    ph.prediction { "growth, circles 240", growth("circles", 240), band = { 0.5, 2.0 }, paper = 3.2 },
    ph.prediction { "growth, spirals 120", growth("spirals", 120), band = { 0.5, 2.0 }, paper = 7.5 },
    ph.prediction { "largest g_t/g_L, circles 240", largest("circles", 240), at_most = 2, paper = 2.99e8, note = "as written" },
    ph.prediction { "largest g_L/g_t, circles 240", ph.ratio(1, smallest("circles", 240)), at_most = 2, paper = 2.99e8, note = "inverted" },
    ph.prediction { "largest g_t/g_L, spirals 120", largest("spirals", 120), at_most = 2, paper = 2.6e3, note = "as written" },
    ph.prediction { "largest g_L/g_t, spirals 120", ph.ratio(1, smallest("spirals", 120)), at_most = 2, paper = 2.6e3, note = "inverted" },
    ph.prediction { "accuracy, circles 30", accuracy("circles", 30), at_least = 0.95, paper = 0.971 },
    ph.prediction { "accuracy, circles 120", accuracy("circles", 120), at_least = 0.95, paper = 0.970 },
    ph.prediction { "accuracy, circles 240", accuracy("circles", 240), at_least = 0.95, paper = 0.409 },
    ph.prediction { "accuracy, spirals 120", accuracy("spirals", 120), band = { 0.45, 0.60 }, paper = 0.513 },
  },
}
