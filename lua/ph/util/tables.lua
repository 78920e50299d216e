--- Tables of text and numbers as a person writes them: columns aligned, numbers to the right, one header, no frames.

local tables = {}

local function width_of(s)
  return utf8.len(s) or #s
end

local function pad(s, width, right)
  local gap = string.rep(" ", width - width_of(s))
  return right and gap .. s or s .. gap
end

--- A number with `digits` significant places after the point; "-" for nil, "nan" for a number that is none.
function tables.fixed(v, digits)
  if v == nil then return "-" end
  if v ~= v then return "nan" end
  return string.format("%." .. digits .. "f", v)
end

--- The same for a number of any size: with an exponent where those places would show nothing, or too much.
function tables.ranged(v, digits)
  local size = v and math.abs(v) or 0
  if size ~= 0 and size == size and size < math.huge and (size < 10 ^ -digits or size >= 1e7) then
    return string.format("%.2e", v)
  end
  return tables.fixed(v, digits)
end

--- Mean and sample standard deviation of a list: "97.2 ± 0.3"; without deviation for fewer than two values. format:
-- tables.fixed, or another of its kind.
function tables.spread(values, digits, format)
  format = format or tables.fixed
  local n, sum = #values, 0
  if n == 0 then return "-" end
  for _, v in ipairs(values) do sum = sum + v end
  local mean = sum / n
  if n == 1 then return format(mean, digits) end
  local square = 0
  for _, v in ipairs(values) do square = square + (v - mean) ^ 2 end
  return format(mean, digits) .. " ± " .. format((square / (n - 1)) ^ 0.5, digits)
end

--- 75 -> "1:15", 4000 -> "1:06:40", 3.21 -> "3.2 s".
function tables.duration(seconds)
  if seconds ~= seconds or seconds == math.huge then return "?" end
  if seconds < 60 then return string.format("%.1f s", seconds) end
  local s = math.floor(seconds + 0.5)
  if s < 3600 then return string.format("%d:%02d", s // 60, s % 60) end
  return string.format("%d:%02d:%02d", s // 3600, s // 60 % 60, s % 60)
end

--- 1234567 -> "1,234,567".
function tables.count(n)
  local text = string.format("%d", n)
  local head, rest = text:match "^(-?%d%d?%d?)(.*)$"
  while #rest % 3 ~= 0 do head, rest = text:sub(1, #head - 1), text:sub(#head) end
  return head .. rest:gsub("%d%d%d", ",%0")
end

local units <const> = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } }

--- 3.21e9 -> "3.21 G".
function tables.si(v)
  for _, u in ipairs(units) do
    if v >= u[1] then return string.format("%.3g %s", v / u[1], u[2]) end
  end
  return string.format("%.3g ", v)
end

--- 5.2e6 -> "5.0 MiB".
function tables.bytes(n)
  local names <const> = { "B", "KiB", "MiB", "GiB", "TiB" }
  local i = 1
  while n >= 1024 and i < #names do n, i = n / 1024, i + 1 end
  return string.format(i == 1 and "%.0f %s" or "%.1f %s", n, names[i])
end

--- A number, also with a unit, a deviation or a comparison after it; no hash and no shape.
local function is_number(cell)
  local rest = cell:match "^[-+]?%d[%d.,]*(.*)$"
  return rest and (rest == "" or rest:find "^[eE][-+]%d+$" or rest:find "^[ :%%]") and not cell:find("->", 1, true)
end

--- What stands for no number in a column of numbers.
local blank <const> = { [""] = true, ["-"] = true, ["."] = true, nan = true }

local function column_width(header, rows, i)
  local width, right = width_of(header), true
  for _, row in ipairs(rows) do
    local cell = row[i] or ""
    width = math.max(width, width_of(cell))
    if not blank[cell] and not is_number(cell) then right = false end
  end
  return width, right
end

--- Lines of a table. headers: list of texts; rows: lists of texts. Columns whose cells are all numbers go to the right.
function tables.render(headers, rows)
  local widths, rights, lines = {}, {}, {}
  for i, header in ipairs(headers) do widths[i], rights[i] = column_width(header, rows, i) end
  local function line(cells)
    local out = {}
    for i = 1, #headers do out[i] = pad(cells[i] or "", widths[i], rights[i]) end
    lines[#lines + 1] = ("  " .. table.concat(out, "  ")):gsub("%s+$", "")
  end
  line(headers)
  local rule = {}
  for i = 1, #headers do rule[i] = string.rep("-", widths[i]) end
  line(rule)
  for _, row in ipairs(rows) do line(row) end
  return lines
end

return tables
