--- `phrun report DIR`: the whole experiment on one page, DIR/report.html and DIR/report.md: question, plan, grid with
-- status, rules with numbers and truth values, predictions, deviations, figures, certificates, provenance. Made from
-- the results directory alone; the same results give the same page.

local native = require "ph.native"
local fault = require "ph.util.fault"
local figures = require "ph.report.charts"
local html = require "ph.report.html"
local ledger = require "ph.run.ledger"
local markdown = require "ph.report.markdown"
local options = require "ph.verb.options"
local parts = require "ph.report.parts"
local registration = require "ph.registry.registration"
local spec = require "ph.lang.spec"
local verdict = require "ph.registry.verdict"

local report = {}

function report.arguments(parser)
  parser:argument("spec"):argname "DIR|SPEC":description "a results directory, or the spec it belongs to"
  parser:argument("overrides"):argname "key=value":args "*":description "changes of the command line"
  options.out(parser)
end

-- Without a registration the spec that the newest run file carries tells the rules and the grid.
local function unregistered(dir, experiment)
  if experiment then return verdict.unlocked(experiment) end
  local state = fault.check(fault.RUNTIME, ledger.read(dir))
  if state.missing then fault.raise(fault.RUNTIME, "%s: not a results directory (it has no ledger.jsonl)", dir) end
  if state.problem then fault.raise(fault.TAMPERED, "%s", state.problem) end
  local text, file = parts.spec_text(dir, state)
  if not text then fault.raise(fault.RUNTIME, "%s: no registration and no run file to read the spec from", dir) end
  local loaded, problems = spec.load_text(text, file, parts.overrides(state))
  if not loaded then
    fault.raise(fault.RUNTIME, "%s: the spec in its run files does not load: %s; name the spec instead", dir,
      problems[1].text)
  end
  local reg = verdict.unlocked(loaded)
  reg.source = { file = file, text = text }
  return reg
end

local function find(args)
  local at = native.stat(args.spec)
  if at and at.kind == "dir" then
    local dir = args.spec:gsub("(.)/+$", "%1")
    return dir, registration.read(dir) or unregistered(dir)
  end
  local experiment = options.load(args)
  local dir = options.directory(args, experiment)
  if not native.stat(dir) then fault.raise(fault.RUNTIME, "%s: no such directory: nothing has been run", dir) end
  local reg = registration.read(dir) or unregistered(dir, experiment)
  reg.source = reg.source or experiment.source
  return dir, reg
end

local function push(blocks, more)
  for _, b in ipairs(more) do blocks[#blocks + 1] = b end
end

--- The document of an outcome (see ph.report.html for its blocks).
function report.document(outcome)
  local reg = outcome.reg
  local doc = { title = reg.plan.name, subtitle = reg.plan.note, blocks = {} }
  push(doc.blocks, parts.banner(outcome))
  push(doc.blocks, parts.plan(outcome))
  if outcome.judged then
    push(doc.blocks, parts.rules(outcome))
    push(doc.blocks, parts.predictions(outcome))
  end
  push(doc.blocks, parts.deviations(outcome))
  local drawn = figures.all(outcome.audit.table, parts.figure_metrics(reg))
  if #drawn > 0 then
    push(doc.blocks, {
      { kind = "heading", text = "Figures" }, { kind = "text", tone = "quiet", text = figures.caption },
      { kind = "figures", items = drawn },
    })
  end
  push(doc.blocks, parts.grid(outcome))
  push(doc.blocks, parts.certificates(outcome))
  push(doc.blocks, parts.provenance(outcome))
  return doc
end

function report.main(args)
  local dir, reg = find(args)
  local doc = report.document(verdict.of(dir, reg))
  for name, text in pairs { ["report.html"] = html.page(doc), ["report.md"] = markdown.page(doc) } do
    fault.check(fault.RUNTIME, native.write_file(dir .. "/" .. name, text))
  end
  native.write(1, string.format("%s/report.html\n%s/report.md\n", dir, dir))
  return 0
end

return report
