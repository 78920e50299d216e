--- One line of help for each function of ph.laws (statement and proof: docs/laws.md).

local schema = require "ph.schema"

local words <const> = {
  { "orthogonality", "ph.orthogonality(C)", "max |C^T C - I| beside its tolerance." },
  { "reach", "ph.reach(C)",
    "How far C is from what no Cayley transport can be: the smallest singular value of I + C." },
  { "transport_volume", "ph.transport_volume(C)",
    "ln |det C| and its sign: every Cayley transport has determinant +1." },
  { "contraction", "ph.contraction(Lambda)",
    "Norm and spectrum of a dissipation; the multiplicity of the eigenvalue 1." },
  { "volume", "ph.volume(stream), ph.volume(M), ph.volume(R, step)",
    "Exact ln |det| with its sign; for a damping also meter, error and series." },
  { "meter_error", "ph.meter_error(R, step, count)",
    "Error of the meter -h tr R at steps h, h/2, ..., and the ratios of neighbours." },
  { "guarded", "ph.guarded(L, step, budget)", "Does the budget guard act, and what does it leave?" },
  { "budget_for", "ph.budget_for { contract =, depth =, width = }",
    "The damping that a wanted contraction of volume needs." },
  { "generator", "ph.generator(C), ph.generator(Lambda)",
    "The skew S of a transport, the hR of a damping: the inverse maps with their condition." },
  { "law_stream", "ph.law_stream { A =, L =, B =, step =, budget = }",
    "A stream for the laws from its parameters, layers first." },
  { "random_stream", "ph.random_stream { depth =, width =, step =, seed = }",
    "A stream for the laws with random parameters." },
  { "matrix_stream", "ph.matrix_stream(M)",
    "A stream of bare matrices (layers, d, d): only spectrum and gradients are known." },
  { "trained_stream", "ph.trained_stream(path)", "The state channel of a trained net, from its run file." },
  { "ceiling", "ph.ceiling(stream, x0, u)",
    "States of a stream beside the norm ceiling, energy beside its exact balance." },
  { "gradient_bracket", "ph.gradient_bracket(stream, gL)", "Gradients from the last layer down beside their bracket." },
  { "necessity", "ph.necessity(stream)",
    "Without dissipation singular values stay at 1: how many, at least and found." },
  { "spectrum", "ph.spectrum(stream)", "Singular spectrum of a deep product by QR accumulation." },
  { "oscillation", "ph.oscillation { r =, j =, h = }",
    "Moduli of a mode under the explicit step and the Cayley maps, and the phase error." },
  { "euler_twin", "ph.euler_twin(C, Lambda)", "The explicit step I - S - hR with the same generators." },
  { "splitting_error", "ph.splitting_error(S, R, h)", "|Lambda C - exp(-S - hR)| and its parts." },
  { "polar_split", "ph.polar_split(M)", "Lambda and C from their product alone: left polar factors." },
  { "scaled_norm", "ph.scaled_norm(t)", "Euclidean norm that does not overflow before the elements do." },
}

schema.describe("plot", "tensors", "ph.plot(y), ph.plot(x, y), ph.plot(y, { file = 'a.png', log = true })",
  "Lines in the terminal, or in a .png, .svg or .pdf file; a matrix gives one line a row.")
schema.describe("load", "tensors", 'load "specs/e6.lua", load "runs/HASH.h5"',
  "In the session: a spec as an experiment (.cells, :ir(n), :plan(n)), a run file as a run (.record, .history, "
  .. ".params, .profiles, :stream(), :plan()).")

for _, w in ipairs(words) do schema.describe(w[1], "laws", w[2], w[3]) end
