--- `phrun prune DIR [--keep-chosen]`: drops the weights of run files and records what was dropped. Histories, profiles,
-- metrics and tables stay; a pruned run is done as before, and counts as evidence.

local native = require "ph.native"
local fault = require "ph.util.fault"
local ledger = require "ph.run.ledger"
local pruning = require "ph.run.prune"
local results = require "ph.run.results"

local prune = {}

function prune.arguments(parser)
  parser:argument("dir"):argname "DIR":description "a results directory that nobody writes to"
  parser:flag "--keep-chosen":description "keep the weights of the runs that selection chose"
end

local function megabytes(bytes) return string.format("%.1f MB", bytes / 1e6) end

--- Prunes what can be pruned of an open directory. Returns numbers of runs pruned and kept, and the bytes gained.
function prune.all(store, keep_chosen)
  local pruned, kept, gained = 0, 0, 0
  for _, record in ipairs(store.book.state.runs) do
    local here = ledger.closing[record.status] and native.stat(results.run_path(store.dir, record.run))
    if here and keep_chosen and record.chosen then
      kept = kept + 1
    elseif here then
      local bytes = pruning.run(store, record)
      pruned, gained = pruned + (bytes and 1 or 0), gained + (bytes or 0)
    end
  end
  return pruned, kept, gained
end

function prune.main(args)
  local dir = args.dir:gsub("(.)/+$", "%1")
  if not native.stat(ledger.path(dir)) then
    fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir)
  end
  local store, problem, kind = results.open(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  local ok, pruned, kept, gained = pcall(prune.all, store, args.keep_chosen)
  store:release()
  if not ok then error(pruned, 0) end
  native.write(1, string.format("%s: the weights of %d run%s dropped, %s gained%s\n", dir, pruned,
    pruned == 1 and "" or "s", megabytes(gained), kept > 0 and string.format("; %d kept", kept) or ""))
  return 0
end

return prune
