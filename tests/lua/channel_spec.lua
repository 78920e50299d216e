-- The same constructors on tensors: eager evaluation by the same ops.
local native = require "ph.native"
local ph = require "ph"

local function identity(n) return ph.eye(n) end

describe("cayley", function()
  it("is orthogonal with the numbers of its seed", function()
    local C = ph.cayley { 5 }
    near(identity(5), C:transpose() * C, { atol = 1e-14, why = "orthogonal to rounding, d = 5, |S| about 1" })
    assert.equal(C:bytes(), ph.cayley { 5 }:bytes())
    assert.not_equal(C:bytes(), ph.cayley { 5, seed = 1 }:bytes())
  end)

  it("of a given skew matrix is the rational map", function()
    local C = ph.cayley_of(ph.tensor { { 0, 2 }, { -2, 0 } })
    near(ph.tensor { { 0, -1 }, { 1, 0 } }, C,
      { atol = 1e-15, why = "S = 2J turns by 90 degrees, exact rational value" })
  end)
end)

describe("damping", function()
  it("flips a direction at h r = 4 and still shrinks it", function()
    local Lambda = ph.damping_of { R = 4 * ph.eye(3), step = 1 }
    near(-1 / 3, Lambda:at(1, 1), { atol = 1e-15, why = "exact rational value" })
  end)

  it("stays within its budget", function()
    local L = 10 * ph.randn(4, 4, { seed = 1 })
    local R = ph.gram(ph.guard(L, { step = 0.5, budget = 1 }))
    local w = native.la.eigh(R)
    near(2, w:at(4), { rtol = 1e-9, why = "h lambda_max = 1 at h = 0.5; power iteration of the guard" })
    assert.equal(L:bytes(), ph.guard(L, { step = 0.5, budget = false }):bytes())
  end)

  it("refuses a step that is none", function()
    for _, step in ipairs { 0, -1, 0 / 0, 1 / 0 } do
      local ok, e = pcall(ph.damping, { 3, step = step })
      assert.is_false(ok)
      assert.matches("damping: 'step' must be", e)
    end
    assert.matches("key 'step' is missing", select(2, pcall(ph.damping, { 3 })))
  end)
end)

describe("states outside a block", function()
  local C = ph.cayley { 3 }

  it("are rank-1 tensors or batches of rows, and agree", function()
    local z = ph.tensor { 1, 2, 3 }
    local rows = ph.batch(ph.tensor { { 1, 2, 3 }, { -1, 0, 1 } })
    local one, many = C * z, C * rows
    assert.same({ 3 }, one:shape())
    assert.same({ 2, 3 }, many:shape())
    near(one, many.tensor:index(1, 1), { atol = 1e-15, why = "same product, another order of sums" })
  end)

  it("have positions on one axis or two, and keep their form", function()
    local image = native.random("normal", 1, "channel_spec", { 2, 3, 4, 3 }, 1, "f64")
    local turned = (C * ph.batch(image)).tensor
    assert.same({ 2, 3, 4, 3 }, turned:shape())
    near((C * ph.batch(image:reshape { 24, 3 })).tensor, turned:reshape { 24, 3 })
    local line = ph.tanh(ph.batch(image:reshape { 2, 12, 3 }))
    assert.same({ 2, 12, 3 }, line:shape())
    assert.matches("expects a tensor %(n, d%)", select(2, pcall(ph.batch, ph.tensor { 1, 2 })))
  end)

  it("go through layers, which keep their parameters", function()
    local f = ph.affine(2)
    local z = ph.tensor { 1, 2, 3 }
    assert.same({ 2 }, f(z):shape())
    assert.equal(f(z):bytes(), f(z):bytes())
    near(f(z), f(ph.batch(z:reshape { 1, 3 })).tensor:reshape { 2 }, { atol = 1e-15, why = "same kernels" })
    local n = ph.layernorm(z)
    near(0, n:sum(), { atol = 1e-14, why = "mean zero" })
  end)

  it("take activations and numbers", function()
    local z = ph.tensor { -1, 0, 2 }
    near({ 0, 0, 2 }, ph.relu(z))
    near({ -0.7615941559557649, 0, 0.9640275800758169 }, ph.tanh(z),
      { atol = 1e-15, why = "correctly rounded to an ulp" })
    near({ -0.5, 0, 1 }, (0.5 * ph.batch(z:reshape { 1, 3 })).tensor:reshape { 3 })
    near({ 1, 0, 4 }, ph.mul(z, z))
  end)

  it("that do not fit are refused with both shapes", function()
    local ok, e = pcall(function() return C * ph.batch(ph.zeros(2, 4)) end)
    assert.is_false(ok)
    assert.matches("apply: a matrix %(3, 3%) does not fit a state of width 4", e)
    assert.is_false(pcall(ph.batch, ph.tensor { 1, 2 }))
    assert.is_false(pcall(ph.cayley, {}))
    assert.matches("a matrix stands left", select(2, pcall(function() return ph.batch(ph.zeros(2, 3)) * C end)))
  end)

  it("pass through the identity channel", function()
    local z = ph.tensor { 1, 2, 3 }
    assert.equal(z:bytes(), (ph.identity { 3 } * z):bytes())
    assert.equal(C:bytes(), (ph.identity { 3 } * C):bytes())
    assert.is_false(pcall(function() return ph.identity { 4 } * z end))
  end)
end)

describe("initial values", function()
  it("are checked", function()
    assert.equal("normal 0.1", tostring(ph.normal(0.1)))
    assert.equal("uniform 0.5", tostring(ph.uniform { 0.5 }))
    assert.is_false(pcall(ph.normal, -1))
    assert.is_false(pcall(ph.normal))
    local ok, e = pcall(ph.linear, { 3, init = 0.1 })
    assert.is_false(ok)
    assert.matches("linear: 'init' must be an init", e)
  end)

  it("set constants", function()
    near({ { 2, 2 } }, ph.param { 1, 2, init = ph.constant(2) })
    near({ { 1 }, { 1 } }, ph.param { 2, 1, init = "ones" })
  end)
end)

describe("tensors", function()
  it("drawn without a seed differ from call to call, with one they do not", function()
    assert.not_equal(ph.randn(3):bytes(), ph.randn(3):bytes())
    assert.equal(ph.randn(3, { seed = 4 }):bytes(), ph.randn(3, { seed = 4 }):bytes())
    assert.equal(ph.randn({ 2, 2 }, { seed = 4 }):bytes(), ph.randn(2, 2, { seed = 4 }):bytes())
    local u = ph.rand(1000, { seed = 1 })
    assert.is_true(u:min() >= 0 and u:max() < 1)
    assert.is_false(pcall(ph.randn, -1))
    assert.is_false(pcall(ph.randn, 2, { sead = 1 }))
  end)

  it("have plain constructors", function()
    near({ { 1, 0 }, { 0, 1 } }, ph.eye(2))
    near({ { 1, 1 } }, ph.ones(1, 2))
    near({ 0, 0 }, ph.zeros(2))
    near({ 1, 2 }, ph.tensor { 1, 2 })
  end)
end)
