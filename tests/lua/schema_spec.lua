-- Misspelt keys, wrong numbers, holes: every fault of a spec is reported with its place and the nearest valid word.
local ph = require "ph"
local spec = require "ph.spec"

local good <const> = [[
local ph = require "ph"
return ph.experiment {
  name = "t",
  task = ph.task.circles { split = { train = 8, val = 4, test = 4 } },
  model = function(cell)
    return { ph.stream { depth = cell.depth, block = function(z) return z + ph.tanh(z) end }, ph.affine(4) }
  end,
  grid = { depth = 3 },
  train = ph.adam { lr = 0.1, epochs = 2 },
}
]]

--- Error lines of the good spec with one piece of text replaced by another.
local function errors(old, new)
  local from, to = good:find(old, 1, true)
  local e, list = spec.load_text(good:sub(1, from - 1) .. new .. good:sub(to + 1), "t.lua")
  assert.is_nil(e)
  local lines = {}
  for i, x in ipairs(list) do lines[i] = x.text end
  return table.concat(lines, "\n"), list
end

local function has(text, piece)
  assert.is_truthy(text:find(piece, 1, true), "\n  missing: " .. piece .. "\n  in: " .. text)
end

describe("a correct spec", function()
  it("loads", function()
    local e, list = spec.load_text(good, "t.lua")
    assert.is_truthy(e, list and list[1] and list[1].text)
  end)
end)

describe("misspelt keys", function()
  it("are reported with file, line and nearest key", function()
    has(errors("epochs = 2", "epochs = 2, patiance = 5"),
      "t.lua:9: adam: unknown key 'patiance' (did you mean 'patience'?)")
  end)

  it("are reported where they belong", function()
    has(errors("circles {", "circles { lr = 0.1,"),
      "t.lua:4: task.circles: unknown key 'lr' (it belongs to train (adam, sgd) or select)")
    has(errors('name = "t"', 'name = "t", patience = 3'),
      "experiment: unknown key 'patience' (it belongs to train (adam, sgd))")
    has(errors('name = "t"', 'name = "t", familly = "ph"'), "(did you mean the axis 'family' of grid?)")
  end)

  it("are reported all at once, in order of place", function()
    local e, list = spec.load_text([[
local ph = require "ph"
return ph.experiment {
  name = "t", familly = "ph",
  task = ph.task.circles { split = { train = 8, val = 4, test = 4 },
    lr = 0.1 },
  model = function() return { ph.affine { 4, initt = 1 } } end,
  train = ph.adam { epochs = 2,
    -- patiance in a comment, { and "patiance"
    patiance = 5 },
}]], "three.lua")
    assert.is_nil(e)
    local lines = {}
    for i, x in ipairs(list) do lines[i] = x.line end
    assert.same({ 3, 5, 9 }, lines)
  end)

  it("in a block are reported with the line in the block", function()
    has(errors("z + ph.tanh(z)", "z + ph.damping { step = 0.1, bugdet = 1 } * z"),
      "t.lua:6: damping: unknown key 'bugdet' (did you mean 'budget'?)")
  end)

  it("are errors at once outside a spec", function()
    local ok, e = pcall(ph.damping, { 3, stepp = 0.1 })
    assert.is_false(ok)
    assert.matches("damping: unknown key 'stepp' %(did you mean 'step'%?%)", tostring(e))
  end)

  it("that are given twice or by position are refused", function()
    local ok, e = pcall(ph.cayley, { 3, width = 3 })
    assert.is_false(ok)
    has(tostring(e), "key 'width' is given twice")
    has(errors("adam { lr = 0.1", "adam { 0.1"), "adam: takes keys by name; nothing belongs at position 1")
  end)

  it("that are missing are reported with their meaning", function()
    has(errors(", epochs = 2", ""), "t.lua:9: adam: key 'epochs' is missing")
  end)
end)

describe("undeclared names", function()
  it("are reported with the nearest name or string", function()
    has(errors("grid = { depth = 3 }", 'grid = { depth = 3, family = resnt, x = { "resnet" } }'),
      't.lua:8: undeclared name \'resnt\' (did you mean "resnet"?)')
    has(errors("grid = { depth = 3 }", "grid = { depth = deepth }"), "undeclared name 'deepth' (did you mean 'depth'?)")
    has(
      errors("return ph.experiment",
        "local block = {}\nfunction block.resnet(z) return z end\nlocal f = resnt\nreturn ph.experiment"),
      "undeclared name 'resnt' (did you mean \"resnet\"?)")
    has(errors("return ph.experiment", "local function helper() end\nlocal f = helpr\nreturn ph.experiment"),
      "undeclared name 'helpr' (did you mean 'helper'?)")
    has(errors("ph.adam", "ph.adm"), "t.lua:9: ph.adm: no such name (did you mean 'adam'?)")
  end)

  it("come with the errors found before", function()
    local text = errors("circles {", "circles { clases = 3, noise = noisee,")
    has(text, "undeclared name 'noisee'")
    local both = errors('return ph.experiment',
      'local a = ph.adam { epochs = 1, lrr = 2 }\nlocal b = nope\nreturn ph.experiment')
    has(both, "unknown key 'lrr' (did you mean 'lr'?)")
    has(both, "undeclared name 'nope'")
  end)
end)

describe("holes in lists", function()
  it("are named by index", function()
    has(errors("depth = 3", "depth = { 30, nil, 240 }"),
      "t.lua:8: experiment: grid: 'depth' has a hole: nothing at index 2 of 3")
    has(errors("depth = 3", "depth = { 30, 120, [4] = 240 }"), "'depth' has a hole: nothing at index 3 of 4")
    has(errors("depth = 3", "depth = { 30, x = 1 }"), "'depth' must be a list, but has the key 'x'")
    has(errors("train = ph", "select = { lr = { 0.1, nil, 0.2 } }, train = ph"),
      "select: 'lr' has a hole: nothing at index 2 of 3")
  end)

  it("in the list of stages are named", function()
    has(errors("{ ph.stream", "{ nil, ph.stream"), "model: the list of stages has a hole: nothing at index 1 of 3")
  end)
end)

describe("numbers", function()
  it("that are integral are integers, whatever way they are written", function()
    local e = spec.load_text((good:gsub("depth = 3", "depth = 240/2"):gsub("epochs = 2", "epochs = 1e2, batch = 2^8")),
      "t.lua")
    local same = spec.load_text((good:gsub("depth = 3", "depth = 120"):gsub("epochs = 2", "epochs = 100, batch = 256")),
      "t.lua")
    assert.equal("depth=120 seed=0", e:cells()[1]:text())
    assert.equal("integer", math.type(e.train.batch))
    assert.equal(same.train:canonical(), e.train:canonical())
    assert.equal(same:ir(same:cells()[1]), e:ir(e:cells()[1]))
  end)

  it("that are not are refused with key and reason", function()
    has(errors("depth = 3", "depth = 7/2"), "'depth' element 1 must be a whole number, got 3.5")
    has(errors("depth = 3", "depth = -3"), "'depth' element 1 must be at least 1, got -3")
    has(errors("depth = 3", "depth = 2^60"), "'depth' element 1 must be at most 1000000")
    has(errors("lr = 0.1", "lr = 0/0"), "adam: 'lr' must be a number, got nan")
    has(errors("lr = 0.1", "lr = 1/0"), "adam: 'lr' must be finite, got inf")
    has(errors("lr = 0.1", "lr = '0.1'"), "adam: 'lr' must be a number, got the string '0.1'")
    has(errors("train = 8", "train = 0"), "split: 'train' must be at least 1, got 0")
    has(errors("depth = 3", "depth = { 3, 4, 3 }"), "'depth' has 3 twice (elements 1 and 3)")
  end)
end)

describe("choices", function()
  it("by test data are refused", function()
    has(errors("epochs = 2", "epochs = 2, monitor = 'test.accuracy'"),
      "choosing by test data is refused, got 'test.accuracy'")
    has(errors("train = ph", "select = { lr = { 0.1 }, by = 'test.loss' }, train = ph"),
      "select: 'by' must be one of val.accuracy, val.loss: choosing by test data is refused")
  end)

  it("of other words get the nearest", function()
    has(errors("epochs = 2", "epochs = 2, schedule = 'cosin'"), "(did you mean 'cosine'?)")
    has(errors("epochs = 2", "epochs = 2, warmup = 3"), "adam: 'warmup' has no effect with schedule 'constant'")
  end)
end)
