--- The state of a run on disk: everything that training needs to resume with the same bits, in one HDF5 file that
-- appears whole or not at all.
--
--   /state (JSON: epoch, step, sums, early stopping, ...)  /history (epochs, columns)
--   /final/NAME  /moment1/NAME  /moment2/NAME  (the parameters now)   /best/NAME  (at the best epoch)

local native = require "ph.native"
local json = require "ph.util.json"
local sorted_keys = require "ph.util.sorted_keys"

local checkpoint = {}

local slot_of <const> = { final = "value", moment1 = "moment1", moment2 = "moment2" }

--- Copies of all parameters of a plan, by name.
function checkpoint.snapshot(plan, slot)
  local out = {}
  for _, p in ipairs(plan:params()) do out[p.name] = plan:get(p.name, slot or "value") end
  return out
end

--- Puts copies back and recomputes what depends on them.
function checkpoint.restore(plan, snapshot, slot)
  for _, p in ipairs(plan:params()) do plan:set(p.name, slot or "value", snapshot[p.name]) end
  if (slot or "value") == "value" then plan:refresh() end
end

local function add_group(items, group, snapshot)
  local names = sorted_keys(snapshot)
  for _, name in ipairs(names) do items[#items + 1] = { path = "/" .. group .. "/" .. name, value = snapshot[name] } end
end
checkpoint.add_group = add_group

--- The history as a tensor (epochs, columns) and back.
function checkpoint.history_tensor(rows, columns)
  if #rows == 0 then return native.tensor({ 0, #columns }, "f64") end
  return native.from(rows, "f64")
end

--- Writes a file. state: plain table; rows: list of lists; groups: { final = {name = tensor}, best = ..., ... }.
-- true, or nil and a message.
function checkpoint.write(path, state, rows, columns, groups)
  local items = {
    { path = "/", attr = "format", value = "phrun checkpoint" },
    { path = "/", attr = "format_version", value = 1 },
    { path = "/", attr = "arithmetic", value = native.arithmetic },
    { path = "/state", value = json.encode(state) },
    { path = "/history", value = checkpoint.history_tensor(rows, columns) },
    { path = "/history", attr = "columns", value = table.concat(columns, ",") },
  }
  for _, group in ipairs { "best", "final", "moment1", "moment2" } do
    if groups[group] then add_group(items, group, groups[group]) end
  end
  return native.h5_write(path, items)
end

--- Saves a plan in the middle of training.
function checkpoint.save(path, plan, state, rows, columns, best)
  local groups = { best = best }
  for group, slot in pairs(slot_of) do groups[group] = checkpoint.snapshot(plan, slot) end
  return checkpoint.write(path, state, rows, columns, groups)
end

function checkpoint.read_group(file, group)
  if file:kind("/" .. group) ~= "group" then return nil end
  local out = {}
  for _, item in ipairs(file:list("/" .. group)) do
    if item.kind == "tensor" then out[item.path:sub(#group + 3)] = file:tensor(item.path) end
  end
  return out
end

--- Reads a file: { state, rows, final, best, moment1, moment2 }; nil when there is
-- none; nil and a message when unreadable.
function checkpoint.read(path)
  if not native.stat(path) then return nil end
  local file, problem = native.h5_read(path)
  if not file then return nil, problem end
  if file:attr("/", "format") ~= "phrun checkpoint" or file:attr("/", "format_version") ~= 1 or not file:sealed() then
    file:close()
    return nil, path .. ": not a checkpoint of this version as it was written"
  end
  local arithmetic = file:attr("/", "arithmetic") or 1
  if arithmetic ~= native.arithmetic then
    file:close()
    return nil, string.format("%s: made with arithmetic %d, this program has %d", path, arithmetic, native.arithmetic)
  end
  local state, why = json.decode(file:text "/state")
  if not state then return nil, path .. ": " .. why end
  local out = { state = state, rows = {} }
  local history = file:tensor "/history"
  if history:shape()[1] > 0 then out.rows = history:totable() end
  for _, group in ipairs { "best", "final", "moment1", "moment2" } do
    out[group] = checkpoint.read_group(file, group)
  end
  file:close()
  return out
end

return checkpoint
