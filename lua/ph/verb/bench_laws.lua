--- Law L1, the norm ceiling on streams with layers of their own (depth 300, width 32, float64, exact guard), beside the
-- numpy peer, turn about in one run: microseconds of wall time per layer, random numbers included on both sides.
--
-- The peer is timed in the form that does the same (exact guard, Lambda C formed) and in its fastest form (Frobenius
-- guard, two solves on the vector), on one thread, its best. 2,160,000 layers make the 7,200 runs of the law.

local native = require "ph.native"
local json = require "ph.util.json"
local tables = require "ph.util.tables"

local laws = {}

local runs <const>, depth <const>, width <const> = 240, 300, 32

local function peer_file()
  local path = native.lua_dir .. "/../../shared/peers/numpy_laws.py"
  return native.stat(path) and native.realpath(path)
end

--- The peer's microseconds per layer, or nil and one line.
local function time_peer(args, file, guard, state)
  local code, out, problem = native.popen({
    args.python, file, "--part", "own", "--runs", tostring(runs), "--repeats", "1", "--guard", guard, "--state", state,
  }, "")
  if code ~= 0 then return nil, (code and problem or out or ""):match "([^\n]*)\n*$" end
  local record = json.decode(out:match "{.*}")
  return record.us_per_layer
end

--- Ours, microseconds per layer.
local function time_ours(threads)
  local started, s = native.now(), 1 / math.sqrt(width)
  native.laws.conserve {
    seed = 1, streams = runs, inputs = 1, depth = depth, width = width, step = 0.1, transport = s, damping = s,
    port = s, budget = 1, threads = threads,
  }
  return 1e6 * (native.now() - started) / (runs * depth)
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

--- What is timed: list of { name, function that gives microseconds, or nil and one line }.
local function contestants(args)
  local file, list = peer_file(), { { "ours, one thread", function() return time_ours(1) end } }
  if native.machine().cores > 1 then list[2] = { "ours, two threads", function() return time_ours(2) end } end
  if file then
    list[#list + 1] = { "numpy, exact guard", function() return time_peer(args, file, "exact", "fold") end }
    list[#list + 1] = { "numpy, fastest form", function() return time_peer(args, file, "frobenius", "solve") end }
  end
  return list
end

--- Times all, turn about: a list of microseconds each, and one line when something could not run.
local function measure(list, rounds)
  local times, trouble = {}, nil
  for i = 1, #list do times[i] = {} end
  for _ = 1, rounds do
    for i, c in ipairs(list) do
      local v, problem = c[2]()
      trouble = trouble or problem
      if v then table.insert(times[i], v) end
    end
  end
  return times, trouble
end

local function row_of(name, v, one, two)
  if not v then return { name, "-", "-", "-", "-" } end
  return {
    name, string.format("%.2f", v), string.format("%.1f s", v * 7200 * depth / 1e6), string.format("%.1f", v / one),
    two and string.format("%.1f", v / two) or "-",
  }
end

--- Prints the table; returns 0.
function laws.run(args)
  local list = contestants(args)
  local times, trouble = measure(list, args.quick and 2 or 5)
  local one, two, rows = median(times[1]), times[2] and median(times[2]), {}
  for i, c in ipairs(list) do rows[i] = row_of(c[1], median(times[i]), one, two) end
  local headers = { "", "us a layer", "7,200 runs", "over one thread", "over two threads" }
  native.write(1, table.concat(tables.render(headers, rows), "\n") .. "\n")
  native.write(1, "  wanted: numpy over one thread at least 6, over two at least 10\n")
  if trouble then native.write(1, "  the peer could not run: " .. trouble .. "\n") end
  return 0
end

return laws
