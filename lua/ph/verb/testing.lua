--- What specs under tests/lua have beside busted: `near`, and a watch that fails a test which leaves handles open.

local native = require "ph.native"

local testing = {}

local watched <const> = { "tensor", "plan", "data", "reader", "lock" }

local function is_tensor(v) return type(v) == "userdata" and getmetatable(v).__name == "ph.tensor" end

--- Numbers of a number, a tensor or nested lists in order, appended to `out`.
local function flatten(v, out)
  if is_tensor(v) then v = v:reshape({ v:count() }):totable() end
  if type(v) == "number" then
    out[#out + 1] = v
  elseif type(v) == "table" then
    for _, w in ipairs(v) do flatten(w, out) end
  else
    error("near: a " .. type(v) .. " is not a number, tensor or list", 0)
  end
  return out
end

local function describe(v)
  if type(v) == "number" then return string.format("%.17g", v) end
  if is_tensor(v) then return v:dtype() .. " (" .. table.concat(v:shape(), ", ") .. ")" end
  return "list"
end

--- Distance above what is allowed; equal values (infinities too) and two NaN are near.
local function excess(want, got, atol, rtol)
  if want == got or (want ~= want and got ~= got) then return 0 end
  local over = math.abs(want - got) - (atol + rtol * math.abs(want))
  return over == over and over or math.huge
end

local function check_shape(want, got)
  if not (is_tensor(want) and is_tensor(got)) then return end
  local a, b = want:shape(), got:shape()
  if table.concat(a, ",") ~= table.concat(b, ",") then
    error(string.format("near: shapes differ: want (%s), got (%s)", table.concat(a, ", "), table.concat(b, ", ")), 3)
  end
end

--- Fails unless every element of `got` is within atol + rtol |want| of `want`.
-- want, got: numbers, tensors or nested lists. options: atol (default 0), rtol (default
-- 0), why: the reason of the tolerance.
function testing.near(want, got, options)
  options = options or {}
  local atol, rtol = options.atol or 0, options.rtol or 0
  if (atol > 0 or rtol > 0) and not options.why then error("near: a tolerance needs its reason: why = '...'", 2) end
  check_shape(want, got)
  local a, b = flatten(want, {}), flatten(got, {})
  if #a ~= #b then error(string.format("near: want %d numbers, got %d", #a, #b), 2) end
  local worst, at = 0, nil
  for i = 1, #a do
    local over = excess(a[i], b[i], atol, rtol)
    if over > worst then worst, at = over, i end
  end
  if not at then return end
  local place = #a > 1 and string.format(" element %d of %s", at, describe(want)) or ""
  error(string.format("near:%s want %.17g, got %.17g: off by %.3g, allowed %.3g (%s)", place, a[at], b[at],
    math.abs(a[at] - b[at]), atol + rtol * math.abs(a[at]), options.why or "exact"), 2)
end

local function live()
  collectgarbage()
  collectgarbage()
  return native.live()
end

--- What is open now and was not before: "2 tensors, 1 plan" or nil.
function testing.left_open(before)
  local now, left = live(), {}
  for _, kind in ipairs(watched) do
    local n = now[kind] - before[kind]
    if n > 0 then left[#left + 1] = string.format("%d %s%s", n, kind, n > 1 and kind ~= "data" and "s" or "") end
  end
  return left[1] and table.concat(left, ", ") or nil
end

--- Makes busted fail every test that leaves handles open which a full collection does not close.
function testing.watch(busted)
  local before
  busted.subscribe({ "test", "start" }, function()
    before = live()
    return nil, true
  end)
  busted.subscribe({ "test", "end" }, function()
    local left = testing.left_open(before)
    if left then error("this test leaves open: " .. left, 0) end
    return nil, true
  end, { priority = 1 })
end

return testing
