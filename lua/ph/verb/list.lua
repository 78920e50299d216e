--- The verbs of the command line, in the order in which help lists them.
--
-- A verb is a module with
--   module.arguments(parser)   declares its arguments on a lua-argparse parser (optional). A positional argument called
--                              "overrides" with :args "*" takes key=value words; main gets them checked, as they were
--                              written.
--   module.main(args) -> code  does the work, prints results on standard output, returns the exit code. It may raise
--                              ph.util.fault values; any other error is printed as one line and ends with code 1.
-- A verb whose module is not installed is not listed and not accepted.

return {
  { "run", "ph.verb.run",
    "run an experiment: train every cell, measure, save; resumes where it stopped (the default verb)" },
  { "check", "ph.verb.check",
    "compile only: shapes, parameters, cost, time and the bounds that hold; of a run file, the bounds at its weights" },
  { "lock", "ph.verb.lock", "freeze grid, protocol, data and rules of a spec under a hash" },
  { "deviate", "ph.verb.deviate", "record a departure from the lock, with its reason" },
  { "verdict", "ph.verb.verdict", "apply the locked rules to the results" },
  { "verify", "ph.verb.verify", "check hashes and files of a results directory; compare two bit by bit" },
  { "status", "ph.verb.status", "what a results directory holds" },
  { "report", "ph.verb.report", "one page with plan, results, rules and figures" },
  { "plot", "ph.verb.plot", "draw figures from results" },
  { "inspect", "ph.verb.inspect",
    "print compiled programs (--program), canonical texts (--ir) or the contents of a run file" },
  { "prune", "ph.verb.prune", "drop the weights of run files; what is left is small enough to keep" },
  { "rebuild", "ph.verb.rebuild", "take run files that are not here from a directory where they were made again" },
  { "recover", "ph.verb.recover", "rebuild a ledger from a run's log" },
  { "data", "ph.verb.data", "where data sets are and how to get them" },
  { "laws", "ph.verb.laws", "run the law suite" },
  { "bench", "ph.verb.bench", "time training steps on this machine, beside a peer where one is found" },
  { "repl", "ph.verb.repl", "explore interactively (the default without arguments)" },
  { "test", "ph.verb.test", "run the program's own tests" },
}
