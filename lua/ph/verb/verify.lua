--- `phrun verify DIR [--against DIR2] [--replay K]`: is everything in a results
-- directory what the ledger says, to the bit?

local native = require "ph.native"
local fault = require "ph.util.fault"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local results = require "ph.run.results"
local registration = require "ph.registry.registration"
local replay = require "ph.registry.replay"
local runfile = require "ph.run.runfile"
local verdict = require "ph.registry.verdict"

local verify = {}

local function count(word)
  local n = math.tointeger(tonumber(word))
  if not n or n < 1 then return nil, "'" .. word .. "' is not a number of cells" end
  return n
end

function verify.arguments(parser)
  parser:argument("dir"):argname "DIR":description "a results directory"
  parser:option "--against":argname "DIR2":description "compare weights and histories of the same cells bit by bit"
  parser:option "--replay":argname "K":convert(count)
    :description "run K cells again from their files and compare the bits"
end

local function open_state(dir)
  local state = fault.check(fault.RUNTIME, ledger.read(dir))
  if state.missing then fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir) end
  return state
end

local function plain_record(record)
  local out = {}
  for k, v in pairs(record) do out[k] = v end
  out.file, out.recovered, out.arithmetic = nil, nil, nil
  return out
end

--- Checks what one run file says about itself and about its record. Adds lines to `problems`.
local function check_contents(path, record, problems)
  local run, problem = runfile.open(path)
  if not run then
    problems[#problems + 1] = problem
    return
  end
  local file = run.file
  local ir, text = file:text "/ir", file:text "/config/run"
  if native.sha256(ir) ~= file:attr("/ir", "sha256") then
    problems[#problems + 1] = path .. ": the IR text does not fit its hash"
  end
  if native.sha256(text):sub(1, 16) ~= record.run then
    problems[#problems + 1] = path .. ": the configuration does not give the hash in its name"
  end
  if record.data and not text:find("\ndata " .. record.data .. "\n", 1, true) then
    problems[#problems + 1] = path .. ": it was trained on other data than its configuration names"
  end
  local inside, outside = run.record, plain_record(record)
  inside.chosen, outside.chosen = nil, nil -- a later selection may choose another candidate
  if json.encode(inside) ~= json.encode(outside) then
    problems[#problems + 1] = path .. ": its record is not the ledger's"
  end
  file:close()
end

local function check_file(dir, record, problems)
  local path = results.run_path(dir, record.run)
  if not record.file then
    if ledger.closing[record.status] and not record.recovered then
      problems[#problems + 1] = "the ledger names no file for run " .. record.run
    end
    return
  end
  if not native.stat(path) then
    problems[#problems + 1] = path .. ": missing"
    return
  end
  if native.sha256_file(path) ~= record.file.sha256 then
    problems[#problems + 1] = path .. ": changed since it was written (its SHA-256 is not the ledger's)"
  end
  check_contents(path, record, problems)
end

--- Files that no event names. A run that was killed between writing its file and its event still has its checkpoint:
-- the next run finishes it, so that is no fault.
local function check_strangers(dir, state, problems)
  local known = {}
  for _, r in ipairs(state.runs) do known[r.run .. ".h5"] = true end
  for _, name in ipairs(native.list_dir(dir .. "/runs") or {}) do
    local unfinished = native.stat(dir .. "/checkpoints/" .. name) ~= nil
    if name:find "%.h5$" and not known[name] and not unfinished then
      problems[#problems + 1] = dir .. "/runs/" .. name .. ": not in the ledger"
    end
  end
end

--- Problems of a directory as lines, and its state.
function verify.problems(dir)
  local state, problems = open_state(dir), {}
  if state.problem then problems[1] = state.problem end
  for _, record in ipairs(state.runs) do check_file(dir, record, problems) end
  check_strangers(dir, state, problems)
  local registered = registration.read(dir)
  local outcome = registered and verdict.of(dir, registered)
  for _, line in ipairs(outcome and outcome.audit.tampered or {}) do problems[#problems + 1] = line end
  return problems, state, outcome
end

--- Paths of the tensors whose bits two runs must share.
local function compared_paths(file)
  local out = { "/history" }
  for _, group in ipairs { "/final", "/best" } do
    for _, item in ipairs(file:kind(group) == "group" and file:list(group) or {}) do out[#out + 1] = item.path end
  end
  return out
end

local function difference(a, b, path)
  if b:kind(path) ~= "tensor" then return path .. " is missing" end
  local x <close> = a:tensor(path)
  local y <close> = b:tensor(path)
  if x:dtype() ~= y:dtype() or table.concat(x:shape(), "x") ~= table.concat(y:shape(), "x") then
    return string.format("%s is %s (%s) and %s (%s)", path, x:dtype(), table.concat(x:shape(), "x"), y:dtype(),
      table.concat(y:shape(), "x"))
  end
  if x:bytes() == y:bytes() then return nil end
  local wide_x, wide_y = x:cast "f64", y:cast "f64"
  local gap = wide_x - wide_y
  return string.format("%s differs by up to %.3g", path, math.max(math.abs(gap:min()), math.abs(gap:max())))
end

--- The first difference between two run files as text, or nil.
function verify.compare_files(path_a, path_b)
  local a, b = fault.check(fault.RUNTIME, runfile.open(path_a)), fault.check(fault.RUNTIME, runfile.open(path_b))
  local found
  for _, path in ipairs(compared_paths(a.file)) do
    found = found or difference(a.file, b.file, path)
  end
  a.file:close()
  b.file:close()
  return found
end

local function by_label(state)
  local out = {}
  for _, r in ipairs(state.runs) do
    if r.file then out[r.label] = r end
  end
  return out
end

--- Compares two directories cell by cell. Returns lines of differences and the number of cells with the same bits.
function verify.against(dir, state, other)
  local theirs, lines, same = by_label(open_state(other)), {}, 0
  for _, record in ipairs(state.runs) do
    local twin = theirs[record.label]
    if record.file and not twin then
      lines[#lines + 1] = record.label .. ": not in " .. other
    elseif record.file then
      local found = verify.compare_files(results.run_path(dir, record.run), results.run_path(other, twin.run))
      if found then lines[#lines + 1] = record.label .. ": " .. found else same = same + 1 end
    end
  end
  local ours = by_label(state)
  for label in pairs(theirs) do
    if not ours[label] then lines[#lines + 1] = label .. ": only in " .. other end
  end
  table.sort(lines)
  return lines, same
end

local function compare(dir, state, other)
  local lines, same = verify.against(dir, state, other)
  for _, line in ipairs(lines) do native.write(1, "  " .. line .. "\n") end
  native.write(1,
    string.format("%s against %s: %d runs with the same bits, %d differences\n", dir, other, same, #lines))
  return #lines == 0 and 0 or fault.NO
end

function verify.main(args)
  local dir = args.dir:gsub("(.)/+$", "%1")
  local problems, state, outcome = verify.problems(dir)
  for _, line in ipairs(problems) do native.write(1, "  " .. line .. "\n") end
  if #problems > 0 then
    native.write(1, string.format("%s: %d problem%s\n", dir, #problems, #problems == 1 and "" or "s"))
    return fault.TAMPERED
  end
  native.write(1,
    string.format("%s: sound: %d events in one chain, %d runs, every file as the ledger says\n", dir, #state.events,
      #state.runs))
  if outcome then native.write(1, verdict.conclusion(outcome) .. "\n") end
  if args.replay then return replay.main(dir, state, args.replay, verify.compare_files) end
  return args.against and compare(dir, state, (args.against:gsub("(.)/+$", "%1"))) or 0
end

return verify
