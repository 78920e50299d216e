--- Keys that are written twice in one table of a spec, and functions of a table that are defined twice. Lua keeps the
-- last and drops the first without a word, so the table says something else than a reader of its first lines believes;
-- only the text still has both.

local where = require "ph.schema.where"

local twice = {}

--- The key of the field that starts at token t, as Lua has it (1.0 is 1, "a" is a), or nil: none, or an expression.
local function constant_key(tokens, t)
  local a, b, c = tokens[t], tokens[t + 1], tokens[t + 2]
  if not b then return nil end
  if a.kind == "name" and b.text == "=" then return a.text end
  local after = tokens[t + 3]
  if a.text ~= "[" or not c or c.text ~= "]" or not after or after.text ~= "=" then return nil end
  local constant = b.kind == "string" or b.kind == "number" or b.text == "true" or b.text == "false"
  if not constant then return nil end
  local value = load("return " .. b.text, "=key", "t", {})
  return value and value()
end

local opens <const> = {
  ["{"] = true, ["("] = true, ["["] = true, ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true,
}
local closes <const> = { ["}"] = true, [")"] = true, ["]"] = true, ["end"] = true, ["until"] = true }

local function key_text(key)
  local shown = type(key) == "string" and "'%s'" or "[%s]"
  return string.format("key " .. shown .. " is written twice in one table", math.tointeger(key) or key)
end

--- Keeps the line in which something stood first; tells when it was there before.
local function note(lines, key, line, found, text)
  if lines[key] then found[#found + 1] = { text = text(key), line = line, first = lines[key] } end
  lines[key] = lines[key] or line
end

--- Notes the field that starts at token t in its table.
local function enter_field(tokens, t, fields, found)
  local key = constant_key(tokens, t)
  if key == nil then
    if tokens[t].text == "[" then return end
    fields.position = fields.position + 1
    key = fields.position
  end
  note(fields.keys, key, tokens[t].line, found, key_text)
end

local function function_text(name) return "function " .. name .. " is defined twice" end

--- Notes `function a.b.c(` at token t; other functions stand in no table.
local function enter_function(tokens, t, functions, found)
  local name, i = {}, t + 1
  while tokens[i] and tokens[i].text ~= "(" do
    name[#name + 1] = tokens[i].text
    i = i + 1
  end
  if #name > 1 then note(functions, table.concat(name), tokens[t].line, found, function_text) end
end

--- All that the text of a registered chunk has twice: list of { text (what), line, first (line of the first) }.
-- Functions count outside of every block: the branches of a condition may define one each.
function twice.find(chunk)
  local tokens, stack, functions, found = where.tokens_of(chunk), {}, {}, {}
  for t, token in ipairs(tokens) do
    local top = stack[#stack]
    local word = token.kind ~= "string" and token.text
    if top and top.fresh and word ~= "}" then enter_field(tokens, t, top.fields, found) end
    if top then top.fresh = top.fields ~= nil and (word == "," or word == ";") end
    if word == "function" and not top then enter_function(tokens, t, functions, found) end
    if closes[word] then
      stack[#stack] = nil
    elseif opens[word] then
      stack[#stack + 1] = word == "{" and { fields = { keys = {}, position = 0 }, fresh = true } or {}
    end
  end
  return found
end

return twice
