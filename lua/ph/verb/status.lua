--- `phrun status DIR [--json]`: what a results directory holds. Reads only; never disturbs a program that writes there.

local native = require "ph.native"
local fault = require "ph.util.fault"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local results = require "ph.run.results"
local summary = require "ph.run.summary"
local tables = require "ph.util.tables"

local status = {}

function status.arguments(parser)
  parser:argument("dir"):argname "DIR":description "a results directory"
  parser:flag "--json":description "the same as one JSON object"
end

--- Runs that were started and have no closing record: list of { run, label, reason }, in order.
function status.open_runs(state)
  local closed, order, seen = {}, {}, {}
  for _, r in ipairs(state.runs) do closed[r.run] = ledger.closing[r.status] end
  for _, e in ipairs(state.events) do
    if e.event == "started" and not closed[e.run] and not seen[e.run] then
      seen[e.run] = true
      order[#order + 1] = { run = e.run, label = e.label }
    end
  end
  return order
end

local function counts_of(state)
  local counts = {}
  for _, r in ipairs(state.runs) do counts[r.status] = (counts[r.status] or 0) + 1 end
  return counts
end

local function last_opened(state)
  for i = #state.events, 1, -1 do
    if state.events[i].event == "opened" then return state.events[i] end
  end
  return {}
end

--- Everything as plain data.
function status.collect(dir)
  if not native.stat(dir) then fault.raise(fault.RUNTIME, "%s: no such directory", dir) end
  local state = fault.check(fault.RUNTIME, ledger.read(dir))
  if state.missing then fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir) end
  local opened = last_opened(state)
  return {
    dir = dir, spec = opened.spec, spec_hash = opened.spec_hash, planned = opened.planned, events = #state.events,
    counts = counts_of(state),
    chain_ok = state.chain_ok, problem = state.problem, torn = state.torn, runs = json.list(state.runs),
    unfinished = json.list(status.open_runs(state)),
    arithmetic = json.list(ledger.arithmetics(state.runs)), mixed = ledger.mixed(state.runs),
  }
end

local function count_text(counts)
  local out = {}
  for _, name in ipairs { "done", "diverged", "failed", "killed" } do
    if counts[name] then out[#out + 1] = counts[name] .. " " .. name end
  end
  return #out > 0 and table.concat(out, ", ") or "no run has ended"
end

local function accuracy(r, name)
  local v = r.metrics and r.metrics[name]
  return v and tables.fixed(100 * v, 1) or "-"
end

local function run_rows(data)
  local rows = {}
  for i, r in ipairs(data.runs) do
    local metrics = r.metrics or {}
    rows[i] = {
      r.run, r.label, r.status .. (r.recovered and " (recovered)" or ""), r.chosen and "*" or "",
      r.epochs and tostring(r.epochs) or "-", accuracy(r, "val.accuracy"), accuracy(r, "test.accuracy"),
      tables.ranged(metrics.growth, 2), tables.fixed(r.seconds, 1), (r.spec_hash or "-"):sub(1, 8), r.reason or "",
    }
  end
  return rows
end

--- How many runs have ended, of how many; a directory may hold runs of earlier plans too.
local function progress_text(data)
  local text = count_text(data.counts)
  if not data.planned then return text end
  if #data.runs <= data.planned then
    return string.format("%s of %d planned run%s", text, data.planned, data.planned == 1 and "" or "s")
  end
  return string.format("%s; the last start planned %d", text, data.planned)
end

local function text_of(data)
  local out = {
    string.format("%s: %s (spec %s), %s", data.dir, data.spec or "?", (data.spec_hash or "?"):sub(1, 8),
      progress_text(data)), "",
  }
  local headers = {
    "run", "cell", "status", "chosen", "epochs", "val acc %", "test acc %", "growth", "seconds", "spec", "",
  }
  for _, line in ipairs(tables.render(headers, run_rows(data))) do out[#out + 1] = line end
  for _, u in ipairs(data.unfinished) do
    local kept = native.stat(results.checkpoint_path(data.dir, u.run))
    out[#out + 1] = string.format("  %s  %s  unfinished%s", u.run, u.label, kept and ", has a checkpoint" or "")
  end
  local cells = summary.lines(data.runs)
  if cells then
    out[#out + 1] = ""
    table.move(cells, 1, #cells, #out + 1, out)
  end
  if data.mixed then out[#out + 1] = data.mixed end
  if data.torn > 0 then
    out[#out + 1] = string.format(
      "the last line of the ledger was cut short by a crash (%d bytes); the next run removes it", data.torn)
  end
  if data.problem then out[#out + 1] = "BROKEN LEDGER: " .. data.problem end
  return table.concat(out, "\n") .. "\n"
end

function status.main(args)
  local data = status.collect((args.dir:gsub("(.)/+$", "%1")))
  native.write(1, args.json and json.encode(data) .. "\n" or text_of(data))
  return data.chain_ok and 0 or fault.TAMPERED
end

return status
