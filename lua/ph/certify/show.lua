--- What `phrun check` prints of certificates: of every model of a spec at the weights its seed draws, and
-- of a run file at its trained weights.

local native = require "ph.native"
local certify = require "ph.certify"
local fault = require "ph.util.fault"
local runfile = require "ph.run.runfile"

local show = {}

local function print_lines(lines) native.write(1, table.concat(lines, "\n") .. "\n") end

--- groups: list of { key, first = { ir, seed } }, one a model.
function show.of_groups(groups)
  native.write(1, "certificates: what holds by construction, and at the weights that each model starts with\n\n")
  for _, group in ipairs(groups) do
    local one = group.first
    native.write(1, (group.key ~= "" and group.key or "model") .. ", seed " .. tostring(one.seed) .. "\n")
    print_lines(certify.report(certify.at_start(one.ir, one.seed)))
  end
end

local measured <const> = {
  { "growth", "median ||z_L||/||z_0||" }, { "port.ratio", "largest ||z_t|| over its port budget" },
  { "port.violations", "states above their port budget" },
  { "grad.first", "||g_0||/||g_L||" }, { "grad.max", "largest ||g_t||/||g_L||" },
  { "grad.min", "smallest ||g_t||/||g_L||" },
}

local function measured_lines(record)
  local out = {}
  for _, m in ipairs(measured) do
    local v = (record.metrics or {})[m[1]]
    if v then out[#out + 1] = string.format("    %-38s %.5g  [measured]", m[2], v) end
  end
  return out
end

--- `phrun check RUN.h5`. Returns the exit code.
function show.of_file(path)
  local run, problem = runfile.open(path)
  if not run then fault.raise(native.stat(path) and fault.TAMPERED or fault.USAGE, "%s", problem) end
  local record = run.record
  if not run.file:kind "/final" then
    local pruned = run.file:attr("/", "pruned")
    run.file:close()
    fault.raise(fault.USAGE, "%s: %s (%s)", path, pruned and "its weights were pruned" or "it holds no model",
      tostring(record.label))
  end
  local certificate, group = certify.of_run(run)
  run.file:close()
  native.write(1,
    string.format("%s: %s, %s; certificate at its %s weights\n", record.run, record.label, record.status, group))
  print_lines(certify.report(certificate))
  local lines = measured_lines(record)
  if #lines > 0 then
    native.write(1, "  on the samples of its test set\n")
    print_lines(lines)
  end
  return 0
end

return show
