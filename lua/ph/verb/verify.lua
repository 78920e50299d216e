--- `phrun verify DIR [--against DIR2] [--replay K]`: is everything in a results
-- directory what the ledger says, to the bit?

local native = require "ph.native"
local compare_runs = require "ph.run.compare"
local evidence = require "ph.run.evidence"
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
  if word == "all" then return math.maxinteger end
  local n = math.tointeger(tonumber(word))
  if not n or n < 1 then return nil, "'" .. word .. "' is not a number of cells" end
  return n
end

function verify.arguments(parser)
  parser:argument("dir"):argname "DIR":description "a results directory"
  parser:option "--against":argname "DIR2":description "compare weights and histories of the same cells bit by bit"
  parser:option "--replay":argname "K":convert(count)
    :description "run K cells again from their files (or all) and compare the bits"
  parser:option "--nonce":argname "TEXT":description "draws the cells of --replay; default: a random one, printed"
end

local function open_state(dir)
  local state = fault.check(fault.RUNTIME, ledger.read(dir))
  if state.missing then fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir) end
  return state
end

-- What the ledger adds to a record, and what is another time when a file is made again.
local of_ledger <const> = { "file", "recovered", "arithmetic", "pruned", "rebuilt" }
local of_the_day <const> = { "seconds", "version" }

local function plain_record(record)
  local out = {}
  for k, v in pairs(record) do out[k] = v end
  for _, key in ipairs(of_ledger) do out[key] = nil end
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
  for _, key in ipairs(record.rebuilt and of_the_day or {}) do inside[key], outside[key] = nil, nil end
  if json.encode(inside) ~= json.encode(outside) then
    problems[#problems + 1] = path .. ": its record is not the ledger's"
  end
  file:close()
end

local function check_file(dir, record, problems, counts)
  local path = results.run_path(dir, record.run)
  if not record.file then
    if ledger.closing[record.status] and not record.recovered then
      problems[#problems + 1] = "the ledger names no file for run " .. record.run
    end
    return
  end
  local state = evidence.of(dir, record)
  counts[state] = counts[state] + 1
  if state == "tampered" then
    problems[#problems + 1] = path .. ": changed since it was written (its SHA-256 is not the ledger's)"
  end
  if state ~= "unbacked" then check_contents(path, record, problems) end
end

--- Files that no event names. A run that was killed between writing its file and its event still has its checkpoint:
-- the next run finishes it, so that is not a fault.
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

--- Problems of a directory as lines, its state, the outcome of its rules (nil without a lock), and numbers of runs by
-- the state of their files.
function verify.problems(dir)
  local state, problems, counts = open_state(dir), {}, evidence.none()
  if state.problem then problems[1] = state.problem end
  for _, record in ipairs(state.runs) do check_file(dir, record, problems, counts) end
  check_strangers(dir, state, problems)
  local registered = registration.read(dir)
  local outcome = registered and verdict.of(dir, registered)
  for _, line in ipairs(outcome and outcome.audit.tampered or {}) do problems[#problems + 1] = line end
  return problems, state, outcome, counts
end

local function by_label(state)
  local out = {}
  for _, r in ipairs(state.runs) do
    if r.file then out[r.label] = r end
  end
  return out
end

local function is_unbacked(dir, record) return native.stat(results.run_path(dir, record.run)) == nil end

--- Compares two directories cell by cell. Returns lines of differences, the number of cells with the same bits, and of
-- those whose file one of the two does not have.
function verify.against(dir, state, other)
  local theirs, lines, same, apart = by_label(open_state(other)), {}, 0, 0
  for _, record in ipairs(state.runs) do
    local twin = theirs[record.label]
    if record.file and not twin then
      lines[#lines + 1] = record.label .. ": not in " .. other
    elseif record.file and (is_unbacked(dir, record) or is_unbacked(other, twin)) then
      apart = apart + 1
    elseif record.file then
      local found = compare_runs.files(results.run_path(dir, record.run), results.run_path(other, twin.run))
      if found then lines[#lines + 1] = record.label .. ": " .. found else same = same + 1 end
    end
  end
  local ours = by_label(state)
  for label in pairs(theirs) do
    if not ours[label] then lines[#lines + 1] = label .. ": only in " .. other end
  end
  table.sort(lines)
  return lines, same, apart
end

local function compare(dir, state, other)
  local lines, same, apart = verify.against(dir, state, other)
  for _, line in ipairs(lines) do native.write(1, "  " .. line .. "\n") end
  native.write(1,
    string.format("%s against %s: %d runs with the same bits, %d differences%s\n", dir, other, same, #lines,
      apart > 0 and string.format(", %d without a file here or there", apart) or ""))
  return #lines == 0 and 0 or fault.NO
end

-- What stands behind the runs of a sound directory.
local function sound_text(counts)
  local whole = counts.pruned + counts.unbacked == 0
  return evidence.text(counts) .. (whole and ", every file as the ledger says"
    or ", every file here as the ledger says")
end

function verify.main(args)
  local dir = args.dir:gsub("(.)/+$", "%1")
  local problems, state, outcome, counts = verify.problems(dir)
  for _, line in ipairs(problems) do native.write(1, "  " .. line .. "\n") end
  if #problems > 0 then
    native.write(1, string.format("%s: %d problem%s\n", dir, #problems, #problems == 1 and "" or "s"))
    return fault.TAMPERED
  end
  native.write(1,
    string.format("%s: sound: %d events in one chain, %s\n", dir, #state.events, sound_text(counts)))
  if outcome then native.write(1, verdict.conclusion(outcome) .. "\n") end
  if args.replay then return replay.main(dir, state, args.replay, args.nonce, compare_runs.files) end
  return args.against and compare(dir, state, (args.against:gsub("(.)/+$", "%1"))) or 0
end

return verify
