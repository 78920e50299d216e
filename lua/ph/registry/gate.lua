--- Gates: an experiment that waits for the verdict of another one. It does not start before the other's results are
-- registered, untouched, and judged as the gate asks.

local evidence = require "ph.run.evidence"
local fault = require "ph.util.fault"
local registration = require "ph.registry.registration"
local rules = require "ph.rules"
local verdict = require "ph.registry.verdict"
local words = require "ph.rules.words"

local gate = {}

-- Paths in a spec are relative to the spec, not to where the program was started.
local function resolve(dir, spec_file)
  if dir:sub(1, 1) == "/" then return dir end
  return (spec_file and spec_file:match "^(.*/)[^/]*$" or "") .. dir
end

local function judged(dir)
  local reg = registration.read(dir)
  if not reg then return nil, dir .. " is not registered" end
  local outcome = verdict.of(dir, reg)
  local a = outcome.audit
  if #a.tampered > 0 then return nil, dir .. " was tampered with: " .. a.tampered[1] end
  if #a.guard > 0 then return nil, dir .. ": " .. a.guard[1] end
  if verdict.unbacked(outcome) then
    return nil, string.format("files of judged runs of %s are not here (%s)", dir, evidence.text(a.evidence))
  end
  return outcome.judged
end

--- nil when the gate is open, else the reason why it is closed.
function gate.reason(one, spec_file)
  local dir = resolve(one.dir, spec_file)
  local j, problem = judged(dir)
  if not j then return problem end
  if j.truth == nil then
    return string.format("the verdict of %s is not evaluable: %s", dir, words.reasons(j.reasons))
  end
  if one.verdict == "holds" then
    return not j.truth and string.format("the verdict of %s is '%s', which does not hold", dir, j.category) or nil
  end
  return j.category ~= one.verdict
    and string.format("the verdict of %s is '%s', not '%s'", dir, j.category, one.verdict) or nil
end

--- Raises (exit code 11) when one of an experiment's gates is closed.
function gate.require_open(experiment)
  for _, one in ipairs(rules.plan(experiment).gates) do
    local reason = gate.reason(one, experiment.source and experiment.source.file)
    if reason then
      fault.raise(fault.GUARD, "%s: the gate is closed: %s%s", experiment.name, reason,
        one.note and " (" .. one.note .. ")" or "")
    end
  end
end

return gate
