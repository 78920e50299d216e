--- Parameter groups of a protocol: parameters whose names match a pattern have rates of their own.
--
--   groups = { { "A", lr = 0.1 }, { "s2.*", weight_decay = 0 }, { "*", frozen = true } }
--
-- A parameter belongs to the first group that matches its name. `*` stands for any letters; a pattern without a dot is
-- compared with the name inside the segment ("A" matches "s1.A" and "s3.A").

local schema = require "ph.schema"
local suggest = require "ph.util.suggest"

local groups = {}

schema.define {
  name = "group", section = "protocols", positional = { "match" },
  looks = "a table such as { 'A', lr = 0.1 }",
  doc = "One entry of a protocol's `groups`: rates of the parameters whose names match.",
  keys = {
    { "match", kind = "string", required = true, pattern = "^[%w_.*]+$",
      pattern_text = "a name with letters, digits, _ . and *",
      doc = "name of parameters, such as 'A', 's1.*' or '*.b'" },
    { "lr", kind = "number", min = 0, max = 1e6, default = 1, doc = "factor on the learning rate" },
    { "weight_decay", kind = "number", min = 0, max = 1e6, doc = "instead of the protocol's weight_decay" },
    { "frozen", kind = "boolean", default = false,
      doc = "true: the parameters keep their initial values and count in no gradient norm" },
  },
}

--- The key of a protocol.
groups.key = {
  "groups", kind = "list", of = { kind = "block", block = "group" }, default = {}, since = 2,
  doc = "rates by parameter name; the first group that matches a parameter decides",
}

local function matcher(pattern)
  return "^" .. pattern:gsub("%.", "%%."):gsub("%*", ".*") .. "$"
end

--- The name inside its segment: "A" of "s1.A".
local function own_name(name) return name:match "%.(.*)$" or name end

local function matches(group, name)
  return (group.match:find(".", 1, true) and name or own_name(name)):find(matcher(group.match)) ~= nil
end

--- Index of the group that a parameter belongs to, or nil.
function groups.find(list, name)
  for i, group in ipairs(list) do
    if matches(group, name) then return i end
  end
end

--- Rates of every parameter under a protocol: list of { name, lr (factor),
-- weight_decay, frozen }, in the order of `names`.
function groups.rates(protocol, names)
  local out = {}
  for i, name in ipairs(names) do
    local group = protocol.groups[groups.find(protocol.groups, name)] or {}
    out[i] = {
      name = name, lr = group.lr or 1, weight_decay = group.weight_decay or protocol.weight_decay,
      frozen = group.frozen or false,
    }
  end
  return out
end

--- What is wrong with a list of groups for models whose parameters have these names (all models together), or nil.
function groups.problem(list, names)
  if #list == 0 then return nil end
  local used, moving = {}, false
  for _, name in ipairs(names) do
    local i = groups.find(list, name)
    if i then used[i] = true end
    moving = moving or not i or not list[i].frozen
  end
  for i, group in ipairs(list) do
    if not used[i] then return groups.idle(group, names) end
  end
  if not moving then return "every parameter is frozen" end
end

--- Why a group decides for no parameter.
function groups.idle(group, names)
  local own = {}
  for i, name in ipairs(names) do
    if matches(group, name) then
      return string.format("'%s' has no effect: earlier groups match all its parameters", group.match)
    end
    own[i] = group.match:find(".", 1, true) and name or own_name(name)
  end
  return string.format("'%s' matches no parameter of any model%s", group.match, suggest.hint(group.match, own))
end

return groups
