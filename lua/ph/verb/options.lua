--- Arguments that several verbs share, and what they mean.

local native = require "ph.native"
local fault = require "ph.util.fault"

local options = {}

--- A spec and its overrides; `name` and `words` where something else is taken too.
function options.spec(parser, name, words)
  parser:argument("spec"):argname(name or "SPEC"):description(words or "a Lua file that returns ph.experiment { ... }")
  parser:argument("overrides"):argname "key=value":args "*"
    :description "restrict an axis of the grid (depth=240, family=ph,resnet) or set a value of the spec"
end

function options.out(parser)
  parser:option "--out":argname "DIR":description "results directory (default: experiments/NAME)"
end

local function whole(word)
  local n = math.tointeger(tonumber(word))
  if not n or n < 1 or n > 1024 then return nil, "'" .. word .. "' is not a number from 1 to 1024" end
  return n
end

--- Seconds, 0 or more.
function options.seconds(word)
  local n = tonumber(word)
  if not n or n ~= n or n < 0 or n > 1e6 then return nil, "'" .. word .. "' is not a number of seconds" end
  return n
end

function options.workers(parser)
  parser:option("-j --jobs"):argname "N":default "1":convert(whole)
    :description "runs at the same time, each in its own process"
  parser:option("-t --threads"):argname "N":convert(whole):description "threads of a run (default: cores / jobs)"
end

--- Threads of a run when none were asked for.
function options.defaults(args)
  args.jobs = args.jobs or 1
  args.threads = args.threads or math.max(1, native.machine().cores // args.jobs)
end

--- The experiment of a spec with its overrides. Raises a usage fault that holds every error of the spec.
function options.load(args)
  local spec = require "ph.spec"
  if args.spec == "-" then fault.raise(fault.USAGE, "a spec is a file; standard input is not read") end
  local experiment, problems = spec.load(args.spec, args.overrides)
  if experiment then return experiment end
  local lines = {}
  for i, problem in ipairs(problems) do
    if problem.text:find "^interrupted" then error("interrupted", 0) end
    lines[i] = problem.text
  end
  fault.raise(fault.USAGE, "%s", table.concat(lines, "\n"))
end

--- Where the results of an experiment are.
function options.directory(args, experiment)
  if args.out == "" then fault.raise(fault.USAGE, "--out: needs the name of a directory") end
  if args.out then return (args.out:gsub("(.)/+$", "%1")) end
  return "experiments/" .. experiment.name
end

return options
