--- `phrun verdict SPEC | DIR`: applies the locked rules to the results.
--
-- With a spec, it must be the locked one (a comment may differ, a threshold may not); with a directory alone, the
-- locked plan is all there is. Exit codes: 0 the rules hold, 10 they say no, 11 not evaluable (or data changed, test
-- set opened twice, no lock, files of judged runs that are not here), 3 something was tampered with: then no verdict
-- is printed.

local native = require "ph.native"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local json = require "ph.util.json"
local judgement = require "ph.registry.verdict"
local options = require "ph.verb.options"
local registration = require "ph.registry.registration"
local words = require "ph.rules.words"

local verdict = {}

function verdict.arguments(parser)
  parser:argument("spec"):argname "SPEC|DIR":description "the spec that was locked, or a results directory"
  parser:argument("overrides"):argname "key=value":args "*":description "changes that the lock was made with"
  options.out(parser)
  parser:flag "--accept-unbacked":description "judge runs whose files are not here by the ledger alone"
  parser:flag "--json":description "the outcome as one JSON object"
end

-- Outcomes hold tables of the audit; what goes out is plain.
local function plain(outcome, accept)
  local j, a = outcome.judged or {}, outcome.audit
  local rules, predictions = json.list {}, json.list {}
  for i, r in ipairs(j.rules or {}) do
    rules[i] = { name = r.name, truth = words.truth(r.truth), text = r.text, reasons = json.list(r.reasons) }
  end
  for i, p in ipairs(j.predictions or {}) do
    predictions[i] = {
      name = p.name, score = words.hit(p.hit), value = p.value, band = p.band, reasons = json.list(p.reasons),
    }
  end
  return {
    name = outcome.reg.plan.name, lock = outcome.reg.lock, code = judgement.code(outcome, accept),
    category = j.category, truth = words.truth(j.truth), rules = rules, predictions = predictions,
    planned = a.planned, present = a.present, missing = json.list(a.missing), notes = json.list(a.notes),
    guard = json.list(a.guard), tampered = json.list(a.tampered), recovered = a.recovered, evidence = a.evidence,
    rebuilt = a.rebuilt, test_opened = a.opened_most,
  }
end

-- A spec beside the results is compared with the lock; data files that are gone count as changed data.
local function of_spec(args)
  local experiment = options.load(args)
  local dir = options.directory(args, experiment)
  local reg = registration.read(dir)
  if not reg then return dir, judgement.unlocked(experiment) end
  registration.require_same(dir, reg, registration.plan(experiment, job.cells(experiment)),
    registration.deviations(dir))
  return dir, reg
end

local function of_directory(args)
  local dir = args.out or args.spec:gsub("(.)/+$", "%1")
  local reg = registration.read(dir)
  if not reg then
    fault.raise(fault.GUARD,
      "%s: not registered: there is no registration.json; `phrun lock SPEC` makes one before the runs", dir)
  end
  return dir, reg
end

--- The directory and registration that the words of a command line name.
local function find(args)
  local at = native.stat(args.spec)
  if at and at.kind == "dir" then return of_directory(args) end
  return of_spec(args)
end

function verdict.main(args)
  local outcome, accept = judgement.of(find(args)), { unbacked = args.accept_unbacked }
  local text = args.json and json.encode(plain(outcome, accept)) or table.concat(judgement.lines(outcome), "\n")
  native.write(1, text .. "\n")
  if outcome.judged and judgement.unbacked(outcome) and not accept.unbacked and not args.json then
    native.write(1, "the files of some runs are not here; --accept-unbacked judges them by the ledger alone\n")
  end
  return judgement.code(outcome, accept)
end

return verdict
