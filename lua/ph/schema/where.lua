--- Where in a spec something was written: file and line of a constructor call, and of one key inside it.
--
-- The call's line comes from the call stack: the nearest frame whose chunk is a registered spec file. A tail call
-- (`return ph.experiment { ... }`) leaves no frame; then the text itself is searched for the constructor's name, or the
-- line of the block being traced is given. The line of a key is found by reading the tokens of the call's braces.

local where = {}

local sources = {} -- chunk source ("@path") -> { path, text, tokens }
local current      -- source of the spec being loaded, for calls that left no frame
local within       -- { source, line } of the block being traced, or nil
local elsewhere    -- prefix of errors that have no place in a text (the command line), or nil

--- Registers the text of a spec file; returns its chunk name.
function where.register(path, text)
  local chunk = "@" .. path
  sources[chunk] = { path = path, text = text }
  return chunk
end

--- Names the file that errors without a frame belong to (nil: none); returns the one before.
function where.enter(chunk)
  local before = current and "@" .. current.path
  current = chunk and sources[chunk]
  return before
end

local function frame()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    local source = sources[info.source]
    if source then return source, info.currentline end
    level = level + 1
  end
end

local long_open <const> = "^%[(=*)%["

--- End of a comment or a long string that starts at `i` with a long bracket; nil if it is none.
local function long_end(text, i)
  local level = text:match(long_open, i)
  if not level then return nil end
  local _, stop = text:find("]" .. level .. "]", i, true)
  return stop or #text
end

local function string_end(text, i)
  local quote, j = text:sub(i, i), i + 1
  while j <= #text do
    local c = text:sub(j, j)
    if c == "\\" then j = j + 1
    elseif c == quote or c == "\n" then return j
    end
    j = j + 1
  end
  return #text
end

local token_rules <const> = { { "name", "^[%a_][%w_]*" }, { "number", "^%d[%w%.]*" }, { "sign", "^[=~<>]=" } }

--- One token at `i` (no blank there): kind and last byte.
local function token_at(text, i)
  if text:find("^%-%-", i) then
    return "comment", long_end(text, i + 2) or (text:find("\n", i, true) or #text + 1) - 1
  end
  local stop = long_end(text, i)
  if stop then return "string", stop end
  if text:find("^[\"']", i) then return "string", string_end(text, i) end
  for _, rule in ipairs(token_rules) do
    local _, last = text:find(rule[2], i)
    if last then return rule[1], last end
  end
  return "sign", i
end

--- Tokens of a text as { kind, text, line }, comments left out.
function where.tokens(text)
  local tokens, i, line = {}, 1, 1
  while true do
    local start = text:find("%S", i)
    if not start then return tokens end
    line = line + select(2, text:sub(i, start - 1):gsub("\n", ""))
    local kind, stop = token_at(text, start)
    local word = text:sub(start, stop)
    if kind ~= "comment" then tokens[#tokens + 1] = { kind = kind, text = word, line = line } end
    line = line + select(2, word:gsub("\n", ""))
    i = stop + 1
  end
end

local function tokens_of(source)
  source.tokens = source.tokens or where.tokens(source.text)
  return source.tokens
end

--- Tokens of the text of a registered chunk.
function where.tokens_of(chunk) return tokens_of(sources[chunk]) end

local opens <const> = { ["{"] = 1, ["("] = 1, ["["] = 1, ["}"] = -1, [")"] = -1, ["]"] = -1 }
local words <const> = { ["function"] = 1, ["if"] = 1, ["do"] = 1, ["repeat"] = 1, ["end"] = -1, ["until"] = -1 }

--- Key of the field that starts at token t, and the index of its value: name, or nil for a positional field.
local function field_key(tokens, t)
  local a, b = tokens[t], tokens[t + 1]
  if a.kind == "name" and b and b.text == "=" then return a.text, t + 2 end
  if a.text == "[" and b and tokens[t + 2] and tokens[t + 2].text == "]" then
    local key = b.kind == "string" and b.text:sub(2, -2) or math.tointeger(tonumber(b.text))
    return key, t + 4
  end
  return nil, t
end

--- Index of the field `key` (a name or a position) inside the braces opened at token `open`.
local function find_field(tokens, open, key)
  local t, depth, position, start = open + 1, 0, 0, true
  while tokens[t] do
    local text = tokens[t].text
    if start and text ~= "}" then
      local name, value = field_key(tokens, t)
      if not name then position = position + 1 end
      if (name or position) == key then return t, value end
      start = false
    end
    depth = depth + (opens[text] or (tokens[t].kind == "name" and words[text]) or 0)
    if depth < 0 then return nil end
    if depth == 0 and (text == "," or text == ";") then start = true end
    t = t + 1
  end
end

--- Token index of the field reached by `path` from the braces opened at `open`, or nil.
local function find_path(tokens, open, path)
  local at
  for i, key in ipairs(path) do
    local field, value = find_field(tokens, open, key)
    if not field then return at end
    at, open = field, value
    if i < #path and not (tokens[open] and tokens[open].text == "{") then return at end
  end
  return at
end

--- Index of the token that opens the arguments after the name at t (`name {`, `name ({`, `name = {`, `name(`), or nil.
local function opening(tokens, t)
  local a, b = tokens[t + 1], tokens[t + 2]
  if not a then return nil end
  if a.text == "{" then return t + 1 end
  if (a.text == "(" or a.text == "=") and b and b.text == "{" then return t + 2 end
  return a.text == "(" and t + 1 or nil
end

--- Iterates over the calls of `name` from `line` on: token index of the name and of what opens its arguments.
local function calls(tokens, name, line)
  local t = 0
  return function()
    while true do
      t = t + 1
      local token = tokens[t]
      if not token then return nil end
      if token.kind == "name" and token.text == name and token.line >= line then
        local open = opening(tokens, t)
        if open then return t, open end
      end
    end
  end
end

--- Line of the call of `name` at or after `line` (0: anywhere), or of the key at `path` inside it.
local function line_of(source, name, line, path)
  local tokens, first = tokens_of(source), nil
  for at, open in calls(tokens, name, line) do
    first = first or tokens[at].line
    local field = path and tokens[open].text == "{" and find_path(tokens, open, path)
    if field then return tokens[field].line end
    if not path or line > 0 then return first end
  end
  return first
end

local function mentions(source, name, line)
  for _, token in ipairs(tokens_of(source)) do
    if token.line == line and token.text == name then return true end
  end
  return false
end

--- Path and line of the constructor being called; `path` names a key inside its braces ({ "grid", "depth" }); without a
-- constructor the line being run. nil when the caller is not a spec (the REPL, tests).
function where.find(constructor, path)
  local source, line = frame()
  local name = constructor and constructor:match "[%w_]+$"
  if source and (not name or mentions(source, name, line)) then
    return source.path, name and path and line_of(source, name, line, path) or line
  end
  for _, text in ipairs { current or source, source } do -- a tail call: the frame there is, if any, is not the caller's
    local found = name and line_of(text, name, 0, path)
    if found then return text.path, found end
  end
  if source then return source.path, line end
  if within then return within.source.path, within.line end
  if current then return current.path, 1 end
end

--- Calls g(...); errors of calls that left no frame are said to come from where the function f is defined.
function where.of(f, g, ...)
  local info = type(f) == "function" and debug.getinfo(f, "S")
  local outer = within
  within = info and sources[info.source] and { source = sources[info.source], line = info.linedefined } or outer
  local results = table.pack(pcall(g, ...))
  within = outer
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- Runs f while errors are said to come from `name` ("command line") instead of a file.
function where.from(name, f, ...)
  elsewhere = name .. ": "
  local results = table.pack(pcall(f, ...))
  elsewhere = nil
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- "file:line: " of the caller, or "".
function where.prefix(constructor, path)
  if elsewhere then return elsewhere end
  local file, line = where.find(constructor, path)
  return file and string.format("%s:%d: ", file, line) or ""
end

--- An error of limited code as one text with its place: that of the error itself, or
-- `place` as native.spec_load gives it.
function where.located(problem, place)
  local mt = debug.getmetatable(problem)
  if type(problem) ~= "string" and not (mt and mt.__tostring) then
    problem = "error() was called with a " .. type(problem) .. " value instead of a message"
  end
  local text = tostring(problem)
  if not place or text == "interrupted" or text:find "^[^\n]-:%d+: " then return text end
  return place .. ": " .. text
end

--- Whether token i ends the dotted name of `function a.b.c`.
local function declares(tokens, i)
  while i > 2 and tokens[i - 1].text == "." do i = i - 2 end
  return i > 1 and tokens[i - 1].text == "function"
end

--- Declared names and quoted words of some texts (chunk names), for suggestions: two sets.
function where.vocabulary(chunks)
  local names, strings = {}, {}
  for _, chunk in ipairs(chunks) do
    local source = sources[chunk]
    for i, token in ipairs(tokens_of(source)) do
      if token.kind == "string" then strings[token.text:sub(2, -2)] = true end
      local nxt = source.tokens[i + 1]
      if token.kind == "name" and nxt and nxt.text == "=" then names[token.text] = true end
      -- function f( declares a name; function block.resnet( a key, which is a quoted word elsewhere
      if token.kind == "name" and nxt and nxt.text == "(" and declares(source.tokens, i) then
        local set = source.tokens[i - 1].text == "." and strings or names
        set[token.text] = true
      end
    end
  end
  return names, strings
end

return where
