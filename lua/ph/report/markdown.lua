--- A document (see ph.report.html) as Markdown. Figures become tables of the numbers that they draw.

local markdown = {}

local function plain(c)
  return (type(c) == "table" and c.text or tostring(c))
end

-- A cell stays on its line and in its column.
local function cell(c)
  local s = plain(c):gsub("\n", " "):gsub("|", "\\|")
  return type(c) == "table" and c.code and s ~= "" and "`" .. s .. "`" or s
end

local function one_line(s)
  return (s:gsub("%s*\n%s*", " "))
end

local block = {}

function block.heading(b) return string.rep("#", b.level or 2) .. " " .. one_line(b.text) end

function block.text(b) return one_line(b.text) end

function block.banner(b)
  return "> **" .. one_line(b.title) .. "**" .. (b.text and b.text ~= "" and "\n>\n> " .. one_line(b.text) or "")
end

function block.facts(b)
  local out = {}
  for i, row in ipairs(b.rows) do
    out[i] = string.format("- %s: %s", row[1],
      one_line(type(row[2]) == "table" and row[2].code and "`" .. row[2].text .. "`" or plain(row[2])))
  end
  return table.concat(out, "\n")
end

function block.list(b)
  local out = {}
  for i, item in ipairs(b.items) do out[i] = "- " .. one_line(plain(item)) end
  return table.concat(out, "\n")
end

function block.table(b)
  local out = { "| " .. table.concat(b.headers, " | ") .. " |", "|" .. string.rep(" --- |", #b.headers) }
  for _, row in ipairs(b.rows) do
    local cells = {}
    for i = 1, #b.headers do cells[i] = cell(row[i] or "") end
    out[#out + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(out, "\n")
end

function block.rules(b)
  local out = {}
  for _, r in ipairs(b.items) do
    local lines = { string.format("### %s: %s", one_line(r.name), r.truth), "", "`" .. r.formula .. "`" }
    if r.rows and #r.rows > 0 then
      lines[#lines + 1] = ""
      for _, row in ipairs(r.rows) do
        lines[#lines + 1] = string.format("- %s%s: %s", row.at and row.at .. ": " or "", row.numbers or "", row.truth)
      end
    end
    if r.reason and r.reason ~= "" then lines[#lines + 1] = "\n" .. one_line(r.reason) end
    if r.note then lines[#lines + 1] = "\n" .. one_line(r.note) end
    out[#out + 1] = table.concat(lines, "\n")
  end
  return table.concat(out, "\n\n")
end

function block.figures(b)
  local out = {}
  for _, f in ipairs(b.items) do
    out[#out + 1] = "### " .. one_line(f.title) .. "\n\n" .. block.table(f.data)
  end
  return table.concat(out, "\n\n")
end

function block.code(b)
  local fence = "```"
  while b.text:find(fence, 1, true) do fence = fence .. "`" end
  return one_line(b.title) .. "\n\n" .. fence .. (b.language or "") .. "\n" .. b.text:gsub("\n*$", "") .. "\n" .. fence
end

--- The document as Markdown text.
function markdown.page(doc)
  local out = { "# " .. one_line(doc.title) }
  if doc.subtitle then out[#out + 1] = one_line(doc.subtitle) end
  for _, b in ipairs(doc.blocks) do out[#out + 1] = block[b.kind](b) end
  return table.concat(out, "\n\n") .. "\n"
end

return markdown
