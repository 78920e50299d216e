--- What a run prints while it works: one line when a candidate is trained, one when a cell is done, and the
-- machine-readable line of each record.

local native = require "ph.native"
local op_table = require "ph.schema.op_table"
local json = require "ph.util.json"
local tables = require "ph.util.tables"

local lines = {}

--- The line that `phrun recover` reads: every field of the record. Written to
-- standard output unless that is a terminal.
function lines.print_record(record)
  if native.isatty(1) then return end
  native.write(1, "run-record " .. json.encode(record) .. "\n")
end

local function best_value(one, outcome)
  if outcome.value == nil then return "no value" end
  if one.by:find "accuracy" then return string.format("%s %.2f%%", one.by, 100 * outcome.value) end
  return string.format("%s %.5g", one.by, outcome.value)
end

--- Where a run diverged and why: ", layer 3: inverse of a singular matrix", as far as it is known.
local function place(d)
  if not d.layer then return "" end
  local why = d.op and ": " .. (op_table.row(d.op).failure or d.op .. " is not finite") or ""
  return string.format(", layer %d%s", d.layer, why)
end

--- One line for a candidate that has been trained or has diverged.
function lines.trained_line(one, outcome)
  local d = outcome.diverged
  if d then
    return string.format("diverged  %s  at step %d (epoch %d)%s, last finite loss %s", one.short, d.step, d.epoch,
      place(d), d.last_loss and string.format("%.6g", d.last_loss) or "none")
  end
  return string.format("trained   %s  %s%d epochs in %s, best %s at epoch %s", one.short,
    outcome.ended_by == "patience" and "stopped early, " or "", outcome.epochs, tables.duration(outcome.seconds),
    best_value(one, outcome), tostring(outcome.best_epoch or "-"))
end

--- One line for the chosen run of a cell.
function lines.done_line(record, short)
  local m, time = record.metrics, tables.duration(record.seconds)
  local parts = { string.format("%-8s  %s  %d epochs in %s", record.status, short, record.epochs, time) }
  if m["val.accuracy"] then parts[#parts + 1] = string.format("val %.2f%%", 100 * m["val.accuracy"]) end
  if m["test.accuracy"] then parts[#parts + 1] = string.format("test %.2f%%", 100 * m["test.accuracy"])
  elseif m["test.loss"] then parts[#parts + 1] = string.format("test loss %.5g", m["test.loss"]) end
  if m.growth then parts[#parts + 1] = "growth " .. tables.ranged(m.growth, 2) end
  if m["grad.first"] then parts[#parts + 1] = string.format("grad.first %.3g", m["grad.first"]) end
  return table.concat(parts, "  ")
end

return lines
