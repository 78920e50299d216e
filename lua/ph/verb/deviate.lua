--- `phrun deviate SPEC|DIR --reason "..."`: records a departure from the lock permanently, with its reason.
--
-- With a spec: every field in which it differs from the lock is recorded with both values; runs under the changed spec
-- then count, marked. Rules, categories and predictions cannot be changed: the verdict always applies the
-- locked ones. With a directory: a departure that no field shows (another machine, a power cut).

local native = require "ph.native"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local json = require "ph.util.json"
local options = require "ph.verb.options"
local plan = require "ph.rules.plan"
local registration = require "ph.registry.registration"
local results = require "ph.run.results"

local deviation = {}

function deviation.arguments(parser)
  parser:argument("spec"):argname "SPEC|DIR"
    :description "the changed spec, or the results directory for a departure that no field shows"
  parser:argument("overrides"):argname "key=value":args "*":description "changes of the command line"
  options.out(parser)
  parser:option "--reason":argname "TEXT":description "why (required)"
  parser:option("--field"):argname "FIELD":count "*"
    :description "only this field may differ, as in train.epochs; may be repeated"
end

local fixed <const> = { "rules", "categories", "predictions" }

local function refuse_rules(differences)
  for _, d in ipairs(differences) do
    for _, prefix in ipairs(fixed) do
      if plan.under(d.field, prefix) then
        fault.raise(fault.TAMPERED, "%s cannot be changed after the lock; lock a new plan in another directory\n  %s",
          prefix, plan.line(d))
      end
    end
  end
end

local function covered(field, fields)
  for _, f in ipairs(fields) do
    if plan.under(field, f) then return true end
  end
end

-- Every difference must be one that the user named, when names were given; every name must differ.
local function check_fields(differences, fields)
  if #fields == 0 then return end
  for _, d in ipairs(differences) do
    if not covered(d.field, fields) and not plan.under(d.field, "cells") then
      fault.raise(fault.USAGE, "the spec differs in more than --field says\n  %s", plan.line(d))
    end
  end
  for _, f in ipairs(fields) do
    local found = false
    for _, d in ipairs(differences) do found = found or plan.under(d.field, f) end
    if not found then fault.raise(fault.USAGE, "'%s' is unchanged", f) end
  end
end

-- Runs of the changed spec under the labels of the plan whose hash is another now.
local function changed_runs(reg, cells)
  local out = {}
  for _, cell in ipairs(cells) do
    for _, one in ipairs(cell.jobs) do
      if reg.runs[one.label] and reg.runs[one.label] ~= one.run then out[one.label] = one.run end
    end
  end
  return out
end

local function event_of_spec(args)
  local experiment = options.load(args)
  local dir = options.directory(args, experiment)
  local reg = registration.read(dir)
  if not reg then fault.raise(fault.GUARD, "%s: not locked; there is nothing to depart from", dir) end
  local now = registration.plan(experiment, job.cells(experiment))
  local differences = registration.unrecorded(reg, now, registration.deviations(dir))
  if #differences == 0 then
    fault.raise(fault.USAGE,
      "%s: the spec is unchanged (name the directory for a departure that no field shows)", dir)
  end
  refuse_rules(differences)
  check_fields(differences, args.field or {})
  experiment.lock = reg.lock
  return dir,
    { event = "deviation", reason = args.reason, fields = json.list(differences),
      runs = changed_runs(reg, job.cells(experiment)) }
end

local function event_of_directory(args)
  local dir = args.spec:gsub("(.)/+$", "%1")
  if not registration.read(dir) then
    fault.raise(fault.GUARD, "%s: not locked; there is nothing to depart from", dir)
  end
  if args.field and #args.field > 0 then
    fault.raise(fault.USAGE, "--field goes with a spec, whose changed fields are recorded")
  end
  return dir, { event = "deviation", reason = args.reason, fields = json.list {}, runs = {} }
end

local function record(dir, event)
  local store, problem, kind = results.open(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  local ok, why = store:append(event)
  store:release()
  if not ok then fault.raise(fault.RUNTIME, "%s", why) end
end

function deviation.main(args)
  if not args.reason or not args.reason:find "%S" then
    fault.raise(fault.USAGE, "deviate: a reason must be given: --reason \"why\"")
  end
  local at = native.stat(args.spec)
  local dir, event = (at and at.kind == "dir" and event_of_directory or event_of_spec)(args)
  record(dir, event)
  native.write(1, string.format("%s: deviation recorded: %s\n", dir, args.reason))
  local shown = registration.lines(event.fields)
  if #shown > 0 then native.write(1, table.concat(shown, "\n") .. "\n") end
  return 0
end

return deviation
