--- What the experiments on laws share: columns and quantiles of native results, figures made of
-- curves, rows of the table of the paper.

local native = require "ph.native"

local measures = {}

--- Column k of a matrix as a tensor.
function measures.column(t, k)
  local n = t:shape()[1]
  return t:slice(2, k, k):reshape { n }
end

--- Elementwise a / b of two vectors.
function measures.ratio(a, b)
  local x, y = a:totable(), b:totable()
  for i, v in ipairs(x) do x[i] = v / y[i] end
  return native.from(x, "f64")
end

--- f of every element.
function measures.map(t, f)
  local x = t:totable()
  for i, v in ipairs(x) do x[i] = f(v) end
  return native.from(x, "f64")
end

--- Rows of numbers as a tensor (n, k).
function measures.matrix(rows) return native.from(rows, "f64") end

--- Quantile curves of a result (runs, depth + 1): at every `every`-th column the quantiles qs of `of(column, k)`; rows
-- { x, q1, q2, ... }.
function measures.curve(t, every, qs, of, x_of)
  local rows = {}
  for k = 1, t:shape()[2] do
    if (k - 1) % every == 0 or k == t:shape()[2] then
      local c = of and of(measures.column(t, k), k) or measures.column(t, k)
      local row = { x_of and x_of(k) or k - 1 }
      for i, q in ipairs(qs) do row[i + 1] = c:quantile(q) end
      rows[#rows + 1] = row
    end
  end
  return measures.matrix(rows)
end

--- Columns `ks` of a curve as a tensor of its own.
function measures.pick(t, ks)
  local rows = t:totable()
  for i, row in ipairs(rows) do
    local out = {}
    for j, k in ipairs(ks) do out[j] = row[k] end
    rows[i] = out
  end
  return measures.matrix(rows)
end

--- Series of a curve { x, low, median, high }: a band and its middle line, in one colour.
function measures.band(label, curve, color)
  return { label = "", style = "band", data = measures.pick(curve, { 1, 2, 4 }), color = color },
         { label = label, style = "line", data = measures.pick(curve, { 1, 3 }), color = color }
end

--- A line from a list of points.
function measures.line(label, points, color, style)
  return { label = label, style = style or "line", data = measures.matrix(points), color = color }
end

--- Mean and deviation (of the population) of a list.
function measures.mean(list)
  local sum, square = 0.0, 0.0
  for _, v in ipairs(list) do sum = sum + v end
  local m = sum / #list
  for _, v in ipairs(list) do square = square + (v - m) ^ 2 end
  return m, math.sqrt(square / #list)
end

--- A number the way the table of the paper writes it.
function measures.short(v)
  if type(v) ~= "number" then return tostring(v) end
  if v ~= 0 and (math.abs(v) >= 1e5 or math.abs(v) < 1e-3) then return string.format("%.2e", v) end
  return string.format("%.4g", v)
end

return measures
