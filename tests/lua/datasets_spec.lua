--- Data sets on this machine are what data/manifest.json says, to the byte.
local native = require "ph.native"
local json = require "ph.util.json"

local root = native.lua_dir .. "/.."
local manifest = assert(json.decode(assert(native.read_file(root .. "/data/manifest.json"))))

--- The bytes of the file that a tensor was read from: header and elements.
local function file_bytes(t)
  local shape, parts = t:shape(), {}
  for i, n in ipairs(shape) do parts[i] = string.pack(">I4", n) end
  return "\0\0\8" .. string.char(#shape) .. table.concat(parts) .. t:bytes()
end

local function check_file(dir, file)
  local path = dir .. "/" .. file.name
  if not native.stat(path) then path = path .. ".gz" end
  local t <close> = assert(native.idx_read(path))
  assert.same(file.shape, t:shape())
  local bytes = file_bytes(t)
  assert.equal(file.bytes, #bytes)
  assert.equal(file.sha256, native.sha256(bytes))
end

describe("the manifest", function()
  it("has every fact of every file", function()
    assert.is_true(#manifest.sets >= 2)
    for _, set in ipairs(manifest.sets) do
      for _, key in ipairs { "name", "title", "licence", "source", "get" } do assert.is_string(set[key]) end
      assert.equal(10, #set.classes)
      assert.equal(4, #set.files)
      for _, file in ipairs(set.files) do
        local header, count = 4 + 4 * #file.shape, 1
        for _, n in ipairs(file.shape) do count = count * n end
        assert.equal(file.bytes, header + count)
        assert.matches("^%x+$", file.sha256)
        assert.equal(64, #file.sha256)
        assert.equal(32, #file.md5)
      end
    end
  end)

  for _, set in ipairs(manifest.sets) do
    local places = { set.dir, root .. "/../shared/data/" .. set.name }
    local dir
    for i = 1, 2 do
      if not dir and places[i] and native.stat(places[i]) then dir = places[i] end
    end
    if dir then
      it("agrees with " .. set.name, function()
        for _, file in ipairs(set.files) do check_file(dir, file) end
      end)
    else
      pending("agrees with " .. set.name .. ": not on this machine")
    end
  end
end)
