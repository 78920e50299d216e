--- Streams: one step, repeated over depth (own parameters per layer) or over time (one set, an input per step).

local schema = require "ph.schema"

local stream = {}

local Stream = { __name = "ph.stream" }
Stream.__index = Stream
Stream.__tostring = function(self) return self.depth and string.format("stream of depth %d", self.depth) or string.format("stream over time, width %d", self.width) end

local max_repeat <const> = 1000000

local block = {
  name = "stream", section = "streams",
  doc = "x_{t+1} = block(x_t) for `depth` layers, or x_{t+1} = block(x_t, u_t) over the positions of its input, starting from 0.",
  example = "ph.stream { depth = 30, block = function(z) return z + ph.linear(d)(ph.tanh(ph.affine(d)(z))) end }",
  keys = {
    { "depth", kind = "integer", min = 1, max = max_repeat, doc = "number of layers, each with its own parameters" },
    { "steps", kind = "integer", min = 1, max = max_repeat, doc = "over time: number of steps; default: the positions of the input" },
    { "width", kind = "integer", min = 1, max = 65536, doc = "over time: width of the state" },
    { "block", kind = "callable", required = true, doc = "function(z) or, over time, function(x, u): the next state" },
    { "read", kind = "callable", doc = "over time: function(x), the output of each step; without it the last state goes on" },
  },
}

--- What is wrong with the keys taken together, or nil.
local function conflict(v)
  if v.depth and (v.steps or v.width or v.read) then
    return string.format("'depth' (over depth) and '%s' (over time) exclude each other", v.steps and "steps" or v.width and "width" or "read")
  end
  if not v.depth and not v.width then return "needs depth = L (over depth) or width = d (over time)" end
end

schema.define(block)

function stream.stream(args)
  local v = schema.check("stream", args)
  if not v then return schema.broken end
  local problem = conflict(v)
  if problem then schema.fail("stream", "%s", problem) end
  return setmetatable(v, Stream)
end

return stream
