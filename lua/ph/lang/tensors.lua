--- Tensors for exploring: made from numbers, or drawn from (seed, count of draws).

local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local ops = require "ph.lang.ops"
local schema = require "ph.schema"

local tensors = {}

local draws = 0 -- tensors drawn so far in this process: the same session draws the same numbers

--- Sizes from arguments (3, 4) or one list {3, 4}; a last table with names holds options.
local function sizes(name, ...)
  local args = table.pack(...)
  local options = {}
  local last = args[args.n]
  if type(last) == "table" and #last == 0 and next(last) ~= nil then
    options, args.n = last, args.n - 1
  end
  if args.n == 1 and type(args[1]) == "table" then args = table.pack(table.unpack(args[1])) end
  local shape = {}
  for i = 1, args.n do
    local n, reason = kinds.integer(args[i], { min = 0, max = 1 << 31 })
    if not n then schema.fail(name, "size %d %s", i, reason) end
    shape[i] = n
  end
  return shape, options
end

local function describe(name, usage, doc) schema.describe(name, "tensors", usage, doc) end

describe("tensor", "ph.tensor { { 1, 2 }, { 3, 4 } }", "A float64 tensor from a number, a list or nested lists.")
describe("eye", "ph.eye(n)", "The identity matrix.")
describe("zeros", "ph.zeros(3, 4)", "A tensor of zeros.")
describe("ones", "ph.ones(3, 4)", "A tensor of ones.")
describe("randn", "ph.randn(3, 4), ph.randn(3, 4, { seed = 7 })",
  "Independent N(0, 1) numbers; without a seed the k-th call of a session is the same in every session.")
describe("rand", "ph.rand(3, 4)", "Independent uniform numbers in [0, 1).")

function tensors.tensor(t, dtype) return native.from(t, dtype or "f64") end

tensors.eye = ops.eye

function tensors.zeros(...) return native.tensor(sizes("zeros", ...), "f64") end

function tensors.ones(...)
  return native.tensor(sizes("ones", ...), "f64") + 1
end

local function drawn(kind, name, scale)
  return function(...)
    local shape, options = sizes(name, ...)
    for k in pairs(options) do
      if k ~= "seed" then schema.fail(name, "unknown key '%s' (keys: seed)", tostring(k)) end
    end
    if options.seed then return native.random(kind, options.seed, name, shape, scale, "f64") end
    draws = draws + 1
    return native.random(kind, 0, name .. "/" .. draws, shape, scale, "f64")
  end
end

tensors.randn = drawn("normal", "randn", 1)

local symmetric = drawn("uniform", "rand", 0.5)

function tensors.rand(...) return symmetric(...) + 0.5 end

return tensors
