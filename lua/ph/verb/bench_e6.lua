--- Training steps of the E6 families beside the same steps in the peer (batched PyTorch), turn about in one run.
--
-- Each round times the peer in a fresh process, then us, at the same batch and number of threads; the figures are the
-- best and the median over all groups of at least 0.3 s, ratios are of medians. The machine's noise hits both alike;
-- compare ratios, not times of two days. Rates count matrix products, activations and reductions as the plan does.

local native = require "ph.native"
local fault = require "ph.util.fault"
local json = require "ph.util.json"
local spec = require "ph.spec"
local tables = require "ph.util.tables"

local e6 = {}

local group_seconds <const> = 0.3
local families <const> = { "ph", "resnet", "resnet_ln", "resnet_tln", "cayley" }

--- family, depth, width, batch, threads, and what the ratio to the peer shall be at least.
local function cases_of(quick)
  local out = {
    { "ph", 240, 32, 256, 1, want = 4.5 }, { "ph", 240, 32, 256, 2, want = 7 }, { "resnet", 240, 32, 256, 1, want = 4 },
    { "resnet", 240, 32, 256, 2, want = 4 },
  }
  if quick then return out end
  for _, family in ipairs { "resnet_ln", "resnet_tln", "cayley" } do
    out[#out + 1] = { family, 240, 32, 256, 2, want = 4 }
  end
  for _, family in ipairs(families) do out[#out + 1] = { family, 240, 32, 128, 2, want = family == "ph" and 7 or 4 } end
  for _, batch in ipairs { 128, 256 } do
    for _, depth in ipairs { 30, 120 } do
      for _, family in ipairs(families) do out[#out + 1] = { family, depth, 32, batch, 2, want = 4 } end
    end
  end
  for _, batch in ipairs { 128, 256 } do -- the peer has one width
    for _, family in ipairs(families) do out[#out + 1] = { family, 240, 64, batch, 2 } end
  end
  return out
end

local function root() return native.lua_dir .. "/.." end

local function peer_file(args)
  local path = args.reference or root() .. "/../shared/peers/torch_e6.py"
  return native.stat(path) and native.realpath(path)
end

--- The peer's seconds of a step: list, one for each of its groups; nil and one line when it cannot run.
local function time_peer(args, file, case)
  local code, out, problem = native.popen({
    args.python, file, "--case", case[1], "batched", tostring(case[2]), tostring(case[4]), "--threads",
    tostring(case[5]), "--blas-threads", "1", "--repeats", "3", "--min-s", tostring(group_seconds),
  }, "")
  if code ~= 0 then return nil, (code and problem or out or ""):match "([^\n]*)\n*$" end
  local record = json.decode(out:match "{.*}")
  local seconds = {}
  for i, ms in ipairs(record.ms) do seconds[i] = ms / 1e3 end
  return seconds
end

local function ir_of(family, depth, width)
  local name = family == "resnet_tln" and "e6b" or "e6"
  local file = root() .. "/specs/" .. name .. ".lua"
  local text = fault.check(fault.RUNTIME, native.read_file(file))
  local wider, found = text:gsub("local d <const> = 32", "local d <const> = " .. width)
  if found ~= 1 then fault.raise(fault.RUNTIME, "%s: does not say 'local d <const> = 32'", file) end
  local experiment, problems = spec.load_text(wider, file,
    { "family=" .. family, "depth=" .. depth, "seed=0", "task=circles" })
  if not experiment then fault.raise(fault.RUNTIME, "%s", problems[1].text) end
  return experiment:ir(experiment:cells()[1])
end

--- Our seconds of a step: list over groups; rate and share of the stream phase of the best group.
local function time_ours(case)
  local ir = ir_of(case[1], case[2], case[3])
  local plan <close> = fault.check(fault.RUNTIME, native.plan(ir, { batch = case[4], threads = case[5] }))
  local x = native.random("normal", 0, "bench/x", { case[4], case[3] }, 1, "f32")
  local data <close> = native.data(x, native.tensor({ case[4] }, "i32"))
  plan:init(0)
  local optim, cost = { kind = "adam", lr = 1e-4 }, plan:cost()
  for _ = 1, 3 do plan:step(data, nil, optim) end
  local seconds, best = {}, { step = math.huge }
  for g = 1, 3 do
    plan:times(true)
    local started, n = native.now(), 0
    repeat
      plan:step(data, nil, optim)
      n = n + 1
    until native.now() - started >= group_seconds
    seconds[g] = (native.now() - started) / n
    local stream = plan:times() / n
    if seconds[g] < best.step then
      best = { step = seconds[g], stream = stream, rate = cost.flops_stream * case[4] / stream / 1e9 }
    end
  end
  return seconds, best
end

local function best_and_median(list)
  table.sort(list)
  return list[1], list[(#list + 1) // 2]
end

local function take_turns(args, file, case, rounds)
  local peer, ours, best, problem = {}, {}, { step = math.huge }, nil
  for _ = 1, rounds do
    if file and case[3] == 32 and not problem then
      local seconds
      seconds, problem = time_peer(args, file, case)
      table.move(seconds or {}, 1, #(seconds or {}), #peer + 1, peer)
    end
    local mine, facts = time_ours(case)
    table.move(mine, 1, #mine, #ours + 1, ours)
    if facts.step < best.step then best = facts end
  end
  return peer, ours, best, problem
end

local function ms(v) return v and string.format("%.2f", 1e3 * v) or "-" end

--- One case: the row of the table and what later ratios need.
local function measure(args, file, case, rounds, peak)
  local peer, ours, best, problem = take_turns(args, file, case, rounds)
  local our_best, our_median = best_and_median(ours)
  local peer_best, peer_median = best_and_median(peer)
  local ratio = peer_median and peer_median / our_median
  local share = best.rate / (peak * case[5])
  local verdict = case.want and ratio and (ratio >= case.want and "yes" or "NO") or ""
  return {
    case[1], tostring(case[2]), tostring(case[3]), tostring(case[4]), tostring(case[5]), ms(our_best), ms(our_median),
    ms(peer_best), ms(peer_median),
    ratio and string.format("%.2f", ratio) or "-", case.want and string.format("%.1f", case.want) or "-", verdict,
    string.format("%.0f", best.rate), string.format("%.2f", share),
  }, our_median, problem, share
end

local function key(case) return table.concat({ case[1], case[2], case[3], case[4], case[5] }, " ") end

local function line(name, a, b, want, least)
  if not a or not b then return end
  local ratio = a / b
  local ok
  if least then ok = ratio >= want else ok = ratio <= want end
  native.write(1,
    string.format("  %-46s %.2f  (%s %.2f: %s)\n", name, ratio, least and "at least" or "at most", want,
      ok and "yes" or "NO"))
end

local function ratios(times)
  native.write(1, "\n")
  line("ph, one thread to two, L = 240, batch 256", times["ph 240 32 256 1"], times["ph 240 32 256 2"], 1.7, true)
  line("resnet, one thread to two, L = 240, batch 256", times["resnet 240 32 256 1"], times["resnet 240 32 256 2"], 1.7,
    true)
  line("ph to resnet, L = 240, width 32, batch 256", times["ph 240 32 256 2"], times["resnet 240 32 256 2"], 1.9)
  line("ph to resnet, L = 240, width 64, batch 256", times["ph 240 64 256 2"], times["resnet 240 64 256 2"], 2.2)
  line("cayley to resnet, L = 240, width 32, batch 256", times["cayley 240 32 256 2"], times["resnet 240 32 256 2"],
    1.7)
end

--- Runs the cases that fit the machine and prints a table. Returns 0: a slow machine is not an error.
function e6.run(args)
  local file, cores = peer_file(args), native.machine().cores
  local peak = native.kern_peak("f32", 0.5)
  native.write(1,
    string.format("micro-kernel peak of one core: %.0f GFLOP/s; peer: %s\n", peak, file or "not found, skipped"))
  local rows, times, trouble, stream = {}, {}, nil, nil
  for _, case in ipairs(cases_of(args.quick)) do
    if case[5] <= cores then
      local row, median, problem, share = measure(args, file, case, args.quick and 2 or 3, peak)
      rows[#rows + 1], times[key(case)], trouble = row, median, trouble or problem
      if key(case) == "ph 240 32 256 1" then stream = share end
      native.write(2, table.concat(row, " ") .. "\n")
    end
  end
  local headers = {
    "family", "depth", "width", "batch", "threads", "ms best", "median", "peer best", "median", "ratio", "at least", "",
    "GFLOP/s", "of peak",
  }
  native.write(1, "\n" .. table.concat(tables.render(headers, rows), "\n") .. "\n")
  ratios(times)
  if stream then line("stream phase to micro-kernel peak, ph, one thread", stream, 1, 0.65, true) end
  if trouble then native.write(1, "  the peer could not run: " .. trouble .. "\n") end
  return 0
end

return e6
