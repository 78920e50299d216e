--- The law suite: T1 .. T13 and E1 .. E8 (docs/laws.md, section 10), each against code that may be replaced.
--
-- An entry has `id`, `text`, `tol`, `run(m, draw) -> value, ok` and `mutants` = list of { name, change(m) }. `m` is a
-- copy of ph.laws.maps; a mutant replaces one of its functions by the wrong code that the assertion is there to catch.

local native = require "ph.native"
local maps = require "ph.laws.maps"
local checks = require "ph.laws.checks"
local mutants = require "ph.laws.mutants"

local suite = {}

local entries <const> = {
  { "T1", "transport is orthogonal: max|C'C - I|", 1e-12 },
  { "T2", "transport spends no volume: |sum ln|det C||, every det +1", 1e-12 },
  { "T3", "damping never amplifies, leaves ker R alone: ||Lambda|| - 1", 1e-12 },
  { "T4", "R = 4I, h = 1: Lambda = -I/3; zero at h r = 2", 1e-15 },
  { "T5", "guard: h lambda_max - 1, spectrum in [1/3, 1], no-op below", 1e-12 },
  { "T6", "S from C, error over 1 + ||S||^2/4", 1e-12 },
  { "T7", "hR from Lambda (without the 2: hR/2)", 1e-12 },
  { "T8", "ceiling: ||x|| / (||x_0|| + sum h||B u||) - 1", 1e-12 },
  { "T9", "meter error is cubic: |halving ratio - 8|, never below 8", 0.2 },
  { "T10", "amplifying port: beyond sum h||u||, within sum h||B u||", 1e-12 },
  { "T11", "ln|det prod M| = sum ln|lambda|", 1e-9 },
  { "T12", "gradient: ||g_t||/||g_t+1|| - 1, bracket and adjoint identity", 1e-12 },
  { "T13", "||Lambda C - (I - S - hR)|| = O(h^2): |ratio - 4|", 0.1 },
  { "E1", "C = exp(-S) + O(S^3): |ratio - 8|", 0.1 },
  { "E2", "exact energy ledger of a layer", 1e-12 },
  { "E3", "a port that reads the state: layer Jacobian of norm 2", 1e-12 },
  { "E4", "polar factors of M are (Lambda, C) below h lambda_max = 2", 1e-11 },
  { "E5", "one mode at h r = 1 contracts by ln 3, more than h tr R", 1e-15 },
  { "E6", "above h r = 2 more damping contracts less: h r = 100", 0.05 },
  { "E7", "state-dependent S(x), R(x): ||x|| never grows", 1e-12 },
  { "E8", "adjoint of the transport: -N' G N', by op and by formula", 1e-11 },
}

suite.tests = {}
for i, e in ipairs(entries) do
  suite.tests[i] = { id = e[1], text = e[2], tol = e[3], run = checks[e[1]], mutants = mutants[e[1]] }
end

--- A copy of the maps, changed by `change` if given.
local function code(change)
  local m = {}
  for name, f in pairs(maps) do m[name] = f end
  if change then change(m) end
  return m
end

--- Normal numbers of one test: draw(name, shape, scale).
local function drawer(test, seed)
  return function(name, shape, scale)
    return native.random("normal", seed, "laws." .. test.id .. "." .. name, shape, scale or 1.0, "f64")
  end
end

--- Runs one test. Returns value, ok; code that cannot even be evaluated (a singular matrix, say) gives NaN and fails.
function suite.measure(test, seed, change)
  local fine, value, ok = pcall(test.run, code(change), drawer(test, seed), test.tol)
  if not fine then
    if value == "interrupted" then error(value, 0) end
    return 0 / 0, false, value
  end
  return value, ok
end

--- Runs everything: list of { id, text, tol, value, ok }, and whether all hold.
function suite.run(seed)
  local rows, all = {}, true
  for i, test in ipairs(suite.tests) do
    local value, ok, problem = suite.measure(test, seed)
    rows[i] = { id = test.id, text = test.text, tol = test.tol, value = value, ok = ok, problem = problem }
    all = all and ok
  end
  return rows, all
end

--- Runs every test on every wrong code: list of { id, mutant, value, caught }, and whether all were caught.
function suite.mutate(seed)
  local rows, all = {}, true
  for _, test in ipairs(suite.tests) do
    for _, mutant in ipairs(test.mutants) do
      local value, ok = suite.measure(test, seed, mutant[2])
      rows[#rows + 1] = { id = test.id, mutant = mutant[1], tol = test.tol, value = value, caught = not ok }
      all = all and not ok
    end
  end
  return rows, all
end

return suite
