--- How parameters start: the inits of the language. A parameter's numbers depend on (seed, name, index) alone.

local canon = require "ph.util.canon"
local kinds = require "ph.schema.kinds"
local schema = require "ph.schema"

local param = {}

local Init = { __name = "ph.init" }
Init.__index = Init

--- The words of the IR: "normal 0.1", "zeros".
function Init:canonical()
  return self.value and self.kind .. " " .. canon.ir_number(self.value) or self.kind
end

Init.__tostring = Init.canonical

local function new(kind, value)
  return setmetatable({ kind = kind, value = value }, Init)
end

local zero_or_one <const> = { zeros = true, ones = true }

--- An init: an object, or the words "zeros" and "ones".
function kinds.init(v)
  if kinds.tag(v) == "ph.init" then return v end
  if zero_or_one[v] then return new(v) end
  return nil,
    "must be an init (ph.normal(s), ph.uniform(w), ph.constant(c), 'zeros', 'ones'), got " .. kinds.describe(v)
end

local function constructor(kind, key, doc)
  return schema.constructor({
    name = kind, section = "inits", doc = doc, positional = { key.name }, keys = { key },
  }, function(v) return new(kind, v[key.name]) end)
end

param.normal = constructor("normal", {
  name = "sigma", kind = "number", min = 0, required = true, doc = "standard deviation",
}, "Init: independent normal numbers with mean 0.")
param.uniform = constructor("uniform", {
  name = "halfwidth", kind = "number", min = 0, required = true, doc = "numbers lie in [-halfwidth, halfwidth)",
}, "Init: independent numbers uniform around 0.")
param.constant = constructor("constant", { name = "value", kind = "number", required = true, doc = "the number" },
  "Init: every entry the same number. The words 'zeros' and 'ones' are inits too.")

--- An init from code of the language itself.
param.init = new

return param
