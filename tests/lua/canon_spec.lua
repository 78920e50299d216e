local canon = require "ph.util.canon"
local native = require "ph.native"
local ph = require "ph"
local suggest = require "ph.util.suggest"

describe("canonical text", function()
  it("prints integral floats as integers", function()
    assert.equal("120", canon.number(240 / 2))
    assert.equal("256", canon.number(2 ^ 8))
    assert.equal("100", canon.number(1e2))
    assert.equal("0.1", canon.number(0.1))
  end)

  it("prints the shortest number that reads back, as the IR does", function()
    for _, v in ipairs { 0.1, 1 / 3, 1e-5, 100, 0.6, 2 ^ -20, 1 / math.sqrt(32), 123456789, 1e300, -0.25 } do
      local text = canon.ir_number(v)
      assert.equal(v, tonumber(text))
      local ir = "phrun-ir 1\ndtype f32\ninput 1 2\nsegment once 1\nnode 0 state\nnode 1 scale by=" .. text
        .. " n0\nresult n1\nend\nloss none\n"
      assert.equal(ir, (native.ir_check(ir)))
    end
  end)

  it("does not depend on the order of keys", function()
    assert.equal(canon.encode { b = 1, a = { 2, 3 } }, canon.encode { a = { 2, 3 }, b = 1 })
    assert.equal('x{a=1,b="w"}', canon.call("x", { b = "w", a = 1.0 }))
  end)

  it("uses the text of objects", function()
    assert.equal('x{init="normal 0.1"}', canon.call("x", { init = ph.normal(0.1) }))
  end)
end)

describe("suggestions", function()
  it("count slips, a swap as one", function()
    assert.equal(1, suggest.distance("patiance", "patience"))
    assert.equal(1, suggest.distance("setp", "step"))
    assert.equal(3, suggest.distance("", "abc"))
    assert.equal(2, suggest.distance("kitten", "sitte"))
  end)

  it("are near or not made", function()
    assert.equal("cayley", suggest.nearest("cayly", { "damping", "cayley" }))
    assert.is_nil(suggest.nearest("xyz", { "damping", "cayley" }))
    assert.equal(" (did you mean 'step'?)", suggest.hint("stepp", { "step", "budget" }))
    assert.equal("", suggest.hint("q", { "damping" }))
  end)

  it("do not depend on the order of the candidates", function()
    assert.equal(suggest.nearest("ab", { "aa", "ac" }), suggest.nearest("ab", { "ac", "aa" }))
  end)
end)
