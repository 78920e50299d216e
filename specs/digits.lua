-- Real images, 28 x 28, ten classes: Fashion-MNIST (Debian's dataset-fashion-mnist); MNIST with data=DIR.
--
--   variant depth   an image is one vector of 784 pixels; 30 layers of width 64, each with its own parameters
--   variant time    an image is a sequence of 28 rows; one set of parameters, one row a step
local ph = require "ph"

local d <const> = 64
local h <const> = 0.3
local function normal(scale) return ph.normal(scale / math.sqrt(d)) end

local function channels(x)
  return ph.damping { d, step = h, budget = 1 } * (ph.cayley { d } * x)
end

local block = {}

function block.ph(z)
  return channels(z) + h * ph.linear { d, init = normal(1) } (ph.tanh(ph.affine(d)(z)))
end

function block.resnet(z)
  return z + ph.affine(d)(ph.tanh(ph.affine(d)(z)))
end

-- Over time: the port is pushed by the row and by the state.
local function step(x, u)
  return channels(x) + h * ph.linear { d, init = normal(1) } (ph.tanh(ph.affine(d)(x) + ph.linear { d, name = "U" } (u)))
end

local function images(as)
  return ph.task.images { dir = "/usr/share/datasets/fashion-mnist", as = as, split = { train = 54000, val = 6000 } }
end
local task = { depth = images "vector", time = images "rows" }

return ph.experiment {
  name  = "digits",
  task  = function(cell) return task[cell.variant] end,
  model = function(cell)
    if cell.variant == "time" then return { ph.stream { width = d, block = step }, ph.affine(10) } end
    return { ph.affine(d), ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(10) }
  end,
  grid  = {
    { variant = "depth", family = { "ph", "resnet" }, depth = 30 },
    { variant = "time", family = "ph" },
  },
  train = ph.adam { lr = 1e-3, batch = 128, epochs = 12, schedule = "cosine", patience = 4 },
  measure = { ph.growth() },
}
