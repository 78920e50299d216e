--- The verbs of the command line, in the order in which help lists them.
--
-- A verb is a module with
--   module.arguments(parser)   declares its arguments on a lua-argparse parser (optional). A positional argument called
--                              "overrides" with :args "*" takes key=value words; main gets them checked, as they were written.
--   module.main(args) -> code  does the work, prints results on standard output, returns the exit code. It may raise
--                              ph.fault values; any other error is printed as one line and ends with code 1.
-- A verb whose module is not installed is not listed and not accepted.

return {
  { "run", "ph.run", "run an experiment: train every cell, measure, save; goes on where it was (the default verb)" },
  { "check", "ph.check", "compile only: shapes, parameters, cost, time and the bounds that hold; of a run file, the bounds at its weights" },
  { "lock", "ph.lock", "freeze grid, protocol, data and rules of a spec under a hash" },
  { "deviate", "ph.deviation", "record a departure from the lock, with its reason" },
  { "verdict", "ph.verdict", "apply the locked rules to the results" },
  { "verify", "ph.verify", "check hashes and files of a results directory; compare two bit by bit" },
  { "status", "ph.status", "what a results directory holds" },
  { "report", "ph.report", "one page with plan, results, rules and figures" },
  { "plot", "ph.plot", "draw figures from results" },
  { "inspect", "ph.inspect", "print compiled programs (--plan), canonical texts (--ir) or the contents of a run file" },
  { "recover", "ph.recover", "rebuild a ledger from a run's log" },
  { "data", "ph.data", "where data sets are and how to get them" },
  { "laws", "ph.laws_suite", "run the law suite" },
  { "bench", "ph.bench", "time training steps on this machine, beside a peer where one is found" },
  { "repl", "ph.repl", "explore interactively (the default without arguments)" },
  { "test", "ph.selftest", "run the program's own tests" },
}
