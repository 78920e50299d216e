local native = require "ph.native"

local model <const> = [[
phrun-ir 1
dtype f64
input 1 3
segment depth 2
param A 3 3 normal 0.5
param b 1 3 zeros
node 0 state
node 1 skew p0
node 2 cayley n1
node 3 apply n2 n0
node 4 bias n3 p1
result n4
end
loss softmax_cross_entropy
]]

local function fails(pattern, f, ...)
  local ok, problem = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(problem))
  assert.is_nil(tostring(problem):find "\n")
end

local function data(n)
  local labels = {}
  for i = 1, n do labels[i] = i % 3 end
  return native.data(native.random("normal", 1, "x", { n, 3 }), native.from(labels, "i32"))
end

local function plan(options)
  local p = assert(native.plan(model, options))
  p:init(0)
  return p
end

describe("native.ops", function()
  it("lists rows with everything a page needs", function()
    local seen = {}
    for _, row in ipairs(native.ops()) do
      seen[row.name] = row
      assert.is_true(row.equation ~= "" and row.doc ~= "" and type(row.gain) == "string")
      assert.equal("table", type(row.attrs))
    end
    assert.equal("orthogonal", seen.cayley.gain)
    assert.equal("k", seen.cayley.args)
    assert.same({ "step" }, seen.damping.attrs)
    assert.same({ "positive" }, seen.damping.attr_kinds)
  end)

  it("gives shapes by the rules of the table", function()
    local M = { pos = 0, wide = 0, rows = 3, cols = 2 }
    local image = { pos = 12, wide = 4, rows = 1, cols = 2 }
    assert.same({ pos = 12, wide = 4, rows = 1, cols = 3 }, native.op_shape("apply", { M, image }))
    local shape, problem = native.op_shape("add", { image, { pos = 12, wide = 1, rows = 1, cols = 2 } })
    assert.is_nil(shape)
    assert.equal("add: a state of 3 x 4 positions and width 2 does not fit a state of 12 positions and width 2",
      problem)
    fails("takes 2 arguments, got 1", native.op_shape, "apply", { M })
    fails("attribute 'step' is missing", native.op_shape, "damping", { M })
  end)

  it("runs one op and its adjoint", function()
    local A = native.from { { 0, 1 }, { 0, 0 } }
    assert.same({ { 0, 1 }, { -1, 0 } }, native.op("skew", { A }):totable())
    local g = native.op_bwd("skew", { A }, nil, nil, native.from { { 0, 1 }, { 0, 0 } })
    assert.same({ { 0, 1 }, { -1, 0 } }, g[1]:totable())
    local z = native.from { { 1, 2 } }
    assert.same({ { 4, 6 } },
      native.op("apply", { native.from { { 2, 1 }, { 0, 3 } }, z }, {}, { false, true }):totable())
  end)

  it("refuses wrong calls", function()
    local A = native.eye(2)
    fails("no op is called 'skw'", native.op, "skw", { A })
    fails("argument 1 is a number", native.op, "skew", { 3 })
    fails("attribute 'step' is missing", native.op, "damping", { A }, {})
    fails("2 attributes given, it takes 1", native.op, "damping", { A }, { step = 1, stp = 2 })
    fails("skew", native.op, "skew", { A, A })
    fails("skew", native.op, "skew", { native.tensor { 2, 3 } })
    fails("at most 4", native.op, "skew", { A, A, A, A, A })
    fails("f32 or f64", native.op, "skew", { native.tensor({ 2, 2 }, "i32") })
    A:close()
    fails("tensor is closed", native.op, "skew", { A })
  end)
end)

describe("native.ir_check and ir_parse", function()
  it("give the text and the table", function()
    assert.equal(model, native.ir_check(model))
    local ir = native.ir_parse(model)
    assert.same({ "f64", "softmax_cross_entropy", 1, 3 }, { ir.dtype, ir.loss, ir.input.pos, ir.input.feat })
    local s = ir.segments[1]
    assert.same({ "s1", false, false, false, "input", 2, 5, 2, 5 },
      { s.name, s.once, s.tied, s.driven, s.from, s.repeat_, #s.nodes, #s.params, s.result })
    assert.same({ { kind = "node", index = 3 }, { kind = "node", index = 1 } }, s.nodes[4].args)
    assert.same({ name = "A", rows = 3, cols = 3, init = "normal", scale = 0.5 }, s.params[1])
    assert.is_nil(s.read)
  end)

  it("refuse softly, with the line", function()
    for _, text in ipairs {
      "", "phrun-ir 9\n", model:gsub("apply", "aply"), model .. "x\n", "\0", model:gsub("\n", "\r\n"),
    } do
      for _, f in ipairs { native.ir_check, native.ir_parse, native.plan } do
        local v, message, code = f(text)
        assert.is_nil(v)
        assert.matches("line %d", message)
        assert.matches("^PH_E_", code)
      end
    end
  end)
end)

describe("a plan", function()
  it("trains, and gives and takes its parameters", function()
    local p <close> = plan()
    local d <close> = data(48)
    local names, total = p:params()
    assert.same({
      { name = "s1.A", count = 18, shape = { 2, 3, 3 } }, { name = "s1.b", count = 6, shape = { 2, 1, 3 } },
    }, names)
    assert.equal(24, total)
    local before = p:eval(d, nil)
    for _ = 1, 30 do p:step(d, nil, { kind = "adam", lr = 0.05 }) end
    local after = p:eval(d, nil, true)
    assert.is_true(after.loss < before.loss)
    assert.same({ 48, 3 }, after.out:shape())
    assert.equal(30, p:steps())
    local A = p:get("s1.A", "value")
    local q <close> = plan()
    for _, row in ipairs(names) do q:set(row.name, "value", p:get(row.name)) end
    q:refresh()
    assert.equal(after.loss, q:eval(d).loss)
    assert.same({ 2, 3, 3 }, A:shape())
    assert.same({ 2, 3, 3 }, p:value("s1.cayley"):shape())
    A:close()
  end)

  it("tells what it is; its text is read once", function()
    local before = native.ir_texts()
    local p <close> = plan()
    local tells = p:model()
    assert.equal(before + 1, native.ir_texts())
    assert.same(native.ir_parse(model), tells)
  end)

  it("reports gradients, probes, costs", function()
    local p <close> = plan { probe = true, batch = 16 }
    local d <close> = data(16)
    local r = p:grad(d, native.from({ 1, 5 }, "i32"), true)
    assert.same({ 2, 3 }, r.gx:shape())
    assert.same({ 2, true }, { r.n, r.finite })
    assert.is_nil(r.grad_norm)
    assert.is_true(p:get("s1.A", "grad"):norm() > 0)
    local probe = p:probe(d, nil, { segment = 1, state = true, grad = true })
    assert.same({ 16, 3 }, probe.state:shape())
    assert.same({ 3 }, probe.grad:shape())
    assert.is_nil(probe.port)
    assert.is_true(p:cost().flops_stream > 0)
    assert.equal(2, p:model().segments[1].repeat_)
    assert.matches("s1", p:describe())
    local stream, layers = p:times(true)
    assert.is_true(stream >= 0 and layers >= 0)
    assert.is_true(p:step(d, nil, { kind = "sgd", lr = 0.1, clip = 1 }).grad_norm > 0)
  end)

  it("refuses what does not fit, in one line", function()
    local p <close> = plan()
    local d <close> = data(6)
    fails("unknown key 'bach'", native.plan, model, { bach = 3 })
    fails("threads must be an integer from 0 to 1024, got %-1", native.plan, model, { threads = -1 })
    fails("row number %[2%] = 7 is outside 1%.%.6", p.eval, p, d, native.from({ 1, 7 }, "i32"))
    fails("row number %[1%] = 0", p.eval, p, d, native.from({ 0 }, "i32"))
    fails("i32 tensor of one dimension", p.eval, p, d, native.from { 1, 2 })
    fails("no optimizer is called 'adm'", p.step, p, d, nil, { kind = "adm", lr = 1 })
    fails("lr must be a finite number, got nil", p.step, p, d, nil, { kind = "adam" })
    fails("lr must be a finite number, got inf", p.step, p, d, nil, { kind = "adam", lr = 1 / 0 })
    fails("unknown key 'lrr'", p.step, p, d, nil, { kind = "adam", lr = 1, lrr = 2 })
    fails("no parameter 's1.Q'", p.get, p, "s1.Q")
    fails("no slot is called 'momnt'", p.get, p, "s1.A", "momnt")
    fails("shape", p.set, p, "s1.A", "value", native.tensor { 3, 3 })
    fails("segment 2 is outside 1%.%.1", p.probe, p, d, nil, { segment = 2 })
    fails("unknown key 'sate'", p.probe, p, d, nil, { segment = 1, sate = true })
    fails("s1.cayley", p.value, p, "s1.nothing")
  end)

  it("refuses data of another kind", function()
    local p <close> = plan()
    local x32 <close> = native.data(native.tensor({ 4, 3 }, "f32"), native.tensor({ 4 }, "i32"))
    local wide <close> = native.data(native.tensor { 4, 5 }, native.tensor({ 4 }, "i32"))
    local bare <close> = native.data(native.tensor { 4, 3 })
    local wrong <close> = native.data(native.tensor { 4, 3 }, native.from({ 0, 1, 2, 3 }, "i32"))
    local negative <close> = native.data(native.tensor { 4, 3 }, native.from({ 0, 1, 2, -1 }, "i32"))
    fails("takes f64 with 3 features, the data are f32 %(4, 3%)", p.eval, p, x32)
    fails("takes f64 with 3 features, the data are f64 %(4, 5%)", p.eval, p, wide)
    fails("label", p.step, p, bare, nil, { kind = "sgd", lr = 1 })
    for _, method in ipairs { "eval", "grad" } do
      fails("label", p[method], p, wrong)
      fails("label", p[method], p, negative)
    end
    fails("samples", native.data, native.tensor { 4, 3 }, native.tensor({ 5 }, "i32"))
    fails("i32 labels or a matrix", native.data, native.tensor { 4, 3 }, native.tensor({ 4, 3 }, "f32"))
    fails("%(samples, features%)", native.data, native.tensor { 4 }, native.tensor({ 4 }, "i32"))
  end)

  it("is closed for good, and so are its data", function()
    local p, d = plan(), data(4)
    d:close()
    d:close()
    fails("data is closed", p.eval, p, d)
    local x = native.tensor { 4, 3 }
    local e <close> = native.data(x, native.tensor({ 4 }, "i32"))
    x:close()
    fails("tensor is closed", p.eval, p, e)
    p:close()
    p:close()
    fails("plan is closed", p.eval, p, e)
  end)

  it("keeps its tensors while they are used", function()
    local p <close> = plan()
    local d <close> = data(32)
    collectgarbage()
    collectgarbage()
    assert.equal(32, p:eval(d).n)
  end)

  it("stops at Ctrl-C with its parameters as they were", function()
    local p <close> = plan { batch = 4096 }
    local d <close> = data(4096)
    local before = p:get("s1.A"):bytes()
    native.interrupt_clear()
    native.kill(native.pid(), "SIGINT")
    fails("^interrupted$", p.step, p, d, nil, { kind = "sgd", lr = 1 })
    assert.is_true(native.interrupted())
    assert.equal(before, p:get("s1.A"):bytes())
    assert.equal(0, p:steps())
  end)

  it("keeps the process from forking while it is open", function()
    local p = plan()
    fails("fork: 1 plans? .*still open", native.fork)
    p:close()
  end)
end)
