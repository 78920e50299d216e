--- The result file of a run, runs/HASH.h5: everything that a reader needs without the program, in one HDF5 file.
-- Its layout is described in docs/file-format.md; `runfile.write` is the only place that makes it.

local native = require "ph.native"
local json = require "ph.util.json"
local checkpoint = require "ph.run.checkpoint"
local groups = require "ph.lang.groups"
local curves = require "ph.figure.curves"
local figures = require "ph.figure"
local sorted_keys = require "ph.util.sorted_keys"

local runfile = {}

local function attributes(items, path, map)
  for _, key in ipairs(sorted_keys(map)) do
    local v = map[key]
    if type(v) == "boolean" then v = v and 1 or 0 end
    if type(v) == "number" or type(v) == "string" then items[#items + 1] = { path = path, attr = key, value = v } end
  end
end

local function put(items, path, value)
  items[#items + 1] = { path = path, value = value }
end

local function put_texts(items, job)
  put(items, "/ir", job.ir)
  items[#items + 1] = { path = "/ir", attr = "sha256", value = native.sha256(job.ir) }
  put(items, "/config/run", job.text)
  put(items, "/config/task", job.task_text)
  put(items, "/config/train", job.train_text)
  put(items, "/config/measure", job.measure_text)
  put(items, "/config/cell", json.encode(job.cell))
  put(items, "/config/select", json.encode(job.select))
  put(items, "/spec/file", job.source.file or "")
  put(items, "/spec/text", job.source.text or "")
  for i, f in ipairs(job.source.files or {}) do
    put(items, string.format("/spec/files/%03d/path", i), f.path)
    put(items, string.format("/spec/files/%03d/text", i), f.text)
  end
end

--- What each parameter was trained with: one JSON object per parameter by name.
local function put_rates(items, job, weights)
  local rates = {}
  for _, r in ipairs(groups.rates(job.protocol, sorted_keys(weights))) do
    rates[r.name] = { lr = job.protocol.lr * r.lr, weight_decay = r.weight_decay, frozen = r.frozen }
  end
  put(items, "/config/rates", json.encode(rates))
end

local function put_provenance(items)
  local m = native.machine()
  put(items, "/provenance", json.encode(m))
  local flat = {}
  for k, v in pairs(m) do flat[k] = type(v) == "table" and json.encode(v) or v end
  attributes(items, "/provenance", flat)
end

--- Pictures of the run as data: `phrun plot` draws them from the file alone.
local function put_figures(items, record, saved, columns, extras)
  local training = curves.training(record.label, columns, saved.rows)
  local layers = curves.layers(record.label, extras.profiles or {})
  if training then figures.add(items, training) end
  if layers then figures.add(items, layers) end
end

--- Writes a run's file. job: the run's texts; record: as in the ledger; saved: the finished checkpoint; extras:
-- { profiles = { ["s2/growth"] = tensor }, confusion = tensor or nil }. Returns the file's SHA-256, or nil and a
-- message.
function runfile.write(path, job, record, saved, columns, extras)
  local items = {
    { path = "/", attr = "format", value = "phrun run" }, { path = "/", attr = "format_version", value = 1 },
  }
  attributes(items, "/", {
    run = record.run, spec = record.spec, status = record.status, seed = job.seed, chosen = record.chosen,
    lock = record.lock, version = record.version,
  })
  put(items, "/record", json.encode(record))
  put_texts(items, job)
  put_rates(items, job, saved.final)
  put(items, "/history", checkpoint.history_tensor(saved.rows, columns))
  items[#items + 1] = { path = "/history", attr = "columns", value = table.concat(columns, ",") }
  checkpoint.add_group(items, "final", saved.final)
  if saved.best then checkpoint.add_group(items, "best", saved.best) end
  for _, key in ipairs(sorted_keys(extras.profiles or {})) do put(items, "/profiles/" .. key, extras.profiles[key]) end
  if extras.confusion then put(items, "/confusion", extras.confusion) end
  put_figures(items, record, saved, columns, extras)
  put_provenance(items)
  local ok, problem = native.h5_write(path, items)
  if not ok then return nil, problem end
  return native.sha256_file(path)
end

--- Opens a run file and checks that it is one. A table with `file` (the reader),
-- `record`, `columns`; nil and a message.
function runfile.open(path)
  local file, problem = native.h5_read(path)
  if not file then return nil, problem end
  if file:attr("/", "format") ~= "phrun run" or file:attr("/", "format_version") ~= 1 or not file:sealed() then
    file:close()
    return nil, path .. ": not a run file of this version as it was written"
  end
  local columns = {}
  for name in file:attr("/history", "columns"):gmatch "[^,]+" do columns[#columns + 1] = name end
  return { file = file, record = json.decode(file:text "/record"), columns = columns }
end

return runfile
