-- The figure "cells": what it takes from a ledger.

local native = require "ph.native"
local cells_figure = require "ph.report.cells"
local ledger = require "ph.run.ledger"

local function book(records)
  local dir = os.tmpname()
  os.remove(dir)
  assert(native.mkdir(dir))
  local prev, lines = "", {}
  for n, record in ipairs(records) do
    local line, hash = ledger.line({ event = "done", run = record.run, record = record }, n, prev,
      "2026-01-01T00:00:00Z")
    lines[n], prev = line, hash
  end
  lines[#lines + 1] = ""
  assert(native.write_file(ledger.path(dir), table.concat(lines, "\n")))
  return dir
end

local function run(family, depth, seed, accuracy, chosen)
  return { run = string.format("%s%d%d%s", family, depth, seed, tostring(chosen)), status = "done", chosen = chosen,
    cell = { family = family, depth = depth, seed = seed }, select = {}, metrics = { ["test.accuracy"] = accuracy } }
end

describe("the figure of a ledger", function()
  it("goes through the means over seeds of chosen runs", function()
    local dir = book {
      run("ph", 30, 0, 0.9, true), run("ph", 30, 1, 0.7, true), run("ph", 30, 1, 0.1, false),
      run("ph", 60, 0, 0.6, true), run("resnet", 30, 0, 0.5, true),
    }
    local figure = cells_figure.figure { dir }
    assert.equal(1, #figure.panels)
    local panel = figure.panels[1]
    assert.equal("depth", panel.xlabel)
    assert.equal("ph", panel.series[1].label)
    near(0.8, panel.series[1].data:at(1, 2), { atol = 1e-15, why = "the mean of 0.9 and 0.7" })
    assert.equal(3, panel.series[2].data:shape()[1])
    assert.equal("resnet", panel.series[3].label)
  end)

  it("names the families under their marks when there is one depth", function()
    local panel = cells_figure.figure {
      book { run("ph", 30, 0, 0.9, true), run("resnet", 30, 0, 0.5, true) },
    }.panels[1]
    assert.same({ "depth = 30", "ph resnet" }, { panel.xlabel, panel.xnames })
    assert.equal(2, panel.series[4].data:at(1, 1))
    assert.matches("ph +resnet", require "ph.figure".text({ name = "cells", title = "", panels = { panel } }, 80))
  end)

  it("is none without a finished run", function()
    assert.is_nil(cells_figure.figure { book {} })
  end)

  it("refuses a ledger that was changed", function()
    local dir = book { run("ph", 30, 0, 0.9, true) }
    local text = assert(native.read_file(ledger.path(dir)))
    assert(native.write_file(ledger.path(dir), (text:gsub("0.9", "0.8"))))
    assert.is_false((pcall(cells_figure.figure, { dir })))
  end)
end)
