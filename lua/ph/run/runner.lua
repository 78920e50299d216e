--- Executes units of work, one after the other in this process or several at once in forked workers.
--
-- A unit is whatever the caller hands out. `execute(unit, send)` does the work and returns an outcome (plain data);
-- `send(message)` reports on the way. Workers talk to the parent in JSON lines through a pipe; only the parent writes
-- the ledger. A worker that dies is an outcome with a problem, not the end of the others. Which worker runs a unit, and
-- in which order units end, does not enter any result.

local fault = require "ph.util.fault"
local native = require "ph.native"
local json = require "ph.util.json"
local sorted_keys = require "ph.util.sorted_keys"

local runner = {}

local latched = false

--- True from the first Ctrl-C or SIGTERM on.
function runner.stopped()
  latched = latched or native.interrupted()
  return latched
end

--- Asks for a stop as a signal does.
function runner.stop() latched = true end

--- One outcome for a call that may raise: its value, or { status = "failed", reason = one line }.
function runner.guard(execute, unit, send, debugging)
  local ok, outcome = xpcall(execute, function(problem)
    local text = tostring(problem)
    if debugging then text = debug.traceback(text, 2) end
    return text
  end, unit, send)
  if ok then return outcome end
  if outcome == "interrupted" then return { status = "interrupted" } end
  return { status = "failed", reason = debugging and outcome or outcome:match "^[^\n]*" }
end

local Pool = {}
Pool.__index = Pool

--- options: workers (1: in this process), execute(unit, send) -> outcome, receive(unit, message),
-- ended(unit, outcome), next() -> a unit that is ready or nil, prepare(unit) (optional: before a fork,
-- for what workers can share), debugging.
function runner.new(options)
  local self = setmetatable({ running = {}, count = 0 }, Pool)
  for k, v in pairs(options) do self[k] = v end
  return self
end

function Pool:run_here()
  local unit = self.next()
  while unit and not runner.stopped() do
    local outcome = runner.guard(self.execute, unit, function(message) self.receive(unit, message) end, self.debugging)
    if outcome.status == "interrupted" then runner.stop() end
    self.ended(unit, outcome)
    unit = self.next()
  end
end

local function child(self, unit, out)
  for fd in pairs(self.running) do native.close_fd(fd) end
  local function send(message)
    -- the parent is gone
    if not native.write(out, json.encode { message = message } .. "\n") then error("interrupted", 0) end
  end
  local outcome = runner.guard(self.execute, unit, send, self.debugging)
  native.write(out, json.encode { outcome = outcome } .. "\n")
  native.exit(0)
end

--- True, or nil and why there is no further worker.
function Pool:start(unit)
  if self.prepare then pcall(self.prepare, unit) end -- what fails here fails again in the worker, which reports it
  local from, to = native.pipe()
  if not from then return nil, to end
  collectgarbage()
  local pid, problem = native.fork()
  if not pid then
    native.close_fd(from)
    native.close_fd(to)
    return nil, problem
  end
  if pid == 0 then
    native.close_fd(from)
    child(self, unit, to)
  end
  native.close_fd(to)
  self.running[from] = { unit = unit, pid = pid, text = "" }
  self.count = self.count + 1
  return true
end

--- Starts units until all workers are at work. A worker that the system refuses is done without while others run.
function Pool:fill()
  while self.count < self.workers and not runner.stopped() do
    local unit = self.waiting or self.next()
    self.waiting = nil
    if not unit then return end
    local ok, problem = self:start(unit)
    if not ok and self.count == 0 then fault.raise(fault.RUNTIME, "cannot start a worker: %s", problem) end
    if not ok then
      self.receive(unit, { kind = "note", text = "waits for a worker: " .. problem })
      self.waiting, self.workers = unit, self.count
    end
  end
end

function Pool:take_line(worker, line)
  local packet = json.decode(line)
  if packet and packet.message then self.receive(worker.unit, packet.message) end
  if packet and packet.outcome then worker.outcome = packet.outcome end
end

--- Plain searches only: a pattern that backtracks over a line of n bytes costs n^2.
function Pool:take_chunk(worker, chunk)
  worker.text = worker.text .. chunk
  local from = 1
  local to = worker.text:find("\n", from, true)
  while to do
    self:take_line(worker, worker.text:sub(from, to - 1))
    from = to + 1
    to = worker.text:find("\n", from, true)
  end
  worker.text = worker.text:sub(from)
end

local function death_of(pid, code, signal)
  if signal then return string.format("its worker (process %d) was ended by signal %s", pid, tostring(signal)) end
  return string.format("its worker (process %d) ended with code %s and no result", pid, tostring(code))
end

--- Waits for a worker whose pipe is closed; its exit may be collected while waiting for another one.
function Pool:reap(pid)
  self.exits = self.exits or {}
  while not self.exits[pid] do
    local gone, code, signal = native.wait(true)
    if gone then self.exits[gone] = { code, signal }
    elseif code == "no child" then return death_of(pid, "?")
    end
  end
  local exit = self.exits[pid]
  self.exits[pid] = nil
  return death_of(pid, exit[1], exit[2])
end

function Pool:read(fd)
  local worker = self.running[fd]
  local chunk = native.read_fd(fd)
  if chunk and #chunk > 0 then
    self:take_chunk(worker, chunk)
    return
  end
  native.close_fd(fd)
  self.running[fd], self.count = nil, self.count - 1
  local death = self:reap(worker.pid)
  if worker.outcome and worker.outcome.status == "interrupted" then runner.stop() end
  self.ended(worker.unit, worker.outcome or { status = "killed", reason = death })
end

function Pool:forward_stop()
  if self.forwarded then return end
  self.forwarded = true
  for _, worker in pairs(self.running) do native.kill(worker.pid, "SIGTERM") end
end

function Pool:run_forked()
  while true do
    self:fill()
    if self.count == 0 then return end
    if runner.stopped() then self:forward_stop() end
    local fds = sorted_keys(self.running)
    for _, fd in ipairs(native.poll(fds, 0.5)) do self:read(fd) end
  end
end

--- Runs until no unit is ready and none is running, or until a stop was asked for and every worker has saved.
function Pool:run()
  if self.workers > 1 then self:run_forked() else self:run_here() end
end

return runner
