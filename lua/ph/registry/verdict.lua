--- The locked rules applied to the results, mechanically. The rules judged are always those of the lock.

local audit = require "ph.registry.audit"
local evidence = require "ph.run.evidence"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local judge = require "ph.rules.judge"
local registration = require "ph.registry.registration"
local words = require "ph.rules.words"

local verdict = {}

local most_lines <const> = 12

-- While runs of the plan are awaited there is no verdict, even where the rules are decided without them: who may stop
-- when he likes what he sees decides nothing by rules. Cells that a recorded deviation cut are not awaited.
local function hold_back(judged, missing)
  if #missing == 0 then return end
  judged.so_far, judged.truth, judged.category = judged.truth ~= nil and judged.category or nil, nil, "not evaluable"
  judged.reasons = {
    string.format("the plan is not complete, %d run%s missing: %s", #missing, #missing == 1 and " is" or "s are",
      missing[1]),
  }
end

--- The registration and the audited table of a directory: { reg, audit, judged }. `judged` is
-- nil when something was tampered with.
function verdict.of(dir, reg)
  local a = fault.check(fault.RUNTIME, audit.run(dir, reg))
  local judged = #a.tampered == 0 and judge.all(a.table, reg.plan) or nil
  if judged then hold_back(judged, a.missing) end
  return { dir = dir, reg = reg, audit = a, judged = judged }
end

--- Whether judged runs have no file here; then the ledger alone speaks for them.
function verdict.unbacked(outcome) return outcome.audit.evidence.unbacked > 0 end

--- The exit code of an outcome. accept.unbacked: runs whose files are not here may be judged by the ledger.
function verdict.code(outcome, accept)
  if #outcome.audit.tampered > 0 then return fault.TAMPERED end
  if verdict.unbacked(outcome) and not (accept and accept.unbacked) then return fault.GUARD end
  if #outcome.audit.guard > 0 or not outcome.reg.lock then return fault.GUARD end
  if outcome.judged.truth == nil then return fault.GUARD end
  return outcome.judged.truth and 0 or fault.NO
end

local function some(lines, list, prefix)
  for i = 1, math.min(#list, most_lines) do lines[#lines + 1] = prefix .. list[i] end
  if #list > most_lines then lines[#lines + 1] = string.format("%sand %d more", prefix, #list - most_lines) end
end

--- "RECOVERED LEDGER: ...", the first line of every verdict over one; nil else.
function verdict.recovered_line(outcome)
  if not outcome.audit.recovered then return nil end
  return "RECOVERED LEDGER: rebuilt from a log; its numbers are log lines, not the files that the runs wrote"
end

local function opened_text(a)
  if a.opened_most == 0 then return "no test set opened" end
  return string.format("each test set opened %s",
    a.opened_most == 1 and "once" or "up to " .. a.opened_most .. " times")
end
verdict.opened_text = opened_text

local function head(lines, outcome)
  local a, reg = outcome.audit, outcome.reg
  lines[#lines + 1] = verdict.recovered_line(outcome)
  if reg.lock then
    lines[#lines + 1] = string.format("%s: locked %s under %s", reg.plan.name, reg.time or "?", reg.lock:sub(1, 16))
  else
    lines[#lines + 1] = string.format("%s: NOT REGISTERED; rules that were not locked before the runs prove nothing",
      reg.plan.name)
  end
  lines[#lines + 1] = string.format("%d of %d runs, %s", a.present, a.planned, opened_text(a))
  some(lines, a.missing, "  missing: ")
  some(lines, a.cut_runs, "  cut: ")
  some(lines, a.notes, "  note: ")
  for i, d in ipairs(a.deviations) do lines[#lines + 1] = string.format("  deviation %d: %s", i, d.reason) end
  lines[#lines + 1] = ""
end

-- " (96 runs: 5 present, 91 pruned)" where not every file is here whole; "" else.
local function backing(outcome)
  local counts = outcome.audit.evidence
  if counts.pruned + counts.unbacked == 0 then return "" end
  return " (" .. evidence.text(counts) .. ")"
end

--- "verdict: NAME", or why there is none.
function verdict.conclusion(outcome)
  return verdict.words(outcome) .. backing(outcome)
end

function verdict.words(outcome)
  local j = outcome.judged
  if #outcome.reg.plan.rules + #outcome.reg.plan.categories == 0 then
    return "verdict: not evaluable: the plan has no rules"
  end
  if j.truth == nil then
    return "verdict: not evaluable: " .. words.reasons(j.reasons)
      .. (j.so_far and string.format(" (the runs so far: %s)", j.so_far) or "")
  end
  return (outcome.reg.lock and "verdict: " or "the rules would say: ") .. j.category
end

--- The verdict as lines.
function verdict.lines(outcome)
  local lines, a = {}, outcome.audit
  if not outcome.judged then
    lines[#lines + 1] = verdict.recovered_line(outcome)
    lines[#lines + 1] = string.format("%s: tampered; there is no verdict", outcome.dir)
    some(lines, a.tampered, "  ")
    return lines
  end
  head(lines, outcome)
  for _, line in ipairs(words.tables(outcome.judged)) do lines[#lines + 1] = line end
  some(lines, a.guard, "guard: ")
  lines[#lines + 1] = verdict.conclusion(outcome)
  return lines
end

--- The registration of an experiment as it is, without a lock: what its rules say of the runs so far.
function verdict.unlocked(experiment)
  local cells, runs = job.cells(experiment), {}
  for _, cell in ipairs(cells) do
    for _, one in ipairs(cell.jobs) do runs[one.label] = one.run end
  end
  return { plan = registration.plan(experiment, cells), runs = runs, figures = experiment.figures }
end

return verdict
