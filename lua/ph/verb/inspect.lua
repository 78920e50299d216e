--- `phrun inspect SPEC --program [key=value ...]` prints compiled programs; `phrun
-- inspect RUN.h5` the contents of a run file.

local native = require "ph.native"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local json = require "ph.util.json"
local options = require "ph.verb.options"
local runfile = require "ph.run.runfile"
local sorted_keys = require "ph.util.sorted_keys"
local tables = require "ph.util.tables"

local inspect = {}

function inspect.arguments(parser)
  parser:argument("spec"):argname "FILE":description "a spec (with --program or --ir) or a run file"
  parser:argument("overrides"):argname "key=value":args "*":description "which cells of the spec"
  parser:flag "--program":hidden_name "--plan":description "print the compiled program of each model"
  parser:flag "--ir":description "print the canonical text of each model"
  parser:option("-t --threads"):argname "N":default "1":convert(tonumber)
    :description "threads the program is compiled for"
end

--- One cell of every model.
local function models(args)
  local out, seen = {}, {}
  for _, cell in ipairs(job.cells(options.load(args))) do
    local one = cell.jobs[1]
    if not seen[one.ir] then out[#out + 1] = one end
    seen[one.ir] = true
  end
  return out
end

local function print_spec(args)
  if not args.program and not args.ir then fault.raise(fault.USAGE, "inspect: a spec needs --program or --ir") end
  for _, one in ipairs(models(args)) do
    native.write(1, "== " .. one.cell_label .. "\n")
    if args.ir then native.write(1, one.ir) end
    if args.program then
      local plan = fault.check(fault.USAGE, native.plan(one.ir, { batch = one.protocol.batch, threads = args.threads }))
      native.write(1, plan:describe() .. "\n")
      plan:close()
    end
  end
  return 0
end

local function print_history(run)
  local history = run.file:tensor "/history"
  if history:shape()[1] == 0 then return end
  local rows = {}
  for i, row in ipairs(history:totable()) do
    rows[i] = {}
    for k, v in ipairs(row) do rows[i][k] = json.number(tonumber(string.format("%.6g", v))) end
  end
  native.write(1, "history\n" .. table.concat(tables.render(run.columns, rows), "\n") .. "\n\n")
end

local function print_metrics(metrics)
  local names, rows = sorted_keys(metrics), {}
  for i, name in ipairs(names) do rows[i] = { name, string.format("%.6g", metrics[name]) } end
  native.write(1, table.concat(tables.render({ "metric", "value" }, rows), "\n") .. "\n\n")
end

local function content_row(file, item)
  if item.kind == "text" then return { item.path, "text", tables.bytes(#file:text(item.path)) } end
  local t <close> = file:tensor(item.path)
  local n = t:count()
  return {
    item.path, t:dtype() .. " (" .. table.concat(t:shape(), ", ") .. ")",
    n > 0 and string.format("%.4g .. %.4g", t:min(), t:max()) or "",
  }
end

--- Everything below a path, depth first, in name order.
local function walk(file, path, rows)
  for _, item in ipairs(file:list(path)) do
    if item.kind ~= "group" then rows[#rows + 1] = content_row(file, item) end
  end
  return rows
end

local function print_run(path)
  local run, problem = runfile.open(path)
  if not run then fault.raise(native.stat(path) and fault.TAMPERED or fault.USAGE, "%s", problem) end
  local r = run.record
  native.write(1, string.format("%s  %s  %s%s\n\n", r.run, r.label, r.status, r.chosen and " (chosen)" or ""))
  print_metrics(r.metrics or {})
  print_history(run)
  native.write(1, table.concat(tables.render({ "path", "contents", "range" }, walk(run.file, "/", {})), "\n") .. "\n")
  run.file:close()
  return 0
end

function inspect.main(args)
  if args.spec:find "%.h5$" then return print_run(args.spec) end
  return print_spec(args)
end

return inspect
