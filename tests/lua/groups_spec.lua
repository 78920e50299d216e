-- Parameter groups: which group a parameter belongs to, its rates, and groups that decide for nothing.
local groups = require "ph.lang.groups"
local ph = require "ph"

local names <const> = { "s1.A", "s1.L", "s1.b", "s2.W", "s2.b" }

local function protocol(list) return ph.adam { lr = 1e-3, epochs = 1, weight_decay = 0.1, groups = list } end

local function rates(list)
  local out = {}
  for _, r in ipairs(groups.rates(protocol(list), names)) do out[r.name] = r end
  return out
end

describe("parameter groups", function()
  it("give the first group that matches; a pattern without a dot is the name inside the segment", function()
    local r = rates { { "A", lr = 0.1 }, { "s2.*", weight_decay = 0 }, { "*b", frozen = true } }
    assert.equal(0.1, r["s1.A"].lr)
    assert.equal(0.1, r["s1.A"].weight_decay)
    assert.same({ 1, 0, false }, { r["s2.b"].lr, r["s2.b"].weight_decay, r["s2.b"].frozen })
    assert.is_true(r["s1.b"].frozen)
    assert.same({ 1, 0.1, false }, { r["s1.L"].lr, r["s1.L"].weight_decay, r["s1.L"].frozen })
  end)

  it("take a dot for a dot", function()
    assert.is_nil(groups.find({ { match = "s1.A" } }, "s1xA"))
    assert.equal(1, groups.find({ { match = "s1.A" } }, "s1.A"))
  end)

  it("must decide for some parameter", function()
    local function problem(list) return groups.problem(protocol(list).groups, names) end
    assert.is_nil(problem {})
    assert.equal("'a' matches no parameter of any model (did you mean 'A'?)", problem { { "a" } })
    assert.equal("'A' has no effect: earlier groups match all its parameters", problem { { "*" }, { "A", lr = 2 } })
    assert.equal("every parameter is frozen", problem { { "*", frozen = true } })
    assert.is_nil(problem { { "s1.*", frozen = true } })
  end)

  it("change nothing in the text of a protocol without them", function()
    assert.is_nil(ph.adam { lr = 1e-3, epochs = 1 }:canonical():find "groups")
    assert.truthy(
      protocol({ { "A", lr = 0.5 } }):canonical():find('groups=[{"frozen":false,"lr":0.5,"match":"A"}]', 1, true))
  end)
end)
