--- What a person sees while work goes on, on standard error: one bar with rate and time left on a terminal, plain lines
-- elsewhere (no carriage return, no escape, at most one a period). Nothing when
-- quiet. NO_COLOR and TERM=dumb are obeyed.

local native = require "ph.native"
local tables = require "ph.util.tables"

local Progress = {}
Progress.__index = Progress

local redraw_seconds <const> = 0.1
local plain_seconds <const> = 10

local function is_terminal()
  return native.isatty(2) and native.getenv "TERM" ~= "dumb"
end

--- Whether colour may be written to a file descriptor.
function Progress.has_color(fd)
  local no = native.getenv "NO_COLOR"
  return native.isatty(fd) and native.getenv "TERM" ~= "dumb" and (no == nil or no == "")
end

--- options: total (units of work), done (units finished before), unit (name of what `rate` counts), quiet.
function Progress.new(options)
  local now = native.now()
  return setmetatable({
    total = options.total, done = options.done or 0, first = options.done or 0, unit = options.unit or "epoch",
    quiet = options.quiet,
    terminal = not options.quiet and is_terminal(), color = Progress.has_color(2), started = now, drawn = 0,
    spoken = now, counted = 0, note = "",
  }, Progress)
end

--- Seconds left at the rate so far; infinite before anything is known.
function Progress:left(now)
  local worked = self.done - self.first
  if worked <= 0 then return math.huge end
  return (self.total - self.done) * (now - self.started) / worked
end

local function bar(fraction, width)
  local full = math.floor(fraction * width + 0.5)
  return "[" .. string.rep("=", full) .. string.rep(" ", width - full) .. "]"
end

--- The status line as text, at most `columns` wide, without line end or escapes.
function Progress:line(columns, now)
  local fraction = self.total > 0 and math.min(1, self.done / self.total) or 1
  local rate = self.counted / math.max(now - self.started, 1e-9)
  local text = string.format("%3d%%  %s %s/s  %s left  %s", math.floor(100 * fraction),
    tables.count(math.floor(rate + 0.5)), self.unit, tables.duration(self:left(now)), self.note)
  if self.terminal and columns >= 60 then text = bar(fraction, 20) .. " " .. text end
  return text:sub(1, columns)
end

--- Work went on: `units` of the total, `count` of what the rate counts, a note on what is being done.
function Progress:advance(units, count, note)
  self.done, self.counted = self.done + units, self.counted + (count or 0)
  self.note = note or self.note
  self:draw(false)
end

--- A unit of work was finished early or turned out not to be needed: the total shrinks.
function Progress:drop(units)
  self.total = self.total - units
end

function Progress:draw(force)
  local now = native.now()
  if self.quiet then return end
  if self.terminal and (force or now - self.drawn >= redraw_seconds) then
    self.drawn, self.shown = now, true
    native.write(2, "\r\27[K" .. self:line(math.max(20, native.columns(2) - 1), now))
  elseif not self.terminal and now - self.spoken >= plain_seconds then
    self.spoken = now
    native.write(2, self:line(160, now) .. "\n")
  end
end

--- A line that stays, above the bar. `always` prints it even when quiet.
function Progress:say(text, always)
  if self.quiet and not always then return end
  native.write(2, (self.shown and "\r\27[K" or "") .. text .. "\n")
  self.spoken = native.now()
  if self.shown then self:draw(true) end
end

--- Takes the bar away.
function Progress:finish()
  if self.shown then native.write(2, "\r\27[K") end
  self.shown = false
end

return Progress
