--- Canonical JSON: one text per value, so that texts can be hashed and compared.
--
-- Keys are sorted by bytes, no spaces, integral floats print as integers, other numbers print with the fewest digits that
-- read back to the same bits. JSON has no word for numbers that are not finite; they are written {"number":"nan"},
-- {"number":"inf"} or {"number":"-inf"} and read back as numbers. An empty table is an object unless made by `json.list`.

local dkjson = require "dkjson"

local json = {}

local list_mt = { __jsontype = "array" }
local words <const> = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

--- Marks a table as a list, so that an empty one prints as [].
function json.list(t)
  return setmetatable(t or {}, list_mt)
end

--- The shortest decimal text that reads back to the same number; integral values have no ".0".
function json.number(v)
  if math.type(v) == "integer" then return string.format("%d", v) end
  if v ~= v then return '{"number":"nan"}' end
  if v == math.huge then return '{"number":"inf"}' end
  if v == -math.huge then return '{"number":"-inf"}' end
  if v == 0 and 1 / v < 0 then return "-0.0" end
  if v == math.floor(v) and math.abs(v) < 2 ^ 53 then return string.format("%d", math.tointeger(v)) end
  for digits = 15, 16 do
    local text = string.format("%." .. digits .. "g", v)
    if tonumber(text) == v then return text end
  end
  return string.format("%.17g", v)
end

local escapes <const> = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\b"] = "\\b", ["\f"] = "\\f" }

local function quote(s)
  return '"' .. s:gsub('[%c"\\\127]', function(c) return escapes[c] or string.format("\\u%04x", c:byte()) end) .. '"'
end

local function is_list(t)
  local mt = getmetatable(t)
  if mt and mt.__jsontype == "array" then return true end
  local n = #t
  if n == 0 then return false end
  for k in pairs(t) do
    if math.type(k) ~= "integer" or k < 1 or k > n then return false end
  end
  return true
end

local put

local function put_list(out, t)
  out[#out + 1] = "["
  for i = 1, #t do
    if i > 1 then out[#out + 1] = "," end
    put(out, t[i])
  end
  out[#out + 1] = "]"
end

local function put_object(out, t)
  local keys = {}
  for k in pairs(t) do
    if type(k) ~= "string" then error("json: a key is a " .. type(k) .. ", not a string", 0) end
    keys[#keys + 1] = k
  end
  table.sort(keys)
  out[#out + 1] = "{"
  for i, k in ipairs(keys) do
    if i > 1 then out[#out + 1] = "," end
    out[#out + 1] = quote(k)
    out[#out + 1] = ":"
    put(out, t[k])
  end
  out[#out + 1] = "}"
end

function put(out, v)
  local kind = type(v)
  if kind == "table" then
    if is_list(v) then put_list(out, v) else put_object(out, v) end
  elseif kind == "number" then out[#out + 1] = json.number(v)
  elseif kind == "string" then out[#out + 1] = quote(v)
  elseif kind == "boolean" then out[#out + 1] = tostring(v)
  elseif v == nil or v == dkjson.null then out[#out + 1] = "null"
  else error("json: a " .. kind .. " has no text", 0)
  end
end

--- The canonical text of a value. Raises on functions, userdata and keys that are not strings.
function json.encode(v)
  local out = {}
  put(out, v)
  return table.concat(out)
end

local function revive(v)
  if type(v) ~= "table" then return v end
  local word = rawget(v, "number")
  if type(word) == "string" and words[word] and next(v, next(v)) == nil then return words[word] end
  for k, x in pairs(v) do
    if type(x) == "table" then v[k] = revive(x) end
  end
  return v
end

--- The value of a JSON text, or nil and a message. `null` becomes nil.
function json.decode(text)
  local v, stop, problem = dkjson.decode(text, 1, nil)
  if problem then return nil, problem end
  local rest = text:find("%S", stop)
  if rest then return nil, "text goes on after the value, at byte " .. rest end
  if text:find('{"number":"', 1, true) then v = revive(v) end
  return v
end

return json
