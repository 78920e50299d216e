--- Figures of runs: training curves, profiles over the layers. Made as ph.figure tables, kept in run files, drawn at
-- the end of a run as a PNG and as characters. Without gnuplot there is no picture, and a line says so.

local native = require "ph.native"
local fault = require "ph.util.fault"
local figures = require "ph.figure"
local sorted_keys = require "ph.util.sorted_keys"

local curves = {}

--- More curves than this in one picture cannot be told apart.
local most_curves <const>, most_in_text <const> = 12, 4

local function column_index(columns, name)
  for i, c in ipairs(columns) do
    if c == name then return i end
  end
end

--- (epochs, 2) of epoch and one column of a history; nil when it has no such column or no row.
local function epochs_against(columns, rows, name)
  local k, points = column_index(columns, name), {}
  if not k or #rows == 0 then return nil end
  for i, row in ipairs(rows) do points[i] = { row[1], row[k] } end
  return native.from(points, "f64")
end

local function series(list, name)
  local out = {}
  for _, c in ipairs(list) do
    local data = epochs_against(c.columns, c.rows, name)
    if data then out[#out + 1] = { style = "line", label = c.title, data = data } end
  end
  return out
end

--- Curves of several runs, each { title, columns, rows }: training loss, and accuracy or loss on validation.
function curves.comparison(list, title)
  local accuracy = series(list, "val.accuracy")
  local panels = {
    { title = "training loss", xlabel = "epoch", ylabel = "loss", logy = true, series = series(list, "train.loss") },
  }
  if #accuracy > 0 then
    panels[2] = { title = "validation accuracy", xlabel = "epoch", ylabel = "accuracy", series = accuracy }
  else
    panels[2] = {
      title = "validation loss", xlabel = "epoch", ylabel = "loss", logy = true, series = series(list, "val.loss"),
    }
  end
  return { name = "curves", title = title, panels = panels }
end

local function of_run(columns, rows, metric)
  local list = {}
  for _, split in ipairs { "train", "val" } do
    local data = epochs_against(columns, rows, split .. "." .. metric)
    if data then list[#list + 1] = { style = "line", label = split, data = data } end
  end
  return list
end

--- One run's training, as kept in its file. nil without epochs.
function curves.training(label, columns, rows)
  if #rows == 0 then return nil end
  local panels = {
    { title = "loss", xlabel = "epoch", ylabel = "loss", logy = true, series = of_run(columns, rows, "loss") },
  }
  local accuracy = of_run(columns, rows, "accuracy")
  if #accuracy > 0 then panels[2] = { title = "accuracy", xlabel = "epoch", ylabel = "accuracy", series = accuracy } end
  return { name = "training", title = label, panels = panels }
end

local profile_words <const> = {
  { "growth", "growth by layer", "median of |z_t| / |z_0|" },
  { "grad.ratio", "gradient by layer", "g_t / g_L" },
}

local function layers_against(profile)
  local points = {}
  for t = 1, profile:count() do points[t] = { t - 1, profile:at(t) } end
  return native.from(points, "f64")
end

--- Profiles over the layers of the streams, as kept in a run file; nil when nothing was measured.
-- profiles: map "s2/growth" -> tensor.
function curves.layers(label, profiles)
  local keys, panels = sorted_keys(profiles), {}
  for _, words in ipairs(profile_words) do
    local list = {}
    for _, key in ipairs(keys) do
      local stream, name = key:match "^(.-)/(.*)$"
      if name == words[1] then
        list[#list + 1] = { style = "line", label = "stream " .. stream, data = layers_against(profiles[key]) }
      end
    end
    if #list > 0 then
      panels[#panels + 1] = {
        title = words[2], xlabel = "layer", ylabel = words[3], logy = true, key = #list > 1, series = list,
      }
    end
  end
  return #panels > 0 and { name = "layers", title = label, panels = panels } or nil
end

--- The curves that fit into one picture: those with rows, the first twelve.
function curves.pick(list)
  local out = {}
  for _, curve in ipairs(list) do
    if #curve.rows > 0 and #out < most_curves then out[#out + 1] = curve end
  end
  return out
end

local function one_line(problem)
  local text = tostring(problem)
  return "no picture: " .. text .. (text:find "cannot be started" and " (Debian: gnuplot-nox)" or "")
end

--- gnuplot's markup would take an underscore for an index.
local function with_escapes(list)
  local out = {}
  for i, c in ipairs(list) do out[i] = { title = c.title:gsub("_", "\\_"), columns = c.columns, rows = c.rows } end
  return out
end

--- Writes the PNG. true, or nil and one line.
function curves.png(list, path, title)
  local ok, problem = pcall(figures.draw, curves.comparison(with_escapes(list), title:gsub("_", "\\_")), path)
  if ok then return true end
  if problem == "interrupted" then error(problem, 0) end
  return nil, one_line(problem)
end

--- The last panel drawn in characters, at most `width` wide and with the first four curves; or nil and one line.
function curves.text(list, width)
  local figure = curves.comparison(table.move(list, 1, math.min(#list, most_in_text), 1, {}), "")
  local panel = figure.panels[#figure.panels]
  local ok, out = pcall(figures.text, { name = "curves", title = panel.title, panels = { panel } }, width)
  if not ok then return nil, one_line(fault.of(out) and out.message or out) end
  return (out:gsub("[ \t]+\n", "\n"):gsub("^\n+", ""):gsub("\n+$", "\n"))
end

return curves
