--- The verdict in lines for a terminal, and the pieces that the report shares: truth in words, numbers of a rule.

local tables = require "ph.util.tables"
local text = require "ph.rules.text"

local out = {}

local most_reasons <const> = 3

--- "true", "false", "not evaluable".
function out.truth(v)
  if v == nil then return "not evaluable" end
  return tostring(v)
end

--- "hit", "missed", "not evaluable".
function out.hit(v)
  if v == nil then return "not evaluable" end
  return v and "hit" or "missed"
end

--- Reasons on one line, at most three.
function out.reasons(list)
  if not list or #list == 0 then return "" end
  local shown = table.concat(list, "; ", 1, math.min(#list, most_reasons))
  return #list > most_reasons and string.format("%s; and %d more", shown, #list - most_reasons) or shown
end

local function side(n)
  return n.value and text.figure(n.value) or "?"
end

--- The numbers of one comparison: "3.214 <= 2", "3.214 in [0.5, 2]"; nil for a condition without own numbers.
function out.numbers(outcome, node)
  if not outcome.numbers then return nil end
  local n = outcome.numbers
  if node == "band" or #n == 3 then return string.format("%s in [%s, %s]", side(n[1]), side(n[2]), side(n[3])) end
  return string.format("%s %s %s", side(n[1]), outcome.cmp or "vs", side(n[2]))
end

--- Leaves of an outcome as rows { at, numbers, truth, reasons }: what stands in the table under a rule.
function out.leaves(outcome, at, rows)
  rows = rows or {}
  at = outcome.at and (at and at .. ", " .. outcome.at or outcome.at) or at
  if outcome.children then
    for _, c in ipairs(outcome.children) do out.leaves(c, at, rows) end
    if #outcome.children == 0 then rows[#rows + 1] = { at = at, outcome = outcome, numbers = "" } end
  elseif outcome.refers then
    rows[#rows + 1] = { at = at, outcome = outcome, numbers = "'" .. outcome.refers .. "'" }
  else
    rows[#rows + 1] = { at = at, outcome = outcome, numbers = out.numbers(outcome) or "" }
  end
  return rows
end

local function rule_rows(rows, outcome)
  local leaves = out.leaves(outcome)
  local single = #leaves == 1 and not leaves[1].at
  rows[#rows + 1] = {
    outcome.name, out.truth(outcome.truth), single and leaves[1].numbers or "",
    outcome.truth == nil and out.reasons(outcome.reasons) or "",
  }
  for _, leaf in ipairs(single and {} or leaves) do
    local why = leaf.outcome.truth == nil and out.reasons(leaf.outcome.reasons) or ""
    rows[#rows + 1] = { "  " .. (leaf.at or leaf.outcome.text), out.truth(leaf.outcome.truth), leaf.numbers, why }
  end
end

local function push(lines, more)
  for _, line in ipairs(more) do lines[#lines + 1] = line end
end

local function rules_part(lines, judged)
  if #judged.rules == 0 then return end
  local rows = {}
  for _, r in ipairs(judged.rules) do rule_rows(rows, r) end
  push(lines, tables.render({ "rule", "value", "numbers", "" }, rows))
  lines[#lines + 1] = ""
end

local function categories_part(lines, judged)
  if #judged.categories == 0 then return end
  local rows = {}
  for i, c in ipairs(judged.categories) do
    rows[i] = { c.name, c.truth == true and c.text == "otherwise" and "" or out.truth(c.truth), c.text }
  end
  push(lines, tables.render({ "category (first that is true)", "value", "when" }, rows))
  lines[#lines + 1] = ""
end

local function predictions_part(lines, judged)
  if #judged.predictions == 0 then return end
  local rows, papers = {}, false
  for _, p in ipairs(judged.predictions) do papers = papers or p.paper ~= nil end
  for i, p in ipairs(judged.predictions) do
    rows[i] = { p.name, out.hit(p.hit), text.figure(p.value), p.band }
    if papers then rows[i][5] = text.figure(p.paper) end
    rows[i][#rows[i] + 1] = out.reasons(p.reasons)
  end
  push(lines,
    tables.render(
      papers and { "prediction", "score", "ours", "guessed", "paper", "" }
        or { "prediction", "score", "ours", "guessed", "" }, rows))
  lines[#lines + 1] = ""
end

--- All tables of a judgement as lines.
function out.tables(judged)
  local lines = {}
  rules_part(lines, judged)
  categories_part(lines, judged)
  predictions_part(lines, judged)
  return lines
end

return out
