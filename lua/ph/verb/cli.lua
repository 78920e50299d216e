--- The command line: phrun [VERB] FILE [key=value ...] [options]. `cli.main(argv)` returns the exit code.

local argparse = require "argparse"
local native = require "ph.native"
local fault = require "ph.util.fault"
local suggest = require "ph.util.suggest"
local verbs = require "ph.verb.list"

local cli = {}

local longest_line <const> = 2000

local function installed(module)
  return package.preload[module] or package.loaded[module] or package.searchpath(module, package.path) ~= nil
end

--- The verbs that this installation has: list of { name, module, summary }.
function cli.verbs()
  local out = {}
  for _, v in ipairs(verbs) do
    if installed(v[2]) then out[#out + 1] = v end
  end
  return out
end

local function find_verb(name)
  for _, v in ipairs(cli.verbs()) do
    if v[1] == name then return v end
  end
end

local function names()
  local out = {}
  for i, v in ipairs(cli.verbs()) do out[i] = v[1] end
  return out
end

--- argparse's help calls an argument by its variable and gives each alias a line: here SPEC
-- is SPEC, and "-j, --jobs N" one line.
local function readable_labels(parser)
  for _, argument in ipairs(parser._arguments) do
    argument._get_label_lines = function(self) return { self._argname or self._name } end
  end
  for _, option in ipairs(parser._options) do
    option._get_label_lines = function(self)
      return {
        (table.concat(self._public_aliases, ", ") .. " " .. table.concat(self:_get_argument_list(), " "))
          :match "^(.-)%s*$",
      }
    end
  end
end

local function parser_of(verb)
  local parser = argparse("phrun " .. verb[1], verb[3]):add_help(false)
  local module = require(verb[2])
  if module.arguments then module.arguments(parser) end
  parser:flag "--debug":description "print a trace when something fails"
  parser:flag "-h --help":description "this text"
  readable_labels(parser)
  return parser, module
end

local function check_overrides(words)
  for _, word in ipairs(words or {}) do
    if not word:find "^[%a_][%w_.]*=" then fault.raise(fault.USAGE, "'%s' is not key=value", word) end
  end
  return words or {}
end

local function wants_help(argv)
  for _, word in ipairs(argv) do
    if word == "-h" or word == "--help" then return true end
  end
end

--- argparse's message as one line in our words.
local function usage_line(message)
  return (message:gsub("%s*\n%s*", "; "):gsub("^%s+", ""))
end

local function run_verb(verb, argv)
  local parser, module = parser_of(verb)
  if wants_help(argv) then
    native.write(1, parser:get_help() .. "\n")
    return 0
  end
  local ok, args = parser:pparse(argv)
  if not ok then fault.raise(fault.USAGE, "%s: %s (phrun %s --help)", verb[1], usage_line(args), verb[1]) end
  args.overrides = check_overrides(args.overrides)
  return module.main(args)
end

local function help_text()
  local out = {
    "phrun - neural streams whose stability is built in", "", "usage: phrun [VERB] FILE [key=value ...] [options]", "",
  }
  for _, v in ipairs(cli.verbs()) do out[#out + 1] = string.format("  %-8s %s", v[1], v[3]) end
  out[#out + 1] = "\nphrun VERB --help lists its options; phrun --version -v shows version and machine; "
    .. "phrun alone opens the interactive session."
  return table.concat(out, "\n") .. "\n"
end

local function version_text(verbose)
  local m = native.machine()
  local lines = { "phrun " .. m.version .. (m.commit and m.commit ~= "" and " (" .. m.commit .. ")" or "") }
  if not verbose then return lines[1] .. "\n" end
  local function line(name, format, ...) lines[#lines + 1] = string.format("  %-10s " .. format, name, ...) end
  local features = type(m.features) == "table" and table.concat(m.features, " ") or tostring(m.features)
  line("cpu", "%s, %d cores", m.cpu, m.cores)
  line("features", "%s", features)
  line("kernels", "float32 %s, float64 %s, arithmetic %d", m.kernels_f32, m.kernels_f64, m.arithmetic)
  local keys = {}
  for k in pairs(m.openblas or {}) do keys[#keys + 1] = k end
  table.sort(keys)
  for _, k in ipairs(keys) do line("openblas", "%s: %s", k, tostring(m.openblas[k])) end
  if m.openblas.wanted ~= "" then
    line("warning", "OpenBLAS runs its kernels for %s, those for %s fit this CPU better%s", m.openblas.core,
      m.openblas.wanted, m.openblas.origin == "user" and "; OPENBLAS_CORETYPE asks for them" or "")
  end
  line("hdf5", "%s", m.hdf5)
  line("compiler", "%s", m.compiler)
  line("system", "%s", m.os)
  return table.concat(lines, "\n") .. "\n"
end

local function unknown_verb(word)
  local what = word:sub(1, 1) == "-" and "option" or "verb or file"
  fault.raise(fault.USAGE, "unknown %s '%s'%s; phrun --help lists the verbs", what, word, suggest.hint(word, names()))
end

local function without_first(argv)
  return table.move(argv, 2, #argv, 1, {})
end

local function contains(argv, a, b)
  for _, word in ipairs(argv) do
    if word == a or word == b then return true end
  end
  return false
end

--- A word that names a file: of the verb `run`, which may be left out.
local function is_file(word)
  return word:find "^[^-]" and not word:find "^[%a_][%w_.]*="
    and (word:find "%.lua$" or word:find "/" or native.stat(word))
end

local function any_file(argv)
  for _, word in ipairs(argv) do
    if is_file(word) then return true end
  end
  return false
end

--- Chooses what to do from the words given.
local function dispatch(argv)
  local first = argv[1]
  if first == nil and find_verb "repl" then return run_verb(find_verb "repl", {}) end
  if first == nil or first == "-h" or first == "--help" or first == "help" then
    native.write(1, help_text())
    return 0
  end
  if contains(argv, "--version", "-V") then
    native.write(1, version_text(contains(argv, "-v", "--verbose")))
    return 0
  end
  local verb = find_verb(first)
  if verb then return run_verb(verb, without_first(argv)) end
  if is_file(first) or (first:find "^%-" and any_file(argv)) then return run_verb(find_verb "run", argv) end
  unknown_verb(first)
end

--- A message fit for a terminal and a log: no control characters, no endless lines.
local function printable(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local clipped = #line > longest_line
      and string.format("%s... (%d bytes more)", line:sub(1, longest_line), #line - longest_line) or line
    lines[#lines + 1] = clipped:gsub("%c", function(c) return string.format("\\x%02x", c:byte()) end)
  end
  return table.concat(lines, "\n")
end

local function handler(debugging)
  return function(problem)
    if fault.of(problem) or problem == "interrupted" or not debugging then return problem end
    return debug.traceback(tostring(problem), 2)
  end
end

--- Runs the program. argv: list of words without the program's name. Returns the exit code.
function cli.main(argv)
  local ok, result = xpcall(dispatch, handler(contains(argv, "--debug")), argv)
  if ok then return result or 0 end
  local known = fault.of(result)
  if result == "interrupted" then
    native.write(2, "phrun: interrupted\n")
    return fault.INTERRUPTED
  end
  local text = printable(known and known.message or tostring(result))
  native.write(2,
    (known and known.code == fault.USAGE and text:find "^[^\n:]+:%d+: " and "" or "phrun: ") .. text .. "\n")
  return known and known.code or fault.RUNTIME
end

return cli
