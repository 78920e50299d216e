#!/usr/bin/python3
"""What backs a run: its file, what pruning left of it, or the ledger alone; and pages that never take another's place."""
import json
import os
import shutil

import h5py
import harness

SPEC = """local ph = require "ph"
return ph.experiment {
  name = "mini",
  task = ph.task.circles { classes = 4, width = 8, split = { train = 64, val = 32, test = 32 } },
  model = function(cell)
    local function block(z) return z + 0.5 * ph.linear(8)(ph.tanh(ph.affine(8)(z))) end
    return { ph.stream { depth = cell.depth, block = block }, ph.affine(4) }
  end,
  grid = { depth = { 2, 3 }, seed = 0 }, select = { lr = { 1e-2, 3e-2 } },
  train = ph.adam { epochs = 2, batch = 32 }, measure = { ph.growth() },
  rules = { ph.rule { "small", { ph.mean { "growth" }, "<=", 1e6 } } },
}
"""


class Evidence(harness.Case):
    def setUp(self):
        super().setUp()
        self.write("mini.lua", SPEC)
        self.phrun("lock", "mini.lua")
        self.phrun("run", "mini.lua", "-q")
        self.out = "experiments/mini"

    def runs(self, out=None):
        folder = self.path(out or self.out, "runs")
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def verdict(self, *words, want):
        return self.phrun("verdict", "mini.lua", *words, want=want).stdout

    def test_files_that_are_not_here_are_unbacked_and_not_tampering(self):
        for path in self.runs():
            os.remove(path)
        done = self.phrun("verify", self.out)
        self.assertIn("4 runs: 4 unbacked, every file here as the ledger says", done.stdout)
        self.assertIn("--accept-unbacked", self.verdict(want=11))
        said = self.verdict("--accept-unbacked", want=0)
        self.assertIn("(4 runs: 4 unbacked)", said.splitlines()[-1])
        plain = json.loads(self.verdict("--accept-unbacked", "--json", want=0))
        self.assertEqual(plain["evidence"], {"present": 0, "pruned": 0, "unbacked": 4, "tampered": 0})

    def test_a_pruned_run_is_done_and_counts(self):
        before = self.verdict(want=0)
        sizes = sum(map(os.path.getsize, self.runs()))
        self.assertIn("4 runs dropped", self.phrun("prune", self.out).stdout)
        self.assertLess(sum(map(os.path.getsize, self.runs())), sizes)
        self.assertIn("4 runs: 4 pruned", self.phrun("verify", self.out).stdout)
        self.assertIn("all 4 runs of mini are already done", self.phrun("mini.lua").stdout)
        self.assertEqual(self.verdict(want=0), before.rstrip("\n") + " (4 runs: 4 pruned)\n")
        with h5py.File(self.runs()[0]) as f:
            self.assertEqual(f.attrs["pruned"], 1)
            self.assertNotIn("final", f)
            self.assertIn("history", f)
        self.assertIn("its weights were pruned", self.phrun("check", self.runs()[0], want=2).stderr)

    def test_weights_of_chosen_runs_can_be_kept(self):
        self.assertIn("2 kept", self.phrun("prune", self.out, "--keep-chosen").stdout)
        self.assertIn("2 present, 2 pruned", self.phrun("verify", self.out).stdout)

    def test_pruning_that_was_killed_before_the_file_changed_is_sound_and_goes_on(self):
        whole = self.path("whole")
        shutil.copytree(self.path(self.out), whole)
        self.phrun("prune", self.out)
        shutil.copy(os.path.join(whole, "runs", os.path.basename(self.runs()[0])), self.runs()[0])
        self.assertIn("1 present, 3 pruned", self.phrun("verify", self.out).stdout)
        self.assertIn("1 run dropped", self.phrun("prune", self.out).stdout)

    def test_an_edited_pruned_file_is_tampering(self):
        self.phrun("prune", self.out)
        with open(self.runs()[0], "r+b") as f:
            f.seek(-9, 2)
            f.write(b"x")
        self.assertIn("changed since it was written", self.phrun("verify", self.out, want=3).stdout)

    def test_a_directory_in_use_is_not_pruned(self):
        import fcntl
        with open(self.path(self.out, ".lock"), "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another phrun is writing here", self.phrun("prune", self.out, want=1).stderr)
        self.assertIn("not a results directory", self.phrun("prune", ".", want=1).stderr)

    def test_files_come_back_from_a_directory_where_the_runs_were_made_again(self):
        again = self.path("again")
        self.phrun("lock", "mini.lua", "--out", again)
        self.phrun("run", "mini.lua", "-q", "--out", again)
        for path in self.runs():
            os.remove(path)
        self.assertIn("4 run files rebuilt", self.phrun("rebuild", self.out, "--from", again).stdout)
        self.assertIn("4 runs: 4 present", self.phrun("verify", self.out).stdout)
        self.assertIn("4 run files were rebuilt", self.verdict(want=0))
        rebuilt = [e for e in self.events(self.out) if e["event"] == "rebuilt"]
        self.assertEqual(len(rebuilt), 4)
        for key in ("program", "machine", "seconds", "file"):
            self.assertIn(key, rebuilt[0])
        self.phrun("prune", self.out)
        self.assertIn("4 runs: 4 pruned", self.phrun("verify", self.out).stdout)
        self.assertIn("4 runs with the same bits", self.phrun("verify", self.out, "--against", again).stdout)

    def test_files_with_other_metrics_are_not_taken(self):
        again = self.path("again")
        self.write("other.lua", SPEC.replace("epochs = 2", "epochs = 3"))
        self.phrun("run", "other.lua", "-q", "--out", again)
        for path in self.runs():
            os.remove(path)
        done = self.phrun("rebuild", self.out, "--from", again)
        self.assertIn("0 run files rebuilt", done.stdout)
        self.assertIn("4 not there", done.stdout)

    def test_two_directories_are_compared_in_what_both_have(self):
        shutil.copytree(self.path(self.out), self.path("copy"))
        os.remove(self.runs("copy")[0])
        done = self.phrun("verify", self.out, "--against", "copy")
        self.assertIn("3 runs with the same bits, 0 differences, 1 without a file here or there", done.stdout)

    def test_a_report_goes_where_it_is_asked_to_go(self):
        before = set(os.listdir(self.path(self.out)))
        self.phrun("report", self.out, "--out", "page.html")
        self.phrun("report", self.out, "--out", "pages")
        self.assertEqual(before, set(os.listdir(self.path(self.out))))
        self.assertTrue(os.path.exists(self.path("page.html")))
        self.assertEqual(sorted(os.listdir(self.path("pages"))), ["report.html", "report.md"])

    def test_a_page_without_a_verdict_never_replaces_one_that_is_there(self):
        self.phrun("report", self.out)
        before = self.read(self.out, "report.md")
        with open(self.runs()[0], "r+b") as f:
            f.seek(-9, 2)
            f.write(b"x")
        self.assertIn("stays as it is", self.phrun("report", self.out, want=3).stderr)
        self.assertEqual(self.read(self.out, "report.md"), before)
        self.phrun("report", self.out, "--out", "elsewhere")
        self.assertIn("Tampered", self.read("elsewhere", "report.md"))


if __name__ == "__main__":
    harness.main()
