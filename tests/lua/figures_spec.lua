-- Figures: the same after a trip through a file; pictures without a display; text that fits a terminal.

local native = require "ph.native"
local figures = require "ph.figure"
local plot = require "ph.verb.plot"

local function temp_dir()
  local path = os.tmpname()
  os.remove(path)
  assert(native.mkdir(path))
  return path
end

local function sample()
  local curve, band = native.tensor({ 20, 2 }, "f64"), native.tensor({ 20, 3 }, "f64")
  for i = 1, 20 do
    for c, v in ipairs { i, 10.0 ^ (i / 4) } do curve:put(v, i, c) end
    for c, v in ipairs { i, 10.0 ^ (i / 4 - 1), 10.0 ^ (i / 4 + 1) } do band:put(v, i, c) end
  end
  local panel = { title = 'growth "so to say"', xlabel = "layer", ylabel = "norm", logy = true, series = {
    { label = "5 to 95 %", style = "band", data = band, color = 1 },
    { label = "median", style = "line", data = curve, color = 1 } } }
  return {
    name = "fig9", title = "A test",
    panels = { panel, { xlabel = "x", ylabel = "y", key = false, series = { { style = "points", data = curve } } } },
  }
end

local function written(figure)
  local dir, items = temp_dir(), {}
  figures.add(items, figure)
  figures.add(items, { name = "fig8", title = "A table", text = "law   value\nT1    1e-15\n" })
  assert(native.h5_write(dir .. "/r.h5", items))
  return dir, dir .. "/r.h5"
end

--- Runs fn with standard output caught.
local function caught(fn)
  local kept, out = native.write, {}
  native.write = function(_, text) out[#out + 1] = text return true end
  local ok, value = pcall(fn)
  native.write = kept
  assert(ok, type(value) == "table" and value.message or value)
  return table.concat(out)
end

describe("figures", function()
  it("come back from a file as they went in", function()
    local _, path = written(sample())
    local file <close> = assert(native.h5_read(path))
    assert.same({ "fig8", "fig9" }, figures.names(file))
    local f, want = figures.read(file, "fig9"), sample()
    assert.equal(figures.script(want, ""), figures.script(f, ""))
    assert.equal('growth "so to say"', f.panels[1].title)
    assert.is_true(f.panels[1].logy)
    assert.equal("law   value\nT1    1e-15\n", figures.read(file, "fig8").text)
  end)

  it("are drawn as PNG, SVG and PDF without a display (case P22)", function()
    local dir, path = written(sample())
    assert.is_nil(native.getenv "DISPLAY")
    local out = caught(function() assert.equal(0, plot.main { results = path }) end)
    for name, magic in pairs {
      ["fig9.png"] = "^\137PNG", ["fig9.svg"] = "<svg", ["fig9.pdf"] = "^%%PDF", ["fig8.png"] = "^\137PNG",
    } do
      local file = dir .. "/figures/" .. name
      assert.matches(magic, assert(native.read_file(file)))
      assert(out:find(file, 1, true), name)
    end
  end)

  it("are drawn as text of at most 80 columns", function()
    local text = figures.text(sample(), 80)
    for line in text:gmatch "[^\n]*" do assert((utf8.len(line) or #line) <= 80, line) end
    assert.matches("layer", text)
    assert.is_nil(text:find "\27")
  end)

  it("give lines of one colour one dash, and in characters one character", function()
    local y = native.from({ { 1, 1 }, { 2, 3 } }, "f64")
    local panel = {
      logy = true,
      series = {
        { label = "a", style = "line", data = y, color = 1 }, { label = "", style = "line", data = y * 2, color = 1 },
        { label = "b", style = "line", data = y * 50, color = 2 },
      },
    }
    local figure = { name = "f", title = "t", panels = { panel } }
    local dashes = {}
    for dash in figures.script(figure, ""):gmatch "lw 2 dt (%d)" do dashes[#dashes + 1] = dash end
    assert.same({ "1", "1", "2" }, dashes)
    local text = figures.text(figure, 70)
    assert.is_nil(text:find "%$" or text:find "10%^" or text:find "[ \n]\n\n" or text:find "^\n")
    assert.matches("a %*+ +b #+", text)
    assert.matches("1e2", text)
  end)

  it("do not leave out a directory that is none", function()
    local dir = written(sample())
    local ok, problem = pcall(plot.main, { results = dir, with = { dir .. "/nothing" } })
    assert.is_false(ok)
    assert.matches("nothing: not a results directory", problem.message)
  end)

  it("plots a tensor in the terminal or to a file", function()
    local y = native.random("normal", 1, "figures_spec", { 50 })
    assert.matches("%*", figures.plot(y))
    local path = temp_dir() .. "/a.svg"
    assert.equal(path, figures.plot(y, { file = path, title = "numbers" }))
    assert.matches("numbers", native.read_file(path))
    assert.matches("row 2", figures.plot(native.random("normal", 1, "figures_spec", { 3, 9 })))
    assert.has_error(function() figures.plot(y, native.tensor({ 3 }, "f64")) end)
  end)

  it("refuse what they cannot draw, in one line", function()
    local dir, path = written(sample())
    local function message(args)
      local ok, e = pcall(plot.main, args)
      assert.is_false(ok)
      return type(e) == "table" and e.message or tostring(e)
    end
    assert.matches("no figure 'fig7' %(there are fig8, fig9%)", message { results = path, figure = "fig7" })
    assert.matches("no such file", message { results = dir .. "/none" })
    assert.matches("%-%-to gif", message { results = path, to = "gif" })
    assert.matches("no figures", message { results = temp_dir() })
    assert.matches("%.png, %.svg or %.pdf", (function()
      local _, e = pcall(figures.draw, sample(), dir .. "/a.gif")
      return e.message
    end)())
  end)
end)
