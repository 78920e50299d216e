--- `phrun verify DIR --replay K`: runs K cells again from what their result files hold, and compares every bit.
--
-- The spec's text and its sibling files come from the run file itself, so nothing but the results directory
-- is needed (and the data, if a task reads files). The candidates are those with the smallest run hashes:
-- nobody chose them, and every reader gets the same ones. On another class of CPU than the run's the bits may
-- differ; then the largest difference is reported.

local native = require "ph.native"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local json = require "ph.util.json"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"
local spec = require "ph.spec"
local work = require "ph.run.work"

local replay = {}

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  for _, p in ipairs { path, path .. "/runs", path .. "/checkpoints", path .. "/spec" } do
    fault.check(fault.RUNTIME, native.mkdir(p))
  end
  return path
end

local function remove_tree(path)
  for _, name in ipairs(native.list_dir(path) or {}) do
    local full = path .. "/" .. name
    local at = native.stat(full)
    if at and at.kind == "dir" then remove_tree(full) else native.remove(full) end
  end
  os.remove(path)
end

-- Writes the spec that a run file carries, siblings at the same place beside it. Returns its path.
local function unpack_spec(file, dir)
  local main = file:text "/spec/file"
  local base, name = main:match "^(.*/)[^/]*$" or "", main:match "[^/]*$"
  fault.check(fault.RUNTIME, native.write_file(dir .. "/" .. name, file:text "/spec/text"))
  for i = 1, 999 do
    local at = string.format("/spec/files/%03d", i)
    if not file:kind(at) then break end
    local path = file:text(at .. "/path")
    local inner = path:sub(1, #base) == base and path:sub(#base + 1) or path:match "[^/]*$"
    local folder = inner:match "^(.*)/[^/]*$"
    if folder then fault.check(fault.RUNTIME, native.mkdir(dir .. "/" .. folder)) end
    fault.check(fault.RUNTIME, native.write_file(dir .. "/" .. inner, file:text(at .. "/text")))
  end
  return dir .. "/" .. name
end

local function load_spec(path, overrides)
  local experiment, problems = spec.load(path, overrides)
  if experiment then return experiment end
  local lines = {}
  for i, p in ipairs(problems) do lines[i] = p.text end
  fault.raise(fault.RUNTIME, "the spec in the run file does not load: %s", table.concat(lines, "; "))
end

-- The job that has a record's hash, under one of the sets of overrides that programs were started with.
local function find_job(path, record, sets)
  for _, overrides in ipairs(sets) do
    local experiment = load_spec(path, overrides)
    experiment.lock = record.lock
    for _, cell in ipairs(job.cells(experiment)) do
      for _, one in ipairs(cell.jobs) do
        if one.run == record.run then return one end
      end
    end
  end
  fault.raise(fault.TAMPERED, "%s: the spec in its file gives no run %s", record.label, record.run)
end

local function override_sets(state)
  local out, seen = {}, {}
  for _, e in ipairs(state.events) do
    if e.event == "opened" then
      local key = json.encode(e.overrides or json.list {})
      if not seen[key] then table.insert(out, 1, e.overrides or {}) end
      seen[key] = true
    end
  end
  if #out == 0 then out[1] = {} end
  return out
end

local function execute(one, dir)
  local context = { dir = dir, every = 1e9, threads = native.machine().cores }
  local outcome = work.train({ kind = "train", job = one }, function() end, context)
  if outcome.status == "interrupted" then error("interrupted", 0) end
  return work.finish({ kind = "finish", jobs = { one }, chosen = one.run }, nil, context)
end

local function class_of(machine)
  return string.format("float32 kernels %s, float64 kernels %s, arithmetic %d", tostring(machine.kernels_f32),
    tostring(machine.kernels_f64), machine.arithmetic or 1)
end

-- "" on the same class of CPU, else what differs.
local function other_class(file)
  local then_, now = json.decode(file:text "/provenance") or {}, native.machine()
  if class_of(then_) == class_of(now) and then_.cpu == now.cpu then return "" end
  return string.format(" (run on %s, %s; here %s, %s)", tostring(then_.cpu), class_of(then_), tostring(now.cpu),
    class_of(now))
end

local function one_cell(dir, record, sets, compare)
  local tmp = temp_dir()
  local ok, found, elsewhere = pcall(function()
    local original = fault.check(fault.RUNTIME, runfile.open(results.run_path(dir, record.run)))
    local path, class = unpack_spec(original.file, tmp .. "/spec"), other_class(original.file)
    original.file:close()
    execute(find_job(path, record, sets), tmp)
    return compare(results.run_path(dir, record.run), results.run_path(tmp, record.run)), class
  end)
  remove_tree(tmp)
  if not ok then error(found, 0) end
  return found, elsewhere
end

local function candidates(state, k)
  local out = {}
  for _, r in ipairs(state.runs) do
    if r.chosen and r.file then out[#out + 1] = r end
  end
  table.sort(out, function(a, b) return a.run < b.run end)
  for i = #out, k + 1, -1 do out[i] = nil end
  return out
end

--- Replays k cells of a directory. compare(path_a, path_b) -> difference as text or nil. Returns the exit code.
function replay.main(dir, state, k, compare)
  local list, different, sets = candidates(state, k), 0, override_sets(state)
  for i, record in ipairs(list) do
    native.write(2, string.format("replay %d of %d: %s\n", i, #list, record.label))
    local found, elsewhere = one_cell(dir, record, sets, compare)
    if found then different = different + 1 end
    native.write(1, string.format("  %s: %s%s\n", record.label, found or "the same bits", elsewhere))
  end
  native.write(1,
    string.format("%s: %d of %d runs replayed, %d with the same bits\n", dir, #list, #state.runs, #list - different))
  return different == 0 and 0 or fault.NO
end

return replay
