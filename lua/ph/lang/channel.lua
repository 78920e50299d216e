--- Channels and layers: what a block is made of.
--
-- Each constructor declares its parameters and returns a matrix (cayley, damping) or a function of the state (linear,
-- affine, layernorm). Inside a block parameters are those of the layer; outside they are drawn from (seed, name).
--
--   transport    C = cayley(skew(A)), orthogonal, det +1
--   dissipation  Lam = damping(gram(guard(L))), symmetric, 0 <= h lambda_max(R) <= budget

local budgets = require "ph.lang.budget"
local iteration = require "ph.lang.iteration"
local kinds = require "ph.schema.kinds"
local ops = require "ph.lang.ops"
local param = require "ph.lang.param"
local schema = require "ph.schema"
local symbol = require "ph.lang.symbol"

local channel = {}

local max_width <const> = 65536

local function width_key(doc)
  return { name = "width", kind = "integer", min = 1, max = max_width, doc = doc }
end

local function name_key(letter)
  return {
    name = "name", kind = "string", pattern = "^%a[%w_]*$", pattern_text = "a name (letters, digits, _)",
    default = letter, doc = "name of the parameter; repeated names are numbered",
  }
end

local seed_key <const> = {
  name = "seed", kind = "integer", min = 0, doc = "outside a block: seed of the numbers drawn (default 0)",
}

local function init_key(doc) return { name = "init", kind = "init", doc = doc } end

--- The width given, or that of the block's state.
local function width_of(name, v)
  if v.width then return v.width end
  local trace = symbol.current()
  if not trace then schema.fail(name, "needs its width: ph.%s { 32 }", name) end
  return trace.width
end

local function scaled(scale, d) return param.init("normal", scale / math.sqrt(d)) end

channel.cayley = schema.constructor({
  name = "cayley", section = "channels", positional = { "width" },
  doc = "Transport: the orthogonal matrix C = (I + S/2)^-1 (I - S/2), S = A - A^T; det C = +1.",
  example = "local C = ph.cayley { d }",
  keys = {
    width_key("size of the matrix; default: width of the state"),
    init_key("start of A; default normal(0.5 / sqrt(width))"), name_key("A"), seed_key,
  },
}, function(v)
  local d = width_of("cayley", v)
  local a = ops.parameter(v.name, d, d, v.init or scaled(0.5, d), v.seed)
  return ops.call("cayley", { ops.call("skew", { a }) })
end)

--- A budget: false (no guard), the largest h lambda_max(R) allowed, or { contract = kappa }: what
-- the whole stream may contract volume by.
function kinds.budget(v)
  if v == false then return v end
  if iteration.is(v) then return kinds.per_iteration(v, { above = 0, below = 2 }) end
  if type(v) == "table" and not kinds.tag(v) then
    local kappa, reason = kinds.number(v.contract, { above = 1 })
    for key in pairs(v) do
      if key ~= "contract" then
        return nil, "has an unknown key '" .. tostring(key) .. "'; it is { contract = kappa }"
      end
    end
    if kappa == nil then return nil, "{ contract = kappa } " .. reason end
    return { contract = kappa }
  end
  local value, reason = kinds.number(v, { above = 0, below = 2 })
  if value == nil then return nil, reason .. "; or false for no guard" end
  return value
end

--- A number, or one for each iteration, in the range of the key.
function kinds.per_iteration(v, key)
  if not iteration.is(v) then return kinds.number(v, key) end
  return iteration.check(v, function(x) return kinds.number(x, key) end)
end

local step_key <const> = {
  name = "step", kind = "per_iteration", above = 0, max = 1e6, required = true, doc = "step size h",
}
local budget_key <const> = { name = "budget", kind = "budget", default = 1,
  doc = "h lambda_max(R) is kept at or below this by shrinking L; { contract = kappa }: at what lets the whole stream "
    .. "contract volume by kappa and no more; false: no guard" }

--- The number that a budget means for a damping of width d where it stands: { contract = kappa }
-- is shared by the layers of the stream.
local function budget_number(budget, d)
  if type(budget) ~= "table" or iteration.is(budget) then return budget end
  local trace = symbol.current()
  return budgets.for_contraction(budget.contract, d, trace and trace.depth or 1)
end

local function guarded_gram(l, step, budget)
  if budget then l = ops.call("guard", { l }, { step = step, budget = budget }) end
  return ops.call("gram", { l })
end

channel.damping = schema.constructor({
  name = "damping", section = "channels", positional = { "width" },
  doc = "Dissipation: Lam = (I + hR/2)^-1 (I - hR/2), R = L L^T; symmetric, norm at most 1.",
  example = "local Lambda = ph.damping { d, step = h, budget = 1 }",
  keys = { width_key("size of the matrix; default: width of the state"), step_key, budget_key,
           init_key("start of L; default normal(0.1 / sqrt(width))"), name_key("L"), seed_key },
}, function(v)
  local d = width_of("damping", v)
  local l = ops.parameter(v.name, d, d, v.init or scaled(0.1, d), v.seed)
  return ops.call("damping", { guarded_gram(l, v.step, budget_number(v.budget, d)) }, { step = v.step })
end)

--- damping_of { R = matrix, step = h }: the dissipation of a given R.
local R_key <const> = { name = "R", kind = "any", required = true, doc = "symmetric positive semidefinite matrix" }
channel.damping_of = schema.constructor({
  name = "damping_of", section = "channels", doc = "Lambda of a given R, for exploration.",
  example = "ph.damping_of { R = 4 * ph.eye(3), step = 1 }", keys = { R_key, step_key },
}, function(v) return ops.call("damping", { v.R }, { step = v.step }) end)

schema.define {
  name = "guard", section = "channels", keys = { step_key, budget_key },
  doc = "ph.guard(L, { step = h, budget = 1 }): L shrunk so that h lambda_max(L L^T) stays within the budget.",
}

function channel.guard(l, options)
  local v = schema.check("guard", options)
  if not v then return kinds.broken end
  if not v.budget then return l end
  local budget = type(v.budget) == "table" and not iteration.is(v.budget) and ops.domain(l)
    and budget_number(v.budget, symbol.is(l) and l.rows or l:shape()[1]) or v.budget
  return ops.call("guard", { l }, { step = v.step, budget = budget })
end

channel.identity = schema.constructor({
  name = "identity", section = "channels", positional = { "width" },
  doc = "The identity as a channel: a factor that leaves values as they are.",
  keys = { width_key("size; default: width of the state") },
}, function(v) return ops.identity(width_of("identity", v)) end)

local function size_key(name, doc)
  return { name = name, kind = "integer", min = 1, max = max_width, required = true, doc = doc }
end

channel.param = schema.constructor({
  name = "param", section = "channels", positional = { "rows", "cols" },
  doc = "A bare parameter matrix (1 row: a vector).",
  example = "local G = ph.param { d, d, init = ph.normal(0.1), name = 'G' }",
  keys = { size_key("rows", "rows"), size_key("cols", "columns"),
           { name = "init", kind = "init", required = true, doc = "how it starts" }, name_key("P"), seed_key },
}, function(v) return ops.parameter(v.name, v.rows, v.cols, v.init, v.seed) end)

-- ---- layers: functions of the state that own parameters ----

local Layer = { __name = "ph.layer" }
Layer.__index = Layer
Layer.__tostring = function(self) return self.name end

--- Parameters of a layer belong to the segment in which it was first used.
local function one_segment(self, trace)
  local model = trace.model
  if not model then return end
  local first = self.homes[model]
  if first and first ~= trace then
    schema.fail(self.name,
      "one layer is used in two segments; parameters cannot be shared between segments, make two layers")
  end
  self.homes[model] = trace
end

--- Uses of one layer object in one trace share its parameters.
function Layer:__call(z)
  if rawequal(z, kinds.broken) then return z end
  local width = ops.width(self.name, z)
  local trace = symbol.current()
  if trace then one_segment(self, trace) end
  local home = trace or self
  self.parameters[home] = self.parameters[home] or self.declare(width)
  return self.apply(z, table.unpack(self.parameters[home]))
end

local function layer(name, declare, apply)
  local weak = { __mode = "k" }
  return setmetatable({
    name = name, declare = declare, apply = apply, parameters = setmetatable({}, weak), homes = setmetatable({}, weak),
  }, Layer)
end

local function fan_in(width) return param.init("uniform", 1 / math.sqrt(width)) end

channel.linear = schema.constructor({
  name = "linear", section = "layers", positional = { "width" }, doc = "A layer z -> B z without bias.",
  example = "ph.linear(d)(z)",
  keys = {
    size_key("width", "features that come out"), init_key("start of B; default uniform(1 / sqrt(features in))"),
    name_key("B"), seed_key,
  },
}, function(v)
  return layer("linear",
    function(width) return { ops.parameter(v.name, v.width, width, v.init or fan_in(width), v.seed) } end,
    function(z, m) return ops.times(m, z) end)
end)

channel.affine = schema.constructor({
  name = "affine", section = "layers", positional = { "width" }, doc = "A layer z -> W z + b.",
  example = "ph.affine(d)(z)",
  keys = { size_key("width", "features that come out"), init_key("start of W; default uniform(1 / sqrt(features in))"),
           { name = "bias_init", kind = "init", doc = "start of b; default uniform(1 / sqrt(features in))" },
           name_key("W"),
           { name = "bias_name", kind = "string", pattern = "^%a[%w_]*$", pattern_text = "a name", default = "b",
             doc = "name of the bias" }, seed_key },
}, function(v)
  return layer("affine", function(width)
    return { ops.parameter(v.name, v.width, width, v.init or fan_in(width), v.seed),
             ops.parameter(v.bias_name, 1, v.width, v.bias_init or fan_in(width), v.seed) }
  end, function(z, w, b) return ops.call("bias", { ops.times(w, z), b }) end)
end)

local new_layernorm = schema.constructor({
  name = "layernorm", section = "layers", example = "ph.layernorm(z)  or  ph.layernorm { eps = 1e-6 } (z)",
  doc = "A layer: each state minus its mean, over its deviation, times gamma, plus beta (population variance).",
  keys = { { name = "eps", kind = "number", above = 0, default = 1e-5, doc = "added to the variance" } },
}, function(v)
  return layer("layernorm", function(width)
    return { ops.parameter("gamma", 1, width, param.init "ones"), ops.parameter("beta", 1, width, param.init "zeros") }
  end, function(z, gamma, beta) return ops.call("layernorm", { z, gamma, beta }, { eps = v.eps }) end)
end)

--- layernorm(z) with the default eps, or layernorm { eps = } as a layer.
function channel.layernorm(z)
  if ops.domain(z) then return new_layernorm {}(z) end
  return new_layernorm(z)
end

return channel
