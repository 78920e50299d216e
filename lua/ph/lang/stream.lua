--- Streams: a block, iterated. Its properties are independent: parameters tied (one set for all iterations) or own, an
-- input at each iteration or none, a start from zero or from what enters, the last
-- state or a read-out of each iteration.
--
-- With `depth` a stream is own, undriven and starts from what enters; without it tied, driven and from zero, over the
-- positions of its input. Every property may be said otherwise.

local native = require "ph.native"
local schema = require "ph.schema"

local stream = {}

local Stream = { __name = "ph.stream" }
Stream.__index = Stream
Stream.__tostring = function(self)
  return string.format("stream of %s iterations", self.iterations or "as many as its input has positions")
end

local max_repeat <const> = native.ir_limits().repeat_

local block = {
  name = "stream", section = "streams",
  doc = "x_{t+1} = block(x_t) or, driven, x_{t+1} = block(x_t, u_t), for t = 0 .. depth - 1.",
  example = "ph.stream { depth = 30, block = function(z) return z + ph.linear(d)(ph.tanh(ph.affine(d)(z))) end }",
  keys = {
    { "depth", kind = "integer", min = 1, max = max_repeat,
      doc = "number of iterations; default: one for each position of the input" },
    { "steps", kind = "integer", min = 1, max = max_repeat,
      doc = "the same, for a stream that is tied and driven unless said otherwise" },
    { "width", kind = "integer", min = 1, max = 65536, doc = "width of a state that starts from zero" },
    { "block", kind = "callable", required = true,
      doc = "function(z, t) or, driven, function(x, u, t): the next state; t counts the iterations from 0" },
    { "read", kind = "callable",
      doc = "function(x): what goes on of each iteration, one position each; without it the last state is the output" },
    { "tied", kind = "boolean", since = 2,
      doc = "one set of parameters for all iterations; default: false with depth, true without" },
    { "driven", kind = "boolean", since = 2,
      doc = "iteration t takes position t of what enters (of two axes: line t) as its input u; "
        .. "default: false with depth, true without" },
    { "from", kind = "choice", allowed = { "zero", "input" }, since = 2,
      doc = "where the state starts: at zero, or as what enters; driven, as its position 0, and the inputs are the "
        .. "positions after it. Default: zero when driven, else input" },
    { "name", kind = "string", pattern = "^%a[%w_]*$", pattern_text = "a name (letters, digits, _)", since = 2,
      doc = "streams of one name share the parameters that have the same name in both" },
  },
}

--- v with the defaults that depend on other keys.
local function complete(v)
  local over_data = not v.depth
  if v.tied == nil then v.tied = over_data end
  if v.driven == nil then v.driven = over_data end
  v.from = v.from or v.driven and "zero" or "input"
  v.iterations = v.depth or v.steps
  return v
end

--- What is wrong with the keys taken together, or nil.
local function conflict(v)
  if v.depth and v.steps then return "'depth' and 'steps' are both the number of iterations: give one of them" end
  if v.from == "zero" and not v.width then
    return v.depth and "needs width = d: nothing gives the width of a state that starts from zero"
      or "needs depth = L, or width = d for a state that starts from zero"
  end
  if v.from == "input" and v.width then
    return "'width' is for a state that starts from zero (from = 'zero'); this one starts as what enters"
  end
  if not v.driven and not v.iterations then
    return "needs depth = L: only a driven stream has as many iterations as its input has positions"
  end
  if v.name and (#v.name > 31 or v.name:find "^s%d+$") then
    return "'name' must be shorter than 32 letters and none of s1, s2, ..., which streams without a name have"
  end
end

schema.define(block)

function stream.stream(args)
  local v = schema.check("stream", args)
  if not v then return schema.broken end
  local problem = conflict(complete(v))
  if problem then schema.fail("stream", "%s", problem) end
  return setmetatable(v, Stream)
end

return stream
