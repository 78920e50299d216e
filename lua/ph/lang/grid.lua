--- The grid of an experiment: axes, cells in a fixed order, and restriction by the command line.
--
-- A grid is a table of axes, or a list of such tables (sub-grids), whose cells follow one another. Lua tables have no
-- order, so axes are put in one (ph.schema.axes). The first axis changes slowest; values keep the order in which they
-- are written.

local axes = require "ph.schema.axes"
local kinds = require "ph.schema.kinds"
local schema = require "ph.schema"
local suggest = require "ph.util.suggest"
local where = require "ph.schema.where"

local grid = {}

local whole <const> = { kind = "integer", min = 1, max = 1000000 }
local axis_kinds <const> = { depth = whole, width = whole, seed = { kind = "integer", min = 0, max = 1 << 53 } }
local scalar <const> = { kind = "scalar" }
local most_cells <const> = 100000

function kinds.scalar(v)
  local t = type(v)
  if t == "number" then return kinds.number(v, {}) end
  if t == "string" then
    local problem = kinds.illegible(v)
    if problem then return nil, problem end
    return v
  end
  if t == "boolean" then return v end
  return nil, "must be a number, a string or true/false, got " .. kinds.describe(v)
end

--- The values of one axis: a list, or one value. Returns the list, or nil and what is wrong.
function grid.values(name, v)
  local of = axis_kinds[name] or scalar
  return kinds.list(type(v) == "table" and v or { v }, { of = of, least = 1, distinct = true })
end

local function report(path, format, ...)
  schema.report(where.prefix("experiment", path) .. "experiment: " .. string.format(format, ...))
end

--- One table of axes in canonical order: { { key =, values = }, ... }.
local function axes_of(t, path)
  local out = {}
  for k, v in pairs(t) do
    local at = table.move(path, 1, #path, 1, {})
    at[#at + 1] = k
    if type(k) ~= "string" or not k:find "^%a[%w_]*$" then
      report(at, "grid: an axis needs a name, got %s", kinds.describe(k))
    else
      local values, reason = grid.values(k, v)
      if not values then report(at, "grid: '%s' %s", k, reason) end
      out[#out + 1] = { key = k, values = values or {} }
    end
  end
  table.sort(out, function(a, b) return axes.before(a.key, b.key) end)
  return out
end

local function with_seed(list)
  for _, axis in ipairs(list) do
    if axis.key == "seed" then return list end
  end
  list[#list + 1] = { key = "seed", values = { 0 } }
  return list
end

--- Sub-grids of what a spec gives under `grid`: a list of lists of axes. Errors are reported; bad axes are left empty.
local function read(t)
  local n = #t > 0 and kinds.list_length(t)
  if #t > 0 and not n then
    report({ "grid" }, "grid: %s", select(2, kinds.list_length(t)))
    return {}
  end
  if not n then return { with_seed(axes_of(t, { "grid" })) } end
  local out = {}
  for i = 1, n do
    if type(t[i]) == "table" then
      out[#out + 1] = with_seed(axes_of(t[i], { "grid", i }))
    else
      report({ "grid", i }, "grid: element %d must be a table of axes, got %s", i, kinds.describe(t[i]))
    end
  end
  return out
end

--- Cells of all sub-grids, before they are made.
local function count(subgrids)
  local n = 0
  for _, list in ipairs(subgrids) do
    local product = 1.0 -- as floats: integers would wrap
    for _, axis in ipairs(list) do product = product * #axis.values end
    n = n + product
  end
  return n
end

--- The kind of the key `grid`: its value is the list of sub-grids.
function kinds.grid(v)
  if type(v) ~= "table" or kinds.tag(v) then return nil, "must be a table of axes, got " .. kinds.describe(v) end
  local known = #schema.errors()
  local subgrids = read(v)
  if count(subgrids) > most_cells then
    report({ "grid" }, "grid: %.0f cells are more than %d", count(subgrids), most_cells)
  end
  return #schema.errors() > known and kinds.broken or subgrids
end

--- The grid of an experiment without axes: one run with seed 0.
function grid.single() return { with_seed {} } end

-- ---- cells ----

local Cell = {}
Cell.__index = Cell

--- Value of an axis, nil if the cell has none of that name.
function Cell:get(key) return self.by_key[key] end

--- "family=ph depth=240 seed=0"; without the axes in `skip`.
function Cell:text(skip) return axes.text(self.values, skip) end

--- The values as a plain table.
function Cell:plain()
  local out = {}
  for k, v in pairs(self.by_key) do out[k] = v end
  return out
end

--- What a spec's functions see: reading an axis that is not there is an error, reading one is noted in `reads`.
function Cell:view(reads)
  local names = {}
  for i, kv in ipairs(self.values) do names[i] = kv.key end
  return setmetatable({}, {
    __name = "ph.cell",
    __index = function(_, k)
      local v = self.by_key[k]
      if v == nil then
        schema.fail("cell", "no axis '%s' in this cell%s; it has %s", tostring(k), suggest.hint(tostring(k), names),
          table.concat(names, ", "))
      end
      reads[k] = true
      return v
    end,
    __newindex = function(_, k)
      schema.fail("cell", "axis '%s' cannot be set here; the grid does that", tostring(k))
    end,
  })
end

local function new_cell(list, picks)
  local self = setmetatable({ values = {}, by_key = {} }, Cell)
  for i, axis in ipairs(list) do
    self.values[i] = { key = axis.key, value = axis.values[picks[i]] }
    self.by_key[axis.key] = axis.values[picks[i]]
  end
  return self
end

--- Advances the picks like an odometer, the last axis fastest. False when all were seen.
local function advance(list, picks)
  for i = #list, 1, -1 do
    picks[i] = picks[i] + 1
    if picks[i] <= #list[i].values then return true end
    picks[i] = 1
  end
  return false
end

--- All cells of all sub-grids in order.
function grid.cells(subgrids)
  local out = {}
  for _, list in ipairs(subgrids) do
    local picks, more = {}, true
    for i, axis in ipairs(list) do
      picks[i] = 1
      more = more and #axis.values > 0
    end
    while more do
      out[#out + 1] = new_cell(list, picks)
      more = advance(list, picks)
    end
  end
  return out
end

--- The first cell that two sub-grids share, as text, or nil.
function grid.duplicate(cells)
  local seen = {}
  for _, cell in ipairs(cells) do
    local text = cell:text()
    if seen[text] then return text end
    seen[text] = true
  end
end

-- ---- restriction ----

local function has(list, v)
  for _, x in ipairs(list) do
    if x == v then return true end
  end
  return false
end

--- Names of all axes.
function grid.axis_names(subgrids)
  local seen, names = {}, {}
  for _, list in ipairs(subgrids) do
    for _, axis in ipairs(list) do
      if not seen[axis.key] then names[#names + 1] = axis.key end
      seen[axis.key] = true
    end
  end
  return names
end

--- Is every value one that some sub-grid has on this axis?
local function all_known(subgrids, key, values)
  for _, v in ipairs(values) do
    local found = false
    for _, list in ipairs(subgrids) do
      for _, axis in ipairs(list) do found = found or (axis.key == key and has(axis.values, v)) end
    end
    if not found then return false end
  end
  return true
end

--- The axis `key` set to `values`. If the grid has all of them, each sub-grid keeps those it has (and may drop out);
-- otherwise they replace the axis in every sub-grid that has it.
function grid.restrict(subgrids, key, values)
  local known, out = all_known(subgrids, key, values), {}
  for _, list in ipairs(subgrids) do
    local copy, empty = {}, false
    for i, axis in ipairs(list) do
      local kept = axis.values
      if axis.key == key then
        kept = values
        if known then
          kept = {}
          for _, v in ipairs(values) do kept[#kept + 1] = has(axis.values, v) and v or nil end
        end
        empty = #kept == 0
      end
      copy[i] = { key = axis.key, values = kept }
    end
    if not empty then out[#out + 1] = copy end
  end
  return out
end

return grid
