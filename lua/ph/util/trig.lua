--- Sine and cosine in plain double arithmetic: the same bits on every machine, which the C library does not promise.

local trig = {}

local pi <const> = math.pi
-- pi/2 in two parts: the first has 33 bits, so that k * first is exact for the k used here (|k| < 2^20).
local half_hi <const>, half_lo <const> = 1.57079632673412561417e+00, 6.07710050650619224932e-11

--- Taylor series on |x| <= pi/4, nested; error below 1e-16.
local function sine(x)
  local x2 = x * x
  local s = 1
  for k = 17, 3, -2 do s = 1 - s * x2 / (k * (k - 1)) end
  return x * s
end

local function cosine(x)
  local x2 = x * x
  local s = 1
  for k = 18, 2, -2 do s = 1 - s * x2 / (k * (k - 1)) end
  return s
end

--- sin and cos of an angle, |x| < 1e6.
function trig.sincos(x)
  local k = math.floor(x / (pi / 2) + 0.5)
  local r = (x - k * half_hi) - k * half_lo
  local s, c = sine(r), cosine(r)
  local quarter = k % 4
  if quarter == 0 then return s, c end
  if quarter == 1 then return c, -s end
  if quarter == 2 then return -s, -c end
  return -c, s
end

function trig.cos(x)
  local _, c = trig.sincos(x)
  return c
end

return trig
