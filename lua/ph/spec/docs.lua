--- docs/language.md, made from the registrations of the schema, the op table and the grammar in core/ir/ir.h.
--
-- A test compares the file with this text. To write it: PHRUN_UPDATE=1 phrun test tests/lua/docs_spec.lua

local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local op_table = require "ph.schema.op_table"
local schema = require "ph.schema"
require "ph"

local docs = {}

local intro <const> = [[
# The language

*Made from the program's own registrations (`lua/ph/spec/docs.lua`); edit those, not this file.*

A spec is a Lua file that returns an experiment. Every constructor knows its keys: an unknown key, an undeclared name, a hole in
a list, a number out of range is an error with file and line, and all errors of a spec are shown together (exit code 2). This is
`specs/quick.lua`:

```lua
%s```

## Blocks

A block is a Lua function of the state. It is called **once**, with symbols in place of values, and what it does is written down as
canonical IR text; the compiled stream runs that for every layer and every sample. So a block may use Lua's loops and conditions
over numbers and over the cell, but not over values of the stream: comparing or indexing them is an error.

| in a block | meaning |
|---|---|
| `M * N` | product of two parameter matrices |
| `M * z` | a parameter matrix acting on the features of a state |
| `h * x`, `x / 2`, `-x` | multiplication by a number |
| `x + y`, `x - y` | two values of one shape; `z + b` with a parameter vector b (1, d) is a bias |
| `ph.mul(x, y)` | elementwise product; `ph.mul(v, z)` with a parameter vector v (1, d) stretches the features of a state |
| `1e-4 * ph.eye(n) + ph.gram(L)` | `ph.eye(n)` is a value like others; one that was made outside the block, and its multiples, too |
| `ph.inverse(A) * z`, `ph.solve(A, B)` | matrices are made once a layer and step; a singular one ends the run as diverged, with layer and reason |
| `(h / (1 + t)) * x`, `ph.damping { d, step = h * (1 + t) }` | t, the last argument of a stream's block, counts its iterations from 0; its arithmetic (`+ - * / ^` and functions such as `ph.tanh(t)`) is one table of numbers in the IR |
| `ph.term(0.01, e)`, `ph.observe("energy", e)` | adds 0.01 e to the loss at each iteration; names e for the measure `ph.observed()`. e is one number a sample |
| `ph.affine(d)(z)` | a layer: a function that owns parameters. One layer object used twice in a block shares them |

Outside a block the same functions work on tensors: a rank-2 tensor is a matrix, a rank-1 tensor a state, `ph.batch(t)` a set
of states in rows. Parameters are then drawn from the key `seed` and their name.

Parameters are called `A` (cayley), `L` (damping), `B` (linear), `W` and `b` (affine), `gamma` and `beta` (layernorm), `P` (param)
or by their key `name`; repeated names in a segment become `W`, `W2`, `W3` in the order in which the result needs them.
A parameter's first numbers depend on the run's seed, its name and nothing else.

A model is a list of stages: layers, functions of the state, and streams. Stages between streams form one segment.
]]

local section_order <const> = {
  { "experiment", "Experiment" }, { "tasks", "Tasks" }, { "losses", "Losses" }, { "protocols", "Protocols" },
  { "streams", "Streams" },
  { "channels", "Channels" },
  { "layers", "Layers" }, { "functions", "Functions of values" }, { "inits", "Initial values" },
  { "measures", "Measures" },
  { "rules", "Rules" }, { "tensors", "Tensors" }, { "laws", "Laws" },
}

local outro <const> = [[
## Grid, cells, runs

`grid` is a table of axes, or a list of such tables whose cells follow one another. The order of axes is fixed, since a Lua table
has none: family, task, depth, width, then the others by name, seed last; the first changes slowest, values keep their order.
`model(cell)` and a `task(cell)` read axes as `cell.depth`; an axis that is not there is an error, and so is an axis that nothing
reads. Without a seed axis the seed is 0. Each cell runs once for every candidate of `select`; the best on validation data is
the cell's run. Nothing can be chosen by test data.

## Changing a spec from the command line

| argument | meaning |
|---|---|
| `depth=240`, `family=ph,resnet` | an axis: when the grid has all these values, only they remain (sub-grids without them drop out); otherwise they replace the axis |
| `train.epochs=5`, `task.noise=0.3` | a key of the protocol, or of every task that has it |
| `select.lr=1e-3,3e-3` | candidates |
| `data=DIR` | short for `task.dir=DIR` |

A change is part of what it changes, and so of the names of the runs.

## What makes a rerun

A run is named by the hash of its meaning: cell, candidate, seed, task, contents of data files, protocol, measures, IR text.
Comments, indentation, order of keys and moved helper functions change none of these. A changed number, block or data file
changes exactly the runs it concerns. Keys that are "not hashed" do not belong to it.

Results keep their names when the language grows. A key that came after version 1 ("since version N") is written only when its
value is not its default, so older specs mean what they meant. A released default never changes: a better one comes with a new
edition, and holds in specs that say so (`edition = 2`). A measure whose numbers come to mean something else gets a new version;
runs that were measured with an earlier one are made again, and `phrun run -n` says which.

## The sandbox

Specs are text. They see `ph`, `assert error ipairs pairs select tonumber tostring type` and the libraries `math string table utf8`
without randomness or code loading; `pairs` goes through keys in order. `require "name"` loads `name.lua` beside the spec,
whose text is recorded with the spec's. Instructions and memory of loading and of tracing each cell are limited.

## Exit codes

| code | meaning |
|---|---|
| 0 | done; or the rules hold |
| 1 | something failed while running |
| 2 | wrong usage, or an error in a spec |
| 3 | a file was tampered with, or belongs to something else |
| 10 | the rules say no |
| 11 | guarded: data changed, test set opened twice, not evaluable |
| 130 | interrupted; the same command resumes |
]]

local function cell_text(s) return (tostring(s):gsub("|", "\\|"):gsub("\n", " ")) end

local kind_words <const> = {
  integer = "whole number", number = "number", per_iteration = "number, or one for each iteration",
  string = "string", boolean = "true or false", ["function"] = "function",
  callable = "function or layer", any = "any data",
  table = "table", list = "list", init = "init", task = "task", protocol = "protocol", block = "table",
  edition = "whole number", grid = "table",
  monitor = "choice", loss = "loss or its word", budget = "number, false or { contract = kappa }", data = "data",
}

local function range_text(key)
  local low = key.min and ">= " .. kinds.describe(key.min) or key.above and "> " .. kinds.describe(key.above)
  local high = key.max and "<= " .. kinds.describe(key.max) or key.below and "< " .. kinds.describe(key.below)
  local parts = { low, high }
  if not low then parts = { high } end
  return #parts > 0 and " " .. table.concat(parts, ", ") or ""
end

local function kind_text(key)
  if type(key.kind) == "table" then
    local words = {}
    for i, kind in ipairs(key.kind) do words[i] = kind_words[kind] or kind end
    return table.concat(words, " or ")
  end
  if key.kind == "choice" then return "`" .. table.concat(key.allowed, "` `") .. "`" end
  if key.kind == "list" and key.of then return "list of " .. (key.of.object_text or kind_text(key.of)) end
  return (kind_words[key.kind] or key.kind) .. range_text(key)
end

local function value_text(v)
  if v == nil then return "" end
  if type(v) == "table" then return "empty" end
  return "`" .. (type(v) == "number" and kinds.describe(v) or tostring(v)) .. "`"
end

local function default_text(key)
  if key.required then return "required" end
  local parts, number = { value_text(key.default) }, {}
  for n in pairs(key.editions or {}) do number[#number + 1] = n end
  table.sort(number)
  for _, n in ipairs(number) do parts[#parts + 1] = string.format("edition %d: %s", n, value_text(key.editions[n])) end
  return table.concat(parts, "; ")
end

--- What a key means, and what of it is hashed where that is not everything.
local function meaning_text(key)
  local notes = { key.doc }
  if key.affects == false then notes[#notes + 1] = "not hashed" end
  if key.affects == "plan" then notes[#notes + 1] = "hashed in the plan, not in runs" end
  if key.since > 1 then notes[#notes + 1] = string.format("since version %d", key.since) end
  return table.concat(notes, "; ")
end

-- What a measure gives: numbers that rules can name, and profiles over the layers in the run file.
local function results_text(block, lines)
  table.move({ "| result | where | meaning |", "|---|---|---|" }, 1, 2, #lines + 1, lines)
  for _, metric in ipairs(block.metrics) do
    lines[#lines + 1] = string.format("| `%s` | metric | %s |", metric[1], cell_text(metric[2]))
  end
  for _, profile in ipairs(block.profiles or {}) do
    local formerly = profile.formerly and string.format("; formerly `%s`", profile.formerly) or ""
    lines[#lines + 1] = string.format("| `%s` | profile | %s%s |", profile[1], cell_text(profile[2]), formerly)
  end
  lines[#lines + 1] = ""
end

local function block_text(block)
  local lines = { "### " .. block.name, "", block.doc, "" }
  local example = block.example or block.usage
  if example then table.move({ "```lua", example, "```", "" }, 1, 4, #lines + 1, lines) end
  if #block.keys > 0 then
    table.move({ "| key | value | default | meaning |", "|---|---|---|---|" }, 1, 2, #lines + 1, lines)
    for _, key in ipairs(block.keys) do
      lines[#lines + 1] = string.format("| `%s` | %s | %s | %s |", key.name, cell_text(kind_text(key)),
        cell_text(default_text(key)), cell_text(meaning_text(key)))
    end
    lines[#lines + 1] = ""
  end
  if block.metrics then results_text(block, lines) end
  return table.concat(lines, "\n")
end

--- Functions of one line each, as a table.
local function usage_table(blocks)
  local lines = { "| call | meaning |", "|---|---|" }
  for _, block in ipairs(blocks) do
    lines[#lines + 1] = string.format("| `%s` | %s |", cell_text(block.usage), cell_text(block.doc))
  end
  return table.concat(lines, "\n") .. "\n"
end

local function section_text(name, title)
  local parts, short = { "## " .. title .. "\n" }, {}
  for _, block in ipairs(schema.all()) do
    if block.section == name and block.usage then short[#short + 1] = block end
  end
  if #short > 0 then parts[#parts + 1] = usage_table(short) end
  for _, block in ipairs(schema.all()) do
    if block.section == name and not block.usage then parts[#parts + 1] = block_text(block) end
  end
  return table.concat(parts, "\n")
end

local function ops_text()
  local lines = {
    "## Ops", "",
    "What the IR is made of: one row of the op table each. Eager and compiled evaluation use the same kernels.", "",
    "| op | equation | meaning |", "|---|---|---|",
  }
  for _, row in ipairs(op_table.rows) do
    local attrs = #row.attrs > 0 and " " .. table.concat(row.attrs, " ") or ""
    lines[#lines + 1] = string.format("| `%s%s` | `%s` | %s |", row.name, attrs, cell_text(row.equation),
      cell_text(row.doc))
  end
  return table.concat(lines, "\n") .. "\n"
end

--- The grammar, taken from the head of core/ir/ir.h.
local function grammar_text(header)
  local body = assert(header:match "/%*(.-)%*/", "ir.h has no head comment")
  local lines = { "## The IR", "" , "```" }
  for line in body:gmatch "([^\n]*)\n" do lines[#lines + 1] = (line:gsub("^ %* ?", ""):gsub("^ ir%.h %- ", "")) end
  lines[#lines + 1] = "```"
  return table.concat(lines, "\n") .. "\n"
end

--- The text of docs/language.md. root: the source tree.
function docs.language(root)
  local quick = assert(native.read_file(root .. "/specs/quick.lua"))
  local header = assert(native.read_file(root .. "/core/ir/ir.h"))
  local parts = { string.format(intro, (quick:gsub("%%", "%%%%"))) }
  for _, s in ipairs(section_order) do parts[#parts + 1] = section_text(s[1], s[2]) end
  parts[#parts + 1] = outro
  parts[#parts + 1] = ops_text()
  parts[#parts + 1] = grammar_text(header)
  return table.concat(parts, "\n")
end

--- Sections that blocks may belong to.
docs.sections = {}
for _, s in ipairs(section_order) do docs.sections[s[1]] = true end

return docs
