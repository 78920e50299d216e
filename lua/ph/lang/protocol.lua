--- Training protocols: optimizer, learning-rate schedule, epochs, batch, early stopping.
-- Plain fields; policy of ph.run.train.

local canon = require "ph.util.canon"
local edition = require "ph.schema.edition"
local groups = require "ph.lang.groups"
local meaning = require "ph.schema.meaning"
local schema = require "ph.schema"
local trig = require "ph.util.trig"
require "ph.lang.monitor"

local protocol = {}

local Protocol = { __name = "ph.protocol" }
Protocol.__index = Protocol
Protocol.__tostring = function(self) return self:canonical() end

-- ---- schedules: factor of lr at `step` (from 1) of `total`, `ramp` steps of which are warm-up ----

local function cosine(p, step, total, ramp)
  local done = math.min(1, math.max(0, (step - 1 - ramp) / math.max(1, total - ramp)))
  local floor = p.lr_min / p.lr
  return floor + (1 - floor) * (1 + trig.cos(math.pi * done)) / 2
end

local function ramped(f)
  return function(p, step, total, ramp)
    if step <= ramp then return step / ramp end
    return f(p, step, total, ramp)
  end
end

local function constant() return 1 end

--- Factor functions by name.
protocol.schedules = {
  constant = constant, cosine = function(p, step, total) return cosine(p, step, total, 0) end,
  warmup = ramped(constant), warmup_cosine = ramped(cosine),
}

--- Learning rate of a step: step counts from 1, total steps of the whole training, steps of one epoch.
function Protocol:rate(step, total, per_epoch)
  local ramp = math.floor((self.warmup or 0) * (per_epoch or 0) + 0.5)
  return self.lr * protocol.schedules[self.schedule](self, step, total, ramp)
end

--- The same protocol with some keys changed; validated again.
function Protocol:with(changes)
  local v = {}
  for k, x in pairs(self.values) do v[k] = x end
  for k, x in pairs(changes) do v[k] = x end
  return edition.under(self.edition, protocol[self.kind], v)
end

function Protocol:has_key(key) return schema.get(self.kind).by_name[key] ~= nil end

--- Its values as texts and plans name them: everything that can change a result. The time between checkpoints cannot.
function Protocol:meaning() return meaning.of(self.kind, self.values) end

function Protocol:canonical() return canon.call(self.kind, self:meaning()) end

local function keys(own)
  local all = {
    { "lr", kind = "number", above = 0, max = 1e6, doc = "learning rate; may be left to select" },
    { "batch", kind = "integer", min = 1, max = 1000000, default = 128,
      doc = "samples of a step; the last step of an epoch may have fewer" },
    { "epochs", kind = "integer", min = 1, max = 1000000, required = true, doc = "most passes over the training data" },
    { "schedule", kind = "choice", allowed = { "constant", "cosine", "warmup", "warmup_cosine" }, default = "constant",
      doc = "learning rate over the steps of all epochs, early stopping or not; the history has that of an epoch's "
        .. "last step. cosine falls to lr_min, warmup rises linearly first" },
    { "warmup", kind = "number", above = 0, max = 1000000,
      doc = "epochs of warm-up, for the schedules with warmup, rounded to r steps: step 1 has lr / r, step r has lr "
        .. "and so has step r + 1" },
    { "lr_min", kind = "number", min = 0, max = 1e6, default = 0,
      doc = "where cosine ends: it would be reached one step after the last" },
    { "patience", kind = "integer", min = 0, max = 1000000, default = 0,
      doc = "stop after this many epochs in a row without improvement; 0: never. NaN never counts as an improvement" },
    { "monitor", kind = "monitor", default = "val.accuracy",
      doc = "value that says which epoch is best: val.accuracy or val.loss" },
    { "clip", kind = "number", min = 0, max = 1e12, default = 0,
      doc = "largest global norm of the gradient, before weight decay: a larger gradient is multiplied by clip / norm; "
        .. "0: no clipping" },
    { "weight_decay", kind = "number", min = 0, max = 1e6, default = 0,
      doc = "decoupled for adam, added to the gradient for sgd" },
    { "checkpoint", kind = "number", min = 0, max = 1e9, default = 10, affects = false,
      doc = "seconds between checkpoints in mid-epoch; at the end of an epoch a fifth of it is enough" },
    groups.key,
  }
  return table.move(own, 1, #own, #all + 1, all)
end

--- Keys that make no sense together.
local function check(name, v)
  local warm = v.schedule:find("warmup", 1, true)
  if warm and not v.warmup then schema.fail(name, "schedule '%s' needs warmup = epochs", v.schedule) end
  if v.warmup and not warm then schema.fail(name, "'warmup' has no effect with schedule '%s'", v.schedule) end
  if warm and (v.warmup > v.epochs or (v.warmup == v.epochs and v.schedule == "warmup_cosine")) then
    schema.fail(name, "warmup = %s epochs leaves nothing of epochs = %d for schedule '%s'", canon.number(v.warmup),
      v.epochs, v.schedule)
  end
  if v.lr_min > 0 and not v.schedule:find("cosine", 1, true) then
    schema.fail(name, "'lr_min' has no effect with schedule '%s'", v.schedule)
  end
  if v.lr and v.lr_min > v.lr then
    schema.fail(name, "lr_min = %s is above lr = %s", canon.number(v.lr_min), canon.number(v.lr))
  end
end

local function constructor(name, doc, own)
  return schema.constructor({
    name = name, role = "train", section = "protocols", doc = doc, keys = keys(own),
    example = string.format("ph.%s { lr = 1e-3, batch = 128, epochs = 60, schedule = 'cosine', patience = 12 }", name),
  }, function(v)
    check(name, v)
    local self = { kind = name, values = v, edition = edition.current() }
    for k, x in pairs(v) do self[k] = x end
    return setmetatable(self, Protocol)
  end)
end

local function rate_key(name, default, doc)
  return { name, kind = "number", min = 0, below = 1, default = default, doc = doc }
end

protocol.adam = constructor("adam", "Adam with bias correction.", {
  rate_key("beta1", 0.9, "decay of the first moment"),
  rate_key("beta2", 0.999, "decay of the second moment"),
  { "eps", kind = "number", above = 0, max = 1, default = 1e-8, doc = "added to the root of the second moment" },
})

protocol.sgd = constructor("sgd", "Stochastic gradient descent with momentum.", {
  rate_key("momentum", 0, "decay of the velocity"),
})

return protocol
