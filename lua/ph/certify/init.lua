--- Certificates: bounds of a model read off its IR before anything runs, and again at given weights (docs/laws.md, 13).
--
-- Abstract interpretation: each op's gain rule carries bounds from the state to the result of a layer, split into the
-- state channel (exactly linear) and the ports (the rest). Every bound is marked
--   by construction    it holds at any weights
--   at these weights   a true upper bound for these numbers, from exact norms (singular values), in exact arithmetic
--   measured           seen on samples; says nothing about others
--
--   certify.of(ir_text)            -> certificate by construction
--   certify.of(ir_text, weights)   -> also at these weights: weights["s2.A"] = tensor
--   certify.report(certificate)    -> list of lines

local native = require "ph.native"
local lines = require "ph.certify.lines"
local times = require("ph.certify.matrix").times
local segment = require "ph.certify.segment"

local certify = { report = lines.of }

--- Tensors of layer t (1-based) of a segment, as f64 matrices.
local function layer_weights(seg, weights, t)
  local out = {}
  for i, p in ipairs(seg.params) do
    local name = seg.name .. "." .. p.name
    local w = weights[name] or error(string.format("certify: there is no parameter '%s'", name), 0)
    if #w:shape() == 3 then w = w:index(1, t) end
    out[i] = w:cast("f64"):reshape { p.rows, p.cols }
  end
  return out
end

local function log(x) return x > 0 and math.log(x) or -math.huge end

--- Facts of all layers at weights put together over the repeats of the segment. After the last one the norm is at most
-- e^factor_log start + added + held max||u||; `input` is the most that one step takes of ||u||.
local function compose(layers, facts_first)
  local c = {
    gain = 0.0, gain_log = 0.0, port = 0.0, factor_log = 0.0, added = 0.0, lip_log = 0.0, lip_most = 0.0,
    least_log = 0.0, channel = { 0.0, 0.0 }, low = 0.0, high = 0.0, meter = 0.0, held = 0.0, input = 0.0,
  }
  for _, f in ipairs(layers) do
    local grow = f.gain + f.port.z
    c.gain, c.gain_log = math.max(c.gain, f.gain), c.gain_log + log(f.gain)
    c.port, c.factor_log = c.port + f.port.one, c.factor_log + log(grow)
    c.added, c.held = times(c.added, grow) + f.port.one, times(c.held, grow) + f.port.u
    c.input = math.max(c.input, f.port.u)
    c.lip_log, c.lip_most = c.lip_log + log(f.gain + f.lip), math.max(c.lip_most, f.gain + f.lip)
    c.least_log = c.least_log + log(f.least - f.lip)
    c.channel = { c.channel[1] + f.channel[1], c.channel[2] + f.channel[2] }
    c.low, c.high, c.meter = c.low + f.low, c.high + f.high, c.meter and f.meter and c.meter + f.meter
  end
  c.additive = facts_first.port.z == 0 and facts_first.gain <= 1
  return c
end

--- What a segment is by construction: `additive` (a ceiling ||z_0|| + what the ports
-- add), and the bounds that need no weights.
local function by_construction(seg)
  local f
  for t = 1, segment.varies(seg) and seg.repeat_ or 1 do f = segment.either(f, segment.facts(seg, nil, t)) end
  return {
    gain = f.gain, least = f.least, port = f.port, lip = f.lip, reads = f.reads, channel = f.channel,
    additive = f.gain <= 1 and f.port.z == 0, facts = f,
  }
end

local function at_weights(seg, weights)
  local layers, alike = {}, seg.tied and not segment.varies(seg)
  for t = 1, seg.repeat_ do
    layers[t] = alike and layers[1] or segment.facts(seg, layer_weights(seg, weights, seg.tied and 1 or t), t)
  end
  local c = compose(layers, by_construction(seg).facts)
  c.layers = layers
  return c
end

--- More work (segment.work) than this is not done for a certificate; it is half a minute to a minute of LAPACK.
certify.most_work = 1e10

local function work_of(model)
  local sum = 0.0
  for _, seg in ipairs(model.segments) do sum = sum + segment.work(seg) end
  return sum
end

--- The certificate of a model (plan:model(), native.ir_parse).
local function of_model(model, weights)
  local out = { segments = {} }
  if weights and work_of(model) > certify.most_work then
    weights, out.work = nil, work_of(model)
  end
  out.weights = weights ~= nil
  for i, seg in ipairs(model.segments) do
    local s = {
      index = i, once = seg.once, driven = seg.driven, read = seg.read ~= nil, terms = #seg.terms > 0,
      depth = seg.repeat_, width = seg.nodes[seg.result].shape.cols, enters = seg.enters.cols,
      uncovered = segment.uncovered(seg), construction = by_construction(seg),
    }
    if weights then s.at_weights = at_weights(seg, weights) end
    out.segments[i] = s
  end
  return out
end

--- The certificate of a model's text.
function certify.of(ir_text, weights)
  local model, problem = native.ir_parse(ir_text)
  if not model then error(problem, 0) end
  return of_model(model, weights)
end

--- The weights of a plan by name.
function certify.weights_of(plan)
  local out = {}
  for _, p in ipairs((plan:params())) do out[p.name] = plan:get(p.name, "value") end
  return out
end

--- The certificate of a model at the weights that a seed draws.
function certify.at_start(ir_text, seed)
  local plan <close>, problem = native.plan(ir_text, { batch = 1, threads = 1 })
  if not plan then error(problem, 0) end
  plan:init(seed)
  return of_model(plan:model(), certify.weights_of(plan))
end

--- The certificate of a finished run, from its file, at the weights it kept (best, else final).
function certify.of_run(run)
  local file, weights = run.file, {}
  local group = file:kind "/best" == "group" and "best" or "final"
  for _, item in ipairs(file:list("/" .. group)) do
    if item.kind == "tensor" then weights[item.path:match "[^/]+$"] = file:tensor(item.path) end
  end
  return certify.of(file:text "/ir", weights), group
end

return certify
