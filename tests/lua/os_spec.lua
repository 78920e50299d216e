local native = require "ph.native"

--- Runs f in a forked child; returns its exit code and signal.
local function in_child(f)
  local pid = assert(native.fork())
  if pid == 0 then
    local ok, code = pcall(f)
    native.exit(ok and (code or 0) or 99)
  end
  local got, code, signal = native.wait(true)
  assert.equal(pid, got)
  return code, signal
end

describe("time", function()
  it("runs", function()
    local a = native.now()
    assert.is_true(native.sleep(0.01))
    local passed = native.now() - a
    assert.is_true(passed >= 0.01 and passed < 5)
    assert.is_true(native.time() > 1.6e9)
  end)

  it("is written as ISO 8601 in UTC", function()
    assert.equal("1970-01-01T00:00:00Z", native.date(0))
    assert.equal("2001-09-09T01:46:40Z", native.date(1e9))
    assert.equal("1969-12-31T23:59:59Z", native.date(-0.5))
    assert.is_false(pcall(native.date, 1e300))
    assert.is_false(pcall(native.date, 0 / 0))
  end)
end)

describe("processes", function()
  it("give their exit code", function()
    assert.same({ 7 }, { in_child(function() return 7 end) })
    assert.same({ nil, 9 }, { in_child(function() native.kill(native.pid(), "SIGKILL") native.sleep(5) end) })
    assert.same({ nil, "no child" }, { native.wait(false) })
  end)

  it("talk through pipes", function()
    local r, w = native.pipe()
    local pid = assert(native.fork())
    if pid == 0 then
      native.write(w, "hello\n")
      native.exit(0)
    end
    native.close_fd(w)
    assert.same({ r }, native.poll({ r }, 5))
    assert.equal("hello\n", native.read_fd(r))
    native.wait(true)
    assert.equal("", native.read_fd(r))
    assert.is_true(native.close_fd(r))
    assert.is_nil((native.close_fd(r)))
  end)

  it("poll waits no longer than asked", function()
    local r, w = native.pipe()
    local start = native.now()
    assert.same({}, native.poll({ r }, 0.05))
    assert.is_true(native.now() - start < 2)
    native.close_fd(r)
    native.close_fd(w)
  end)

  it("see SIGTERM and SIGINT as a flag", function()
    for _, signal in ipairs { "SIGTERM", "SIGINT" } do
      assert.same({ 3 }, { in_child(function()
        local before = native.interrupt_count()
        native.kill(native.pid(), signal)
        local once, again = native.interrupted(), native.interrupted()
        return once and not again and native.interrupt_count() == before + 1 and 3 or 4
      end) })
    end
  end)

  it("end with 130 when a second Ctrl-C finds the first unseen", function()
    assert.same({ 130 }, { in_child(function()
      native.kill(native.pid(), "SIGINT")
      native.sleep(0.3)
      native.kill(native.pid(), "SIGINT")
      native.sleep(5)
    end) })
    assert.same({ 5 }, { in_child(function()
      native.kill(native.pid(), "SIGINT") -- the terminal's and the parent's at once
      native.kill(native.pid(), "SIGINT")
      return 5
    end) })
  end)

  it("stop Lua code only where asked", function()
    assert.same({ 6 }, { in_child(function()
      native.interrupt_lua(true)
      local ok, problem = pcall(function()
        native.kill(native.pid(), "SIGINT")
        for _ = 1, 1e9 do end
      end)
      native.interrupt_lua(false)
      return not ok and problem == "interrupted" and not native.interrupted() and 6 or 7
    end) })
  end)

  it("leave products and programs at Ctrl-C", function()
    local function interrupted(f)
      return in_child(function()
        local me = native.pid()
        local pid = native.fork()
        if pid == 0 then
          native.sleep(0.2)
          native.kill(me, "SIGINT")
          native.exit(0)
        end
        local ok, problem = pcall(f)
        return not ok and problem == "interrupted" and 8 or 9
      end)
    end
    assert.same({ 8 }, { interrupted(function()
      local a = native.tensor { 1000, 1000 }
      for _ = 1, 10000 do local _ = a * a end
    end) })
    assert.same({ 8 }, { interrupted(function() native.popen { "sleep", "30" } end) })
  end)

  it("are refused odd signals and pids", function()
    assert.is_false(pcall(native.kill, 0, "SIGTERM"))
    assert.is_false(pcall(native.kill, -1, "SIGTERM"))
    assert.is_false(pcall(native.kill, 1, "SIGWHAT"))
  end)
end)

describe("popen", function()
  it("gives exit code, output and errors, without a shell", function()
    assert.same({ 0, "a b $HOME *\n", "" }, { native.popen { "echo", "a b", "$HOME", "*" } })
    assert.same({ 3, "out\n", "err\n" }, { native.popen { "sh", "-c", "echo out; echo err >&2; exit 3" } })
    assert.same({ 143, "", "" }, { native.popen { "sh", "-c", "kill -TERM $$" } })
  end)

  it("feeds long input while reading long output", function()
    local text = ("0123456789"):rep(200000)
    local code, out = native.popen({ "cat" }, text)
    assert.equal(0, code)
    assert.is_true(out == text)
  end)

  it("survives a program that does not read", function()
    assert.same({ 0, "", "" }, { native.popen({ "true" }, ("x"):rep(1000000)) })
  end)

  it("names a program that is not there", function()
    local code, message, name = native.popen { "no-such-program-phrun" }
    assert.is_nil(code)
    assert.matches("no%-such%-program%-phrun: No such file", message)
    assert.equal("PH_E_NOTFOUND", name)
  end)
end)

describe("writing", function()
  it("says false when nobody reads", function()
    local r, w = native.pipe()
    assert.is_true(native.write(w, "x"))
    native.close_fd(r)
    assert.is_false(native.write(w, "x"))
    native.close_fd(w)
  end)

  it("says nil and why on a full device", function()
    local f = io.open("/dev/full", "w")
    if not f then return pending "no /dev/full here" end
    f:close()
    local code, out, err = native.popen {
      "sh", "-c", "printf 1+1 | " .. "/proc/" .. native.pid() .. "/exe" .. " repl > /dev/full; echo $?",
    }
    assert.equal(0, code)
    assert.equal("1\n", out)
    assert.matches("No space left", err)
  end)
end)

describe("the machine", function()
  it("is described", function()
    local m = native.machine()
    for _, key in ipairs { "cpu", "features", "kernels_f32", "kernels_f64", "os", "compiler", "version", "commit" } do
      assert.equal("string", type(m[key]), key)
      assert.is_true(m[key] ~= "", key)
    end
    assert.is_true(m.cores >= 1 and m.memory > 1 << 28)
    assert.is_true(m.openblas.ok)
  end)

  it("has terminals of some width", function()
    assert.is_true(native.columns(1) > 0)
    assert.equal("boolean", type(native.isatty(0)))
    assert.is_nil(native.getenv "PHRUN_NO_SUCH_VARIABLE")
  end)
end)
