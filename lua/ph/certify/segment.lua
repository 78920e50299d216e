--- One segment of a model, once: the abstract value of its result for given weights of one layer, or without weights.

local matrix = require "ph.certify.matrix"
local op_table = require "ph.schema.op_table"
local value = require "ph.certify.value"

local segment = {}

--- Does an attribute of some node differ from iteration to iteration?
function segment.varies(seg)
  for _, node in ipairs(seg.nodes) do
    for _, v in pairs(node.attrs) do
      if type(v) == "table" then return true end
    end
  end
  return false
end

--- Attributes in iteration t, counted from 1.
local function attrs_at(attrs, t)
  local out = {}
  for name, v in pairs(attrs) do out[name] = type(v) == "table" and v[t] or v end
  return out
end

--- What the nodes of a segment are in iteration t (default 1). weights: list of f64 tensors, one a parameter, or nil.
-- Returns the value of the result.
function segment.evaluate(seg, weights, t)
  local params, nodes = {}, {}
  for i, p in ipairs(seg.params) do params[i] = matrix.parameter(p.rows, p.cols, weights and weights[i]) end
  for i, node in ipairs(seg.nodes) do
    local row, attrs, args = op_table.row(node.op), attrs_at(node.attrs, t or 1), {}
    for k, arg in ipairs(node.args) do args[k] = (arg.kind == "param" and params or nodes)[arg.index] end
    if node.shape.pos == 0 then
      nodes[i] = matrix.node(row, args, attrs, node.shape)
    else
      nodes[i] = value.node(row, args, attrs, node.shape, weights ~= nil)
    end
  end
  return nodes[seg.result], seg.read and nodes[seg.read]
end

--- Operations that singular values of its matrices take at weights, over all layers that differ: d^3 each, about.
function segment.work(seg)
  local sum = 0.0
  local function add(rows, cols) sum = sum + rows * cols * math.min(rows, cols) end
  for _, p in ipairs(seg.params) do add(p.rows, p.cols) end
  for _, node in ipairs(seg.nodes) do
    if node.shape.pos == 0 then add(node.shape.rows, node.shape.cols) end
  end
  return sum * (seg.tied and not segment.varies(seg) and 1 or seg.repeat_)
end

--- Ops of the segment that no rule covers.
function segment.uncovered(seg)
  local out, seen = {}, {}
  for _, node in ipairs(seg.nodes) do
    local row = op_table.row(node.op)
    if node.shape.pos > 0 and not value.has_rule(row) and not seen[node.op] then
      out[#out + 1], seen[node.op] = node.op, true
    end
  end
  return out
end

--- Facts of layer t: { gain, least, port = { z, u, one }, lip, lip_u, low, high (ln|det| of the layer's Jacobian),
-- exact (it does not depend on the state), channel (ln|det lin| as a bracket), meter (its first-order figure,
-- nil when it has none) }.
function segment.facts(seg, weights, t)
  local v = segment.evaluate(seg, weights, t)
  local lin = v.lin
  if lin and lin:norm() == 0 then lin = nil end
  local facts = {
    gain = lin and lin:norm() or 0.0, least = lin and lin:least() or 0.0, port = v.flat, lip = v.lip, lip_u = v.lip_u,
    reads = v.reads, meter = lin and lin.meter, entry = v.entry, steep = v.steep,
  }
  facts.channel = lin and lin.rows == lin.cols and lin:log_volume() or { -math.huge, lin and math.huge or -math.huge }
  facts.low, facts.high = segment.jacobian_volume(lin, facts, v.width)
  return facts
end

--- What holds of two layers that have the facts a and b (a may be nil).
function segment.either(a, b)
  if not a then return b end
  local out = { reads = a.reads or b.reads, least = math.min(a.least, b.least), port = {}, channel = {} }
  for _, k in ipairs { "gain", "lip" } do out[k] = math.max(a[k], b[k]) end
  for _, k in ipairs { "z", "u", "one" } do out.port[k] = math.max(a.port[k], b.port[k]) end
  out.channel[1], out.channel[2] = math.min(a.channel[1], b.channel[1]), math.max(a.channel[2], b.channel[2])
  return out
end

--- ln|det(lin + E)| of a square layer for any E with ||E|| <= lip, by Weyl: every singular value moves by at most lip.
function segment.jacobian_volume(lin, facts, width)
  if facts.lip == 0 and lin then return facts.channel[1], facts.channel[2] end
  local s = lin and lin:singular()
  if not s or facts.lip == math.huge then
    local top = facts.gain + facts.lip
    return -math.huge, top < math.huge and width * math.log(top) or math.huge
  end
  local low, high = 0.0, 0.0
  for _, x in ipairs(s) do
    low, high = low + (x > facts.lip and math.log(x - facts.lip) or -math.huge), high + math.log(x + facts.lip)
  end
  return low, high
end

return segment
