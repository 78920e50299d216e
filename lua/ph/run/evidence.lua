--- What backs a run of the ledger: its file, what is left of it, or nothing.
--
--   present    the file is what the ledger says, byte for byte
--   pruned     weights were dropped on purpose (`phrun prune`); the ledger holds their digests and that of the rest
--   unbacked   no file is here; the ledger alone speaks for the run
--   tampered   a file is here and is not what the ledger says
--
-- A program that was killed in the middle of pruning leaves the whole file or what is left of it; both are known by
-- their hashes.

local native = require "ph.native"
local results = require "ph.run.results"

local evidence = {}

evidence.states = { "present", "pruned", "unbacked", "tampered" }

--- The state of a run that has ended, and what is wrong when it is "tampered".
function evidence.of(dir, record)
  local path = results.run_path(dir, record.run)
  if not native.stat(path) then return "unbacked" end
  if not record.file then return "tampered", "the ledger names no file for it" end
  local sha = native.sha256_file(path)
  if sha == record.file.sha256 then return record.pruned and "pruned" or "present" end
  if record.pruned and sha == record.pruned.whole then return "present" end
  return "tampered", "its file " .. path .. " was changed since it was written"
end

--- Counts by state, all 0.
function evidence.none()
  local counts = {}
  for _, state in ipairs(evidence.states) do counts[state] = 0 end
  return counts
end

--- "96 runs: 5 present, 91 pruned", with the states that there are.
function evidence.text(counts)
  local total, parts = 0, {}
  for _, state in ipairs(evidence.states) do
    total = total + counts[state]
    if counts[state] > 0 then parts[#parts + 1] = counts[state] .. " " .. state end
  end
  return string.format("%d run%s: %s", total, total == 1 and "" or "s", #parts > 0 and table.concat(parts, ", ")
    or "none")
end

return evidence
