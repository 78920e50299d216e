--- Tasks: declared data with a train / val / test split.
--
-- A task knows its shape without touching data: `positions` and `features` of an input, and what is wanted for it,
-- one of `classes` or a target of `outputs` numbers. `load(seed)` gives { train = { x, y }, val =, test =, the shape,
-- digest }: x f32 (n, positions * features), y i32 labels from 0 or f32 targets (n, outputs). `canonical()` is its
-- text, `digest()` the SHA-256 of what makes its data (parameters of a generator, contents of files); the data carry
-- the one of what they were made from.

local canon = require "ph.util.canon"
local edition = require "ph.schema.edition"
local meaning = require "ph.schema.meaning"
local native = require "ph.native"
local schema = require "ph.schema"

local task = {}

local Task = { __name = "ph.task" }
Task.__index = Task
Task.__tostring = function(self) return self:canonical() end

--- Makes a constructor of tasks. block: registration; source: { shape(v) -> { positions, features, classes or
-- outputs }; load(v, seed) -> splits; digest(v, anew) or nil for a generator }.
function task.constructor(block, source)
  block.role, block.section = "task", "tasks"
  local function build(v)
    if source.check then source.check(v) end
    local self = source.shape(v)
    self.kind, self.values, self.edition, self.source = block.name, v, edition.current(), source
    return setmetatable(self, Task)
  end
  local make = schema.constructor(block, build)
  source.rebuild = make
  return make
end

--- The same task with some keys changed (overrides of the command line).
function Task:with(changes)
  local v = {}
  for k, x in pairs(self.values) do v[k] = x end
  for k, x in pairs(changes) do v[k] = x end
  return edition.under(self.edition, self.source.rebuild, v)
end

function Task:has_key(key) return schema.get(self.kind).by_name[key] ~= nil end

--- Its values as texts and plans name them: without what does not change the data (the directory of files).
function Task:meaning() return meaning.of(self.kind, self.values) end

function Task:canonical() return canon.call(self.kind, self:meaning()) end

--- SHA-256 of what makes the data. anew: without what is remembered of files that look unchanged. nil and a message
-- when files are missing or cannot be read.
function Task:digest(anew)
  if self.source.digest then return self.source.digest(self.values, anew) end
  return native.sha256(self:canonical())
end

--- The data for a run's seed. Raises with one line when it cannot be made or is not finite.
function Task:load(seed)
  local data = self.source.load(self.values, self.values.seed or seed)
  for _, name in ipairs { "train", "val", "test" } do
    local bad = data[name].x:first_nonfinite()
    if bad then error(string.format("%s: number %d of the %s data is not finite", self.kind, bad, name), 0) end
  end
  for _, k in ipairs { "classes", "outputs", "positions", "features" } do data[k] = self[k] end
  data.digest = self:digest(true)
  return data
end

local max_samples <const> = 10000000

local function count_key(name, required, doc)
  return { name, kind = "integer", min = 1, max = max_samples, required = required, doc = doc }
end

schema.define {
  name = "split", section = "tasks", doc = "How many samples go where.", looks = "{ train = N, val = N }",
  keys = {
    count_key("train", true, "samples to train on"),
    count_key("val", true, "samples for early stopping and selection"),
    count_key("test", false, "samples kept for the end (generated tasks)"),
  },
}

--- The keys every task has.
function task.split_key(doc) return { "split", kind = "block", block = "split", required = true, doc = doc } end
function task.seed_key()
  return { "seed", kind = "integer", min = 0, doc = "seed of the data; default: the run's seed" }
end

--- The rows of x and y as splits, those of training first.
function task.splits(x, y, split)
  local a, b = split.train, split.train + split.val
  local function part(first, last) return { x = x:slice(1, first, last), y = y:slice(1, first, last) } end
  return { train = part(1, a), val = part(a + 1, b), test = part(b + 1, b + split.test) }
end

--- Refuses a split without the samples kept for the end, which a generated task has to be told.
function task.need_test(name, v)
  if not v.split.test then schema.fail(name, "split needs test = N: the samples kept for the end") end
end

return task
