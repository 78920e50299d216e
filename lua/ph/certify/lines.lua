--- Certificates as lines for a person.

local lines = {}

local function number(v)
  if v == math.huge then return "infinity" end
  if v == -math.huge then return "-infinity" end
  if v ~= v then return "unknown" end
  return string.format("%.5g", v)
end

--- e^x as a power of ten when it is large.
local function power(x)
  if x == -math.huge then return "0" end
  if x == math.huge then return "infinity" end
  if math.abs(x) < 7 then return string.format("%.4g", math.exp(x)) end
  return string.format("10^%.4g", x / math.log(10))
end

local function line(out, what, text, mark)
  out[#out + 1] = string.format("    %-16s %s%s", what, text, mark and "  [" .. mark .. "]" or "")
end

local construction <const>, weights <const> = "by construction", "at these weights"

local function channel_lines(out, s)
  local c, w = s.construction, s.at_weights
  if c.gain == 0 then
    line(out, "state channel", "none: the state passes through nonlinear ops only", construction)
    return
  elseif c.gain <= 1 then
    line(out, "state channel",
      c.least >= 1 and "keeps every norm: gain 1"
        or "gain at most 1" .. (c.least > 0 and ", at least " .. number(c.least) or ""), construction)
  else
    line(out, "state channel",
      c.facts.gain == math.huge and "no bound: its matrix is free" or "gain at most " .. number(c.gain), construction)
  end
  if w then
    line(out, "",
      string.format("largest layer gain %s, product over all %d %s", number(w.gain), s.depth, power(w.gain_log)),
      weights)
  end
end

local function port_lines(out, s)
  local c, w = s.construction, s.at_weights
  if c.port.z == 0 and c.port.u == 0 and c.port.one == 0 and not c.reads then
    line(out, "ports", "none", construction)
    return
  end
  local bounded = c.port.z == 0 and not (w and w.port == math.huge)
  local how = bounded and c.reads and "read the state, saturate: bounded whatever the state"
    or c.reads and "read the state and do not saturate" or "do not read the state"
  line(out, "ports", how, construction)
  if not w then return end
  local first = s.at_weights.layers[1].port
  if first.z > 0 then
    line(out, "", string.format("first layer: at most %s ||z|| + %s", number(first.z), number(first.one)), weights)
  else
    line(out, "",
      string.format("sum over %s at most %s%s", s.driven and "steps" or "layers", number(w.port),
        w.input > 0 and string.format(" + %s sum||u||", number(w.input)) or ""), weights)
  end
end

local function ceiling_lines(out, s)
  local c, w = s.construction, s.at_weights
  local last = s.driven and "||x_T||" or "||z_L||"
  local held = w and w.held > 0 and string.format(" + %s max||u||", number(w.held)) or ""
  if w and w.factor_log == -math.huge then
    line(out, "norm ceiling", string.format("%s <= %s%s whatever the start", last, number(w.added), held), weights)
  elseif c.gain == 0 and c.port.z == 0 then
    line(out, "norm ceiling", "every state is bounded whatever the start; the number needs weights", construction)
  elseif c.additive then
    line(out, "norm ceiling", last .. " <= start + what the ports add", construction)
    if w then
      line(out, "",
        string.format("%s <= start + %s%s", last, number(w.added),
          w.input > 0 and " + " .. number(w.input) .. " sum||u||" or ""), weights)
    end
  elseif w then
    line(out, "norm ceiling",
      string.format("%s <= %s start + %s%s", last, power(w.factor_log), number(w.added), held), weights)
  else
    line(out, "norm ceiling",
      "none by construction; there is one at any given weights"
        .. (c.port.z == math.huge and c.port.one == math.huge and " only if its ops have rules" or ""), construction)
  end
end

local function gradient_lines(out, s)
  local c, w = s.construction, s.at_weights
  if s.terms then
    line(out, "gradients",
      "the gradient law does not apply: a term of the loss adds a gradient of its own at every iteration", construction)
    return
  end
  if s.read then
    line(out, "gradients",
      "the gradient law does not apply: the read-out of every iteration adds a gradient of its own", construction)
    return
  elseif c.reads then
    line(out, "gradients", "the gradient law does not hold: a port reads the state, so a layer can amplify",
      construction)
  elseif c.gain <= 1 then
    line(out, "gradients",
      "never amplified going down" .. (c.least > 0 and ", each layer keeps at least " .. number(c.least) or ""),
      construction)
  else
    line(out, "gradients", "no bound", construction)
  end
  if w then
    line(out, "",
      string.format("||g_0||/||g_L|| between %s and %s; largest layer slope %s", power(w.least_log), power(w.lip_log),
        number(w.lip_most)), weights)
  end
end

local function volume_lines(out, s)
  local c, w = s.construction, s.at_weights
  local bracket = c.channel
  if c.gain == 0 then
    if w then
      line(out, "log-volume", string.format("whole map: between %s and %s", number(w.low), number(w.high)), weights)
    end
    return
  end
  if bracket[1] == 0 and bracket[2] == 0 then
    line(out, "log-volume", "the state channel keeps volume exactly", construction)
  elseif bracket[2] < math.huge and bracket[1] == bracket[2] then
    line(out, "log-volume", string.format("a layer of the state channel: %s", number(bracket[1])), construction)
  elseif bracket[2] < math.huge then
    line(out, "log-volume",
      string.format("a layer of the state channel: between %s and %s", number(bracket[1]), number(bracket[2])),
      construction)
  end
  if not w then return end
  line(out, bracket[2] < math.huge and "" or "log-volume",
    string.format("state channel %s%s", number(w.channel[1]), w.meter and ", meter " .. number(w.meter) or ""), weights)
  if c.reads then
    line(out, "", string.format("whole map, ports included: between %s and %s", number(w.low), number(w.high)), weights)
  end
end

local function stream_lines(out, s)
  out[#out + 1] = string.format("  segment %d: stream over %s, %d %s, width %d", s.index,
    s.driven and "time" or "depth", s.depth, s.driven and "steps" or "layers", s.width)
  channel_lines(out, s)
  port_lines(out, s)
  ceiling_lines(out, s)
  gradient_lines(out, s)
  volume_lines(out, s)
  if #s.uncovered > 0 then
    line(out, "no rule for", table.concat(s.uncovered, ", ") .. ": bounds through them are infinite")
  end
end

local function once_lines(out, s)
  local w = s.at_weights
  out[#out + 1] = string.format("  segment %d: stage, width %d", s.index, s.width)
  if w then
    line(out, "norm", string.format("at most %s ||in|| + %s", number(w.gain + w.layers[1].port.z), number(w.added)),
      weights)
    line(out, "slope", "at most " .. number(w.lip_most), weights)
  else
    line(out, "norm", "no bound without weights", construction)
  end
end

--- The lines of a certificate.
function lines.of(certificate)
  local out = {}
  if certificate.work then
    out[1] = string.format("  by construction alone: at these weights the singular values of all matrices would take "
      .. "%.1g operations, and a certificate takes 1e+10 at most", certificate.work)
  end
  for _, s in ipairs(certificate.segments) do
    if s.once then once_lines(out, s) else stream_lines(out, s) end
  end
  return out
end

return lines
