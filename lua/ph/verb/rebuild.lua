--- `phrun rebuild DIR --from DIR2`: run files that are not in DIR are taken from DIR2, where the same runs were made
-- again, if every metric and the way they ended are what DIR's ledger says.
--
-- The ledger gets an event `rebuilt` with the new file's hash, the program and the machine that made it and its times;
-- the record, and how often the test set was opened, stay as they were.

local native = require "ph.native"
local compare = require "ph.run.compare"
local fault = require "ph.util.fault"
local evidence = require "ph.run.evidence"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"

local rebuild = {}

function rebuild.arguments(parser)
  parser:argument("dir"):argname "DIR":description "a results directory that lacks run files"
  parser:option "--from":argname "DIR2":description "a results directory in which the same runs were made again"
end

local function by_run(dir)
  local state = fault.check(fault.RUNTIME, ledger.read(dir))
  if state.missing then fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir) end
  if state.problem then fault.raise(fault.TAMPERED, "%s", state.problem) end
  local out = {}
  for _, record in ipairs(state.runs) do out[record.run] = record end
  return out
end

-- What made a run file: program, machine and times, from its provenance.
local function maker_of(run)
  local made = json.decode(run.file:text "/provenance") or {}
  return {
    program = string.format("%s (%s), arithmetic %d", tostring(made.version), tostring(made.commit),
      made.arithmetic or 1),
    machine = string.format("%s, %s", tostring(made.cpu), tostring(made.os)), seconds = run.record.seconds,
  }
end

-- Takes one run over. Returns nil, or why it cannot be.
local function take(store, from, record)
  local source = results.run_path(from, record.run)
  local run, problem = runfile.open(source)
  if not run then return problem end
  local different = compare.records(run.record, record)
  local event = maker_of(run)
  run.file:close()
  if different then return different end
  local target = results.run_path(store.dir, record.run)
  fault.check(fault.RUNTIME, native.write_file(target, fault.check(fault.RUNTIME, native.read_file(source))))
  event.event, event.run, event.label = "rebuilt", record.run, record.label
  event.file = { path = "runs/" .. record.run .. ".h5", sha256 = native.sha256_file(target) }
  fault.check(fault.RUNTIME, store:append(event))
end

local function rebuild_all(store, from)
  local theirs, taken, absent, refused = by_run(from), 0, 0, {}
  for _, record in ipairs(store.book.state.runs) do
    local twin = theirs[record.run]
    if ledger.closing[record.status] and evidence.of(store.dir, record) == "unbacked" then
      if not twin or evidence.of(from, twin) ~= "present" then
        absent = absent + 1
      else
        local problem = take(store, from, record)
        if problem then refused[#refused + 1] = record.label .. ": " .. problem else taken = taken + 1 end
      end
    end
  end
  return taken, absent, refused
end

function rebuild.main(args)
  local dir = args.dir:gsub("(.)/+$", "%1")
  if not args.from then fault.raise(fault.USAGE, "rebuild: --from DIR2 says where the runs were made again") end
  if not native.stat(ledger.path(dir)) then
    fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir)
  end
  local store, problem, kind = results.open(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  local ok, taken, absent, refused = pcall(rebuild_all, store, (args.from:gsub("(.)/+$", "%1")))
  store:release()
  if not ok then error(taken, 0) end
  for _, line in ipairs(refused) do native.write(1, "  " .. line .. "\n") end
  native.write(1, string.format("%s: %d run files rebuilt from %s, %d not there, %d refused\n", dir, taken, args.from,
    absent, #refused))
  return #refused == 0 and 0 or fault.NO
end

return rebuild
