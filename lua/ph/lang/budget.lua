--- The damping budget that a wanted contraction of volume needs (docs/laws.md, section 5).

local budget = {}

--- The guard b with depth * width * 2 artanh(b/2) = ln kappa: `depth` layers of `width` eigenvalues
-- at b contract volume by exactly kappa.
function budget.for_contraction(kappa, width, depth)
  local each = math.log(kappa) / (2 * width * depth)
  if each < 1e-4 then return 2 * each * (1 - each * each / 3) end -- tanh below would cancel
  local e = math.exp(-2 * each)
  return 2 * (1 - e) / (1 + e)
end

return budget
