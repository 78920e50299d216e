--- The figure "cells" of results directories, made from their ledgers alone: metrics of the chosen
-- runs over the depth (or the widest numeric axis), one line per family through the means, a mark per
-- run; the ends of the backward gradient.
--
-- Several directories are drawn together, so that experiments that share a task can be compared. Of a directory only
-- runs of the last plan are drawn, and a note says how many that leaves out.

local native = require "ph.native"
local fault = require "ph.util.fault"
local ledger = require "ph.run.ledger"
local plans = require "ph.run.plans"
local sorted_keys = require "ph.util.sorted_keys"

local cells = {}

--- The finished records that are drawn, and the number of those of earlier plans.
local function records_of(dirs)
  local out, older = {}, 0
  for _, dir in ipairs(dirs) do
    local book = ledger.read(dir)
    if book.problem then fault.raise(fault.TAMPERED, "%s: %s", dir, book.problem) end
    for _, group in ipairs(plans.groups(book.runs)) do
      for _, r in ipairs(group.records) do
        if r.status == "done" and group.older then older = older + 1
        elseif r.status == "done" then out[#out + 1] = r
        end
      end
    end
  end
  return out, older
end

--- Values of an axis over the records, in order of size or of appearance.
local function values_of(records, axis)
  local seen, out = {}, {}
  for _, r in ipairs(records) do
    local v = r.cell[axis]
    if v ~= nil and not seen[v] then seen[v], out[#out + 1] = true, v end
  end
  if math.type(out[1]) then table.sort(out) end
  return out
end

--- The axis with most values among those whose values are numbers (or are not), seeds apart.
local function widest(records, numeric, without)
  local names, best, most = {}, nil, 0
  for _, r in ipairs(records) do
    for name, v in pairs(r.cell) do
      if name ~= "seed" and name ~= without and (type(v) == "number") == numeric then names[name] = true end
    end
  end
  local sorted = sorted_keys(names)
  for _, name in ipairs(sorted) do
    local n = #values_of(records, name)
    if n > most then best, most = name, n end
  end
  return best
end

local function tensor(points)
  return #points > 0 and native.from(points, "f64") or nil
end

--- Points and means of a metric for the records of one series; `place`: where all of
-- them stand, nil: at their value of x.
local function series_of(records, x, metric, place)
  local points, means = {}, {}
  for _, at in ipairs(values_of(records, x)) do
    local sum, n = 0, 0
    for _, r in ipairs(records) do
      local v = r.cell[x] == at and r.metrics[metric]
      if type(v) == "number" and v == v then
        points[#points + 1] = { place or at, v }
        sum, n = sum + v, n + 1
      end
    end
    if n > 0 then means[#means + 1] = { place or at, sum / n } end
  end
  return tensor(means), tensor(points)
end

local function where(records, axis, value)
  if not axis then return records end
  local out = {}
  for _, r in ipairs(records) do
    if r.cell[axis] == value then out[#out + 1] = r end
  end
  return out
end

--- A value as one of the words of `xnames`, which white space separates.
local function one_word(value) return (tostring(value):gsub("%s", "\u{a0}")) end

--- One panel: the metrics, for every value of the series axis. With one value of x only, the series stand side by side.
local function panel(records, x, by, metrics, words)
  local out = { title = words.title, xlabel = x, ylabel = words.ylabel, logy = words.logy, series = {} }
  local at = values_of(records, x)
  if #at == 1 then
    local names = {}
    for i, value in ipairs(by and values_of(records, by) or { "all" }) do names[i] = one_word(value) end
    out.xlabel, out.xmin, out.xmax = string.format("%s = %s", x, tostring(at[1])), 0.5, #names + 0.5
    out.xnames, out.key = table.concat(names, " "), false
  end
  for i, value in ipairs(by and values_of(records, by) or { "all" }) do
    local mine = where(records, by, value)
    for k, metric in ipairs(metrics) do
      local means, points = series_of(mine, x, metric, #at == 1 and i or nil)
      if means then
        out.series[#out.series + 1] = {
          style = "line", label = k == 1 and tostring(value) or "", data = means, color = (i - 1) % 7 + 1,
        }
        out.series[#out.series + 1] = { style = "points", label = "", data = points, color = (i - 1) % 7 + 1 }
      end
    end
  end
  return #out.series > 0 and out or nil
end

local drawn <const> = {
  { metrics = { "test.accuracy" }, title = "test accuracy", ylabel = "accuracy" },
  { metrics = { "growth" }, title = "growth of the state", ylabel = "median |z_L|/|z_0|", logy = true },
  { metrics = { "grad.max", "grad.min" }, title = "largest and smallest |g_t|/|g_L|", ylabel = "gradient ratio",
    logy = true },
}

--- The figure of the ledgers of `dirs`, or nil when nothing in them is done.
function cells.figure(dirs)
  local records, older = records_of(dirs)
  local x = widest(records, true)
  if not x then return nil end
  local by = widest(records, false)
  local apart = widest(records, false, by)
  local title = "chosen runs: means over seeds, a mark a run"
  if older > 0 then
    title = string.format("%s (%d run%s of earlier plans left out)", title, older, older == 1 and "" or "s")
  end
  local figure = { name = "cells", title = title, panels = {} }
  for _, value in ipairs(apart and values_of(records, apart) or { false }) do
    local mine = where(records, apart, value)
    for _, what in ipairs(drawn) do
      local words = {
        title = what.title .. (apart and ", " .. tostring(value) or ""), ylabel = what.ylabel, logy = what.logy,
      }
      figure.panels[#figure.panels + 1] = panel(mine, x, by, what.metrics, words)
    end
  end
  return #figure.panels > 0 and figure or nil
end

return cells
