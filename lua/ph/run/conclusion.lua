--- The end of a run as a person reads it: the table of cells, the confusion tables and the picture.

local native = require "ph.native"
local curves = require "ph.figure.curves"
local job = require "ph.run.job"
local ledger = require "ph.run.ledger"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"
local summary = require "ph.run.summary"
local tables = require "ph.util.tables"

local conclusion = {}

local most_tables <const> = 4

local function chosen_records(store, cells)
  local out, open = {}, 0
  for _, cell in ipairs(cells) do
    local found
    for _, one in ipairs(cell.jobs) do
      local record = store.records[one.run]
      if record and record.chosen and results.closed(record) then found = record end
    end
    if found then out[#out + 1] = found else open = open + 1 end
  end
  return out, open
end

local function curve_of(store, record, varying)
  local run = runfile.open(results.run_path(store.dir, record.run))
  if not run then return nil end
  local history = run.file:tensor "/history"
  local rows = history:shape()[1] > 0 and history:totable() or {}
  run.file:close()
  return { title = job.short_label(record, varying), columns = run.columns, rows = rows }
end

local function print_picture(store, experiment, records, changed)
  local list, varying = {}, job.varying(records)
  for i = 1, math.min(#records, 48) do list[#list + 1] = curve_of(store, records[i], varying) end
  list = curves.pick(list)
  if #list == 0 then return end
  local path = store.dir .. "/curves.png"
  if changed or not native.stat(path) then
    local ok, problem = curves.png(list, path, experiment.name)
    if not ok then
      native.write(1, problem .. "\n")
      return
    end
  end
  native.write(1, (curves.text(list, math.min(native.isatty(1) and native.columns(1) or 80, 100) - 1) or "") .. "\n")
  native.write(1,
    "picture: " .. path .. (#list < #records and string.format(" (the first %d of %d curves)", #list, #records) or "")
      .. "\n")
end

local function print_confusion(item)
  local n = #item.table
  local headers, rows = { "label" }, {}
  for c = 1, n do headers[c + 1] = tostring(c - 1) end
  for r = 1, n do
    rows[r] = { tostring(r - 1) }
    for c = 1, n do rows[r][c + 1] = item.table[r][c] == 0 and "." or tostring(item.table[r][c]) end
  end
  native.write(1,
    "confusion on the test set, label by answer: " .. item.label .. "\n"
      .. table.concat(tables.render(headers, rows), "\n") .. "\n\n")
end

--- The end of a run.
function conclusion.print(store, experiment, cells, session)
  local records, open = chosen_records(store, cells)
  local lines, many = summary.lines(records, true)
  native.write(1, "\n")
  if session.closed == 0 and session.failures == 0 then
    native.write(1,
      string.format("all %d runs of %s are already done: same model, task, data, protocol and measures\n\n",
        session.skipped, experiment.name))
  end
  if lines then
    native.write(1,
      experiment.name .. (many and " (mean ± sample standard deviation over the seeds)" or "") .. "\n"
        .. table.concat(lines, "\n") .. "\n\n")
  end
  local mixed = ledger.mixed(records)
  if mixed then native.write(1, "note: " .. mixed .. "\n\n") end
  if #session.confusions <= most_tables then
    for _, item in ipairs(session.confusions) do print_confusion(item) end
  end
  print_picture(store, experiment, records, session.closed > 0)
  if session.failures > 0 then
    native.write(1, string.format("%d failed; see above, and: phrun status %s\n", session.failures, store.dir))
  end
  if open > 0 and session.failures == 0 then native.write(1, string.format("%d cells have no result\n", open)) end
  native.write(1, "results: " .. store.dir .. "\n")
end

return conclusion
