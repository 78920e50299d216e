--- The language as one table: what `require "ph"` gives a spec and what the REPL knows.

local channel = require "ph.lang.channel"
local experiment = require "ph.lang.experiment"
local figures = require "ph.figure"
local geometry = require "ph.lang.geometry"
local images = require "ph.lang.images"
local laws = require "ph.laws"
local loss = require "ph.lang.loss"
local laws_experiment = require "ph.laws.experiment"
local mark = require "ph.lang.mark"
local observe = require "ph.lang.observe"
local ops = require "ph.lang.ops"
local param = require "ph.lang.param"
local protocol = require "ph.lang.protocol"
local rules = require "ph.rules"
local stream = require "ph.lang.stream"
local teacher = require "ph.lang.teacher"
local tensors = require "ph.lang.tensors"
local words = require "ph.lang.words"
require "ph.laws.words"

local ph = {}

local function take(module, names)
  for _, name in ipairs(names) do ph[name] = assert(module[name], name) end
end

take(words, words.names)
take(words, { "cayley_of" })
take(ops, { "batch" })
take(channel, { "cayley", "damping", "damping_of", "guard", "identity", "param", "linear", "affine", "layernorm" })
take(param, { "normal", "uniform", "constant" })
take(stream, { "stream" })
take(mark, { "term", "observe" })
take(protocol, { "adam", "sgd" })
take(loss, loss.words)
take(observe, { "growth", "gradient_envelope", "port_budget", "observed" })
take(experiment, { "experiment" })
take(tensors, { "tensor", "eye", "zeros", "ones", "randn", "rand" })
for name, word in pairs(rules.words) do ph[name] = word end
take(laws, laws.exports)
take(figures, { "plot" })
take(laws_experiment, { "laws_experiment", "law" })
ph.task = {
  circles = geometry.circles, spirals = geometry.spirals, images = images.images, teacher = teacher.teacher,
}

return ph
