-- Data of tasks: geometry, balance, seeds, splits, files.
local native = require "ph.native"
local ph = require "ph"
local trig = require "ph.util.trig"

local split <const> = { train = 300, val = 100, test = 100 }

local function counts(y)
  local out = {}
  for i = 1, y:count() do out[y:at(i)] = (out[y:at(i)] or 0) + 1 end
  return out
end

describe("sine and cosine", function()
  it("agree with the C library to rounding", function()
    for i = -2000, 2000 do
      local x = i * 0.0137
      local s, c = trig.sincos(x)
      near(math.sin(x), s, { atol = 3e-16, why = "two ulps of 1" })
      near(math.cos(x), c, { atol = 3e-16, why = "two ulps of 1" })
    end
  end)
end)

describe("a teacher", function()
  local function task(keys)
    keys.split = split
    return ph.task.teacher(keys)
  end

  it("gives normal inputs and targets that a net of its form can fit but for the noise", function()
    local data = task { width = 5, outputs = 3, noise = 0 }:load(1)
    assert.same({ 300, 5 }, data.train.x:shape())
    assert.same({ 100, 3 }, data.test.y:shape())
    assert.equal("f32", data.train.y:dtype())
    assert.equal(3, data.outputs)
    assert.is_nil(data.classes)
    local x = data.train.x:cast "f64"
    near(1, x:norm() ^ 2 / (300 * 5), { atol = 0.1, why = "variance of 1500 normal numbers" })
    assert.is_true(data.train.y:cast "f64":norm() > 1)
  end)

  it("adds noise of the deviation asked for and nothing else", function()
    local clean, noisy = task { width = 5, noise = 0 }:load(1).train.y, task { width = 5, noise = 0.5 }:load(1).train.y
    local difference = noisy:cast "f64" - clean:cast "f64"
    near(0.5, difference:norm() / math.sqrt(300), { atol = 0.06, why = "deviation of 300 normal numbers" })
  end)

  it("is another one for another seed", function()
    local one = task {}
    assert.same(one:load(4).val.y:totable(), one:load(4).val.y:totable())
    assert.is_false(one:load(4).val.y:at(1, 1) == one:load(5).val.y:at(1, 1))
    assert.matches("split needs test = N", select(2, pcall(ph.task.teacher, { split = { train = 3, val = 3 } })))
  end)
end)

describe("circles", function()
  local task = ph.task.circles { classes = 4, width = 16, spread = 0.2, noise = 0, split = split }

  it("lie in a plane on the unit circle when there is no noise", function()
    local x = task:load(0).train.x:cast "f64"
    near(1, x:rownorms():min(), { atol = 1e-6, why = "float32 rounding" })
    near(1, x:rownorms():max(), { atol = 1e-6, why = "float32 rounding" })
    local s = native.la.svd(x)
    assert.is_true(s:at(3) < 1e-4 * s:at(1), "rank 2")
  end)

  it("have the angle of their class", function()
    local data = ph.task.circles { classes = 4, width = 2, spread = 0, noise = 0, split = split }:load(3).train
    local first = {}
    for i = 1, 300 do
      local k = data.y:at(i)
      first[k] = first[k] or i
      near(data.x:at(first[k], 1), data.x:at(i, 1), { atol = 1e-6, why = "one point per class, float32" })
    end
    local dot = data.x:at(first[0], 1) * data.x:at(first[2], 1) + data.x:at(first[0], 2) * data.x:at(first[2], 2)
    near(-1, dot, { atol = 1e-6, why = "classes 0 and 2 are opposite" })
  end)

  it("are balanced and in no order", function()
    local data = task:load(0)
    local all = {}
    for _, name in ipairs { "train", "val", "test" } do
      for k, n in pairs(counts(data[name].y)) do all[k] = (all[k] or 0) + n end
    end
    assert.same({ [0] = 125, 125, 125, 125 }, all)
    local runs = 0
    for i = 2, 300 do runs = runs + (data.train.y:at(i) ~= data.train.y:at(i - 1) and 1 or 0) end
    assert.is_true(runs > 180 and runs < 270)
  end)

  it("have noise of the deviation asked for on every coordinate", function()
    local with = ph.task.circles { width = 16, noise = 0.25, spread = 0.2, split = split }:load(0).train.x:cast "f64"
    local diff = with - task:load(0).train.x:cast "f64"
    near(0.25, math.sqrt(diff:mul(diff):mean()), { rtol = 0.05, why = "4,800 samples: 1 % standard error" })
  end)

  it("depend on the seed and nothing else", function()
    local function bytes(seed) return native.sha256(task:load(seed).train.x:bytes()) end
    assert.equal(bytes(0), bytes(0))
    assert.not_equal(bytes(0), bytes(1))
    local fixed = ph.task.circles { width = 16, seed = 5, split = split }
    assert.equal(fixed:load(0).test.x:bytes(), fixed:load(9).test.x:bytes())
  end)

  it("are a part of a larger draw when noise is read in blocks", function()
    local large = ph.task.circles { width = 4, noise = 1, split = { train = 2000, val = 100, test = 100 } }:load(0)
    assert.is_nil(large.train.x:first_nonfinite())
    near(0, large.train.x:cast("f64"):mean(), { atol = 0.05, why = "8,000 numbers of deviation about 1" })
  end)
end)

describe("spirals", function()
  it("have radius t and angle 2 pi turns t, arms apart by 2 pi / classes", function()
    local data = ph.task.spirals { classes = 2, width = 2, turns = 2.5, noise = 0, split = split }:load(0).train
    local x0
    for i = 1, 300 do
      local x, y = data.x:at(i, 1), data.x:at(i, 2)
      local r = math.sqrt(x * x + y * y)
      assert.is_true(r >= 0 and r <= 1 + 1e-6)
      -- turn back by the spiral and the arm: what is left is the orientation of the plane
      local s, c = math.sin(2 * math.pi * 2.5 * r + math.pi * data.y:at(i)),
        math.cos(2 * math.pi * 2.5 * r + math.pi * data.y:at(i))
      local u = (x * c + y * s) / r
      local v = (x * c - y * s) / r
      if r > 0.1 then
        x0 = x0 or { u, v }
        assert.is_true(math.abs(u - x0[1]) < 1e-4 or math.abs(v - x0[2]) < 1e-4)
      end
    end
  end)
end)

describe("a generated task", function()
  it("says what it is, whatever the order of its keys", function()
    local a = ph.task.circles { classes = 3, width = 5, split = split }
    local b = ph.task.circles { split = { test = 100, train = 300, val = 100 }, width = 5.0, classes = 3 }
    assert.equal(a:canonical(), b:canonical())
    assert.equal(a:digest(), b:digest())
    assert.matches(
      "^task.circles{classes=3,noise=0.25,split={\"test\":100,\"train\":300,\"val\":100},spread=0.2,width=5}$",
      a:canonical())
    assert.not_equal(a:digest(), a:with { noise = 0.3 }:digest())
    assert.same({ 3, 1, 5 }, { a.classes, a.positions, a.features })
  end)

  it("needs all three parts of the split", function()
    local ok, e = pcall(ph.task.circles, { split = { train = 3, val = 3 } })
    assert.is_false(ok)
    assert.matches("split needs test = N", e)
    assert.is_false(pcall(ph.task.circles, {}))
  end)
end)

-- ---- images ----

local function be32(n) return string.pack(">I4", n) end

--- Writes an idx pair of n images h x w; pixel(i, j) and label(i) count from 1 and 0.
local function write_pair(dir, prefix, n, h, w, pixel, label)
  local px, ls = {}, {}
  for i = 1, n do
    ls[i] = string.char(label(i))
    for j = 1, h * w do px[#px + 1] = string.char(pixel(i, j)) end
  end
  assert(
    native.write_file(dir .. "/" .. prefix .. "-images-idx3-ubyte",
      "\0\0\8\3" .. be32(n) .. be32(h) .. be32(w) .. table.concat(px)))
  assert(native.write_file(dir .. "/" .. prefix .. "-labels-idx1-ubyte", "\0\0\8\1" .. be32(n) .. table.concat(ls)))
end

local function fresh_dir()
  local dir = os.tmpname()
  os.remove(dir)
  assert(native.mkdir(dir))
  write_pair(dir, "train", 20, 2, 3, function(i, j) return (i * 7 + j * 31) % 256 end, function(i) return i % 10 end)
  write_pair(dir, "t10k", 5, 2, 3, function(i, j) return i * j end, function(i) return i % 10 end)
  return dir
end

local function images(dir, more)
  local v = { dir = dir, height = 2, width = 3, split = { train = 12, val = 8 } }
  for k, x in pairs(more or {}) do v[k] = x end
  return ph.task.images(v)
end

describe("images", function()
  it("are standardised by the training pixels and split without overlap", function()
    local data = images(fresh_dir()):load(0)
    local x = data.train.x:cast "f64"
    near(0, x:mean(), { atol = 1e-6, why = "float32 rounding" })
    near(1, x:mul(x):mean(), { rtol = 1e-5, why = "float32 rounding" })
    assert.same({ 12, 6 }, data.train.x:shape())
    assert.same({ 8, 6 }, data.val.x:shape())
    assert.same({ 5, 6 }, data.test.x:shape())
    local all = {}
    for _, name in ipairs { "train", "val" } do
      for k, n in pairs(counts(data[name].y)) do all[k] = (all[k] or 0) + n end
    end
    for k = 0, 9 do assert.equal(2, all[k]) end
  end)

  it("keep image and label together", function()
    local data = images(fresh_dir(), { split = { train = 20 - 1, val = 1 } }):load(4)
    for i = 1, 18 do
      for j = i + 1, 19 do
        -- labels differ by d exactly when first pixels differ by 7 d modulo 256
        if data.train.y:at(i) ~= data.train.y:at(j) then
          assert.not_equal(data.train.x:at(i, 1), data.train.x:at(j, 1))
        end
      end
    end
  end)

  it("are vectors or sequences of rows with the same numbers", function()
    local dir = fresh_dir()
    local vector, rows = images(dir), images(dir, { as = "rows" })
    assert.same({ 1, 6 }, { vector.positions, vector.features })
    assert.same({ 2, 3 }, { rows.positions, rows.features })
    assert.equal(vector:load(0).test.x:bytes(), rows:load(0).test.x:bytes())
  end)

  it("have a digest of their contents, not of their place", function()
    local a, b = fresh_dir(), fresh_dir()
    assert.equal(images(a):digest(), images(b):digest())
    assert.equal(images(a):canonical(), images(b):canonical())
    local before = images(b):digest()
    write_pair(b, "t10k", 5, 2, 3, function(i, j) return i * j + (i == 5 and j == 6 and 1 or 0) end, function(i)
      return i % 10
    end)
    native.remove(b .. "/none")
    assert.not_equal(before,
      require("ph.lang.images").images { dir = b .. "/.", height = 2, width = 3, split = { train = 12, val = 8 } }
        :digest())
  end)

  it("can be limited", function()
    local data = images(fresh_dir(), { limit = 4, split = { train = 3, val = 1 } }):load(0)
    assert.equal(4, data.test.x:shape()[1])
  end)

  it("that are missing or do not fit are one clear line", function()
    local dir = fresh_dir()
    local function problem(task)
      local ok, e = pcall(task.load, task, 0)
      assert.is_false(ok)
      assert.is_nil(e:find("\n", 1, true))
      return e
    end
    local gone = images(dir .. "/gone")
    assert.matches("gone/train%-images%-idx3%-ubyte: no such file %(nor with .gz%)", problem(gone))
    local digest, why = gone:digest()
    assert.is_nil(digest)
    assert.matches("no such file", why)
    assert.matches("split needs 15 %+ 8 training images, there are 20",
      problem(images(dir, { split = { train = 15, val = 8 } })))
    assert.matches("images are 2 x 3, the spec says height = 28, width = 28",
      problem(images(dir, { height = 28, width = 28 })))
    assert.matches("label", problem(images(dir, { classes = 9 })))
    assert(native.write_file(dir .. "/t10k-labels-idx1-ubyte", "\0\0\8\1" .. be32(4) .. "\1\2\3\4"))
    assert.matches("5.*4", problem(images(dir)))
  end)
end)

describe("Fashion-MNIST", function()
  local dir <const> = "/usr/share/datasets/fashion-mnist"
  it("loads when it is installed", function()
    if not native.stat(dir) then return pending "dataset-fashion-mnist is not installed" end
    local data = ph.task.images { dir = dir, limit = 2000, split = { train = 1500, val = 500 } }:load(0)
    assert.same({ 1500, 784 }, data.train.x:shape())
    near(1, data.test.x:cast("f64"):mul(data.test.x:cast "f64"):mean(),
      { rtol = 0.1, why = "another sample of the same pixels" })
  end)
end)
