--- Small line charts as SVG text, for pages without network: a line per series through means, a whisker of one sample
-- deviation, a dot per run. Colours are classes (s1 ... s8), so that the page's light and dark styles choose them;
-- every series also has its own dot shape.
--
-- chart = { title, x_label, y_label, log = true|false, categories = names or nil, series = { { name,
-- points = { { x, mean, sd, values } } } } }

local chart = {}

local W <const>, H <const> = 460, 300
local left <const>, right <const>, top <const>, bottom <const> = 78, 14, 14, 44

--- Text for HTML and XML.
function chart.escape(s)
  return (tostring(s):gsub('[&<>"]', { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

local escape = chart.escape

-- Steps of 1, 2, 2.5 or 5 times a power of ten: four to six marks inside [low, high].
local function nice_marks(low, high)
  local raw = (high - low) / 5.5
  local power = 10 ^ math.floor(math.log(raw, 10))
  local step = power
  for _, m in ipairs { 1, 2, 2.5, 5, 10 } do
    if m * power >= raw then step = m * power break end
  end
  local out = {}
  for k = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) do out[#out + 1] = k * step end
  return out
end

local function log_marks(low, high)
  local first, last = math.floor(math.log(low, 10) + 1e-9), math.ceil(math.log(high, 10) - 1e-9)
  local every, out = math.max(1, math.ceil((last - first) / 6)), {}
  for k = first, last, every do
    for _, m in ipairs(last - first <= 2 and { 1, 2, 5 } or { 1 }) do
      local v = m * 10.0 ^ k
      if v >= low * 0.999 and v <= high * 1.001 then out[#out + 1] = v end
    end
  end
  return out
end

local function mark_text(v)
  local a = math.abs(v)
  if a ~= 0 and (a >= 1e5 or a < 1e-4) then
    local power = math.floor(math.log(a, 10) + 1e-9)
    local m = v / 10.0 ^ power
    return (math.abs(m - 1) < 1e-6 and "" or string.format("%.3g×", m))
      .. string.format("10<tspan dy=\"-4\" font-size=\"9\">%d</tspan>", power)
  end
  return (string.format("%.6g", v))
end

local function every_value(c, visit)
  for _, s in ipairs(c.series) do
    for _, p in ipairs(s.points) do
      visit(p.mean)
      for _, v in ipairs(p.values or {}) do visit(v) end
      if p.sd and not c.log then
        visit(p.mean - p.sd)
        visit(p.mean + p.sd)
      end
    end
  end
end

local function y_range(c)
  local low, high = math.huge, -math.huge
  every_value(c, function(v)
    if v == v and math.abs(v) < math.huge and (not c.log or v > 0) then
      low, high = math.min(low, v), math.max(high, v)
    end
  end)
  if low > high then return 0, 1 end
  if c.log then
    if high / low < 1.5 then low, high = low / 1.5, high * 1.5 end
    return low / 1.15, high * 1.15
  end
  local pad = (high - low) * 0.06
  if pad == 0 then pad = math.abs(high) * 0.1 + (high == 0 and 1 or 0) end
  return low - pad, high + pad
end

local function x_range(c)
  if c.categories then return 0.5, #c.categories + 0.5 end
  local low, high = math.huge, -math.huge
  for _, s in ipairs(c.series) do
    for _, p in ipairs(s.points) do low, high = math.min(low, p.x), math.max(high, p.x) end
  end
  if low > high then return 0, 1 end
  local pad = (high - low) * 0.06
  if pad == 0 then pad = 1 end
  return low - pad, high + pad
end

local function scales(c)
  local x0, x1 = x_range(c)
  local y0, y1 = y_range(c)
  local function x(v) return left + (v - x0) / (x1 - x0) * (W - left - right) end
  local function y(v)
    if c.log then
      return H - bottom
        - (math.log(math.max(v, y0)) - math.log(y0)) / (math.log(y1) - math.log(y0)) * (H - top - bottom)
    end
    return H - bottom - (v - y0) / (y1 - y0) * (H - top - bottom)
  end
  return x, y, { y0, y1 }
end

local shapes = {}
shapes[1] = function(x, y) return string.format('<circle cx="%.1f" cy="%.1f" r="3.2"/>', x, y) end
shapes[2] = function(x, y) return string.format('<rect x="%.1f" y="%.1f" width="6" height="6"/>', x - 3, y - 3) end
shapes[3] = function(x, y) return string.format('<path d="M%.1f %.1fl3.8 6.6h-7.6z"/>', x, y - 4) end
shapes[4] = function(x, y) return string.format('<path d="M%.1f %.1fl4 4l-4 4l-4-4z"/>', x, y - 4) end
shapes[5] = function(x, y) return string.format('<path d="M%.1f %.1fl-3.8-6.6h7.6z"/>', x, y + 4) end

local function shape_of(i) return shapes[(i - 1) % #shapes + 1] end

local function put(out, format, ...)
  out[#out + 1] = string.format(format, ...)
end

local function grid_lines(out, c, y, range)
  for _, v in ipairs(c.log and log_marks(range[1], range[2]) or nice_marks(range[1], range[2])) do
    put(out, '<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>', left, W - right, y(v), y(v))
    put(out, '<text class="tick" text-anchor="end" x="%d" y="%.1f">%s</text>', left - 7, y(v) + 4, mark_text(v))
  end
end

local function x_marks(c)
  local out, seen = {}, {}
  if c.categories then
    for i, name in ipairs(c.categories) do out[i] = { i, name } end
    return out
  end
  for _, s in ipairs(c.series) do
    for _, p in ipairs(s.points) do
      if not seen[p.x] then out[#out + 1] = { p.x, string.format("%.6g", p.x) } end
      seen[p.x] = true
    end
  end
  table.sort(out, function(a, b) return a[1] < b[1] end)
  return out
end

local function axes(out, c, x)
  put(out, '<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>', left, W - right, H - bottom, H - bottom)
  for _, m in ipairs(x_marks(c)) do
    put(out, '<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>', x(m[1]), x(m[1]), H - bottom, H - bottom + 4)
    put(out, '<text class="tick" text-anchor="middle" x="%.1f" y="%d">%s</text>', x(m[1]), H - bottom + 17,
      escape(m[2]))
  end
  put(out, '<text class="label" text-anchor="middle" x="%.1f" y="%d">%s</text>', (left + W - right) / 2, H - 8,
    escape(c.x_label))
  put(out, '<text class="label" text-anchor="middle" transform="translate(13 %.1f) rotate(-90)">%s</text>',
    (top + H - bottom) / 2, escape(c.y_label .. (c.log and " (log scale)" or "")))
end

local function drawable(c, v)
  return v == v and math.abs(v) < math.huge and (not c.log or v > 0)
end

local function whisker(out, c, p, px, y)
  if not p.sd or p.sd == 0 then return end
  local low, high = p.mean - p.sd, p.mean + p.sd
  if c.log and low <= 0 then low = math.huge end
  for _, v in ipairs(p.values or {}) do
    if c.log and v > 0 then low = math.min(low, v) end
  end
  if not drawable(c, low) then return end
  put(out, '<path class="whisker" d="M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6"/>', px, y(low), y(high), px - 3, y(low),
    px - 3, y(high))
end

-- Series are moved a little apart, so that dots at the same depth can be told.
local function shift(i, n) return n > 1 and (i - (n + 1) / 2) * math.min(7, 26 / n) or 0 end

local function one_series(out, c, s, i, x, y)
  put(out, '<g class="s%d"><title>%s</title>', (i - 1) % 8 + 1, escape(s.name))
  local path, dx = {}, shift(i, #c.series)
  for _, p in ipairs(s.points) do
    if drawable(c, p.mean) then
      path[#path + 1] = string.format("%s%.1f %.1f", #path == 0 and "M" or "L", x(p.x) + dx, y(p.mean))
    end
  end
  if #path > 1 and not c.categories then put(out, '<path class="line" d="%s"/>', table.concat(path)) end
  for _, p in ipairs(s.points) do
    local px = x(p.x) + dx
    if drawable(c, p.mean) then whisker(out, c, p, px, y) end
    for _, v in ipairs(p.values or {}) do
      if drawable(c, v) then put(out, '<g class="run">%s</g>', shape_of(i)(px, y(v))) end
    end
    if drawable(c, p.mean) then put(out, "%s", shape_of(i)(px, y(p.mean))) end
  end
  put(out, "</g>")
end

--- The chart as one <svg> element; `c.title` is its accessible name.
function chart.svg(c)
  local out = {}
  local x, y, range = scales(c)
  put(out, '<svg viewBox="0 0 %d %d" role="img" aria-label="%s">', W, H, escape(c.title))
  grid_lines(out, c, y, range)
  axes(out, c, x)
  for i, s in ipairs(c.series) do one_series(out, c, s, i, x, y) end
  put(out, "</svg>")
  return table.concat(out)
end

--- The legend of a chart as HTML: one mark and name a series.
function chart.legend(series)
  local out = {}
  for i, s in ipairs(series) do
    put(out, '<span class="key"><svg viewBox="0 0 12 12" class="s%d" aria-hidden="true">%s</svg>%s</span>',
      (i - 1) % 8 + 1, shape_of(i)(6, 6), escape(s.name))
  end
  return '<p class="legend">' .. table.concat(out) .. "</p>"
end

--- True when values are positive and span more than a factor of 30.
function chart.wants_log(c)
  local low, high = math.huge, 0
  local positive = true
  every_value({ series = c.series, log = true }, function(v)
    if v == v and math.abs(v) < math.huge then
      positive = positive and v > 0
      low, high = math.min(low, v), math.max(high, v)
    end
  end)
  return positive and high > 30 * low
end

return chart
