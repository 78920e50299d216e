--- A results directory: where its files are, who may write to it, which runs are finished.
--
--   DIR/.lock  DIR/ledger.jsonl  DIR/runs/HASH.h5  DIR/checkpoints/HASH.h5
--
-- One program writes at a time (an advisory lock that a killed program gives up by itself); readers need no lock. Files
-- appear whole or not at all; what a killed program left half-written is removed by the next writer.

local native = require "ph.native"
local ledger = require "ph.run.ledger"

local results = {}

local Results = {}
Results.__index = Results

function results.run_path(dir, run) return dir .. "/runs/" .. run .. ".h5" end
function results.checkpoint_path(dir, run) return dir .. "/checkpoints/" .. run .. ".h5" end

--- Names of the files that this program writes aside and renames; what others left here is not ours to remove.
local own <const> = {
  "^%x+%.h5$", "^ledger%.jsonl$", "^registration%.json$", "^curves%.png$", "^report%.%a+$", "^ledger%-figure%.h5$",
  "^table%.md$",
}

local function remove_leftovers(dir)
  for _, name in ipairs(native.list_dir(dir) or {}) do
    local whole = name:match "^(.*)%.tmp%-%d+$"
    for _, pattern in ipairs(whole and own or {}) do
      if whole:find(pattern) then native.remove(dir .. "/" .. name) end
    end
  end
end

--- A worker whose parent was killed keeps the lock until it notices, a fraction of a second.
local function take_lock(dir)
  local lock, problem, code
  for _ = 1, 10 do
    lock, problem, code = native.lock(dir .. "/.lock")
    if lock then return lock end
    if code ~= "PH_E_LOCKED" then break end
    native.sleep(0.1)
  end
  if code == "PH_E_LOCKED" then return nil, dir .. ": another phrun is writing here (" .. problem .. ")" end
  return nil, problem
end

--- Opens a directory for writing: makes it, takes its lock, opens its ledger.
-- Returns the object, or nil, one line, and "tampered" when the ledger's chain is broken.
function results.open(dir)
  for _, path in ipairs { dir, dir .. "/runs", dir .. "/checkpoints" } do
    local ok, problem = native.mkdir(path)
    if not ok then return nil, problem end
  end
  local lock, problem = take_lock(dir)
  if not lock then return nil, problem end
  for _, path in ipairs { dir, dir .. "/runs", dir .. "/checkpoints" } do remove_leftovers(path) end
  local book, why, kind = ledger.open(dir)
  if not book then
    lock:release()
    return nil, why, kind
  end
  return setmetatable({ dir = dir, lock = lock, book = book, records = {}, by_key = {} }, Results)
    :index(book.state.runs)
end

--- Reads a directory without locking it; `dry run` and `check` use it. Same queries, no writing.
function results.peek(dir)
  local state, problem = ledger.read(dir)
  if not state then return nil, problem end
  if state.problem then return nil, state.problem, "tampered" end
  return setmetatable({ dir = dir, records = {}, by_key = {} }, Results):index(state.runs)
end

--- Whether a record closes its run.
function results.closed(record)
  return ledger.closing[record.status] == true
end

function Results:index(records)
  for _, record in ipairs(records) do
    self.records[record.run] = record
    if record.label then self.by_key[record.label] = record end
  end
  return self
end

--- The record of a finished run (done or diverged, its file present and not empty), else nil.
function Results:finished(run)
  local record = self.records[run]
  if not record or not ledger.closing[record.status] then return nil end
  local found = native.stat(results.run_path(self.dir, run))
  return found and (found.kind ~= "file" or found.size > 0) and record or nil
end

--- The last record of the same cell under another hash, which explains why a run is new.
function Results:earlier(label, run)
  local record = self.by_key[label]
  if record and record.run ~= run then return record end
end

--- Whether another run of the cell is marked as chosen (another candidate, or the cell's earlier meaning).
function Results:rivals(cell_label, run)
  for _, record in pairs(self.records) do
    if record.cell_label == cell_label and record.run ~= run and record.chosen then return true end
  end
  return false
end

--- Marks the chosen run of a cell in the index; the ledger has it as an event "selected".
function Results:choose(cell_label, run)
  for _, record in pairs(self.records) do
    if record.cell_label == cell_label then record.chosen = record.run == run end
  end
end

function Results:append(event)
  return self.book:append(event)
end

--- Takes a record into the index and the ledger. `kind` is the event's name.
function Results:close_run(kind, record, file)
  local plain = {}
  for k, v in pairs(record) do plain[k] = v end
  plain.file = nil
  local ok, problem = self.book:append { event = kind, run = record.run, record = plain, file = file }
  if not ok then return nil, problem end
  self:index { record }
  return true
end

function Results:release()
  if self.lock then self.lock:release() end
  self.lock = nil
end

return results
