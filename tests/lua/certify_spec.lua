-- Certificates: sound on random blocks, attained where the laws say so, honest about what does not hold.

local native = require "ph.native"
local certify = require "ph.certify"
local segment = require "ph.certify.segment"
local op_table = require "ph.schema.op_table"

local slack <const> = 1 + 1e-9 -- rounding of a dozen ops on numbers of mixed size

-- ---- random blocks ----

local counter = 0
local function uniform()
  counter = counter + 1
  return (native.random("uniform", 17, "certify_spec", { 1 }, 1.0, "f64", counter):at(1) + 1) / 2
end
local function pick(list) return list[math.floor(uniform() * #list) + 1] end
local function whole(low, high) return low + math.floor(uniform() * (high - low + 1)) end

-- How the ops of the table can be called: matrices (m), vectors of parameters (r), states (v), a letter an argument. A
-- skew or positive semidefinite argument is any matrix here: the certificate has to find out.
local kind_of <const> = { m = "m", q = "m", k = "m", p = "m", r = "m", v = "r", s = "v" }
local calls, names = {}, {}
for _, row in ipairs(op_table.rows) do
  if not row.leaf then
    calls[row.name] = { (row.args:gsub("[mqkprvs]", kind_of):gsub("[xa]", "v")) }
    if row.args:find "[xa]" then
      table.insert(calls[row.name], (row.args:gsub("[mqkprvs]", kind_of):gsub("[xa]", "m")))
    end
    names[#names + 1] = row.name
  end
end
local numbers <const> = {
  positive = { 0.05, 0.3, 1, 3 }, real = { -2, -0.5, 0.1, 1, 3 }, count = { 1, 2 }, index = { 0, 1 },
}
local favourites <const> = { "apply", "add", "bias", "cayley", "damping", "tanh", "gram", "skew", "guard" }

-- A program under construction: text lines, and what of each kind there is to use, { ref =
-- "p0" or "n3", pos, wide, rows, cols }.
local function start(d)
  local state = { ref = "n0", pos = 1, wide = 1, rows = 1, cols = d }
  return { d = d, params = {}, nodes = { "node 0 state" }, m = {}, r = {}, v = { state }, count = 1 }
end

local function declare(p, rows, cols)
  local k = #p.params
  p.params[k + 1] = string.format("param P%d %d %d zeros", k, rows, cols)
  return { ref = "p" .. k, pos = 0, wide = 0, rows = rows, cols = cols }
end

local function parameter(p, kind)
  local v = declare(p, kind == "m" and p.d or 1, p.d)
  table.insert(p[kind], v)
  return v
end

local function operand(p, kind)
  if kind == "r" or #p[kind] == 0 or (kind == "m" and uniform() < 0.3) then return parameter(p, kind) end
  if kind == "m" and uniform() < 0.5 then return p.m[#p.m] end
  return pick(p[kind])
end

--- Arguments, attributes and shape of a call of the row, or nil when they do not fit.
local function draw(p, row)
  local args, attrs = {}, {}
  for kind in pick(calls[row.name]):gmatch "." do args[#args + 1] = operand(p, kind) end
  for i, key in ipairs(row.attrs) do attrs[key] = pick(numbers[row.attr_kinds[i]]) end
  return native.op_shape(row.name, args, attrs), args, attrs
end

--- Writes a node; its value has the shape given.
local function write_node(p, name, args, attrs, shape)
  local words = { "node", p.count, name }
  for _, key in ipairs(op_table.row(name).attrs) do words[#words + 1] = key .. "=" .. attrs[key] end
  for _, a in ipairs(args) do words[#words + 1] = a.ref end
  p.nodes[#p.nodes + 1] = table.concat(words, " ")
  shape.ref = "n" .. p.count
  p.count = p.count + 1
  return shape
end

local function is_home(p, v) return v.pos == 1 and v.cols == p.d end

local function call(p, name, ...)
  local args = { ... }
  return write_node(p, name, args, {}, assert(native.op_shape(name, args, {})))
end

local function grow(p)
  local row = op_table.row(uniform() < 0.6 and pick(favourites) or pick(names))
  local shape, args, attrs
  for _ = 1, 5 do
    shape, args, attrs = draw(p, row)
    if shape then break end
  end
  if not shape then return end
  for i, a in ipairs(args) do -- what must be above 0 mostly is
    if row.args:sub(i, i) == "a" and uniform() < 0.9 then args[i] = call(p, "sigmoid", a) end
  end
  local v = write_node(p, row.name, args, attrs, shape)
  table.insert(v.pos > 0 and p.v or p.m, v)
end

--- A state of the block's shape made of v, whatever it is.
local function home(p, v)
  if v.pos == 0 then v = call(p, "apply", v, call(p, "apply", declare(p, v.cols, p.d), p.v[1])) end
  if v.pos > 1 then v = call(p, "mean_positions", v) end
  return is_home(p, v) and v or call(p, "apply", declare(p, p.d, v.cols), v)
end

--- The last value that has the shape of the state, and what was made of others.
local function result(p)
  local out, strange
  for _, v in ipairs(p.v) do
    if is_home(p, v) then out = v else strange = v end
  end
  if uniform() < 0.3 then strange = p.m[#p.m] or strange end
  return strange and call(p, "add", out, home(p, strange)) or out
end

local function program()
  local p = start(whole(1, 5))
  for _ = 1, whole(3, 12) do grow(p) end
  local last = result(p)
  local lines = { "phrun-ir 1", "dtype f64", "input 1 " .. p.d, "segment depth 1" }
  table.move(p.params, 1, #p.params, #lines + 1, lines)
  table.move(p.nodes, 1, #p.nodes, #lines + 1, lines)
  lines[#lines + 1] = "result " .. last.ref
  lines[#lines + 1] = "end\nloss none\n"
  return table.concat(lines, "\n"), p
end

-- ---- the program, run op by op ----

local function random(name, shape, scale)
  return native.random("normal", counter, "certify_spec." .. name, shape, scale)
end

local function weights_of(p)
  local out = {}
  for k, line in ipairs(p.params) do
    local rows, cols = line:match "P%d+ (%d+) (%d+)"
    out["s1.P" .. k - 1] = random("P" .. k, { math.tointeger(rows), math.tointeger(cols) }, 10 ^ (2 * uniform() - 1))
    counter = counter + 1
  end
  return out
end

local function run(seg, weights, z)
  local params, nodes = {}, {}
  for i, q in ipairs(seg.params) do params[i] = weights["s1." .. q.name] end
  for i, node in ipairs(seg.nodes) do
    if node.op == "state" then
      nodes[i] = z
    else
      local args, samples = {}, {}
      for k, a in ipairs(node.args) do
        args[k] = (a.kind == "param" and params or nodes)[a.index]
        samples[k] = a.kind == "node" and seg.nodes[a.index].shape.pos > 0
      end
      nodes[i] = native.op(node.op, args, node.attrs, samples)
    end
  end
  return nodes[seg.result]
end

local function finite(weights, seg)
  local ok, v = pcall(segment.facts, seg, weights)
  return ok and v or nil
end

local function list_of(seg, weights)
  local out = {}
  for i, q in ipairs(seg.params) do out[i] = weights["s1." .. q.name]:reshape { q.rows, q.cols } end
  return out
end

--- Sizes of what one call shows: norms of v, of z, of differences.
local function inspect(seg, weights, d)
  local n = 6
  local z, step = random("z", { n, d }, 10 ^ (4 * uniform() - 2)), random("step", { n, d }, 10 ^ (4 * uniform() - 3))
  local v, w = run(seg, weights, z), run(seg, weights, z + step)
  if v:first_nonfinite() or w:first_nonfinite() then return nil end
  return {
    v = v:rownorms(), z = z:rownorms(), step = step:rownorms(), moved = (w - v):rownorms(),
    most = math.max(math.abs(v:min()), math.abs(v:max())), scale = v:norm() + w:norm(),
  }
end

local function check(f, seen, text, which)
  local n = seen.v:count()
  for i = 1, n do
    local z, v, step, moved = seen.z:at(i), seen.v:at(i), seen.step:at(i), seen.moved:at(i)
    local tiny = 1e-9 * (1 + seen.scale)
    local function holds(value, limit, what)
      assert(not (value > limit * slack + tiny),
        string.format("%s %s: %.17g above %.17g\n%s", which, what, value, limit, text))
    end
    holds(v, f.gain * z + f.steep.z * z + f.steep.one, "steep norm")
    holds(v, f.gain * z + f.port.z * z + f.port.one, "norm")
    holds(moved, (f.gain + f.lip) * step, "slope")
    holds((f.least - f.lip) * step, moved, "least slope")
    holds(seen.most, f.entry, "entry")
  end
end

--- Counts the ops that the result depends on.
local function note_ops(seg, met)
  local live = { [seg.result] = true }
  for i = #seg.nodes, 1, -1 do
    if live[i] then
      met[seg.nodes[i].op] = (met[seg.nodes[i].op] or 0) + 1
      for _, a in ipairs(seg.nodes[i].args) do
        if a.kind == "node" then live[a.index] = true end
      end
    end
  end
end

describe("the certificate of random blocks", function()
  it("is never exceeded, by construction and at the weights, in 10,000 cases", function()
    local tried, bounded, linear, skipped, met = 0, 0, 0, 0, {}
    while tried < 10000 do
      local text, p = program()
      local model = assert(native.ir_parse(text))
      local seg, weights = model.segments[1], weights_of(p)
      local f = finite(list_of(seg, weights), seg)
      local seen = f and inspect(seg, weights, p.d)
      if seen then
        local c = segment.facts(seg)
        check(f, seen, text, "at weights")
        check(c, seen, text, "by construction")
        assert(c.channel[1] - 1e-6 <= f.channel[2] and f.channel[1] <= c.channel[2] + 1e-6,
          "log-volume outside its bracket\n" .. text)
        tried = tried + 1
        note_ops(seg, met)
        if f.port.z == 0 and f.reads then bounded = bounded + 1 end
        if f.lip == 0 and f.gain > 0 then linear = linear + 1 end
      else
        skipped = skipped + 1
      end
    end
    -- the cases are of all sorts
    assert(bounded > 200, "saturating ports: " .. bounded)
    assert(linear > 200, "linear layers: " .. linear)
    for _, name in ipairs(names) do
      assert((met[name] or 0) > 20, string.format("%s is met %d times", name, met[name] or 0))
    end
    assert(skipped < 2000, "overflowing or singular blocks: " .. skipped)
  end)
end)

describe("the ports of random blocks", function()
  --- Norms of the ports of samples z through a stream of one layer, as the engine tells them apart.
  local function probed(text, weights, z)
    local plan <close> = assert(native.plan(text, { batch = 4, threads = 1, probe = true }))
    for _, p in ipairs((plan:params())) do
      plan:set(p.name, "value", weights[p.name]:reshape(plan:get(p.name, "value"):shape()))
    end
    plan:refresh()
    local data <close> = native.data(z, native.tensor({ z:shape()[1], 1 }, "f64"))
    return plan:probe(data, nil, { segment = 1, port = true }).port:reshape { z:shape()[1] }
  end

  it("are for the engine what they are for the certificate, in 300 cases", function()
    local seen = { both = 0, channel = 0, ports = 0 }
    while seen.both < 300 do
      local text, p = program()
      local model = assert(native.ir_parse(text))
      local seg, weights = model.segments[1], weights_of(p)
      local ok, v = pcall(segment.evaluate, seg, list_of(seg, weights))
      local z = random("z", { 6, p.d }, 1)
      local whole_value = ok and run(seg, weights, z)
      if ok and whole_value and not whole_value:first_nonfinite() then
        assert.equal(v.lin ~= nil, seg.channel, text)
        if not seg.channel then
          seen.ports = seen.ports + 1
          local refused, problem = pcall(probed, text, weights, z)
          assert.is_false(refused)
          assert.matches("segment 1 has no state channel, from which its ports could be told apart", tostring(problem))
        else
          local kind = seg.ports and "both" or "channel"
          local linear = z * v.lin.tensor:transpose()
          local want, size = (whole_value - linear):rownorms(), whole_value:norm() + linear:norm()
          seen[kind] = seen[kind] + 1
          local why = "sums in another order, and a difference: " .. text
          near(want, probed(text, weights, z), { atol = 1e-10 * size, why = why })
        end
      end
    end
    assert(seen.channel > 20 and seen.ports > 100, "not of all sorts")
  end)
end)

-- ---- models of the language ----

local function experiment(body)
  local text = [[
local ph = require "ph"
local d, h = 6, 0.25
local block = function(z) ]] .. body .. [[ end
return ph.experiment {
  name = "c", task = ph.task.circles { classes = 4, width = 6, split = { train = 16, val = 4, test = 4 } },
  model = function() return { ph.stream { depth = 5, block = block }, ph.affine(4) } end,
  train = ph.adam { batch = 8, epochs = 1, lr = 1e-3 },
}]]
  local e, problems = require("ph.spec").load_text(text, "c.lua", {})
  assert(e, problems and problems[1].text)
  return e:ir(e:cells()[1])
end

local ph_block <const> = "return ph.damping { d, step = h, budget = 1 } * (ph.cayley { d } * z) + h * "
  .. "ph.linear(d)(ph.tanh(ph.affine(d)(z)))"

describe("what a certificate says", function()
  local function text_of(body) return table.concat(certify.report(certify.at_start(experiment(body), 3)), "\n") end

  it("of a port-Hamiltonian block", function()
    local c = certify.of(experiment(ph_block)).segments[1].construction
    assert.equal(1, c.gain)
    assert(math.abs(c.least - 1 / 3) < 1e-15)
    assert.is_true(c.additive)
    assert.is_true(c.reads)
    local text = text_of(ph_block)
    assert.matches("gain at most 1, at least 0.33333  %[by construction%]", text)
    assert.matches("the gradient law does not hold: a port reads the state", text)
    assert.matches("log%-volume .- %[at these weights%]", text)
  end)

  it("of a plain residual block with a saturating branch: it has a ceiling too", function()
    local body = "return z + ph.linear(d)(ph.tanh(ph.affine(d)(z)))"
    assert.is_true(certify.of(experiment(body)).segments[1].construction.additive)
    assert.matches("keeps every norm: gain 1", text_of(body))
    assert.matches("gradient law does not hold", text_of(body))
  end)

  it("of a branch that does not saturate: a ceiling that grows like a product", function()
    local c = certify.at_start(experiment "return z + ph.linear(d)(ph.relu(ph.affine(d)(z)))", 3).segments[1]
    assert.is_false(c.construction.additive)
    assert(c.at_weights.factor_log > 0)
    assert.matches("do not saturate", text_of "return z + ph.linear(d)(ph.relu(ph.affine(d)(z)))")
  end)

  it("of LayerNorm on the trunk: states bounded, slopes not usefully", function()
    local c = certify.at_start(experiment "return ph.layernorm(z + ph.linear(d)(ph.tanh(ph.affine(d)(z))))",
      3).segments[1]
    assert.equal(0, c.construction.gain)
    assert(math.abs(c.at_weights.added - math.sqrt(6)) < 1e-12, "max|gamma| sqrt(d) + ||beta||, gamma 1, beta 0")
    assert(c.at_weights.lip_most > 100)
    assert.matches("whatever the start", text_of "return ph.layernorm(z + ph.linear(d)(ph.tanh(ph.affine(d)(z))))")
  end)

  it("of a linear stream: the gradient law, the exact volume and the meter", function()
    local body = "return ph.damping { d, step = h, budget = 1 } * (ph.cayley { d } * z)"
    local c = certify.at_start(experiment(body), 3).segments[1]
    assert.is_false(c.construction.reads)
    local w = c.at_weights
    assert(w.meter < 0 and w.channel[1] <= w.meter and w.channel[1] >= math.log(3) * w.meter,
      "-ln|det| is at least sum h tr R and at most ln 3 times it")
    assert.equal(w.low, w.channel[1])
    assert.matches("never amplified going down", text_of(body))
  end)

  it("does not believe a damping or a transport whose argument is a free matrix", function()
    local c = certify.of(
      "phrun-ir 1\ndtype f64\ninput 1 2\nsegment depth 1\nparam A 2 2 zeros\nnode 0 cayley p0\nnode 1 damping "
      .. "step=1 n0\nnode 2 state\nnode 3 apply n1 n2\nresult n3\nend\nloss none\n")
    assert.equal(math.huge, c.segments[1].construction.gain)
  end)
end)

describe("a table of numbers over the iterations", function()
  --- A stream of three iterations. node: its last node; the certificate at the weights { A }.
  local function certificate(tied, node, A)
    local text = "phrun-ir 2\ndtype f64\ninput 1 2\nsegment s1 repeat 3" .. tied .. "\nparam A 2 2 zeros\n"
      .. "table t 0.5 4 0.25\nnode 0 state\n" .. node .. "\nend\nloss none\n"
    return certify.of(text, { ["s1.A"] = A }).segments[1]
  end

  it("counts with its largest number by construction, and each iteration with its own at the weights", function()
    for _, tied in ipairs { "", " tied" } do
      local s = certificate(tied, "node 1 scale by=@t n0\nresult n1", native.eye(2))
      assert.equal(4, s.construction.gain)
      assert.equal(0.25, s.construction.least)
      assert.is_true(math.abs(s.at_weights.gain_log - math.log(0.5)) < 1e-12)
      assert.is_true(math.abs(s.at_weights.channel[1] - 2 * math.log(0.5)) < 1e-12)
    end
  end)

  it("gives each layer its own step", function()
    local s = certificate("", "node 1 gram p0\nnode 2 damping step=@t n1\nnode 3 apply n2 n0\nresult n3", native.eye(2))
    assert.equal(1, s.construction.gain)
    local sum = 0
    for _, h in ipairs { 0.5, 4, 0.25 } do sum = sum + math.log(math.abs(1 - h / 2) / (1 + h / 2)) end
    assert.is_true(math.abs(s.at_weights.gain_log - sum) < 1e-9)
    assert.equal(-2 * 4.75, s.at_weights.meter)
  end)
end)

describe("where the ceiling is attained", function()
  local function constant(shape, f)
    local t = native.tensor(shape, "f64")
    for l = 1, shape[1] do
      for i = 1, shape[2] do
        for k = 1, shape[3] do t:put(f(i, k), l, i, k) end
      end
    end
    return t
  end

  local function weights(b)
    local zero = constant({ 5, 6, 6 }, function() return 0 end)
    return {
      ["s1.A"] = zero, ["s1.L"] = zero, ["s1.W"] = zero, ["s1.b"] = constant({ 5, 1, 6 }, function() return b end),
      ["s1.B"] = constant({ 5, 6, 6 }, function() return 0.5 / 6 end), ["s2.W"] = native.tensor({ 4, 6 }, "f64"),
      ["s2.b"] = native.tensor({ 1, 4 }, "f64"),
    }
  end

  it("no damping on the state, all ports along it: ||z_L|| = ||z_0|| + sum h||B|| sqrt(d)", function()
    local ir = experiment(ph_block):gsub("dtype f32", "dtype f64")
    local w = weights(40)
    local c = certify.of(ir, w).segments[1].at_weights
    local plan = assert(native.plan(ir, { batch = 1, threads = 1, probe = true }))
    for name, t in pairs(w) do plan:set(name, "value", t) end
    plan:refresh()
    local z = native.tensor({ 1, 6 }, "f64")
    for k = 1, 6 do z:put(2.0, 1, k) end
    local data <close> = native.data(z, native.tensor({ 1 }, "i32"))
    local seen = plan:probe(data, nil, { segment = 1, state = true }).state
    plan:close()
    local want = seen:at(1, 1) + c.added
    assert(math.abs(seen:at(1, 6) - want) <= 1e-11 * want, string.format("%.17g against %.17g", seen:at(1, 6), want))
  end)

  it("h B W = I at z = 0: the slope 1 + h||B||||W|| = 2 (law E3)", function()
    local ir =
      "phrun-ir 1\ndtype f64\ninput 1 3\nsegment depth 1\nparam W 3 3 zeros\nparam B 3 3 zeros\nnode 0 state\nnode "
      .. "1 apply p0 n0\nnode 2 tanh n1\nnode 3 apply p1 n2\n" ..
      "node 4 scale by=0.5 n3\nnode 5 add n0 n4\nresult n5\nend\nloss none\n"
    local w = { ["s1.W"] = native.eye(3), ["s1.B"] = native.eye(3) * 2.0 }
    local c = certify.of(ir, w).segments[1].at_weights
    assert(math.abs(c.lip_most - 2) < 1e-11)
    local seg = native.ir_parse(ir).segments[1]
    local z = native.from({ { 1e-7, 0, 0 } }, "f64")
    assert(run(seg, w, z):norm() / z:norm() > 2 - 1e-12)
  end)
end)

describe("a trained net", function()
  it("stays under its certificate: states, gradients", function()
    local ir = experiment(ph_block)
    local plan = assert(native.plan(ir, { batch = 16, threads = 1, probe = true }))
    plan:init(1)
    local x, labels = native.random("normal", 5, "certify_spec.x", { 16, 6 }, 2, "f32"), native.tensor({ 16 }, "i32")
    for i = 1, 16 do labels:put(i % 4, i) end
    local data <close> = native.data(x, labels)
    for round = 1, 4 do
      local c = certify.of(ir, certify.weights_of(plan)).segments[1].at_weights
      local seen = plan:probe(data, nil, { segment = 1, state = true, grad = true })
      for i = 1, 16 do assert(seen.state:at(i, 6) <= (seen.state:at(i, 1) + c.added) * (1 + 1e-5), "float32 states") end
      local first, last = seen.grad:at(1), seen.grad:at(6)
      assert(math.log(first / last) <= c.lip_log + 1e-4 and math.log(first / last) >= c.least_log - 1e-4,
        "round " .. round)
      for _ = 1, 40 do plan:step(data, nil, { kind = "adam", lr = 0.05 }) end
    end
    plan:close()
  end)
end)

describe("budget = { contract = kappa }", function()
  local function text_with(budget, depth)
    return [[
local ph = require "ph"
local block = function(z) return ph.damping { 6, step = 0.25, budget = ]] .. budget .. [[ } * (ph.cayley { 6 } * z) end
return ph.experiment {
  name = "c", task = ph.task.circles { classes = 4, width = 6, split = { train = 16, val = 4, test = 4 } },
  model = function() return { ph.stream { depth = ]] .. depth .. [[, block = block }, ph.affine(4) } end,
  train = ph.adam { batch = 8, epochs = 1, lr = 1e-3 },
}]]
  end

  local function ir_of(budget, depth)
    local e, problems = require("ph.spec").load_text(text_with(budget, depth), "b.lua", {})
    assert(e, problems and problems[1].text)
    return e:ir(e:cells()[1])
  end

  it("bounds the contraction of the whole stream by construction, and can be spent to the last drop", function()
    for _, depth in ipairs { 1, 5, 40 } do
      local ir = ir_of("{ contract = 1e3 }", depth):gsub("dtype f32", "dtype f64")
      local c = certify.of(ir).segments[1]
      assert(math.abs(depth * c.construction.channel[1] + math.log(1e3)) < 1e-9)
      local weights = {
        ["s1.A"] = native.random("normal", 1, "c.A", { depth, 6, 6 }), ["s1.L"] = native.tensor({ depth, 6, 6 }, "f64"),
        ["s2.W"] = native.tensor({ 4, 6 }, "f64"), ["s2.b"] = native.tensor({ 1, 4 }, "f64"),
      }
      for t = 1, depth do
        for i = 1, 6 do weights["s1.L"]:put(7.0, t, i, i) end -- far above the budget in every direction
      end
      local w = certify.of(ir, weights).segments[1].at_weights
      assert(math.abs(w.channel[1] + math.log(1e3)) < 1e-9, "saturated: ln kappa exactly")
    end
  end)

  it("refuses what is not a contraction, naming the key", function()
    for budget, text in pairs {
      ["{ contract = 0.5 }"] = "contract = kappa }", ["{ contrast = 3 }"] = "unknown key 'contrast'",
      ["{}"] = "contract = kappa }",
    } do
      local e, problems = require("ph.spec").load_text(text_with(budget, 2), "b.lua", {})
      assert.is_nil(e)
      assert(problems[1].text:find(text, 1, true), problems[1].text)
      assert.matches("^b.lua:2: damping: 'budget'", problems[1].text)
    end
  end)
end)
