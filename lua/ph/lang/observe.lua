--- What is measured on a finished net, declared in `measure`. The measuring is done by ph.run.measure.
--
-- A measure whose numbers come to mean something else gets the next `version`. Version 1 is written nowhere; a higher one
-- is part of the measure's text ("growth@2"), and so of records, plans and run hashes.

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

local function constructor(name, version, doc)
  local block = { name = name, role = "measure", section = "measures", version = version, doc = doc, keys = {} }
  return schema.constructor(block, function(v) return setmetatable({ name = name, values = v }, Measure) end)
end

observe.growth = constructor("growth", 1, "Median over the samples of |z_L| / |z_0|, and the profile over the layers.")
observe.gradient_envelope = constructor("gradient_envelope", 1,
  "g_t = |dLoss/dz_t| over the layers and its ratios to g_L: first, largest, smallest.")
observe.port_budget = constructor("port_budget", 1,
  "|z_t| against |z_0| + sum of port norms: violations and the largest quotient.")

return observe
