--- What a spec writes inside rules, read: numbers, conditions, values of an axis, filters. Each function takes what was
-- written and gives a plain table of strings, numbers and lists, or nil, one message, and the key it is about.
--
-- Forms a spec may write:
--   number      2        ph.mean { "growth", depth = 240 }        ph.gap(a, b)
--   condition   { a, "<=", b }        ph.band(a, low, high)        "name of an earlier rule"        ph.all { ... }
--   values      240        { 48, 96 }        ph.at_least(48)        ph.except("ph")        "*" (each value of the grid)

local read = {}

local signs <const> = { ["<"] = true, ["<="] = true, [">"] = true, [">="] = true, ["=="] = true, ["~="] = true }
local numbers <const> = {
  mean = 1, sd = 1, median = 1, min = 1, max = 1, sum = 1, count = 1, rank = 1, gap = 1, ratio = 1,
}
local conditions <const> = {
  compare = 1, band = 1, all = 1, any = 1, none = 1, every = 1, some = 1, rule = 1, unevaluable = 1,
}

--- Words that a grid axis cannot have as its name when rules are to speak of it.
read.reserved = {
  runs = true, diverged = true, status = true, below = true, above = true, at_least = true, at_most = true,
  order = true, ties = true, among = true, name = true, note = true,
}

--- True for a finite number.
function read.finite(v)
  return type(v) == "number" and v == v and v ~= math.huge and v ~= -math.huge
end

--- Integral floats are integers, as everywhere in a spec.
function read.whole(v)
  return type(v) == "number" and math.tointeger(v) or v
end

local function scalar(v)
  return type(v) == "string" or type(v) == "boolean" or read.finite(v)
end

--- What a value is, in the words of a message.
function read.what(v)
  if type(v) == "string" then return "'" .. v .. "'" end
  if type(v) == "table" and v.op then return "ph." .. v.op end
  return type(v) == "table" and "a table" or tostring(v)
end

--- A list without holes and without other keys.
function read.list(t)
  local out, n = {}, 0
  for k in pairs(t) do
    if math.type(k) ~= "integer" then return nil, string.format("unknown key '%s'", tostring(k)), k end
    n = math.max(n, k)
  end
  for i = 1, n do
    if t[i] == nil then return nil, string.format("the list has a hole at %d", i), i end
    out[i] = t[i]
  end
  return out
end

--- A number expression: a number or what a number constructor made.
function read.number(v)
  if type(v) == "table" and numbers[v.op or ""] then return v end
  if read.finite(v) then return read.whole(v) end
  if type(v) == "string" then
    return nil, string.format("'%s' is a name; say how its runs become one number, as in ph.mean { \"%s\" }", v, v)
  end
  return nil, "expected a number or an aggregate such as ph.mean, got " .. read.what(v)
end

local function compare(t)
  local left, e1 = read.number(t[1])
  if not left then return nil, e1, 1 end
  if not signs[t[2]] then
    return nil, string.format("unknown comparison %s; use < <= > >= == ~=", read.what(t[2])), 2
  end
  local right, e2 = read.number(t[3])
  if not right then return nil, e2, 3 end
  if #t > 3 then return nil, "a comparison has three parts: { a, \"<=\", b }", 4 end
  return { op = "compare", left = left, cmp = t[2], right = right }
end

--- A condition: what a condition constructor made, { a, "<=", b }, or the name of an earlier rule.
function read.condition(v)
  if type(v) == "string" then return { op = "rule", name = v } end
  if type(v) == "function" then return nil, "a rule cannot be a Lua function: rules are data" end
  if type(v) ~= "table" then return nil, "expected a condition, got " .. read.what(v) end
  if v.op and conditions[v.op] then return v end
  if v.op then
    return nil,
      "expected a condition, got the number " .. read.what(v) .. "; compare it: { " .. read.what(v)
        .. " {...}, \"<=\", 2 }"
  end
  if #v == 0 then return nil, "expected a condition { a, \"<=\", b }, got an empty table" end
  return compare(v)
end

local function scalars(list)
  local out = {}
  for i, v in ipairs(list) do
    if not scalar(v) then return nil, string.format("value %d is %s", i, read.what(v)) end
    out[i] = read.whole(v)
  end
  return out
end

--- Which values of an axis: a value, a list of values, "*", or what ph.at_least, ph.at_most, ph.except made.
function read.selector(v)
  if v == "*" then return { each = true } end
  if type(v) ~= "table" then
    if scalar(v) then return { is = read.whole(v) } end
    return nil, "expected a value of the grid, got " .. read.what(v)
  end
  if v.op then return nil, "expected values of the grid, got " .. read.what(v) end
  if v.at_least or v.at_most or v.except then return v end
  local list, problem = read.list(v)
  if not list then return nil, problem end
  if #list == 0 then return nil, "the list of values is empty" end
  local any, why = scalars(list)
  if not any then return nil, why end
  return { any = any }
end

function read.at_least(v)
  if not read.finite(v) then return nil, "expected a number, got " .. read.what(v) end
  return { at_least = read.whole(v) }
end

function read.at_most(v)
  if not read.finite(v) then return nil, "expected a number, got " .. read.what(v) end
  return { at_most = read.whole(v) }
end

function read.except(...)
  local list, why = scalars { ... }
  if not list then return nil, why end
  if #list == 0 then return nil, "expected the values to leave out" end
  return { except = list }
end

--- Splits what a spec wrote into its first item, the options a constructor knows, and filters by axis:
-- { first, opts, where }.
function read.parts(t, options)
  if type(t) ~= "table" then return nil, "expected { \"metric\", axis = value, ... }, got " .. read.what(t) end
  local first, opts, where = t[1], {}, nil
  for k, v in pairs(t) do
    if k == 1 then first = v
    elseif type(k) ~= "string" then return nil, string.format("unexpected item %s", tostring(k)), k
    elseif options[k] then opts[k] = v
    elseif read.reserved[k] then return nil, string.format("'%s' has no meaning here", k), k
    else
      local s, problem = read.selector(v)
      if not s then return nil, k .. ": " .. problem, k end
      where = where or {}
      where[k] = s
    end
  end
  return { first = first, opts = opts, where = where }
end

return read
