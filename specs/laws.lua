-- The laws of the stream on random streams: what the paper's harness measures (its figures 1 to 6), with settings found from its numbers.
-- Each law says its own; docs/laws.md, section 9, says why these.

local ph = require "ph"

return ph.laws_experiment {
  name = "laws",
  note = "L1-L5: conservation, volume, gradients, oscillation boundary, capacity",
  seed = 20261009,
  laws = {
    ph.law.conservation { streams = 72, inputs = 100, own = 7200, depth = 300, width = 32, step = 0.05, damping = 0.5 },
    ph.law.volume { layers = 10000, width = 32, draws = 20, halvings = 18 },
    ph.law.gradient { trials = 100, depth = 240, width = 32, step = 0.25, damping = 0.1, step2 = 0.05, damping2 = 0.31622776601683794 },
    ph.law.oscillation { damping = 0.05 },
    ph.law.capacity { depth = 120, width = 32, seeds = 3, step = 0.05, damping = 0.31622776601683794, noise = 0.25 },
  },
}
