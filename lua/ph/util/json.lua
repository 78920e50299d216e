--- Canonical JSON: one text per value, so that texts can be hashed and compared.
--
-- Keys are sorted by bytes, no spaces, integral floats print as integers, other numbers print with the fewest digits
-- that read back to the same bits. JSON has no word for numbers that are not finite; they are written {"number":"nan"},
-- {"number":"inf"} or {"number":"-inf"} and read back as numbers. An empty table is an object unless made by
-- `json.list`. Reading takes any JSON (RFC 8259). It is done here because it must be fast (a ledger of 10,000 runs is
-- 16 MB; dkjson takes three times as long). `null` becomes nil.

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

local escapes <const> = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\b"] = "\\b", ["\f"] = "\\f",
}

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
  elseif v == nil then out[#out + 1] = "null"
  else error("json: a " .. kind .. " has no text", 0)
  end
end

--- The canonical text of a value. Raises on functions, userdata and keys that are not strings.
function json.encode(v)
  local out = {}
  put(out, v)
  return table.concat(out)
end

-- ---- reading ----

local find, sub, byte = string.find, string.sub, string.byte
local most_depth <const> = 200
local unescapes <const> = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function fail(at, what) error({ at = at, what = what }, 0) end

local function skip(s, at) return find(s, "[^ \t\r\n]", at) or #s + 1 end

--- The bytes of \uXXXX escapes; a pair of surrogates is one character.
local function unicode(text, at)
  text = text:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", function(high, low)
    return utf8.char(0x10000 + ((tonumber(high, 16) & 0x3ff) << 10) + (tonumber(low, 16) & 0x3ff))
  end)
  return (text:gsub("\\u(%x%x%x%x)", function(code)
    local c = tonumber(code, 16)
    if c >= 0xd800 and c < 0xe000 then fail(at, "half a surrogate pair") end
    return utf8.char(c)
  end))
end

--- Takes the escapes out of a text that has some. "\\" is set aside first so that what
-- follows it is not taken for an escape.
local function unescape(text, at)
  local parts, from = {}, 1
  while true do
    local stop = find(text, "\\\\", from, true)
    local part = sub(text, from, (stop or #text + 1) - 1)
    if find(part, "\\u", 1, true) then part = unicode(part, at) end
    parts[#parts + 1] = part:gsub("\\(.)", function(c) return unescapes[c] or fail(at, "unknown escape \\" .. c) end)
    if not stop then return table.concat(parts, "\\") end
    from = stop + 2
  end
end

--- The text whose first byte after the quote is at `at`, and the position after it.
local function text_at(s, at)
  local stop = find(s, '["\\]', at)
  while stop and byte(s, stop) == 92 do stop = find(s, '["\\]', stop + 2) end
  if not stop then fail(at - 1, "a text without end") end
  local text = sub(s, at, stop - 1)
  if find(text, "\\", 1, true) then text = unescape(text, at) end
  return text, stop + 1
end

local value_at

local function list_at(s, at, depth)
  local t, n = setmetatable({}, list_mt), 0
  at = skip(s, at)
  if byte(s, at) == 93 then return t, at + 1 end
  while true do
    n = n + 1
    t[n], at = value_at(s, at, depth)
    at = skip(s, at)
    local c = byte(s, at)
    at = at + 1
    if c == 93 then return t, at end
    if c ~= 44 then fail(at - 1, "',' or ']' expected") end
  end
end

local function object_at(s, at, depth)
  local t = {}
  at = skip(s, at)
  if byte(s, at) == 125 then return t, at + 1 end
  while true do
    local key
    at = skip(s, at)
    if byte(s, at) ~= 34 then fail(at, "a key expected") end
    key, at = text_at(s, at + 1)
    at = skip(s, at)
    if byte(s, at) ~= 58 then fail(at, "':' expected") end
    t[key], at = value_at(s, at + 1, depth)
    at = skip(s, at)
    local c = byte(s, at)
    at = at + 1
    if c == 125 then return t, at end
    if c ~= 44 then fail(at - 1, "',' or '}' expected") end
  end
end

local function word_at(s, at)
  local first, last = find(s, "^-?%d+%.?%d*[eE]?[-+]?%d*", at)
  if first then return tonumber(sub(s, first, last)) or fail(at, "a number expected"), last + 1 end
  first, last = find(s, "^%a+", at)
  local word = first and sub(s, first, last)
  if word == "true" then return true, last + 1 end
  if word == "false" then return false, last + 1 end
  if word == "null" then return nil, last + 1 end
  fail(at, "a value expected")
end

function value_at(s, at, depth)
  at = skip(s, at)
  local c = byte(s, at)
  if c == 34 then return text_at(s, at + 1) end
  if depth > most_depth then fail(at, "too deep") end
  if c == 123 then return object_at(s, at + 1, depth + 1) end
  if c == 91 then return list_at(s, at + 1, depth + 1) end
  return word_at(s, at)
end

local function whole(text)
  local v, at = value_at(text, 1, 0)
  at = skip(text, at)
  if at <= #text then fail(at, "text continues after the value") end
  return v
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

--- The value of a JSON text, or nil and a message with the byte.
function json.decode(text)
  local ok, v = pcall(whole, text)
  if not ok then
    if type(v) ~= "table" or not v.at then error(v, 0) end
    return nil, string.format("%s, at byte %d", v.what, v.at)
  end
  if find(text, '{"number":"', 1, true) then v = revive(v) end
  return v
end

return json
