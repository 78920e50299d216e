--- Rules in words: one line a reader understands, made from the data alone.

local json = require "ph.util.json"

local text = {}

local function word(v)
  return type(v) == "number" and json.number(v) or tostring(v)
end
text.word = word

local function words(list)
  local out = {}
  for i, v in ipairs(list) do out[i] = word(v) end
  return table.concat(out, "|")
end

--- "depth >= 48", "family != ph", "depth = 240"; `each` is left to the caller.
function text.selector(axis, s)
  if s.is ~= nil then return axis .. "=" .. word(s.is) end
  if s.any then return axis .. "=" .. words(s.any) end
  if s.except then return axis .. "!=" .. words(s.except) end
  if s.at_least then return axis .. ">=" .. word(s.at_least) end
  if s.at_most then return axis .. "<=" .. word(s.at_most) end
  return axis
end

--- "family=ph, depth=240", axes by name; "" when nothing is named.
function text.filter(where)
  local axes, out = {}, {}
  for axis in pairs(where or {}) do axes[#axes + 1] = axis end
  table.sort(axes)
  for i, axis in ipairs(axes) do out[i] = text.selector(axis, where[axis]) end
  return table.concat(out, ", ")
end

local function bracket(parts)
  local kept = {}
  for _, p in ipairs(parts) do
    if p and p ~= "" then kept[#kept + 1] = p end
  end
  return #kept > 0 and " [" .. table.concat(kept, "; ") .. "]" or ""
end

local number = {}

--- The line of a number expression.
function text.number(node)
  if type(node) ~= "table" then return word(node) end
  return number[node.op](node)
end

local function statistic(node)
  if node.of then return string.format("%s over %s of (%s)", node.op, text.filter(node.over), text.number(node.of)) end
  return node.op .. " " .. node.metric .. bracket {
    text.filter(node.where), node.runs == "all" and "all candidates",
    node.diverged and "diverged counts as " .. word(node.diverged),
  }
end

for _, op in ipairs { "mean", "sd", "median", "min", "max", "sum" } do number[op] = statistic end

function number.count(node)
  local what = node.status or "runs"
  if node.metric then
    what = what .. " with " .. node.metric .. (node.cmp and " " .. node.cmp .. " " .. word(node.bound) or "")
  end
  return "count " .. what .. bracket { text.filter(node.where), node.runs == "all" and "all candidates" }
end

function number.gap(node) return string.format("(%s) - (%s)", text.number(node.left), text.number(node.right)) end

function number.ratio(node) return string.format("(%s) / (%s)", text.number(node.left), text.number(node.right)) end

function number.rank(node)
  local axis, own = next(node.at)
  return string.format("rank of %s=%s in %s%s", axis, word(own), text.number(node.of), bracket {
    node.order == "high" and "1 is highest" or "1 is lowest",
    node.among and "among " .. text.selector(axis, node.among),
    node.ties == "worst" and "ties count against",
  })
end

local condition = {}

--- The line of a condition.
function text.condition(node)
  return condition[node.op](node)
end

function condition.compare(node)
  return string.format("%s %s %s", text.number(node.left), node.cmp, text.number(node.right))
end

function condition.band(node)
  return string.format("%s in [%s, %s]", text.number(node.value), text.number(node.low), text.number(node.high))
end

local function joined(node)
  local out = {}
  for i, c in ipairs(node.of) do out[i] = text.condition(c) end
  return node.op .. " of (" .. table.concat(out, "; ") .. ")"
end
condition.all, condition.any, condition.none = joined, joined, joined

local function over(node)
  return string.format("%s %s: %s", node.op, text.filter(node.over), text.condition(node.of))
end
condition.every, condition.some = over, over

function condition.rule(node) return "'" .. node.name .. "'" end

function condition.unevaluable(node) return "not evaluable (" .. text.condition(node.of) .. ")" end

--- A number for people: four significant digits, integers whole.
function text.figure(v)
  if v == nil then return "-" end
  if v == math.floor(v) and math.abs(v) < 1e6 then return string.format("%d", math.tointeger(v)) end
  local a = math.abs(v)
  if a ~= 0 and (a < 1e-3 or a >= 1e6) and a < math.huge then
    return (string.format("%.3g", v):gsub("e([+-])0*", { ["+"] = "e", ["-"] = "e-" }))
  end
  return string.format(a >= 1000 and a < math.huge and "%.0f" or "%.4g", v)
end

--- "in [0.5, 2]", ">= 0.95", "<= 2": the band of a prediction.
function text.band(p)
  if p.low and p.high then return string.format("in [%s, %s]", text.figure(p.low), text.figure(p.high)) end
  if p.low then return ">= " .. text.figure(p.low) end
  return "<= " .. text.figure(p.high)
end

return text
