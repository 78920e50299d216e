local EarlyStop = require "ph.earlystop"
local json = require "ph.json"

local nan <const> = 0 / 0

--- Feeds values until the policy stops; goes through save and restore after epoch `stop_at`, as a resumed run does.
local function play(mode, patience, values, stop_at)
  local stop = EarlyStop.new(mode, patience)
  for epoch, v in ipairs(values) do
    stop:update(v)
    if epoch == stop_at then stop = EarlyStop.restore(json.decode(json.encode(stop:save()))) end
    if stop:should_stop() then break end
  end
  return stop.epoch, stop.best_epoch, stop.best
end

describe("early stopping", function()
  it("stops at the same epoch and keeps the same best whether or not it was interrupted", function()
    local values = { 0.5, 0.6, 0.55, 0.54, 0.53, 0.52, 0.51, 0.9 }
    for stop_at = 0, 5 do
      assert.same({ 6, 2, 0.6 }, { play("max", 4, values, stop_at) })
    end
  end)

  it("never takes a value that is not a number for the best", function()
    assert.same({ 5, 5, 0.7 }, { play("min", 4, { nan, 0.9, 0.8, nan, 0.7 }) })
    assert.same({ 5, 2, 0.9 }, { play("max", 4, { nan, 0.9, 0.8, nan, 0.7 }) })
  end)

  it("counts such an epoch as one without improvement", function()
    assert.same({ 3, 1, 0.9 }, { play("min", 2, { 0.9, nan, nan, 0.1 }) })
    assert.same({ 2 }, { (play("min", 2, { nan, nan, 0.1 })) })
  end)

  it("keeps the first of equal values and runs to the end without patience", function()
    assert.same({ 3, 1, 0.5 }, { play("max", nil, { 0.5, 0.5, 0.5 }) })
    assert.same({ 3, 1, 0.5 }, { play("max", 2, { 0.5, 0.5, 0.5, 0.5 }) })
  end)

  it("takes infinity as a value", function()
    assert.same({ 2, 2, 0.5 }, { play("min", 5, { math.huge, 0.5 }) })
  end)
end)
