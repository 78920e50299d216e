local audit = require "ph.registry.audit"
local json = require "ph.util.json"
local ledger = require "ph.run.ledger"
local native = require "ph.native"
local registration = require "ph.registry.registration"
local results = require "ph.run.results"
local verdict = require "ph.registry.verdict"
local words = require("ph.rules").words

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  for _, p in ipairs { path, path .. "/runs" } do assert(native.mkdir(p)) end
  return path
end

-- A plan of n cells with two candidates each, by hand: the audit needs no experiment.
local function plan_of(n, rules)
  local cells = {}
  for i = 1, n do
    local name = string.format("family=%s seed=%d", i % 2 == 0 and "a" or "b", i)
    local runs = {}
    for k, lr in ipairs { 0.001, 0.003 } do
      runs[k] = { name = name .. " lr=" .. json.number(lr), select = { lr = lr } }
    end
    cells[i] = { name = name, values = { family = i % 2 == 0 and "a" or "b", seed = i }, runs = runs }
  end
  return json.decode(json.encode {
    name = "made", cells = cells, rules = rules or { words.rule { "low", { words.mean { "growth" }, "<=", 2 } } },
    categories = json.list {}, predictions = json.list {}, gates = json.list {},
    select = { by = "val.accuracy", candidates = { lr = { 0.001, 0.003 } } }, grid = {}, seeds = "cell",
  })
end

local function registered(plan)
  local runs, id = {}, 0
  for _, cell in ipairs(plan.cells) do
    for _, run in ipairs(cell.runs) do
      id = id + 1
      runs[run.name] = string.format("%016x", id)
    end
  end
  return { format = "phrun registration 1", lock = registration.hash(plan), plan = plan, runs = runs, time = "then" }
end

local function record(reg, cell, k, value, growth)
  local run = cell.runs[k]
  return {
    run = reg.runs[run.name], label = run.name, cell = cell.values, select = run.select, status = "done",
    lock = reg.lock, chosen = growth ~= nil, metrics = { ["val.accuracy"] = value, growth = growth },
    test_opened = growth and 1 or 0, seconds = 1,
  }
end

local function put_file(path, text)
  local f <close> = assert(io.open(path, "w"))
  f:write(text)
end

-- A finished ledger; change(event, i, k) may edit or drop (false) a closing event before it is written.
local function finished(reg, change)
  local dir = temp_dir()
  local lines, prev, n = {}, "", 0
  local function put(event)
    n = n + 1
    local line, hash = ledger.line(event, n, prev, "then")
    lines[n], prev = line, hash
  end
  put { event = "locked", lock = reg.lock, plan = reg.plan }
  for i, cell in ipairs(reg.plan.cells) do
    for k = 1, 2 do
      local r = record(reg, cell, k, k == 2 and 0.9 or 0.8, k == 2 and 1 + i / 1000 or nil)
      local path = results.run_path(dir, r.run)
      put_file(path, r.run) -- not fsynced: there are thousands in one trial
      local event = { event = "done", run = r.run, record = r, file = { path = path, sha256 = native.sha256(r.run) } }
      if not change or change(event, i, k) ~= false then put(event) end
    end
  end
  assert(native.write_file(ledger.path(dir), table.concat(lines, "\n") .. "\n"))
  assert(native.write_file(registration.path(dir), json.encode(reg) .. "\n"))
  return dir
end

local function remove(dir)
  os.execute("rm -r '" .. dir .. "'")
end

local function judge(n, change, rules)
  local reg = registered(plan_of(n, rules))
  local dir = finished(reg, change)
  local outcome = verdict.of(dir, reg)
  remove(dir)
  return outcome, verdict.code(outcome)
end

describe("the audit of a ledger", function()
  it("counts every planned run, its files and its openings of test data", function()
    local out, code = judge(6)
    assert.same({ 12, 12, 1, 0 }, { out.audit.planned, out.audit.present, out.audit.opened_most, #out.audit.tampered })
    assert.equal(0, code)
  end)

  it("names the one missing run of sixty and judges nothing", function()
    local out, code = judge(30, function(_, i, k) return not (i == 17 and k == 1) end)
    assert.same({ 60, 59 }, { out.audit.planned, out.audit.present })
    assert.same({ "no run at family=b seed=17 lr=0.001" }, out.audit.missing)
    assert.is_nil(out.judged.truth)
    assert.equal(11, code)
    assert.matches("59 of 60 runs", table.concat(verdict.lines(out), "\n"))
  end)

  it("says that a failed candidate failed, and why", function()
    local out = judge(2, function(e, i, k)
      if i == 1 and k == 1 then
        e.event, e.record.status, e.record.reason, e.file = "failed", "failed", "no such file", nil
      end
    end)
    assert.same({ "family=b seed=1 lr=0.001 failed: no such file" }, out.audit.missing)
  end)

  it("takes a diverged candidate for a result and chooses the other", function()
    local out, code = judge(2, function(e, i, k)
      if i == 1 and k == 1 then e.event, e.record.status, e.record.metrics = "diverged", "diverged", {} end
    end)
    assert.equal(0, code)
    assert.equal("family=b seed=1 lr=0.003", out.audit.table.cells[1].chosen.label)
  end)

  it("chooses on validation by itself: first of equals, never a value that is not a number", function()
    local out = judge(3, function(e, i, k)
      if i == 1 then e.record.metrics["val.accuracy"] = 0.5 end
      if i == 2 and k == 2 then e.record.metrics["val.accuracy"] = 0 / 0 end
    end)
    local cells = out.audit.table.cells
    assert.same({ 0.001, 0.001, 0.003 },
      { cells[1].chosen.select.lr, cells[2].chosen.select.lr, cells[3].chosen.select.lr })
  end)

  it("finds a test set that was opened twice", function()
    local out, code = judge(2, function(e, i, k) if i == 2 and k == 2 then e.record.test_opened = 2 end end)
    assert.equal(11, code)
    assert.same({ "family=a seed=2 lr=0.003 opened its test set 2 times" }, out.audit.guard)
  end)

  it("finds runs of another lock, of no lock, and records of another cell", function()
    for _, case in ipairs {
      { function(e) e.record.lock = ("0"):rep(64) end, "is of another lock %(000000000000%)" },
      { function(e) e.record.lock = nil end, "is of no lock" },
      { function(e) e.record.label = "family=z" end, "its record is that of family=z" },
      { function(e) e.file.sha256 = ("0"):rep(64) end, "was changed since" },
      { function(e) e.file = nil end, "names no file" },
    } do
      local out, code = judge(3, function(e, i, k) if i == 2 and k == 2 then case[1](e) end end)
      assert.equal(3, code)
      assert.is_nil(out.judged)
      assert.matches(case[2], table.concat(out.audit.tampered, "\n"))
    end
  end)

  it("finds a choice that validation does not support", function()
    local out = judge(2, nil)
    local reg = out.reg
    local dir = finished(reg)
    local book = assert(ledger.open(dir))
    local runs = reg.plan.cells[1].runs
    assert(book:append {
      event = "selected", run = reg.runs[runs[1].name], candidates = { reg.runs[runs[1].name], reg.runs[runs[2].name] },
    })
    local again = verdict.of(dir, reg)
    remove(dir)
    assert.equal(3, verdict.code(again))
    assert.matches("is marked as chosen, but by val.accuracy the choice is", table.concat(again.audit.tampered, "\n"))
  end)

  it("names field and both values of an edited registration", function()
    local reg = registered(plan_of(2))
    local dir = finished(reg)
    local loose = json.decode(json.encode(reg))
    loose.plan.rules[1].when.right = 3
    loose.lock = registration.hash(loose.plan)
    local lines = table.concat(audit.run(dir, loose).tampered, "\n")
    remove(dir)
    assert.matches("rules.low.when.right: locked 2, now 3", lines, 1, true)
    assert.matches("the ledger was locked under", lines, 1, true)
  end)

  it("does not count what ended before the lock", function()
    local reg = registered(plan_of(2))
    local dir = finished(reg)
    local book = assert(ledger.open(dir))
    assert(book:append { event = "locked", lock = reg.lock, plan = reg.plan })
    local out = verdict.of(dir, reg)
    remove(dir)
    assert.equal(0, out.audit.present)
    assert.same({ "4 runs are older than the lock and do not count" }, out.audit.notes)
    assert.equal(11, verdict.code(out))
  end)
end)

describe("a verdict", function()
  it("is 0 when the rules hold, 10 when they say no, 11 when they cannot be evaluated", function()
    local function code_of(bound, metric)
      local _, code = judge(2, nil, { words.rule { "r", { words.mean { metric or "growth" }, "<=", bound } } })
      return code
    end
    assert.same({ 0, 10, 11 }, { code_of(2), code_of(1), code_of(2, "absent") })
  end)

  it("says first that a ledger was recovered, permanently", function()
    local out = judge(2, function(e) e.event, e.file = "recovered", nil end)
    assert.matches("^RECOVERED LEDGER", verdict.lines(out)[1])
  end)

  it("over four thousand runs is a matter of seconds of processor time", function()
    local reg = registered(plan_of(2000))
    local dir = finished(reg)
    local began = os.clock()
    local out = verdict.of(dir, reg)
    local took = os.clock() - began
    remove(dir)
    assert.equal(4000, out.audit.present)
    assert.is_true(took < 3, string.format("took %.1f s of processor time", took))
  end)
end)
