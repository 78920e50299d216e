--- Charts of a ledger for the report: one per metric, lines over the numeric axis with most values, one series per
-- value of the word axis with most values, one panel per combination of the other axes; seeds are the dots.

local aggregate = require "ph.rules.aggregate"
local chart = require "ph.report.chart"
local select = require "ph.rules.select"
local text = require "ph.rules.text"

local charts = {}

local titles <const> = {
  ["test.accuracy"] = "Test accuracy",
  ["val.accuracy"] = "Validation accuracy",
  ["test.loss"] = "Test loss",
  ["val.loss"] = "Validation loss",
  growth = "Growth of the state, median ‖z_L‖ / ‖z_0‖",
  ["grad.first"] = "Backward gradient, ‖g_0‖ / ‖g_L‖",
  ["grad.max"] = "Backward gradient, largest ‖g_t‖ / ‖g_L‖",
  ["grad.min"] = "Backward gradient, smallest ‖g_t‖ / ‖g_L‖",
  ["port.ratio"] = "State norm against port budget, largest quotient",
  ["port.violations"] = "Port budget violations",
  seconds = "Training time, seconds",
}
--- What a reader needs to know of all of them.
charts.caption = "Chosen runs only. Lines go through the means over seeds; a pale mark is a run; whiskers show one "
  .. "sample deviation."

local preferred <const> = { "test.accuracy", "test.loss", "growth", "grad.max", "grad.min", "port.ratio", "seconds" }

-- Axes of the grid that vary, with their values: list of { name, values, numeric }.
local function varying(ctx)
  local seen, out = {}, {}
  for _, cell in ipairs(ctx.cells) do
    for axis in pairs(cell.values) do
      if not seen[axis] then
        seen[axis] = true
        local values, numeric = select.values(ctx.cells, axis), true
        for _, v in ipairs(values) do numeric = numeric and type(v) == "number" end
        if #values > 1 and axis ~= "seed" then out[#out + 1] = { name = axis, values = values, numeric = numeric } end
      end
    end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

local function widest(axes, numeric)
  local best
  for _, a in ipairs(axes) do
    if a.numeric == numeric and (not best or #a.values > #best.values) then best = a end
  end
  return best
end

--- How a table is drawn: { x = axis or nil, series = axis or nil, panels = other axes }.
function charts.layout(ctx)
  local axes = varying(ctx)
  local layout = { x = widest(axes, true), series = widest(axes, false), panels = {} }
  for _, a in ipairs(axes) do
    if a ~= layout.x and a ~= layout.series then layout.panels[#layout.panels + 1] = a end
  end
  return layout
end

local function metric_of(run, name)
  local record = run and run.record
  if not record or record.status ~= "done" then return nil end
  local v = (record.metrics or {})[name]
  if v == nil and aggregate.fields[name] then v = record[name] end
  return type(v) == "number" and v == v and math.abs(v) < math.huge and v or nil
end

local function point(x, values)
  local sd = aggregate.statistic.sd(values)
  return { x = x, mean = aggregate.statistic.mean(values), sd = sd, values = #values > 1 and values or nil }
end

local function points_of(cells, layout, name)
  local out = {}
  for i, x in ipairs(layout.x and select.values(cells, layout.x.name) or { 1 }) do
    local values = {}
    for _, cell in ipairs(cells) do
      local v = metric_of(cell.chosen, name)
      if v and (not layout.x or cell.values[layout.x.name] == x) then values[#values + 1] = v end
    end
    if #values > 0 then out[#out + 1] = point(layout.x and x or i, values) end
  end
  return out
end

-- Without a numeric axis the series stand side by side as categories.
local function spread_out(series)
  local names, merged = {}, {}
  for i, s in ipairs(series) do
    names[i] = s.name
    for _, p in ipairs(s.points) do p.x = i end
    merged[i] = s
  end
  return merged, names
end

local function series_of(cells, layout, name)
  local out = {}
  for _, v in ipairs(layout.series and select.values(cells, layout.series.name) or { name }) do
    local mine = {}
    for _, cell in ipairs(cells) do
      if not layout.series or cell.values[layout.series.name] == v then mine[#mine + 1] = cell end
    end
    local points = points_of(mine, layout, name)
    if #points > 0 then out[#out + 1] = { name = text.word(v), points = points } end
  end
  return out
end

local function data_table(series, layout)
  local rows = {}
  for _, s in ipairs(series) do
    for _, p in ipairs(s.points) do
      rows[#rows + 1] = {
        s.name, layout.x and text.word(p.x) or "", text.figure(p.mean), text.figure(p.sd),
        tostring(p.values and #p.values or 1),
      }
    end
  end
  return {
    headers = {
      layout.series and layout.series.name or "series", layout.x and layout.x.name or "", "mean", "sd", "runs",
    }, rows = rows,
  }
end

local function panel(cells, layout, name, suffix)
  local series = series_of(cells, layout, name)
  if #series == 0 then return nil end
  local title = (titles[name] or name) .. suffix
  local c = {
    title = title, x_label = layout.x and layout.x.name or (layout.series and layout.series.name or ""), y_label = name,
    series = series,
  }
  local data = data_table(series, layout)
  if not layout.x then c.series, c.categories = spread_out(series) end
  c.log = chart.wants_log(c)
  return {
    svg = chart.svg(c), legend = #series > 1 and layout.x and chart.legend(series) or nil, title = title, data = data,
  }
end

local function has(ctx, name)
  for _, cell in ipairs(ctx.cells) do
    if metric_of(cell.chosen, name) then return true end
  end
  return false
end

--- The charts of a table: list of { svg, legend, title, caption, data }. names: metrics, or nil for the usual ones.
function charts.all(ctx, names)
  local layout, out = charts.layout(ctx), {}
  local over = {}
  for _, a in ipairs(layout.panels) do over[a.name] = { each = true } end
  for _, name in ipairs(names or preferred) do
    if has(ctx, name) then
      for _, b in ipairs(select.bindings(ctx.cells, over, {})) do
        local parts = {}
        for _, a in ipairs(layout.panels) do parts[#parts + 1] = text.word(b[a.name]) end
        local suffix = #parts > 0 and ", " .. table.concat(parts, ", ") or ""
        out[#out + 1] = panel(select.cells(ctx.cells, nil, b), layout, name, suffix)
      end
    end
  end
  return out
end

return charts
