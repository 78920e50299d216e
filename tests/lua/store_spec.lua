local native = require "ph.native"

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  assert(native.mkdir(path))
  return path
end

describe("run files", function()
  local dir, path
  before_each(function()
    dir = temp_dir()
    path = dir .. "/run.h5"
  end)
  after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

  it("give back tensors, texts and attributes of every kind, in order", function()
    local t = native.from({ { 1, 2.5 }, { -3, 1 / 3 } }, "f64")
    assert.is_true(native.h5_write(path, {
      { path = "/", attr = "format", value = "a file" },
      { path = "/", attr = "n", value = 3 },
      { path = "/", attr = "lr", value = 3.0 },
      { path = "/a/t", value = t },
      { path = "/a/text", value = "x = 1\n" },
      { path = "/a/long", value = ("0123456789"):rep(30000) },
      { path = "/a/long", attr = "note", value = "" },
      { path = "/empty", value = native.tensor({ 0, 3 }, "f32") },
    }))
    local r <close> = assert(native.h5_read(path))
    assert.is_true(r:sealed())
    assert.equal("tensor", r:kind "/a/t")
    assert.equal("text", r:kind "/a/long")
    assert.equal("group", r:kind "/a")
    assert.is_nil(r:kind "/b")
    local back <close> = r:tensor "/a/t"
    assert.same(t:totable(), back:totable())
    assert.equal("x = 1\n", r:text "/a/text")
    assert.equal(("0123456789"):rep(30000), r:text "/a/long")
    assert.equal("", r:attr("/a/long", "note"))
    assert.equal("integer", math.type(r:attr("/", "n")))
    assert.equal("float", math.type(r:attr("/", "lr")))
    assert.is_nil(r:attr("/", "none"))
    assert.is_nil(r:attr("/none", "none"))
    assert.same({ format = "a file", n = 3, lr = 3.0 }, r:attrs "/")
    assert.same({ note = "" }, r:attrs "/a/long")
    local names = {}
    for i, item in ipairs(r:list "/") do names[i] = item.path .. " " .. item.kind end
    assert.same({ "/a group", "/a/long text", "/a/t tensor", "/a/text text", "/empty tensor" }, names)
    t:close()
  end)

  it("have the same bytes for the same items", function()
    local items = { { path = "/a", value = "text" }, { path = "/a", attr = "b", value = 1 } }
    assert(native.h5_write(path, items))
    local first = native.sha256_file(path)
    assert(native.h5_write(path, items))
    assert.equal(first, native.sha256_file(path))
  end)

  it("say softly what does not fit, and leave no file", function()
    local function refused(code, words, items)
      local ok, message, got = native.h5_write(path, items)
      assert.is_nil(ok)
      assert.equal(code, got)
      assert.is_truthy(message:find(words, 1, true), message)
      assert.is_nil((native.stat(path)))
    end
    refused("PH_E_EXISTS", "'/a' is already in the image",
      { { path = "/a", value = "x" }, { path = "/a", value = "y" } })
    refused("PH_E_NOTFOUND", "'/a' is not in the image", { { path = "/a", attr = "b", value = 1 } })
    refused("PH_E_ARG", "not an absolute path", { { path = "a", value = "x" } })
    refused("PH_E_LIMIT", "long text is a dataset", { { path = "/", attr = "b", value = ("x"):rep(70000) } })
    local _, message, code = native.h5_write(dir .. "/none/run.h5", {})
    assert.equal("PH_E_NOTFOUND", code)
    assert.is_truthy(message:find("No such file", 1, true))
  end)

  it("raise on items that are a mistake of the program", function()
    assert.has_error(function() native.h5_write(path, { 1 }) end, "h5_write: item 1 is a number, not a table")
    assert.has_error(function() native.h5_write(path, { { value = 1 } }) end, "h5_write: item 1 has no path")
    assert.has_error(function() native.h5_write(path, { { path = "/a", value = 1 } }) end,
      "h5_write: the value of /a is a number, not a tensor or text")
    assert.has_error(function() native.h5_write(path, { { path = "/", attr = "a", value = true } }) end,
      "h5_write: attribute 'a' of / is a boolean, not a number or text")
  end)

  it("that are damaged are refused with their name", function()
    assert(native.h5_write(path, { { path = "/a", value = "text" } }))
    local bytes = native.read_file(path)
    assert(native.write_file(path, bytes:sub(1, 1000) .. "?" .. bytes:sub(1002)))
    local r, message, code = native.h5_read(path)
    assert.is_nil(r)
    assert.equal("PH_E_FORMAT", code)
    assert.equal(path .. ": damaged", message:match "^.-: damaged")
    assert(native.write_file(path, bytes:sub(1, 700)))
    assert.equal("PH_E_FORMAT", select(3, native.h5_read(path)))
    assert(native.write_file(path, "text"))
    assert.equal("PH_E_FORMAT", select(3, native.h5_read(path)))
  end)

  it("closed raise, and close twice", function()
    assert(native.h5_write(path, { { path = "/a", value = "text" } }))
    local r = assert(native.h5_read(path))
    r:close()
    r:close()
    assert.has_error(function() r:text "/a" end, "the reader is closed")
  end)

  it("are read by kind", function()
    assert(native.h5_write(path, { { path = "/a", value = "text" } }))
    local r <close> = assert(native.h5_read(path))
    local t, message, code = r:tensor "/a"
    assert.is_nil(t)
    assert.equal("PH_E_DTYPE", code)
    assert.equal(path .. ": '/a' is a text, not a tensor", message)
    assert.equal("PH_E_NOTFOUND", select(3, r:text "/b"))
  end)
end)

describe("files", function()
  local dir
  before_each(function() dir = temp_dir() end)
  after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

  it("are written, appended to, listed, renamed and removed", function()
    local a, b = dir .. "/a", dir .. "/b"
    assert.is_true(native.write_file(a, "1\0 2\n"))
    assert.is_true(native.append_line(a, "three"))
    assert.equal("1\0 2\nthree\n", native.read_file(a))
    assert.equal(11, native.stat(a).size)
    assert.equal("file", native.stat(a).kind)
    assert.equal("dir", native.stat(dir).kind)
    assert.is_true(native.mkdir(dir .. "/d/e"))
    assert.same({ "a", "d" }, native.list_dir(dir))
    assert.is_true(native.rename(a, b))
    assert.is_nil((native.stat(a)))
    assert.equal("PH_E_NOTFOUND", select(3, native.stat(a)))
    assert.is_true(native.remove(b))
    assert.equal("PH_E_NOTFOUND", select(3, native.read_file(b)))
    assert.equal("PH_E_IO", select(3, native.remove(dir)))
  end)

  it("above a limit are refused", function()
    assert(native.write_file(dir .. "/a", "12345"))
    assert.equal("12345", native.read_file(dir .. "/a", 5))
    assert.equal("PH_E_LIMIT", select(3, native.read_file(dir .. "/a", 4)))
  end)

  it("with NUL in their path raise", function()
    assert.has_error(function() native.read_file "a\0b" end, "the path 'a' continues after a NUL byte")
  end)

  it("are locked by one at a time", function()
    local lock = assert(native.lock(dir .. "/.lock"))
    local again, message, code = native.lock(dir .. "/.lock")
    assert.is_nil(again)
    assert.equal("PH_E_LOCKED", code)
    assert.is_truthy(message:find "in use by process %d+")
    lock:release()
    lock:release()
    local _third <close> = assert(native.lock(dir .. "/.lock"))
  end)

  it("have real paths", function()
    assert.equal(native.realpath(dir), native.realpath(dir .. "/../" .. dir:match "[^/]+$" .. "/."))
    assert.equal("PH_E_NOTFOUND", select(3, native.realpath(dir .. "/none")))
    assert.equal("/", native.cwd():sub(1, 1))
  end)
end)

describe("sha256", function()
  it("of abc is the one of FIPS 180", function()
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", native.sha256 "abc")
  end)
end)

describe("idx files", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it("become tensors of bytes", function()
    assert(native.write_file(path, "\0\0\8\2\0\0\0\2\0\0\0\3abcdef"))
    local t <close> = native.idx_read(path)
    assert.same({ { 97, 98, 99 }, { 100, 101, 102 } }, t:totable())
    assert.equal("u8", t:dtype())
    assert.equal("PH_E_LIMIT", select(3, native.idx_read(path, 5)))
  end)

  it("that do not belong together are refused softly", function()
    assert(native.write_file(path, "\0\0\8\3\0\0\0\1\0\0\0\1\0\0\0\1a"))
    local x, message, code = native.idx_pair(path, path, 10)
    assert.is_nil(x)
    assert.equal("PH_E_SHAPE", code)
    assert.equal(path .. ": byte 3: expected 1 dimension (labels), found 3", message)
  end)
end)
