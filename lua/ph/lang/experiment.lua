--- An experiment: task, model, grid, protocol, measures, and what is decided from them. The object every verb works on.
--
--   e:cells()                 points of the grid in order
--   e:candidates()            points of `select` in order: { { lr = 0.001 }, ... }; { {} } without select
--   e:ir(cell)                canonical IR text of the cell's model
--   e:task_of(cell)           its task; e.train is the protocol of all cells
--   e:measures(cell)          list of what is measured on its finished net
--   e.source                  { file, text, files = { { path, text } } } when it was loaded from a file
--   e.changes                 what the command line changed beside the grid, as sorted words
--
-- Texts hold meanings only: comments, indentation, key order and moved helpers do not change them.

local consistency = require "ph.lang.consistency"
local edition = require "ph.schema.edition"
local emit = require "ph.lang.emit"
local grid = require "ph.lang.grid"
local losses = require "ph.lang.loss"
local kinds = require "ph.schema.kinds"
local meaning = require "ph.schema.meaning"
local native = require "ph.native"
require "ph.lang.protocol" -- its keys are those of the candidates
local rules = require "ph.rules"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"
local texts = require "ph.lang.texts"
local where = require "ph.schema.where"

local experiment = {}

local Experiment = { __name = "ph.experiment" }
Experiment.__index = Experiment
Experiment.__tostring = function(self) return "experiment " .. self.name end

-- ---- registration ----

function kinds.task(v)
  return kinds.object(v, { object = "ph.task", object_text = "a task (ph.task.circles { ... })" })
end
function kinds.protocol(v)
  return kinds.object(v, { object = "ph.protocol", object_text = "a protocol (ph.adam { ... } or ph.sgd { ... })" })
end

local measure_of <const> = { kind = "object", object = "ph.measure", object_text = "a measure (ph.growth())" }

schema.define {
  name = "experiment", role = "experiment", section = "experiment",
  doc = "What a spec returns: a grid of runs and what is asked of them.",
  example = "return ph.experiment { name = 'quick', task = ..., model = function(cell) ... end, grid = ..., train = "
    .. "... }",
  keys = {
    { "name", kind = "string", required = true, affects = "plan", pattern = "^[%w_][%w_%-%.]*$",
      pattern_text = "a name of letters, digits, _ - .", doc = "name; the results go to experiments/NAME" },
    { "note", kind = "string", affects = "plan", doc = "what this is about, in words" },
    { "task", kind = { "task", "function" }, required = true, doc = "a task, or function(cell) that gives one" },
    { "model", kind = "function", required = true, doc = "function(cell) that gives the list of stages" },
    { "grid", kind = "grid",
      doc = "axes such as family, depth, seed with their values, or a list of such tables; default: one run" },
    { "train", kind = "protocol", required = true, doc = "a protocol: ph.adam { ... } or ph.sgd { ... }" },
    { "select", kind = "block", block = "select",
      doc = "candidates, the best of which on validation data is the cell's run" },
    { "measure", kind = { "list", "function" }, of = measure_of, distinct = true, default = {},
      doc = "what is measured on each finished net: a list, or function(cell) that gives one" },
    { "rules", kind = "any", affects = "plan", doc = "decisions from the results, as data" },
    { "predictions", kind = "any", affects = "plan", doc = "bands guessed beforehand" },
    { "gates", kind = "any", affects = "plan", doc = "verdicts of other experiments this one waits for" },
    { "figures", kind = "list", of = { kind = "string" }, affects = false,
      doc = "metrics that the report draws; default: the usual ones" },
    { "seeds", kind = "choice", allowed = { "cell", "lock" }, default = "cell",
      doc = "a run's seed: the cell's (cell), or derived from it and the lock's hash (lock), so nobody chose it" },
    { "dtype", kind = "choice", allowed = { "f32", "f64" }, default = "f32", since = 2,
      doc = "numbers of the training: f32, or f64 for twice the memory and about half the speed" },
    { "loss", kind = { "loss", "function" }, affects = false, since = 2,
      doc = "what training makes small, a word (cross_entropy, mse, huber, mae) or with keys, or function(cell) that "
        .. "gives one; models' texts name it. Default: cross_entropy where the task has classes, mse where it has "
        .. "targets" },
    schema.edition_key,
  },
}

local function candidates_key(key, doc)
  local of = schema.get("adam").by_name[key]
  return { key, kind = "list", of = of, least = 1, distinct = true, candidates = true, doc = doc }
end

schema.define {
  name = "select", role = "select", section = "experiment",
  looks = "a table such as { lr = { 1e-3, 3e-3 }, by = 'val.accuracy' }",
  doc = "Every cell is run once for each candidate; the best on validation data is the cell's run.",
  keys = {
    { "by", kind = "monitor", default = "val.accuracy",
      doc = "validation value that decides; the first of equals wins" },
    candidates_key("lr", "learning rates to try"),
    candidates_key("batch", "batch sizes to try"),
    candidates_key("weight_decay", "weight decays to try"),
  },
}

local function build(v)
  local self = {
    values = v, task_source = v.task, axes = v.grid or grid.single(), memo = {}, task_changes = {}, task_changed = {},
    changes = {}, read = {},
  }
  for k, x in pairs(v) do self[k] = x end
  self.grid, self.edition = nil, edition.current()
  if type(v.task) == "function" then self.task = nil end
  return setmetatable(self, Experiment)
end

--- Can models be compiled although other keys have errors?
local function usable(v)
  local function good(x) return x ~= nil and not rawequal(x, kinds.broken) end
  local function fit(x) return x == nil or good(x) end
  return good(v.task) and good(v.model) and fit(v.grid) and fit(v.loss) and build(v) or nil
end

--- The constructor. After errors it gives a broken object and, for the loader, what of the models can be checked still.
function experiment.experiment(args)
  local values, rest = schema.check("experiment", args)
  if values then return build(values) end
  experiment.rest = rest and usable(rest)
  return kinds.broken
end

-- ---- functions of the spec, called with limits ----

experiment.limits = { instructions = 100000000, bytes = 1 << 28 }

--- Calls a function that the spec handed out, within limits; raises its one-line error.
function Experiment:limited(f, ...)
  local value, problem, code, place =
    edition.under(self.edition, texts.within, native.limited, experiment.limits, f, ...)
  if value ~= nil then return value end
  self.exhausted = code == "PH_E_LIMIT" or code == "PH_E_INTERRUPTED"
  error(problem == kinds.stop and problem or where.located(problem, place), 0)
end

--- Values of a function of the cell, remembered by the axes that it read: cells that differ in others share a value.
local Memo = {}
Memo.__index = Memo

--- The remembered value for a cell, or nil. There are as many groups as sets of axes that were read: few.
function Memo:find(cell)
  for _, group in ipairs(self) do
    local value = group.values[cell:text(group.unread)]
    if value ~= nil then return value end
  end
end

function Memo:keep(cell, reads, value)
  local unread, names = {}, {}
  for _, kv in ipairs(cell.values) do
    if not reads[kv.key] then
      unread[kv.key] = true
      names[#names + 1] = kv.key
    end
  end
  local key = table.concat(names, " ")
  if not self[key] then
    self[key] = { unread = unread, values = {} }
    self[#self + 1] = self[key]
  end
  self[key].values[cell:text(unread)] = value
end

--- Value of finish(f(cell)). what: "task" or "model ...", one memory each.
function Experiment:call(what, f, cell, finish)
  local memo = self.memo[what] or setmetatable({}, Memo)
  self.memo[what] = memo
  local value = memo:find(cell)
  if value ~= nil then return value end
  local reads = {}
  value = self:limited(function(view) return finish(f(view)) end, cell:view(reads))
  for key in pairs(what ~= "measure" and reads or {}) do self.read[key] = true end
  memo:keep(cell, reads, value)
  return value
end

-- ---- the parts of a run ----

function Experiment:cells()
  self.cell_list = self.cell_list or grid.cells(self.axes)
  return self.cell_list
end

--- Seed of a cell's run. With seeds = "lock" it is known once the experiment is under its lock.
function Experiment:seed(cell)
  local seed = cell:get "seed"
  return self.seeds == "lock" and self.lock and rules.seed(self.lock, seed) or seed
end

--- What `select` means, nil without it: { candidates = { lr = { ... } }, and its other keys, such as by }.
function Experiment:selection()
  if not self.select then return nil end
  local out = { candidates = {} }
  for k, v in pairs(meaning.of("select", self.select)) do
    if schema.get("select").by_name[k].candidates then out.candidates[k] = v else out[k] = v end
  end
  return out
end

--- Candidates of `select` in order; keys in the order of their names, the last changing fastest.
function Experiment:candidates()
  local axes, list = self.select and self:selection().candidates or {}, { {} }
  for _, key in ipairs(sorted_keys(axes)) do
    local longer = {}
    for _, c in ipairs(list) do
      for _, v in ipairs(axes[key]) do
        local copy = { [key] = v }
        for k, x in pairs(c) do copy[k] = x end
        longer[#longer + 1] = copy
      end
    end
    list = longer
  end
  return list
end

--- What its keys that are newer than the first version of the language say: of runs, or (in_plan) of the whole plan.
function Experiment:newer(in_plan) return meaning.newer("experiment", self.values, in_plan) end

--- What a task function gave, with the changes of the command line that it has keys for.
function Experiment:as_task(v)
  if rawequal(v, kinds.broken) then error(kinds.stop, 0) end
  local task, reason = kinds.task(v)
  if not task then schema.fail("task", "%s", reason) end
  local mine = {}
  for k, x in pairs(self.task_changes) do
    if task:has_key(k) then mine[k], self.task_changed[k] = x, true end
  end
  return next(mine) and where.from("command line", task.with, task, mine) or task
end

function Experiment:task_of(cell)
  if self.task then return self.task end
  return self:call("task", self.task_source, cell, function(v) return self:as_task(v) end)
end

local function as_measures(v)
  local list, reason = kinds.check(v, { kind = "list", of = measure_of, distinct = true })
  if not list then schema.fail("experiment", "measure: %s", reason) end
  return list
end

--- What is measured on the cell's finished net.
function Experiment:measures(cell)
  if type(self.measure) ~= "function" then return self.measure or {} end
  return self:call("measure", self.measure, cell, as_measures)
end

local function as_loss(v)
  local loss, reason = kinds.loss(v)
  if not loss then schema.fail("experiment", "loss: %s", reason) end
  return loss
end

--- What is made small on the cell's task. Raises when it compares with what the task does not have.
function Experiment:loss_of(cell)
  local task, loss = self:task_of(cell), self.loss
  if type(loss) == "function" then loss = self:call("loss", loss, cell, as_loss) end
  loss = loss or losses.default(task)
  local problem = loss:problem(task)
  if problem then schema.fail("experiment", "loss: %s", problem) end
  return loss
end

--- Canonical IR text of the cell's model.
function Experiment:ir(cell)
  local task = self:task_of(cell)
  local loss = self:loss_of(cell)
  return self:call("model " .. task:canonical() .. tostring(loss), self.model, cell, function(stages)
    return emit.model(stages, task, { loss = loss, classes = task.classes, outputs = task.outputs, dtype = self.dtype })
  end)
end

--- Compiles the model of every cell; an error is reported once, with the first cell that has it. True when there is
-- none.
function Experiment:check_models()
  local told, good = {}, true
  for _, cell in ipairs(self:cells()) do
    local ok, problem = pcall(self.ir, self, cell)
    problem = tostring(problem)
    if problem == "interrupted" then error(problem, 0) end
    good = good and ok
    if not ok and problem ~= kinds.stop and not told[problem] then
      told[problem] = true
      local place = cell:text { seed = true }
      schema.report(place ~= "" and string.format("%s (cell %s)", problem, place) or problem)
    end
    if self.exhausted then break end
  end
  return good
end

--- Checks everything that a constructor cannot see alone, and reports what is wrong.
function Experiment:check() consistency.check(self) end

-- ---- changes from the command line (ph.override) ----

--- Restricts or replaces an axis.
function Experiment:set_axis(key, values)
  self.axes, self.cell_list = grid.restrict(self.axes, key, values), nil
  self.restricted = true
end

--- Changes keys of the protocol, of the selection, or of every task that has them. what: "task", "train" or "select".
function Experiment:change(what, keys)
  self.memo = {}
  if what == "task" and not self.task then
    self.task_changes = keys
  elseif what == "select" then
    for k, v in pairs(self.select or {}) do keys[k] = keys[k] or v end
    self.select = schema.check("select", keys)
  else
    self[what] = self[what]:with(keys)
  end
end

return experiment
