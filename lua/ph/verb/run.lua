--- `phrun run SPEC [key=value ...]`: from a spec to results on disk. What there is to do is said (-n) or done
-- (ph.run.session); failures set the exit code.

local native = require "ph.native"
local changes = require "ph.run.changes"
local fault = require "ph.util.fault"
local conclusion = require "ph.run.conclusion"
local gate = require "ph.registry.gate"
local json = require "ph.util.json"
local job = require "ph.run.job"
local lacking = require "ph.lang.lacking"
local options = require "ph.verb.options"
local registration = require "ph.registry.registration"
local results = require "ph.run.results"
local runner = require "ph.run.runner"
local Session = require "ph.run.session"
local tables = require "ph.util.tables"
local verdict = require "ph.registry.verdict"

local run = {}

function run.arguments(parser)
  options.spec(parser)
  options.out(parser)
  options.workers(parser)
  parser:flag("-k --keep-going"):description "continue with the other cells when one fails"
  parser:flag("-n --dry-run"):description "only say what would run, and why"
  parser:flag("-q --quiet"):description "no progress"
  parser:option("--checkpoint"):argname "SECONDS":convert(options.seconds)
    :description "time between checkpoints (default: what the protocol says); 0: after every step"
end

-- ---- what there is to do ----

--- Why a job runs, or why not: "done" | "resume" | "run", and the reason.
function run.decide(store, one)
  local record = store:finished(one.run)
  if record then
    return "done",
      record.status == "diverged" and "already done: it diverged"
        or "already done: same model, task, data, protocol and measures"
  end
  if native.stat(results.checkpoint_path(store.dir, one.run)) then return "resume", "resumes from its checkpoint" end
  local before = store.records[one.run]
  if before and before.status == "failed" then return "run", "failed before: " .. tostring(before.reason) end
  if before and results.closed(before) then return "run", "its file is missing or empty" end
  local other = store:earlier(one.label, one.run)
  if other then return "run", changes.between(one.parts, other.parts or {}) end
  return "run", "new"
end

local function dry_run(store, cells)
  local rows, counts = {}, { done = 0, resume = 0, run = 0 }
  for _, cell in ipairs(cells) do
    for _, one in ipairs(cell.jobs) do
      local what, why = run.decide(store, one)
      counts[what] = counts[what] + 1
      rows[#rows + 1] = { one.run, one.label, what == "done" and "-" or what, why }
    end
  end
  native.write(1, table.concat(tables.render({ "run", "cell", "", "reason" }, rows), "\n") .. "\n")
  native.write(1,
    string.format("%d to run, %d to resume, %d already done\n", counts.run, counts.resume, counts.done))
  return 0
end

local function open_store(dir, dry)
  local store, problem, kind = (dry and results.peek or results.open)(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  return store
end

local function count_jobs(cells)
  local n = 0
  for _, cell in ipairs(cells) do n = n + #cell.jobs end
  return n
end

local function opened_event(experiment, cells, args)
  return {
    event = "opened", spec = experiment.name, spec_hash = cells[1].jobs[1].spec_hash,
    overrides = json.list(args.overrides), planned = count_jobs(cells), version = native.machine().version,
  }
end

local function resume_hint(args)
  local words = { "phrun", args.spec, table.unpack(args.overrides) }
  if args.out then words[#words + 1] = "--out " .. args.out end
  return table.concat(words, " ")
end

local function head_line(store, experiment, session, args)
  local n, parallel = count_jobs(session.cells), args.jobs > 1 and string.format("%d at once, ", args.jobs) or ""
  local done = session.skipped > 0 and string.format(", %d of them already done", session.skipped) or ""
  return string.format("%s: %d run%s%s; %s%d thread%s each; results in %s\n", experiment.name, n, n == 1 and "" or "s",
    done, parallel, args.threads, args.threads == 1 and "" or "s", store.dir)
end

--- The verdict at the end of a run when the spec has rules; the run's own exit code stands.
local function print_verdict(dir, experiment)
  local reg = registration.read(dir)
  if not reg and not experiment.rules and not experiment.predictions then return end
  reg = reg or verdict.unlocked(experiment)
  if #reg.plan.rules + #reg.plan.categories + #reg.plan.predictions == 0 then return end
  native.write(1, "\n" .. table.concat(verdict.lines(verdict.of(dir, reg)), "\n") .. "\n")
end

local function execute(store, experiment, cells, args)
  local session = Session.new(store, cells, args.keep_going)
  if session:has_work() then
    session:append(opened_event(experiment, cells, args))
    if not args.quiet then
      native.write(2, head_line(store, experiment, session, args))
      for _, note in ipairs(lacking.notes(experiment)) do native.write(2, "note: " .. note .. "\n") end
    end
    session:work(args)
  end
  if session.interrupted or runner.stopped() then
    native.write(2, "interrupted; all is saved, resume with: " .. resume_hint(args) .. "\n")
    return fault.INTERRUPTED
  end
  conclusion.print(store, experiment, cells, session)
  print_verdict(store.dir, experiment)
  return session.failures > 0 and fault.RUNTIME or 0
end

function run.main(args)
  local experiment = options.load(args)
  local dir = options.directory(args, experiment)
  options.defaults(args)
  if experiment.main then return experiment:main(dir, args) end
  local store = open_store(dir, args.dry_run)
  local ok, result = xpcall(function()
    gate.require_open(experiment)
    registration.prepare(experiment, dir)
    local cells = job.cells(experiment)
    if args.dry_run then return dry_run(store, cells) end
    return execute(store, experiment, cells, args)
  end, function(e) return args.debug and type(e) == "string" and debug.traceback(e, 2) or e end)
  store:release()
  if not ok then error(result, 0) end
  return result
end

return run
