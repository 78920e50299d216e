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

-- block: name, version, doc, metrics = { { name, meaning } } and profiles = { {
-- name, meaning, formerly = older name } }.
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
    { "grad.first", "g_0 / g_L" }, { "grad.max", "largest g_t / g_L" }, { "grad.min", "smallest g_t / g_L" },
  },
  profiles = {
    { "grad.norm", "g_t", formerly = "gradient" }, { "grad.ratio", "g_t / g_L", formerly = "gradient_ratio" },
  },
}

observe.port_budget = constructor {
  name = "port_budget", version = 1, doc = "|z_t| against its ceiling |z_0| + sum of the port norms before t.",
  metrics = {
    { "port.violations", "states above their ceiling by more than 1e-5 of it" },
    { "port.ratio", "largest |z_t| over its ceiling" },
  },
}

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
