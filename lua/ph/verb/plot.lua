--- `phrun plot RESULTS [FIGURE]`: draws the figures that a result file carries, or those of all run files of a
-- directory; of a directory also the figure "cells", made from its ledger.
--
-- Nothing but the results is read: no spec, no display. Without --to each figure is drawn as PNG, SVG and PDF.

local native = require "ph.native"
local cells_figure = require "ph.report.cells"
local fault = require "ph.util.fault"
local figures = require "ph.figure"

local verb = {}

--- Arguments of the verb.
function verb.arguments(parser)
  parser:argument("results"):argname "RESULTS":description "a result file (.h5) or a results directory"
  parser:argument("figure"):argname "FIGURE":args "?":description "one figure by its name; default: all"
  parser:option "--to":argname "FORMAT":description "png, svg, pdf or text (default: png, svg and pdf)"
  parser:option("--with"):argname "DIR":count "*"
    :description "figure 'cells': draw the cells of this results directory too"
  parser:option "--out":argname "DIR":description "where the pictures go (default: figures beside the results)"
end

local function run_files(path)
  local stat = native.stat(path)
  if not stat then fault.raise(fault.USAGE, "%s: no such file or directory", path) end
  if stat.kind == "file" then return { path }, (path:match "^(.*)/[^/]*$" or ".") end
  local dir, out = path:gsub("(.)/+$", "%1"), {}
  for _, below in ipairs { dir, dir .. "/runs" } do
    for _, name in ipairs(native.list_dir(below) or {}) do
      if name:find "%.h5$" then out[#out + 1] = below .. "/" .. name end
    end
  end
  return out, dir
end

--- The figure of a directory's ledger, and of those drawn with it; nil when there is none.
local function ledger_figure(dir, others)
  for _, other in ipairs(others or {}) do
    if not native.stat(other .. "/ledger.jsonl") then
      fault.raise(fault.USAGE, "%s: not a results directory (it has no ledger.jsonl)", other)
    end
  end
  if not native.stat(dir .. "/ledger.jsonl") then return nil end
  return cells_figure.figure(table.move(others or {}, 1, #(others or {}), 2, { dir }))
end

--- All figures of the files: list of { path, name } or { figure, name }, sorted by name.
local function collect(files, of_ledger)
  local found = {}
  if of_ledger then found[1] = { figure = of_ledger, name = of_ledger.name, path = "" } end
  for _, path in ipairs(files) do
    local file, problem = native.h5_read(path)
    if not file then fault.raise(fault.TAMPERED, "%s", problem) end
    for _, name in ipairs(figures.names(file)) do found[#found + 1] = { path = path, name = name } end
    file:close()
  end
  table.sort(found, function(a, b) return a.name < b.name or (a.name == b.name and a.path < b.path) end)
  for i = 2, #found do -- figures of one name get their file's name too
    if found[i].name == found[i - 1].name then found[i].several, found[i - 1].several = true, true end
  end
  return found
end

--- Sorted names, each once.
local function unique(names)
  local out = {}
  for _, name in ipairs(names) do
    if out[#out] ~= name then out[#out + 1] = name end
  end
  return out
end

local function chosen(found, name)
  if not name then return found end
  local out, names = {}, {}
  for _, f in ipairs(found) do
    names[#names + 1] = f.name
    if f.name == name or f.name == "fig" .. name then out[#out + 1] = f end
  end
  if #out == 0 then
    names = unique(names)
    fault.raise(fault.USAGE, "no figure '%s'%s", name,
      #names > 0 and string.format(" (there %s %s)", #names == 1 and "is" or "are", table.concat(names, ", ")) or "")
  end
  return out
end

local formats <const> = { png = { "png" }, svg = { "svg" }, pdf = { "pdf" }, text = { "text" } }

local function draw_one(f, wanted, dir)
  local figure = f.figure
  if not figure then
    local file <close> = assert(native.h5_read(f.path))
    figure = figures.read(file, f.name)
  end
  for _, kind in ipairs(wanted) do
    if kind == "text" then
      native.write(1, figure.title .. "\n\n" .. figures.text(figure, native.columns(1)) .. "\n")
    else
      local path = string.format("%s/%s%s.%s", dir, f.several and f.path:match "([^/]*)%.h5$" .. "-" or "", f.name,
        kind)
      figures.draw(figure, path)
      native.write(1, path .. "\n")
    end
  end
end

--- Draws; returns the exit code.
function verb.main(args)
  local wanted = args.to and formats[args.to] or { "png", "svg", "pdf" }
  if args.to and not formats[args.to] then fault.raise(fault.USAGE, "plot: --to %s: png, svg, pdf or text", args.to) end
  local files, base = run_files(args.results)
  local found = chosen(collect(files, ledger_figure(base, args.with)), args.figure)
  if #found == 0 then fault.raise(fault.USAGE, "%s: no figures in it", args.results) end
  local dir = args.out or base .. "/figures"
  if wanted[1] ~= "text" then
    local ok, problem = native.mkdir(dir)
    if not ok then fault.raise(fault.RUNTIME, "%s", problem) end
  end
  for _, f in ipairs(found) do draw_one(f, wanted, dir) end
  return 0
end

return verb
