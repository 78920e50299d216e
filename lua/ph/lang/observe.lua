--- What is measured on a finished net, declared in `measure`. The measuring is done by ph.run.measure.
--
-- A measure whose numbers come to mean something else gets the next `version`. Version 1 is written nowhere; a higher
-- one is part of the measure's text ("growth@2"), and so of records, plans and run hashes.

local canon = require "ph.util.canon"
local meaning = require "ph.schema.meaning"
local schema = require "ph.schema"

local observe = {}

local Measure = { __name = "ph.measure" }
Measure.__index = Measure
Measure.__tostring = function(self) return self:canonical() end

function Measure:canonical()
  local values, version = meaning.of(self.name, self.values), schema.get(self.name).version
  local name = version > 1 and string.format("%s@%d", self.name, version) or self.name
  return next(values) and canon.call(name, values) or name
end

-- block: name, version, doc, metrics = { { name, meaning } }, profiles = { { name, meaning, formerly = older name } };
-- channel = true when only a stream with a state channel has it.
local function constructor(block)
  block.role, block.section, block.keys = "measure", "measures", block.keys or {}
  return schema.constructor(block, function(v) return setmetatable({ name = block.name, values = v }, Measure) end)
end

observe.growth = constructor {
  name = "growth", version = 1, doc = "How the norm of the state grows through the stream.",
  metrics = { { "growth", "median over the samples of |z_L| / |z_0|" } },
  profiles = { { "growth", "median over the samples of |z_t| / |z_0|" } },
}

observe.gradient_envelope = constructor {
  name = "gradient_envelope", version = 1,
  doc = "g_t = |dLoss/dz_t| over the layers, and its ratios to g_L, the gradient at the end of the stream.",
  metrics = {
    { "grad.first", "g_0 / g_L" }, { "grad.max", "largest g_t / g_L, t = L included" },
    { "grad.min", "smallest g_t / g_L, t = L included" },
  },
  profiles = {
    { "grad.norm", "g_t", formerly = "gradient" }, { "grad.ratio", "g_t / g_L", formerly = "gradient_ratio" },
  },
}

observe.port_budget = constructor {
  name = "port_budget", version = 1, channel = true,
  doc = "|z_t| against its ceiling |z_0| + sum of the port norms before t.",
  metrics = {
    { "port.violations", "states above their ceiling by more than 1e-5 of it" },
    { "port.ratio", "largest |z_t| over its ceiling" },
  },
}

observe.observed = constructor {
  name = "observed", version = 1, anywhere = true,
  doc = "What blocks name by ph.observe(name, x), at each iteration.",
  metrics = {}, profiles = { { "observe.NAME", "mean over the samples of what is observed under NAME" } },
}

--- Of the segments of a parsed model: index of the stream whose figures stand for the net (the longest, the first of
-- equals) and indices of all streams that start from what enters.
function observe.streams(segments)
  local all, main = {}, nil
  for i, s in ipairs(segments) do
    if not s.once and s.from == "input" then
      all[#all + 1] = i
      if not main or s.repeat_ > segments[main].repeat_ then main = i end
    end
  end
  return main, all
end

--- Whether a stream that starts from what enters has the measure of this name.
function observe.has(name, stream) return stream.channel or not schema.get(name).channel end

--- Whether a measure looks at every segment, and not only at streams that start from what enters.
function observe.anywhere(name) return schema.get(name).anywhere == true end

--- Why a model (its parsed segments) has no value of a measure; nil when it has one.
function observe.missing(name, segments)
  if observe.anywhere(name) then
    for _, s in ipairs(segments) do
      if #s.observes > 0 then return nil end
    end
    return "its model observes nothing"
  end
  local main, any = observe.streams(segments), false
  for _, s in ipairs(segments) do any = any or not s.once end
  if not any then return "its model has no stream" end
  if not main then return "every stream of its model starts from zero" end
  if not observe.has(name, segments[main]) then
    return "its stream has no state channel: all of the state goes through nonlinear ops"
  end
end

--- The name that a profile of a run file has today: files of earlier programs have some older ones.
function observe.profile_name(name)
  for _, block in ipairs(schema.all()) do
    for _, profile in ipairs(block.profiles or {}) do
      if profile.formerly == name then return profile[1] end
    end
  end
  return name
end

return observe
