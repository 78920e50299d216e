--- What a spec sees: an allow-listed environment without files, time or chance, and `require`. Names that are not
-- declared are errors. `pairs` goes through keys in a fixed order, so that a spec means the same everywhere.

local kinds = require "ph.schema.kinds"
local sorted_keys = require "ph.util.sorted_keys"
local suggest = require "ph.util.suggest"
local texts = require "ph.lang.texts"
local where = require "ph.schema.where"

local function without(library, ...)
  local copy, names = {}, { ... }
  for k, v in pairs(library) do copy[k] = v end
  for _, name in ipairs(names) do copy[name] = nil end
  return copy
end

local function order(a, b)
  local ta, tb = type(a), type(b)
  if ta ~= tb then return ta < tb end
  if ta == "boolean" then return not a and b end
  return a < b
end

local ordered <const> = { boolean = true, number = true, string = true }

--- pairs in a fixed order: false and true, numbers, strings.
local function ordered_pairs(t)
  local keys, i = {}, 0
  for k in next, t do
    if not ordered[type(k)] then
      error(string.format("%spairs: a key is a %s, and such keys have another order in every process", where.prefix(),
        type(k)), 0)
    end
    keys[#keys + 1] = k
  end
  table.sort(keys, order)
  return function()
    i = i + 1
    if keys[i] ~= nil then return keys[i], t[keys[i]] end
  end
end

--- A table of the language as a spec sees it: read-only, unknown names are errors with a suggestion.
local function read_only(t, name)
  return setmetatable({}, {
    __index = function(_, k)
      local v = t[k]
      if v == nil then
        local names = {}
        for word in pairs(t) do names[#names + 1] = tostring(word) end
        error(
          string.format("%s%s.%s: no such name%s", where.prefix(), name, tostring(k), suggest.hint(tostring(k), names)),
          0)
      end
      return type(v) == "table" and not kinds.tag(v) and read_only(v, name .. "." .. tostring(k)) or v
    end,
    __newindex = function(_, k)
      error(string.format("%s%s.%s cannot be changed", where.prefix(), name, tostring(k)), 0)
    end,
  })
end

local absent <const> = {
  "os", "io", "debug", "package", "load", "loadstring", "loadfile", "dofile", "pcall", "xpcall", "coroutine", "next",
  "rawget", "rawset", "rawequal", "rawlen", "setmetatable", "getmetatable", "collectgarbage", "print", "arg",
}

--- What follows "undeclared name 'x'".
local function name_hint(name, env, chunks)
  for _, word in ipairs(absent) do
    if word == name then return " (it does not exist in a spec)" end
  end
  local names, strings = where.vocabulary(chunks)
  if strings[name] or names[name] then return string.format(" (quotes missing? did you mean \"%s\"?)", name) end
  local words = {}
  for _, set in ipairs { env, names, strings } do
    for word in pairs(set) do words[#words + 1] = word end
  end
  local near = suggest.nearest(name, words)
  if not near then return "" end
  return string.format(strings[near] and " (did you mean \"%s\"?)" or " (did you mean '%s'?)", near)
end

--- A library of Lua as a spec has it; what it has not is an error that says so.
local function library(name, functions, advice)
  return setmetatable(functions, {
    __index = function(_, k)
      local near = suggest.hint(tostring(k), sorted_keys(functions))
      local message <const> = "%s%s.%s does not exist in a spec%s"
      error(message:format(where.prefix(), name, tostring(k), advice[k] or near), 0)
    end,
  })
end

local chance <const> = " (numbers are drawn by init and by tasks, from seeds)"
local tanh <const> = " (ph.tanh is for states)"
local no_math <const> = { random = chance, randomseed = chance, tanh = tanh }

--- The global table of a spec. load_sibling(name) serves `require`; chunks: names of the texts loaded, for suggestions.
return function(load_sibling, chunks)
  local ph = read_only(require "ph", "ph")
  local env = {
    assert = assert, error = error, ipairs = ipairs, pairs = ordered_pairs, select = select, tonumber = tonumber,
    tostring = texts.tostring, type = type, math = library("math", without(math, "random", "randomseed"), no_math),
    string = library("string", without(texts.string), {}), table = library("table", without(table), {}),
    utf8 = library("utf8", without(utf8), {}),
  }
  function env.require(name)
    if name == "ph" then return ph end
    return load_sibling(name)
  end
  return setmetatable(env, {
    __index = function(_, name)
      error(
        string.format("%sundeclared name '%s'%s", where.prefix(), tostring(name),
          name_hint(tostring(name), env, chunks)), 0)
    end,
  })
end
