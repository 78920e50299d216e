-- Wrong results without a word: faults that people of the field report, each as the smallest input that has it, with
-- the right value. What only the whole program shows is in tests/e2e/silent.py.
local aggregate = require "ph.rules.aggregate"
local certify = require "ph.certify"
local job = require "ph.run.job"
local lacking = require "ph.lang.lacking"
local measure = require "ph.run.measure"
local native = require "ph.native"
local ph = require "ph"
local plans = require "ph.run.plans"
local registration = require "ph.registry.registration"
local result = require "ph.laws.result"
local runner = require "ph.run.runner"
local spec = require "ph.spec"
local summary = require "ph.run.summary"
local tables = require "ph.util.tables"
local work = require "ph.run.work"

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

  it("is reported with all its repeats and its other errors", function()
    local text = frame:format("local _ = { a = 1, a = 2 }"):gsub("lr = 0.1", "lr = 0.1, lr = 0.2, epoch = 3")
    assert.same({
      "twice.lua:2: key 'a' is written twice in one table (first in line 2); the last would win",
      "twice.lua:5: adam: unknown key 'epoch' (did you mean 'epochs'?)",
      "twice.lua:5: key 'lr' is written twice in one table (first in line 5); the last would win",
    }, problems(text))
  end)

  it("does not mean one that has not", function()
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

-- ---- samples that start at zero ----

describe("samples that start at zero", function()
  it("have no growth: the median is that of the others, and they are counted", function()
    local norms = native.from({ { 2, 2, 4 }, { 0, 0, 0 }, { 1, 1, 3 }, { 0, 0, 5 }, { 4, 4, 4 } }, "f64")
    local profile, zeros = measure.growth_profile(norms, 2)
    assert.same({ { 1, 1, 2 }, 2 }, { profile, zeros })
    profile, zeros = measure.growth_profile(native.from({ { 0, 1 }, { 0, 0 } }, "f64"), 1)
    assert.same({ nil, 2 }, { profile, zeros })
  end)

  it("keep a budget of zero, and have no quotient there", function()
    assert.same({ 0, nil }, { measure.budget_of_sample({ 0, 0, 0 }, { 0, 0 }) })
    assert.same({ 0, 0.5 }, { measure.budget_of_sample({ 0, 0, 1 }, { 0, 2 }) })
    assert.same({ 1, math.huge }, { measure.budget_of_sample({ 0, 1 }, { 0 }) })
    assert.same({ 2 }, { (measure.budget_of_sample({ 1, 0 / 0, 0 / 0 }, { 1, 1 })) })
  end)

  it("are named beneath the table", function()
    local record = finished("ph", 0, 0.5)
    record.metrics.growth, record.left_out = 1.5, { growth = { 4, 20 } }
    local lines = summary.lines { record }
    assert.equal("  growth leaves out 4 of 20 samples, which start at zero", lines[#lines])
  end)
end)

-- ---- measures that a model cannot have ----

local families <const> = [[
local ph = require "ph"
local d <const>, h <const> = 8, 0.3
local function port(z) return h * ph.linear(d)(ph.tanh(ph.affine(d)(z))) end
local stage = {
  ph = function(z) return ph.damping { d, step = h } * (ph.cayley { d } * z) + port(z) end,
  nested = function(z) return ph.damping { d, step = h } * (ph.cayley { d } * z + port(z)) end,
  resnet = function(z) return z + port(z) end, resnet_ln = function(z) return z + port(ph.layernorm(z)) end,
  resnet_tln = function(z) return ph.layernorm(z + port(z)) end, cayley = function(z) return ph.cayley { d } * z end,
}
return ph.experiment {
  name = "families", grid = { family = { %s }, seed = 0 },
  task = ph.task.circles { width = d, split = { train = 32, val = 8, test = 8 } },
  model = function(cell)
    local block = cell.family ~= "flat" and stage[cell.family]
    return { block and ph.stream { depth = 3, block = block } or ph.affine(d), ph.affine(4) }
  end,
  train = ph.adam { lr = 0.01, epochs = 1 },
  measure = %s, rules = { %s },
}]]

local all_measures <const> = "{ ph.growth(), ph.gradient_envelope(), ph.port_budget() }"

local function family_spec(names, measures, rules)
  return spec.load_text(families:format(names, measures or all_measures, rules or ""), "f.lua")
end

describe("a measure that a model cannot have", function()
  it("is named before anything runs, with the cells and the reason", function()
    local e = assert(family_spec '"ph", "nested", "resnet", "resnet_ln", "resnet_tln", "cayley", "flat"')
    assert.same({
      "gradient_envelope has no value in 1 of 7 cells (family=flat): its model has no stream",
      "growth has no value in 1 of 7 cells (family=flat): its model has no stream",
      "port_budget has no value in 1 of 7 cells (family=flat): its model has no stream",
      "port_budget has no value in 1 of 7 cells (family=resnet_tln): its stream has no state channel: all of the state "
        .. "goes through nonlinear ops",
    }, lacking.notes(e))
  end)

  it("is left out of that cell's record, and the run is whole", function()
    local dir = temp_dir()
    assert(native.mkdir(dir .. "/runs"))
    assert(native.mkdir(dir .. "/checkpoints"))
    local got = {}
    for _, cell in ipairs(job.cells(assert(family_spec '"nested", "resnet_tln", "cayley", "flat"'))) do
      local one, context = cell.jobs[1], { dir = dir, threads = 1, every = 1e9 }
      work.train({ job = one }, function() end, context)
      local record = work.finish({ jobs = { one }, chosen = one.run }, nil, context).closed[1].record
      local m = record.metrics
      got[#got + 1] = { record.status, m.growth ~= nil, m["grad.first"] ~= nil, m["port.violations"] }
      if one.cell.family == "cayley" then
        near(1, m["port.ratio"], { atol = 1e-5, why = "orthogonal transport in float32, no port" })
      end
    end
    assert.same({ { "done", true, true, 0 }, { "done", true, true, nil }, { "done", true, true, 0 },
                  { "done", false, false, nil } }, got)
  end)

  it("is refused when no cell has it", function()
    local _, problems = family_spec('"flat"', "{ ph.growth() }")
    assert.equal("f.lua:18: experiment: measure: growth has no value in any cell: its model has no stream",
      problems[1].text)
    assert.is_table(spec.load_text(families:format('"ph", "flat"', "{ ph.growth() }", ""), "f.lua", { "family=flat" }))
  end)

  it("is refused in a rule that could never be evaluated", function()
    local function problem(rule)
      local e, problems = family_spec('"ph", "resnet_tln", "flat"', nil, rule)
      return e and "none" or problems[1].text:match "rule 'r': (.*)$"
    end
    assert.equal("'growth' has no value at family=flat seed=0: its model has no stream; leave such cells out",
      problem 'ph.rule { "r", { ph.mean { "growth" }, "<=", 2 } }')
    assert.equal("'port.ratio' has no value at family=resnet_tln and 1 more cells: its stream has no state channel: "
      .. "all of the state goes through nonlinear ops; leave such cells out",
      problem 'ph.rule { "r", { ph.max { "port.ratio" }, "<=", 2 } }')
    assert.equal("none", problem 'ph.rule { "r", { ph.max { "port.ratio", family = "ph" }, "<=", 2 } }')
    local every <const> = 'ph.rule { "r", ph.every { { ph.mean { "port.ratio" }, "<=", 2 }, family = ph.except(%s) } }'
    assert.equal("none", problem(every:format '"flat", "resnet_tln"'))
    assert.matches("'port.ratio' has no value at family=resnet_tln", problem(every:format '"flat"'))
  end)

  it("can be declared for the cells that have it", function()
    local by_cell <const> = "function(cell) return cell.family == 'flat' and {} or { ph.growth() } end"
    local e = assert(family_spec('"ph", "flat"', by_cell))
    local cells = job.cells(e)
    assert.same({ "growth", "" }, { cells[1].jobs[1].measure_text, cells[2].jobs[1].measure_text })
    local plan = registration.of(e).plan
    assert.same({ {}, { "growth" }, {} }, { plan.measure, plan.cells[1].measure, plan.cells[2].measure })
    assert.same({ "growth has no value in 1 of 2 cells (family=flat): it is not measured there" }, lacking.notes(e))
    local _, problems = family_spec('"ph"', "function(cell) return 3 end")
    assert.matches("experiment: measure: must be a list, got 3", problems[1].text)
  end)
end)

-- ---- volume of a state channel with a number in it ----

describe("the volume of a state channel", function()
  local function text_of(body)
    local e = assert(spec.load_text([[
local ph = require "ph"
local d <const> = 4
return ph.experiment {
  name = "volume", task = ph.task.circles { width = d, split = { train = 8, val = 4, test = 4 } },
  model = function()
    return { ph.stream { depth = 3, block = function(z) return ]] .. body .. [[ end }, ph.affine(4) }
  end,
  train = ph.adam { lr = 0.01, epochs = 1 },
}]], "v.lua"))
    local report = certify.report(certify.at_start(e:ir(e:cells()[1]), 0))
    return (table.concat(report, "\n"):gsub("^.*(log%-volume)", "%1"):gsub("\n  segment 2.*$", ""):gsub("%s%s+", " "))
  end

  it("counts the number, wherever it stands: 12 ln 2 over three layers of width 4", function()
    for body, sign in pairs {
      ["(2 * ph.cayley { d }) * z"] = "", ["ph.cayley { d } * (2 * z)"] = "", ["2 * (ph.cayley { d } * z)"] = "",
      ["0.5 * (ph.cayley { d } * z)"] = "-", ["ph.transpose(ph.cayley { d }) * (0.5 * z)"] = "-",
    } do
      local want = string.format("log-volume a layer of the state channel: %s2.7726 [by construction] "
        .. "state channel %s8.3178, meter %s8.3178 [at these weights]", sign, sign, sign)
      assert.equal(want, text_of(body))
    end
  end)

  it("is kept exactly by transport alone", function()
    assert.matches("keeps volume exactly %[by construction%]", text_of "ph.cayley { d } * z")
    assert.matches("keeps volume exactly %[by construction%]", text_of "-1 * (2 * (0.5 * (ph.cayley { d } * z)))")
  end)

  it("has no meter where dampings outside of it would be counted, or it is a sum", function()
    assert.not_matches("keeps volume", text_of "0.9 * z + ph.linear(d)(ph.tanh(z))")
    local beside <const> = "0.9 * z + ph.damping { d, step = 1 } * ph.tanh(z)"
    assert.matches("state channel %-1.2643, meter %-1.2643", text_of(beside))
    assert.matches("state channel %-?[%d.]+ %[", text_of "ph.cayley { d } * z + 0.1 * (ph.cayley { d } * z)")
  end)
end)

-- ---- laws of what is not a number, and of what they are not about ----

describe("a law", function()
  local function stream_with(name, value)
    local given = { step = 0.1 }
    for k, letter in ipairs { "A", "L", "B" } do
      given[letter] = native.random("normal", k, "silent", { 48, 4, 4 }, 1.0, "f64")
    end
    if name then given[name]:put(value, 17, 2, 3) end
    return ph.law_stream(given)
  end

  local function refused(pattern, f, ...)
    local ok, problem = pcall(f, ...)
    assert.is_false(ok)
    assert.matches(pattern, tostring(problem))
  end

  local nan <const> = 0 / 0
  local function numbers(...) return native.from({ ... }, "f64") end

  it("refuses what is not finite, and names the layer", function()
    for _, name in ipairs { "A", "L", "B" } do
      refused("stream: " .. name .. " of layer 17 has an entry that is not finite", stream_with, name, nan)
    end
    local s, u = stream_with(), native.random("normal", 4, "silent", { 48, 4 }, 1.0, "f64")
    refused("ceiling: x0 has an entry that is not finite", ph.ceiling, s, numbers(1, nan, 0, 0), u)
    refused("gradient_bracket: the gradient has an entry that is not finite", ph.gradient_bracket, s,
      numbers(1, nan, 0, 0))
  end)

  it("does not hold where a figure on the way is not a number", function()
    local function is_nan(v) return v ~= v end
    assert.same({ 2, 1 }, { result.most(1, 2), result.least(1, 2) })
    for _, f in ipairs { result.most, result.least } do assert.is_true(is_nan(f(1, nan)) and is_nan(f(nan, 1))) end
    assert.is_false(result.new({ value = nan, ok = true }).ok)
    local s = stream_with()
    s.layers[9].Lam:put(nan, 1, 1)
    local u = native.random("normal", 4, "silent", { 48, 4 }, 1.0, "f64")
    assert.is_false(ph.ceiling(s, numbers(1, 2, 3, 4), u).ok)
    assert.is_false(ph.gradient_bracket(s, numbers(1, 2, 3, 4)).ok)
  end)

  it("holds for a stream that is zero throughout", function()
    local s = stream_with()
    assert.is_true(ph.ceiling(s, numbers(0, 0, 0, 0), native.tensor({ 48, 4 }, "f64")).ok)
    assert.is_true(ph.gradient_bracket(s, numbers(0, 0, 0, 0)).ok)
  end)

  it("measures the norm of any matrix: 1 of a rotation, 1 + sqrt 2 of a shear", function()
    local rotation = ph.contraction(ph.tensor { { 0, -1 }, { 1, 0 } })
    assert.same({ true, false, 2 }, { rotation.ok, rotation.symmetric, rotation.kernel })
    near(1, rotation.value, { atol = 1e-15, why = "rounding of an SVD" })
    local shear = ph.contraction(ph.tensor { { 1, 2 }, { 0, 1 } })
    near(1 + math.sqrt(2), shear.value, { atol = 1e-14, why = "rounding of an SVD" })
    assert.is_false(shear.ok)
    assert.is_true(ph.contraction(ph.damping { 4, step = 1 } * ph.cayley { 4 }).ok)
  end)

  it("refuses a matrix that its statement is not about", function()
    local shear, minus = ph.tensor { { 1, 2 }, { 0, 1 } }, -1 * ph.eye(2)
    refused("damping: the matrix is not symmetric: R %- R%^T has an entry of size 2", ph.damping_of,
      { R = shear, step = 1 })
    refused("not positive semidefinite: its smallest eigenvalue is %-1", ph.damping_of, { R = minus, step = 1 })
    refused("cayley: the matrix is not skew: S %+ S%^T has an entry of size 2", ph.cayley_of, ph.eye(2))
    refused("volume: the matrix is not symmetric", ph.volume, shear, 1)
    refused("meter_error: the matrix is not positive semidefinite", ph.meter_error, minus, 1)
    refused("reach: the matrix is not orthogonal: C%^T C %- I has an entry of size 3", ph.reach, 2 * ph.eye(2))
    refused("splitting_error: the matrix is not skew", ph.splitting_error, ph.eye(2), ph.eye(2), 1)
    assert.is_userdata(ph.damping_of { R = ph.tensor { { 2, 1 }, { 1, 2 } }, step = 1 })
    assert.is_userdata(ph.cayley_of(ph.tensor { { 0, -3 }, { 3, 0 } }))
  end)

  it("halves no further than float64 has digits", function()
    local r = ph.meter_error(ph.eye(3), 1, 400)
    near(8, r.value, { atol = 1e-9, why = "the ratio tends to 8" })
    assert.is_true(r.ok)
    assert.matches("after 320 halvings float64 has no digits left for it", r.means)
  end)
end)

-- ---- numbers whose squares overflow, and limits ----

describe("numbers at the end of their range", function()
  local function vector(...) return native.from({ ... }, "f64") end

  it("are guarded, damped, turned and normalized like any others", function()
    near(1, ph.guard(1e154 * ph.eye(2), { step = 1, budget = 1 }):max(), { atol = 1e-14, why = "rounding" })
    local Lambda = ph.damping { 4, step = 1, init = ph.normal(1e200) }
    assert.is_nil(Lambda:first_nonfinite())
    near(1 / 3, native.la.eigh(Lambda):at(1), { atol = 1e-12, why = "(1 - 1/2) / (1 + 1/2), rounding of 4 x 4" })
    local volume = ph.transport_volume(ph.cayley_of(1e160 * ph.tensor { { 0, -1 }, { 1, 0 } }))
    assert.same({ true, 1 }, { volume.ok, volume.sign })
    near(math.sqrt(3), ph.layernorm(1e200 * vector(1, -1, 0.5)):norm(), { rtol = 1e-14, why = "rounding" })
  end)

  it("have the limits of the activations", function()
    for name, limits in pairs { silu = { 0, math.huge }, gelu = { 0, math.huge }, softsign = { -1, 1 } } do
      local y = ph[name](vector(-math.huge, math.huge))
      assert.same(limits, { y:at(1), y:at(2) })
    end
  end)

  it("are printed with an exponent where places would show nothing or too much", function()
    assert.same({ "1.07", "1.07e-19", "1.07e+30", "0.00", "inf", "nan", "-" }, {
      tables.ranged(1.0672, 2), tables.ranged(1.0672e-19, 2), tables.ranged(1.0672e30, 2), tables.ranged(0, 2),
      tables.ranged(math.huge, 2), tables.ranged(0 / 0, 2), tables.ranged(nil, 2),
    })
  end)
end)

-- ---- what differs from process to process ----

describe("a spec", function()
  local function problem(line, name)
    local _, problems = spec.load_text([[
local ph = require "ph"
local t <const>, d <const> = {}, 4
]] .. line .. [[

return ph.experiment {
  name = "address", task = ph.task.circles { width = d, split = { train = 8, val = 4, test = 4 } },
  model = function() return { ph.linear { d, name = "B" .. (]] .. (name or "1") .. [[) }, ph.affine(4) } end,
  train = ph.sgd { lr = 0.1, epochs = 1 },
}]], "address.lua")
    return problems and problems[1].text or "none"
  end

  it("cannot read an address, where it is loaded and where its functions are called", function()
    local no_text <const> = "address.lua:3: tostring: a table has no text but its address, which differs from process "
      .. "to process"
    assert.equal(no_text, problem "local s = tostring(t)")
    assert.equal(no_text, problem "local s = string.format('%5d %s', 1, t)")
    assert.equal(no_text, problem "local s = ('%%%s'):format(t)")
    assert.matches("tostring: a function has no text", problem "local s = tostring(function() end)")
    assert.matches("format: %%p is an address", problem "local s = ('%p'):format(t)")
    assert.matches("address.lua:%d+: tostring: a table has no text", problem("", "tostring(t)"))
    assert.matches("attempt to call a nil value", problem "local s = ('x').dump(function() end)")
    assert.equal("none", problem "local s = ('%s %d %s'):format(true, 3, ph.normal(1)) .. tostring(ph.growth())")
  end)

  it("cannot go through keys that have no order", function()
    assert.equal("address.lua:3: pairs: a key is a table, and such keys have another order in every process",
      problem "for _ in pairs { [t] = 1 } do end")
    assert.matches("pairs: a key is a function", problem "for _ in pairs { [function() end] = 1 } do end")
    assert.equal("none", problem "for _ in pairs { [true] = 1, [2.5] = 2, a = 3, 4 } do end")
  end)

  it("leaves the strings of the program as they were", function()
    problem "error 'x'"
    assert.equal(string, getmetatable("").__index)
    assert.matches("0x", ("%p"):format({}))
  end)
end)

-- ---- plans that can be locked can be run ----

describe("a generated task", function()
  it("can be made at the corners of what its keys allow", function()
    for _, at in ipairs { { 1000000, 2 }, { 1000, 1024 }, { 4, 65536 } } do
      local task = ph.task.circles { width = at[2], split = { train = at[1], val = 12, test = 12 } }
      assert.same(at, task:load(3).train.x:shape())
    end
  end)

  it("has the numbers that it always had", function()
    local want = {
      circles = { [2] = "0332c862b2012c0f", [33] = "3e6493025838628a", [1000] = "37f96f95c7927cb9" },
      spirals = { [2] = "51a98e301d2df601", [33] = "a02872085ec48de2", [1000] = "be3335041ad28a23" },
    }
    for kind, digests in pairs(want) do
      for width, digest in pairs(digests) do
        local data = ph.task[kind] { width = width, split = { train = 600, val = 100, test = 277 } }:load(3)
        local bytes = data.train.x:bytes() .. data.val.x:bytes() .. data.test.x:bytes() .. data.test.y:bytes()
        assert.equal(digest, native.sha256(bytes):sub(1, 16))
      end
    end
  end)
end)

-- ---- equal things, and things that look equal ----

describe("what is there twice", function()
  local function problem(grid, select, measures)
    local _, problems = spec.load_text(string.format([[
local ph = require "ph"
return ph.experiment {
  name = "equal", grid = { family = %s, seed = 0 }, select = %s, measure = %s,
  task = ph.task.circles { width = 4, split = { train = 8, val = 4, test = 4 } },
  model = function(cell)
    return { ph.stream { depth = 2, block = function(z) return cell.family and ph.tanh(z) end }, ph.affine(4) }
  end,
  train = ph.sgd { epochs = 1 },
}]], grid, select or "{ lr = { 0.1 } }", measures or "{}"), "equal.lua")
    return problems and problems[1].text or "none"
  end

  it("is refused in every list whose elements are run or measured", function()
    assert.equal("none", problem '"a"')
    assert.equal("equal.lua:3: select: 'lr' has 0.1 twice (elements 1 and 2)", problem('"a"', "{ lr = { .1, 0.1 } }"))
    assert.equal("equal.lua:3: experiment: 'measure' has the string 'growth' twice (elements 1 and 2)",
      problem('"a"', nil, "{ ph.growth(), ph.growth() }"))
    assert.matches("'family' has the string 'a' twice", problem '{ "a", "a" }')
  end)

  it("is refused when only the eye takes it for the same", function()
    local composed, joined = "\"caf\u{e9}\"", "\"cafe\u{301}\""
    assert.equal("none", problem(composed))
    assert.equal("equal.lua:3: experiment: grid: 'family' element 1 holds U+0301, which joins the letter before: write "
      .. "the composed letter", problem(joined))
    assert.matches("holds U%+200B, which is not seen", problem '"a\u{200b}"')
    assert.matches("must be UTF%-8", problem '"\xff"')
    local ok, why = pcall(ph.rule, { "re\u{301}sume", { ph.mean { "growth" }, "<=", 1 } })
    assert.is_false(ok)
    assert.matches("its name holds U%+0301", tostring(why))
  end)
end)

describe("a mean", function()
  it("of large values is one of them", function()
    local large, s = { 1e308, 1e308, 1.5e308 }, aggregate.statistic
    near(1.1666666666666667e308, s.mean(large), { rtol = 1e-15, why = "rounding" })
    near(2.886751345948129e307, s.sd(large), { rtol = 1e-14, why = "rounding" })
    assert.equal(1e308, s.median { 1e308, 1e308 })
    assert.equal(1e308, native.from({ 1e308, 1e308 }, "f64"):mean())
    assert.equal(math.huge, s.mean { 1, math.huge })
  end)
end)

-- ---- workers that the system refuses ----

describe("a worker that cannot be started", function()
  --- Runs three units with two workers while the n-th call of a native function fails.
  local function run(name, n)
    local call, calls, notes, ended, at = native[name], 0, {}, {}, 0
    native[name] = function(...)
      calls = calls + 1
      if calls == n then return nil, name .. ": Resource temporarily unavailable" end
      return call(...)
    end
    finally(function() native[name] = call end)
    local pool = runner.new {
      workers = 2, execute = function(unit) return { status = "finished", unit = unit.k } end,
      receive = function(unit, message) notes[#notes + 1] = unit.k .. " " .. message.text end,
      ended = function(unit, outcome) ended[#ended + 1] = unit.k == outcome.unit and unit.k or "?" end,
      next = function()
        at = at + 1
        return at <= 3 and { k = at } or nil
      end,
    }
    local ok, problem = pcall(pool.run, pool)
    table.sort(ended)
    return ok, ok and ended or tostring(problem), notes
  end

  it("is a line when it is the only one", function()
    for _, name in ipairs { "fork", "pipe" } do
      local ok, problem = run(name, 1)
      assert.same({ false, "cannot start a worker: " .. name .. ": Resource temporarily unavailable" }, { ok, problem })
    end
  end)

  it("is done without when there is another", function()
    local ok, ended, notes = run("fork", 2)
    assert.same({ true, { 1, 2, 3 }, "2 waits for a worker: fork: Resource temporarily unavailable" },
      { ok, ended, notes[1] })
  end)
end)

-- ---- rules that nothing can change, certificates without end ----

describe("a rule", function()
  it("must look at a result of a run", function()
    local function problem(rule)
      local _, problems = family_spec('"ph"', "{ ph.growth() }", rule)
      return problems and problems[1].text:match "experiment: (.*)$" or "none"
    end
    assert.equal("rule 'r': looks at no result of a run, so nothing can change it",
      problem 'ph.rule { "r", { 1, "<=", 2 } }')
    assert.equal("rule 'r': looks at no result of a run, so nothing can change it",
      problem 'ph.rule { "r", ph.all { { 1, "<=", 2 }, ph.band(1, 0, 2) } }')
    assert.equal("none", problem 'ph.rule { "r", { ph.count {}, ">=", 1 } }')
    assert.equal("none", problem 'ph.rule { "r", { ph.mean { "growth" }, "<=", 2 } }, ph.rule { "s", "r" }')
  end)
end)

describe("a certificate", function()
  it("leaves out the weights of a model that would take it minutes, and says so", function()
    local text = "phrun-ir 1\ndtype f32\ninput 1 4096\nsegment once 1\nparam W 4096 4096 zeros\nnode 0 state\n"
      .. "node 1 apply p0 n0\nresult n1\nend\nloss none\n"
    local report = certify.report(certify.of(text, {}))
    assert.equal("  by construction alone: at these weights the singular values of all matrices would take 7e+10 "
      .. "operations, and a certificate takes 1e+10 at most", report[1])
    assert.matches("no bound without weights", table.concat(report, "\n"))
  end)
end)

-- ---- conventions ----

describe("a warm-up", function()
  it("must end before the epochs do", function()
    local function problem(keys)
      local ok, why = pcall(ph.adam, keys)
      return ok and "none" or tostring(why)
    end
    assert.equal("adam: warmup = 50 epochs leaves nothing of epochs = 3 for schedule 'warmup'",
      problem { lr = 1, epochs = 3, warmup = 50, schedule = "warmup" })
    assert.matches("leaves nothing of epochs = 3 for schedule 'warmup_cosine'",
      problem { lr = 1, epochs = 3, warmup = 3, schedule = "warmup_cosine" })
    assert.equal("none", problem { lr = 1, epochs = 3, warmup = 3, schedule = "warmup" })
  end)
end)

describe("a confusion table", function()
  it("counts what is an answer, so that its trace is the accuracy", function()
    local inf <const>, nan <const> = math.huge, 0 / 0
    local logits = native.from({ { nan, 1 }, { inf, 0 }, { -inf, -inf }, { 2, 1 }, { -inf, 0 }, { 0, nan } }, "f32")
    local counts = measure.confusion(logits, native.from({ 0, 0, 0, 0, 0, 0 }, "i32"), 2)
    assert.same({ { 1, 1 }, { 0, 0 } }, counts:totable())
  end)
end)
