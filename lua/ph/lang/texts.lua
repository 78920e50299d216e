--- What a spec sees of strings: the library without what differs from process to process. The text of a table or a
-- function is its address; with one in a name or a number, every start would be another experiment.

local where = require "ph.schema.where"

local texts = {}

local function fail(what) error(where.prefix() .. what .. ", which differs from process to process", 0) end

--- tostring of what has a text of its own.
function texts.tostring(v)
  local kind, mt = type(v), debug.getmetatable(v)
  local plain = kind == "string" or kind == "number" or kind == "boolean" or kind == "nil"
  if not plain and not (type(mt) == "table" and mt.__tostring) then
    fail("tostring: a " .. kind .. " has no text but its address")
  end
  return tostring(v)
end

local function format(pattern, ...)
  local args, at = table.pack(...), 0
  for _, conversion in tostring(pattern):gmatch "%%([^%a%%]*)([%a%%])" do
    if conversion ~= "%" then at = at + 1 end
    if conversion == "p" then fail "format: %p is an address" end
    if conversion == "s" and at <= args.n then args[at] = texts.tostring(args[at]) end
  end
  return string.format(pattern, table.unpack(args, 1, args.n))
end

--- The string library of a spec, which its strings have as methods too.
texts.string = {}
for name, f in pairs(string) do texts.string[name] = f end
texts.string.format, texts.string.dump = format, nil

--- f(...) while strings have the methods of a spec.
function texts.within(f, ...)
  local mt = debug.getmetatable ""
  local outer = mt.__index
  local _ <close> = setmetatable({}, { __close = function() mt.__index = outer end })
  mt.__index = texts.string
  return f(...)
end

return texts
