--- `phrun laws`: the law suite, one line an assertion with the measured figure, its tolerance and the outcome. Exit 0
-- when all hold, 1 otherwise.
--
-- With --mutate each assertion runs on the wrong code it is there to catch, and a line tells whether it did.

local native = require "ph.native"
local suite = require "ph.laws.suite"

local verb = {}

--- Arguments of the verb.
function verb.arguments(parser)
  parser:flag "--mutate":description "run every assertion on wrong code and show that it fails"
  parser:option "--seed":argname "N":description "seed of the random matrices":default "20261009"
    :convert(math.tointeger)
end

local function number(v) return v ~= v and "not finite" or string.format("%.2e", v) end

local function print_laws(seed)
  local start = native.now()
  local rows, all = suite.run(seed)
  for _, r in ipairs(rows) do
    native.write(1,
      string.format("%-4s %-4s %-63s %10s  tolerance %.0e%s\n", r.ok and "ok" or "FAIL", r.id, r.text, number(r.value),
        r.tol, r.problem and "  " .. tostring(r.problem) or ""))
  end
  local failed = 0
  for _, r in ipairs(rows) do failed = failed + (r.ok and 0 or 1) end
  native.write(1, string.format("%d laws, %d failed, %.1f s\n", #rows, failed, native.now() - start))
  return all
end

local function print_mutants(seed)
  local rows, all = suite.mutate(seed)
  local missed = 0
  for _, r in ipairs(rows) do
    missed = missed + (r.caught and 0 or 1)
    native.write(1,
      string.format("%-6s %-4s %-45s %10s  tolerance %.0e\n", r.caught and "caught" or "MISSED", r.id, r.mutant,
        number(r.value), r.tol))
  end
  native.write(1, string.format("%d wrong codes, %d missed\n", #rows, missed))
  return all
end

--- Prints the suite; returns the exit code.
function verb.main(args)
  local seed = args.seed or 20261009
  return (args.mutate and print_mutants or print_laws)(seed) and 0 or 1
end

return verb
