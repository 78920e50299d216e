--- The vocabulary of the language: every constructor and each of its keys is registered here once.
--
-- A registration carries kind, default, range and a line of documentation; validation, suggestions, help() and
-- docs/language.md all read it. While a spec is loaded errors are collected, so that all of them are shown together;
-- otherwise (REPL, tests) the first one is raised.

local edition = require "ph.schema.edition"
local kinds = require "ph.schema.kinds"
local suggest = require "ph.util.suggest"
local where = require "ph.schema.where"

local schema = {}

local blocks, order = {}, {}
local collected -- list of errors while a spec is loaded, else nil

schema.broken = kinds.broken

--- Version of the language that the registrations make up. A key that comes later says so by `since`.
schema.version = 2

--- Names that axes of a grid usually have, for suggestions.
schema.usual_axes = { "family", "depth", "width", "seed", "task", "variant" }

-- Registers one key of a block. A text that is older than the key cannot name it, so a newer key has a default.
local function register(block, key)
  key.name, key.since = key.name or key[1], key.since or 1
  local id = "schema: key '" .. key.name .. "' of '" .. block.name .. "' "
  assert(key.doc and key.kind, id .. "needs kind and doc")
  assert(key.since <= schema.version, id .. "is newer than the language")
  assert(key.since == 1 or not key.required, id .. "is newer than version 1 and so cannot be required")
  block.by_name[key.name] = key
end

--- Registers a constructor.
-- block = { name, role (key of experiment it belongs to, or nil), section, doc, positional = { key, ... }, example,
-- looks (its table in words, where it is the value of another constructor's key), keys }
-- key = { name, kind =, default =, required =, doc =, since = 1, affects = true, editions = { [N] = default }, ... };
-- ph.schema.meaning says what `since` and `affects` do, ph.schema.edition what `editions` do.
function schema.define(block)
  assert(block.name and block.doc and block.keys, "schema: a block needs name, doc and keys")
  assert(not blocks[block.name], "schema: '" .. block.name .. "' is registered twice")
  block.by_name = {}
  for _, key in ipairs(block.keys) do register(block, key) end
  blocks[block.name] = block
  order[#order + 1] = block
  return block
end

--- Registers a function that takes positional arguments. usage: how a call looks.
function schema.describe(name, section, usage, doc)
  return schema.define { name = name, section = section, usage = usage, doc = doc, keys = {} }
end

function schema.get(name) return blocks[name] end

--- Adds a key to a constructor that is registered.
function schema.add(name, key)
  local block = assert(blocks[name], name)
  register(block, key)
  block.keys[#block.keys + 1] = key
end

--- The newest edition that some key has a default for.
function schema.newest_edition()
  local newest = 1
  for _, block in ipairs(order) do
    for _, key in ipairs(block.keys) do
      for number in pairs(key.editions or {}) do newest = math.max(newest, number) end
    end
  end
  return newest
end

--- All blocks in order of registration.
function schema.all() return order end

--- Starts collecting errors; returns the list they go to.
function schema.collect()
  collected = {}
  return collected
end

--- Ends collecting; returns the list.
function schema.finish()
  local list = collected
  collected = nil
  return list
end

--- The errors collected so far.
function schema.errors() return collected or {} end

--- Adds one error line to the list being collected (once), or raises it.
function schema.report(text)
  if not collected then error(text, 0) end
  for _, known in ipairs(collected) do
    if known == text then return end
  end
  collected[#collected + 1] = text
end

--- Raises an error at the caller's place in the spec: "file:line: constructor: message".
function schema.fail(name, format, ...)
  local constructor = blocks[name] and #blocks[name].keys > 0 and name or nil
  error(where.prefix(constructor) .. name .. ": " .. string.format(format, ...), 0)
end

local function names_of(block)
  local names = {}
  for i, key in ipairs(block.keys) do names[i] = key.name end
  return names
end

--- Roles of the other blocks that have this key: "train (adam, sgd)".
local function owners(word, block)
  local by_role, roles = {}, {}
  for _, other in ipairs(order) do
    if other ~= block and other.role and other.role ~= block.role and other.by_name[word] then
      if not by_role[other.role] then
        by_role[other.role] = {}
        roles[#roles + 1] = other.role
      end
      table.insert(by_role[other.role], other.name)
    end
  end
  local parts = {}
  for i, role in ipairs(roles) do
    local names = table.concat(by_role[role], ", ")
    parts[i] = names == role and role or string.format("%s (%s)", role, names)
  end
  return table.concat(parts, " or ")
end

--- What follows "unknown key 'word'": where it belongs, the nearest valid key, or all keys.
local function advice(word, block)
  local belongs = owners(word, block)
  if belongs ~= "" then return " (it belongs to " .. belongs .. ")" end
  local hint = suggest.hint(word, names_of(block))
  if hint ~= "" then return hint end
  for _, other in ipairs(order) do
    local near = other.role and suggest.nearest(word, names_of(other))
    if near then return string.format(" (did you mean '%s' of %s?)", near, other.name) end
  end
  local axis = suggest.nearest(word, schema.usual_axes)
  if axis then return string.format(" (did you mean the axis '%s' of grid?)", axis) end
  return #block.keys == 0 and " (it takes none)" or " (keys: " .. table.concat(names_of(block), ", ") .. ")"
end

local function complain(block, key, format, ...)
  local path = key and { key }
  schema.report(where.prefix(block.name, path) .. block.name .. ": " .. string.format(format, ...))
end

--- The table of keys from what the constructor was given: {..}, one positional value, or nothing.
local function named(block, args)
  if type(args) ~= "table" or kinds.tag(args) then
    if args == nil then return {} end
    if not block.positional then
      complain(block, nil, "expects a table of keys, got %s", kinds.describe(args))
      return nil
    end
    args = { args }
  end
  local out = {}
  for k, v in pairs(args) do
    local name = math.type(k) == "integer" and block.positional and block.positional[k] or k
    if out[name] ~= nil then complain(block, name, "key '%s' is given twice", name) end
    out[name] = v
  end
  return out
end

local function sorted_keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    if type(a) ~= "string" and type(a) ~= "number" then return tostring(a) < tostring(b) end
    return a < b
  end)
  return keys
end

local function check_unknown(block, args)
  for _, k in ipairs(sorted_keys(args)) do
    if type(k) == "number" then
      complain(block, k, "takes keys by name; nothing belongs at position %s", kinds.describe(k))
    elseif type(k) ~= "string" then
      complain(block, nil, "a key is %s, not a name", kinds.describe(k))
    elseif not block.by_name[k] then
      complain(block, k, "unknown key '%s'%s", k, advice(k, block))
    end
  end
end

local function check_value(block, key, v)
  if v == nil then
    if key.required then
      complain(block, nil, "key '%s' is missing: %s", key.name, key.doc)
      return nil, true
    end
    return edition.default(key)
  end
  local value, reason = kinds.check(v, key)
  if value == nil then
    complain(block, key.name, "'%s' %s", key.name, reason)
    return nil, true
  end
  return value, rawequal(value, kinds.broken)
end

--- The checked values of a call with defaults filled in, or nil when errors were collected (then also the values that
-- are good). Raises when not collecting.
function schema.check(name, args)
  local block = assert(blocks[name], name)
  args = named(block, args)
  if not args then return nil end
  local ok = true
  local before = collected and #collected
  check_unknown(block, args)
  local values = {}
  for _, key in ipairs(block.keys) do
    local value, bad = check_value(block, key, args[key.name])
    values[key.name] = value
    ok = ok and not bad
  end
  if not ok or (before and #collected > before) then return nil, values end
  return values
end

--- The kind of a key whose value is a table of keys itself; key.block is the name under which that table is registered.
function kinds.block(v, key)
  if type(v) ~= "table" or kinds.tag(v) then
    return nil, string.format("must be %s, got %s", blocks[key.block].looks, kinds.describe(v))
  end
  return schema.check(key.block, v) or kinds.broken
end

--- The kind of the key `edition`. A spec that names another edition than the one under which it is being read is read
-- once more (ph.spec); where nothing can be read again, only the current edition may be named.
function kinds.edition(v)
  local number, reason = kinds.integer(v, { min = 1, max = schema.newest_edition() })
  if not number then return nil, reason end
  if not collected and number ~= edition.current() then
    return nil, string.format("must be %d here, got %d; a spec in a file may name another", edition.current(), number)
  end
  edition.named = number
  return number
end

--- The key `edition` of experiments.
schema.edition_key = {
  name = "edition", kind = "edition", default = 1, since = 2,
  doc = "whose defaults hold; a later edition has better ones for some keys, which then name them",
}

--- A constructor: validates, then builds; gives the object that absorbs everything when there were errors.
function schema.constructor(block, build)
  schema.define(block)
  return function(args)
    local values = schema.check(block.name, args)
    if not values then return kinds.broken end
    return build(values)
  end
end

return schema
