--- Words of a block that give nothing: ph.term adds a number to the loss at each iteration, ph.observe names a number
-- that can be measured at each iteration. Both take one number a sample: a state of width 1 at one position.

local kinds = require "ph.schema.kinds"
local schema = require "ph.schema"
local symbol = require "ph.lang.symbol"

local mark = {}

schema.describe("term", "functions", "ph.term(weight, x)",
  "In a block: adds weight times x, one number a sample, to the loss at each iteration (mean over the samples).")
schema.describe("observe", "functions", "ph.observe(name, x)",
  "In a block: names x, one number a sample, for the measure ph.observed().")

local function value_of(word, x)
  local trace = symbol.current()
  if not trace then schema.fail(word, "belongs inside a block") end
  if not symbol.is(x) then schema.fail(word, "takes a value of the block, got %s", kinds.describe(x)) end
  if x.pos ~= 1 or x.cols ~= 1 then
    schema.fail(word, "takes one number a sample (a state of width 1), got a %s", symbol.shape_text(x))
  end
  trace.marks = trace.marks or {}
  return trace.marks
end

function mark.term(weight, x)
  if rawequal(x, kinds.broken) then return end
  local w, reason = kinds.number(weight, {})
  if not w then schema.fail("term", "the weight %s", reason) end
  local marks = value_of("term", x)
  marks[#marks + 1] = { weight = w, value = x }
end

function mark.observe(name, x)
  if rawequal(x, kinds.broken) then return end
  if type(name) ~= "string" or not name:find "^%a[%w_]*$" or #name > 31 then
    schema.fail("observe", "must have a name of letters, digits and _ (at most 31) first, got %s", kinds.describe(name))
  end
  local marks = value_of("observe", x)
  for _, other in ipairs(marks) do
    if other.name == name then schema.fail("observe", "'%s' is observed twice", name) end
  end
  marks[#marks + 1] = { name = name, value = x }
end

return mark
