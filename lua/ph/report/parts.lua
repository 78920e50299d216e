--- The sections of a report as blocks (see ph.report.html), each made from the outcome of a verdict.

local native = require "ph.native"
local axes = require "ph.schema.axes"
local certify = require "ph.certify"
local evidence = require "ph.run.evidence"
local json = require "ph.util.json"
local results = require "ph.run.results"
local runfile = require "ph.run.runfile"
local sorted_keys = require "ph.util.sorted_keys"
local tables = require "ph.util.tables"
local text = require "ph.rules.text"
local verdict = require "ph.registry.verdict"
local words = require "ph.rules.words"

local parts = {}

local most_lines <const> = 12

local function tone(truth)
  if truth == nil then return "open" end
  return truth and "good" or "bad"
end

local function heading(s, level) return { kind = "heading", text = s, level = level } end

-- ---- what came out ----

local function alert(outcome)
  local a, shown = outcome.audit, {}
  for i = 1, math.min(#a.tampered, most_lines) do shown[i] = a.tampered[i] end
  return { kind = "banner", tone = "alert", title = "Tampered: there is no verdict", text = table.concat(shown, "; ") }
end

local function verdict_banner(outcome)
  local j, a = outcome.judged, outcome.audit
  local p = outcome.reg.plan
  if #p.rules + #p.categories == 0 then
    return { kind = "banner", tone = "open", title = "No rules", text = "The plan decides nothing by rules." }
  end
  local why = j.truth == nil and words.reasons(j.reasons) or ""
  if j.truth == nil and j.so_far then why = why .. ". The runs so far would give: " .. j.so_far .. "." end
  if #a.guard > 0 then why = table.concat(a.guard, "; ") end
  local shown = j.truth
  if verdict.unbacked(outcome) then why = "The files of some judged runs are not here. " .. why end
  if #a.guard > 0 or not outcome.reg.lock or verdict.unbacked(outcome) then shown = nil end
  local title = outcome.reg.lock and "Verdict: " or "The rules would say: "
  return { kind = "banner", tone = tone(shown), title = title .. j.category, text = why }
end

--- The head of the page: recovered or unregistered, tampered or judged, and the counts.
function parts.banner(outcome)
  local a, reg, out = outcome.audit, outcome.reg, {}
  if a.recovered then
    out[#out + 1] = {
      kind = "banner", tone = "alert", title = "Recovered ledger",
      text = "Rebuilt from a log; its numbers are log lines, not the files that the runs wrote.",
    }
  end
  if not reg.lock then
    out[#out + 1] = {
      kind = "banner", tone = "open", title = "Not registered",
      text = "The rules were not locked before the runs; what they say proves nothing.",
    }
  end
  out[#out + 1] = outcome.judged and verdict_banner(outcome) or alert(outcome)
  out[#out + 1] = { kind = "facts", rows = {
    { "Runs", string.format("%d of %d", a.present, a.planned) }, { "Test data", verdict.opened_text(a) },
    { "Files", evidence.text(a.evidence) },
    { "Locked", reg.lock and (reg.time or "?") or "no" },
    { "Lock", reg.lock and { text = reg.lock:sub(1, 16), code = true } or "none" },
    { "Deviations", #a.deviations == 0 and "none" or tostring(#a.deviations) },
  } }
  local notes = {}
  for _, list in ipairs { a.missing, a.cut_runs, a.notes } do
    for i = 1, math.min(#list, most_lines) do notes[#notes + 1] = list[i] end
    if #list > most_lines then notes[#notes + 1] = string.format("and %d more", #list - most_lines) end
  end
  if #notes > 0 then out[#out + 1] = { kind = "list", items = notes } end
  return out
end

local function leaf_rows(outcome)
  local rows, leaves = {}, words.leaves(outcome)
  for i, leaf in ipairs(leaves) do
    local at = leaf.at or (#leaves > 1 and leaf.outcome.text or nil)
    rows[i] = {
      at = at, numbers = leaf.numbers, tone = tone(leaf.outcome.truth), truth = words.truth(leaf.outcome.truth),
    }
  end
  return rows
end

local function rule_item(r)
  return {
    name = r.name, tone = tone(r.truth), truth = words.truth(r.truth), formula = r.text, note = r.note,
    rows = leaf_rows(r), reason = r.truth == nil and words.reasons(r.reasons) or nil,
  }
end

function parts.rules(outcome)
  local j, out, items = outcome.judged, {}, {}
  if #j.rules == 0 then return out end
  for i, r in ipairs(j.rules) do items[i] = rule_item(r) end
  out[1], out[2] = heading "Rules", { kind = "rules", items = items }
  if #j.categories == 0 then return out end
  local rows, decided = {}, false
  for i, c in ipairs(j.categories) do
    local here = not decided and c.name == (j.so_far or j.category)
    decided = decided or here
    rows[i] = {
      here and { text = c.name, tone = tone(j.truth) } or c.name, c.text == "otherwise" and "" or words.truth(c.truth),
      c.text,
    }
  end
  out[3] = { kind = "text", tone = "quiet", text = "The decision table; the first line that is true is the verdict." }
  out[4] = { kind = "table", headers = { "verdict", "value", "when" }, rows = rows }
  return out
end

function parts.predictions(outcome)
  local list, rows, papers = outcome.judged.predictions, {}, false
  if #list == 0 then return {} end
  for _, p in ipairs(list) do papers = papers or p.paper ~= nil end
  for i, p in ipairs(list) do
    local score = { text = words.hit(p.hit), tone = tone(p.hit) }
    rows[i] = { p.name, score, p.band, text.figure(p.value) }
    if papers then
      rows[i][5], rows[i][6] = text.figure(p.paper), p.paper and p.value and text.figure(p.value - p.paper) or ""
    end
    local why = p.hit == nil and words.reasons(p.reasons) or p.note or ""
    rows[i][#rows[i] + 1] = why
  end
  local headers = papers and { "prediction", "score", "guessed", "ours", "paper", "difference", "" }
    or { "prediction", "score", "guessed", "ours", "" }
  return {
    heading "Predictions",
    { kind = "text", tone = "quiet",
      text = "Guessed before the runs; scored beside the rules, no part of the verdict." },
    { kind = "table", headers = headers, rows = rows },
  }
end

function parts.deviations(outcome)
  local out = {}
  if not outcome.reg.lock then return out end
  out[1] = heading "Deviations"
  if #outcome.audit.deviations == 0 then
    out[2] = { kind = "text", text = "None: what ran is what was locked." }
    return out
  end
  local rows = {}
  for i, d in ipairs(outcome.audit.deviations) do
    local fields, first = {}, {}
    for _, f in ipairs(d.fields or {}) do
      if not f.field:find "^cells%." then
        fields[#fields + 1] = string.format("%s: %s → %s", f.field, f.locked or "absent", f.now or "absent")
      end
    end
    for k = 1, math.min(#fields, 4) do first[k] = fields[k] end
    rows[i] = { tostring(i), d.time or "", table.concat(first, "; "), d.reason }
  end
  out[2] = { kind = "table", headers = { "", "recorded", "fields", "reason" }, rows = rows }
  return out
end

-- ---- the grid ----

local function state_of(run)
  local r = run.record
  if not r then
    return { text = run.problem and not run.problem:find "^no run" and "failed" or "missing", tone = "open" }
  end
  return { text = r.status, tone = r.status == "done" and "good" or "bad" }
end

local shown_metrics <const> = {
  "val.accuracy", "test.accuracy", "val.loss", "test.loss", "growth", "grad.max", "grad.min", "port.ratio",
}

local function metric_columns(cells)
  local out = {}
  for _, name in ipairs(shown_metrics) do
    for _, cell in ipairs(cells) do
      local m = cell.chosen and cell.chosen.record.metrics or {}
      if m[name] ~= nil then out[#out + 1] = name break end
    end
  end
  return out
end

--- Names of the axes of all cells: sub-grids may have axes of their own.
local function axis_columns(cells)
  local seen = {}
  for _, cell in ipairs(cells) do
    for name in pairs(cell.values) do seen[name] = true end
  end
  local names = sorted_keys(seen)
  table.sort(names, axes.before)
  return names
end

local function select_text(run)
  local names = sorted_keys(run.select)
  for i, k in ipairs(names) do names[i] = k .. "=" .. text.word(run.select[k]) end
  return table.concat(names, " ")
end

local function cell_row(cell, columns, metrics)
  local row, run = {}, cell.chosen or cell.runs[1]
  for i, axis in ipairs(columns) do row[i] = cell.values[axis] ~= nil and text.word(cell.values[axis]) or "" end
  row[#row + 1] = cell.problem and { text = cell.problem:find "^no run" and "missing" or "failed", tone = "open" }
    or state_of(run)
  row[#row + 1] = cell.chosen and select_text(cell.chosen) or ""
  for _, name in ipairs(metrics) do
    local v = cell.chosen and (cell.chosen.record.metrics or {})[name]
    row[#row + 1] = v and text.figure(v) or ""
  end
  row[#row + 1] = cell.chosen and tables.fixed(cell.chosen.record.seconds, 1) or ""
  row[#row + 1] = cell.chosen and { text = cell.chosen.id, code = true } or ""
  return row
end

--- Every cell with its status; large grids show the first cells and say how many there are.
function parts.grid(outcome)
  local cells, most <const> = outcome.audit.table.cells, 400
  if #cells == 0 then return {} end
  local columns, metrics, rows = axis_columns(cells), metric_columns(cells), {}
  for i = 1, math.min(#cells, most) do rows[i] = cell_row(cells[i], columns, metrics) end
  local headers = table.move(columns, 1, #columns, 1, {})
  headers[#headers + 1], headers[#headers + 2] = "status", "chosen"
  table.move(metrics, 1, #metrics, #headers + 1, headers)
  headers[#headers + 1], headers[#headers + 2] = "seconds", "run"
  local said = #cells > most and string.format("The first %d of %d cells.", most, #cells)
    or string.format("%d cells; the candidate of each was chosen on validation.", #cells)
  return {
    heading "Grid", { kind = "text", tone = "quiet", text = said }, { kind = "table", headers = headers, rows = rows },
  }
end

-- ---- certificates, plan, provenance ----

-- A certificate at the trained weights of a cell's chosen run, else by construction from the registered IR text.
local function certificate(outcome, cell, planned)
  local path = cell.chosen and results.run_path(outcome.dir, cell.chosen.id)
  local run = path and native.stat(path) and runfile.open(path)
  if not run then
    local ir = (outcome.reg.ir or {})[planned.ir]
    return ir and certify.of(ir), cell.label .. ", by construction"
  end
  local c, group = certify.of_run(run)
  run.file:close()
  return c, string.format("%s, %s weights", cell.chosen.label, group)
end

--- One certificate for each model of the grid, at the weights of the first cell that has it.
function parts.certificates(outcome)
  local out, seen, most <const> = { heading "Certificates" }, {}, 40
  out[2] = {
    kind = "text", tone = "quiet",
    text = "Bounds by construction and at the first seed's trained weights; measured values are not bounds.",
  }
  for i, cell in ipairs(outcome.audit.table.cells) do
    local planned = outcome.reg.plan.cells[i]
    if not seen[planned.ir] and #out < most + 2 then
      seen[planned.ir] = true
      local c, title = certificate(outcome, cell, planned)
      if c then out[#out + 1] = { kind = "code", title = title, text = table.concat(certify.report(c), "\n") } end
    end
  end
  return #out > 2 and out or {}
end

local function leaf_text(v)
  if type(v) ~= "table" then return text.word(v) end
  local out = {}
  if #v > 0 then
    for i, x in ipairs(v) do out[i] = leaf_text(x) end
    return table.concat(out, ", ")
  end
  local keys = sorted_keys(v)
  for i, k in ipairs(keys) do out[i] = k .. " " .. leaf_text(v[k]) end
  return table.concat(out, ", ")
end

local function plan_rows(p)
  local rows = {}
  local function row(name, v) rows[#rows + 1] = { name, leaf_text(v) } end
  local grids = #p.grid > 0 and p.grid or { p.grid }
  for i, g in ipairs(grids) do
    local names = sorted_keys(g)
    for k, name in ipairs(names) do names[k] = name .. " " .. leaf_text(g[name]) end
    rows[#rows + 1] = { #grids > 1 and "Grid " .. i or "Grid", table.concat(names, "; ") }
  end
  if p.select then
    rows[#rows + 1] = { "Candidates", leaf_text(p.select.candidates) .. "; chosen by " .. p.select.by }
  end
  for _, t in ipairs(p.tasks or {}) do
    local values = {}
    for k, v in pairs(t) do if k ~= "name" then values[k] = v end end
    row("Task " .. t.name:gsub("^task%.", ""), values)
  end
  row("Protocol", p.train)
  row("Measures", #p.measure > 0 and p.measure or "none")
  row("Seeds", p.seeds == "lock" and "from the lock" or "from the grid")
  for _, g in ipairs(p.gates or {}) do rows[#rows + 1] = { "Gate", g.dir .. " must be '" .. g.verdict .. "'" } end
  return rows
end

function parts.plan(outcome)
  local reg = outcome.reg
  return { heading "Plan", { kind = "facts", rows = plan_rows(reg.plan) } }
end

-- The spec and the files beside it, folded up.
local function spec_texts(source)
  local out = {}
  if not source or not source.text then return out end
  out[1] = {
    kind = "code", title = "The spec" .. (source.file and ", " .. source.file or ""), text = source.text,
    language = "lua",
  }
  for _, f in ipairs(source.files or {}) do
    out[#out + 1] = { kind = "code", title = f.path, text = f.text, language = "lua" }
  end
  return out
end

local function first_file(outcome)
  for _, cell in ipairs(outcome.audit.table.cells) do
    local run = cell.chosen
    if run and native.stat(results.run_path(outcome.dir, run.id)) then
      return runfile.open(results.run_path(outcome.dir, run.id))
    end
  end
end

function parts.provenance(outcome)
  local rows, run = {}, first_file(outcome)
  local m = run and json.decode(run.file:text "/provenance") or {}
  if run then run.file:close() end
  local function row(name, v) if v ~= nil and v ~= "" then rows[#rows + 1] = { name, tostring(v) } end end
  row("Program",
    m.version and "phrun " .. m.version .. (m.commit and m.commit ~= "" and " (" .. m.commit .. ")" or "")
      or outcome.reg.version)
  row("CPU", m.cpu)
  row("Kernels", m.kernels_f32 and "float32 " .. m.kernels_f32 .. ", float64 " .. m.kernels_f64)
  row("System", m.os)
  row("Compiler", m.compiler)
  local seconds = 0
  for _, cell in ipairs(outcome.audit.table.cells) do
    for _, r in ipairs(cell.runs) do seconds = seconds + (r.record and r.record.seconds or 0) end
  end
  row("Training time, all runs", tables.duration(seconds))
  row("Ledger",
    string.format("%d events in one chain, last hash %s", #outcome.audit.state.events,
      (outcome.audit.state.last or ""):sub(1, 16)))
  row("Lock", outcome.reg.lock)
  local out = { heading "Provenance", { kind = "facts", rows = rows } }
  for _, b in ipairs(spec_texts(outcome.reg.source)) do out[#out + 1] = b end
  return out
end

-- ---- what a report without registration needs ----

--- The spec's text and name from the newest run file.
function parts.spec_text(dir, state)
  for i = #state.runs, 1, -1 do
    local path = results.run_path(dir, state.runs[i].run)
    local run = native.stat(path) and runfile.open(path)
    if run then
      local body, file = run.file:text "/spec/text", run.file:text "/spec/file"
      run.file:close()
      return body, file
    end
  end
end

--- The overrides that the last program on the directory was started with.
function parts.overrides(state)
  for i = #state.events, 1, -1 do
    if state.events[i].event == "opened" then return state.events[i].overrides or {} end
  end
  return {}
end

--- Metrics that the figures show: nil for the usual ones.
function parts.figure_metrics(reg)
  local named = reg.figures
  return type(named) == "table" and #named > 0 and named or nil
end

return parts
