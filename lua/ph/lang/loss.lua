--- Losses: what training makes small. The constructors are made from the table of losses (core/ir/loss.h).

local canon = require "ph.util.canon"
local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local schema = require "ph.schema"
local suggest = require "ph.util.suggest"

local loss = { words = {} }

local Loss = { __name = "ph.loss" }
Loss.__index = Loss
Loss.__tostring = function(self) return canon.call(self.word, self.values) end

--- Key of a constructor from an attribute of a row.
local function key_of(attr)
  local range = { kind = "number", min = attr.min, above = attr.above, below = attr.below }
  local key = { attr.name, kind = "list", of = range, least = 1, doc = attr.doc }
  if attr.list then return key end
  range[1], range.default, range.doc = attr.name, attr.initial, attr.doc
  return range
end

local makers = {}

for _, row in ipairs(native.losses()) do
  if row.word then
    local keys = {}
    for i, attr in ipairs(row.attrs) do keys[i] = key_of(attr) end
    loss.words[#loss.words + 1] = row.word
    makers[row.word] = schema.constructor({
      name = row.word, role = "loss", section = "losses", doc = row.doc .. " " .. row.equation, keys = keys,
    }, function(v) return setmetatable({ word = row.word, row = row, needs = row.needs, values = v }, Loss) end)
    loss[row.word] = makers[row.word]
  end
end

--- The kind of a key that takes a loss: an object, or its word.
function kinds.loss(v)
  if kinds.tag(v) == "ph.loss" then return v end
  if makers[v] then return makers[v] {} end
  local hint = type(v) == "string" and suggest.hint(v, loss.words) or ""
  return nil, string.format("must be a loss (%s, or one with keys such as ph.huber { delta = 1 }), got %s%s",
    table.concat(loss.words, ", "), kinds.describe(v), hint)
end

--- Its lines in the IR: the lists that it names, then itself.
function Loss:text()
  local lines, words = {}, { "loss " .. self.row.name }
  for _, attr in ipairs(self.row.attrs) do
    local v = self.values[attr.name]
    if attr.list and v then
      local numbers = {}
      for i, x in ipairs(v) do numbers[i] = canon.ir_number(x) end
      lines[#lines + 1] = "table " .. attr.name .. " " .. table.concat(numbers, " ")
    end
    if v then words[#words + 1] = attr.name .. "=" .. (attr.list and "@" .. attr.name or canon.ir_number(v)) end
  end
  lines[#lines + 1] = table.concat(words, " ")
  return table.concat(lines, "\n") .. "\n"
end

--- What is wrong with the loss for a task, or nil.
function Loss:problem(task)
  local have = task.classes and "labels" or "targets"
  if self.needs ~= have then
    return string.format("%s compares with %s, the task has %s: use %s", self.word, self.needs, have,
      table.concat(loss.for_need(have), ", "))
  end
  for _, attr in ipairs(self.row.attrs) do
    local v = attr.list and self.values[attr.name]
    if v and #v ~= task.classes then
      return string.format("%s of %s has %d numbers, the task has %d classes", attr.name, self.word, #v, task.classes)
    end
  end
end

--- Words of the losses that compare with this: "labels", "targets".
function loss.for_need(need)
  local out = {}
  for _, word in ipairs(loss.words) do
    if makers[word] {}.needs == need then out[#out + 1] = word end
  end
  return out
end

--- The loss of a task that none was chosen for: the first that compares with what the task has.
function loss.default(task)
  return makers[loss.for_need(task.classes and "labels" or "targets")[1]] {}
end

return loss
