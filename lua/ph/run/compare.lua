--- Two runs of the same thing compared: their files to the bit, their records by what must be the same again.

local fault = require "ph.util.fault"
local json = require "ph.util.json"
local observe = require "ph.lang.observe"
local runfile = require "ph.run.runfile"
local sorted_keys = require "ph.util.sorted_keys"

local compare = {}

-- Profiles had other names in earlier programs.
local function name_today(path)
  local place, name = path:match "^(/profiles/.*/)([^/]+)$"
  return place and place .. observe.profile_name(name) or path
end

-- Tensors of a run file by name. Weights are left out where one of the two files was pruned.
local function compared(file, with_weights)
  local out = {}
  for _, group in ipairs { "/history", "/profiles", "/confusion", "/final", "/best" } do
    local weights = group == "/final" or group == "/best"
    if file:kind(group) == "tensor" then out[group] = group end
    for _, item in ipairs(file:kind(group) == "group" and (with_weights or not weights) and file:list(group) or {}) do
      if item.kind == "tensor" then out[name_today(item.path)] = item.path end
    end
  end
  return out
end

local function difference(a, path_a, b, path_b)
  local path = path_a or path_b
  if not path_a or not path_b then return path .. " is in one of the two only" end
  local x <close> = a:tensor(path_a)
  local y <close> = b:tensor(path_b)
  if x:dtype() ~= y:dtype() or table.concat(x:shape(), "x") ~= table.concat(y:shape(), "x") then
    return string.format("%s is %s (%s) and %s (%s)", path, x:dtype(), table.concat(x:shape(), "x"), y:dtype(),
      table.concat(y:shape(), "x"))
  end
  if x:bytes() == y:bytes() then return nil end
  local wide_x, wide_y = x:cast "f64", y:cast "f64"
  local gap = wide_x - wide_y
  return string.format("%s differs by up to %.3g", path, math.max(math.abs(gap:min()), math.abs(gap:max())))
end

--- The first field of two records that differs, of those that a run of the same thing must share; nil when none does.
function compare.records(a, b)
  for _, key in ipairs { "status", "best_epoch", "epochs", "steps", "params", "test_opened" } do
    if a[key] ~= b[key] then return string.format("%s is %s and %s", key, tostring(a[key]), tostring(b[key])) end
  end
  local names = {}
  for _, metrics in ipairs { a.metrics, b.metrics } do
    for name in pairs(metrics) do names[name] = true end
  end
  for _, name in ipairs(sorted_keys(names)) do
    local x, y = json.encode(a.metrics[name]), json.encode(b.metrics[name])
    if x ~= y then return string.format("%s is %s and %s", name, x, y) end
  end
end

local function tensor_difference(a, b)
  local both = not a:attr("/", "pruned") and not b:attr("/", "pruned")
  local mine, theirs, names = compared(a, both), compared(b, both), {}
  for _, list in ipairs { mine, theirs } do
    for name in pairs(list) do names[name] = true end
  end
  for _, name in ipairs(sorted_keys(names)) do
    local found = difference(a, mine[name], b, theirs[name])
    if found then return found end
  end
end

--- The first difference between two run files as text, or nil: weights (unless one was pruned), history, profiles,
-- confusion table, every metric, and how the run ended.
function compare.files(path_a, path_b)
  local a, b = fault.check(fault.RUNTIME, runfile.open(path_a)), fault.check(fault.RUNTIME, runfile.open(path_b))
  local found = tensor_difference(a.file, b.file) or compare.records(a.record, b.record)
  a.file:close()
  b.file:close()
  return found
end

return compare
