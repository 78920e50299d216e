--- L5, figure 5: what is left of two input directions after 120 random layers (docs/laws.md, 9).

local native = require "ph.native"
local m = require "ph.laws.measures"
local stream = require "ph.laws.stream"
local result = require "ph.laws.result"
local la = native.la

local law = { name = "capacity", figure = "fig5" }

law.keys = {
  { "depth", kind = "integer", min = 1, max = 10000, default = 120, doc = "layers" },
  { "width", kind = "integer", min = 2, max = 512, default = 32, doc = "width of the state" },
  { "seeds", kind = "integer", min = 1, max = 1000, default = 3, doc = "streams" },
  { "step", kind = "number", above = 0, max = 10, default = 0.05, doc = "step size h" },
  { "damping", kind = "number", min = 0, max = 100, default = 0.31622776601683794,
    doc = "deviation of the entries of L times sqrt(width)" },
  { "noise", kind = "number", min = 0, max = 10, default = 0.25, doc = "noise on every input coordinate" },
  { "train", kind = "integer", min = 4, max = 100000, default = 100, doc = "training points" },
  { "test", kind = "integer", min = 4, max = 100000, default = 400, doc = "test points" },
}

--- Points (n, d) of four classes on a circle in the first two coordinates, and their classes 1 .. 4.
local function points(v, seed, name, n)
  local u = native.random("uniform", seed, "laws." .. name .. ".class", { n }, 1.0)
  local x, y = native.random("normal", seed, "laws." .. name, { n, v.width }, v.noise), {}
  for i = 1, n do
    y[i] = math.min(4, math.floor((u:at(i) + 1) * 2) + 1)
    local angle = (y[i] - 1) * math.pi / 2
    x:put(x:at(i, 1) + math.cos(angle), i, 1)
    x:put(x:at(i, 2) + math.sin(angle), i, 2)
  end
  return x, y
end

local function unit_rows(t)
  local rows, norms = t:totable(), t:rownorms():totable()
  for i, row in ipairs(rows) do
    for k, x in ipairs(row) do row[k] = x / norms[i] end
  end
  return rows
end

--- Share of test points whose nearest class centre (of the training points) is their own.
local function readout(train, labels, test, wanted)
  local centres, counts, hits = {}, {}, 0
  for c = 1, 4 do centres[c], counts[c] = {}, 0 end
  for i, row in ipairs(train) do
    local c = labels[i]
    counts[c] = counts[c] + 1
    for k, x in ipairs(row) do centres[c][k] = (centres[c][k] or 0) + x end
  end
  for i, row in ipairs(test) do
    local best, nearest
    for c = 1, 4 do
      local distance = 0.0
      for k, x in ipairs(row) do distance = distance + (x - (centres[c][k] or 0) / math.max(counts[c], 1)) ^ 2 end
      if not best or distance < best then best, nearest = distance, c end
    end
    if nearest == wanted[i] then hits = hits + 1 end
  end
  return hits / #test
end

local function mean_cosine(rows)
  local G, sum, n = m.matrix(rows), 0.0, #rows
  for i, row in ipairs((G * G:transpose()):totable()) do
    for k = i + 1, n do sum = sum + math.abs(row[k]) end
  end
  return sum / (n * (n - 1) / 2)
end

--- The stacks of one seed: M_t of the stream, I + W_t of the standard one.
local function stacks(v, seed)
  local d, L = v.width, v.depth
  local s = stream.random {
    depth = L, width = d, step = v.step, transport = 1, damping = v.damping / math.sqrt(d), port = 1, seed = seed,
  }
  local W, I = native.random("normal", seed, "laws.W", { L, d, d }, 1 / math.sqrt(d)), native.eye(d)
  local standard = {}
  for t = 1, L do standard[t] = I + W:index(1, t) end
  return stream.stack(s), standard
end

local function product(list, d)
  local P = native.eye(d)
  for _, M in ipairs(list) do P = M * P end
  return P
end

local function list_of(stack)
  local out = {}
  for t = 1, stack:shape()[1] do out[t] = stack:index(1, t) end
  return out
end

local function stack_of(list, d)
  local out = native.tensor({ #list, d, d }, "f64")
  for t, M in ipairs(list) do
    for i, row in ipairs(M:totable()) do
      for k, x in ipairs(row) do out:put(x, t, i, k) end
    end
  end
  return out
end

--- One map with or without embedding: accuracy, cosine, singular values, growth.
local function measure_map(P, B, data)
  local E = P * B
  local train, test = data.train * E:transpose(), data.test * E:transpose()
  local embedded = (data.test * B:transpose()):rownorms()
  local rows = unit_rows(test)
  local sv = la.svd(E)
  return {
    accuracy = readout(unit_rows(train), data.labels, rows, data.wanted), cosine = mean_cosine(rows),
    largest = sv:at(1), smallest = sv:at(sv:count()), growth = m.ratio(test:rownorms(), embedded):quantile(0.5),
    spectrum = sv,
  }
end

local function one_seed(v, seed)
  local d = v.width
  local ph_stack, standard = stacks(v, seed)
  local ph, plain = product(list_of(ph_stack), d), product(standard, d)
  local data = {}
  data.train, data.labels = points(v, seed, "train", v.train)
  data.test, data.wanted = points(v, seed, "test", v.test)
  local B, I = native.random("normal", seed, "laws.embed", { d, d }), native.eye(d)
  local out = {
    ph = measure_map(ph, I, data), ph_embed = measure_map(ph, B, data), std = measure_map(plain, I, data),
    std_embed = measure_map(plain, B, data),
  }
  out.ph_logs = native.laws.spectrum(ph_stack, 60, 1)
  out.std_logs = native.laws.spectrum(stack_of(standard, d), 60, 1)
  return out
end

local function decades(logs) return (logs:at(1) - logs:at(logs:count())) / math.log(10) end

local function gather(seeds, path, field)
  local list = {}
  for i, s in ipairs(seeds) do list[i] = s[path][field] end
  return list
end

local function extremes(list)
  return result.least(table.unpack(list)), result.most(table.unpack(list))
end

local function summarize(seeds)
  local metrics = {}
  for _, path in ipairs { "ph", "ph_embed", "std", "std_embed" } do
    metrics[path .. ".accuracy"], metrics[path .. ".accuracy.sd"] = m.mean(gather(seeds, path, "accuracy"))
    metrics[path .. ".cosine"] = m.mean(gather(seeds, path, "cosine"))
    metrics[path .. ".smallest"] = extremes(gather(seeds, path, "smallest"))
    metrics[path .. ".largest"] = select(2, extremes(gather(seeds, path, "largest")))
  end
  local floors, spans, growth = {}, {}, {}
  for i, s in ipairs(seeds) do
    floors[i] = math.log(s.std_embed.largest / s.std_embed.smallest, 10)
    spans[i], growth[i] = decades(s.std_logs), math.log(s.std.growth, 10)
  end
  metrics["std.span.svd"] = select(2, extremes(floors))
  metrics["std.span.least"], metrics["std.span.most"] = extremes(spans)
  metrics["std.growth.least"], metrics["std.growth.most"] = extremes(growth)
  return metrics
end

local function curve_of(logs)
  local rows = {}
  for i, v in ipairs(logs:totable()) do rows[i] = { i, v / math.log(10) } end
  return rows
end

local function figure(v, seeds)
  local first, floor, dots_ph, dots_std = seeds[1], {}, {}, {}
  for i, x in ipairs(first.std.spectrum:totable()) do floor[i] = { i, math.log(x, 10) } end
  for i, s in ipairs(seeds) do
    dots_ph[i], dots_std[i] = { i, 100 * s.ph.accuracy }, { i, 100 * s.std.accuracy }
  end
  return { name = "fig5", title = string.format("Capacity at depth %d", v.depth), panels = {
    { xlabel = "index", ylabel = "log10 of the singular value",
      series = {
        m.line("stream", curve_of(first.ph_logs), 1),
        m.line("standard, QR layer by layer", curve_of(first.std_logs), 2),
        m.line("standard, SVD of the product", floor, 4, "points"),
      } },
    { xlabel = "seed", ylabel = "held-out accuracy, %", ymin = 0, ymax = 105, xmin = 0.5, xmax = #seeds + 0.5,
      series = {
        m.line("stream", dots_ph, 1, "points"), m.line("standard", dots_std, 2, "points"),
        m.line("chance", { { 0.5, 25 }, { #seeds + 0.5, 25 } }, 7, "rule"),
      } } } }
end

--- Runs the law: metrics, tensors by path, figure.
function law.run(v, seed)
  local seeds, tensors = {}, {}
  for k = 1, v.seeds do
    seeds[k] = one_seed(v, seed + k - 1)
    tensors["spectrum/ph" .. k], tensors["spectrum/standard" .. k] = seeds[k].ph_logs, seeds[k].std_logs
  end
  return summarize(seeds), tensors, figure(v, seeds)
end

local function percent(x, key)
  return string.format("%.1f +- %.1f %%", 100 * x[key .. ".accuracy"], 100 * x[key .. ".accuracy.sd"])
end

law.table = {
  { "held-out readout, stream / standard", "98.1 +- 0.8 / 38.3 +- 3.3 %", function(x)
    return percent(x, "ph") .. " / " .. percent(x, "std") .. "; with embedding " .. percent(x, "ph_embed") .. " / "
      .. percent(x, "std_embed") end,
    "noise level and embedding are not printed in the paper; draws of three seeds" },
  { "mean |cosine| of terminal states", "0.26 / 0.83", function(x)
    return string.format("%.2f / %.2f; with embedding %.2f / %.2f", x["ph.cosine"], x["std.cosine"],
      x["ph_embed.cosine"], x["std_embed.cosine"]) end, "draws" },
  { "Jacobian spectrum of the stream", "2.1e-3 .. 5.5", function(x)
    return string.format("state %s .. %s; with embedding %s .. %s", m.short(x["ph.smallest"]), m.short(x["ph.largest"]),
      m.short(x["ph_embed.smallest"]), m.short(x["ph_embed.largest"])) end,
    "5.5 cannot be a state Jacobian, whose norm is at most 1: the embedding B is in it" },
  { "Jacobian span of the standard stream", "1e19", function(x)
    return string.format("10^%s by SVD of the product; 10^%s .. 10^%s by QR", m.short(x["std.span.svd"]),
      m.short(x["std.span.least"]), m.short(x["std.span.most"])) end,
    "cannot be right: 1e19 is the rounding floor of the multiplied-out product" },
  { "growth of the standard stream by depth 120", "1.95e17",
    function(x)
      return string.format("10^%s .. 10^%s", m.short(x["std.growth.least"]), m.short(x["std.growth.most"]))
    end, "draws" },
  { "(1.05)^120", "10^2.6", function() return string.format("10^%.2f", 120 * math.log(1.05, 10)) end,
    "cannot be right: arithmetic" },
}

return law
