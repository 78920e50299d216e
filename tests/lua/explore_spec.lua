-- The guided tour: every line of docs/explore.md is run, in order, in one session;
-- `--> text` must be in what it prints.

local native = require "ph.native"
local Session = require "ph.repl.session"

local root = native.lua_dir .. "/.."

--- A folder with a `phrun` in it, and a place for results.
local function place()
  local dir = os.tmpname()
  os.remove(dir)
  assert(native.mkdir(dir))
  local exe = native.realpath "/proc/self/exe"
  assert(native.write_file(dir .. "/phrun", "#!/bin/sh\nexec '" .. exe .. "' \"$@\"\n"))
  assert.equal(0, (native.popen({ "chmod", "+x", dir .. "/phrun" }, "")))
  return dir
end

--- Fenced blocks of a page: list of { kind, lines }.
local function blocks(text)
  local out, open = {}, nil
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local fence = line:match "^```(%w*)$"
    if fence and open then open = nil
    elseif fence then
      open = { kind = fence, lines = {} }
      out[#out + 1] = open
    elseif open then open.lines[#open.lines + 1] = line end
  end
  return out
end

local function shell(line, dir)
  local code, out, err = native.popen({
    "sh", "-c", "cd '" .. root .. "' && PATH='" .. dir .. "':$PATH && " .. line,
  }, "")
  assert(code == 0, string.format("%s: exit %s\n%s%s", line, tostring(code), out, err or ""))
end

describe("docs/explore.md", function()
  it("does what it says, line by line", function()
    local dir, said, failed = place(), {}, {}
    local make = type(Session) == "table" and (Session.new or Session) or Session
    local session = make(function(text) said[#said + 1] = text end, function(text) failed[#failed + 1] = text end)
    local page, lines = assert(native.read_file(root .. "/docs/explore.md")):gsub("/tmp/quick", dir .. "/quick"), 0
    for _, block in ipairs(blocks(page)) do
      for _, line in ipairs(block.lines) do
        lines = lines + 1
        if block.kind == "sh" then
          shell(line, dir)
        else
          local code, want = line:match "^(.-)%s*%-%->%s*(.-)%s*$"
          said = {}
          session:feed(code or line)
          assert(#failed == 0, line .. "\n" .. table.concat(failed, "\n"))
          local text = table.concat(said, "\n")
          assert(not want or text:find(want, 1, true),
            string.format("%s\nprints\n%s\nwithout '%s'", line, text, want or ""))
        end
      end
    end
    assert(lines > 40, "the tour has lines")
  end)
end)
