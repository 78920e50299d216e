--- Image tasks from IDX files (the format of MNIST and Fashion-MNIST), plain or gzip.
--
-- DIR holds train-images-idx3-ubyte and train-labels-idx1-ubyte, and the same for the test prefix, each possibly with
-- .gz. Train and val are taken from the training files by a seeded permutation; the test set is all of the test files.
-- Pixels are standardised by the mean and deviation of all pixels of the train split.

local native = require "ph.native"
local schema = require "ph.schema"
local task = require "ph.lang.task"

local images = {}

--- Path of a file that may be gzipped, or nil and a message.
local function find(dir, name)
  for _, suffix in ipairs { "", ".gz" } do
    local path = dir .. "/" .. name .. suffix
    local found = native.stat(path)
    if found and found.kind == "file" then return path, found end
  end
  return nil, string.format("task.images: %s/%s: no such file (nor with .gz)", dir, name)
end

local function names(prefix) return prefix .. "-images-idx3-ubyte", prefix .. "-labels-idx1-ubyte" end

local function must(v, problem)
  if not v then error(problem, 0) end
  return v
end

local function read_pair(v, prefix)
  local image_name, label_name = names(prefix)
  local image_path, label_path = must(find(v.dir, image_name)), must(find(v.dir, label_name))
  local x, y = native.idx_pair(image_path, label_path, v.classes)
  if not x then error(tostring(y), 0) end
  local shape = x:shape()
  if shape[2] ~= v.height or shape[3] ~= v.width then
    error(
      string.format("%s: images are %d x %d, the spec says height = %d, width = %d", image_path, shape[2], shape[3],
        v.height, v.width), 0)
  end
  local n = math.min(shape[1], v.limit or shape[1])
  return x:reshape { shape[1], shape[2] * shape[3] }:slice(1, 1, n), y:cast("i32"):slice(1, 1, n), n
end

--- Mean and deviation over all pixels. Sums of bytes and of their squares are exact in double.
local function statistics(x)
  local f = x:cast "f64"
  local mean = f:mean()
  local square = f:mul(f)
  f:close()
  local variance = square:mean() - mean * mean
  square:close()
  return mean, variance > 0 and math.sqrt(variance) or 1
end

local function standardise(x, mean, deviation)
  local f <close> = x:cast "f32"
  local centred <close> = f - mean
  return centred / deviation
end

local function load(v, seed)
  local x, y, n = read_pair(v, "train")
  if v.split.train + v.split.val > n then
    error(
      string.format("task.images: split needs %d + %d training images, there are %d", v.split.train, v.split.val, n), 0)
  end
  local order = native.permutation(seed, "images/split", 0, n)
  local function rows(first, last)
    local index = order:slice(1, first, last)
    return x:gather(index), y:gather(index)
  end
  local train_x, train_y = rows(1, v.split.train)
  local val_x, val_y = rows(v.split.train + 1, v.split.train + v.split.val)
  local test_x, test_y, n_test = read_pair(v, v.test)
  if n_test == 0 then error(string.format("task.images: %s/%s holds no image", v.dir, (names(v.test))), 0) end
  local mean, deviation = statistics(train_x)
  local function part(px, py) return { x = standardise(px, mean, deviation), y = py } end
  return { train = part(train_x, train_y), val = part(val_x, val_y), test = part(test_x, test_y) }
end

local digests = {} -- path -> { size, mtime, hash }: planning hashes a large file once a process

local function file_hash(path, found, anew)
  local known = not anew and digests[path]
  if known and known.size == found.size and known.mtime == found.mtime then return known.hash end
  local hash, problem = native.sha256_file(path)
  if not hash then return nil, problem end
  digests[path] = { size = found.size, mtime = found.mtime, hash = hash }
  return hash
end

local function digest(v, anew)
  local parts = {}
  for _, prefix in ipairs { "train", v.test } do
    for _, name in ipairs { names(prefix) } do
      local path, found = find(v.dir, name)
      if not path then return nil, found end
      local hash, problem = file_hash(path, found, anew)
      if not hash then return nil, problem end
      parts[#parts + 1] = hash
    end
  end
  return native.sha256(table.concat(parts, "\n"))
end

local function check(v)
  if v.split.test then
    schema.fail("task.images", "split has only train and val; the test set is the files that 'test' names")
  end
end

local function shape(v)
  if v.as == "rows" then return { classes = v.classes, positions = v.height, features = v.width } end
  return { classes = v.classes, positions = 1, features = v.height * v.width }
end

images.images = task.constructor({
  name = "task.images",
  doc = "Grey images from IDX files, each as one vector or as a sequence of rows. Pixels are standardised by the mean "
    .. "and the deviation of all pixels of the training split.",
  example = "ph.task.images { dir = '/usr/share/datasets/fashion-mnist', split = { train = 54000, val = 6000 } }",
  keys = {
    { "dir", kind = "string", required = true, pattern = ".", pattern_text = "a directory", affects = false,
      doc = "directory of the files; their contents are hashed" },
    { "format", kind = "choice", allowed = { "idx" }, default = "idx", doc = "format of the files" },
    { "as", kind = "choice", allowed = { "vector", "rows" }, default = "vector",
      doc = "vector: all pixels are features; rows: a sequence of rows" },
    { "height", kind = "integer", min = 1, max = 4096, default = 28, doc = "rows of an image; the files must agree" },
    { "width", kind = "integer", min = 1, max = 4096, default = 28, doc = "pixels of a row" },
    { "classes", kind = "integer", min = 2, max = 256, default = 10, doc = "number of classes" },
    task.split_key "{ train = N, val = N } of the training files",
    { "test", kind = "string", pattern = "^[%w_%-%.]+$", pattern_text = "a file prefix", default = "t10k",
      doc = "prefix of the test files" },
    { "limit", kind = "integer", min = 1, doc = "use only the first N images of each file" },
    task.seed_key(),
  },
}, { shape = shape, load = load, digest = digest, check = check })

return images
