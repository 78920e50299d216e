--- `phrun recover LOG --out DIR`: rebuilds a ledger from a run's log, from its lines "run-record {json}".
--
-- Every event of such a ledger is `recovered`; nothing ever takes the mark away, and a verdict over it says
-- so first. The log carries what the runs printed, so weights and profiles stay lost. Truncated lines
-- and lines without a record are reported and skipped. Of several records of a run the last counts; two with
-- the same end but different numbers are reported.

local native = require "ph.native"
local fault = require "ph.util.fault"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local results = require "ph.run.results"

local recover = {}

local mark <const> = "run%-record "
local needed <const> = { "run", "label", "status", "cell", "metrics" }

function recover.arguments(parser)
  parser:argument("log"):argname "LOG":description "what `phrun run` printed"
  parser:option("--out"):argname "DIR"
    :description "where the ledger goes (required); a registration.json that is already there is kept"
end

local function record_of(text)
  local record, problem = json.decode(text)
  if type(record) ~= "table" then return nil, problem or "not a record" end
  for _, key in ipairs(needed) do
    if record[key] == nil then return nil, "has no '" .. key .. "'" end
  end
  return record
end

local function contradicts(a, b)
  return a.status == b.status and ledger.closing[a.status] and json.encode(a.metrics) ~= json.encode(b.metrics)
end

--- The records in a log's text, the last of each run, in order of first appearance. Returns { records, problems
-- (lines), left_out = number of lines }.
function recover.parse(text)
  local out, by_run, n = { records = {}, problems = {}, left_out = 0 }, {}, 0
  local function tell(format, ...) out.problems[#out.problems + 1] = string.format("line %d: " .. format, n, ...) end
  for line in (text:gsub("\r", "\n") .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    local _, stop = line:find(mark)
    local record, problem = nil, nil
    if stop then record, problem = record_of(line:sub(stop + 1)) end
    if record then
      local slot = by_run[record.run] or #out.records + 1
      if out.records[slot] and contradicts(out.records[slot], record) then
        tell("%s: numbers differ from earlier; these count", record.label)
      end
      by_run[record.run], out.records[slot] = slot, record
    elseif stop then
      out.left_out = out.left_out + 1
      tell("%s; left out", problem)
    end
  end
  return out
end

local function fresh_store(dir)
  if native.stat(ledger.path(dir)) then
    local state = fault.check(fault.RUNTIME, ledger.read(dir))
    if #state.events > 0 or state.problem then
      fault.raise(fault.RUNTIME, "%s already has a ledger; a recovered one needs its own directory (--out)",
        dir)
    end
  end
  local store, problem, kind = results.open(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  return store
end

local function write(store, records, log, sha)
  for _, record in ipairs(records) do
    local ok, problem = store:append {
      event = "recovered", run = record.run, record = record, log = log, log_sha256 = sha,
    }
    if not ok then
      store:release()
      fault.raise(fault.RUNTIME, "%s", problem)
    end
  end
  store:release()
end

function recover.main(args)
  if not args.out then fault.raise(fault.USAGE, "recover: a directory must be given: --out DIR") end
  local text = fault.check(fault.RUNTIME, native.read_file(args.log))
  local found = recover.parse(text)
  for _, problem in ipairs(found.problems) do native.write(2, args.log .. ": " .. problem .. "\n") end
  if #found.records == 0 then fault.raise(fault.RUNTIME, "%s: no line 'run-record {...}' in it", args.log) end
  local dir = args.out:gsub("(.)/+$", "%1")
  write(fresh_store(dir), found.records, args.log, native.sha256(text))
  native.write(1,
    string.format("%s: %d runs recovered from %s, %d lines left out; permanently marked as recovered\n", dir,
      #found.records, args.log, found.left_out))
  return #found.problems > 0 and fault.RUNTIME or 0
end

return recover
