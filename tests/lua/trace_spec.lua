-- From blocks to canonical IR text: the text says what is computed, not how it was written.
local native = require "ph.native"
local emit = require "ph.lang.emit"
local ph = require "ph"

local root <const> = native.lua_dir .. "/.."

--- IR text of a model of stages on a state of width 3.
local function text(...)
  return emit.model({ ... }, { positions = 1, features = 3 }, {})
end

local function stream(block, depth) return ph.stream { depth = depth or 2, block = block } end

--- Body of the only segment of a model.
local function body(...) return text(...):match "segment.-\n(.-)end\n" end

local function fails(pattern, ...)
  local ok, e = pcall(text, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(e))
end

describe("a traced block", function()
  it("is text that C parses and prints back", function()
    local models = {
      text(
        stream(function(z)
          return ph.damping { 3, step = 0.5 } * (ph.cayley { 3 } * z) + 0.25 * ph.linear(3)(ph.tanh(ph.affine(3)(z)))
        end), ph.affine(2)),
      text(stream(function(z) return ph.layernorm { eps = 1e-6 } (z - ph.gelu(z) / 3) end)),
      text(function(z) return ph.mul(ph.sigmoid(z), ph.softplus(-z)) + ph.silu(ph.relu(z)) end),
      text(function(z)
        return ph.transpose(ph.param { 3, 3, init = "ones" }) * ph.param { 3, 3, init = ph.constant(2) } * z
      end),
    }
    for _, t in ipairs(models) do assert.equal(t, (native.ir_check(t))) end
  end)

  it("is written down once per stream, whatever the depth", function()
    local calls = 0
    text(stream(function(z) calls = calls + 1 return z + ph.tanh(z) end, 500))
    assert.equal(1, calls)
  end)

  it("does not depend on helpers, local names or unused values", function()
    local direct = body(stream(function(z) return z + ph.linear(3)(ph.tanh(ph.affine(3)(z))) end))
    local function branch(z, inner, outer)
      local unused = ph.cayley { 3 } * z
      local a = inner(z)
      return outer(ph.tanh(a)), unused
    end
    local refactored = body(stream(function(z)
      local outer, inner = ph.linear(3), ph.affine(3)
      local b = branch(z, inner, outer)
      return z + b
    end))
    assert.equal(direct, refactored)
  end)

  it("computes equal values once", function()
    assert.equal("node 0 state\nnode 1 tanh n0\nnode 2 add n1 n1\nresult n2\n",
      body(stream(function(z) return ph.tanh(z) + ph.tanh(z) end)))
  end)

  it("drops factors of one and the identity channel", function()
    assert.equal("node 0 state\nresult n0\n", body(stream(function(z) return ph.identity { 3 } * (1 * z) end)))
    assert.equal(
      "param A 3 3 normal 0.2886751345948129\nnode 0 skew p0\nnode 1 cayley n0\nnode 2 state\nnode 3 apply n1 "
      .. "n2\nresult n3\n",
      body(stream(function(z) return ph.identity { 3 } * ph.cayley { 3 } * ph.identity { 3 } * z end)))
  end)

  it("names repeated parameters in the order in which the result needs them", function()
    local t = body(stream(function(z)
      local late, early = ph.affine(3), ph.affine(3)
      return late(ph.tanh(early(z))) + ph.layernorm(ph.layernorm(z))
    end))
    local names = {}
    for name in t:gmatch "param (%S+)" do names[#names + 1] = name end
    assert.same({ "W", "b", "W2", "b2", "gamma", "beta", "gamma2", "beta2" }, names)
    assert.matches("node 1 apply p0 n0\nnode 2 bias n1 p1\nnode 3 tanh n2\nnode 4 apply p2 n3", t)
  end)

  it("shares the parameters of one layer object", function()
    local t = body(stream(function(z)
      local f = ph.linear(3)
      return f(ph.tanh(f(z)))
    end))
    assert.equal(1, select(2, t:gsub("param ", "")))
  end)

  it("takes the width of the state where a channel has none", function()
    assert.matches("param A 3 3 ", body(stream(function(z) return ph.cayley {} * z end)))
  end)

  it("survives a long chain of operations", function()
    local t = body(stream(function(z)
      for i = 1, 1300 do z = ph.tanh(z) + z / i end
      return z
    end))
    assert.equal(3899, select(2, t:gsub("node ", "")) - 1)
  end)
end)

describe("segments", function()
  it("join stages between streams and drop those that do nothing", function()
    local t = text(ph.affine(3), ph.tanh, stream(function(z) return ph.tanh(z) end, 4), function(z) return z end,
      ph.affine(2))
    local heads = {}
    for head in t:gmatch "segment (%S+ %d+)" do heads[#heads + 1] = head end
    assert.same({ "once 1", "depth 4", "once 1" }, heads)
    assert.equal(1, select(2, text(stream(ph.tanh), function(z) return z end):gsub("segment", "")))
  end)

  it("of stages that give what they take stay when they mark something", function()
    local t = text(ph.tanh, stream(ph.tanh), function(z)
      ph.term(0.5, ph.square(ph.param { 1, 3, init = "ones" } * z))
      return z
    end)
    assert.matches("result n0\nterm 0.5 n2\nend\nloss none\n$", t)
    assert.equal(t, (native.ir_check(t)))
  end)

  it("over time carry a state of their own width and may read every step", function()
    local function step(x, u) return ph.tanh(ph.linear(5)(x) + ph.linear { 5, name = "U" } (u)) end
    local input = { positions = 7, features = 3 }
    local last = emit.model({ ph.stream { width = 5, block = step }, ph.affine(2) }, input, {})
    assert.matches("segment time 7\nwidth 5\n", last)
    assert.equal(last, (native.ir_check(last)))
    local function output(t)
      local out = native.ir_parse(t).output
      return { out.pos, out.feat }
    end
    assert.same({ 1, 2 }, output(last))
    local each = emit.model({ ph.stream { width = 5, block = step, read = ph.linear(2) } }, input, {})
    assert.equal(each, (native.ir_check(each)))
    assert.same({ 7, 2 }, output(each))
  end)
end)

describe("the properties of a stream", function()
  local function driven(x, u) return ph.tanh(ph.linear(3)(x) + ph.linear { 3, name = "U" } (u)) end

  --- Heads of the segments of a model of one stream that `input` enters, and the shape it gives.
  local function heads(input, keys)
    keys.block = keys.block or ph.tanh
    local t = emit.model({ ph.stream(keys) }, input, {})
    local out = native.ir_parse(t).output
    return t:match "segment (.-)\n[np]", string.format("%d/%d x %d", out.pos, out.wide, out.feat)
  end

  local point <const>, sequence <const> = { positions = 1, features = 3 }, { positions = 5, features = 3 }
  local image <const> = { positions = 10, wide = 2, features = 3 }

  it("are said one by one, whatever the others are", function()
    local function gives(head, shape, input, keys)
      local got, out = heads(input, keys)
      assert.same({ head, shape }, { got, out })
    end
    gives("depth 1000", "1/1 x 3", point, { depth = 1000 })
    gives("s1 repeat 1000 tied", "1/1 x 3", point, { depth = 1000, tied = true })
    gives("s1 repeat 9 tied", "9/1 x 3", point, { depth = 9, tied = true, read = ph.tanh })
    gives("s1 repeat 9", "9/1 x 2", point, { depth = 9, read = ph.linear(2), block = ph.gelu })
    gives("s1 repeat 5 driven from zero 1 3", "1/1 x 3", sequence,
      { depth = 5, driven = true, width = 3, block = driven })
    gives("s1 repeat 5 driven from zero 1 3", "1/1 x 3", sequence, { tied = false, width = 3, block = driven })
    gives("time 5\nwidth 3", "1/1 x 3", sequence, { width = 3, block = driven })
    gives("time 5\nwidth 3", "1/1 x 3", sequence,
      { depth = 5, tied = true, driven = true, from = "zero", width = 3, block = driven })
    gives("s1 repeat 4 tied driven", "1/1 x 3", sequence, { from = "input", block = driven })
    gives("s1 repeat 4 driven", "4/1 x 3", sequence, { from = "input", tied = false, block = driven, read = ph.tanh })
    gives("s1 repeat 7 tied from zero 1 4", "7/1 x 4", sequence,
      { depth = 7, tied = true, from = "zero", width = 4, read = ph.tanh })
    gives("s1 repeat 2", "10/2 x 3", image, { depth = 2 })
    gives("s1 repeat 5 tied driven from zero 1 3", "1/1 x 3", image,
      { width = 3, block = function(x) return ph.tanh(x) end })
    gives("s1 repeat 4 tied driven", "8/2 x 3", image,
      { from = "input", block = function(x, u) return ph.tanh(x + u) end, read = ph.tanh })
    gives("core repeat 3", "1/1 x 3", point, { depth = 3, name = "core" })
  end)

  it("give one text with the defaults said or left out", function()
    local function text_of(keys)
      keys.block = driven
      return emit.model({ ph.stream(keys) }, sequence, {})
    end
    assert.equal(text_of { width = 3 }, text_of { steps = 5, width = 3, tied = true, driven = true, from = "zero" })
  end)

  it("share the parameters of streams of one name", function()
    local function block(z) return z + ph.linear(3)(ph.tanh(ph.affine(3)(z))) end
    local t = text(ph.stream { depth = 4, tied = true, name = "core", block = block }, ph.tanh,
      ph.stream { depth = 2, tied = true, name = "core", block = block, read = ph.affine(2) })
    assert.equal(2, select(2, t:gsub("segment core repeat", "")))
    assert.equal(2, select(2, t:gsub("param B 3 3 uniform", "")))
    fails("one 'core' has 4 sets of them and another 2", ph.stream { depth = 4, name = "core", block = block },
      ph.stream { depth = 2, name = "core", block = block })
    fails("the parameter core.B is 3 x 3, uniform in one segment and 3 x 3, zeros in another",
      ph.stream { depth = 4, tied = true, name = "core", block = block },
      ph.stream { depth = 2, tied = true, name = "core", block = ph.linear { 3, init = "zeros" } })
  end)

  it("that exclude each other are refused", function()
    local function refused(pattern, keys)
      keys.block = ph.tanh
      local ok, e = pcall(ph.stream, keys)
      assert.is_false(ok)
      assert.matches(pattern, tostring(e))
    end
    refused("'depth' and 'steps' are both the number of iterations", { depth = 3, steps = 3, driven = true, width = 2 })
    refused("needs depth = L, or width = d", {})
    refused("needs width = d: nothing gives the width", { depth = 3, from = "zero" })
    refused("needs width = d", { depth = 3, driven = true })
    refused("'width' is for a state that starts from zero", { depth = 3, width = 4 })
    refused("'width' is for a state that starts from zero", { from = "input", width = 4 })
    refused("needs depth = L: only a driven stream has as many", { driven = false, from = "input" })
    refused("none of s1, s2", { depth = 3, name = "s3" })
    refused("'name' must be a name", { depth = 3, name = "a b" })
    refused("'from' must be one of zero, input, got the string 'inputs' %(did you mean 'input'%?%)",
      { depth = 3, from = "inputs" })
    refused("'depth' must be at most 1048576", { depth = 1048577 })
  end)

  it("must fit what enters", function()
    local function fails_on(pattern, input, keys)
      local ok, e = pcall(heads, input, keys)
      assert.is_false(ok)
      assert.matches(pattern, tostring(e))
    end
    fails_on("stream: steps = 4, but its input has 5 positions", sequence, { steps = 4, width = 3, block = driven })
    fails_on(
      "stream: depth = 5, but its input has 5 positions: the first is where the state starts, each iteration "
      .. "takes one more", sequence, { depth = 5, driven = true, from = "input", block = driven })
    fails_on("stream: depth = 0, but its input has 1 positions", point, { from = "input", block = driven })
    fails_on("what is read has positions on two axes", image, { depth = 2, read = ph.tanh })
  end)
end)

describe("a block that cannot be traced", function()
  it("is refused with the reason", function()
    fails("block: turns a state of width 3 into a state of width 4; a step keeps the shape", stream(ph.affine(4)))
    fails("apply: a matrix %(4, 4%) does not fit a state of width 3",
      stream(function(z) return ph.cayley { 4 } * z end))
    fails("comparison of a value inside a block", stream(function(z) return z < ph.tanh(z) and z or z end))
    fails("comparison of a value inside a block", stream(function(z) return z == ph.tanh(z) and z or z end))
    fails("indexing %('1'%) of a value inside a block", stream(function(z) return z[1] end))
    fails("the length of a value inside a block", stream(function(z) return #z end))
    fails("two states have no product; ph.mul", stream(function(z) return z * z end))
    fails("a matrix stands left of the state", stream(function(z) return z * ph.cayley { 3 } end))
    fails("a number and a value inside a stream do not add", stream(function(z) return z + 1 end))
    fails("a layer is a function: call it", stream(function(z) return z + ph.affine(3) end))
    fails("gives a layer, not a state", stream(function() return ph.affine(3) end))
    fails("must give a state, gives a matrix %(3, 3%)", stream(function() return ph.cayley { 3 } end))
    fails("must give a state, gives nothing", stream(function() end))
    fails("divide: by zero", stream(function(z) return z / 0 end))
    fails("the factor must be finite, got nan", stream(function(z) return (0 / 0) * z end))
    fails("from outside the block; of these a block takes multiples of the identity only",
      stream(function(z) return ph.ones(3, 3) * z end))
    fails("inside a block only its own values, parameters and numbers",
      stream(function(z) return ph.mul(ph.batch(ph.ones(1, 3)), z) end))
  end)

  it("cannot use values of another block", function()
    local kept
    fails("a value of another block", function(z) kept = z return ph.tanh(z) end,
      stream(function(z) return z + kept end))
  end)

  it("cannot share a layer between segments", function()
    local f = ph.affine(3)
    fails("one layer is used in two segments", f, stream(ph.tanh), f)
  end)

  it("leaves no trace behind", function()
    pcall(text, stream(function() error("own error", 0) end))
    assert.is_nil(require("ph.lang.symbol").current())
    fails("^own error$", stream(function() error("own error", 0) end))
  end)
end)

describe("a model", function()
  it("must fit the task", function()
    local function with_classes(n, ...) return emit.model({ ... }, { positions = 1, features = 3 }, { classes = n }) end
    assert.has_no_error(function() with_classes(2, ph.affine(2)) end)
    local ok, e = pcall(with_classes, 4, ph.affine(2))
    assert.is_false(ok)
    assert.matches("gives a state of width 2, the task has 4 classes", e)
    fails("has no stage that computes anything", function(z) return z end)
    fails("stage 2 must be a layer, a function or a stream, got 3", ph.tanh, 3)
  end)
end)

describe("the specs of the program", function()
  local spec = require "ph.spec"
  local function slurp(path) return native.read_file(path) end
  for _, case in ipairs {
    { "quick", "family=ph depth=30 seed=0" }, { "quick", "family=resnet depth=30 seed=0" },
    { "e6", "family=resnet_ln task=circles depth=120 seed=0" }, { "e6", "family=cayley task=spirals depth=120 seed=0" },
    { "digits", "family=ph variant=time seed=0" },
  } do
    local name, wanted = case[1], case[2]
    it("give the text that is kept: " .. name .. ", " .. wanted, function()
      local e = assert(spec.load(root .. "/specs/" .. name .. ".lua"))
      for _, cell in ipairs(e:cells()) do
        if cell:text() == wanted then
          local path = string.format("%s/tests/golden/ir/%s-%s.ir", root, name,
            (wanted:gsub("%a+=", ""):gsub(" ", "-")))
          if native.getenv "PHRUN_UPDATE" then assert(native.write_file(path, e:ir(cell))) end
          return assert.equal(slurp(path), e:ir(cell))
        end
      end
      error("no cell " .. wanted)
    end)
  end
end)
