--- From a model (a list of stages) to canonical IR text. The grammar is that of core/ir/ir.h.
--
-- Canonical means: the text depends on what is computed, not on how the spec is written. Nodes are numbered in the order in
-- which the result needs them (arguments first, left to right), equal nodes are one node, unused ones vanish, parameters
-- are numbered and named in the order in which their nodes appear. Stages between streams form one `once` segment.

local canon = require "ph.util.canon"
local kinds = require "ph.schema.kinds"
local op_table = require "ph.schema.op_table"
local schema = require "ph.schema"
local symbol = require "ph.lang.symbol"
local where = require "ph.schema.where"

local emit = {}

-- ---- one segment ----

local Writer = {}
Writer.__index = Writer

local function new_writer()
  return setmetatable({ nodes = {}, params = {}, numbers = {}, known = {}, taken = {} }, Writer)
end

--- A name that is still free in the segment: W, then W2, W3 ...
function Writer:name(base)
  local name, k = base, 1
  while self.taken[name] do
    k = k + 1
    name = base .. k
  end
  self.taken[name] = true
  return name
end

function Writer:param(s)
  self.params[#self.params + 1] = string.format("param %s %d %d %s", self:name(s.base), s.rows, s.cols, s.init:canonical())
  return "p" .. #self.params - 1
end

local function attr_text(s)
  local parts = {}
  for _, name in ipairs(op_table.row(s.op).attrs) do parts[#parts + 1] = string.format(" %s=%s", name, canon.ir_number(s.attrs[name])) end
  return table.concat(parts)
end

--- Writes one node whose arguments are written; an equal node is used again.
function Writer:emit(s, refs)
  local text = s.op .. attr_text(s) .. (#refs > 0 and " " or "") .. table.concat(refs, " ")
  if not self.known[text] then
    self.nodes[#self.nodes + 1] = string.format("node %d %s", #self.nodes, text)
    self.known[text] = "n" .. #self.nodes - 1
  end
  return self.known[text]
end

--- The reference ("n3", "p0") of a symbol; writes what it needs first. An explicit stack: blocks may be long chains.
function Writer:reference(root)
  local stack = { { root, 1 } }
  while #stack > 0 do
    local top = stack[#stack]
    local s, i = top[1], top[2]
    local arg = s.args[i]
    if arg and not self.numbers[arg] and arg.op ~= "param" then
      stack[#stack + 1] = { arg, 1 }
    elseif arg then
      top[2] = i + 1
    else
      local refs = {}
      for k, a in ipairs(s.args) do
        if not self.numbers[a] then self.numbers[a] = self:param(a) end
        refs[k] = self.numbers[a]
      end
      self.numbers[s] = s.op == "param" and self:param(s) or self:emit(s, refs)
      stack[#stack] = nil
    end
  end
  return self.numbers[root]
end

local function segment_text(head, width, result, read)
  local w = new_writer()
  local last = w:reference(result)
  local out = read and w:reference(read)
  local lines = { head }
  if width then lines[2] = "width " .. width end
  table.move(w.params, 1, #w.params, #lines + 1, lines)
  table.move(w.nodes, 1, #w.nodes, #lines + 1, lines)
  lines[#lines + 1] = "result " .. last
  if out then lines[#lines + 1] = "read " .. out end
  lines[#lines + 1] = "end"
  return table.concat(lines, "\n") .. "\n"
end

-- ---- stages ----

--- Raises an error about what f gave; its place is where f is defined.
local function fail_in(f, what, format, ...)
  where.of(f, schema.fail, what, format, ...)
end

--- Checks that f (a block, a read-out or a stage) gave a state.
local function must_be_state(what, f, v)
  if rawequal(v, kinds.broken) then error(kinds.stop, 0) end
  if kinds.tag(v) == "ph.layer" then fail_in(f, what, "gives a layer, not a state: call it, as in ph.linear(d)(z)") end
  if not symbol.is(v) then fail_in(f, what, "must give a state, gives %s", kinds.describe(v)) end
  if v.pos == 0 then fail_in(f, what, "must give a state, gives a %s", symbol.shape_text(v)) end
  return v
end

--- depth: how often the step is repeated, nil for a stage that runs once.
local function trace_of(model, width, depth)
  return { model = model, width = width, depth = depth }
end

local function depth_segment(model, s, shape)
  local trace = trace_of(model, shape.cols, s.depth)
  local z = symbol.leaf(trace, "state", shape.pos, shape.cols)
  local next_state = must_be_state("block", s.block, symbol.record(trace, s.block, z))
  if next_state.cols ~= z.cols or next_state.pos ~= z.pos then
    fail_in(s.block, "block", "turns a %s into a %s; a step keeps the shape", symbol.shape_text(z), symbol.shape_text(next_state))
  end
  return segment_text("segment depth " .. s.depth, nil, next_state), shape
end

local function time_segment(model, s, shape)
  local steps = s.steps or shape.pos
  if steps ~= shape.pos then schema.fail("stream", "steps = %d, but its input has %d positions", steps, shape.pos) end
  local trace = trace_of(model, s.width, steps)
  local x, u = symbol.leaf(trace, "state", 1, s.width), symbol.leaf(trace, "input", 1, shape.cols)
  local next_state = must_be_state("block", s.block, symbol.record(trace, s.block, x, u))
  if next_state.cols ~= s.width then
    fail_in(s.block, "block", "gives a %s, the state has width %d", symbol.shape_text(next_state), s.width)
  end
  local read = s.read and must_be_state("read", s.read, symbol.record(trace, s.read, next_state))
  local out = read and { pos = steps, cols = read.cols } or { pos = 1, cols = s.width }
  return segment_text("segment time " .. steps, s.width, next_state, read), out
end

--- A run of stages that are no streams: one `once` segment, or nothing if they leave the value as it is.
local function once_segment(model, stages, first, last, shape)
  local trace = trace_of(model, shape.cols)
  local start = symbol.leaf(trace, "state", shape.pos, shape.cols)
  local z = start
  for i = first, last do
    z = must_be_state("stage", stages[i], symbol.record(trace, stages[i], z))
    trace.width = z.cols
  end
  if rawequal(z, start) then return "", shape end
  return segment_text("segment once 1", nil, z), { pos = z.pos, cols = z.cols }
end

local function check_stages(stages)
  if rawequal(stages, kinds.broken) then error(kinds.stop, 0) end
  if type(stages) ~= "table" or kinds.tag(stages) then schema.fail("model", "must give a list of stages, gives %s", kinds.describe(stages)) end
  local n, problem = kinds.list_length(stages)
  if not n then schema.fail("model", "the list of stages %s", problem) end
  for i = 1, n do
    if rawequal(stages[i], kinds.broken) then error(kinds.stop, 0) end
    if not kinds.callable(stages[i]) and kinds.tag(stages[i]) ~= "ph.stream" then
      schema.fail("model", "stage %d must be a layer, a function or a stream, got %s", i, kinds.describe(stages[i]))
    end
  end
  return n
end

--- Segments of a list of stages as text; also the shape that leaves the last one.
local function segments(stages, shape)
  local n, model, parts, i = check_stages(stages), {}, {}, 1
  while i <= n do
    if kinds.tag(stages[i]) == "ph.stream" then
      local segment = stages[i].depth and depth_segment or time_segment
      parts[#parts + 1], shape = segment(model, stages[i], shape)
      i = i + 1
    else
      local last = i
      while last < n and kinds.callable(stages[last + 1]) do last = last + 1 end
      parts[#parts + 1], shape = once_segment(model, stages, i, last, shape)
      i = last + 1
    end
  end
  return table.concat(parts), shape
end

--- Canonical IR text of a model.
-- stages: list of layers, functions and streams; input = { positions =, features = }; options = { dtype = "f32", loss =, classes = }
function emit.model(stages, input, options)
  local loss = options.loss or "none"
  local text, out = segments(stages, { pos = input.positions, cols = input.features })
  if text == "" then schema.fail("model", "has no stage that computes anything") end
  if options.classes and (out.cols ~= options.classes or out.pos ~= 1) then
    schema.fail("model", "gives a %s, the task has %d classes: the last stage must give a state of width %d", symbol.shape_text(out), options.classes, options.classes)
  end
  return string.format("phrun-ir 1\ndtype %s\ninput %d %d\n%sloss %s\n", options.dtype or "f32", input.positions, input.features, text, loss)
end

return emit
