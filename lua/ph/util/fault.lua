--- A problem that ends the program with one line and a chosen exit code, raised as an error value.
--
-- Codes: 0 ok, 1 run-time error, 2 usage or spec error, 3 tampered or wrong file, 10 the answer is no, 11 guard,
-- 130 interrupted.

local fault = { USAGE = 2, RUNTIME = 1, TAMPERED = 3, NO = 10, GUARD = 11, INTERRUPTED = 130 }

local mt = { __name = "ph.fault" }
function mt:__tostring() return self.message end

--- Raises a fault; the message may hold several lines (all errors of a spec).
function fault.raise(code, format, ...)
  local message = select("#", ...) > 0 and string.format(format, ...) or format
  error(setmetatable({ code = code, message = message }, mt), 0)
end

--- The fault in an error value, or nil.
function fault.of(problem)
  return getmetatable(problem) == mt and problem or nil
end

--- The value, or raises code with the message that came instead: for calls that return nil, message.
function fault.check(code, value, message)
  if value == nil or value == false then fault.raise(code, "%s", tostring(message)) end
  return value
end

return fault
