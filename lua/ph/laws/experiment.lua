--- `ph.laws_experiment { name, seed, laws = { ph.law.conservation {}, ... } }`: the laws
-- measured on random streams, as an experiment.
--
-- Each law is a run: its settings as canonical text give its hash, its results a file runs/HASH.h5 with tensors
-- and a figure, its metrics a record in the ledger. What is done is not done again. At the end table.md sets
-- the numbers beside those of the paper.

local native = require "ph.native"
local canon = require "ph.util.canon"
local fault = require "ph.util.fault"
local figures = require "ph.figure"
local json = require "ph.util.json"
local kinds = require "ph.schema.kinds"
local meaning = require "ph.schema.meaning"
local results = require "ph.run.results"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"

local experiment = {}

local order <const> = { "conservation", "volume", "gradient", "oscillation", "capacity" }
local law_of = {}
for _, name in ipairs(order) do law_of[name] = require("ph.laws.run." .. name) end

-- ---- the words of a spec ----

local Law = { __name = "ph.law_run" }
Law.__index = Law
Law.__tostring = function(self) return "law " .. self.law.name end

--- ph.law.NAME { ... }
experiment.law = {}

local docs <const> = {
  conservation = "L1: norms under their ceiling, explicit twin, standard stream.",
  volume = "L2: volume of transports, error of the meter.",
  gradient = "L3: gradients through depth.", oscillation = "L4: where the explicit step makes energy.",
  capacity = "L5: what is left of the inputs at depth.",
}

for _, name in ipairs(order) do
  local law = law_of[name]
  experiment.law[name] = schema.constructor({
    name = "law." .. name, section = "laws", doc = docs[name], keys = law.keys, example = "ph.law." .. name .. " {}",
  }, function(values) return setmetatable({ law = law, values = values }, Law) end)
end

local Experiment = { __name = "ph.laws_experiment" }
Experiment.__index = Experiment
Experiment.__tostring = function(self) return "experiment on laws " .. self.name end

local law_kind <const> = { kind = "object", object = "ph.law_run", object_text = "a law (ph.law.conservation { ... })" }

experiment.laws_experiment = schema.constructor({
  name = "laws_experiment", section = "laws", doc = "What a spec returns to measure the laws on random streams.",
  example = "return ph.laws_experiment { name = 'laws', laws = { ph.law.oscillation {} } }",
  keys = {
    { "name", kind = "string", required = true, affects = false, pattern = "^[%w_][%w_%-%.]*$",
      pattern_text = "a name of letters, digits, _ - .", doc = "name; the results go to experiments/NAME" },
    { "note", kind = "string", affects = false, doc = "what this is about, in words" },
    { "seed", kind = "integer", min = 0, default = 20261009, doc = "seed of all random numbers" },
    { "laws", kind = "list", of = law_kind, least = 1, required = true, doc = "which laws, with their settings" },
    schema.edition_key,
  },
}, function(v) return setmetatable({
  name = v.name, note = v.note, seed = v.seed, laws = v.laws, values = v,
}, Experiment) end)

--- True for what ph.laws_experiment gives.
function experiment.is(v) return kinds.tag(v) == "ph.laws_experiment" end

-- ---- runs ----

--- The canonical text of one law of the experiment; its SHA-256 names the run.
local function run_text(self, one)
  local text = meaning.newer("laws_experiment", self.values)
  text.law, text.seed, text.format = one.law.name, self.seed, 1
  text.values = meaning.of("law." .. one.law.name, one.values)
  return canon.encode(text)
end

local function hash(text) return native.sha256(text):sub(1, 16) end

--- The hashes of its runs by label.
function Experiment:runs()
  local out = {}
  for _, one in ipairs(self.laws) do out["law=" .. one.law.name] = hash(run_text(self, one)) end
  return out
end

local function provenance(items)
  items[#items + 1] = { path = "/provenance", value = json.encode(native.machine()) }
end

local ir_text <const> = "random streams: no compiled model\n"

--- Everything of a run in one file. The metrics stand as the one row of /history, so that readers of runs find them.
local function file_items(self, one, record, tensors, figure)
  local text = run_text(self, one)
  local items = {
    { path = "/", attr = "format", value = "phrun run" }, { path = "/", attr = "format_version", value = 1 },
    { path = "/", attr = "run", value = record.run },
    { path = "/", attr = "spec", value = self.name }, { path = "/", attr = "status", value = "done" },
    { path = "/", attr = "seed", value = self.seed },
    { path = "/record", value = json.encode(record) }, { path = "/config/run", value = text },
    { path = "/ir", value = ir_text },
    { path = "/ir", attr = "sha256", value = native.sha256(ir_text) },
    { path = "/spec/file", value = self.source.file or "" },
    { path = "/spec/text", value = self.source.text or "" },
  }
  local names, row = sorted_keys(record.metrics), {}
  for i, key in ipairs(names) do row[i] = record.metrics[key] end
  items[#items + 1] = { path = "/history", value = native.from({ row }, "f64") }
  items[#items + 1] = { path = "/history", attr = "columns", value = table.concat(names, ",") }
  for _, path in ipairs(sorted_keys(tensors)) do
    items[#items + 1] = { path = "/laws/" .. path, value = tensors[path] }
  end
  figures.add(items, figure)
  provenance(items)
  return items
end

local function must(value, problem)
  if not value then fault.raise(fault.RUNTIME, "%s", tostring(problem)) end
  return value
end

local function new_record(self, one, metrics, seconds)
  local label = "law=" .. one.law.name
  return {
    run = hash(run_text(self, one)), spec = self.name, spec_hash = native.sha256(self.source.text or ""), label = label,
    cell_label = label, cell = { law = one.law.name },
    select = {}, seed = self.seed, status = "done", chosen = true, metrics = metrics, seconds = seconds,
    test_opened = 0, version = native.machine().version,
  }
end

local function run_one(self, store, one, threads)
  local start = native.now()
  local metrics, tensors, figure, timing = one.law.run(one.values, self.seed, threads)
  local record = new_record(self, one, metrics, native.now() - start)
  if timing then record.timing = timing end
  local path = results.run_path(store.dir, record.run)
  must(native.h5_write(path, file_items(self, one, record, tensors, figure)))
  must(
    store:close_run("done", record, { path = "runs/" .. record.run .. ".h5", sha256 = must(native.sha256_file(path)) }))
  return record
end

-- ---- the table of the paper ----

--- Rows { what, paper, ours, why } of the records, in the order of the laws.
function experiment.rows(records)
  local rows = {}
  for _, record in ipairs(records) do
    local law = law_of[record.cell.law]
    for _, row in ipairs(law.table) do rows[#rows + 1] = { row[1], row[2], row[3](record.metrics), row[4] } end
  end
  return rows
end

local function write_table(self, store, records)
  local lines = { "# " .. self.name .. ": the paper's numbers and ours", "",
    "Written by `phrun run`; float64, seed " .. self.seed
      .. ", all random numbers counter-based. A number that \"cannot be right\" contradicts a statement proved in "
      .. "docs/laws.md.", "",
    "| what | paper | here | why they differ |", "|---|---|---|---|" }
  for _, row in ipairs(experiment.rows(records)) do
    local cells = {}
    for i, text in ipairs(row) do cells[i] = (text:gsub("|", "\\|")) end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  must(native.write_file(store.dir .. "/table.md", table.concat(lines, "\n") .. "\n"))
end

local function cut(text, n) return utf8.len(text) > n and text:sub(1, utf8.offset(text, n - 2) - 1) .. "..." or text end

--- Figure 6: all laws of one experiment in one table, kept in a file of its own.
local function write_ledger_figure(store, records)
  local lines = { string.format("%-42s %-30s %s", "law", "paper", "here") }
  for _, row in ipairs(experiment.rows(records)) do
    lines[#lines + 1] = string.format("%-42s %-30s %s", cut(row[1], 42), cut(row[2], 30), cut(row[3], 100))
  end
  local items = { { path = "/", attr = "format", value = "phrun figures" } }
  figures.add(items, { name = "fig6", title = "The laws, paper and here", text = table.concat(lines, "\n") .. "\n" })
  must(native.h5_write(store.dir .. "/ledger-figure.h5", items))
end

-- ---- running ----

local function dry_run(self, store)
  for _, one in ipairs(self.laws) do
    local run = hash(run_text(self, one))
    native.write(1,
      string.format("%s  law=%-13s %s\n", run, one.law.name,
        store:finished(run) and "already done: same settings and seed" or "to run"))
  end
  return 0
end

local function line_of(record, note) return string.format("%-12s %s  %s\n", record.cell.law, record.run, note) end

local function run_all(self, store, args)
  local records = {}
  local opened = false
  for i, one in ipairs(self.laws) do
    local record = store:finished(hash(run_text(self, one)))
    if not record then
      if not opened then
        must(store:append {
          event = "opened", spec = self.name, spec_hash = native.sha256(self.source.text or ""), planned = #self.laws,
          version = native.machine().version,
        })
      end
      opened = true
      record = run_one(self, store, one, args.threads)
      native.write(2, line_of(record, string.format("done in %.1f s", record.seconds)))
    else
      native.write(2, line_of(record, "already done"))
    end
    records[i] = record
  end
  write_table(self, store, records)
  write_ledger_figure(store, records)
  for _, row in ipairs(experiment.rows(records)) do
    native.write(1, string.format("%s\n    paper  %s\n    here   %s\n    %s\n", row[1], row[2], row[3], row[4]))
  end
  return 0
end

--- `phrun run` of such a spec with its results in `dir`; args: dry_run, threads. Returns the exit code.
function Experiment:main(dir, args)
  local open = args.dry_run and results.peek or results.open
  local store, problem, kind = open(dir)
  if not store then fault.raise(kind == "tampered" and fault.TAMPERED or fault.RUNTIME, "%s", problem) end
  local ok, code = pcall(args.dry_run and dry_run or run_all, self, store, args)
  store:release()
  if not ok then error(code, 0) end
  return code
end

--- Nothing of such an experiment can be changed from the command line but by editing its spec.
function Experiment:override(overrides)
  if #overrides > 0 then
    schema.report("command line: an experiment on laws takes no key=value; edit "
      .. tostring(self.source and self.source.file or "the spec"))
  end
end

function Experiment:check() end

return experiment
