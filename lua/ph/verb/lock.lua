--- `phrun lock SPEC [--out DIR]`: freezes grid, protocol, data and rules of a spec under a hash, before its runs.

local native = require "ph.native"
local options = require "ph.verb.options"
local registration = require "ph.registry.registration"

local lock = {}

function lock.arguments(parser)
  options.spec(parser)
  options.out(parser)
end

local function counts(p)
  local runs = 0
  for _, cell in ipairs(p.cells) do runs = runs + #cell.runs end
  local out = {}
  for i, c in ipairs {
    { #p.cells, "cell" }, { runs, "run" }, { #p.rules, "rule" }, { #p.categories, "category" },
    { #p.predictions, "prediction" }, { #p.gates, "gate" },
  } do
    out[i] = c[1] .. " " .. (c[1] == 1 and c[2] or c[2] == "category" and "categories" or c[2] .. "s")
  end
  return table.concat(out, ", ")
end

function lock.main(args)
  local experiment = options.load(args)
  local dir = options.directory(args, experiment)
  local reg, older, before = registration.lock(experiment, dir)
  native.write(1,
    string.format("%s %s under %s\n  %s\n  %s\n", experiment.name, before and "is already locked" or "locked", reg.lock,
      counts(reg.plan), registration.path(dir)))
  if older > 0 then
    native.write(1,
      string.format("  %d run%s already there %s older than the lock and will not count\n", older,
        older == 1 and "" or "s", older == 1 and "is" or "are"))
  end
  if #reg.plan.rules + #reg.plan.categories == 0 then
    native.write(1, "  the plan has no rules: there will be nothing to judge\n")
  end
  return 0
end

return lock
