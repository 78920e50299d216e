--- `phrun data`: which data sets are on this machine and how to get the others. `phrun data check DIR` reads one and
-- says whether its files are whole.

local native = require "ph.native"
local fault = require "ph.util.fault"
local tables = require "ph.util.tables"

local data = {}

local sets <const> = {
  { name = "fashion-mnist", dir = "/usr/share/datasets/fashion-mnist",
    how = "apt-get install dataset-fashion-mnist (Debian, MIT licence)", use = "phrun specs/digits.lua" },
  { name = "mnist",
    how = "four idx files (train-images-idx3-ubyte and so on, .gz as they are) in a directory DIR of yours",
    use = "phrun specs/digits.lua data=DIR" },
}

function data.arguments(parser)
  parser:argument("action"):argname "check":args "?":description "check: read the idx files of a directory"
  parser:argument("dir"):argname "DIR":args "?":description "the directory"
end

local function list()
  native.write(1, "data sets\n")
  for _, set in ipairs(sets) do
    local here = set.dir and native.stat(set.dir)
    native.write(1, string.format("  %-14s %s\n", set.name, here and "here: " .. set.dir or "not here: " .. set.how))
    native.write(1, string.format("  %-14s used by: %s\n", "", set.use))
  end
  native.write(1, "generated tasks (circles, spirals) need no files\n")
  return 0
end

local function find(dir, name)
  for _, suffix in ipairs { "", ".gz" } do
    if native.stat(dir .. "/" .. name .. suffix) then return dir .. "/" .. name .. suffix end
  end
  return nil, string.format("%s/%s: no such file (nor with .gz)", dir, name)
end

--- Reads images and labels of a prefix: a row of facts, or nil and a message.
local function read_pair(dir, prefix)
  local images, problem = find(dir, prefix .. "-images-idx3-ubyte")
  if not images then return nil, problem end
  local labels, missing = find(dir, prefix .. "-labels-idx1-ubyte")
  if not labels then return nil, missing end
  local x, y = native.idx_pair(images, labels, 256)
  if not x then return nil, tostring(y) end
  local s = x:shape()
  local wide <close> = x:cast "f64"
  return {
    prefix, tables.count(s[1]), s[2] .. "x" .. s[3], string.format("%d..%d", y:min(), y:max()),
    string.format("%.6f", wide:mean() / 255), native.sha256_file(images):sub(1, 16),
  }
end

local function check(dir)
  local rows, problems = {}, {}
  for _, prefix in ipairs { "train", "t10k" } do
    local row, problem = read_pair(dir, prefix)
    if row then rows[#rows + 1] = row else problems[#problems + 1] = problem end
  end
  if #rows > 0 then
    native.write(1,
      table.concat(tables.render({ "part", "images", "size", "labels", "mean/255", "sha256" }, rows), "\n") .. "\n")
  end
  if #problems > 0 then fault.raise(fault.RUNTIME, "%s", table.concat(problems, "\n")) end
  return 0
end

function data.main(args)
  if not args.action then return list() end
  if args.action ~= "check" then
    fault.raise(fault.USAGE, "data: 'check DIR', or nothing for a list; got '%s'", args.action)
  end
  if not args.dir then fault.raise(fault.USAGE, "data: check needs a directory") end
  return check((args.dir:gsub("(.)/+$", "%1")))
end

return data
