--- phrun test [paths]: runs busted specs inside the program's own Lua state.

local fault = require "ph.util.fault"
local native = require "ph.native"
local testing = require "ph.verb.testing"

local selftest = {}

function selftest.arguments(parser)
  parser:argument("paths", "spec files or folders (default: tests/lua of the source tree)"):argname "PATH":args "*"
  parser:option("--filter", "only tests whose name matches this Lua pattern"):argname "PATTERN"
  parser:option("--output", "how results look: plainTerminal utfTerminal TAP gtest junit json"):argname "HANDLER"
end

--- The specs of the source tree, when the program runs from one.
local function default_path()
  local path = native.lua_dir .. "/../tests/lua"
  if not native.stat(path) then
    fault.raise(fault.USAGE, "test: no tests beside %s; name spec files or folders", native.lua_dir)
  end
  return path
end

--- busted reads its command line from the global `arg`.
local function command_line(args)
  local paths = args.paths and args.paths[1] and args.paths or { default_path() }
  for _, path in ipairs(paths) do
    if not native.stat(path) then fault.raise(fault.USAGE, "test: %s: no such file or folder", path) end
  end
  local line = { [0] = "phrun test", "--helper=ph.testing_watch", "--output=" .. (args.output or "plainTerminal") }
  if args.filter then line[#line + 1] = "--filter=" .. args.filter end
  return table.move(paths, 1, #paths, #line + 1, line)
end

--- busted ends with os.exit when something failed; here that becomes a result.
local function run_busted(line)
  local exit, done = os.exit, {}
  rawset(_G, "arg", line)
  rawset(os, "exit", function(code) -- luacheck: ignore
    done.code = code
    error(done, 0)
  end)
  local ok, problem = pcall(function() require "busted.runner" { standalone = false } end)
  rawset(os, "exit", exit)
  if not ok and problem ~= done then error(problem, 0) end
  return (done.code == nil or done.code == 0 or done.code == true) and 0 or 1
end

function selftest.main(args)
  package.cpath = native.cpath:gsub(";%./[^;]*", "")
  if not package.searchpath("busted", package.path) then
    fault.raise(fault.RUNTIME, "test: busted is not installed (Debian: lua-busted)")
  end
  require "ph" -- before busted, which forgets what a spec file has loaded
  rawset(_G, "near", testing.near)
  package.preload["ph.testing_watch"] = function()
    testing.watch(require "busted")
    return true
  end
  return run_busted(command_line(args))
end

return selftest
