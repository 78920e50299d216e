--- Every committed registration and ledger is a golden file: today's program makes the same plans, texts and run hashes
-- from the committed specs, to the byte. A later change of the language cannot break a lock unnoticed.
local job = require "ph.run.job"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local native = require "ph.native"
local registration = require "ph.registry.registration"
local runfile = require "ph.run.runfile"
local spec = require "ph.spec"

local root <const> = native.lua_dir .. "/.."

--- Run hashes of specs whose results are not in the repository.
local golden <const> = {
  quick = {
    ["family=ph depth=30 seed=0"] = "6d8adafb360652da", ["family=resnet depth=30 seed=0"] = "9deec748af881491",
  },
}

local function dir_of(name) return root .. "/experiments/" .. name end

local function load(name)
  local e, problems = spec.load(root .. "/specs/" .. name .. ".lua")
  return assert(e, problems and problems[1].text)
end

--- Names of the committed specs that have `file` among their results.
local function with_file(file)
  local names = {}
  for _, entry in ipairs(native.list_dir(root .. "/specs")) do
    local name = entry:match "^(.*)%.lua$"
    if name and not golden[name] and native.stat(dir_of(name) .. "/" .. file) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- The jobs of an experiment by label, under a lock if there is one; nil when data of its tasks are not here.
local function jobs_of(e, lock)
  local out = {}
  e.lock = lock
  for _, cell in ipairs(job.cells(e)) do
    for _, one in ipairs(cell.jobs) do
      if one.problem then return nil, one.problem end
      out[one.label] = one
    end
  end
  return out
end

describe("a committed registration", function()
  for _, name in ipairs(with_file "registration.json") do
    it("of " .. name .. " is what today's program makes of its spec, to the byte", function()
      local text = assert(native.read_file(registration.path(dir_of(name))))
      local locked = json.decode(text)
      local now = registration.of(load(name))
      assert.equal(json.encode(locked.plan), json.encode(now.plan))
      assert.equal(locked.lock, now.lock)
      for _, key in ipairs { "source", "time", "version" } do now[key] = locked[key] end
      assert.equal(text, json.encode(now) .. "\n")
    end)
  end

  it("is found for every experiment that was locked", function()
    assert.same({ "e6", "e6b" }, with_file "registration.json")
  end)
end)

--- Labels and hashes of the runs of a committed ledger.
local function runs_of_ledger(name)
  local runs = {}
  for _, record in ipairs(assert(ledger.read(dir_of(name))).runs) do runs[record.label] = record.run end
  return runs
end

local function hashes(jobs)
  local runs = {}
  for label, one in pairs(jobs) do runs[label] = one.run end
  return runs
end

describe("the runs of a committed ledger", function()
  for _, name in ipairs(with_file "ledger.jsonl") do
    it("of " .. name .. " are those that its spec names today", function()
      local e = load(name)
      if e.runs then return assert.same(runs_of_ledger(name), e:runs()) end
      local locked = native.stat(registration.path(dir_of(name))) and registration.read(dir_of(name)).lock
      local jobs, problem = jobs_of(e, locked)
      if not jobs then return pending(problem) end
      assert.same(runs_of_ledger(name), hashes(jobs))
    end)
  end

  it("are found for every experiment with results", function()
    assert.same({ "digits", "e6", "e6b", "laws" }, with_file "ledger.jsonl")
  end)

  for name, runs in pairs(golden) do
    it("of " .. name .. ", which are not kept, have the hashes they had", function()
      assert.same(runs, hashes(jobs_of(load(name))))
    end)
  end
end)

describe("the texts in a committed run file", function()
  it("are those that the spec gives today", function()
    local jobs, problem = jobs_of(load "digits")
    if not jobs then return pending(problem) end
    for _, one in pairs(jobs) do
      local run = assert(runfile.open(dir_of "digits" .. "/runs/" .. one.run .. ".h5"))
      local file <close> = run.file
      local texts = {
        ["/config/run"] = one.text, ["/config/task"] = one.task_text, ["/config/train"] = one.train_text,
        ["/config/measure"] = one.measure_text, ["/ir"] = one.ir,
      }
      for path, text in pairs(texts) do assert.equal(text, file:text(path)) end
    end
  end)
end)
