--- Training curves by gnuplot: a PNG in the results directory and a drawing in characters for the terminal.
--
-- A curve is { title, columns (names), rows }. Without gnuplot there is no picture, and a line says so.

local native = require "ph.native"

local curves = {}

--- Colours that readers with any colour vision tell apart (Okabe and Ito).
local palette <const> = { "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999" }
local most_curves <const> = 12

local function column_index(columns, name)
  for i, c in ipairs(columns) do
    if c == name then return i end
  end
end

local function cell_text(v)
  return v == v and math.abs(v) ~= math.huge and string.format("%.9g", v) or "NaN"
end

--- gnuplot text of the data blocks $c1, $c2, ...
local function blocks(list)
  local out = {}
  for i, curve in ipairs(list) do
    out[#out + 1] = string.format("$c%d << EOD", i)
    for _, row in ipairs(curve.rows) do
      local cells = {}
      for k, v in ipairs(row) do cells[k] = cell_text(v) end
      out[#out + 1] = table.concat(cells, " ")
    end
    out[#out + 1] = "EOD"
  end
  return table.concat(out, "\n") .. "\n"
end

local function quote(text)
  return '"' .. text:gsub('[\\"]', "\\%0") .. '"'
end

local function plot_command(list, name, style)
  local parts = {}
  for i, curve in ipairs(list) do
    local column = column_index(curve.columns, name)
    if column then parts[#parts + 1] = string.format("$c%d using 1:%d %s title %s", i, column, style(i), quote(curve.title)) end
  end
  return "plot " .. table.concat(parts, ", ") .. "\n"
end

local function has_column(list, name)
  return #list > 0 and column_index(list[1].columns, name) ~= nil
end

local function png_script(list, path, title)
  local function style(i) return string.format("with lines lw 2 lc rgb '%s' dt %d", palette[(i - 1) % #palette + 1], (i - 1) // #palette + 1) end
  local two = has_column(list, "val.accuracy")
  local out = { blocks(list), string.format("set terminal pngcairo size %d,480 font 'sans,11'\nset output %s\n", two and 1200 or 700, quote(path)),
    "set grid lc rgb '#dddddd'\nset key noenhanced bottom right\nset xlabel 'epoch'\nset border 3\nset tics nomirror\n",
    two and string.format("set multiplot layout 1,2 title %s noenhanced\n", quote(title)) or string.format("set title %s noenhanced\n", quote(title)),
    "set ylabel 'training loss'\nset logscale y\nset key top right\n", plot_command(list, "train.loss", style) }
  if two then out[#out + 1] = "unset logscale y\nset ylabel 'validation accuracy'\nset key bottom right\n" .. plot_command(list, "val.accuracy", style) .. "unset multiplot\n" end
  return table.concat(out)
end

local function text_script(list, width, height, color)
  local name = has_column(list, "val.accuracy") and "val.accuracy" or "val.loss"
  return blocks(list) .. string.format("set terminal dumb size %d,%d %s noenhanced\nset key below\nset border 3\nset tics nomirror\nset title '%s by epoch'\n", width, height, color and "ansi256" or "mono",
    name == "val.accuracy" and "validation accuracy" or "validation loss") .. plot_command(list, name, function() return "with lines" end)
end

local function gnuplot(script)
  local code, out, problem = native.popen({ "gnuplot" }, script)
  if code == 0 then return out end
  if code == nil then return nil, "no picture: gnuplot is not installed (apt-get install gnuplot-nox)" end
  return nil, "no picture: gnuplot: " .. ((problem or ""):match "[^\n]*%S[^\n]*" or "failed")
end

--- The curves that fit into one picture: those with rows, the first twelve.
function curves.pick(list)
  local out = {}
  for _, curve in ipairs(list) do
    if #curve.rows > 0 and #out < most_curves then out[#out + 1] = curve end
  end
  return out
end

--- Writes the PNG. true, or nil and one line.
function curves.png(list, path, title)
  local out, problem = gnuplot(png_script(list, path, title))
  return out ~= nil, problem
end

--- The drawing as text of at most `width` columns, or nil and one line. color: for a terminal that has some.
function curves.text(list, width, height, color)
  local out, problem = gnuplot(text_script(list, width, height, color))
  if not out then return nil, problem end
  return (out:gsub("\f", ""):gsub("[ \t]+\n", "\n"):gsub("^\n+", ""):gsub("\n+$", "\n"))
end

return curves
