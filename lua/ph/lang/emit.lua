--- From a model (a list of stages) to canonical IR text. The grammar is that of core/ir/ir.h.
--
-- Canonical means: the text depends on what is computed, not on how the spec is written. Nodes are numbered in the
-- order in which the result needs them (arguments first, left to right), equal nodes are one node, unused ones vanish,
-- parameters are numbered and named in the order in which their nodes appear. Stages between streams form one segment.

local canon = require "ph.util.canon"
local iteration = require "ph.lang.iteration"
local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local op_table = require "ph.schema.op_table"
local schema = require "ph.schema"
local symbol = require "ph.lang.symbol"
local where = require "ph.schema.where"

local emit = {}

-- ---- one segment ----

local Writer = {}
Writer.__index = Writer

local function new_writer()
  return setmetatable({ nodes = {}, params = {}, tables = {}, numbers = {}, known = {}, taken = {} }, Writer)
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
  self.params[#self.params + 1] = string.format("param %s %d %d %s", self:name(s.base), s.rows, s.cols,
    s.init:canonical())
  return "p" .. #self.params - 1
end

--- The reference ("@t") of a table of numbers; equal tables are one.
function Writer:table(v)
  local text = iteration.text(v)
  if not self.known[text] then
    local name = self:name "t"
    self.tables[#self.tables + 1] = string.format("table %s %s", name, text)
    self.known[text] = "@" .. name
  end
  return self.known[text]
end

function Writer:attribute(v)
  local number = iteration.is(v) and iteration.constant(v) or v
  return iteration.is(number) and self:table(number) or canon.ir_number(number)
end

function Writer:attributes(s)
  local parts = {}
  for _, name in ipairs(op_table.row(s.op).attrs) do
    parts[#parts + 1] = string.format(" %s=%s", name, self:attribute(s.attrs[name]))
  end
  return table.concat(parts)
end

--- Writes one node whose arguments are written; an equal node is used again.
function Writer:emit(s, refs)
  local text = s.op .. self:attributes(s) .. (#refs > 0 and " " or "") .. table.concat(refs, " ")
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

--- Lines of the terms, then of the observations.
local function mark_lines(w, marks)
  local terms, observations = {}, {}
  for _, m in ipairs(marks) do
    local node = w:reference(m.value)
    if m.name then
      observations[#observations + 1] = string.format("observe %s %s", m.name, node)
    else
      terms[#terms + 1] = string.format("term %s %s", canon.ir_number(m.weight), node)
    end
  end
  return table.move(observations, 1, #observations, #terms + 1, terms)
end

--- Text of a segment. head: what follows `segment`; result and read (or nil): symbols; marks: of its trace.
local function segment_text(head, result, read, marks)
  local w = new_writer()
  local last = w:reference(result)
  local out = read and w:reference(read)
  local marked = mark_lines(w, marks or {})
  local lines = { "segment " .. head }
  for _, list in ipairs { w.params, w.tables, w.nodes } do table.move(list, 1, #list, #lines + 1, lines) end
  lines[#lines + 1] = "result " .. last
  if out then lines[#lines + 1] = "read " .. out end
  table.move(marked, 1, #marked, #lines + 1, lines)
  lines[#lines + 1] = "end"
  return table.concat(lines, "\n") .. "\n"
end

-- ---- shapes: { pos, wide, cols } of one sample ----

--- "1 32", "28 28 3": as the IR has it.
local function shape_words(s)
  if s.wide == 1 then return string.format("%d %d", s.pos, s.cols) end
  return string.format("%d %d %d", s.pos // s.wide, s.wide, s.cols)
end

local function same_shape(a, b) return a.pos == b.pos and a.wide == b.wide and a.cols == b.cols end

--- What a driven stream takes at an iteration: a position of one axis, a line of two.
local function place_of(s) return { pos = s.wide, wide = 1, cols = s.cols } end

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

--- iterations: how often the block is repeated, nil for a stage that runs once.
local function trace_of(model, width, iterations)
  return { model = model, width = width, depth = iterations }
end

--- Number of iterations of a stream that `shape` enters.
local function iterations_of(s, shape)
  if not s.driven then return s.iterations end
  local places, first = shape.pos // shape.wide, s.from == "input" and 1 or 0
  local n = s.iterations or places - first
  if n + first ~= places or n < 1 then
    schema.fail("stream", "%s = %d, but its input has %d positions%s", s.steps and "steps" or "depth", n, places,
      first == 1 and ": the first is where the state starts, each iteration takes one more" or "")
  end
  return n
end

local function state_shape(s, shape)
  if s.from == "zero" then return { pos = 1, wide = 1, cols = s.width } end
  return s.driven and place_of(shape) or shape
end

--- "s2 repeat 30 tied driven from zero 1 64"
local function stream_head(s, name, iterations, state)
  return string.format("%s repeat %d%s%s%s", name, iterations, s.tied and " tied" or "", s.driven and " driven" or "",
    s.from == "zero" and " from zero " .. shape_words(state) or "")
end

--- What goes on: the last state, or the read-outs of all iterations, those of the first before those of the second.
local function read_shape(read, iterations)
  if read.wide > 1 then schema.fail("stream", "what is read has positions on two axes: %s", symbol.shape_text(read)) end
  return { pos = iterations * read.pos, wide = read.pos, cols = read.cols }
end

local function stream_segment(model, s, shape, name)
  local iterations, state = iterations_of(s, shape), state_shape(s, shape)
  local trace = trace_of(model, state.cols, iterations)
  local x = symbol.leaf(trace, "state", state)
  local t = s.iterations and iteration.count(iterations) or iteration.unknown
  local next_state
  if s.driven then
    next_state = symbol.record(trace, s.block, x, symbol.leaf(trace, "input", place_of(shape)), t)
  else
    next_state = symbol.record(trace, s.block, x, t)
  end
  must_be_state("block", s.block, next_state)
  if not same_shape(x, next_state) then
    fail_in(s.block, "block", "turns a %s into a %s; a step keeps the shape", symbol.shape_text(x),
      symbol.shape_text(next_state))
  end
  local read = s.read and must_be_state("read", s.read, symbol.record(trace, s.read, next_state))
  local text = segment_text(stream_head(s, s.name or name, iterations, state), next_state, read, trace.marks)
  return text, read and read_shape(read, iterations) or state
end

--- A sequence of stages without a stream: one segment, or nothing if they leave the value as it is.
local function stage_segment(model, stages, first, last, shape, name)
  local trace = trace_of(model, shape.cols)
  local start = symbol.leaf(trace, "state", shape)
  local z = start
  for i = first, last do
    z = must_be_state("stage", stages[i], symbol.record(trace, stages[i], z))
    trace.width = z.cols
  end
  if rawequal(z, start) and not trace.marks then return nil, shape end
  return segment_text(name, z, nil, trace.marks), { pos = z.pos, wide = z.wide, cols = z.cols }
end

local function check_stages(stages)
  if rawequal(stages, kinds.broken) then error(kinds.stop, 0) end
  if type(stages) ~= "table" or kinds.tag(stages) then
    schema.fail("model", "must give a list of stages, gives %s", kinds.describe(stages))
  end
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
    local name, last = "s" .. #parts + 1, i
    if kinds.tag(stages[i]) == "ph.stream" then
      parts[#parts + 1], shape = stream_segment(model, stages[i], shape, name)
    else
      while last < n and kinds.callable(stages[last + 1]) do last = last + 1 end
      parts[#parts + 1], shape = stage_segment(model, stages, i, last, shape, name)
    end
    i = last + 1
  end
  return table.concat(parts), shape
end

--- The last stage must give what the task wants.
local function check_output(out, options)
  local width = options.classes or options.outputs
  if width and (out.cols ~= width or out.pos ~= 1) then
    schema.fail("model", "gives a %s, the task has %s: the last stage must give a state of width %d%s",
      symbol.shape_text(out), options.classes and width .. " classes" or "targets of width " .. width, width,
      out.pos ~= 1 and " at one position (a stream without read gives its last state)" or "")
  end
end

--- Canonical IR text of a model: of version 1 where that can say it, which the host decides.
-- stages: list of layers, functions and streams; input = { positions =, features =, wide = positions of a line (1) };
-- options = { dtype = "f32", loss = a ph.loss or nil, classes = or outputs = what the task wants }
function emit.model(stages, input, options)
  local shape = { pos = input.positions, wide = input.wide or 1, cols = input.features }
  local text, out = segments(stages, shape)
  if text == "" then schema.fail("model", "has no stage that computes anything") end
  check_output(out, options)
  local head = string.format("phrun-ir 2\ndtype %s\ninput %s\n", options.dtype or "f32", shape_words(shape))
  local tail = options.loss and options.loss:text() or "loss none\n"
  local canonical, problem = native.ir_canonical(head .. text .. tail)
  if not canonical then schema.fail("model", "%s", (problem:gsub("^line %d+: ", ""))) end
  return canonical
end

return emit
