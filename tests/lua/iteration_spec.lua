-- Numbers that depend on the iteration, and the words of a block that add to the loss or name what is observed.
local emit = require "ph.lang.emit"
local ph = require "ph"

local function ir(keys, block, stages)
  local positions = keys.positions or 1
  keys.block, keys.positions = block, nil
  return emit.model({ ph.stream(keys), table.unpack(stages or {}) }, { positions = positions, features = 2 }, {})
end

local function tables_of(text)
  local out = {}
  for name, numbers in text:gmatch "\ntable (%w+) ([^\n]*)" do out[name] = numbers end
  return out
end

local function refused(keys, block)
  local ok, problem = pcall(ir, keys, block)
  assert.is_false(ok)
  return tostring(problem)
end

describe("the number of the iteration", function()
  it("counts from 0, and its arithmetic is one table", function()
    local text = ir({ depth = 4 }, function(z, t) return z + (1 + 2 * t) * ph.tanh(z) end)
    assert.same({ t = "1 3 5 7" }, tables_of(text))
    assert.matches("\nnode %d scale by=@t n%d\n", text)
  end)

  it("knows + - * / ^ and the functions of one value", function()
    local function numbers(f)
      return tables_of(ir({ depth = 3 }, function(z, t) return z + f(t) * ph.tanh(z) end)).t
    end
    assert.equal("4 1 0", (numbers(function(t) return (2 - t) ^ 2 end)))
    assert.equal("0 -1 -2", (numbers(function(t) return -t end)))
    assert.equal("1 0.5 0.3333333333333333", (numbers(function(t) return 1 / (1 + t) end)))
    assert.equal("0.5 1 1.5", (numbers(function(t) return (t + 1) / 2 end)))
    assert.equal("0 0.7615941559557649 0.9640275800758169", (numbers(function(t) return ph.tanh(t) end)))
  end)

  it("is another value of an attribute at each layer of a stream that owns its parameters", function()
    local text = ir({ depth = 3 }, function(z, t) return ph.damping { 2, step = 0.1 * (1 + t) } * z end)
    assert.equal("0.1 0.2 0.30000000000000004", tables_of(text).t)
    assert.matches("damping step=@t", text)
    assert.matches("guard step=@t budget=1", text)
  end)

  it("is a plain number where it is the same everywhere, and with one iteration", function()
    assert.is_nil(ir({ depth = 3 }, function(z, t) return z + (0 * t + 2) * ph.tanh(z) end):find "table")
    assert.matches("scale by=3 ", ir({ depth = 1 }, function(z, t) return z + (3 + t) * ph.tanh(z) end))
  end)

  it("reaches the largest number of iterations", function()
    local most = require("ph.native").ir_limits().repeat_
    local text = ir({ depth = most, tied = true }, function(z, t) return z + 0.5 * t * ph.tanh(z) end)
    assert.matches(" 524287.5\n", text)
  end)

  it("comes third, after the input of a driven stream", function()
    local text = ir({ steps = 3, width = 2, positions = 3 }, function(x, u, t) return ph.tanh(x) + t * u end)
    assert.equal("0 1 2", tables_of(text).t)
  end)

  it("is refused where its number comes from the data, in comparisons, and where it is not finite", function()
    assert.matches("comes from the data: give the stream depth or steps",
      refused({ width = 2, positions = 3 }, function(x, u, t) return ph.tanh(x) + t * u end))
    assert.matches("comparison of the number of the iteration",
      refused({ depth = 3 }, function(z, t) return t > 1 and z or 2 * z end))
    assert.matches("div: gives inf at some iteration",
      refused({ depth = 3 }, function(z, t) return z + (1 / t) * z end))
    assert.matches("must be greater than 0, got 0, at iteration 0",
      refused({ depth = 3 }, function(z, t) return ph.damping { 2, step = t } * z end))
    assert.matches("in a tied stream a parameter value is the same at every iteration",
      refused({ depth = 3, tied = true }, function(z, t) return ph.damping { 2, step = 1 + t } * z end))
    assert.matches("do not add", refused({ depth = 3 }, function(z, t) return z + t end))
  end)
end)

describe("terms and observations", function()
  local function energy(z)
    local one = ph.linear { 1, name = "e" }(z)
    return ph.mul(one, one)
  end

  it("are lines of their segment", function()
    local text = ir({ depth = 2 }, function(z)
      ph.term(0.01, energy(z))
      ph.observe("energy", energy(z))
      return ph.tanh(z)
    end)
    assert.matches("\nterm 0.01 n%d+\nobserve energy n%d+\nend\n", text)
  end)

  it("take one number a sample, inside a block", function()
    assert.matches("takes one number a sample %(a state of width 1%), got a state of width 2",
      refused({ depth = 2 }, function(z) ph.term(1, z) return z end))
    assert.matches("the weight must be a number",
      refused({ depth = 2 }, function(z) ph.term("x", energy(z)) return z end))
    assert.matches("'e' is observed twice", refused({ depth = 2 }, function(z)
      ph.observe("e", energy(z))
      ph.observe("e", energy(z))
      return z
    end))
    assert.has_error(function() ph.term(1, ph.zeros(1)) end)
  end)
end)
