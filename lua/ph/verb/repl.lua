--- phrun repl: the interactive session, on a terminal (line editing, history, completion) or piped (no prompts).

local complete = require "ph.repl.complete"
local native = require "ph.native"
local session = require "ph.repl.session"

local repl = {}

local history_limit <const> = 2000

local lost -- why standard output takes no more: a message, or false when nobody reads it

local function fail(text) native.write(2, text .. "\n") end

local function out(text)
  if lost ~= nil then return end
  local ok, problem = native.write(1, text .. "\n")
  if ok then return end
  lost = problem or false
  if problem then fail("phrun: " .. problem) end
end

--- Where the history is kept, or nil when the user has no home.
function repl.history_path()
  local state, home = native.getenv "XDG_STATE_HOME", native.getenv "HOME"
  if state and state:sub(1, 1) == "/" then return state .. "/phrun/history" end
  if home and home ~= "" then return home .. "/.local/state/phrun/history" end
end

local function load_history(editor, path)
  local text = path and native.stat(path) and native.read_file(path)
  if not text then return end
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  local first = math.max(1, #lines - history_limit + 1)
  for i = first, #lines do editor:add(lines[i]) end
  if first > history_limit then native.write_file(path, table.concat(lines, "\n", first) .. "\n") end
end

--- Keeps each line as it is entered; a history that cannot be written is said once and does no harm.
local function history_writer(path)
  if not path then return function() end end
  local ok, problem = native.mkdir(path:match "^(.*)/")
  return function(line)
    if ok then ok, problem = native.append_line(path, line) end
    if ok == nil and problem then
      fail("history is not kept: " .. problem)
      problem = nil
    end
  end
end

local function interactive(s)
  local editor <close> = native.edit_open(function(text) return complete.answer(s.env, text) end)
  local path = repl.history_path()
  load_history(editor, path)
  local keep = history_writer(path)
  out(string.format("phrun %s   help() tells what there is, Ctrl-D ends", native.machine().version))
  while true do
    local line = editor:line(s.pending and ">> " or "> ")
    if line == nil and not s.pending then
      out ""
      return 0
    elseif not line then -- Ctrl-C, or Ctrl-D inside something longer
      out ""
      s:drop()
    else
      if line:find "%S" then
        editor:add(line)
        keep(line)
      end
      s:feed(line)
    end
  end
end

local function piped(s)
  for line in function() return io.stdin:read() end do
    s:feed((line:gsub("\r$", "")))
    if lost ~= nil then return lost and 1 or 0 end
  end
  if native.interrupted() then return 130 end
  s:finish()
  return (s.errors > 0 or lost) and 1 or 0
end

--- Runs the session; exit code 0, or 1 when lines that were piped in had errors.
function repl.main()
  local s = session.new(out, fail)
  if native.isatty(0) and native.isatty(1) then return interactive(s) end
  return piped(s)
end

return repl
