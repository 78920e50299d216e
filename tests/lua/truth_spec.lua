-- What `phrun check` prints of whole streams against what they do: bounds hold, and no law is claimed where it fails.

local native = require "ph.native"
local certify = require "ph.certify"

local steps <const>, width <const>, samples <const> = 6, 4, 32
local rounding <const> = 1 + 1e-9

--- A model of float64 whose first segment is a stream. body: its parameters, nodes and result.
local function over_time(body, tail)
  return string.format("phrun-ir 1\ndtype f64\ninput %d %d\nsegment time %d\nwidth %d\n%s\nend\n%sloss none\n",
    steps, width, steps, width, body, tail or "")
end

local function over_depth(body)
  return string.format("phrun-ir 1\ndtype f64\ninput 1 %d\nsegment depth %d\n%s\nend\nloss none\n", width, steps, body)
end

--- The certificate and its text at random weights, and what a probe of samples of the given size shows.
local function seen(ir, seed, size, what)
  local plan <close> = assert(native.plan(ir, { batch = samples, threads = 1, probe = true }))
  plan:init(seed)
  plan:refresh()
  local certificate = certify.of(ir, certify.weights_of(plan))
  local positions = ir:match "segment time" and steps or 1
  local x = native.random("normal", seed, "truth_spec", { samples, positions * width }, size, "f64")
  local classes = ir:match "loss softmax_cross_entropy"
  local labels = classes and native.tensor({ samples }, "i32") or native.tensor({ samples, 1 }, "f64")
  local data <close> = native.data(x, labels)
  what.segment = 1
  local inputs = x:reshape { samples * positions, width }:rownorms()
  return certificate.segments[1], table.concat(certify.report(certificate), "\n"), plan:probe(data, nil, what), inputs
end

local matrices <const> = "param W 4 4 normal 1\nparam b 1 4 normal 1\nparam U 4 4 normal 1\n"
local drive <const> = matrices .. "node 0 state\nnode 1 input\n"

describe("the ceiling of a stream over time that forgets its start", function()
  it("keeps the input, and every state is below the printed number", function()
    local ir = over_time(drive .. "node 2 apply p0 n0\nnode 3 bias n2 p1\nnode 4 tanh n3\nnode 5 apply p2 n1\n"
      .. "node 6 add n4 n5\nresult n6")
    for seed = 1, 20 do
      local _, text, probe, inputs = seen(ir, seed, 10 ^ (seed % 4 - 1), { state = true })
      local added, held = text:match "norm ceiling +||x_T|| <= (%S+) %+ (%S+) max||u|| whatever the start"
      local last = probe.state:index(2, steps + 1)
      local ceiling = added + held * inputs:max()
      assert(last:max() <= ceiling * 1.0001, "five digits are printed: " .. last:max() .. " above " .. ceiling)
      if seed % 4 == 3 then assert(last:max() > tonumber(added), "without the input the number would be false") end
    end
  end)
end)

describe("a gate", function()
  it("over depth that multiplies the state is not said to saturate, and has the finite bound of its sigmoid", function()
    local ir = over_depth("param W 4 4 normal 1\nparam b 1 4 normal 1\nnode 0 state\nnode 1 apply p0 n0\n"
      .. "node 2 bias n1 p1\nnode 3 sigmoid n2\nnode 4 mul n3 n0\nnode 5 add n0 n4\nresult n5")
    for seed = 1, 20 do
      local s, text, probe = seen(ir, seed, 10 ^ (seed % 5), { state = true, port = true })
      assert.matches("read the state and do not saturate", text)
      assert.is_nil(text:find("whatever the state", 1, true))
      local bound = s.at_weights.layers[1].port
      assert.equal(1, bound.z)
      assert.equal(0, bound.one)
      for i = 1, samples do
        local start = probe.state:at(i, 1)
        assert(probe.port:at(i, 1) <= start * rounding, "a port above its bound")
        assert(probe.state:at(i, steps + 1) <= 2 ^ steps * start * rounding, "a state above its ceiling")
      end
    end
  end)

  it("over time between the state and a candidate has a finite ceiling, which no state exceeds", function()
    local ir = over_time(drive .. "node 2 apply p2 n1\nnode 3 sigmoid n2\nnode 4 mul n3 n0\nnode 5 apply p0 n0\n"
      .. "node 6 bias n5 p1\nnode 7 tanh n6\nnode 8 mul n3 n7\nnode 9 add n4 n8\nresult n9")
    for seed = 1, 20 do
      local s, text, probe = seen(ir, seed, 10 ^ (seed % 4 - 1), { state = true })
      assert.matches("||x_T|| <= 1 start %+ 12 ", text)
      assert.equal(steps * math.sqrt(width), s.at_weights.added)
      assert(probe.state:index(2, steps + 1):max() <= s.at_weights.added * rounding)
    end
  end)

  it("of two factors that nothing bounds is not said to saturate by construction", function()
    local ir = over_depth("param W 4 4 normal 1\nnode 0 state\nnode 1 apply p0 n0\nnode 2 tanh n1\n"
      .. "node 3 apply p0 n2\nnode 4 mul n1 n3\nnode 5 add n0 n4\nresult n5")
    local text = table.concat(certify.report(certify.of(ir)), "\n")
    assert.matches("read the state and do not saturate", text)
  end)
end)

describe("the gradient law", function()
  local body <const> = "param A 4 4 normal 1\nparam U 4 4 normal 1\nparam R 4 4 normal 1\nnode 0 state\nnode 1 input\n"
    .. "node 2 skew p0\nnode 3 cayley n2\nnode 4 apply n3 n0\nnode 5 apply p1 n1\nnode 6 add n4 n5\n"
  local again <const> = "segment time 6\nwidth 4\nparam V 4 4 normal 1\nnode 0 state\nnode 1 input\n"
    .. "node 2 apply p0 n1\nnode 3 add n0 n2\nresult n3\nend\n"
    .. "segment once 1\nparam W 4 4 normal 1\nnode 0 state\nnode 1 apply p0 n0\nresult n1\nend\n"

  it("is claimed of a stream without a read-out", function()
    local _, text, probe = seen(over_time(body .. "result n6"), 1, 1, { state = true })
    assert.matches("never amplified going down", text)
    assert(probe.state:max() > 0)
  end)

  it("does not apply where every iteration has a read-out: the certificate says so and brackets nothing", function()
    local ir = over_time(body .. "node 7 apply p2 n6\nresult n6\nread n7", again)
    local _, text, probe = seen((ir:gsub("loss none", "loss softmax_cross_entropy")), 1, 1, { grad = true })
    local g = probe.grad:totable()
    assert(g[1] > 2 * g[steps], "read-outs amplify: " .. table.concat(g, " "))
    local first = text:match "^(.-)\n  segment 2"
    assert.matches("the gradient law does not apply: the read%-out of every iteration adds a gradient", first)
    assert.is_nil(first:find("never amplified", 1, true))
    assert.is_nil(first:find("||g_0||", 1, true))
  end)

  it("does not apply where a term of the loss is taken at every iteration", function()
    local ir = "phrun-ir 2\ndtype f64\ninput 1 4\nsegment s1 repeat 6\nparam A 4 4 normal 1\nparam e 1 4 normal 1\n"
      .. "node 0 state\nnode 1 skew p0\nnode 2 cayley n1\nnode 3 apply n2 n0\nnode 4 apply p1 n0\n"
      .. "result n3\nterm 1 n4\nend\nloss none\n"
    local text = table.concat(certify.report(certify.of(ir)), "\n")
    assert.matches("the gradient law does not apply: a term of the loss adds a gradient", text)
    assert.is_nil(text:find("never amplified", 1, true))
  end)
end)
