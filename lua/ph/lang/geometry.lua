--- Generated tasks: circles and spirals in a random plane of R^width.
--
--   circles   class k at angle 2 pi k / classes + spread N(0, 1) on the unit circle
--   spirals   t ~ U(0, 1), radius t, angle 2 pi (turns t + k / classes)
--
-- The plane is spanned by two orthonormal directions drawn from the seed; noise N(0, 1) times `noise` is added on all
-- coordinates. Classes are balanced and in random order. Every number comes from (seed, name, index).

local native = require "ph.native"
local task = require "ph.lang.task"
local trig = require "ph.util.trig"

local geometry = {}

local function total(split) return split.train + split.val + split.test end

--- Labels 0..classes-1, as even as possible, in random order: list and i32 tensor.
local function labels(name, seed, n, classes)
  local order = native.permutation(seed, name .. "/labels", 0, n):totable()
  local k = {}
  for i = 1, n do k[i] = (order[i] - 1) % classes end
  return k, native.from(k, "i32")
end

--- Two orthonormal directions of R^d.
local function plane(name, seed, d)
  local g = native.random("normal", seed, name .. "/plane", { 2, d }, 1, "f64"):totable()
  local p, q = g[1], g[2]
  local function normalize(v)
    local sum = 0
    for j = 1, d do sum = sum + v[j] * v[j] end
    for j = 1, d do v[j] = v[j] / math.sqrt(sum) end
  end
  normalize(p)
  for _ = 1, 2 do -- twice: the second pass removes what rounding left
    local along = 0
    for j = 1, d do along = along + p[j] * q[j] end
    for j = 1, d do q[j] = q[j] - along * p[j] end
    normalize(q)
  end
  return p, q
end

-- Numbers of a block of rows: as Lua tables all rows at once would be large.
local block_numbers <const> = 1 << 16

--- Points (xs, ys) of the plane as rows of an f32 tensor (n, d), noise added.
local function embed(name, seed, xs, ys, d, noise)
  local n, rows = #xs, math.max(1, block_numbers // d)
  local p, q = plane(name, seed, d)
  local blocks, floats = {}, "<" .. string.rep("f", d)
  for first = 1, n, rows do
    local last = math.min(first + rows - 1, n)
    local block = native.random("normal", seed, name .. "/noise", { last - first + 1, d }, noise, "f64",
      (first - 1) * d):totable()
    for i = first, last do
      local row, x, y = block[i - first + 1], xs[i], ys[i]
      for j = 1, d do row[j] = x * p[j] + y * q[j] + row[j] end
      block[i - first + 1] = string.pack(floats, table.unpack(row))
    end
    blocks[#blocks + 1] = table.concat(block)
  end
  return native.from_bytes(table.concat(blocks), { n, d }, "f32")
end

local function load_circles(v, seed)
  local n = total(v.split)
  local k, y = labels("circles", seed, n, v.classes)
  local spread = native.random("normal", seed, "circles/angle", { n }, v.spread, "f64"):totable()
  local xs, ys = {}, {}
  for i = 1, n do
    local s, c = trig.sincos(2 * math.pi * k[i] / v.classes + spread[i])
    xs[i], ys[i] = c, s
  end
  return task.splits(embed("circles", seed, xs, ys, v.width, v.noise), y, v.split)
end

local function load_spirals(v, seed)
  local n = total(v.split)
  local k, y = labels("spirals", seed, n, v.classes)
  local t = native.random("uniform", seed, "spirals/t", { n }, 0.5, "f64"):totable()
  local xs, ys = {}, {}
  for i = 1, n do
    local r = t[i] + 0.5
    local s, c = trig.sincos(2 * math.pi * (v.turns * r + k[i] / v.classes))
    xs[i], ys[i] = r * c, r * s
  end
  return task.splits(embed("spirals", seed, xs, ys, v.width, v.noise), y, v.split)
end

local function keys(classes, noise, own)
  return {
    { "classes", kind = "integer", min = 2, max = 1000, default = classes, doc = "number of classes" },
    { "width", kind = "integer", min = 2, max = 65536, default = 32, doc = "dimension of the space the plane lies in" },
    own,
    { "noise", kind = "number", min = 0, max = 1e6, default = noise,
      doc = "deviation of the noise on every coordinate" },
    task.split_key "{ train = N, val = N, test = N }",
    task.seed_key(),
  }
end

local function source(name, load)
  return {
    shape = function(v) return { classes = v.classes, positions = 1, features = v.width } end,
    load = load,
    check = function(v) task.need_test(name, v) end,
  }
end

geometry.circles = task.constructor({
  name = "task.circles",
  doc = "Points around the unit circle in a random plane; the class is the arc that a point was drawn for. Classes are "
    .. "balanced over the three splits together.",
  example = "ph.task.circles { classes = 4, split = { train = 3600, val = 1200, test = 1200 } }",
  keys = keys(4, 0.25,
    { "spread", kind = "number", min = 0, max = 1e3, default = 0.2, doc = "deviation of the angle in radians" }),
}, source("task.circles", load_circles))

geometry.spirals = task.constructor({
  name = "task.spirals",
  doc = "Interleaved spirals in a random plane, radius uniform in (0, 1); the class is the arm. Classes are balanced "
    .. "over the three splits together.",
  example = "ph.task.spirals { turns = 2.5, split = { train = 3600, val = 1200, test = 1200 } }",
  keys = keys(2, 0.1, { "turns", kind = "number", above = 0, max = 1e3, default = 2.5, doc = "turns of each arm" }),
}, source("task.spirals", load_spirals))

return geometry
