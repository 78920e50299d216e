--- What is measured on a finished net, declared in `measure`. The measuring is done by ph.measure.

local schema = require "ph.schema"

local observe = {}

local Measure = { __name = "ph.measure" }
Measure.__index = Measure
Measure.__tostring = function(self) return self.name end

function Measure:canonical() return self.name end

local function constructor(name, doc)
  return schema.constructor({ name = name, role = "measure", section = "measures", doc = doc, keys = {} }, function()
    return setmetatable({ name = name }, Measure)
  end)
end

observe.growth = constructor("growth", "Median over the samples of |z_L| / |z_0|, and the profile over the layers.")
observe.gradient_envelope = constructor("gradient_envelope", "g_t = |dLoss/dz_t| over the layers and its ratios to g_L: first, largest, smallest.")
observe.port_budget = constructor("port_budget", "|z_t| against |z_0| + sum of port norms: violations and the largest quotient.")

return observe
