--- `phrun report DIR`: the whole experiment on one page, DIR/report.html and DIR/report.md: question, plan, grid with
-- status, rules with numbers and truth values, predictions, deviations, figures, certificates, provenance. Made from
-- the results directory alone; the same results give the same page.

local native = require "ph.native"
local fault = require "ph.util.fault"
local charts = require "ph.report.charts"
local html = require "ph.report.html"
local ledger = require "ph.run.ledger"
local markdown = require "ph.report.markdown"
local options = require "ph.verb.options"
local parts = require "ph.report.parts"
local registration = require "ph.registry.registration"
local sorted_keys = require "ph.util.sorted_keys"
local spec = require "ph.spec"
local verdict = require "ph.registry.verdict"

local report = {}

function report.arguments(parser)
  parser:argument("spec"):argname "DIR|SPEC":description "a results directory, or the spec it belongs to"
  parser:argument("overrides"):argname "key=value":args "*":description "changes of the command line"
  parser:option "--out":argname "PATH"
    :description "with DIR: where the page goes, a directory or a file (.html, .md); with SPEC: the results directory"
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

-- The directory, its registration, and where the page goes.
local function find(args)
  local at = native.stat(args.spec)
  if at and at.kind == "dir" then
    local dir = args.spec:gsub("(.)/+$", "%1")
    return dir, registration.read(dir) or unregistered(dir), (args.out or dir):gsub("(.)/+$", "%1")
  end
  local experiment = options.load(args)
  local dir = options.directory(args, experiment)
  if not native.stat(dir) then fault.raise(fault.RUNTIME, "%s: no such directory: nothing has been run", dir) end
  local reg = registration.read(dir) or unregistered(dir, experiment)
  reg.source = reg.source or experiment.source
  return dir, reg, dir
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
  local drawn = charts.all(outcome.audit.table, parts.figure_metrics(reg))
  if #drawn > 0 then
    push(doc.blocks, {
      { kind = "heading", text = "Figures" }, { kind = "text", tone = "quiet", text = charts.caption },
      { kind = "figures", items = drawn },
    })
  end
  push(doc.blocks, parts.grid(outcome))
  push(doc.blocks, parts.certificates(outcome))
  push(doc.blocks, parts.provenance(outcome))
  return doc
end

-- Files to write: path -> what makes its text.
local function targets(out)
  local kind = out:match "%.(%a+)$"
  if kind == "html" or kind == "htm" then return { [out] = html.page } end
  if kind == "md" then return { [out] = markdown.page } end
  if not native.stat(out) then fault.check(fault.RUNTIME, native.mkdir(out)) end
  return { [out .. "/report.html"] = html.page, [out .. "/report.md"] = markdown.page }
end

-- A page without a verdict never takes the place of one that is there.
local function spare_existing(outcome, files)
  if outcome.judged then return end
  for _, path in ipairs(sorted_keys(files)) do
    if native.stat(path) then
      fault.raise(fault.TAMPERED, "%s stays as it is: %s was tampered with (%s); --out writes the page elsewhere", path,
        outcome.dir, outcome.audit.tampered[1])
    end
  end
end

function report.main(args)
  local dir, reg, out = find(args)
  local outcome = verdict.of(dir, reg)
  local doc, files = report.document(outcome), targets(out)
  spare_existing(outcome, files)
  for _, path in ipairs(sorted_keys(files)) do
    fault.check(fault.RUNTIME, native.write_file(path, files[path](doc)))
    native.write(1, path .. "\n")
  end
  return 0
end

return report
