local native = require "ph.native"
local ledger = require "ph.run.ledger"
local json = require "ph.util.json"

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  assert(native.mkdir(path))
  return path
end

local function filled(n)
  local dir = temp_dir()
  local book = assert(ledger.open(dir))
  for i = 1, n do
    assert(book:append {
      event = "done", run = "r" .. i, record = { run = "r" .. i, status = "done", metrics = { ["val.loss"] = i / 3 } },
    })
  end
  return dir, book
end

local function text_of(dir)
  return assert(native.read_file(ledger.path(dir)))
end

describe("ph.json", function()
  it("sorts keys and prints integral numbers as integers", function()
    assert.equal('{"a":1,"b":[1,0.1,"x\\n"],"c":{}}', json.encode { c = {}, b = { 1.0, 0.1, "x\n" }, a = 1 })
  end)

  it("gives every float back to the bit", function()
    for _, v in ipairs { 1 / 3, 0.1, 5e-324, 1.7976931348623157e308, 2 ^ 53 + 2.0, -1e-7, 123456789.123456789 } do
      assert.equal(v, json.decode(json.encode { v })[1])
    end
    assert.equal(-math.huge, 1 / json.decode(json.encode { -0.0 })[1])
  end)

  it("keeps numbers that are not finite", function()
    local t = json.decode(json.encode { a = 0 / 0, b = { math.huge, -math.huge } })
    assert.is_true(t.a ~= t.a)
    assert.same({ math.huge, -math.huge }, { t.b[1], t.b[2] })
  end)

  it("does not take a text that looks like one for a number", function()
    local s = '{"number":"nan"}'
    assert.equal(s, json.decode(json.encode { s })[1])
  end)

  it("writes its own output again after reading it", function()
    local s = json.encode { list = json.list {}, map = {}, deep = { { 1, { x = true } } } }
    assert.equal(s, json.encode(json.decode(s)))
  end)

  it("refuses trailing text and functions", function()
    assert.is_nil((json.decode '{"a":1} x'))
    assert.is_false(pcall(json.encode, { print }))
  end)
end)

describe("ph.ledger", function()
  it("reads back what was appended, in order, with a whole chain", function()
    local state = ledger.read((filled(3)))
    assert.is_true(state.chain_ok)
    assert.equal(3, #state.runs)
    assert.equal("r2", state.runs[2].run)
    assert.equal(2 / 3, state.runs[2].metrics["val.loss"])
  end)

  it("is empty for a directory without one", function()
    local state = ledger.read(temp_dir())
    assert.is_true(state.chain_ok)
    assert.equal(0, #state.events)
  end)

  it("goes on where another writer stopped", function()
    local dir = filled(2)
    local book = assert(ledger.open(dir))
    assert(book:append { event = "failed", run = "r1", record = { run = "r1", status = "failed" } })
    local state = ledger.read(dir)
    assert.is_true(state.chain_ok)
    assert.same({ 3, 2, "failed" }, { #state.events, #state.runs, state.runs[1].status })
  end)

  it("leaves out a line that a crash cut short, and the next writer cuts it off and says so", function()
    local dir = filled(3)
    local text = text_of(dir)
    for _, cut in ipairs { 3, 30, 150 } do
      assert(native.write_file(ledger.path(dir), text:sub(1, -cut)))
      local state = ledger.read(dir)
      assert.is_true(state.chain_ok)
      assert.equal(2, #state.events)
      assert.is_true(state.torn > 0)
    end
    assert(ledger.open(dir))
    local state = ledger.read(dir)
    assert.same({ true, 0, 3, "cut" }, { state.chain_ok, state.torn, #state.events, state.events[3].event })
  end)

  it("keeps a whole last line whose line end is missing", function()
    local dir = filled(2)
    assert(native.write_file(ledger.path(dir), text_of(dir):sub(1, -2)))
    local book = assert(ledger.open(dir))
    assert(book:append { event = "resumed" })
    local state = ledger.read(dir)
    assert.same({ true, 3 }, { state.chain_ok, #state.events })
  end)

  it("names the line that was changed, removed or swapped", function()
    local dir = filled(4)
    local text = text_of(dir)
    local lines = {}
    for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
    local function problem_of(...)
      assert(native.write_file(ledger.path(dir), table.concat({ ... }, "\n") .. "\n"))
      local state = ledger.read(dir)
      assert.is_false(state.chain_ok)
      return state.problem
    end
    assert.matches("line 2 was changed", problem_of(lines[1], (lines[2]:gsub("r2", "r9", 1)), lines[3]))
    assert.matches("line 2 does not follow", problem_of(lines[1], lines[3], lines[4]))
    assert.matches("line 1 does not follow", problem_of(lines[2], lines[1]))
    assert.matches("line 3 is not a ledger line", problem_of(lines[1], lines[2], "{}"))
    local _, _, why = ledger.open(dir)
    assert.equal("tampered", why)
  end)
end)

describe("reading JSON of others", function()
  it("takes blanks, escapes and unicode", function()
    assert.same({ a = { 1, -2.5, 1e3, true, false, "" }, ["k\n"] = 'q"\\/\b' },
      json.decode ' { "a" : [ 1, -2.5,1E3 , true,false,"" ] ,\n"k\\n":"q\\"\\\\\\/\\b"}\r\n ')
    assert.equal("é€😀\\u0041", json.decode '"\\u00e9\\u20ac\\uD83D\\uDE00\\\\u0041"')
    assert.equal("integer", math.type(json.decode "9007199254740993"))
    assert.same({}, json.decode "[]")
    assert.equal("[]", json.encode(json.decode " [ ] "))
    assert.is_nil((json.decode "null"))
  end)

  it("says where it is broken", function()
    for text, what in pairs {
      ["{"] = "a key expected, at byte 2", ["[1"] = "',' or ']' expected, at byte 3", ["[1 2]"] = "byte 4",
      ['{"a" 1}'] = "':' expected, at byte 6", ['"abc'] = "without end",
      ["tru"] = "a value expected", [""] = "a value expected, at byte 1",
      ["1 x"] = "continues after the value, at byte 3", ["-"] = "a value expected", ["[1,]"] = "a value expected",
      ['"\\q"'] = "unknown escape", ['"\\ud800"'] = "surrogate", ["1e"] = "a number expected",
      ['{"a":1,}'] = "a key expected", ['"a\\"'] = "without end",
    } do
      local v, problem = json.decode(text)
      assert.is_nil(v, text)
      assert.is_truthy(problem:find(what, 1, true), text .. ": " .. problem)
    end
    assert.matches("too deep", select(2, json.decode(("["):rep(100000))))
  end)
end)

describe("a ledger of 10,000 runs", function()
  it("is read and checked within two seconds", function()
    local lines, prev, n = {}, "", 0
    local function put(event)
      n = n + 1
      lines[n], prev = ledger.line(event, n, prev, "2026-01-01T00:00:00Z")
    end
    for i = 1, 10000 do
      local run = string.format("%016x", i)
      put { event = "started", run = run, label = "family=ph depth=30 seed=" .. i }
      put { event = "done", run = run, file = { path = "runs/" .. run .. ".h5", sha256 = prev }, record = {
        run = run, label = "family=ph depth=30 seed=" .. i, status = "done", chosen = true,
        cell = { family = "ph", depth = 30, seed = i },
        metrics = {
          ["val.accuracy"] = i / 1e4, ["test.accuracy"] = i / 3e4, growth = i / 7, ["val.loss"] = 1 / i,
          ["grad.first"] = i / 3, ["port.ratio"] = 0.5,
        } } }
    end
    local text = table.concat(lines, "\n") .. "\n"
    local before = os.clock()
    local state = ledger.parse(text)
    assert.equal(20000, #state.events)
    assert.is_true(os.clock() - before < 2, "seconds of processor time: " .. os.clock() - before)
  end)
end)
