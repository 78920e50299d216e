--- The state channel of a trained net as a stream for the laws: from a run file alone.

local native = require "ph.native"
local runfile = require "ph.run.runfile"
local segment = require "ph.certify.segment"
local stream = require "ph.laws.stream"

local trained = {}

local function weights_of(file, group, seg, t)
  local out = {}
  for i, p in ipairs(seg.params) do
    local w = file:tensor(string.format("/%s/%s.%s", group, seg.name, p.name))
    if #w:shape() == 3 then w = w:index(1, t) end
    out[i] = w:cast("f64"):reshape { p.rows, p.cols }
  end
  return out
end

--- The wanted segment, or the first that is a stream.
local function choose(model, index)
  for i, seg in ipairs(model.segments) do
    if index == i or (not index and not seg.once) then return seg end
  end
  error(
    index and string.format("trained_stream: there is no segment %d", index)
      or "trained_stream: the model has no stream", 0)
end

local function fill(all, t, M, d)
  for i, row in ipairs(M:totable()) do
    for k = 1, d do all:put(row[k], t, i, k) end
  end
end

--- trained_stream(path, segment): the matrices M_t of a run's stream (default: its first) at the weights it kept; one
-- matrix when they are tied. What passes through nonlinear ops is port and not in it.
function trained.stream(path, index)
  local run, problem = runfile.open(path)
  if not run then error(problem, 0) end
  local file <close> = run.file
  local model = assert(native.ir_parse(file:text "/ir"))
  local seg = choose(model, index)
  local group = file:kind "/best" == "group" and "best" or "final"
  local d, repeats = seg.nodes[seg.result].shape.cols, seg.tied and 1 or seg.repeat_
  local all = native.tensor({ repeats, d, d }, "f64")
  for t = 1, repeats do
    local lin = segment.evaluate(seg, weights_of(file, group, seg, t), t).lin
    if not lin then
      error("trained_stream: this stream has no state channel; its state passes through nonlinear ops only", 0)
    end
    fill(all, t, lin.tensor, d)
  end
  return stream.of_matrices(all)
end

return trained
