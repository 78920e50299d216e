--- One interactive session without its terminal: lines go in, values and errors come out through `out` and `fail`.
--
-- A line is an expression (printed, kept in _), statements, a question (?x), or the beginning of something longer; then
-- lines are gathered until the text is complete.

local help = require "ph.repl.help"
local names = require "ph.repl.names"
local native = require "ph.native"
local show = require "ph.repl.show"
local where = require "ph.schema.where"

local Session = {}
Session.__index = Session

local chunk_name <const>, max_shown <const> = "=repl", 60

--- out(text), fail(text): called with whole lines without the last newline.
local function new(out, fail)
  local self = setmetatable({ out = out, fail = fail, line = 0, errors = 0 }, Session)
  self.env = names.environment {
    help = function(...)
      if select("#", ...) == 0 then return self.out(help.overview()) end
      return self.out((help.of_value((...))))
    end,
    print = function(...)
      local parts = table.pack(...)
      for i = 1, parts.n do parts[i] = tostring(parts[i]) end
      return self.out(table.concat(parts, "\t"))
    end,
  }
  return self
end

function Session:report(text)
  self.errors = self.errors + 1
  self.fail((text:gsub("%s*\n%s*", "; ")))
end

local function clipped(line)
  line = line:gsub("^%s+", ""):gsub("%s+$", "")
  return #line > max_shown and line:sub(1, max_shown - 3) .. "..." or line
end

local function nth_line(text, n)
  local i = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    i = i + 1
    if i == n then return line end
  end
end

--- The line of the chunk that was running when an error was raised, from the stack.
local function failing_line()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return 1 end
    if info.source == chunk_name and info.currentline > 0 then return info.currentline end
    level = level + 1
  end
end

local function handler(problem)
  return { problem = problem, line = failing_line() }
end

--- An error value as text; its own __tostring may fail too.
local function message_of(problem)
  local ok, text = pcall(where.located, problem)
  return ok and text or "error() was called with a value that has no text"
end

function Session:report_raised(raised, text)
  local message = message_of(raised.problem):gsub("^repl:%d+: ", "")
  if message == "interrupted" then return self:report "interrupted" end
  self:report(string.format("%s  in '%s'", message, clipped(nth_line(text, raised.line) or text)))
end

--- Runs a compiled chunk and shows what it gives.
function Session:run(f, text)
  native.interrupt_clear()
  native.interrupt_lua(true)
  local results = table.pack(xpcall(f, handler))
  native.interrupt_lua(false)
  if not results[1] then return self:report_raised(results[2], text) end
  if results.n > 1 and results[2] ~= nil then rawset(self.env, "_", results[2]) end
  local ok, problem = pcall(function()
    for i = 2, results.n do self.out(show.text(results[i])) end
  end)
  if not ok then self:report(message_of(problem)) end
end

--- The text compiled as an expression or as statements; nil, "more" or nil, message.
function Session:compile(text)
  local f, as_expression = load("return " .. text, chunk_name, "t", self.env)
  if f then return f end
  local problem
  f, problem = load(text, chunk_name, "t", self.env)
  if f then return f end
  if problem:find "<eof>$" or as_expression:find "<eof>$" then return nil, "more" end
  return nil, (problem:gsub("^repl:%d+: ", "")), tonumber(problem:match "^repl:(%d+):")
end

local function ask_by_name(v) return v == nil or type(v) == "function" end

--- The name asked about when the line is a question: ?x, or help(x) with a name that has no value.
function Session:question(line)
  local name = line:match "^%s*%?%s*([%w_.:]*)%s*$"
  if name then return name end
  name = line:match "^%s*help%s*%(%s*([%a_][%w_.]*)%s*%)%s*;?%s*$"
  if name and rawget(self.env, name) == nil and ask_by_name(names.find(name, self.env)) then return name end
end

function Session:answer(name)
  self.out(name == "" and help.overview() or (help.of_name(name)))
end

--- Takes one line. Returns true when more lines are needed to complete what was begun.
function Session:feed(line)
  self.line = self.line + 1
  local asked = self:question(line)
  if asked and (not self.pending or line:find "^%s*%?") then
    self:answer(asked)
    return self.pending ~= nil
  end
  if not self.pending and not line:find "%S" then return false end
  local text = self.pending and self.pending .. "\n" .. line or line
  self.first_line = self.pending and self.first_line or self.line
  local f, problem, at = self:compile(text)
  self.pending = problem == "more" and text or nil
  if self.pending then return true end
  if f then self:run(f, text)
  else self:report(string.format("%s  in '%s'", problem, clipped(nth_line(text, at or 1) or text))) end
  return false
end

--- Forgets what was begun (Ctrl-C, Ctrl-D at a continuation).
function Session:drop() self.pending = nil end

--- The input has ended. What was begun is reported; questions that stand in it are answered all the same.
function Session:finish()
  if not self.pending then return end
  local text = self.pending
  self.pending = nil
  self:report(
    string.format("unfinished input at the end, begun at line %d: '%s'", self.first_line, clipped(nth_line(text, 1))))
  for line in text:gmatch "[^\n]+" do
    local name = self:question(line)
    if name then self:answer(name) end
  end
end

return { new = new }
