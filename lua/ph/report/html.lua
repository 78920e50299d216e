--- A document as one self-contained HTML page: no network, no script, styles for light and dark, for desktop and phone.
--
-- A document is { title, subtitle, blocks }; a block is one of
--   { kind = "heading", text, level = 2|3 }            { kind = "text", text, tone = nil|"quiet" }
--   { kind = "banner", tone = "good"|"bad"|"open"|"alert", title, text }
--   { kind = "facts", rows = { { name, value } } }     { kind = "list", items }
--   { kind = "table", headers, rows }                  a cell is a text or { text =, tone =, code = true }
--   { kind = "rules", items = { rule, ... } }          a rule is { name, tone, truth, formula, note, reason,
--                                                                  rows = { { at, numbers, tone, truth } } }
--   { kind = "figures", items = { { svg, legend, title, data } } }
--   { kind = "code", title, text }
-- ph.report.markdown prints the same blocks as Markdown.

local chart = require "ph.report.chart"
local style = require "ph.report.style"

local html = {}

local escape = chart.escape

local function slug(s)
  return (s:lower():gsub("[^%w]+", "-"):gsub("^%-+", ""):gsub("%-+$", ""))
end

local function badge(tone, s)
  return string.format('<span class="badge %s">%s</span>', tone, escape(s))
end

local function cell(c)
  if type(c) ~= "table" then return escape(c) end
  if c.tone then return badge(c.tone, c.text) end
  if c.code then return "<code>" .. escape(c.text) .. "</code>" end
  return escape(c.text)
end

local function is_number(c)
  return type(c) == "string" and c:find "^[-+]?%.?%d" ~= nil and not c:find "%a%a%a"
end

local block = {}

function block.heading(b)
  local level = b.level or 2
  return string.format('<h%d id="%s">%s</h%d>', level, slug(b.text), escape(b.text), level)
end

function block.text(b)
  return string.format("<p%s>%s</p>", b.tone and string.format(' class="%s"', b.tone) or "", escape(b.text))
end

function block.banner(b)
  return string.format('<div class="banner %s"><strong>%s</strong>%s</div>', b.tone, escape(b.title),
    b.text and b.text ~= "" and "<p>" .. escape(b.text) .. "</p>" or "")
end

function block.facts(b)
  local out = { '<dl class="facts">' }
  for _, row in ipairs(b.rows) do
    out[#out + 1] = string.format("<div><dt>%s</dt><dd>%s</dd></div>", escape(row[1]), cell(row[2]))
  end
  out[#out + 1] = "</dl>"
  return table.concat(out)
end

function block.list(b)
  local out = {}
  for i, item in ipairs(b.items) do out[i] = "<li>" .. cell(item) .. "</li>" end
  return "<ul>" .. table.concat(out) .. "</ul>"
end

function block.table(b)
  local out = { '<div class="scroll" tabindex="0"><table><thead><tr>' }
  for i, h in ipairs(b.headers) do
    out[#out + 1] = string.format("<th%s>%s</th>", b.rows[1] and is_number(b.rows[1][i]) and ' class="n"' or "",
      escape(h))
  end
  out[#out + 1] = "</tr></thead><tbody>"
  for _, row in ipairs(b.rows) do
    out[#out + 1] = "<tr>"
    for i = 1, #b.headers do
      local c = row[i] or ""
      local class = is_number(c) and ' class="n"' or type(c) == "string" and #c > 36 and ' class="wide"' or ""
      out[#out + 1] = string.format("<td%s>%s</td>", class, cell(c))
    end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</tbody></table></div>"
  return table.concat(out)
end

local function rule_rows(rows)
  if not rows or #rows == 0 then return "" end
  local out = { '<div class="leaves">' }
  for _, r in ipairs(rows) do
    out[#out + 1] = string.format('<span class="at">%s</span><span class="nums">%s</span>%s', escape(r.at or ""),
      escape(r.numbers or ""), badge(r.tone, r.truth))
  end
  out[#out + 1] = "</div>"
  return table.concat(out)
end

function block.rules(b)
  local out = {}
  for _, r in ipairs(b.items) do
    out[#out + 1] = string.format(
      '<section class="rule"><header><h3>%s</h3>%s</header><p class="formula"><code>%s</code></p>%s%s%s</section>',
      escape(r.name), badge(r.tone, r.truth), escape(r.formula), rule_rows(r.rows),
      r.reason and r.reason ~= "" and '<p class="reason">' .. escape(r.reason) .. "</p>" or "",
      r.note and '<p class="quiet">' .. escape(r.note) .. "</p>" or "")
  end
  return '<div class="rules">' .. table.concat(out) .. "</div>"
end

function block.figures(b)
  local out = {}
  for _, f in ipairs(b.items) do
    out[#out + 1] = string.format("<figure><h3>%s</h3>%s%s</figure>", escape(f.title), f.svg, f.legend or "")
  end
  return '<div class="figures">' .. table.concat(out) .. "</div>"
end

function block.code(b)
  return string.format("<details><summary>%s</summary><pre><code>%s</code></pre></details>", escape(b.title),
    escape(b.text))
end

--- The page of a document, as text.
function html.page(doc)
  local out = {
    "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">', "<title>" .. escape(doc.title) .. "</title>",
    "<style>" .. style .. "</style></head><body><main>",
    "<header class=\"top\"><h1>" .. escape(doc.title) .. "</h1>"
    .. (doc.subtitle and "<p class=\"quiet\">" .. escape(doc.subtitle) .. "</p>" or "") .. "</header>",
  }
  for _, b in ipairs(doc.blocks) do out[#out + 1] = block[b.kind](b) end
  out[#out + 1] = "</main></body></html>\n"
  return table.concat(out, "\n")
end

return html
