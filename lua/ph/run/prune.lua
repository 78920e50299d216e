--- Dropping the weights of run files: what is left is small enough to keep, and the ledger says what was dropped.
--
-- The rest is written aside, the ledger gets an event `pruned` with the digests of the whole file, of the rest and of
-- every tensor dropped, and only then the rest takes the file's place. Killed anywhere, the directory is sound.

local native = require "ph.native"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"
local sorted_keys = require "ph.util.sorted_keys"

local prune = {}

local dropped_groups <const> = { ["final"] = true, ["best"] = true }

local function is_dropped(path) return dropped_groups[path:match "^/([^/]+)"] == true end

local function copy_attributes(items, file, path)
  local map = file:attrs(path)
  for _, name in ipairs(sorted_keys(map)) do items[#items + 1] = { path = path, attr = name, value = map[name] } end
end

--- Items of a run file without its weights (as for native.h5_write), and what was left out: { path, sha256, bytes }.
function prune.split(file)
  local items, dropped, groups = {}, {}, {}
  copy_attributes(items, file, "/")
  items[#items + 1] = { path = "/", attr = "pruned", value = 1 }
  for _, item in ipairs(file:list "/") do
    if item.kind == "tensor" and is_dropped(item.path) then
      local bytes = file:tensor(item.path):bytes()
      dropped[#dropped + 1] = { path = item.path, sha256 = native.sha256(bytes), bytes = #bytes }
    elseif item.kind ~= "group" then
      local value = item.kind == "tensor" and file:tensor(item.path) or file:text(item.path)
      items[#items + 1] = { path = item.path, value = value }
      copy_attributes(items, file, item.path)
    elseif not is_dropped(item.path) then
      groups[#groups + 1] = item.path -- a group is made by what lies in it: its attributes come after
    end
  end
  for _, path in ipairs(groups) do copy_attributes(items, file, path) end
  return items, dropped
end

local function must(value, problem)
  if not value then error(problem, 0) end
  return value
end

--- Prunes one run of an open results directory. Returns the bytes gained, or nil when its file has no weights.
function prune.run(store, record)
  local path = results.run_path(store.dir, record.run)
  local aside = path .. ".tmp-0"
  local run = must(runfile.open(path))
  local items, dropped = prune.split(run.file)
  run.file:close()
  if #dropped == 0 then return nil end
  local before = native.stat(path).size
  must(native.h5_write(aside, items))
  local whole, rest = native.sha256_file(path), native.sha256_file(aside)
  must(store:append {
    event = "pruned", run = record.run, label = record.label, whole = whole, dropped = dropped,
    file = { path = "runs/" .. record.run .. ".h5", sha256 = rest },
  })
  must(native.rename(aside, path))
  return before - native.stat(path).size
end

return prune
