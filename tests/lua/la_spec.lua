local native = require "ph.native"
local la = native.la

local function M(t) return native.from(t, "f64") end
local function random(m, n) return native.random("normal", 5, "la", { m, n }) end

local function fails(pattern, f, ...)
  local ok, problem = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(problem))
end

local eps_of <const> = { rtol = 0, atol = 1e-12, why = "backward stable, well conditioned, n <= 33" }

describe("native.la", function()
  it("eigh rebuilds a symmetric matrix", function()
    for _, n in ipairs { 1, 2, 7, 33 } do
      local G = random(n, n)
      local A = G + G:transpose()
      local w, V = la.eigh(A)
      local D = native.tensor { n, n }
      for i = 1, n do D:put(w:at(i), i, i) end
      near(A, V * D * V:transpose(), eps_of)
      for i = 2, n do assert.is_true(w:at(i) >= w:at(i - 1)) end
    end
  end)

  it("eig of a rotation, eigh_gen of a scaled pair", function()
    local re, im = la.eig(M { { 0, -2 }, { 2, 0 } })
    near({ 0, 0 }, re, eps_of)
    near(2, math.abs(im:at(1)), eps_of)
    near({ 1, 3 }, la.eigh_gen(M { { 2, 0 }, { 0, 3 } }, M { { 2, 0 }, { 0, 1 } }), eps_of)
  end)

  it("svd rebuilds tall and wide matrices", function()
    for _, shape in ipairs { { 5, 3 }, { 3, 5 }, { 1, 4 } } do
      local A = random(shape[1], shape[2])
      local s, U, Vt = la.svd(A)
      local k = s:count()
      local S = native.tensor { k, k }
      for i = 1, k do S:put(s:at(i), i, i) end
      near(A, U * S * Vt, eps_of)
    end
  end)

  it("logdet gives ln|det| and the sign", function()
    local logabs, sign = la.logdet(M { { 0, 2 }, { 3, 0 } })
    near(math.log(6), logabs, { rtol = 1e-15, why = "two roundings" })
    assert.equal(-1, sign)
    logabs, sign = la.logdet(M { { 1, 2 }, { 2, 4 } })
    assert.same({ -math.huge, 0 }, { logabs, sign })
  end)

  it("solves, inverts, factors", function()
    local A, B = random(17, 17), random(17, 2)
    near(B, A * la.solve(A, B), { atol = 1e-11, why = "condition of a random 17 x 17" })
    near(native.eye(17), A * la.inverse(A), { atol = 1e-11, why = "condition of a random 17 x 17" })
    near({ 1, 2 }, la.solve(M { { 2, 0 }, { 0, 4 } }, M { 2, 8 }), eps_of)
    local P = A * A:transpose()
    local F = la.cholesky(P)
    near(P, F * F:transpose(), { atol = 1e-11, why = "entries up to 40, n = 17" })
    assert.is_nil(la.cholesky(M { { 1, 2 }, { 2, 1 } }))
    local Q, R = la.qr(random(9, 4))
    near(random(9, 4), Q * R, eps_of)
    near(native.eye(4), Q:transpose() * Q, eps_of)
  end)

  it("takes float32 by converting", function()
    near(math.log(2), (la.logdet(native.from({ { 2 } }, "f32"))), { rtol = 1e-15, why = "one rounding" })
  end)

  it("refuses what is not finite, square or of a size", function()
    for _, f in ipairs { la.eigh, la.eig, la.svd, la.logdet, la.inverse, la.cholesky, la.qr } do
      fails("element %(1, 2%) is %-?nan", f, M { { 1, 0 / 0 }, { 0, 1 } })
      fails("element %(1, 1%) is inf", f, M { { 1 / 0, 0 }, { 0, 1 } })
      fails("must be a matrix", f, M { 1, 2 })
    end
    fails("square", la.eigh, M { { 1, 2 } })
    fails("singular", la.inverse, M { { 1, 2 }, { 2, 4 } })
    fails("fewer than", la.qr, M { { 1, 2 } })
    fails("2 equations, 3 right%-hand rows", la.solve, native.eye(2), M { 1, 2, 3 })
    fails("tensor expected", la.eigh, { { 1 } })
  end)

  it("empties are fine", function()
    local w, V = la.eigh(native.tensor { 0, 0 })
    assert.same({ 0, 0 }, { w:count(), V:count() })
  end)

  it("says which BLAS it is", function()
    local info = native.la_info()
    assert.is_true(info.ok)
    assert.equal(1, info.threads)
    assert.is_true(info.core ~= "" and info.config:find "OpenBLAS" ~= nil)
    assert.is_true(info.origin == "user" or info.origin == "host" or info.origin == "library")
    if info.origin ~= "user" then assert.equal("", info.wanted) end
  end)
end)
