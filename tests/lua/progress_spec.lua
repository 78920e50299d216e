local native = require "ph.native"
local Progress = require "ph.run.progress"
local tables = require "ph.util.tables"

--- Runs fn with parts of native replaced; returns what was written to standard error.
local function seen(replace, fn)
  local kept, out = {}, {}
  replace.write = function(_, text) out[#out + 1] = text return true end
  for k, v in pairs(replace) do kept[k], native[k] = native[k], v end
  local ok, problem = pcall(fn)
  for k, v in pairs(kept) do native[k] = v end
  assert(ok, problem)
  return table.concat(out)
end

local function world(tty, env)
  local clock = 0
  return {
    now = function() clock = clock + 1 return clock end,
    isatty = function() return tty end,
    columns = function() return 80 end,
    getenv = function(name) return env[name] end,
  }
end

local function work()
  local p = Progress.new { total = 100 }
  for _ = 1, 50 do p:advance(1, 1, "ph depth=30 " .. string.rep("x", 300)) end
  p:say "a run ended"
  p:finish()
end

describe("progress", function()
  it("writes plain bounded lines where there is no terminal", function()
    local text = seen(world(false, {}), work)
    assert.is_nil(text:find "[\r\27]")
    for line in text:gmatch "[^\n]+" do assert.is_true(#line <= 160) end
    local _, lines = text:gsub("\n", "")
    assert.is_true(lines >= 3 and lines <= 12, "about one line in ten seconds, found " .. lines)
  end)

  it("draws one bar on a terminal, within its width", function()
    local text = seen(world(true, { TERM = "xterm" }), work)
    assert.matches("\r\27%[K%[=+ +%]  50%%", text)
    for draw in text:gmatch "\27%[K([^\r\n]*)" do assert.is_true(#draw <= 79) end
  end)

  it("takes a dumb terminal for none", function()
    assert.is_nil(seen(world(true, { TERM = "dumb" }), work):find "[\r\27]")
  end)

  it("obeys NO_COLOR, and an empty NO_COLOR is none", function()
    seen(world(true, { TERM = "xterm", NO_COLOR = "1" }), function() assert.is_false(Progress.has_color(1)) end)
    seen(world(true, { TERM = "xterm", NO_COLOR = "" }), function() assert.is_true(Progress.has_color(1)) end)
  end)

  it("says nothing when quiet, except what must be said", function()
    local text = seen(world(true, { TERM = "xterm" }), function()
      local p = Progress.new { total = 1, quiet = true }
      p:advance(1, 1, "x")
      p:say "hidden"
      p:say("failed: no such file", true)
      p:finish()
    end)
    assert.equal("failed: no such file\n", text)
  end)

  it("computes the time left from the work done since the start, not from work done before", function()
    seen(world(false, {}), function()
      local p = Progress.new { total = 100, done = 50 }
      p.done = 60
      assert.equal(40, p:left(p.started + 10))
      assert.equal(math.huge, Progress.new { total = 1 }:left(5))
    end)
  end)
end)

describe("tables", function()
  it("aligns numbers right and words left", function()
    assert.same({ "  family  depth", "  ------  -----", "  ph         30", "  resnet    240" },
      tables.render({ "family", "depth" }, { { "ph", "30" }, { "resnet", "240" } }))
  end)

  it("takes hashes and shapes for words, numbers with units for numbers", function()
    assert.same({
      "  run   shape       time", "  ----  -------  -------", "  6d8a  32 -> 4  0.40 ms", "  9d    2 -> 10     12 s",
    }, tables.render({ "run", "shape", "time" }, { { "6d8a", "32 -> 4", "0.40 ms" }, { "9d", "2 -> 10", "12 s" } }))
  end)

  it("gives mean and sample deviation", function()
    assert.equal("2.0 ± 1.0", tables.spread({ 1, 2, 3 }, 1))
    assert.equal("2.0", tables.spread({ 2 }, 1))
    assert.equal("-", tables.spread({}, 1))
  end)

  it("prints counts, sizes and times for people", function()
    assert.same({ "1", "123", "1,234", "12,345", "1,234,567" },
      { tables.count(1), tables.count(123), tables.count(1234), tables.count(12345), tables.count(1234567) })
    assert.same({ "512 B", "1.5 KiB" }, { tables.bytes(512), tables.bytes(1536) })
    assert.same({ "3.2 s", "1:15", "1:06:40", "?" },
      { tables.duration(3.21), tables.duration(75), tables.duration(4000), tables.duration(math.huge) })
  end)
end)
