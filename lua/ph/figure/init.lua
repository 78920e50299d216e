--- Figures: a table that says what to draw, its place in a result file, and gnuplot to draw it from that file alone.
--
--   figure = { name, title, panels = { panel, ... } }
--   panel  = { title, xlabel, ylabel, logx, logy, xmin, xmax, xnames, ymin, ymax, key, series = { series, ... } }
--   series = { label, style, data, axis, color }; data: a tensor (n, 2 or 3)
--   xnames = words in place of the marks 1, 2, ... of the x axis, separated by spaces
--   style  = "line" (x, y) | "points" (x, y) | "band" (x, low, high) | "steps" (x, y)
--            | "rule" (x or y alone, see `axis`)
--   text   = lines in place of panels: a table to be read
--
-- In HDF5: /figures/NAME/panelK/seriesJ with the words as attributes, or /figures/NAME/text. Colours are those of Okabe
-- and Ito, which people with any colour vision can tell apart; series also differ in dashes. No display is needed.

local native = require "ph.native"
local fault = require "ph.util.fault"
local kinds = require "ph.schema.kinds"

local figures = {}

local palette <const> = { "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000" }
local panel_keys <const> = {
  "title", "xlabel", "ylabel", "logx", "logy", "xmin", "xmax", "xnames", "ymin", "ymax", "key",
}
local series_keys <const> = { "label", "style", "axis", "color" }

-- ---- in a result file ----

local function attributes(items, path, from, keys)
  for _, key in ipairs(keys) do
    local v = from[key]
    if type(v) == "boolean" then v = v and 1 or 0 end
    if v ~= nil then items[#items + 1] = { path = path, attr = key, value = v } end
  end
end

--- Adds a figure to the items of native.h5_write.
function figures.add(items, figure)
  local base = "/figures/" .. figure.name
  if figure.text then items[#items + 1] = { path = base .. "/text", value = figure.text } end
  for k, panel in ipairs(figure.panels or {}) do
    local here = string.format("%s/panel%d", base, k)
    for j, series in ipairs(panel.series) do
      local path = string.format("%s/series%02d", here, j)
      items[#items + 1] = { path = path, value = series.data }
      attributes(items, path, series, series_keys)
    end
    attributes(items, here, panel, panel_keys)
  end
  items[#items + 1] = { path = base, attr = "title", value = figure.title }
end

--- Names of children of `path` that look like `pattern`, in order.
local function children(file, path, pattern)
  local out = {}
  for _, item in ipairs(file:list(path) or {}) do
    local name = item.path:sub(#path + 2)
    if not name:find "/" and name:find(pattern) then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

local function with_attributes(file, path, keys, into)
  for _, key in ipairs(keys) do
    local v = file:attr(path, key)
    if v ~= nil and (key:find "^log" or key == "key") then v = v == 1 end
    into[key] = v
  end
  return into
end

--- Names of the figures in a file: empty when it has none.
function figures.names(file)
  return file:kind "/figures" and children(file, "/figures", "^[%w_]+$") or {}
end

--- A figure back from a file.
function figures.read(file, name)
  local base = "/figures/" .. name
  local figure = { name = name, title = file:attr(base, "title"), panels = {} }
  if file:kind(base .. "/text") then figure.text = file:text(base .. "/text") end
  for k, panel in ipairs(children(file, base, "^panel%d+$")) do
    local here = base .. "/" .. panel
    local p = with_attributes(file, here, panel_keys, { series = {} })
    for j, series in ipairs(children(file, here, "^series%d+$")) do
      p.series[j] = with_attributes(file, here .. "/" .. series, series_keys,
        { data = file:tensor(here .. "/" .. series) })
    end
    figure.panels[k] = p
  end
  return figure
end

-- ---- as a gnuplot script ----

--- Text as gnuplot's string. gnuplot runs what stands between backticks: they become typographic.
local function quoted(text)
  return '"' .. tostring(text or ""):gsub("%c", " "):gsub("`", "\u{2018}"):gsub('[\\"]', "\\%0") .. '"'
end

local function number(v)
  if v ~= v or v == math.huge or v == -math.huge then return "NaN" end
  return string.format("%.9g", v)
end

local function data_block(name, t)
  local lines = { "$" .. name .. " << EOD" }
  for _, row in ipairs(t:totable()) do
    local cells = {}
    for i, v in ipairs(row) do cells[i] = number(v) end
    lines[#lines + 1] = table.concat(cells, " ")
  end
  lines[#lines + 1] = "EOD"
  return table.concat(lines, "\n")
end

local with <const> = {
  line = function(c, dash) return string.format("using 1:2 with lines lw 2 dt %d lc rgb '%s'", dash, c) end,
  points = function(c) return string.format("using 1:2 with points pt 7 ps 0.8 lc rgb '%s'", c) end,
  steps = function(c, dash) return string.format("using 1:2 with steps lw 2 dt %d lc rgb '%s'", dash, c) end,
  band = function(c)
    return string.format("using 1:2:3 with filledcurves fs transparent solid 0.25 noborder lc rgb '%s'", c)
  end,
  rule = function(c) return string.format("using 1:2 with lines lw 1 dt 3 lc rgb '%s'", c) end,
}

local function plot_line(k, panel)
  local parts, dash = {}, 0
  for j, s in ipairs(panel.series) do
    local style = with[s.style] or fault.raise(fault.RUNTIME, "figure: no style is called '%s'", tostring(s.style))
    local color = s.color and math.tointeger(s.color) or (j - 1) % #palette + 1
    local named = s.label and s.label ~= ""
    -- a line without a name goes with the one before
    if s.style == "line" and (named or dash == 0) then dash = dash % 5 + 1 end
    local label = named and "title " .. quoted(s.label) .. " noenhanced" or "notitle"
    parts[j] = string.format("$d%d_%d %s %s", k, j, style(palette[color], math.max(dash, 1)), label)
  end
  return "plot " .. table.concat(parts, ", \\\n     ")
end

local function range(low, high)
  return string.format("[%s:%s]", low and number(low) or "*", high and number(high) or "*")
end

--- Marks of the x axis: numbers, or the panel's names.
local function x_marks(panel)
  if not panel.xnames then return "set xtics autofreq" end
  local out = {}
  for name in panel.xnames:gmatch "%S+" do out[#out + 1] = quoted(name) .. " " .. #out + 1 end
  return "set xtics noenhanced (" .. table.concat(out, ", ") .. ")"
end

local function panel_script(k, panel, out)
  local power = panel.power or "10^{%L}"
  out[#out + 1] = panel.title and "set title " .. quoted(panel.title) .. " noenhanced" or "unset title"
  out[#out + 1] = "set xlabel " .. quoted(panel.xlabel) .. " noenhanced; set ylabel " .. quoted(panel.ylabel)
    .. " noenhanced"
  out[#out + 1] = (panel.logx and "set" or "unset") .. " logscale x; " .. (panel.logy and "set" or "unset")
    .. " logscale y"
  out[#out + 1] = 'set format x "' .. (panel.logx and power or "%g") .. '"; set format y "'
    .. (panel.logy and power or "%g") .. '"'
  out[#out + 1] = x_marks(panel)
  out[#out + 1] = "set xrange " .. range(panel.xmin, panel.xmax) .. "; set yrange " .. range(panel.ymin, panel.ymax)
  out[#out + 1] = panel.key == false and "unset key" or "set key tmargin center horizontal"
  out[#out + 1] = plot_line(k, panel)
end

--- The script that draws `figure` on a terminal: "set term ..." comes from `head`; the picture goes to standard output.
function figures.script(figure, head)
  local out, n = { head }, #figure.panels
  for k, panel in ipairs(figure.panels) do
    for j, s in ipairs(panel.series) do out[#out + 1] = data_block(string.format("d%d_%d", k, j), s.data) end
  end
  out[#out + 1] = "set border 3 lw 1 lc rgb '#555555'; set tics nomirror out; set grid lc rgb '#dddddd' lw 0.5"
  if n > 1 then
    local columns = n > 3 and 2 or n
    local title = quoted(figure.title):gsub('"$', '\\n "') -- an empty line keeps the legends clear of the title
    out[#out + 1] = string.format("set multiplot layout %d,%d title %s noenhanced", (n + columns - 1) // columns,
      columns, title)
  elseif not figure.panels[1].title then
    figure.panels[1].title = figure.title
  end
  for k, panel in ipairs(figure.panels) do panel_script(k, panel, out) end
  if n > 1 then out[#out + 1] = "unset multiplot" end
  return table.concat(out, "\n") .. "\n"
end

-- ---- drawing ----

--- Width and height of a figure in points.
local function size(figure)
  local n = #figure.panels
  local columns = n > 3 and 2 or math.max(n, 1)
  return 440 * columns, 340 * ((n + columns - 1) // columns) + (n > 1 and 30 or 0)
end

local terminals <const> = {
  png = function(w, h)
    return string.format("set term pngcairo enhanced size %d,%d font 'sans,11' background rgb 'white'", 1.5 * w // 1,
      1.5 * h // 1)
  end,
  svg = function(w, h)
    return string.format("set term svg enhanced size %d,%d font 'sans,12' background rgb 'white'", w, h)
  end,
  pdf = function(w, h)
    return string.format("set term pdfcairo enhanced size %.2fin,%.2fin font 'sans,9'", w / 80, h / 80)
  end,
}

local function run(script)
  local code, out, problem = native.popen({ "gnuplot" }, script)
  if not code then fault.raise(fault.RUNTIME, "gnuplot cannot be started: %s", out) end
  problem = problem or ""
  if code ~= 0 then fault.raise(fault.RUNTIME, "gnuplot: %s", (problem:gsub("%s*\n%s*", "; "))) end
  return out
end

--- A panel made of the lines of a text, so that a table can be a picture too.
local function text_script(figure, head)
  local lines, longest = {}, 0
  for line in figure.text:gmatch "[^\n]+" do
    lines[#lines + 1], longest = line, math.max(longest, utf8.len(line) or #line)
  end
  local out = {
    head, "unset border; unset tics; unset key; set xrange [0:1]; set yrange [0:1]",
    "set title " .. quoted(figure.title) .. " noenhanced",
  }
  for i, line in ipairs(lines) do
    out[#out + 1] = string.format("set label %d %s at 0, %.4f left noenhanced font 'monospace,%d'", i, quoted(line),
      1 - i / (#lines + 1), longest > 80 and 8 or 10)
  end
  out[#out + 1] = "plot NaN notitle"
  return table.concat(out, "\n") .. "\n"
end

--- Draws a figure to a file whose ending is .png, .svg or .pdf; it appears whole or not at all.
function figures.draw(figure, path)
  local kind = path:match "%.(%w+)$"
  local terminal = terminals[kind or ""]
  if not terminal then fault.raise(fault.USAGE, "%s: a figure is a .png, .svg or .pdf file", path) end
  local w, h = size(figure)
  if figure.text then w, h = 980, 440 end
  local head = terminal(w, h)
  local picture = run(figure.text and text_script(figure, head) or figures.script(figure, head))
  if picture == "" then fault.raise(fault.RUNTIME, "%s: gnuplot drew nothing", path) end
  fault.check(fault.RUNTIME, native.write_file(path, picture))
end

--- A panel for characters: names in the key stand apart, powers of ten have no markup.
local function panel_in_characters(panel)
  local out = setmetatable({ series = {}, power = "1e%L" }, { __index = panel })
  for j, s in ipairs(panel.series) do
    out.series[j] = setmetatable({ label = s.label and s.label ~= "" and "  " .. s.label or s.label }, { __index = s })
  end
  return out
end

--- A script in which colours have become characters: one for the lines of a colour, one for its points.
local function without_colours(script)
  local index = {}
  for i, c in ipairs(palette) do index[c] = i end
  script = script:gsub("lw %d dt %d lc rgb '(#%x+)'", function(c) return index[c] and "lt " .. index[c] end)
  return (script:gsub("pt 7 ps 0.8 lc rgb '(#%x+)'", function(c) return index[c] and "pt " .. index[c] end))
end

--- A figure as text of at most `columns` wide (default 80), one panel under the other, an empty line between.
function figures.text(figure, columns)
  columns = math.max(40, math.min(columns or 80, 200))
  if figure.text then return figure.text end
  local out = {}
  for k, panel in ipairs(figure.panels) do
    local one = { title = figure.title, panels = { panel_in_characters(panel) } }
    local text = run(
      without_colours(figures.script(one, string.format("set term dumb noenhanced mono size %d,20", columns))))
    out[k] = text:gsub("\f", ""):gsub("[ \t]+\n", "\n"):gsub("^\n+", ""):gsub("\n+$", "\n")
  end
  return table.concat(out, "\n")
end

-- ---- quick plots ----

local function column(v)
  if kinds.tag(v) == "ph.tensor" then return v:cast "f64" end
  if type(v) ~= "table" then error("plot: needs a tensor or a list of numbers, got " .. kinds.describe(v), 0) end
  if #v == 0 then error("plot: an empty list has nothing to draw", 0) end
  return native.from(v, "f64")
end

local function pairs_of(x, y)
  local n = y:count()
  if x and x:count() ~= n then error(string.format("plot: %d abscissas for %d values", x:count(), n), 0) end
  y = y:reshape { n }
  local data = native.tensor({ n, 2 }, "f64")
  for i = 1, n do
    data:put(x and x:reshape { n }:at(i) or i, i, 1)
    data:put(y:at(i), i, 2)
  end
  return data
end

--- plot(y), plot(x, y), plot(y, { file = "a.png", log = true, title = , xlabel =, ylabel = }): lines in the terminal,
-- or a file. A matrix gives one line a row.
function figures.plot(a, b, options)
  if type(b) == "table" and (b.file or b.log or b.title or b.xlabel or b.ylabel) then b, options = nil, b end
  options = options or {}
  local x, y = b and column(a) or nil, column(b or a)
  local series = {}
  if #y:shape() == 2 then
    for i = 1, math.min(y:shape()[1], 12) do
      series[i] = { style = "line", label = "row " .. i, data = pairs_of(x, y:index(1, i)) }
    end
  else
    series[1] = { style = "line", data = pairs_of(x, y) }
  end
  local panel = {
    xlabel = options.xlabel or "index", ylabel = options.ylabel or "value", logy = options.log == true,
    key = #series > 1, series = series,
  }
  local figure = { name = "plot", title = options.title or "", panels = { panel } }
  if not options.file then return figures.text(figure, native.columns(1)) end
  figures.draw(figure, options.file)
  return options.file
end

return figures
