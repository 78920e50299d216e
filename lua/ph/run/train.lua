--- Training of one run: epochs, batches, schedule, validation, early stopping, checkpoints. Policy only: a step, an
-- evaluation and a file are one native call each.
--
-- The order of an epoch's samples is a pure function of (seed, epoch), and a checkpoint holds the rest, so a run that
-- was stopped anywhere, in the middle of an epoch too, ends with the same bits as one that was not. A loss or gradient
-- that is not finite ends a run as "diverged": a result with step, layer and last finite loss.

local native = require "ph.native"
local checkpoint = require "ph.run.checkpoint"
local EarlyStop = require "ph.run.earlystop"
local monitor = require "ph.lang.monitor"

local train = {}

local Training = {}
Training.__index = Training

--- Columns of the history; one row an epoch.
function train.columns(classifies)
  if classifies then return { "epoch", "lr", "train.loss", "train.accuracy", "val.loss", "val.accuracy" } end
  return { "epoch", "lr", "train.loss", "val.loss" }
end

local function fresh_state(protocol, digest)
  return {
    data = digest, status = "running", epoch = 1, step = 0, steps = 0, loss = 0, hits = 0, n = 0, seconds = 0,
    stop = EarlyStop.new(monitor.get(protocol.monitor).better, protocol.patience):save(),
  }
end

--- options: plan, protocol (plain fields, `rate(step, steps)` gives the learning rate), seed, data = { train,
-- val } (as from native.data, with counts n_train, n_val), digest (of the data), classifies, path (of the
-- checkpoint), every (seconds between checkpoints; 0: after each step), on_step(samples), on_epoch(row, columns),
-- stopped() (true when the run shall save and end).
function train.new(options)
  local self = setmetatable({
    rows = {}, columns = train.columns(options.classifies), saved_at = native.now(),
  }, Training)
  for k, v in pairs(options) do self[k] = v end
  self.batches = (self.n_train + self.protocol.batch - 1) // self.protocol.batch
  self.state = fresh_state(self.protocol, self.digest)
  self.stop = EarlyStop.restore(self.state.stop)
  return self
end

--- Draws the parameters, or takes everything from a checkpoint. Returns true when it resumes from one.
-- nil and a message when there is a checkpoint that cannot be read (the run then starts over).
function Training:begin()
  local saved, problem = checkpoint.read(self.path)
  if not saved then
    self.plan:init(self.seed)
    return false, problem
  end
  self.state, self.rows, self.best = saved.state, saved.rows, saved.best
  self.stop = EarlyStop.restore(self.state.stop)
  for group, slot in pairs { final = "value", moment1 = "moment1", moment2 = "moment2" } do
    if saved[group] then checkpoint.restore(self.plan, saved[group], slot) end
  end
  self.plan:steps(self.state.steps)
  return true
end

function Training:save()
  self.state.stop = self.stop:save()
  self.state.seconds = self:seconds()
  self.started = native.now()
  local ok, problem = checkpoint.save(self.path, self.plan, self.state, self.rows, self.columns, self.best)
  if not ok then error(problem, 0) end
  self.saved_at = native.now()
end

function Training:seconds()
  return self.state.seconds + (native.now() - self.started)
end

local function optimizer(protocol, lr)
  return {
    kind = protocol.kind, lr = lr, beta1 = protocol.beta1, beta2 = protocol.beta2, eps = protocol.eps,
    weight_decay = protocol.weight_decay, momentum = protocol.momentum, clip = protocol.clip,
  }
end

function Training:diverge(res)
  local s = self.state
  s.status = "diverged"
  s.diverged = {
    epoch = s.epoch, step = s.steps + 1, segment = res.bad_segment, layer = res.bad_step, op = res.bad_op,
    last_loss = s.last_loss,
  }
end

--- One batch. The short last batch of an epoch counts with its own size in the means.
function Training:one_step(order)
  local s, batch = self.state, self.protocol.batch
  local first = s.step * batch + 1
  local last = math.min(first + batch - 1, self.n_train)
  s.lr = self.protocol:rate(s.steps + 1, self.batches * self.protocol.epochs, self.batches)
  local res = self.plan:step(self.data.train, order:slice(1, first, last), optimizer(self.protocol, s.lr))
  if not res.finite then return self:diverge(res) end
  s.step, s.steps = s.step + 1, s.steps + 1
  s.loss, s.hits, s.n = s.loss + res.loss * res.n, s.hits + res.hits, s.n + res.n
  s.last_loss = res.loss
  if self.on_step then self.on_step(res.n) end
end

--- The values of an epoch that ends, by the names of the history's columns. res: of the validation data.
function Training:epoch_values(res)
  local s = self.state
  return {
    epoch = s.epoch, lr = s.lr, ["train.loss"] = s.loss / s.n, ["train.accuracy"] = s.hits / s.n,
    ["val.loss"] = res.loss, ["val.accuracy"] = res.hits / res.n,
  }
end

function Training:end_epoch()
  local s, row = self.state, {}
  local values = self:epoch_values(self.plan:eval(self.data.val, nil, false))
  for i, name in ipairs(self.columns) do row[i] = values[name] end
  self.rows[#self.rows + 1] = row
  local watched = values[self.protocol.monitor]
  if self.stop:update(watched) then self.best = checkpoint.snapshot(self.plan) end
  s.epoch, s.step, s.loss, s.hits, s.n = s.epoch + 1, 0, 0, 0, 0
  if self.stop:should_stop() then s.status, s.ended_by = "trained", "patience" end
  if s.status == "running" and s.epoch > self.protocol.epochs then s.status, s.ended_by = "trained", "epochs" end
  if self.on_epoch then self.on_epoch(row, self.columns) end
end

--- In mid-epoch after `every` seconds; at the end of an epoch, a better place to
-- stop at, after a fifth of that already.
function Training:save_if_due(share)
  if native.now() - self.saved_at >= self.every * share then self:save() end
end

--- Runs an epoch from where the state stands. Returns false when it was asked to stop.
function Training:one_epoch()
  local s = self.state
  local order = native.permutation(self.seed, "order/" .. s.epoch, 0, self.n_train)
  while s.step < self.batches do
    if self.stopped() then return false end
    self:one_step(order)
    if s.status ~= "running" then return true end
    if s.step < self.batches then self:save_if_due(1) end
  end
  self:end_epoch()
  self:save_if_due(0.2)
  return true
end

--- Trains to the end. Returns the state's status: "trained", "diverged", or
-- "interrupted" (saved; the same call resumes).
function Training:run()
  self.started = native.now()
  while self.state.status == "running" do
    local ok, more = pcall(self.one_epoch, self)
    if not ok and more ~= "interrupted" then error(more, 0) end
    if not ok or not more then
      self:save()
      return "interrupted"
    end
  end
  self:save()
  return self.state.status
end

return train
