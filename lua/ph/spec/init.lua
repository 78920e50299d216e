--- Loads a spec: runs its text in a sandbox, checks everything, and gives the experiment or all errors.
--
-- The sandbox: text only, an environment of its own (ph.spec.environment), limits of instructions and memory, `require`
-- of "ph" and of files beside the spec, whose text is kept for hashing.

local edition = require "ph.schema.edition"
local environment = require "ph.spec.environment"
local experiment = require "ph.lang.experiment"
local fault = require "ph.util.fault"
local kinds = require "ph.schema.kinds"
local native = require "ph.native"
local override = require "ph.lang.override"
local schema = require "ph.schema"
local texts = require "ph.lang.texts"
local twice = require "ph.schema.twice"
local where = require "ph.schema.where"

local spec = {}

--- Most bytes of a spec file and of all errors shown.
spec.max_bytes, spec.max_errors = 4 * 1024 * 1024, 20

-- ---- files beside the spec ----

local function read_text(path)
  local text, problem = native.read_file(path, spec.max_bytes)
  if not text then
    error(string.format("%s: %s", path, tostring(problem):gsub("^" .. path:gsub("%p", "%%%0") .. ": ", "")), 0)
  end
  if text:sub(1, 1) == "\27" then error(path .. ": a spec must be Lua text, got a compiled chunk", 0) end
  return (text:gsub("^\xef\xbb\xbf", "")) -- the mark that some editors put before UTF-8
end

--- Reports what a text has twice where Lua would keep the last.
local function refuse_repeats(path, chunk)
  for _, at in ipairs(twice.find(chunk)) do
    schema.report(
      string.format("%s:%d: %s (first in line %d); the last would win", path, at.line, at.text, at.first))
  end
end

--- require of a sibling: "helpers" or "dir.helpers" is the file helpers.lua beside the spec. Each is loaded once.
-- read(file) -> text: from the disk, or from what a run file kept.
local function sibling_loader(path, files, state, read)
  local dir, loaded, loading = path:match "^(.*/)[^/]*$" or "", {}, {}
  return function(name)
    if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" and not name:find "^[%a_][%w_%.]*[%w_]$" then
      local message = string.format("require: '%s' is not the name of a file beside the spec", tostring(name))
      error(where.prefix() .. message, 0)
    end
    if loaded[name] ~= nil then return loaded[name] end
    if loading[name] then error(string.format("%srequire: '%s' requires itself", where.prefix(), name), 0) end
    loading[name] = true
    local file = dir .. name:gsub("%.", "/") .. ".lua"
    local from = where.prefix()
    local ok, text = pcall(read, file)
    if not ok then error(string.format("%srequire '%s': %s", from, name, text), 0) end
    files[#files + 1] = { path = file, text = text }
    state.chunks[#state.chunks + 1] = where.register(file, text)
    local chunk, problem = load(text, state.chunks[#state.chunks], "t", state.env)
    if not chunk then error(problem, 0) end
    refuse_repeats(file, state.chunks[#state.chunks])
    local outer = where.enter(state.chunks[#state.chunks])
    loaded[name] = chunk() or true
    where.enter(outer)
    loading[name] = nil
    return loaded[name]
  end
end

-- ---- errors ----

--- Long paths are cut by Lua ("...nt/e6.lua:3:"); puts the whole one back.
local function whole_path(text, path)
  local tail = text:match "^%.%.%.([^:]*):%d+:"
  if tail and path:sub(-#tail) == tail then return path .. text:sub(#tail + 4) end
  return text
end

--- { file, line, message, text } of a line "file:line: message".
local function structured(text)
  local file, line, message = text:match "^(.-):(%d+): (.*)$"
  return { file = file or "", line = math.tointeger(tonumber(line)) or 0, message = message or text, text = text }
end

local function by_place(a, b)
  if a.file ~= b.file then return a.file < b.file end
  if a.line ~= b.line then return a.line < b.line end
  return a.text < b.text
end

--- The errors in order of place, each { file, line, message, text }; text is the whole line.
local function errors_of(lines, path)
  local list = {}
  for i, text in ipairs(lines) do list[i] = structured(whole_path((text:gsub("%s*\n%s*", " ")), path)) end
  table.sort(list, by_place)
  local more = #list - spec.max_errors
  for i = #list, spec.max_errors + 1, -1 do list[i] = nil end
  if more > 0 then list[#list + 1] = structured(string.format("... and %d more errors", more)) end
  return list
end

-- ---- loading ----

--- What the chunk gave, as an experiment; nil after reporting what is wrong with it.
local function as_experiment(value, path)
  if rawequal(value, kinds.broken) then return nil end
  if kinds.tag(value) == "ph.experiment" or kinds.tag(value) == "ph.laws_experiment" then return value end
  local hint = value == nil and "; does it end with `return ph.experiment { ... }`?" or ""
  schema.report(
    string.format("%s: a spec must return an experiment, this one returns %s%s", path, kinds.describe(value), hint))
end

--- Runs the text; returns what it returns, or nil and true after reporting the error.
local function run_chunk(text, chunk, env)
  local value, problem, code, place = texts.within(native.spec_load, text, chunk, env, experiment.limits)
  -- not a spec that returns nil and something else
  if value == nil and type(code) == "string" and code:find "^PH_E_" then
    if problem ~= kinds.stop then schema.report(where.located(problem, place)) end
    return nil, true
  end
  return value
end

local function load_collecting(text, path, overrides, source)
  local state = { chunks = { source.chunk } }
  state.env = environment(sibling_loader(path, source.files, state, source.read), state.chunks)
  if load(text, source.chunk, "t", {}) then refuse_repeats(path, source.chunk) end
  local value, failed = run_chunk(text, source.chunk, state.env)
  if failed then return nil end
  local e = as_experiment(value, path)
  if not e and experiment.rest then experiment.rest:check_models() end
  if not e then return nil end
  e.source = source
  if #schema.errors() > 0 then return nil end
  if e.override then e:override(overrides or {}) else override.all(e, overrides) end
  if #schema.errors() == 0 then e:check() end
  return e
end

--- Reads siblings from texts that are given by path.
local function from_memory(siblings)
  return function(file) return siblings[file] or error("is not among the texts that were kept", 0) end
end

--- One reading of a text, under the current edition: the experiment, or the lines of
-- its errors; and the edition it named.
local function read(text, path, overrides, siblings)
  local source = { file = path, text = text, files = {}, chunk = where.register(path, text) }
  source.read = siblings and from_memory(siblings) or read_text
  where.enter(source.chunk)
  schema.collect()
  experiment.rest, edition.named = nil, nil
  local ok, e = pcall(load_collecting, text, path, overrides, source)
  if not ok and e ~= kinds.stop then schema.report(tostring(e)) end
  local lines = schema.finish()
  where.enter(nil)
  if lines[#lines] == "interrupted" then fault.raise(fault.INTERRUPTED, "interrupted") end
  return { experiment = e, lines = lines, named = edition.named }
end

--- The reading under the edition that the text itself names, which is 1 when it names none. A text that broke off
-- before it named one may name another under that other edition's defaults.
local function settled_reading(...)
  local first = edition.under(1, read, ...)
  if first.named == 1 or (not first.named and #first.lines == 0) then return first end
  for number = schema.newest_edition(), 2, -1 do
    local again = (first.named or number) == number and edition.under(number, read, ...)
    if again and again.named == number then return again end
  end
  return first
end

--- An experiment from a text; path names it in messages and is where siblings are looked for, unless siblings (path ->
-- text) holds them all. overrides: list of "key=value" or { key =, value = }. Returns the experiment, or nil and the
-- list of errors { file, line, message, text }.
function spec.load_text(text, path, overrides, siblings)
  local reading = settled_reading(text, path, overrides, siblings)
  if #reading.lines > 0 then return nil, errors_of(reading.lines, path) end
  return reading.experiment
end

--- The same from a file.
function spec.load(path, overrides)
  local ok, text = pcall(read_text, path)
  if not ok then return nil, errors_of({ text }, path) end
  return spec.load_text(text, path, overrides)
end

return spec
