--- The laws of the stream as functions. Each takes a tensor, a channel or a whole stream and returns a result
--- that prints as one line and carries `value`, `tol`, `ok`, `means` and its own details (docs/laws.md has
--- statement, proof and name of every one).
--
-- `laws.exports` lists what `require "ph"` offers by the same names.

local native = require "ph.native"
local boundary = require "ph.laws.boundary"
local dissipation = require "ph.laws.dissipation"
local maps = require "ph.laws.maps"
local result = require "ph.laws.result"
local stream = require "ph.laws.stream"
local trained = require "ph.laws.trained"
local transport = require "ph.laws.transport"

local laws = {
  maps = maps,
  orthogonality = transport.orthogonality,
  reach = transport.reach,
  contraction = dissipation.contraction,
  meter_error = dissipation.meter_error,
  guarded = dissipation.guarded,
  budget_for = dissipation.budget_for,
  law_stream = stream.new,
  random_stream = stream.random,
  matrix_stream = stream.of_matrices,
  trained_stream = trained.stream,
  ceiling = stream.ceiling,
  gradient_bracket = stream.gradient,
  necessity = stream.necessity,
  spectrum = stream.spectrum,
  oscillation = boundary.oscillation,
  euler_twin = boundary.euler_twin,
  splitting_error = boundary.splitting,
  polar_split = boundary.polar_split,
  scaled_norm = boundary.scaled_norm,
}

--- volume(stream), volume(matrix), or volume(R, step): exact ln|det| with its sign; for a
-- damping also meter, error and series.
function laws.volume(x, step)
  if stream.is(x) then return stream.volume(x) end
  if step then return dissipation.volume_of(x, step) end
  result.square("volume", x)
  local value, sign = native.la.logdet(x)
  return result.new {
    law = "log-volume ln|det|", value = value, sign = sign,
    means = string.format("volume is multiplied by e^%.6g; det has sign %+d", value, sign),
  }
end

--- transport_volume(C): ln|det C| with its tolerance; every Cayley transport has determinant +1.
laws.transport_volume = transport.transport_volume

--- generator(C) or generator(Lambda): the skew S of a transport (anything orthogonal), the hR of a damping.
function laws.generator(T)
  return (transport.orthogonality(T).ok and transport or dissipation).generator(T)
end

--- Names that `ph` offers.
laws.exports = {
  "orthogonality", "reach", "transport_volume", "contraction", "volume", "meter_error", "guarded", "budget_for",
  "generator", "law_stream", "random_stream", "matrix_stream", "trained_stream", "ceiling", "gradient_bracket",
  "necessity", "spectrum", "oscillation", "euler_twin", "splitting_error", "polar_split", "scaled_norm",
}

return laws
