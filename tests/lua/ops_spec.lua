-- Operations of the language: the same words on values of a block and on tensors, what they write down and refuse.
local native = require "ph.native"
local emit = require "ph.lang.emit"
local lines = require "ph.run.lines"
local op_table = require "ph.schema.op_table"
local schema = require "ph.schema"
local ph = require "ph"

local function text_of(positions, features, ...)
  return emit.model({ ... }, { positions = positions, features = features }, { dtype = "f64" })
end

--- Nodes of the only segment of a stage on a state of width 3.
local function nodes(stage)
  local out = {}
  for line in text_of(1, 3, stage):gmatch "node %d+ ([^\n]+)" do out[#out + 1] = line end
  return out
end

local function fails(pattern, f, ...)
  local ok, e = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(e))
end

local function same_numbers(a, b)
  assert.equal(a:count(), b:count())
  local apart = a:reshape { a:count() } - b:reshape { b:count() }
  assert(apart:count() == 0 or (apart:max() <= 1e-12 and apart:min() >= -1e-12), tostring(apart))
end

--- What a stage makes of the rows of x in a compiled model, and with tensors.
local function both_ways(stage, x, positions)
  local shape = x:shape()
  local features = shape[#shape]
  local plan = assert(native.plan(text_of(positions or 1, features, stage), { batch = 8, threads = 1 }))
  local data <close> = native.data(x:reshape { shape[1], x:count() // shape[1] })
  local out = plan:eval(data, nil, true).out
  plan:close()
  return out, stage(ph.batch(x)).tensor
end

describe("the words of the op table", function()
  it("are all there, with usage, doc and the same name", function()
    for _, row in ipairs(op_table.rows) do
      if row.word then
        assert.is_function(ph[row.name], row.name)
        local block = assert(schema.get(row.name), row.name)
        assert.matches("^ph%." .. row.name .. "%(.*%)$", block.usage)
        assert.equal(row.doc, block.doc)
      end
    end
    assert.equal("ph.where(c, x, y)", schema.get("where").usage)
    assert.equal("ph.slice(x, from, to)", schema.get("slice").usage)
    assert.equal("ph.hstack(A, B, ...)", schema.get("hstack").usage)
    assert.equal("ph.solve(A, B)", schema.get("solve").usage)
  end)

  it("give in a compiled model what they give with tensors", function()
    local x = native.random("normal", 3, "ops_spec.x", { 5, 6 })
    local stages = {
      function(z) return ph.concat(ph.slice(z, 2, 4), ph.sin(z), ph.slice(z, 1, 1)) end,
      function(z) return ph.dot(z, ph.exp(ph.tanh(z))) end,
      function(z) return ph.div(z, ph.softplus(z)) - ph.where(z, ph.square(z), ph.abs(z)) end,
      function(z) return ph.softmax(z) + ph.log(ph.exp(z)) + ph.cos(z) end,
      function(z) return ph.mul(z, ph.square(z)) end,
    }
    for _, stage in ipairs(stages) do same_numbers(both_ways(stage, x)) end
  end)

  it("deal positions out and gather them again", function()
    local x = native.random("normal", 4, "ops_spec.p", { 3, 4, 2 })
    local function there_and_back(z) return ph.unfold(ph.fold(z, 2), 2) end
    local compiled, eager = both_ways(there_and_back, x, 4)
    same_numbers(x, compiled)
    same_numbers(x, eager)
    same_numbers(both_ways(function(z) return ph.mean_positions(ph.fold(z, 2)) end, x, 4))
    local image = native.from({ { { { 1 }, { 2 } }, { { 3 }, { 4 } }, { { 5 }, { 6 } }, { { 7 }, { 8 } } } }, "f64")
    same_numbers(native.from({ 1, 2, 3, 4, 5, 6, 7, 8 }, "f64"), ph.fold(ph.batch(image), 2, 2).tensor)
    same_numbers(native.from({ 1, 2, 3, 4, 5, 6, 7, 8 }, "f64"), ph.unfold(ph.fold(ph.batch(image), 2, 2), 2, 2).tensor)
  end)

  it("join any number of values", function()
    local a, b = ph.ones(2, 1), ph.zeros(2, 2)
    assert.same({ 2, 4 }, ph.hstack(a, b, a):shape())
    assert.same({ 6, 2 }, ph.vstack(b, b, b):shape())
    assert.same({ "state", "concat n0 n0", "concat n1 n0" }, nodes(function(z) return ph.concat(z, z, z) end))
    fails("concat: joins at least 2 values, got 1", ph.concat, ph.ones(3))
  end)

  it("say how they are called and what does not fit", function()
    fails("slice: 'to' must be a number, got nothing", ph.slice, ph.ones(4), 2)
    fails("slice: 2 to 9 is not a range of the columns of a state of width 4", ph.slice, ph.ones(4), 2, 9)
    fails("tanh: is called ph.tanh%(x%), got 2 arguments", ph.tanh, ph.ones(3), 2)
    fails("solve: a matrix %(3, 3%) does not fit a matrix %(2, 2%)", ph.solve, ph.eye(3), ph.eye(2))
    fails("inverse: argument 1 must be a square matrix, got a matrix %(2, 3%)", ph.inverse, ph.ones(2, 3))
    fails("fold: blocks of 3 x 1 do not divide a state of 4 positions and width 2", ph.fold,
      ph.batch(ph.ones(1, 4, 2)), 3)
    fails("div: argument 1 must be a value of the block, got the number 1", nodes, function(z) return ph.div(1, z) end)
    fails("ph.div%(x, y%) divides elementwise, ph.solve%(A, B%)", nodes, function(z) return z / z end)
    fails("concat: a state of width 3 does not fit a state of 2 positions and width 3", text_of, 2, 3,
      function(z) return ph.concat(ph.mean_positions(z), z) end)
    fails("gives a matrix %(8193, 8193%); a value has at most", native.op, "diag", { ph.ones(1, 8193) }, {})
  end)
end)

describe("a parameter vector", function()
  it("stretches the features of a state by ph.mul, in a block and outside", function()
    local function stage(z) return ph.mul(ph.param { 1, 3, init = ph.constant(2) }, z) end
    assert.same({ "state", "stretch n0 p0" }, nodes(stage))
    same_numbers(2 * ph.ones(3), stage(ph.ones(3)))
    same_numbers(2 * ph.ones(2, 3), ph.mul(ph.batch(ph.ones(2, 3)), 2 * ph.ones(1, 3)).tensor)
  end)

  it("is added to states outside a block as inside", function()
    same_numbers(3 * ph.ones(2, 3), (ph.batch(ph.ones(2, 3)) + 2 * ph.ones(1, 3)).tensor)
  end)
end)

describe("the identity", function()
  it("times a number plus a matrix simply works, in a block and with tensors", function()
    local L = ph.param { 3, 3, init = ph.normal(1), seed = 5 }
    local sum = 1e-4 * ph.eye(3) + ph.gram(L)
    assert.equal(ph.gram(L):at(2, 2) + 1e-4, sum:at(2, 2))
    local want <const> = { "eye n=3", "scale by=0.0001 n0", "gram p0", "add n1 n2", "state", "apply n3 n4" }
    local function stage(I)
      return function(z) return (1e-4 * (I or ph.eye(3)) + ph.gram(ph.param { 3, 3, init = "ones" })) * z end
    end
    assert.same(want, nodes(stage()))
    assert.same(want, nodes(stage(ph.eye(3)))) -- made outside: lifted
    assert.same(want, nodes(stage(ph.identity { 3 })))
  end)

  it("of a tensor from outside: its multiples are lifted, anything else is refused in one line", function()
    local half, other = 0.5 * ph.eye(3), ph.ones(3, 3)
    assert.same({ "eye n=3", "scale by=0.5 n0", "state", "apply n1 n2" }, nodes(function(z) return half * z end))
    fails("apply: argument 1 is a tensor.* from outside the block; of these a block takes multiples of the identity "
      .. "only: declare a ph.param", nodes, function(z) return other * z end)
  end)

  it("needs a size", function()
    fails("eye: n must be at least 1, got 0", ph.eye, 0)
    fails("eye: n must be", ph.eye, "three")
  end)
end)

describe("ph.solve", function()
  it("of a state applies the inverse, which is made once a layer", function()
    local function stage(z) return ph.solve(ph.eye(3) + ph.skew(ph.param { 3, 3, init = ph.normal(1) }), z) end
    assert.same({ "eye n=3", "skew p0", "add n0 n1", "inverse n2", "state", "apply n3 n4" }, nodes(stage))
    same_numbers(ph.tensor { 0.5, 1, 2 }, ph.solve(2 * ph.eye(3), ph.tensor { 1, 2, 4 }))
  end)

  it("stands an indefinite symmetric part: E of the midpoint rule (docs/laws.md, 12)", function()
    local E = ph.tensor { { 1, -0.25 }, { 25, 1 } }
    same_numbers(ph.eye(2), ph.inverse(E) * E)
    same_numbers(ph.eye(2), E * ph.solve(E, ph.eye(2)))
  end)
end)

describe("a singular matrix", function()
  local function singular(op)
    local text = text_of(1, 3, ph.stream { depth = 4, block = function(z)
      return z + op(ph.gram(ph.param { 3, 3, init = ph.normal(1), name = "L" })) * z
    end })
    local plan = assert(native.plan((text:gsub("loss none", "loss mse")), { batch = 4, threads = 1 }))
    plan:init(1)
    local L = plan:get("s1.L", "value")
    for i = 1, 3 do L:put(0.0, 3, 2, i) end -- of layer 3
    plan:set("s1.L", "value", L)
    plan:refresh()
    local x = native.random("normal", 1, "ops_spec.s", { 4, 3 })
    local data <close> = native.data(x, x)
    local res = plan:step(data, nil, { kind = "sgd", lr = 0.1 })
    plan:close()
    return res
  end

  it("ends a run with its layer and the reason", function()
    local reasons = {
      inverse = "inverse of a singular matrix", cholesky = "Cholesky factor of a matrix that is not positive definite",
    }
    for name, reason in pairs(reasons) do
      local res = singular(ph[name])
      assert.is_false(res.finite)
      assert.same({ 1, 3, name }, { res.bad_segment, res.bad_step, res.bad_op })
      local d = { step = 7, epoch = 2, layer = res.bad_step, op = res.bad_op, last_loss = 0.25 }
      assert.equal("diverged  lr=0.1  at step 7 (epoch 2), layer 3: " .. reason .. ", last finite loss 0.25",
        lines.trained_line({ short = "lr=0.1" }, { diverged = d }))
    end
  end)

  it("has no certificate, and says so", function()
    local certify = require "ph.certify"
    local function block(z) return ph.inverse(ph.param { 3, 3, init = "zeros" }) * z end
    local text = text_of(1, 3, ph.stream { depth = 1, block = block })
    local c = certify.of(text, { ["s1.P"] = native.tensor({ 3, 3 }, "f64") })
    assert.equal(math.huge, c.segments[1].at_weights.gain)
    assert.is_table(certify.report(c))
  end)
end)
