--- Completion of names and fields: what the text before the cursor can go on with.

local native = require "ph.native"
local names = require "ph.repl.names"

local complete = {}

--- Keys of a table and of the tables its metatable leads to; of a userdata, its methods.
local function fields(v)
  local out, seen = {}, {}
  local function add(t)
    if type(t) ~= "table" or seen[t] then return end
    seen[t] = true
    for k in next, t do
      if type(k) == "string" and k:find "^[%a_][%w_]*$" then out[#out + 1] = k end
    end
    local class = debug.getmetatable(t)
    if class then add(rawget(class, "__index")) end
  end
  if type(v) == "table" then add(v)
  else add((debug.getmetatable(v) or {}).__index) end
  return out
end

local function get(env, name)
  local v = rawget(env, name)
  if v == nil then v = names.find(name, env) end
  return v
end

--- The value of a path "ph.task" without raising.
local function resolve(env, path)
  local v
  for name in path:gmatch "[%a_][%w_]*" do
    if v == nil then v = get(env, name)
    else
      local ok, field = pcall(function() return v[name] end)
      v = ok and field or nil
    end
    if v == nil then return nil end
  end
  return v
end

local function common_prefix(words)
  local prefix = words[1] or ""
  for _, word in ipairs(words) do
    while word:sub(1, #prefix) ~= prefix do prefix = prefix:sub(1, -2) end
  end
  return prefix
end

local function columns(words)
  local width, total = 0, native.columns(1)
  for _, word in ipairs(words) do width = math.max(width, #word + 2) end
  local per_line, lines = math.max(1, total // width), {}
  for i = 1, #words, per_line do
    local line = {}
    for j = i, math.min(i + per_line - 1, #words) do line[#line + 1] = words[j] .. (" "):rep(width - #words[j]) end
    lines[#lines + 1] = (table.concat(line):gsub("%s+$", ""))
  end
  return table.concat(lines, "\n")
end

--- The sorted candidates for the word at the end of `text`, and the part of it already written.
function complete.candidates(env, text)
  local path, written = text:match "([%a_][%w_]*[%w_%.:]*)[.:]([%w_]*)$"
  local words, out, seen
  if path then words = fields(resolve(env, path))
  else
    written = text:match "[%a_][%w_]*$" or ""
    if written == "" then return {}, "" end
    words = names.all(env)
  end
  out, seen = {}, {}
  for _, word in ipairs(words) do
    if word:sub(1, #written) == written and not seen[word] then
      seen[word] = true
      out[#out + 1] = word
    end
  end
  table.sort(out)
  return out, written
end

--- What to insert after `text`, and a listing of the choices when there is nothing to insert.
function complete.answer(env, text)
  local words, written = complete.candidates(env, text)
  local more = common_prefix(words):sub(#written + 1)
  return more, more == "" and #words > 1 and columns(words) or nil
end

return complete
