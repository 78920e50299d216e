--- The table of cells that a run ends with, and that `status` shows: one row a cell, seeds taken together.

local axes = require "ph.schema.axes"
local plans = require "ph.run.plans"
local sorted_keys = require "ph.util.sorted_keys"
local tables = require "ph.util.tables"

local summary = {}

local function values(records, metric)
  local out = {}
  for _, r in ipairs(records) do
    local v = r.metrics and r.metrics[metric]
    if v ~= nil and r.status == "done" then out[#out + 1] = v end
  end
  return out
end

local function percent(records, metric)
  local v = values(records, metric)
  for i = 1, #v do v[i] = 100 * v[i] end
  return tables.spread(v, 1)
end

local function has(records, metric)
  for _, r in ipairs(records) do
    if r.metrics and r.metrics[metric] ~= nil then return true end
  end
  return false
end

local function selected(group, key)
  local seen, out = {}, {}
  for _, r in ipairs(group.records) do
    local v = tostring(r.select[key])
    if not seen[v] then out[#out + 1] = v end
    seen[v] = true
  end
  return table.concat(out, ", ")
end

local function figures(digits)
  return function(records, metric) return tables.spread(values(records, metric), digits, tables.ranged) end
end

local columns <const> = {
  { "val acc %", "val.accuracy", percent }, { "test acc %", "test.accuracy", percent },
  { "val loss", "val.loss", figures(4), unless = "val.accuracy" },
  { "test loss", "test.loss", figures(4), unless = "test.accuracy" },
  { "growth", "growth", figures(2), legend = "growth: median |z_L|/|z_0|" },
  { "grad.first", "grad.first", figures(2), legend = "grad.first: |dLoss/dz_0|/|dLoss/dz_L|" },
  { "port.ratio", "port.ratio", figures(3), legend = "port.ratio: largest |z_t| over its ceiling" },
}

local function sum(records, field)
  local total = 0
  for _, r in ipairs(records) do total = total + (r[field] or 0) end
  return total
end

local function state_of(group)
  local diverged = 0
  for _, r in ipairs(group.records) do
    if r.status == "diverged" then diverged = diverged + 1 end
  end
  local words = {}
  if diverged > 0 then words[1] = diverged == #group.records and "diverged" or diverged .. " diverged" end
  if group.older then words[#words + 1] = "of an earlier plan; " .. group.older end
  return table.concat(words, "; ")
end

--- Samples that figures of the shown records leave out: "growth leaves out 4 of 20 samples, which start at zero"; the
-- most of any record.
local function left_out_of(groups)
  local most = {}
  for _, g in ipairs(groups) do
    for _, r in ipairs(g.records) do
      for metric, n in pairs(r.left_out or {}) do
        if not most[metric] or n[1] > most[metric][1] then most[metric] = n end
      end
    end
  end
  local out = {}
  for _, metric in ipairs(sorted_keys(most)) do
    local n = most[metric]
    out[#out + 1] = string.format("%s leaves out %d of %d samples, which start at zero", metric, n[1], n[2])
  end
  return out
end

local function keys_of(records, field)
  local seen, out = {}, {}
  for _, r in ipairs(records) do
    for k in pairs(r[field] or {}) do
      if not seen[k] then out[#out + 1] = k end
      seen[k] = true
    end
  end
  table.sort(out)
  return out
end

local function layout(records, groups)
  local names, seen = {}, {}
  for _, g in ipairs(groups) do
    for _, at in ipairs(g.axes) do
      if not seen[at.key] then names[#names + 1] = at.key end
      seen[at.key] = true
    end
  end
  local shown = {}
  for _, c in ipairs(columns) do
    if has(records, c[2]) and not (c.unless and has(records, c.unless)) then shown[#shown + 1] = c end
  end
  return names, keys_of(records, "select"), shown
end

local function row_of(group, names, selects, shown, many)
  local row, words = {}, {}
  for _, at in ipairs(group.axes) do words[at.key] = axes.word(at.value) end
  for i, name in ipairs(names) do row[i] = words[name] or "-" end
  if many then row[#row + 1] = tostring(#group.records) end
  for _, key in ipairs(selects) do row[#row + 1] = selected(group, key) end
  for _, c in ipairs(shown) do row[#row + 1] = c[3](group.records, c[2]) end
  row[#row + 1] = tables.count(group.records[1].params or 0)
  row[#row + 1] = tables.fixed(sum(group.records, "seconds"), 1)
  row[#row + 1] = state_of(group)
  return row
end

--- What the columns mean that do not say it themselves; nil when there are none of those.
local function legend_of(shown)
  local out = {}
  for _, c in ipairs(shown) do out[#out + 1] = c.legend end
  return #out > 0 and table.concat(out, "; ") or nil
end

--- Lines of the table of the chosen records, or nil when there are none. of_one_plan: they are known to be of one.
function summary.lines(records, of_one_plan)
  local groups, many = plans.groups(records, of_one_plan), false
  if #groups == 0 then return nil end
  for _, g in ipairs(groups) do many = many or #g.records > 1 end
  local names, selects, shown = layout(records, groups)
  local headers = table.move(names, 1, #names, 1, {})
  if many then headers[#headers + 1] = "seeds" end
  for _, key in ipairs(selects) do headers[#headers + 1] = key end
  for _, c in ipairs(shown) do headers[#headers + 1] = c[1] end
  headers[#headers + 1] = "params"
  headers[#headers + 1] = "seconds"
  headers[#headers + 1] = ""
  local rows = {}
  for i, g in ipairs(groups) do rows[i] = row_of(g, names, selects, shown, many) end
  local lines = tables.render(headers, rows)
  local legend = legend_of(shown)
  if legend then lines[#lines + 1] = "  " .. legend end
  for _, line in ipairs(left_out_of(groups)) do lines[#lines + 1] = "  " .. line end
  return lines, many
end

return summary
