--- What a name means in the interactive session: the session's own variables,
-- conveniences, everything of `ph`, Lua's libraries.

local native = require "ph.native"
local open = require "ph.repl.open"
local ph = require "ph"
local suggest = require "ph.util.suggest"

local names = {}

local lua_names <const> = {
  "assert", "collectgarbage", "error", "getmetatable", "ipairs", "math", "next", "os", "pairs", "pcall", "print",
  "rawequal", "rawget", "rawlen", "rawset", "require", "select", "setmetatable", "string", "table", "tonumber",
  "tostring", "type", "utf8", "xpcall", "io", "coroutine", "debug", "load", "dofile",
}

local function is_tensor(v) return type(v) == "userdata" and (getmetatable(v) or {}).__name == "ph.tensor" end

local more = {}

--- skew(A) of a matrix; skew(n): of a random n x n matrix.
function more.skew(a)
  if math.type(a) == "integer" then return ph.skew(ph.randn(a, a)) end
  return ph.skew(a)
end

--- cayley(S) of a skew matrix at hand; cayley { d } is the channel.
function more.cayley(a)
  if is_tensor(a) then return ph.cayley_of(a) end
  return ph.cayley(a)
end

local function copied(t)
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  return out
end

--- That of a string is a copy: the program's own strings have the original.
function more.getmetatable(v)
  local mt = getmetatable(v)
  return type(v) == "string" and copied(mt) or mt
end

--- load "specs/e6.lua", load "runs/HASH.h5"
more.load = open.load

more.la = native.la
more.ph = ph

--- The modules whose functions are visible when they are installed.
local optional <const> = { laws = "ph.laws" }

local function from_module(name)
  local path = optional[name]
  if path and package.searchpath(path, package.path) then return require(path) end
end

--- A library of Lua as the session has it: its own copy, so that what is written into it reaches neither the program
-- nor specs that are loaded later.
local function library(name, env)
  local own = env and getmetatable(env).libraries
  if not own or type(_G[name]) ~= "table" then return _G[name] end
  own[name] = own[name] or copied(_G[name])
  return own[name]
end

--- Everything a name can mean beside the variables of the session `env` (may be nil), or nil.
function names.find(name, env)
  local v = env and getmetatable(env).extra[name]
  if v == nil then v = more[name] end
  if v == nil then v = ph[name] end
  if v == nil then v = from_module(name) end
  if v == nil then
    for _, known in ipairs(lua_names) do
      if known == name then return library(name, env) end
    end
  end
  return v
end

--- All names that can be written in the session `env` (nil: in any), sorted.
function names.all(env)
  local seen, out = {}, {}
  local function add(name)
    if type(name) == "string" and not seen[name] then
      seen[name] = true
      out[#out + 1] = name
    end
  end
  for _, set in ipairs { more, ph, optional, env, env and getmetatable(env).extra } do
    for name in next, set do add(name) end
  end
  for _, name in ipairs(lua_names) do add(name) end
  table.sort(out)
  return out
end

--- A session's environment. `extra`: functions of the session itself (help). Reading
-- a name that means nothing is an error.
function names.environment(extra)
  local env = {}
  return setmetatable(env, {
    extra = extra, libraries = {},
    __index = function(_, name)
      local v = names.find(name, env)
      if v == nil and name ~= "_" then
        error(string.format("undefined name '%s'%s", tostring(name), suggest.hint(tostring(name), names.all(env))), 0)
      end
      return v
    end,
  })
end

--- The name in `ph` (or of a convenience) that has this value, or nil.
function names.of(value)
  for _, set in ipairs { more, ph, ph.task or {} } do
    local found
    for name, v in pairs(set) do
      if rawequal(v, value) and (not found or name < found) then found = name end
    end
    if found then return found end
  end
end

return names
