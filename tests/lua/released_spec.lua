--- Every released key with its default is a golden value, and so is every name of a result (tests/golden/keys.txt). A
-- released default never changes, and a key that comes later says since when it is there: otherwise texts, hashes and
-- locks of older specs would change. A name of a result goes on as an alias when there is a better one.
--
-- PHRUN_UPDATE=1 adds new keys, editions and names to the file; it changes no line that is there.
local canon = require "ph.util.canon"
local native = require "ph.native"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"
require "ph"

local path <const> = native.lua_dir .. "/../tests/golden/keys.txt"

local function line_of(id, key)
  local default = key.required and "required" or "default " .. canon.encode(key.default)
  local line = string.format("%s  since %d  %s", id, key.since, default)
  for edition = 2, schema.newest_edition() do
    local value = key.editions and key.editions[edition]
    if value ~= nil then line = string.format("%s  edition %d %s", line, edition, canon.encode(value)) end
  end
  return line
end

--- Lines by "constructor.key", and the constructors among them.
local function released()
  local lines, constructors = {}, {}
  for line in assert(native.read_file(path)):gmatch "[^\n]+" do
    local id = line:match "^%S+"
    lines[id] = line
    constructors[id:match "^(.*)%.[^.]*$" or ""] = true
  end
  return lines, constructors
end

--- Adds the names of a measure's results to `now`, the older ones too.
local function add_results(block, now)
  for _, what in ipairs { "metrics", "profiles" } do
    for _, result in ipairs(block[what] or {}) do
      for _, name in ipairs { result[1], result.formerly } do
        local id = string.format("%s/%s/%s", block.name, what, name)
        now[id] = id
      end
    end
  end
end

--- What is wrong with a key of today beside its released line (nil for a new key), or nil.
local function problem_of(line, old, is_older, key)
  if old and line:sub(1, #old) ~= old then return "released as: " .. old .. "\n       now:   " .. line end
  if not old and is_older and key.since == 1 then
    return line .. "\n       its constructor is older: it needs since = " .. schema.version
  end
end

describe("the released keys", function()
  it("keep their defaults, and new ones say since when they are there", function()
    local old, constructors = released()
    local now, problems = {}, {}
    for _, block in ipairs(schema.all()) do
      add_results(block, now)
      for _, key in ipairs(block.keys) do
        local id = block.name .. "." .. key.name
        now[id] = line_of(id, key)
        problems[#problems + 1] = problem_of(now[id], old[id], constructors[block.name], key)
      end
    end
    for id in pairs(old) do problems[#problems + 1] = not now[id] and id .. " is gone" or nil end
    assert.equal("", table.concat(problems, "\n"))
    local lines = {}
    for i, id in ipairs(sorted_keys(now)) do lines[i] = now[id] end
    local text = table.concat(lines, "\n") .. "\n"
    if native.getenv "PHRUN_UPDATE" then
      assert(native.write_file(path, text))
    else
      assert.is_true(text == native.read_file(path), "new names; PHRUN_UPDATE=1 adds them to tests/golden/keys.txt")
    end
  end)
end)
