--- `phrun verify DIR --replay K`: runs K cells again from what their result files hold, and compares every bit.
--
-- The spec's text and its sibling files come from the run file itself, so nothing but the results directory
-- is needed (and the data, if a task reads files). A nonce of the auditor draws the cells, so nobody could prepare
-- them; it is printed, and given again it draws the same ones. On another class of CPU than the run's the bits may
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
  local path = fault.check(fault.RUNTIME, native.temp_dir())
  for _, name in ipairs { "/runs", "/checkpoints" } do fault.check(fault.RUNTIME, native.mkdir(path .. name)) end
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

-- The spec that a run file carries, with its siblings, as texts: nothing that a results directory names is written.
local function spec_of(file)
  local out = { file = file:text "/spec/file", text = file:text "/spec/text", siblings = {} }
  for i = 1, 999 do
    local at = string.format("/spec/files/%03d", i)
    if not file:kind(at) then break end
    out.siblings[file:text(at .. "/path")] = file:text(at .. "/text")
  end
  return out
end

local function load_spec(kept, overrides)
  local experiment, problems = spec.load_text(kept.text, kept.file, overrides, kept.siblings)
  if experiment then return experiment end
  local lines = {}
  for i, p in ipairs(problems) do lines[i] = p.text end
  fault.raise(fault.RUNTIME, "the spec in the run file does not load: %s", table.concat(lines, "; "))
end

-- The job that has a record's hash, under one of the sets of overrides that programs were started with.
local function find_job(kept, record, sets)
  for _, overrides in ipairs(sets) do
    local experiment = load_spec(kept, overrides)
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
    local kept, class = spec_of(original.file), other_class(original.file)
    original.file:close()
    execute(find_job(kept, record, sets), tmp)
    return compare(results.run_path(dir, record.run), results.run_path(tmp, record.run)), class
  end)
  remove_tree(tmp)
  if not ok then error(found, 0) end
  return found, elsewhere
end

-- Runs with files, in an order that the nonce decides: who made the results could not know it.
local function candidates(state, k, nonce)
  local out, key = {}, {}
  for _, r in ipairs(state.runs) do
    if r.chosen and r.file then
      out[#out + 1] = r
      key[r] = native.sha256(nonce .. r.run)
    end
  end
  table.sort(out, function(a, b) return key[a] < key[b] end)
  for i = #out, math.min(k, #out) + 1, -1 do out[i] = nil end
  return out
end

local function random_nonce()
  local source <close> = fault.check(fault.RUNTIME, io.open("/dev/urandom", "rb"))
  return native.sha256(source:read(32)):sub(1, 16)
end

--- Replays k cells of a directory, drawn by a nonce (nil: a random one). compare(path_a, path_b) -> difference as text
-- or nil. Returns the exit code.
function replay.main(dir, state, k, nonce, compare)
  nonce = nonce or random_nonce()
  local list, different, sets = candidates(state, k, nonce), 0, override_sets(state)
  for i, record in ipairs(list) do
    native.write(2, string.format("replay %d of %d: %s\n", i, #list, record.label))
    local found, elsewhere = one_cell(dir, record, sets, compare)
    if found then different = different + 1 end
    native.write(1, string.format("  %s: %s%s\n", record.label, found or "the same bits", elsewhere))
  end
  native.write(1,
    string.format("%s: %d of %d runs replayed, %d with the same bits (--nonce %s)\n", dir, #list, #state.runs,
      #list - different, nonce))
  return different == 0 and 0 or fault.NO
end

return replay
