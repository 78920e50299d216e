--- A registered plan as a flat list of fields, and what two plans differ in.
--
-- A plan is plain data. A field is the path to a leaf: "train.epochs", "rules.parity.when.right", "grid.depth".
-- Elements of lists that have a name are found under it, and their order is a field of its own ("categories (order)"),
-- since the order of categories decides; lists of plain values are leaves, printed whole.

local json = require "ph.util.json"

local plan = {}

local function is_leaf(v)
  if type(v) ~= "table" then return true end
  if next(v) == nil then return true end
  for k, x in pairs(v) do
    if type(k) ~= "number" or type(x) == "table" then return false end
  end
  return true
end

local function step(key, v)
  if type(key) == "number" then return type(v) == "table" and type(v.name) == "string" and v.name or tostring(key) end
  return key
end

local function sorted(v)
  local keys = {}
  for k in pairs(v) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    return a < b
  end)
  return keys
end

local function add(out, path, v)
  out[#out + 1] = { field = path, text = json.encode(v) }
  out[path] = out[#out].text
end

-- Names of a list's elements in order; nil for any other table.
local function order_of(v)
  local names = json.list {}
  for i, x in ipairs(v) do
    if type(x) ~= "table" or type(x.name) ~= "string" then return nil end
    names[i] = x.name
  end
  return #names > 1 and names or nil
end

local function put(out, path, v)
  if is_leaf(v) then return add(out, path, v) end
  for _, k in ipairs(sorted(v)) do
    local name = step(k, v[k])
    put(out, path == "" and name or path .. "." .. name, v[k])
  end
  local order = order_of(v)
  if order then add(out, path .. " (order)", order) end
end

--- All fields of a plan in a fixed order: list of { field, text }, also a map field -> text.
function plan.fields(p)
  local out = {}
  put(out, "", p)
  return out
end

--- Where `now` departs from `locked`: list of { field, locked = text or nil, now = text or nil }, fields in the order
-- of the locked plan, new ones last.
function plan.differences(locked, now)
  local a, b, out = plan.fields(locked), plan.fields(now), {}
  for _, f in ipairs(a) do
    if b[f.field] ~= f.text then out[#out + 1] = { field = f.field, locked = f.text, now = b[f.field] } end
  end
  for _, f in ipairs(b) do
    if a[f.field] == nil then out[#out + 1] = { field = f.field, now = f.text } end
  end
  return out
end

local function shorten(text)
  return #text > 100 and text:sub(1, 97) .. "..." or text
end

--- "train.epochs: locked 60, now 30".
function plan.line(d)
  return string.format("%s: locked %s, now %s", d.field, shorten(d.locked or "absent"), shorten(d.now or "absent"))
end

--- True when `field` is `prefix` or lies below it.
function plan.under(field, prefix)
  return field == prefix or field:sub(1, #prefix + 1) == prefix .. "." or field == prefix .. " (order)"
end

return plan
