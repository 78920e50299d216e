--- `phrun bench [NAME] [--quick]`: timings of this machine. A bench is a module
-- ph.verb.bench_NAME with `run(args) -> code`.

local native = require "ph.native"
local fault = require "ph.util.fault"
local suggest = require "ph.util.suggest"

local bench = {}

local known <const> = { "e6", "e7", "laws", "passive" }

local function installed()
  local out = {}
  for _, name in ipairs(known) do
    if package.searchpath("ph.verb.bench_" .. name, package.path) then out[#out + 1] = name end
  end
  return out
end

function bench.arguments(parser)
  parser:argument("name"):argname "NAME":args "?"
    :description("which: " .. table.concat(installed(), ", ") .. " (default: all)")
  parser:flag "--quick":description "only the cases that matter most"
  parser:option("--reference"):hidden_name "--peer":argname "FILE"
    :description "the program to compare with (default: the one beside the source tree, if any)"
  parser:option "--python":argname "PROGRAM":default "/usr/bin/python3":description "the interpreter that runs it"
end

local function run_one(name, args)
  native.write(1, "== " .. name .. "\n")
  return require("ph.verb.bench_" .. name).run(args)
end

function bench.main(args)
  local names, worst = installed(), 0
  if args.name then
    for _, name in ipairs(names) do
      if name == args.name then return run_one(name, args) end
    end
    fault.raise(fault.USAGE, "bench: no bench is called '%s'%s (%s)", args.name, suggest.hint(args.name, names),
      table.concat(names, ", "))
  end
  for _, name in ipairs(names) do worst = math.max(worst, run_one(name, args)) end
  return worst
end

return bench
