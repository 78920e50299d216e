--- load(path) in the interactive session: a spec or a run file as something to explore.
--
--   load "specs/e6.lua"   an experiment: .cells (list), :ir(n) canonical text of cell n, :plan(n, seed) its net
--                         with its first parameters drawn
--   load "runs/HASH.h5"   a run: .record, .history (epochs x columns), .columns, .params (tensors by name, the best
--                         epoch's), .profiles, .confusion, .ir, :stream(segment) the trained state channel for the
--                         laws, :plan() the net itself

local native = require "ph.native"
local observe = require "ph.lang.observe"
local runfile = require "ph.run.runfile"
local sorted_keys = require "ph.util.sorted_keys"
local spec = require "ph.spec"

local open = {}

-- ---- specs ----

local Loaded = {}
Loaded.__index = Loaded

local function cell_text(cell)
  local parts = {}
  for i, v in ipairs(cell.values) do parts[i] = v.key .. "=" .. tostring(v.value) end
  return table.concat(parts, " ")
end

function Loaded:cell(n)
  local cell = self.experiment:cells()[n or 1]
  if not cell then
    error(string.format("%s has %d cells, there is no cell %s", self.name, #self.cells, tostring(n)), 0)
  end
  return cell
end

--- Canonical text of the model of cell n (default 1).
function Loaded:ir(n) return self.experiment:ir(self:cell(n)) end

--- The net of cell n with its parameters drawn from `seed` (default 0).
function Loaded:plan(n, seed)
  local plan, problem = native.plan(self:ir(n), { batch = 128 })
  if not plan then error(problem, 0) end
  plan:init(seed or 0)
  return plan
end

function Loaded:__tostring()
  local lines = { string.format("experiment '%s', %d cells", self.name, #self.cells) }
  for i = 1, math.min(8, #self.cells) do lines[#lines + 1] = string.format("  %d  %s", i, self.cells[i]) end
  if #self.cells > 8 then lines[#lines + 1] = string.format("  ... %d more", #self.cells - 8) end
  return table.concat(lines, "\n")
end

local function load_spec(path, overrides)
  local experiment, problems = spec.load(path, overrides or {})
  if not experiment then
    local lines = {}
    for i, p in ipairs(problems) do lines[i] = p.text end
    error(table.concat(lines, "\n"), 0)
  end
  local cells = {}
  for i, cell in ipairs(experiment:cells()) do cells[i] = cell_text(cell) end
  return setmetatable({ experiment = experiment, name = experiment.name, cells = cells }, Loaded)
end

-- ---- run files ----

local Run = {}
Run.__index = Run

local function tensors_below(file, group)
  local out = {}
  if file:kind(group) ~= "group" then return out end
  for _, item in ipairs(file:list(group)) do
    if item.kind == "tensor" then out[item.path:sub(#group + 2)] = file:tensor(item.path) end
  end
  return out
end

--- The trained state channel of a segment (default: the first stream), for spectrum, volume and the other laws.
function Run:stream(segment) return require("ph.laws.trained").stream(self.path, segment) end

--- The trained net itself: a plan with the run's parameters.
function Run:plan()
  local plan, problem = native.plan(self.ir, { batch = 128, probe = true })
  if not plan then error(problem, 0) end
  for name, value in pairs(self.params) do plan:set(name, "value", value) end
  plan:refresh()
  return plan
end

function Run:__tostring()
  local names = sorted_keys(self.params)
  return string.format("run %s of '%s', %s: %s\n  %d epochs, columns %s\n  parameters %s", self.record.run,
    self.record.spec, self.record.status, self.record.label or "", self.history:shape()[1],
    table.concat(self.columns, " "), table.concat(names, " "))
end

-- Profiles of a run file under the names of today.
local function profiles_of(file)
  local out = {}
  for key, profile in pairs(tensors_below(file, "/profiles")) do
    local stream, name = key:match "^(.-)/(.*)$"
    out[stream .. "/" .. observe.profile_name(name)] = profile
  end
  return out
end

local function load_run(path)
  local run, problem = runfile.open(path)
  if not run then error(problem, 0) end
  local file <close> = run.file
  local best = file:kind "/best" == "group" and "/best" or "/final"
  return setmetatable({
    path = path, record = run.record, columns = run.columns, history = file:tensor "/history", ir = file:text "/ir",
    params = tensors_below(file, best), profiles = profiles_of(file),
    confusion = file:kind "/confusion" == "tensor" and file:tensor "/confusion" or nil,
  }, Run)
end

--- A path ending in .lua or .h5; anything else is Lua's own load. More arguments: overrides of a spec ("depth=30").
function open.load(what, ...)
  if type(what) ~= "string" and type(what) ~= "function" then error("load: needs a path or a text", 0) end
  if type(what) ~= "string" or not what:find "%.%w+$" or what:find "\n" then return load(what, ...) end
  if what:find "%.h5$" then return load_run(what) end
  if what:find "%.lua$" then return load_spec(what, { ... }) end
  return load(what, ...)
end

return open
