local aggregate = require "ph.rules.aggregate"
local check = require "ph.rules.check"
local json = require "ph.util.json"
local judge = require "ph.rules.judge"
local ph = require("ph.rules").words
local text = require "ph.rules.text"

local nan <const>, inf <const> = 0 / 0, math.huge

-- A table of cells as the verdict makes it: families x depths x seeds, value(family,
-- depth, seed) -> metrics, a record, or nil.
local function ledger(families, depths, seeds, value)
  local ctx = { cells = {}, candidate_axes = {}, rules = {} }
  for _, family in ipairs(families) do
    for _, depth in ipairs(depths) do
      for _, seed in ipairs(seeds) do
        local label = string.format("family=%s depth=%d seed=%d", family, depth, seed)
        local got = value(family, depth, seed)
        local record = got and (got.status and got or { status = "done", metrics = got })
        local run = { select = {}, label = label, record = record }
        ctx.cells[#ctx.cells + 1] = {
          values = { family = family, depth = depth, seed = seed }, label = label, runs = { run },
          chosen = record and run,
        }
      end
    end
  end
  return ctx
end

local growths <const> = {
  ph = { [12] = 5, [48] = 10, [96] = 12 }, resnet = { [12] = 4, [48] = 11, [96] = 20 },
  ln = { [12] = 6, [48] = 9, [96] = 30 },
}
local function growing(skip)
  return ledger({ "ph", "resnet", "ln" }, { 12, 48, 96 }, { 0, 1, 2 }, function(family, depth, seed)
    if skip and skip(family, depth, seed) then return nil end
    return {
      growth = growths[family][depth] + (seed - 1) / 10, ["test.accuracy"] = 0.9 + seed / 100, zero = 0,
      broken = seed == 1 and nan or 1, huge = inf,
    }
  end)
end

local function value(ctx, node)
  local r = aggregate.evaluate(ctx, node)
  return r.value, r.reasons and table.concat(r.reasons, "; ")
end

local function truth(ctx, node)
  local r = judge.condition(ctx, node)
  return r.truth, table.concat(r.reasons, "; ")
end

local yes = { { 1, "<", 2 }, { 2, "<=", 2 } }
local no = { 1, ">", 2 }
local unknown = { ph.mean { "growth", depth = 96 }, "<", 2 }
local function lost96() return growing(function(_, depth) return depth == 96 end) end

describe("numbers of a ledger", function()
  it("takes mean, sample deviation, median, smallest, largest and sum over the runs that the filter leaves", function()
    local ctx = growing()
    local at = { family = "ph", depth = 48 }
    local function of(op) return value(ctx, ph[op] { "growth", family = at.family, depth = at.depth }) end
    assert.near(10, of "mean", 1e-14)
    assert.near(0.1, of "sd", 1e-14) -- 9.9 10 10.1: sqrt(0.02 / 2)
    assert.equal(10.0, of "median")
    assert.equal(9.9, of "min")
    assert.equal(10.1, of "max")
    assert.near(30, of "sum", 1e-13)
  end)

  it("takes the mean of the two middle values as the median of an even number", function()
    assert.near(10.05, value(growing(), ph.median { "growth", family = "ph", depth = 48, seed = { 1, 2 } }), 1e-14)
  end)

  it("filters by lists, bounds and exceptions", function()
    local ctx = growing()
    assert.equal(6, value(ctx, ph.count { family = "ph", depth = ph.at_least(48) }))
    assert.equal(18, value(ctx, ph.count { family = ph.except "ph" }))
    assert.equal(12, value(ctx, ph.count { family = { "ph", "ln" }, depth = ph.at_most(48) }))
    assert.equal(9, value(ctx, ph.count { seed = 0, depth = "*" }))
  end)

  it("has no sample deviation of one value, and a mean", function()
    local ctx = ledger({ "ph" }, { 12 }, { 0 }, function() return { growth = 3 } end)
    assert.equal(3.0, value(ctx, ph.mean { "growth" }))
    local v, why = value(ctx, ph.sd { "growth" })
    assert.is_nil(v)
    assert.equal("the sample deviation of one value is not defined", why)
  end)

  it("has no value when one run is missing, and names it", function()
    local v, why = value(growing(function(f, d, s) return f == "ln" and d == 48 and s == 2 end), ph.mean { "growth" })
    assert.is_nil(v)
    assert.equal("no run at family=ln depth=48 seed=2", why)
  end)

  it("says which value of an axis has no runs at all instead of listing every cell", function()
    local _, why = value(lost96(), ph.mean { "growth", family = "ph" })
    assert.equal("no runs at depth=96", why)
  end)

  it("never lets a value that is not a number pass", function()
    local v, why = value(growing(), ph.max { "broken", family = "ph", depth = 12 })
    assert.is_nil(v)
    assert.equal("broken of family=ph depth=12 seed=1 is not a number", why)
  end)

  it("compares infinite values and refuses what they make undefined", function()
    local ctx = growing()
    assert.equal(inf, value(ctx, ph.max { "huge" }))
    assert.is_nil((value(ctx, ph.sd { "huge" })))
    assert.is_nil((value(ctx, ph.gap(ph.max { "huge" }, ph.min { "huge" }))))
    assert.is_false((truth(ctx, { op = "compare", left = ph.max { "huge" }, cmp = "<=", right = 2 })))
  end)

  it("has no ratio to a zero baseline", function()
    local v, why = value(growing(), ph.ratio(ph.mean { "growth" }, ph.mean { "zero" }))
    assert.is_nil(v)
    assert.equal("the ratio has a zero baseline", why)
    assert.near(0.1, value(growing(), ph.ratio(1, ph.mean { "growth", family = "ph", depth = 48 })), 1e-15)
  end)

  it("gives equal values the better rank, or the worse when asked", function()
    local ctx = ledger({ "a", "b", "c" }, { 1 }, { 0, 1 }, function(f) return { g = f == "c" and 9 or 4 } end)
    assert.equal(1, value(ctx, ph.rank { ph.mean { "g" }, family = "b" }))
    assert.equal(2, value(ctx, ph.rank { ph.mean { "g" }, family = "b", ties = "worst" }))
    assert.equal(3, value(ctx, ph.rank { ph.mean { "g" }, family = "c" }))
    assert.equal(1, value(ctx, ph.rank { ph.mean { "g" }, family = "c", order = "high" }))
    assert.equal(1, value(ctx, ph.rank { ph.mean { "g" }, family = "c", among = { "c" } }))
  end)

  it("finds the best of the others with an aggregate over an axis", function()
    local best = ph.min { ph.mean { "growth", depth = 96 }, family = ph.except "ph" }
    assert.near(20, value(growing(), best), 1e-13)
    assert.near(-8, value(growing(), ph.gap(ph.mean { "growth", depth = 96, family = "ph" }, best)), 1e-13)
  end)

  it("counts diverged runs, and takes them as a number only where the rule says so", function()
    local ctx = ledger({ "a", "b" }, { 240 }, { 0, 1, 2 }, function(f, _, s)
      if f == "b" and s > 0 then return { status = "diverged", metrics = {} } end
      return { ["test.accuracy"] = 0.9 }
    end)
    assert.equal(2, value(ctx, ph.count { status = "diverged" }))
    local v, why = value(ctx, ph.mean { "test.accuracy", family = "b" })
    assert.is_nil(v)
    assert.matches("family=b depth=240 seed=1 diverged", why)
    assert.near(0.3, value(ctx, ph.mean { "test.accuracy", family = "b", diverged = 0 }), 1e-15)
    assert.equal(2, value(ctx, ph.count { "test.accuracy", below = 0.5, diverged = 0 }))
  end)

  it("sums in grid order, so that a ledger in another order gives the same bits", function()
    local ctx = ledger({ "a" }, { 1 }, { 0, 1, 2 }, function(_, _, s) return { g = ({ 1e16, 1, -1e16 })[s + 1] } end)
    assert.equal(0.0, value(ctx, ph.sum { "g" }))
  end)
end)

describe("conditions", function()
  it("follow Kleene's three values", function()
    local ctx = lost96()
    local y, n = ph.all(yes), no
    assert.is_nil((truth(ctx, ph.all { y, unknown })))
    assert.is_false((truth(ctx, ph.all { n, unknown })))
    assert.is_true((truth(ctx, ph.any { unknown, y })))
    assert.is_nil((truth(ctx, ph.any { n, unknown })))
    assert.is_nil((truth(ctx, ph.none { unknown })))
    assert.is_false((truth(ctx, ph.none { unknown, y })))
    assert.is_true((truth(ctx, ph.none { n })))
    assert.is_true((truth(ctx, ph.unevaluable(unknown))))
    assert.is_false((truth(ctx, ph.unevaluable(n))))
  end)

  it("are not evaluable at a depth that was cut, never true or false", function()
    local lowest = ph.every { { ph.rank { ph.mean { "growth" }, family = "ph" }, "==", 1 }, depth = ph.at_least(48) }
    assert.is_false((truth(growing(), lowest))) -- ph is second at 48
    local at96 = ph.every { { ph.rank { ph.mean { "growth" }, family = "ph" }, "==", 1 }, depth = 96 }
    assert.is_true((truth(growing(), at96)))
    local v, why = truth(lost96(), at96)
    assert.is_nil(v)
    assert.equal("no runs at depth=96", why)
  end)

  it("over an axis are not evaluable while one value is missing, whatever the others say", function()
    assert.is_nil(
      (truth(lost96(), ph.every { { ph.mean { "growth", family = "ph" }, "<", 8 }, depth = ph.at_least(48) })))
    assert.is_nil((truth(lost96(), ph.every { { ph.mean { "growth", family = "ph" }, "<", 80 }, depth = "*" })))
    assert.is_nil((truth(lost96(), ph.some { { ph.mean { "growth", family = "ph" }, "<", 8 }, depth = "*" })))
  end)

  it("include both ends of a band", function()
    local ctx = growing()
    for v, want in pairs { [0.5] = true, [2] = true, [1] = true, [2.0001] = false, [0.4999] = false } do
      assert.equal(want, (truth(ctx, ph.band(v, 0.5, 2))))
    end
  end)

  it("survive a way through JSON with the same outcome and the same text", function()
    local node = ph.every {
      ph.any { { ph.max { ph.mean { "growth", seed = { 0, 2 } }, family = "*" }, "<=", 13 }, ph.band(1, 0, 2) },
      depth = ph.at_least(48),
    }
    local back = json.decode(json.encode(node))
    assert.equal(text.condition(node), text.condition(back))
    assert.equal(json.encode(node), json.encode(back))
    assert.equal((truth(growing(), node)), (truth(growing(), back)))
  end)
end)

describe("the decision table", function()
  local function plan(second_depth)
    return {
      rules = {
        ph.rule { "slow", { ph.mean { "growth", depth = 12, family = "ph" }, "<", 2 } },
        ph.rule { "late", { ph.mean { "growth", depth = second_depth, family = "ph" }, "<", 13 } },
      },
      categories = {
        ph.category { "for", when = ph.all { "slow", "late" }, holds = true },
        ph.category { "open", when = ph.any { "late" } }, ph.category { "mixed" },
      },
      predictions = {},
    }
  end

  it("takes the first line that is true", function()
    local out = judge.all(growing(), plan(96))
    assert.equal("open", out.category)
    assert.is_false(out.truth)
  end)

  it("does not pass over a line that is not evaluable", function()
    local out = judge.all(lost96(), plan(96))
    assert.equal("not evaluable", out.category) -- "for" is false already, "open" is open: nothing below it may decide
    assert.is_nil(out.truth)
    assert.same({ "no runs at depth=96" }, out.reasons)
  end)

  it("may have a line for what is not evaluable", function()
    local p = plan(96)
    table.insert(p.categories, 1, ph.category { "incomplete", when = ph.unevaluable "late" })
    assert.equal("incomplete", judge.all(lost96(), p).category)
    assert.equal("open", judge.all(growing(), p).category)
  end)

  it("is all rules together when there are no categories", function()
    local p = { rules = { plan(96).rules[2] }, categories = {}, predictions = {} }
    assert.is_true(judge.all(growing(), p).truth)
    assert.is_nil(judge.all(lost96(), p).truth)
  end)
end)

describe("predictions", function()
  it("are hit, missed or not evaluable, beside the rules", function()
    local p = { rules = {}, categories = {}, predictions = {
      ph.prediction { "growth", ph.mean { "growth", family = "ph", depth = 12 }, band = { 0.5, 2.0 }, paper = 3.5 },
      ph.prediction { "accuracy", ph.mean { "test.accuracy" }, at_least = 0.9 },
      ph.prediction { "late", ph.mean { "growth", depth = 96 }, at_most = 2 },
    } }
    local out = judge.all(lost96(), p).predictions
    assert.is_false(out[1].hit)
    assert.equal("in [0.5, 2]", out[1].band)
    assert.is_nil(out[2].hit)
    assert.is_nil(out[3].hit)
    assert.is_true(judge.all(growing(), p).predictions[2].hit)
  end)
end)

describe("what is wrong with a rule", function()
  local vocabulary = {
    metrics = { growth = true, ["test.accuracy"] = true, ["val.accuracy"] = true },
    axes = { family = { "ph", "resnet" }, depth = { 12, 48 } }, candidates = { lr = { 0.001, 0.003 } },
  }
  local function errors(when)
    return table.concat(
      check.plan({ rules = { ph.rule { "r", when } }, categories = {}, predictions = {} }, vocabulary), "\n")
  end

  it("is reported with the nearest valid word", function()
    assert.equal("rule 'r': unknown metric 'growht' (did you mean 'growth'?)", errors { ph.mean { "growht" }, "<", 2 })
    assert.equal("rule 'r': the grid has no axis 'familly' (did you mean 'family'?)",
      errors { ph.mean { "growth", familly = "ph" }, "<", 2 })
    assert.equal("rule 'r': family has no value resnt (did you mean 'resnet'?); the grid has ph, resnet",
      errors { ph.mean { "growth", family = "resnt" }, "<", 2 })
    assert.equal("rule 'r': depth has no value 96; the grid has 12, 48",
      errors { ph.mean { "growth", depth = 96 }, "<", 2 })
    assert.equal("rule 'r': no value of the grid is in depth>=96",
      errors(ph.every { { ph.mean { "growth" }, "<", 2 }, depth = ph.at_least(96) }))
    assert.equal("rule 'r': no earlier rule is named 's' (this is the first rule)", errors "s")
  end)

  it("refuses a choice by test data", function()
    assert.matches("a choice by test data is refused", errors { ph.max { "test.accuracy", runs = "all" }, ">", 0.9 })
    assert.matches("a choice by test data is refused", errors { ph.mean { "test.accuracy", lr = 0.003 }, ">", 0.9 })
    assert.equal("", errors { ph.max { "test.accuracy" }, ">", 0.9 })
    assert.equal("", errors { ph.count { "val.accuracy", below = 0.5, runs = "all" }, "<=", 3 })
  end)

  it("is one line from the constructor", function()
    local function refused(pattern, f, ...)
      local ok, problem = pcall(f, ...)
      assert.is_false(ok)
      assert.matches(pattern, problem, 1, true)
      assert.is_nil(problem:find "\n")
    end
    refused("rule: 'x': a rule cannot be a Lua function", ph.rule, { "x", function() return true end })
    refused("unknown comparison '=<'; use < <= > >= == ~=", ph.rule, { "x", { 1, "=<", 2 } })
    refused("'growth' is a name; say how its runs become one number", ph.rule, { "x", { "growth", "<", 2 } })
    refused("mean: which metric?", ph.mean, {})
    refused("depth: the list has a hole at 2", ph.mean, { "growth", depth = { 30, [3] = 240 } })
    refused("band: the band is empty: 2 > 1", ph.band, 1, 2, 1)
    refused("count: one bound only", ph.count, { "growth", below = 1, above = 2 })
    refused("prediction: unknown key 'bnad' (did you mean 'band'?)", ph.prediction,
      { "x", ph.mean { "growth" }, bnad = { 1, 2 } })
    refused("category: the condition of a category stands under `when`", ph.category, { "x", "r" })
    refused("gate: dir is the results directory", ph.gate, { verdict = "for" })
    refused("prediction: 'x': the ends of a band are numbers", ph.prediction,
      { "x", ph.mean { "growth" }, at_least = nan })
  end)
end)
