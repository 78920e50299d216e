local chart = require "ph.report.chart"
local charts = require "ph.report.charts"
local html = require "ph.report.html"
local markdown = require "ph.report.markdown"
local words = require "ph.rules.words"

-- Every tag that opens is closed, in order; attributes are quoted.
local function well_formed(text)
  local stack = {}
  for close, name, rest in text:gsub("<style>.-</style>", ""):gsub("<!doctype html>", "")
    :gmatch "<(/?)([%a][%w]*)([^>]*)>" do
    if close == "/" then
      assert.equal(table.remove(stack), name)
    elseif not rest:find "/$" and name ~= "meta" then
      stack[#stack + 1] = name
    end
    assert.is_nil((rest:gsub('"[^"]*"', '""')):find '=[^"]')
  end
  assert.equal(0, #stack)
end

local nasty <const> = "<script>alert('x')</script> & | \"q\" `c`"

local doc <const> = {
  title = "e & <b>", subtitle = nasty,
  blocks = {
    { kind = "heading", text = "Rules" }, { kind = "banner", tone = "bad", title = "Verdict: no", text = nasty },
    { kind = "text", text = nasty, tone = "quiet" },
    { kind = "facts", rows = { { "Lock", { text = "abc", code = true } }, { "n", nasty } } },
    { kind = "list", items = { nasty } },
    { kind = "table", headers = { "a", "b" }, rows = { { "1.5", { text = "hit", tone = "good" } }, { nasty } } },
    { kind = "rules",
      items = {
        { name = nasty, tone = "open", truth = "not evaluable", formula = "a <= b", note = "n", reason = nasty,
          rows = { { at = "d=1", numbers = "1 <= 2", tone = "good", truth = "true" } } },
      } },
    { kind = "figures",
      items = {
        { svg = chart.svg { title = nasty, x_label = "x", y_label = "y", series = {} }, title = "t",
          data = { headers = { "x" }, rows = { { "1" } } } },
      } },
    { kind = "code", title = "spec", text = "local a = '```'\nif a < 1 then end", language = "lua" },
  },
}

describe("a page", function()
  it("is well-formed, self-contained HTML whatever the texts are", function()
    local page = html.page(doc)
    well_formed(page)
    assert.is_nil(page:find "<script")
    assert.is_nil(page:find "https?:")
    assert.is_nil(page:find "<link")
    assert.is_nil(page:find "@import")
    assert.truthy(page:find("prefers-color-scheme:dark", 1, true))
    assert.truthy(page:find('name="viewport"', 1, true))
  end)

  it("keeps cells in their columns as Markdown, and code in a fence longer than any inside", function()
    local page = markdown.page(doc)
    assert.truthy(page:find("| <script>alert('x')</script> & \\| \"q\" `c` |  |", 1, true))
    assert.truthy(page:find("````lua\nlocal a = '```'\nif a < 1 then end\n````", 1, true))
    assert.truthy(page:find("| 1.5 | hit |", 1, true))
  end)
end)

describe("a chart", function()
  local function coordinates(svg)
    for attr, v in svg:gmatch ' (%a+)="([^"]*)"' do
      if attr == "cx" or attr == "cy" or attr == "x" or attr == "y" or attr == "x1" or attr == "y2" then
        local n = tonumber(v)
        assert.truthy(n, attr .. "=" .. v)
        assert.is_true(n >= -1 and n <= 461, attr .. "=" .. v)
      end
    end
    assert.is_nil(svg:find "nan")
    assert.is_nil(svg:find "inf")
  end

  local function line(values)
    local points = {}
    for i, v in ipairs(values) do points[i] = { x = i, mean = v, sd = 0.1, values = { v, v } } end
    return { { name = "a", points = points } }
  end

  it("stays inside its frame for any values", function()
    for _, values in ipairs { { 1, 2, 3 }, { 0, 0, 0 }, { 5 }, { 1e-9, 1e9 }, { -3, 4 }, { 1e300, 1e-300 } } do
      local c = { title = "t", x_label = "x", y_label = "y", series = line(values) }
      c.log = chart.wants_log(c)
      coordinates(chart.svg(c))
    end
  end)

  it("leaves out what cannot be drawn", function()
    local c = {
      title = "t", x_label = "x", y_label = "y", log = true,
      series = { { name = "a", points = { { x = 1, mean = 0 }, { x = 2, mean = math.huge }, { x = 3, mean = 10 } } } },
    }
    coordinates(chart.svg(c))
    assert.equal(1, select(2, chart.svg(c):gsub("<circle", "")))
  end)

  it("takes a log scale for positive values over a factor of thirty, never with zero or negative ones", function()
    assert.is_true(chart.wants_log { series = line { 1, 40 } })
    assert.is_false(chart.wants_log { series = line { 1, 20 } })
    assert.is_false(chart.wants_log { series = line { 0, 40 } })
    assert.is_false(chart.wants_log { series = line { -1, 40 } })
  end)
end)

describe("the figures of a ledger", function()
  local function ctx(tasks)
    local out = { cells = {} }
    for _, task in ipairs(tasks) do
      for _, family in ipairs { "ph", "resnet" } do
        for _, depth in ipairs(task == "spirals" and { 120 } or { 30, 120 }) do
          for seed = 0, 2 do
            out.cells[#out.cells + 1] = {
              values = { task = task, family = family, depth = depth, seed = seed }, label = "", runs = {},
              chosen = { record = { status = "done", metrics = { ["test.accuracy"] = 0.9 + seed / 100 } } },
            }
          end
        end
      end
    end
    return out
  end

  it("have depth along, a line a family, a panel a task, seeds as dots", function()
    local list = charts.all(ctx { "circles", "spirals" }, { "test.accuracy" })
    assert.same({ "Test accuracy, circles", "Test accuracy, spirals" }, { list[1].title, list[2].title })
    assert.equal(4, #list[1].data.rows)
    assert.same({ "ph", "30", "0.91", "0.01", "3" }, list[1].data.rows[1])
    assert.equal(2, #list[2].data.rows)
  end)

  it("show nothing where nothing was measured", function()
    assert.same({}, charts.all(ctx { "circles" }, { "growth" }))
    assert.same({}, charts.all({ cells = {} }))
  end)
end)

describe("words of a verdict", function()
  it("say three truth values and cut long lists of reasons", function()
    assert.same({ "true", "false", "not evaluable" }, { words.truth(true), words.truth(false), words.truth(nil) })
    assert.equal("a; b; c; and 2 more", words.reasons { "a", "b", "c", "d", "e" })
    assert.equal("", words.reasons {})
  end)
end)
