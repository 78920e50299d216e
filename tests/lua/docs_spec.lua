-- The reference page is made from the registrations; nothing of the language may lack its line.
local docs = require "ph.spec.docs"
local native = require "ph.native"
local ph = require "ph"
local schema = require "ph.schema"

local root = native.lua_dir .. "/.."

describe("the reference page", function()
  it("is what the registrations say (PHRUN_UPDATE=1 writes it)", function()
    local path, text = root .. "/docs/language.md", docs.language(root)
    if native.getenv "PHRUN_UPDATE" then assert(native.write_file(path, text)) end
    assert.equal(text, native.read_file(path))
  end)

  it("has a doc line for every constructor and every key", function()
    for _, block in ipairs(schema.all()) do
      assert.is_true(#block.doc > 3, block.name)
      assert.is_true(docs.sections[block.section], block.name .. " is in no section")
      for _, key in ipairs(block.keys) do assert.is_true(#key.doc > 2, block.name .. "." .. key.name) end
    end
  end)

  it("has equation and doc line for every op", function()
    for _, row in ipairs(native.ops()) do
      assert.is_true(#row.equation > 0 and #row.doc > 10, row.name)
    end
  end)

  it("knows every name of `ph`", function()
    for name, v in pairs(ph) do
      if type(v) == "table" then
        for kind in pairs(v) do assert.is_truthy(schema.get(name .. "." .. kind), kind) end
      else
        assert.is_truthy(schema.get(name), "ph." .. name .. " is not registered")
      end
    end
  end)
end)

describe("the page on the boundary between Lua and C", function()
  local page = assert(native.read_file(root .. "/docs/native.md"))

  local function has(pattern, name)
    assert.is_truthy(page:find(pattern), "docs/native.md does not speak of " .. name)
  end

  it("has every function that the host gives", function()
    for name, v in pairs(native) do
      has("native%." .. name .. "%f[%W]", "native." .. name)
      for inner in pairs(type(v) == "table" and v or {}) do
        has("%f[%w]" .. name .. "%." .. inner .. "%f[%W]", "native." .. name .. "." .. inner)
      end
    end
  end)

  it("has every method of the host's objects", function()
    for kind, meta in pairs(debug.getregistry()) do
      local methods = type(kind) == "string" and kind:find "^ph%." and meta.__index or {}
      for name in pairs(methods) do has("%f[%w]" .. name .. "%(", kind .. ":" .. name) end
    end
  end)

  it("speaks of nothing that is not there", function()
    for name in page:gmatch "native%.([%w_]+)" do assert.is_truthy(native[name], "there is no native." .. name) end
  end)
end)

describe("the map of the house", function()
  it("names stations that are where it says", function()
    local page, count = assert(native.read_file(root .. "/docs/architecture.md")), 0
    for name, path in page:gmatch "`([%w_:.]+)`%s%(`([%w_/]+%.%a+)`%)" do
      local text = assert(native.read_file(root .. "/" .. path), path)
      assert.is_truthy(text:find("%f[%w_]" .. name:gsub("[.:]", "%%%0") .. "%f[^%w_]"), name .. " is not in " .. path)
      count = count + 1
    end
    assert.is_true(count >= 25, "the two walks have stations")
  end)
end)
