--- help(), help(x), ?x: what the language says about a name, from the schema and the op
-- table, with the nearest name otherwise.

local names = require "ph.repl.names"
local op_table = require "ph.schema.op_table"
local schema = require "ph.schema"
local sorted_keys = require "ph.util.sorted_keys"
local suggest = require "ph.util.suggest"

local help = {}

--- What is there only in a session; everything else is registered in the schema.
local functions <const> = {
  help = { "help(), help(x), ?x", "What a name means; x is a name, a function or a value." },
  la = {
    "la.eigh la.svd la.eig la.logdet la.solve la.inverse la.cholesky la.qr", "Linear algebra of tensors in float64.",
  },
  laws = { "laws.NAME(x)", "The laws of streams as functions: value, tolerance, meaning." },
  skew = { "skew(A), skew(n)", "A - A^T; of a random n x n matrix when n is an integer." },
  task = { "task.circles task.spirals task.images", "Where data come from." },
  law = { "law.conservation law.volume law.gradient ...", "What a laws_experiment measures; ?law.volume tells more." },
  _ = { "_", "The value of the last expression." },
}

local methods <const> = "t:shape() t:dtype() t:count() t:at(i, j) t:put(v, i, j) t:totable() t:cast(dtype) t:copy() "
  .. "t:reshape(shape) "
  .. "t:slice(dim, first, last) t:index(dim, i) t:gather(rows) t:transpose() t:norm() t:rownorms() t:sum() t:mean() "
  .. "t:min() t:max() "
  .. "t:quantile(q) t:mul(b) a + b a - b a * b a / s"

local function key_line(key)
  local default = ""
  if key.required then default = " (required)"
  elseif key.default ~= nil and type(key.default) ~= "table" then
    default = string.format(" (default %s)", tostring(key.default))
  end
  return string.format("  %-12s %s%s", key.name, key.doc, default)
end

local function block_text(block)
  local lines = { (block.usage and block.usage:gsub("ph%.", "") or block.name) .. " - " .. block.doc }
  if block.example then lines[#lines + 1] = "  example: " .. block.example end
  for _, key in ipairs(block.keys) do lines[#lines + 1] = key_line(key) end
  return table.concat(lines, "\n")
end

--- Everything known about a name, or nil.
local function known(name)
  local parts = {}
  local block, row, entry = schema.get(name), op_table.row(name), functions[name]
  if entry then parts[#parts + 1] = string.format("%s - %s", entry[1], entry[2]) end
  if block then parts[#parts + 1] = block_text(block) end
  if row then
    parts[#parts + 1] = string.format("op %s: %s%s", name, row.equation,
      block and block.doc == row.doc and "" or "\n  " .. row.doc)
  end
  return parts[1] and table.concat(parts, "\n") or nil
end

--- All names that help knows, sorted.
function help.topics()
  local set = {}
  for name in pairs(functions) do set[name] = true end
  for _, block in ipairs(schema.all()) do set[block.name] = true end
  for _, row in ipairs(op_table.rows) do set[row.name] = true end
  return sorted_keys(set)
end

local function wrapped(words, indent, width)
  local lines, line = {}, indent
  for _, word in ipairs(words) do
    if #line + #word + 1 > width and line ~= indent then
      lines[#lines + 1] = line
      line = indent
    end
    line = line .. (line == indent and "" or " ") .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

function help.overview()
  local row_names = {}
  for i, row in ipairs(op_table.rows) do row_names[i] = row.name end
  local block_names, function_names = {}, {}
  for name in pairs(functions) do function_names[#function_names + 1] = name end
  for _, block in ipairs(schema.all()) do
    local list = block.usage and function_names or block_names
    if not (block.usage and functions[block.name]) then list[#list + 1] = block.name end
  end
  table.sort(function_names)
  return table.concat({
    "help(x) or ?x tells what x is.",
    "A line that is an expression prints its value; _ is the last one.",
    "explore:", wrapped(function_names, "  ", 78),
    "constructors of the language:", wrapped(block_names, "  ", 78),
    "ops:", wrapped(row_names, "  ", 78),
  }, "\n")
end

local function tensor_methods()
  local words = {}
  for word in methods:gmatch "%S+%b()" do words[#words + 1] = word end
  return "a tensor has\n" .. wrapped(words, "  ", 78)
    .. "\n  and the operators a + b, a - b, -a, a * b (matrix product), a / s"
end

--- Text about a name; for an unknown one the nearest. Second result: was it known?
function help.of_name(name)
  local text = known(name) or known((name:match "[%w_]+$" or ""))
  if text then return text, true end
  local hint = suggest.hint(name, help.topics())
  if hint == "" then hint = suggest.hint(name, names.all()) end
  return string.format("no help on '%s'%s", name, hint), false
end

--- Text about a value.
function help.of_value(v)
  if type(v) == "string" then return help.of_name(v) end
  if type(v) == "userdata" and (getmetatable(v) or {}).__name == "ph.tensor" then return tensor_methods(), true end
  local name = names.of(v)
  if name then return help.of_name(name) end
  return "a " .. (math.type(v) or type(v)), true
end

return help
