-- Wrong results without a word: faults that people of the field report, each as the smallest input that has it, with
-- the right value. What only the whole program shows is in tests/e2e/silent.py.
local job = require "ph.run.job"
local native = require "ph.native"
local plans = require "ph.run.plans"
local spec = require "ph.spec"
local summary = require "ph.run.summary"

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  assert(native.mkdir(path))
  finally(function() os.execute("rm -rf '" .. path .. "'") end)
  return path
end

-- ---- data sets that only their contents tell apart ----

--- An IDX data set of 60 + 20 grey images of 2 x 2 pixels, label i % 2; pixel(i) gives the four bytes.
local function write_images(dir, pixel)
  assert(native.mkdir(dir))
  for prefix, n in pairs { train = 60, t10k = 20 } do
    local images, labels = { string.pack(">I4I4I4I4", 0x803, n, 2, 2) }, { string.pack(">I4I4", 0x801, n) }
    for i = 1, n do
      images[i + 1], labels[i + 1] = string.char(pixel(i - 1)), string.char((i - 1) % 2)
    end
    assert(native.write_file(dir .. "/" .. prefix .. "-images-idx3-ubyte", table.concat(images)))
    assert(native.write_file(dir .. "/" .. prefix .. "-labels-idx1-ubyte", table.concat(labels)))
  end
end

local function all_equal() return 7, 7, 7, 7 end
local function telling(i) return 250 * (i % 2), 9, 9, 250 - 250 * (i % 2) end

local two_data_sets <const> = [[
local ph = require "ph"
return ph.experiment {
  name = "two", grid = { task = { "a", "b" }, seed = 0 },
  task = function(cell)
    return ph.task.images { dir = "%s/" .. cell.task, height = 2, width = 2, classes = 2,
      split = { train = 40, val = 20 }, seed = 1 }
  end,
  model = function() return { ph.affine(2) } end,
  train = ph.sgd { lr = 1, epochs = 3, batch = 8 },
}]]

describe("two data sets in one grid", function()
  it("go to their own cells, whichever is asked for first", function()
    local dir = temp_dir()
    write_images(dir .. "/a", all_equal)
    write_images(dir .. "/b", telling)
    local cells = job.cells(assert(spec.load_text(two_data_sets:format(dir), "two.lua")))
    local a, b = cells[1].jobs[1], cells[2].jobs[1]
    assert.equal(a.task_text, b.task_text)
    for _ = 1, 2 do
      assert.equal(0, a.load().test.x:max())
      assert.is_true(b.load().test.x:max() > 1)
    end
    assert.same({ a.digest, b.digest }, { a.load().digest, b.load().digest })
  end)

  it("are refused when they change after the runs were named", function()
    local dir = temp_dir()
    write_images(dir .. "/a", all_equal)
    write_images(dir .. "/b", telling)
    local one = job.cells(assert(spec.load_text(two_data_sets:format(dir), "two.lua")))[1].jobs[1]
    write_images(dir .. "/a", telling)
    local ok, problem = pcall(one.load)
    assert.same({ false, "task.images: the data changed after this run was planned; start again" }, { ok, problem })
  end)
end)

-- ---- values with any character in them ----

local function finished(family, seed, accuracy)
  return {
    cell = { family = family, seed = seed }, select = {}, label = "?", chosen = true, status = "done", params = 1,
    seconds = 0, metrics = { ["test.accuracy"] = accuracy },
  }
end

describe("values of an axis that a label cannot show apart", function()
  it("are rows of their own, and seeds are averaged within a row", function()
    local lines = summary.lines {
      finished("a b", 0, 0.2), finished("a b", 1, 0.4), finished("a c", 0, 0.6), finished("1", 0, 0.7),
      finished(1, 0, 0.8), finished("depth=3 x", 0, 0.9),
    }
    local rows = {}
    for i = 3, #lines do rows[i - 2] = lines[i]:gsub("^%s+", ""):gsub("%s%s+", "|") end
    assert.same({
      '"a b"|2|30.0 ± 14.1|1|0.0', '"a c"|1|60.0|1|0.0', '"1"|1|70.0|1|0.0', "1|1|80.0|1|0.0",
      '"depth=3 x"|1|90.0|1|0.0',
    }, rows)
  end)

  it("are told apart in legends", function()
    local a, b = finished("a b", 0, 0), finished("a c", 0, 0)
    local varying = job.varying { a, b }
    assert.same({ '"a b"', '"a c"' }, { job.short_label(a, varying), job.short_label(b, varying) })
  end)
end)

-- ---- runs of several plans in one directory ----

local function run_of_plan(seed, lr, more)
  local record = finished("ph", seed, lr)
  record.spec_hash, record.overrides = "a", {}
  record.parts = { ir = "1", task = "task.circles{noise=1}", data = "d", train = "sgd{epochs=1,lr=" .. lr .. "}" }
  for k, v in pairs(more or {}) do record[k] = v end
  return record
end

--- What a mean is taken over: for each group its seeds, and what has changed since.
local function means(records)
  local out = {}
  for i, group in ipairs(plans.groups(records)) do
    local seeds = {}
    for k, r in ipairs(group.records) do seeds[k] = r.cell.seed end
    out[i] = table.concat(seeds, " ") .. (group.older and ", " .. group.older or "")
  end
  return out
end

describe("runs of several plans in one directory", function()
  it("are never averaged with one another", function()
    local first = { run_of_plan(0, 0.01, { chosen = false }), run_of_plan(1, 0.01), run_of_plan(2, 0.01) }
    local edited = run_of_plan(0, 0.5, { spec_hash = "b" })
    assert.same({ "1 2, changed: train lr: 0.01 -> 0.5", "0" }, means { first[1], first[2], first[3], edited })
    local changed = run_of_plan(0, 0.5, { overrides = { "train.lr=0.5" } })
    assert.same({ "1 2, changed: train lr: 0.01 -> 0.5", "0" }, means { first[1], first[2], first[3], changed })
  end)

  it("are one plan when only comments, the seed or what was selected differ", function()
    assert.same({ "0 1" }, means { run_of_plan(0, 0.1), run_of_plan(1, 0.1, { spec_hash = "comment" }) })
    local low = run_of_plan(0, 0.1, { select = { lr = 0.1 } })
    assert.same({ "0 1" }, means { low, run_of_plan(1, 0.2, { select = { lr = 0.2 }, spec_hash = "b" }) })
  end)

  it("are one plan when one text gives each seed its own data", function()
    local a, b = run_of_plan(0, 0.1), run_of_plan(1, 0.1)
    b.parts.data = "e"
    assert.same({ "0 1" }, means { a, b })
    b.overrides = { "data=elsewhere" }
    assert.same({ "0, changed: data: d -> e", "1" }, means { a, b })
  end)

  it("are marked in other cells too", function()
    local other = run_of_plan(0, 0.5, { spec_hash = "b", cell = { family = "resnet", seed = 0 } })
    assert.same({ "0, changed: train lr: 0.01 -> 0.5", "0" }, means { run_of_plan(0, 0.01), other })
  end)
end)

describe("the command line", function()
  local text <const> = [[
local ph = require "ph"
return ph.experiment {
  name = "words", grid = { depth = { 2, 3 }, seed = 0 },
  task = function(cell) return ph.task.circles { width = 4, split = { train = 8, val = 4, test = 4 } } end,
  model = function(cell) return { ph.linear(cell.depth), ph.affine(4) } end,
  train = ph.adam { lr = 0.1, epochs = 3 },
}]]

  local function problem(...)
    local e, problems = spec.load_text(text, "words.lua", { ... })
    return e and "none" or problems[1].text
  end

  it("makes the changes of one part together, in any order", function()
    assert.equal("none", problem("train.schedule=warmup", "train.warmup=2"))
    assert.equal("none", problem("train.warmup=2", "train.schedule=warmup"))
    assert.equal("none", problem("train.lr_min=1e-5", "train.schedule=cosine"))
    assert.equal("command line: adam: 'warmup' has no effect with schedule 'constant'", problem "train.warmup=2")
  end)

  it("takes every word once, under each of its names", function()
    assert.equal("command line: depth is given twice", problem("depth=2", "depth=3"))
    assert.equal("command line: train.lr is given twice", problem("train.lr=1", "train.lr=1"))
    assert.equal("command line: task.dir is given twice", problem("data=a", "task.dir=b"))
  end)

  it("refuses a change that no task of the grid takes", function()
    assert.equal("command line: task.turns: no task of the grid has this key", problem "task.turns=3")
    assert.equal("none", problem "task.noise=0.5")
  end)
end)

-- ---- a key that a text has twice ----

describe("a spec that has something twice where the last would win", function()
  local frame <const> = [[
local ph = require "ph"
%s
return ph.experiment {
  name = "twice", task = ph.task.circles { width = 4, split = { train = 8, val = 4, test = 4 } },
  model = function() return { ph.affine(4) } end, train = ph.adam { lr = 0.1, epochs = 3 },
}]]

  local function problems(text)
    local _, list = spec.load_text(text, "twice.lua")
    local out = {}
    for i, problem in ipairs(list or {}) do out[i] = problem.text end
    return out
  end

  local function refused(line, first, what)
    local want = string.format("twice.lua:%s; the last would win", what:format(first))
    assert.same({ want }, problems(frame:format(line)))
  end

  it("is refused with both lines, wherever the table stands", function()
    refused("local _ = { lr = 1, b = {},\nlr = 2 }", 2, "3: key 'lr' is written twice in one table (first in line %d)")
    refused("local _ = { f = function() local x = { a = 1 } if x then return x end end, b = { g = 2 }, f = 3 }", 2,
      "2: key 'f' is written twice in one table (first in line %d)")
    refused("local _ = { a = 1, ['a'] = 2 }", 2, "2: key 'a' is written twice in one table (first in line %d)")
    refused("local _ = { 'x', [1.0] = 'y' }", 2, "2: key [1] is written twice in one table (first in line %d)")
    refused("local b = {} function b.f() end\nfunction b.f() end", 2,
      "3: function b.f is defined twice (first in line %d)")
  end)

  it("is told with all its repeats and its other errors", function()
    local text = frame:format("local _ = { a = 1, a = 2 }"):gsub("lr = 0.1", "lr = 0.1, lr = 0.2, epoch = 3")
    assert.same({
      "twice.lua:2: key 'a' is written twice in one table (first in line 2); the last would win",
      "twice.lua:5: adam: unknown key 'epoch' (did you mean 'epochs'?)",
      "twice.lua:5: key 'lr' is written twice in one table (first in line 5); the last would win",
    }, problems(text))
  end)

  it("is told from one that has not", function()
    local lines = {
      "local p, q, a = { x = { y = 1 }, y = 2, 'y' } -- { x = 1, x = 1 }",
      "local b = { [p or 1] = 1, [p or 2] = 2, [ [[ {x=1, x=2} ]] ] = 1, x = 'x = 1, x = 2' }",
      "local c = { f = function() return 1, 1 end, g = 2; h = 3 }",
      "if q then function a.f() end elseif a then function a.f() end end",
      "local function f() end local function f() end",
    }
    assert.same({}, problems(frame:format(table.concat(lines, "\n"))))
  end)
end)
