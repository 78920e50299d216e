--- A generated regression task: a random net is the teacher.
--
--   y = V tanh(W x + b) + noise,   x ~ N(0, 1)
--
-- W (hidden, width) and V (outputs, hidden) are normal with deviation 1/sqrt of their columns, b is uniform in
-- [-1, 1). Every number comes from (seed, name, index), and the net runs on the kernels of the op table: the same bits
-- everywhere.

local native = require "ph.native"
local task = require "ph.lang.task"

local teacher = {}

local function normal(seed, name, rows, cols, scale)
  return native.random("normal", seed, "teacher/" .. name, { rows, cols }, scale, "f64")
end

--- op(parameter, states) or op(states, parameter) for states (n, d).
local function apply(m, x) return native.op("apply", { m, x }, {}, { false, true }) end
local function bias(x, b) return native.op("bias", { x, b }, {}, { true, false }) end

local function load(v, seed)
  local n = v.split.train + v.split.val + v.split.test
  local x = normal(seed, "x", n, v.width, 1)
  local inner = apply(normal(seed, "W", v.hidden, v.width, 1 / math.sqrt(v.width)), x)
  local b = native.random("uniform", seed, "teacher/b", { v.hidden }, 1, "f64")
  local hidden = native.op("tanh", { bias(inner, b) }, {}, { true })
  local y = apply(normal(seed, "V", v.outputs, v.hidden, 1 / math.sqrt(v.hidden)), hidden)
  y = native.op("add", { y, normal(seed, "noise", n, v.outputs, v.noise) }, {}, { true, true })
  return task.splits(x:cast "f32", y:cast "f32", v.split)
end

teacher.teacher = task.constructor({
  name = "task.teacher",
  doc = "Regression: normal inputs and what a random net of one hidden layer gives for them, plus noise.",
  example = "ph.task.teacher { width = 8, outputs = 2, split = { train = 3600, val = 1200, test = 1200 } }",
  keys = {
    { "width", kind = "integer", min = 1, max = 65536, default = 8, doc = "numbers of an input" },
    { "outputs", kind = "integer", min = 1, max = 65536, default = 1, doc = "numbers of a target" },
    { "hidden", kind = "integer", min = 1, max = 65536, default = 16, doc = "width of the teacher" },
    { "noise", kind = "number", min = 0, max = 1e6, default = 0.1, doc = "deviation of the noise on every target" },
    task.split_key "{ train = N, val = N, test = N }",
    task.seed_key(),
  },
}, {
  shape = function(v) return { positions = 1, features = v.width, outputs = v.outputs } end,
  load = load,
  check = function(v) task.need_test("task.teacher", v) end,
})

return teacher
