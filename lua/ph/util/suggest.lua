--- The nearest valid word to a misspelt one.
--
-- Distance: optimal string alignment (insert, delete, replace, swap of neighbours cost 1), letters
-- compared without case. A suggestion is made only when it is near: at most a third of the longer
-- word, at least one slip is always allowed.

local suggest = {}

--- Number of slips between two words. Cost |a| |b|.
function suggest.distance(a, b)
  a, b = a:lower(), b:lower()
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

local function near_enough(word, candidate, slips)
  return slips <= math.max(1, math.max(#word, #candidate) // 3)
end

--- The nearest of `candidates` (a list of words) or nil; ties go to the first in byte order. Also returns the distance.
function suggest.nearest(word, candidates)
  local sorted = table.move(candidates, 1, #candidates, 1, {})
  table.sort(sorted)
  local best, best_slips
  for _, candidate in ipairs(sorted) do
    if math.abs(#candidate - #word) <= 1 + #word // 3 then
      local slips = suggest.distance(word, candidate)
      if near_enough(word, candidate, slips) and (not best or slips < best_slips) then
        best, best_slips = candidate, slips
      end
    end
  end
  return best, best_slips
end

--- " (did you mean 'x'?)" or "".
function suggest.hint(word, candidates)
  local best = suggest.nearest(word, candidates)
  return best and string.format(" (did you mean '%s'?)", best) or ""
end

return suggest
