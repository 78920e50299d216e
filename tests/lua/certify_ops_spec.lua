-- What certificates know of inverses, systems, factors and blocks of positions: bounds by construction, attained.

local native = require "ph.native"
local certify = require "ph.certify"
local segment = require "ph.certify.segment"

local d <const> = 3

--- The facts of a stream of depth 1 whose step is the matrix that `nodes` make last: by construction and with L =
-- value.
local function facts(nodes, value)
  local lines = { "phrun-ir 1", "dtype f64", "input 1 " .. d, "segment depth 1", "param L 3 3 zeros" }
  for i, node in ipairs(nodes) do lines[#lines + 1] = string.format("node %d %s", i - 1, node) end
  local n = #nodes
  lines[#lines + 1] = string.format("node %d state\nnode %d apply n%d n%d", n, n + 1, n - 1, n)
  lines[#lines + 1] = string.format("result n%d\nend\nloss none\n", n + 1)
  local seg = assert(native.ir_parse(table.concat(lines, "\n"))).segments[1]
  return segment.facts(seg), segment.facts(seg, { value })
end

local zero <const>, some <const> = native.tensor({ d, d }, "f64"), native.random("normal", 1, "L", { d, d }, 1.0)

local function near(want, got)
  assert(math.abs(want - got) <= 1e-12 * math.abs(want), string.format("%.17g, not %.17g", got, want))
end

describe("by construction", function()
  it("the inverse of c I + L L^T is at most 1/c, attained at L = 0", function()
    local nodes = { "eye n=3", "scale by=0.0001 n0", "gram p0", "add n1 n2", "inverse n3" }
    local c, w = facts(nodes, zero)
    near(1e4, c.gain)
    near(1e4, w.gain)
    local _, other = facts(nodes, some)
    assert(other.gain <= c.gain)
  end)

  it("the inverse of I + S is at most 1: what is skew takes nothing from the quadratic form", function()
    for _, order in ipairs { "add n0 n1", "add n1 n0", "sub n0 n1" } do
      local c, w = facts({ "eye n=3", "skew p0", order, "inverse n2" }, some)
      near(1, c.gain)
      near(1, w.gain) -- odd width: S has a kernel
    end
  end)

  it("the solution of (I + L L^T) X = C is at most 1 for an orthogonal C, and I + L L^T has no less than 1", function()
    local nodes = { "gram p0", "eye n=3", "add n0 n1", "skew p0", "cayley n3", "solve n2 n4" }
    local c, w = facts(nodes, zero)
    near(1, c.gain)
    near(1, w.gain)
    local least = facts({ "gram p0", "eye n=3", "add n0 n1" }, zero)
    near(1, least.least)
  end)

  it("the Cholesky factor of c I + L L^T has no singular value below sqrt(c), one of a free matrix any", function()
    local c, w = facts({ "eye n=3", "scale by=4 n0", "gram p0", "add n1 n2", "cholesky n3" }, zero)
    near(2, c.least)
    near(2, w.least)
    local free = facts({ "cholesky p0" }, native.eye(d))
    assert.equal(0, free.least)
    assert.equal(math.huge, free.gain)
  end)

  it("the inverse of a free matrix has no bound", function()
    assert.equal(math.huge, (facts({ "inverse p0" }, some)).gain)
    assert.equal(math.huge, (facts({ "solve p0 p0" }, some)).gain)
  end)
end)

describe("blocks of positions", function()
  it("of k positions have sqrt(k) times their norm at most; a mean does not grow", function()
    local function gain(node)
      local head = "phrun-ir 1\ndtype f64\ninput 4 3\nsegment once 1\nnode 0 state\n"
      local tail = "result n1\nend\nloss none\n"
      local c = certify.of(head .. "node 1 " .. node .. " n0\n" .. tail).segments[1].construction
      assert.equal(0, c.gain)
      return c.port.z
    end
    near(2, gain "fold lines=4 wide=1")
    near(math.sqrt(2), gain "fold lines=2 wide=1")
    near(1, gain "unfold lines=3 wide=1")
    near(1, gain "mean_positions")
  end)
end)
