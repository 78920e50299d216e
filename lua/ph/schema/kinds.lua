--- Kinds of values a key can have: each is one function (value, key) -> value, or nil and the reason as "must be ...".
--
-- Integral floats become integers. NaN, infinities and out-of-range numbers are refused; holes in lists are named.

local suggest = require "ph.util.suggest"

local kinds = {}

--- Stands for an object whose constructor found errors: absorbs every use, so that the rest of a spec is still read.
local broken = {}

--- The message that ends a trace because an error was collected already; it is not shown.
kinds.stop = "stopped after earlier errors"

kinds.broken = setmetatable(broken, {
  __name = "ph.broken",
  __index = function() return broken end,
  __call = function() return broken end,
  __add = function() return broken end,
  __sub = function() return broken end,
  __mul = function() return broken end,
  __div = function() return broken end,
  __unm = function() return broken end,
})

--- "ph.task" for an object of the language, nil for anything else.
function kinds.tag(v)
  local mt = debug.getmetatable(v)
  return type(mt) == "table" and rawget(mt, "__name") or nil
end

--- A value in words, for messages: "a string 'x'", "3.5", "a table".
function kinds.describe(v)
  local t = type(v)
  if t == "string" then return string.format("the string '%s'", #v > 40 and v:sub(1, 37) .. "..." or v) end
  if t == "number" then
    if v ~= v then return "nan" end
    return math.type(v) == "integer" and string.format("%d", v) or string.format("%.14g", v)
  end
  if t == "boolean" then return tostring(v) end
  if t == "nil" then return "nothing" end
  local tag = kinds.tag(v)
  return "a " .. (tag and tag:gsub("^ph%.", "") or t)
end

local function got(what, v)
  return string.format("must be %s, got %s", what, kinds.describe(v))
end

local function in_range(v, key)
  if key.min and v < key.min then return nil, got("at least " .. kinds.describe(key.min), v) end
  if key.above and v <= key.above then return nil, got("greater than " .. kinds.describe(key.above), v) end
  if key.below and v >= key.below then return nil, got("less than " .. kinds.describe(key.below), v) end
  if key.max and v > key.max then return nil, got("at most " .. kinds.describe(key.max), v) end
  return v
end

function kinds.number(v, key)
  if type(v) ~= "number" then return nil, got("a number", v) end
  if v ~= v then return nil, "must be a number, got nan (an undefined result such as 0/0)" end
  if v == math.huge or v == -math.huge then return nil, got("finite", v) end
  return in_range(math.tointeger(v) or v, key)
end

function kinds.integer(v, key)
  if type(v) ~= "number" then return nil, got("a whole number", v) end
  if v ~= v or v == math.huge or v == -math.huge then return kinds.number(v, key) end
  local whole = math.tointeger(v)
  if not whole and v == math.floor(v) then return nil, got("at most " .. kinds.describe(key.max or 2 ^ 53), v) end
  if not whole then return nil, got("a whole number", v) end
  if math.abs(whole) > 1 << 53 then return nil, got("at most " .. kinds.describe(key.max or 1 << 53), v) end
  return in_range(whole, key)
end

function kinds.string(v, key)
  if type(v) ~= "string" then return nil, got("a string", v) end
  if key.pattern and not v:find(key.pattern) then return nil, got(key.pattern_text, v) end
  return v
end

function kinds.boolean(v)
  if type(v) ~= "boolean" then return nil, got("true or false", v) end
  return v
end

--- One of key.allowed.
function kinds.choice(v, key)
  for _, word in ipairs(key.allowed) do
    if v == word then return v end
  end
  local hint = type(v) == "string" and suggest.hint(v, key.allowed) or ""
  return nil, got("one of " .. table.concat(key.allowed, ", "), v) .. hint
end

kinds["function"] = function(v)
  if type(v) ~= "function" then return nil, got("a function", v) end
  return v
end

--- A function, or a layer, which is called like one.
function kinds.callable(v)
  if type(v) ~= "function" and kinds.tag(v) ~= "ph.layer" then return nil, got("a function or a layer", v) end
  return v
end

function kinds.table(v)
  if type(v) ~= "table" or kinds.tag(v) then return nil, got("a table", v) end
  return v
end

--- An object made by one of the constructors that key.object names ("ph.task").
function kinds.object(v, key)
  if kinds.tag(v) == key.object then return v end
  return nil, got(key.object_text or ("a " .. key.object:gsub("^ph%.", "")), v)
end

--- Length of a list, or nil and what is wrong: a key that is not a position, or the index of a hole.
function kinds.list_length(t)
  local count, last = 0, 0
  for k in pairs(t) do
    if math.type(k) ~= "integer" or k < 1 then
      return nil,
        string.format("must be a list, but has the key %s",
          type(k) == "string" and "'" .. k .. "'" or kinds.describe(k))
    end
    count, last = count + 1, math.max(last, k)
  end
  if count == last then return count end
  for i = 1, last do
    if t[i] == nil then return nil, string.format("has a hole: nothing at index %d of %d", i, last) end
  end
end

--- Characters that make two strings look alike that differ: marks that join the letter before (a composed letter is
-- one character), parts of a Hangul syllable, spaces and directions that are not seen.
local unseen <const> = {
  { 0x300, 0x36f, "joins the letter before: write the composed letter" }, { 0x1100, 0x11ff, "is part of a syllable" },
  { 0x200b, 0x200f, "is not seen" }, { 0x2028, 0x202e, "is not seen" }, { 0x2060, 0x206f, "is not seen" },
  { 0xfeff, 0xfeff, "is not seen" },
}

--- What keeps a string from being a name that people tell apart by reading; nil when nothing does.
function kinds.illegible(text)
  if not utf8.len(text) then return "must be UTF-8" end
  for _, c in utf8.codes(text) do
    for _, range in ipairs(unseen) do
      if c >= range[1] and c <= range[2] then return string.format("holds U+%04X, which %s", c, range[3]) end
    end
  end
end

--- The first two elements of a list that are equal, or nil. Objects are equal when their texts are.
local function equal_elements(list)
  local seen = {}
  for i, v in ipairs(list) do
    local key = kinds.tag(v) and tostring(v) or v
    if seen[key] then return seen[key], i, key end
    seen[key] = i
  end
end

--- A list whose elements are of the kind key.of describes. Elements are checked one by one; the index is named.
-- key.distinct: no two may be equal.
function kinds.list(v, key)
  if type(v) ~= "table" or kinds.tag(v) then return nil, got("a list", v) end
  local n, problem = kinds.list_length(v)
  if not n then return nil, problem end
  if n < (key.least or 0) then return nil, "must not be empty" end
  local out = {}
  for i = 1, n do
    local value, reason = kinds.check(v[i], key.of)
    if value == nil then return nil, string.format("element %d %s", i, reason) end
    out[i] = value
  end
  local first, second, shown = equal_elements(key.distinct and out or {})
  if first then
    return nil, string.format("has %s twice (elements %d and %d)", kinds.describe(shown), first, second)
  end
  return out
end

--- Anything but functions and objects: numbers are checked and made integers where they are integral, at any depth.
function kinds.data(v, key)
  local t = type(v)
  if t == "number" then return kinds.number(v, {}) end
  if t == "string" or t == "boolean" then return v end
  if t ~= "table" or kinds.tag(v) then return nil, got("plain data", v) end
  local out = {}
  for k, x in pairs(v) do
    local value, reason = kinds.data(x, key)
    if value == nil then return nil, string.format("at '%s' %s", tostring(k), reason) end
    out[k] = value
  end
  if #v > 0 then
    local n, problem = kinds.list_length(v)
    if not n then return nil, problem end
  end
  return out
end

function kinds.any(v) return v end

--- Checks `v` against a key's kind (a name, or a list of names of which the first that fits wins).
function kinds.check(v, key)
  if rawequal(v, broken) then return v end
  if type(key.kind) == "string" then return kinds[key.kind](v, key) end
  local first
  for _, kind in ipairs(key.kind) do
    local value, reason = kinds[kind](v, key)
    if value ~= nil then return value end
    first = first or reason
  end
  return nil, key.reason and got(key.reason, v) or first
end

return kinds
