--- Early stopping as a pure object: it receives one validation value per epoch and knows
-- which epoch is best and when to stop.
--
-- Policy: a value is better when it is strictly better than the best so far (first of equals wins). A value that is not
-- a number is never best; it counts as an epoch without improvement. After `patience` epochs in a row without
-- improvement training stops. Before the first real value there is no best epoch, and epochs without one count as well.
-- patience nil or 0: never stops early.

local monitor = require "ph.lang.monitor"

local EarlyStop = {}
EarlyStop.__index = EarlyStop

--- How checkpoints of earlier programs say it.
local older_words <const> = { max = "higher", min = "lower" }

--- better: "higher" or "lower"; patience in epochs or nil.
function EarlyStop.new(better, patience)
  assert(better == "higher" or better == "lower", "better is higher or lower")
  return setmetatable({
    better = better, patience = patience or 0, epoch = 0, best = nil, best_epoch = nil, waited = 0,
  }, EarlyStop)
end

--- Takes the value of the next epoch. Returns true when it is the best so far.
function EarlyStop:update(value)
  self.epoch = self.epoch + 1
  local better = monitor.is_better(self.better, value, self.best)
  if better then
    self.best, self.best_epoch, self.waited = value, self.epoch, 0
  else
    self.waited = self.waited + 1
  end
  return better
end

function EarlyStop:should_stop()
  return self.patience > 0 and self.waited >= self.patience
end

--- Everything that a checkpoint must keep, as a plain table; `restore` is its inverse.
function EarlyStop:save()
  return {
    better = self.better, patience = self.patience, epoch = self.epoch, best = self.best, best_epoch = self.best_epoch,
    waited = self.waited,
  }
end

function EarlyStop.restore(saved)
  local self = EarlyStop.new(saved.better or older_words[saved.mode], saved.patience)
  self.epoch, self.best, self.best_epoch, self.waited = saved.epoch, saved.best, saved.best_epoch, saved.waited
  return self
end

return EarlyStop
