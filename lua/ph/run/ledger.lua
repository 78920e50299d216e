--- The ledger of a results directory: ledger.jsonl, one event a line, never
-- rewritten, each line chained to the one before.
--
-- A line is the canonical JSON of the event with a last field "hash": the SHA-256 of the line without that field.
-- "prev" is the hash of the line before ("" in the first), "n" counts lines from 1. A line that a crash cut short is
-- recognised (no line end, or no valid hash on the very last line), left out by readers, and cut off by the next
-- writer, who notes it with an event "cut".

local native = require "ph.native"
local json = require "ph.util.json"

local ledger = {}

--- Statuses that close a run: a later program does not run it again.
ledger.closing = { done = true, diverged = true }
--- Events that carry the whole record of a run.
ledger.carries_record = {
  done = true, diverged = true, failed = true, killed = true, recovered = true, measured = true,
}
--- Events that change what the file of a run that has ended should be.
ledger.changes_file = { pruned = true, rebuilt = true }

local tail <const> = '^(.*),"hash":"(%x+)"}$'

function ledger.path(dir)
  return dir .. "/ledger.jsonl"
end

--- The line of an event (without line end) and its hash. `event` must not have the fields n, prev, hash, time yet.
function ledger.line(event, n, prev, time)
  local full = { n = n, prev = prev, time = time }
  for k, v in pairs(event) do full[k] = v end
  local text = json.encode(full)
  local hash = native.sha256(text)
  return text:sub(1, -2) .. ',"hash":"' .. hash .. '"}', hash
end

local function check_line(line, n, prev)
  local head, hash = line:match(tail)
  if not head then return nil, "is not a ledger line" end
  if native.sha256(head .. "}") ~= hash then return nil, "was changed: its hash does not fit its text" end
  local event, problem = json.decode(line)
  if not event then return nil, "is not JSON: " .. problem end
  if event.prev ~= prev then return nil, "does not follow the line before: a line was removed, added or moved" end
  if event.n ~= n then return nil, string.format("has number %s", tostring(event.n)) end
  return event, hash
end

--- Reads the events of a ledger's text. Returns { events, last (hash), bytes (length of the sound part), torn (bytes
-- cut off by a crash), problem (nil when the chain is whole) }.
function ledger.parse(text)
  local out = { events = {}, last = "", bytes = 0, torn = 0 }
  local at = 1
  while at <= #text do
    local stop = text:find("\n", at, true)
    local event, hash = check_line(text:sub(at, (stop or #text + 1) - 1), #out.events + 1, out.last)
    local is_last = not stop or stop == #text
    if not event and is_last and not stop then
      out.torn = #text - at + 1
      break
    elseif not event then
      out.problem = string.format("line %d %s", #out.events + 1, hash)
      break
    end
    out.events[#out.events + 1], out.last = event, hash
    out.bytes = stop or #text
    out.open_end = not stop
    at = out.bytes + 1
  end
  return out
end

-- A ledger that is older than the version of the arithmetic was written by its first.
local function record_of(event)
  local record = event.record
  record.arithmetic = event.arithmetic or 1
  record.file = event.file
  record.recovered = event.event == "recovered" or nil
  return record
end

-- An event after the run's end that says what its file is from then on.
local function take_file(record, event)
  record.file = event.file
  record.pruned = event.event == "pruned" and { whole = event.whole } or nil
  if event.event == "rebuilt" then record.rebuilt = { program = event.program, time = event.time } end
end

local function last_records(events)
  local order, by_run = {}, {}
  for _, event in ipairs(events) do
    if event.run and ledger.carries_record[event.event] then
      if not by_run[event.run] then order[#order + 1] = event.run end
      by_run[event.run] = record_of(event)
    elseif ledger.changes_file[event.event] and by_run[event.run] then
      take_file(by_run[event.run], event)
    elseif event.event == "selected" then
      for _, record in pairs(by_run) do
        if record.cell_label == event.label then record.chosen = record.run == event.run end
      end
    end
  end
  local runs = {}
  for i, run in ipairs(order) do runs[i] = by_run[run] end
  return runs
end

--- Reads a directory's ledger. Returns { events, runs, chain_ok, problem, torn, last, bytes }; `runs` has the last
-- record of each run in the order in which the runs first ended. A directory without ledger gives an empty one. nil and
-- a message when the file cannot be read.
function ledger.read(dir)
  local path = ledger.path(dir)
  if not native.stat(path) then
    return { events = {}, runs = {}, chain_ok = true, torn = 0, last = "", bytes = 0, missing = true }
  end
  local text, problem = native.read_file(path)
  if not text then return nil, problem end
  local out = ledger.parse(text)
  out.chain_ok = out.problem == nil
  if out.problem then out.problem = path .. ": " .. out.problem end
  out.runs = last_records(out.events)
  return out
end

--- Versions of the arithmetic under which the runs that ended were made: a sorted list. A record that is not from a
-- ledger was made by this program.
function ledger.arithmetics(records)
  local seen, out = {}, {}
  for _, record in ipairs(records) do
    local version = record.arithmetic or native.arithmetic
    if ledger.closing[record.status] and not seen[version] then
      seen[version] = true
      out[#out + 1] = version
    end
  end
  table.sort(out)
  return out
end

--- One sentence when records of several arithmetics stand in one table, else nil.
function ledger.mixed(records)
  local versions = ledger.arithmetics(records)
  if #versions < 2 then return nil end
  return string.format("runs with arithmetic %s are compared: they differ by rounding too",
    table.concat(versions, " and "))
end

local writer = {}
writer.__index = writer

--- Opens a ledger for appending (the caller holds the directory's lock). Cuts off what a crash left of a last line.
-- Returns a writer with `state` as from `ledger.read`, or nil, message, and "tampered" when the chain is broken.
function ledger.open(dir)
  local state, problem = ledger.read(dir)
  if not state then return nil, problem end
  if state.problem then return nil, state.problem, "tampered" end
  local self = setmetatable({ path = ledger.path(dir), state = state, n = #state.events, prev = state.last }, writer)
  if state.torn > 0 or state.open_end then
    local text = native.read_file(self.path)
    local ok, why = native.write_file(self.path, text:sub(1, state.bytes) .. (state.open_end and "\n" or ""))
    if not ok then return nil, why end
    if state.torn > 0 then
      ok, why = self:append { event = "cut", bytes = state.torn }
      if not ok then return nil, why end
    end
  end
  return self
end

--- Appends one event with the version of the arithmetic; on disk when it returns true. nil and a message
-- otherwise (full disk, read-only).
function writer:append(event)
  event.arithmetic = native.arithmetic
  local line, hash = ledger.line(event, self.n + 1, self.prev, native.date(native.time()))
  local ok, problem = native.append_line(self.path, line)
  if not ok then return nil, problem end
  self.n, self.prev = self.n + 1, hash
  return true
end

return ledger
