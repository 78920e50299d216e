--- The language grows without changing what was written before: a key may be added, a default may get better under a
-- new edition, a measure may get a new version. Texts, plans and hashes of older specs stay; a changed value is found.
local changes = require "ph.run.changes"
local job = require "ph.run.job"
local native = require "ph.native"
local ph = require "ph"
local registration = require "ph.registry.registration"
local run = require "ph.verb.run"
local schema = require "ph.schema"
local spec = require "ph.spec"

local root <const> = native.lua_dir .. "/.."

--- f() while the constructors have keys more: { adam = { key, ... }, ... }.
local function with_keys(added, f)
  for name, keys in pairs(added) do
    for _, key in ipairs(keys) do schema.add(name, key) end
  end
  local ok, problem = pcall(f)
  for name, keys in pairs(added) do
    local block = schema.get(name)
    for i = #keys, 1, -1 do
      block.by_name[keys[i].name] = nil
      table.remove(block.keys)
    end
  end
  if not ok then error(problem, 0) end
end

--- f() while a field of a registered key, or of a constructor itself (key = nil), has another value.
local function with_field(name, key, field, value, f)
  local place = key and schema.get(name).by_name[key] or schema.get(name)
  local before = place[field]
  place[field] = value
  local ok, problem = pcall(f)
  place[field] = before
  if not ok then error(problem, 0) end
end

local function text_of(name) return assert(native.read_file(root .. "/specs/" .. name .. ".lua")) end

local function load(text, overrides)
  local e, problems = spec.load_text(text, "x.lua", overrides)
  return e or error(problems[1].text, 0)
end

local function replaced(text, old, new)
  local from, to = text:find(old, 1, true)
  assert(from, old)
  return text:sub(1, from - 1) .. new .. text:sub(to + 1)
end

local function first_job(e) return job.cells(e)[1].jobs[1] end

--- What `phrun run -n` prints for a committed spec.
local function dry_run(name)
  local written, write = {}, native.write
  native.write = function(_, text) written[#written + 1] = text end
  local file, out = root .. "/specs/" .. name .. ".lua", root .. "/experiments/" .. name
  local ok, problem = pcall(run.main, { spec = file, overrides = {}, dry_run = true, out = out })
  native.write = write
  if not ok then error(problem, 0) end
  return table.concat(written)
end

local function number(name, default, more)
  local key = { name, kind = "number", default = default, since = 2, doc = "a key of a later version" }
  for k, v in pairs(more or {}) do key[k] = v end
  return key
end

--- New keys in every kind of constructor that a text or a plan names.
local function new_keys()
  return {
    adam = { number("jitter", 0), number("pause", 3, { affects = false }) },
    ["task.circles"] = { number("tilt", 0) }, ["task.spirals"] = { number("tilt", 0) },
    ["task.images"] = { number("tilt", 0) }, split = { number("spare", 0) }, group = { number("bend", 0) },
    select = { number("margin", 0) }, growth = { number("from", 0) },
    experiment = { number("penalty", 0), number("claim", 0, { affects = "plan" }) },
    laws_experiment = { number("penalty", 0) }, ["law.volume"] = { number("tilt", 0) },
    rank = { number("slack", 0) }, damping = { number("leak", 0) }, stream = { number("warp", 0) },
  }
end

describe("a key that is added", function()
  for _, name in ipairs { "digits", "e6", "e6b", "laws", "quick" } do
    it("leaves what `run -n` says of " .. name .. " as it is", function()
      local before = dry_run(name)
      with_keys(new_keys(), function() assert.equal(before, dry_run(name)) end)
      assert.matches("%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x", before)
    end)
  end

  local e6 <const> = text_of "e6"

  local function problem_of(text)
    local ok, fault = pcall(registration.prepare, load(text), root .. "/experiments/e6")
    return not ok and fault
  end

  it("is found in a locked spec when its value is another one, with both values", function()
    with_keys(new_keys(), function()
      for _, case in ipairs {
        { "batch = 128", "batch = 128, jitter = 0.5", "train.jitter: locked 0, now 0.5" },
        { "spread = 0.2", "spread = 0.2, tilt = 1", "tasks.task.circles.tilt: locked 0, now 1" },
        { "test = 1200", "test = 1200, spare = 7", "tasks.task.circles.split.spare: locked 0, now 7" },
        { 'by = "val.accuracy"', 'margin = 0.1', "select.margin: locked 0, now 0.1" },
        { "ph.growth()", "ph.growth { from = 3 }", 'now ["gradient_envelope","growth{from=3}","port_budget"]' },
        { 'name    = "e6"', 'name = "e6", penalty = 2', "penalty: locked 0, now 2" },
        { 'name    = "e6"', 'name = "e6", claim = 2', "claim: locked 0, now 2" },
      } do
        local problem = problem_of(replaced(e6, case[1], case[2]))
        assert.is_truthy(problem, case[2])
        assert.equal(3, problem.code)
        assert.matches(case[3], problem.message or tostring(problem), 1, true)
      end
    end)
  end)

  it("is found in a list of tables too, and not written there at its default", function()
    local with = replaced(text_of "quick", "lr = 1e-4", "lr = 1e-4, groups = { { 'A', lr = 0.5 } }")
    local before = first_job(load(with))
    with_keys(new_keys(), function()
      assert.equal(before.run, first_job(load(with)).run)
      local now = first_job(load(replaced(with, "lr = 0.5", "lr = 0.5, bend = 1")))
      local reason <const> = 'changed: train groups: [{"frozen":false,"lr":0.5,"match":"A"}] -> [{"bend":1,'
      assert.matches(reason, changes.between(now.parts, before.parts), 1, true)
      local locked = registration.of(load(with)).plan
      local other = registration.of(load(replaced(with, "lr = 0.5", "lr = 0.5, bend = 1"))).plan
      assert.equal("  train.groups.1.bend: locked 0, now 1", registration.lines(registration.compare(locked, other))[1])
    end)
  end)

  it("says nothing when its default is written out, or when it affects nothing", function()
    with_keys(new_keys(), function()
      local text = replaced(e6, "batch = 128", "batch = 128, jitter = 0, pause = 9")
      assert.is_false(problem_of(replaced(text, "spread = 0.2", "spread = 0.2, tilt = 0.0")))
    end)
  end)

  it("gives runs of another value another hash, and the reason with both values", function()
    local quick = text_of "quick"
    local before = first_job(load(quick))
    with_keys(new_keys(), function()
      for _, case in ipairs {
        { "lr = 1e-4", "lr = 1e-4, jitter = 0.5", "changed: train jitter: 0 -> 0.5" },
        { "spread = 0.2", "spread = 0.2, tilt = 1", "changed: task tilt: 0 -> 1" },
        { 'name    = "quick"', 'name = "quick", penalty = 2', "changed: experiment penalty: 0 -> 2" },
      } do
        local now = first_job(load(replaced(quick, case[1], case[2])))
        assert.are_not.equal(before.run, now.run)
        assert.equal(case[3], changes.between(now.parts, before.parts))
      end
      assert.equal(before.run, first_job(load(replaced(quick, 'name    = "quick"', 'name = "quick", claim = 2'))).run)
    end)
  end)

  it("cannot be required, nor be newer than the language", function()
    for _, more in ipairs { { required = true }, { since = schema.version + 1 } } do
      assert.has_error(function() schema.add("adam", number("x", nil, more)) end)
    end
  end)
end)

local small <const> = [[
local ph = require "ph"
local head = ph.affine(4)
return ph.experiment {
  name = "t",
  task = ph.task.circles { width = 4, split = { train = 8, val = 4, test = 4 } },
  model = function(cell)
    local function block(z) return ph.damping { step = 1 } * z + ph.linear(4)(ph.tanh(z)) end
    return { ph.stream { depth = 2, block = block }, head }
  end,
  train = ph.adam { lr = 0.1, epochs = 2 },
}
]]
local second <const> = replaced(small, 'name = "t",', 'name = "t", edition = 2,')

describe("an edition", function()
  it("changes a default where a spec asks for it, and nothing anywhere else", function()
    local before = first_job(load(small))
    with_field("adam", "batch", "editions", { [2] = 64 }, function()
      local old, new = first_job(load(small)), first_job(load(second))
      assert.equal(before.text, old.text)
      assert.equal(128, load(small).train.batch)
      assert.equal(64, load(second).train.batch)
      assert.are_not.equal(old.run, new.run)
      assert.matches("\nexperiment{edition=2}\n", new.text, 1, true)
      assert.equal("changed: train batch: 128 -> 64, experiment edition: 1 -> 2", changes.between(new.parts, old.parts))
      assert.is_nil(registration.of(load(small)).plan.edition)
      assert.equal(2, registration.of(load(second)).plan.edition)
    end)
  end)

  it("reaches every constructor, wherever it is called", function()
    with_field("damping", "budget", "editions", { [2] = 0.5 }, function()
      with_field("task.circles", "noise", "editions", { [2] = 0.75 }, function()
        local old, new = load(small), load(second)
        assert.matches(" guard step=1 budget=1 ", old:ir(old:cells()[1]), 1, true)
        assert.matches(" guard step=1 budget=0.5 ", new:ir(new:cells()[1]), 1, true)
        assert.equal(0.25, old.task.values.noise)
        assert.equal(0.75, new.task.values.noise)
      end)
    end)
  end)

  it("gives a newer key its default by name, so that a text without the key means the first one", function()
    with_keys({ adam = { number("jitter", 0, { editions = { [2] = 0.5 } }) } }, function()
      assert.is_nil(load(small).train:canonical():find "jitter")
      assert.matches("jitter=0.5", load(second).train:canonical(), 1, true)
      local back = load(replaced(second, "epochs = 2", "epochs = 2, jitter = 0"))
      assert.equal(load(small).train:canonical(), back.train:canonical())
    end)
  end)

  it("holds for changes of the command line and for candidates", function()
    with_field("adam", "batch", "editions", { [2] = 64 }, function()
      local text = replaced(second, "ph.adam { lr = 0.1,", "ph.adam {")
      local e = load(replaced(text, "  train =", "  select = { lr = { 0.1 } },\n  train ="), { "train.epochs=3" })
      assert.equal(64, first_job(e).protocol.batch)
    end)
  end)

  it("is known before the defaults of an earlier one make sense", function()
    local text = replaced(second, "epochs = 2", "epochs = 2, lr_min = 0.01")
    assert.has_error(function() load(text) end)
    with_field("adam", "schedule", "editions", { [2] = "cosine" }, function()
      assert.equal("cosine", load(text).train.schedule)
      assert.has_error(function() load(replaced(small, "epochs = 2", "epochs = 2, lr_min = 0.01")) end)
    end)
  end)

  it("exists when a key has a default in it", function()
    local ok, problem = pcall(load, second)
    assert.is_false(ok)
    assert.matches("x.lua:4: experiment: 'edition' must be at most 1, got 2", problem, 1, true)
    with_field("adam", "batch", "editions", { [2] = 64 }, function()
      assert.has_error(function() ph.laws_experiment { name = "t", laws = { ph.law.volume {} }, edition = 2 } end,
        "laws_experiment: 'edition' must be 1 here, got 2; a spec in a file may name another")
    end)
  end)
end)

describe("a measure of a new version", function()
  local with <const> = replaced(small, "  train =", "  measure = { ph.growth(), ph.port_budget() },\n  train =")

  it("is part of text, record and plan, and the reason to measure again", function()
    local before = first_job(load(with))
    assert.equal("growth port_budget", before.measure_text)
    with_field("growth", nil, "version", 2, function()
      local now = first_job(load(with))
      assert.equal("growth@2 port_budget", now.measure_text)
      assert.equal("growth@2 port_budget", now.parts.measure)
      assert.same({ "growth", "port_budget" }, now.measures)
      assert.are_not.equal(before.run, now.run)
      local reason <const> = "changed: measure growth has version 2, the run was measured with version 1"
      assert.equal(reason, changes.between(now.parts, before.parts))
      assert.same({ "growth@2", "port_budget" }, registration.of(load(with)).plan.measure)
    end)
    assert.equal(before.run, first_job(load(with)).run)
  end)
end)
