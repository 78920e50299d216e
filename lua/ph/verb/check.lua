--- `phrun check SPEC`: compiles every model of the grid and says what it is, what it will cost and what bounds hold
-- (ph.certify), before anything runs. `phrun check RUN.h5`: the bounds at the weights of a finished run.
--
-- Time is estimated from a few training steps on random numbers with the threads that a run would have; early stopping
-- makes the real time shorter.

local native = require "ph.native"
local certificates = require "ph.certify.show"
local fault = require "ph.util.fault"
local job = require "ph.run.job"
local lacking = require "ph.lang.lacking"
local options = require "ph.verb.options"
local tables = require "ph.util.tables"

local check = {}

local measured_seconds <const> = 0.15

function check.arguments(parser)
  options.spec(parser, "SPEC|RUN.h5", "a Lua file that returns ph.experiment { ... }, or the file of a finished run")
  options.workers(parser)
end

--- Seconds of a training step, the best of those that fit into a moment.
function check.step_seconds(plan, model, batch)
  local x = native.random("normal", 0, "check/x", { batch, model.input.pos * model.input.feat }, 1, model.dtype)
  local y = model.needs == "targets" and native.tensor({ batch, model.output.pos * model.output.feat }, model.dtype)
    or native.tensor({ batch }, "i32")
  local data <close> = native.data(x, y)
  local optim = { kind = "adam", lr = 1e-12 }
  plan:init(0)
  plan:step(data, nil, optim)
  local best, started = math.huge, native.now()
  repeat
    local at = native.now()
    plan:step(data, nil, optim)
    best = math.min(best, native.now() - at)
  until native.now() - started > measured_seconds
  return best
end

--- Facts of one model: { params, cost, step_seconds, model }.
local function examine(one, threads)
  local plan, problem = native.plan(one.ir, { batch = one.protocol.batch, threads = threads })
  if not plan then fault.raise(fault.USAGE, "%s: %s", one.cell_label, problem) end
  local model = plan:model()
  local _, total = plan:params()
  local facts = {
    params = total, cost = plan:cost(), model = model,
    step_seconds = check.step_seconds(plan, model, one.protocol.batch),
  }
  plan:close()
  return facts
end

local function shape(s)
  return s.pos > 1 and s.pos .. "x" .. s.feat or tostring(s.feat)
end

local function memory(cost, threads)
  return cost.bytes_param + cost.bytes_packed + cost.bytes_grad + threads * cost.bytes_tape
end

--- Training samples of a task without loading it, when its split says so.
local function train_count(experiment, cell)
  local values = experiment:task_of(cell).values
  return values and values.split and values.split.train
end

local function row_of(group, threads)
  local f, one = group.facts, group.first
  local flops = f.cost.flops_param + one.protocol.batch * f.cost.flops_stream
  local seconds = group.steps and group.steps * f.step_seconds
  return {
    group.key, shape(f.model.input) .. " -> " .. shape(f.model.output), tostring(#group.jobs), tables.count(f.params),
    tables.si(flops) .. "FLOP",
    tables.bytes(memory(f.cost, threads)), string.format("%.2f ms", 1e3 * f.step_seconds),
    tables.si(flops / f.step_seconds) .. "FLOP/s",
    seconds and tables.duration(seconds) or "?",
  }, seconds or 0
end

--- Groups jobs that run the same model: list of { key, first, jobs, steps (most steps of all of them) }.
local function group_jobs(experiment, cells, source_cells)
  local order, by_ir = {}, {}
  for i, cell in ipairs(cells) do
    local n = train_count(experiment, source_cells[i])
    for _, one in ipairs(cell.jobs) do
      local group = by_ir[one.ir]
      if not group then
        group = { key = source_cells[i]:text { seed = true }, first = one, jobs = {}, steps = n and 0 }
        by_ir[one.ir], order[#order + 1] = group, group
      end
      group.jobs[#group.jobs + 1] = one
      if n and group.steps then
        group.steps = group.steps + one.protocol.epochs * ((n + one.protocol.batch - 1) // one.protocol.batch)
      end
    end
  end
  return order
end

local function print_problems(cells)
  local seen, code = {}, 0
  for _, cell in ipairs(cells) do
    local problem = cell.jobs[1] and cell.jobs[1].problem
    if problem and not seen[problem] then
      seen[problem], code = true, fault.RUNTIME
      native.write(1, "data: " .. problem .. "\n")
    end
  end
  return code
end

function check.main(args)
  if args.spec:find "%.h5$" then return certificates.of_file(args.spec) end
  local experiment = options.load(args)
  if experiment.main then return experiment:main(options.directory(args, experiment), { dry_run = true }) end
  options.defaults(args)
  local cells, rows, total, jobs = job.cells(experiment), {}, 0, 0
  local code = print_problems(cells)
  local groups = group_jobs(experiment, cells, experiment:cells())
  for i, group in ipairs(groups) do
    group.facts = examine(group.first, args.threads)
    local row, seconds = row_of(group, args.threads)
    rows[i], total, jobs = row, total + seconds, jobs + #group.jobs
  end
  native.write(1, string.format("%s: %d cells, %d runs, %d models\n\n", experiment.name, #cells, jobs, #rows))
  local headers = { "model", "shape", "runs", "params", "a step", "memory", "measured", "rate", "at most" }
  native.write(1, table.concat(tables.render(headers, rows), "\n") .. "\n\n")
  native.write(1,
    string.format("all epochs of all runs: about %s with %d thread%s%s; early stopping shortens it\n",
      tables.duration(total / args.jobs), args.threads, args.threads == 1 and "" or "s",
      args.jobs > 1 and string.format(" and %d runs at once", args.jobs) or ""))
  for _, note in ipairs(lacking.notes(experiment)) do native.write(1, "note: " .. note .. "\n") end
  native.write(1, "\n")
  certificates.of_groups(groups)
  return code
end

return check
