--- The choice among the candidates of a cell, the same for who runs them and for who audits them.

local monitor = require "ph.lang.monitor"

local choice = {}

--- Index of the candidate that a validation value chooses: the best, the first of equals. candidates: a list of
-- { value = number or nil, diverged = bool }. One without a value is never best; where none has one the first that did
-- not diverge stands for the cell, where all diverged the first.
function choice.among(candidates, by)
  local row, best, fallback = monitor.get(by), nil, nil
  for i, c in ipairs(candidates) do
    local v = not c.diverged and c.value
    local better = type(v) == "number"
      and monitor.is_better(row and row.better, v, best and candidates[best].value)
    if better then best = i end
    fallback = fallback or not c.diverged and i
  end
  return best or fallback or 1
end

return choice
