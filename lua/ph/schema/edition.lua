--- Editions: how a better default comes into the language without changing a spec that was written before it.
--
-- A released default never changes. A key whose better default is another one has `editions = { [2] = better }`: a spec
-- that says `edition = 2` gets it, every other spec keeps what it had. Constructors take their defaults under the
-- edition in which a spec is read, and in which the functions of its experiment are called later.

local edition = {}

local current = 1

--- What the spec being read said its edition is, or nil: it has not said so yet, or never does (then it is 1).
edition.named = nil

--- The edition whose defaults constructors take now.
function edition.current() return current end

-- Makes a number current; the value to close gives back the one before.
local function enter(number)
  local before = current
  current = number
  return setmetatable({}, { __close = function() current = before end })
end

--- f(...) under an edition.
function edition.under(number, f, ...)
  local _ <close> = enter(number)
  return f(...)
end

--- The default of a key in the current edition: that of the nearest edition below or at it that has one of its own.
function edition.default(key)
  for number = current, 2, -1 do
    local value = key.editions and key.editions[number]
    if value ~= nil then return value end
  end
  return key.default
end

return edition
