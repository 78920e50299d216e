local native = require "ph.native"

local function fails(pattern, f, ...)
  local ok, problem = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(problem))
  assert.is_nil(tostring(problem):find "\n")
end

local function M(t) return native.from(t, "f64") end

describe("making tensors", function()
  it("gives zeros of a shape and says what it is", function()
    local t = native.tensor({ 2, 3 }, "f32")
    assert.same({ 2, 3 }, t:shape())
    assert.equal("f32", t:dtype())
    assert.equal(6, t:count())
    assert.equal(0, t:sum())
  end)

  it("has f64 by default, scalars, and empty dimensions", function()
    assert.equal("f64", native.tensor({}):dtype())
    assert.equal(7, native.from(7):at())
    assert.equal(0, native.tensor({ 0, 3 }):count())
    assert.same({ 0 }, native.from({}):shape())
  end)

  it("goes from nested lists and back", function()
    local lists = { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8.5 } } }
    assert.same(lists, native.from(lists):totable())
    assert.same({ 2, 2, 2 }, native.from(lists):shape())
  end)

  it("refuses holes and ragged rows with their place", function()
    fails("hole at %[2%]", native.from, { 30, nil, 240 })
    fails("hole at %[3%]", native.from, { 30, 120, [4] = 240 })
    fails("list%[2%] has 1 elements where others have 2", native.from, { { 1, 2 }, { 3 } })
    fails("element %[1%]%[2%] is a string", native.from, { { 1, "2" } })
    fails("element %[2%] is a number where a list", native.from, { { 1 }, 2 })
    fails("key 'x' that is not an index", native.from, { 1, x = 2 })
    fails("nest deeper than 4", native.from, { { { { { 1 } } } } })
  end)

  it("keeps integers exact and refuses what does not fit", function()
    local big = (1 << 62) + 1
    assert.equal(big, native.from({ big }, "i64"):at(1))
    assert.equal("integer", math.type(native.from({ 3 }, "i32"):at(1)))
    fails("2147483648 does not fit i32", native.from, { 2147483648 }, "i32")
    fails("256 does not fit u8", native.from, { 256 }, "u8")
    fails("1.5 does not fit i32", native.from, { 1.5 }, "i32")
  end)

  it("refuses bad shapes and types in one line", function()
    fails("shape%[2%] is %-1", native.tensor, { 2, -1 })
    fails("shape%[1%] is 1.5", native.tensor, { 1.5 })
    fails("at most 4 dimensions, got 5", native.tensor, { 1, 1, 1, 1, 1 })
    fails("no element type is called 'f16'", native.tensor, { 1 }, "f16")
    fails("more than this machine's memory", native.tensor, { 1 << 20, 1 << 20 })
    fails("memory", native.tensor, { 1 << 62, 1 << 62, 1 << 62 })
  end)

  it("goes through bytes unchanged", function()
    local t = native.random("normal", 1, "x", { 3, 2 }, 1, "f32")
    local back = native.from_bytes(t:bytes(), { 3, 2 }, "f32")
    assert.equal(t:bytes(), back:bytes())
    assert.equal(24, #t:bytes())
    fails("3 bytes given, the shape takes 8", native.from_bytes, "abc", { 1 }, "f64")
  end)

  it("raises after close, and close is safe twice", function()
    local t = native.tensor { 2 }
    t:close()
    t:close()
    fails("tensor is closed", t.sum, t)
    assert.equal("closed tensor", tostring(t))
    do local s <close> = native.tensor { 1 } t = s end
    fails("tensor is closed", t.at, t, 1)
  end)
end)

describe("elements", function()
  local function t() return M { { 1, 2, 3 }, { 4, 5, 6 } } end

  it("are read and written by indices from 1", function()
    local a = t()
    assert.equal(6, a:at(2, 3))
    assert.equal(9, a:put(9, 1, 2):at(1, 2))
  end)

  it("are bounds checked", function()
    fails("index 3 of dimension 1 is outside 1%.%.2", t().at, t(), 3, 1)
    fails("index 0 of dimension 2", t().at, t(), 1, 0)
    fails("1 indices for a tensor of 2", t().at, t(), 1)
    fails("value is a string", t().put, t(), "1", 1, 1)
  end)

  it("slice, index, gather, reshape, transpose", function()
    local a = t()
    assert.same({ { 2, 3 }, { 5, 6 } }, a:slice(2, 2, 3):totable())
    assert.same({ { 4, 5, 6 } }, a:slice(1, 2):totable())
    assert.same({}, a:slice(1, 3, 2):totable())
    assert.same({ 2, 5 }, a:index(2, 2):totable())
    assert.same({ 4, 5, 6 }, a:index(1, 2):totable())
    assert.same({ { 4, 5, 6 }, { 1, 2, 3 }, { 4, 5, 6 } }, a:gather({ 2, 1, 2 }):totable())
    assert.same({ { 1, 2, 3 } }, a:gather(native.from({ 1 }, "i32")):totable())
    assert.same({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, a:reshape({ 3, 2 }):totable())
    assert.same({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, a:transpose():totable())
    assert.same({ { { 1, 3 }, { 2, 4 } } }, M({ { { 1, 2 }, { 3, 4 } } }):transpose():totable())
  end)

  it("refuse ranges outside", function()
    local a = t()
    fails("range 2%.%.4 of dimension 2 is outside 1%.%.3", a.slice, a, 2, 2, 4)
    fails("dimension 3 of a tensor of 2", a.slice, a, 3, 1, 1)
    fails("row number %[2%] = 3 is outside 1%.%.2", a.gather, a, { 1, 3 })
    fails("row number %[1%] = 0", a.gather, a, { 0 })
    fails("6 elements, the new shape 4", a.reshape, a, { 2, 2 })
    fails("must have 2 or 3 dimensions, got 1", a.transpose, M { 1 })
  end)

  it("cast", function()
    local a = M { 1.75, -2.25 }
    assert.same({ 1, -2 }, a:cast("i32"):totable())
    assert.equal("f32", a:cast("f32"):dtype())
    assert.same({ 1.75, -2.25 }, a:cast("f32"):cast("f64"):totable())
  end)
end)

describe("arithmetic", function()
  local a, b = { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } }

  it("is elementwise for equal shapes and numbers", function()
    assert.same({ { 6, 8 }, { 10, 12 } }, (M(a) + M(b)):totable())
    assert.same({ { -4, -4 }, { -4, -4 } }, (M(a) - M(b)):totable())
    assert.same({ { 5, 12 }, { 21, 32 } }, M(a):mul(M(b)):totable())
    assert.same({ { 2, 4 }, { 6, 8 } }, (2 * M(a)):totable())
    assert.same({ { 0.5, 1 }, { 1.5, 2 } }, (M(a) / 2):totable())
    assert.same({ { 2, 3 }, { 4, 5 } }, (1 + M(a)):totable())
    assert.same({ { 9, 8 }, { 7, 6 } }, (10 - M(a)):totable())
    assert.same({ { -1, -2 }, { -3, -4 } }, (-M(a)):totable())
  end)

  it("multiplies matrices, vectors and stacks", function()
    assert.same({ { 19, 22 }, { 43, 50 } }, (M(a) * M(b)):totable())
    assert.same({ 5, 11 }, (M(a) * M { 1, 2 }):totable())
    assert.same({ { { 19, 22 }, { 43, 50 } }, { { 23, 34 }, { 31, 46 } } }, (M { a, b } * M { b, a }):totable())
    assert.same({ { 3, 6 } }, (M { { 1, 1, 1 } } * M { { 1, 2 }, { 1, 2 }, { 1, 2 } }):totable())
  end)

  it("gives the product of a plain loop for odd sizes", function()
    for _, n in ipairs { 1, 7, 16, 17, 33, 65 } do
      local x, y = native.random("normal", 1, "x", { n, n + 1 }), native.random("normal", 1, "y", { n + 1, n + 2 })
      local z = x * y
      for _, at in ipairs { { 1, 1 }, { n, n + 2 }, { (n + 1) // 2, n } } do
        local sum = 0
        for k = 1, n + 1 do sum = sum + x:at(at[1], k) * y:at(k, at[2]) end
        near(sum, z:at(at[1], at[2]), { atol = 1e-13, why = "eps times the length of the sum" })
      end
    end
  end)

  it("refuses mismatches with both sides", function()
    fails("f64 %(2, 2%) and f64 %(3%)", function() return M(a) * M { 1, 2, 3 } end)
    fails("%+: f64 %(2, 2%) and f32 %(2, 2%)", function() return M(a) + native.from(b, "f32") end)
    fails("elementwise: a:mul%(b%)", function() return M { 1, 2 } * M { 1, 2 } end)
    fails("is i32", function() return native.from({ 1 }, "i32") + 1 end)
    fails("one argument must be a tensor, got two numbers", M(a).mul, 2, 3)
    assert.is_false(pcall(function() return M(a) * "x" end))
    assert.is_false(pcall(function() return "x" + M(a) end))
    assert.is_false(pcall(function() return {} * M(a) end))
  end)

  it("leaves the decision to a value with its own operator", function()
    local other = setmetatable({}, { __mul = function(x, y) return { type(x), type(y) } end })
    assert.same({ "userdata", "table" }, M(a) * other)
  end)
end)

describe("reductions", function()
  it("sum, mean, min, max", function()
    local t = M { 3, -1, 4 }
    assert.same({ 6, 2, -1, 4 }, { t:sum(), t:mean(), t:min(), t:max() })
    assert.equal(0, M({}):sum())
    fails("min: the tensor is empty", t.min, M {})
  end)

  it("sums without losing small terms", function()
    assert.equal(2, M({ 1, 1e100, 1, -1e100 }):sum())
    assert.equal(math.huge, M({ 1e308, 1e308 }):sum())
  end)

  it("take NaN along", function()
    local nan = 0 / 0
    local t = M { 1, nan, 3 }
    assert.is_true(t:min() ~= t:min() and t:max() ~= t:max() and t:sum() ~= t:sum())
    assert.equal(2, t:first_nonfinite())
    assert.is_nil(M({ 1 }):first_nonfinite())
  end)

  it("norms neither overflow nor underflow", function()
    near(5e300, M({ 3e300, 4e300 }):norm(), { rtol = 1e-15, why = "two roundings" })
    near(5e-300, M({ 3e-300, 4e-300 }):norm(), { rtol = 1e-15, why = "two roundings" })
    assert.same({ 5, 13 }, M({ { 3, 4 }, { 5, 12 } }):rownorms():totable())
    assert.equal(5, native.from({ 3, 4 }, "i32"):norm())
    assert.equal(5, native.from({ 3, 4 }, "f32"):norm())
  end)

  it("quantile interpolates; NaN sorts last and counts", function()
    local t = M { 4, 1, 3, 2 }
    assert.same({ 1, 2.5, 4 }, { t:quantile(0), t:quantile(0.5), t:quantile(1) })
    near(1.75, t:quantile(0.25), {})
    local with_nan = M { 1, 0 / 0, 2 }
    assert.equal(2, with_nan:quantile(0.5))
    assert.is_true(with_nan:quantile(1) ~= with_nan:quantile(1))
    fails("outside 0..1", t.quantile, t, 1.5)
  end)
end)

describe("random numbers", function()
  it("depend on seed, name and index alone", function()
    local whole = native.random("normal", 3, "w", { 10 })
    local tail = native.random("normal", 3, "w", { 4 }, 1, "f64", 6)
    assert.same(whole:slice(1, 7, 10):totable(), tail:totable())
    assert.not_same(whole:totable(), native.random("normal", 4, "w", { 10 }):totable())
    assert.not_same(whole:totable(), native.random("normal", 3, "v", { 10 }):totable())
  end)

  it("have the right mean, spread and range", function()
    local z, u = native.random("normal", 1, "z", { 100000 }, 2), native.random("uniform", 1, "u", { 100000 }, 3)
    near(0, z:mean(), { atol = 0.03, why = "4.7 deviations of the mean" })
    near(2, z:norm() / math.sqrt(100000), { atol = 0.03, why = "6 deviations" })
    assert.is_true(u:min() >= -3 and u:max() < 3 and u:max() > 2.99)
  end)

  it("refuse what they do not know", function()
    fails("no kind is called 'gauss'", native.random, "gauss", 1, "a", { 1 })
    fails("must be f32 or f64, got i32", native.random, "normal", 1, "a", { 1 }, 1, "i32")
  end)

  it("permute", function()
    local p = native.permutation(1, "order", 0, 100)
    assert.equal("i32", p:dtype())
    local seen = {}
    for _, v in ipairs(p:totable()) do seen[v] = true end
    for i = 1, 100 do assert.is_true(seen[i]) end
    assert.equal(0, native.permutation(1, "order", 0, 0):count())
  end)

  it("eye", function()
    assert.same({ { 1, 0 }, { 0, 1 } }, native.eye(2, "f32"):totable())
  end)
end)

describe("printing", function()
  it("clips to eight rows and to the width of a page", function()
    local text = tostring(native.random("normal", 1, "x", { 1000, 1000 }))
    assert.matches("^f64 %(1000, 1000%)  range %[%-%d", text)
    local lines = 0
    for line in text:gmatch "[^\n]+" do
      lines = lines + 1
      assert.is_true(#line <= 80)
    end
    assert.equal(9, lines)
  end)

  it("shows small ones whole and says what is not finite", function()
    assert.equal("f64 (2, 2)  range [1, 3]  2 not finite\n    1  nan\n    3  inf",
      tostring(M { { 1, 0 / 0 }, { 3, 1 / 0 } }))
    assert.equal("i32 (3)  range [1, 3]\n    1    2    3", tostring(native.from({ 1, 2, 3 }, "i32")))
  end)
end)

describe("memory", function()
  it("of dropped tensors is collected without being asked", function()
    local top = 0
    for _ = 1, 400 do
      local t = native.tensor({ 131072 }, "f64") -- 1 MiB
      t:put(1, 1)
      top = math.max(top, native.live().bytes)
    end
    assert.is_true(top < 64 * 1024 * 1024, "peak " .. top)
  end)

  it("is counted by native.live", function()
    local before = native.live().tensor
    local t = native.tensor { 3 }
    assert.equal(before + 1, native.live().tensor)
    t:close()
    assert.equal(before, native.live().tensor)
  end)
end)

describe("near", function()
  it("fails on distance, shape, count and a missing reason", function()
    fails("off by 1", near, 1, 2)
    fails("element 2", near, M { 1, 2 }, M { 1, 2.5 }, { atol = 0.1, why = "trial" })
    fails("shapes differ", near, M { { 1, 2 } }, M { 1, 2 })
    fails("want 2 numbers, got 1", near, { 1, 2 }, { 1 })
    fails("needs its reason", near, 1, 1, { atol = 1 })
    fails("off by", near, 1, 0 / 0, { atol = 1, why = "trial" })
    near(0 / 0, 0 / 0)
    near(math.huge, math.huge, { rtol = 1, why = "trial" })
  end)

  it("has a companion that names what is left open", function()
    local testing = require "ph.verb.testing"
    local before = native.live()
    local kept = native.tensor { 1 }
    assert.equal("1 tensor", testing.left_open(before))
    kept:close()
    assert.is_nil(testing.left_open(before))
  end)
end)
