--- key=value of the command line: restricts axes of the grid, changes keys of task, train and select.
--
--   depth=240 family=ph,resnet     an axis: keeps these values, or puts them in its place
--   train.epochs=5 task.noise=0.3  a key of train or task         select.lr=1e-3,3e-3   the candidates
--   data=DIR                       short for task.dir=DIR
--
-- Changes become part of what they change, and so of the run's hash.

local grid = require "ph.lang.grid"
local schema = require "ph.schema"
local suggest = require "ph.util.suggest"
local where = require "ph.schema.where"

local override = {}

local short <const> = { data = "task.dir" }

local function fail(format, ...) error("command line: " .. string.format(format, ...), 0) end

--- A word as the value it looks like: number, true/false, or string.
local function value_of(word)
  local number = tonumber(word)
  if number then return math.tointeger(number) or number end
  if word == "true" then return true end
  if word == "false" then return false end
  return word
end

--- "depth=30,120" -> "depth", { 30, 120 }, "30,120". Raises when it is not key=value.
function override.parse(text)
  local key, rest = text:match "^([%a_][%w_%.]*)=(.*)$"
  if not key then fail("'%s' is not key=value", text) end
  if rest == "" then fail("%s= has no value", key) end
  local values = {}
  for word in (rest .. ","):gmatch "([^,]*)," do
    if word == "" then fail("%s: an empty value in '%s'", key, rest) end
    values[#values + 1] = value_of(word)
  end
  return key, values, rest
end

local function keys_of_role(role, has)
  local out = {}
  for _, block in ipairs(schema.all()) do
    for _, key in ipairs(block.role == role and block.keys or {}) do
      if not has or has(key.name) then out[#out + 1] = role .. "." .. key.name end
    end
  end
  return out
end

--- The dotted keys this experiment knows.
local function known_keys(e)
  local all = keys_of_role("select")
  for _, what in ipairs { "task", "train" } do
    local part = e[what]
    table.move(keys_of_role(what, part and function(k) return part:has_key(k) end), 1, 1000, #all + 1, all)
  end
  return all
end

local function unknown(e, key)
  local known = known_keys(e)
  for _, full in ipairs(known) do
    if full:match "%.(.*)$" == key then fail("unknown key '%s' (did you mean '%s'?)", key, full) end
  end
  local axes = grid.axis_names(e.axes)
  table.move(axes, 1, #axes, #known + 1, known)
  fail("unknown key '%s'%s; axes of the grid: %s", key, suggest.hint(key, known), table.concat(axes, ", "))
end

--- A key of task or train takes one value; strings such as directories may hold commas.
local function single(what, name, values, rest)
  for _, block in ipairs(schema.all()) do
    local key = block.role == what and block.by_name[name]
    if key and key.kind == "string" then return rest end
  end
  if #values > 1 then fail("%s.%s takes one value, got %s", what, name, rest) end
  return values[1]
end

local function has(list, word)
  for _, x in ipairs(list) do
    if x == word then return true end
  end
  return false
end

--- Applies a word that changes an axis, and sorts any other under what it changes: `changes` has a table for task,
-- train and select, and `seen`.
local function take(e, text, changes)
  local key, values, rest = override.parse(text)
  local is_axis = has(grid.axis_names(e.axes), key)
  key = not is_axis and short[key] or key
  if changes.seen[key] then fail("%s is given twice", key) end
  changes.seen[key] = true
  if is_axis then
    local list, reason = grid.values(key, values)
    if not list then fail("%s %s", key, reason) end
    return e:set_axis(key, list)
  end
  local what, name = key:match "^(%a+)%.(.*)$"
  if not what or not has(known_keys(e), key) then unknown(e, key) end
  local is_list = what == "select" and name ~= "by"
  changes[what][name] = is_list and values or single(what, name, values, rest)
  table.insert(e.changes, key .. "=" .. rest)
end

--- Applies words of the command line ("key=value", or { key =, value = }) while a spec is loaded; errors are collected,
-- each a line that begins with "command line: ". Changes of one part are made together: some need each other.
function override.all(e, list)
  local changes = { task = {}, train = {}, select = {}, seen = {} }
  for _, text in ipairs(list or {}) do
    if type(text) == "table" then text = text.key .. "=" .. text.value end
    local ok, problem = pcall(take, e, text, changes)
    if not ok then schema.report(problem) end
  end
  table.sort(e.changes)
  for _, what in ipairs { "task", "train", "select" } do
    if next(changes[what]) then
      local ok, problem = pcall(where.from, "command line", e.change, e, what, changes[what])
      if not ok then schema.report(problem) end
    end
  end
end

return override
