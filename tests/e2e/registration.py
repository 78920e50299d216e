#!/usr/bin/env python3
"""The program from outside: lock, run, verdict, verify, recover, deviate, gates - and everything that must not pass.

Usage: registration.py [PHRUN]   (default: build/phrun of the source tree; also $PHRUN)
Each trial works on a copy of one small locked and finished experiment."""
import json, os, re, shutil, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHRUN = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.path.exists(sys.argv[1])
                        else os.environ.get("PHRUN", os.path.join(ROOT, "build", "phrun")))

SPEC = '''local ph = require "ph"
local helper = require "helper"
return ph.experiment {
  name = "mini", note = "Does the small net learn?",
  task = ph.task.circles { classes = 4, width = 8, split = { train = 64, val = 32, test = 32 } },
  model = function(cell)
    local function block(z) return z + helper.scale(cell.family) * ph.linear(8)(ph.tanh(ph.affine(8)(z))) end
    return { ph.stream { depth = cell.depth, block = block }, ph.affine(4) }
  end,
  grid = { family = { "a", "b" }, depth = { 2, 3, 4 }, seed = { 0, 1 } },
  select = { lr = { 1e-2, 3e-2 } },
  train = ph.adam { epochs = 3, batch = 32 },
  measure = { ph.growth() },
  rules = {
    ph.rule { "signature", { ph.mean { "growth", family = "a", depth = 4 }, "<=", 1.0 } },
    ph.rule { "lowest", ph.every { { ph.rank { ph.mean { "growth" }, family = "a" }, "==", 1 }, depth = ph.at_least(3) } },
    ph.category { "for", when = ph.all { "signature", "lowest" }, holds = true },
    ph.category { "against" },
  },
  predictions = { ph.prediction { "growth", ph.mean { "growth", family = "a", depth = 4 }, band = { 0.5, 1000 } } },
}
'''
HELPER = 'local h = {}\nfunction h.scale(family) return family == "a" and 0.5 or 1 end\nreturn h\n'


def phrun(cwd, *words, env=None):
    e = dict(os.environ, TERM="dumb", **(env or {}))
    p = subprocess.run([PHRUN, *words], cwd=cwd, capture_output=True, text=True, env=e, timeout=300)
    return p.returncode, p.stdout, p.stderr


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not hasattr(Base, "made"):
            Base.made = tempfile.mkdtemp()
            write(Base.made + "/mini.lua", SPEC)
            write(Base.made + "/helper.lua", HELPER)
            for words in (("lock", "mini.lua"), ("run", "mini.lua", "-q")):
                rc, out, err = phrun(Base.made, *words)
                assert rc == 0, (words, rc, out[-2000:], err)
                if words[0] == "run":
                    write(Base.made + "/log.txt", out)

    def setUp(self):
        self.at = tempfile.mkdtemp()
        os.rmdir(self.at)
        shutil.copytree(Base.made, self.at)
        self.dir = self.at + "/experiments/mini"

    def tearDown(self):
        shutil.rmtree(self.at)

    def change(self, old, new, name="mini.lua"):
        text = read(self.at + "/" + name)
        self.assertIn(old, text)
        write(self.at + "/" + name, text.replace(old, new))

    def expect(self, code, *words):
        rc, out, err = phrun(self.at, *words)
        self.assertEqual(code, rc, (words, out[-3000:], err))
        self.assertNotIn("traceback", err)
        return out + err

    def runs(self):
        return sorted(os.listdir(self.dir + "/runs"))


class Verdict(Base):
    def test_rules_are_applied_and_the_code_says_so(self):
        out = self.expect(10, "verdict", "mini.lua")
        self.assertIn("24 of 24 runs, each test set opened once", out)
        self.assertRegex(out, r"signature +false +[\d.]+ <= 1\b")
        self.assertRegex(out, r"growth +hit")
        self.assertIn("verdict: against", out)
        self.assertEqual(out, self.expect(10, "verdict", "experiments/mini"))

    def test_a_verdict_that_holds_gives_code_0(self):
        other = self.at + "/holds.lua"
        write(other, SPEC.replace('"<=", 1.0', '"<=", 1000').replace('ph.at_least(3) }', '3 }').replace("==", ">=").replace('"mini"', '"holds"'))
        self.expect(0, "lock", "holds.lua")
        self.expect(0, "run", "holds.lua", "-q")
        self.assertIn("verdict: for", self.expect(0, "verdict", "holds.lua"))

    def test_json(self):
        data = json.loads(self.expect(10, "verdict", "mini.lua", "--json"))
        self.assertEqual(("against", 24, 24, 1, "hit"), (data["category"], data["planned"], data["present"], data["test_opened"], data["predictions"][0]["score"]))

    def test_without_a_lock_there_is_no_verdict_to_trust(self):
        write(self.at + "/free.lua", SPEC.replace('"mini"', '"free"'))
        self.expect(0, "run", "free.lua", "-q")
        out = self.expect(11, "verdict", "free.lua")
        self.assertIn("NOT REGISTERED", out)
        self.assertIn("not registered", self.expect(11, "verdict", "experiments/free"))


class LockThenEdit(Base):
    def test_a_changed_threshold_exits_3_with_field_and_both_values(self):
        self.change('"<=", 1.0', '"<=", 1.5')
        out = self.expect(3, "verdict", "mini.lua")
        self.assertIn("rules.signature.when.right: locked 1, now 1.5", out)
        self.assertNotIn("verdict:", out)
        self.assertIn("rules.signature.when.right: locked 1, now 1.5", self.expect(3, "run", "mini.lua"))

    def test_a_comment_indentation_and_key_order_stay_valid(self):
        self.change('  name = "mini", note = "Does the small net learn?",', '  -- nothing but a remark\n      note = "Does the small net learn?", name = "mini",')
        self.assertIn("verdict: against", self.expect(10, "verdict", "mini.lua"))

    def test_every_other_field_is_named_too(self):
        for old, new, field in [
            ("epochs = 3", "epochs = 4", "train.epochs: locked 3, now 4"), ("seed = { 0, 1 }", "seed = { 0, 1, 2 }", "grid.seed: locked [0,1], now [0,1,2]"),
            ("1e-2, 3e-2", "1e-2", "select.candidates.lr: locked [0.01,0.03], now [0.01]"), ("{ 0.5, 1000 }", "{ 0.5, 9 }", "predictions.growth.high: locked 1000, now 9"),
            ("train = 64", "train = 96", "tasks.task.circles.split.train: locked 64, now 96"), ("holds = true", "holds = false", "categories.for.holds: locked true, now false"),
            ('ph.category { "against" }', 'ph.category { "opposed" }', "categories.opposed.holds: locked absent, now false"),
        ]:
            self.change(old, new)
            out = self.expect(3, "verdict", "mini.lua")
            self.assertIn(field, out)
            write(self.at + "/mini.lua", SPEC)

    def test_a_helper_in_a_sibling_file_changes_the_model(self):
        self.change("0.5", "0.6", "helper.lua")
        self.assertRegex(self.expect(3, "verdict", "mini.lua"), r"cells\.family=a depth=2 seed=0\.ir: locked")

    def test_lock_again_changes_nothing_or_is_refused(self):
        before = read(self.dir + "/registration.json")
        self.assertIn("already locked", self.expect(0, "lock", "mini.lua"))
        self.change('"<=", 1.0', '"<=", 1.5')
        self.assertIn("locked 1, now 1.5", self.expect(3, "lock", "mini.lua"))
        self.assertEqual(before, read(self.dir + "/registration.json"))


class Tampering(Base):
    def edit_registration(self, change):
        path = self.dir + "/registration.json"
        reg = json.loads(read(path))
        change(reg)
        write(path, json.dumps(reg, sort_keys=True, separators=(",", ":")))

    def test_an_edited_registration_is_found_with_field_and_values(self):
        def loosen(reg):
            reg["plan"]["rules"][0]["when"]["right"] = 1.5
        self.edit_registration(loosen)
        out = self.expect(3, "verdict", "experiments/mini")
        self.assertIn("registration.json was changed: rules.signature.when.right: locked 1, now 1.5", out)
        self.assertNotIn("verdict: ", out)

    def test_a_deleted_registration_is_found(self):
        os.remove(self.dir + "/registration.json")
        self.assertIn("deleted; the ledger was locked under", self.expect(3, "verdict", "experiments/mini"))
        self.expect(3, "verdict", "mini.lua")

    def test_an_edited_run_file_is_found(self):
        path = self.dir + "/runs/" + self.runs()[0]
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1]))
        self.assertIn("was changed since it was written", self.expect(3, "verdict", "experiments/mini"))
        self.expect(3, "verify", "experiments/mini")

    def test_a_run_file_copied_over_another_is_found(self):
        a, b = self.runs()[:2]
        shutil.copy(self.dir + "/runs/" + a, self.dir + "/runs/" + b)
        self.assertIn("was changed since it was written", self.expect(3, "verdict", "mini.lua"))

    def test_a_deleted_run_file_is_counted_and_holds_the_verdict_back(self):
        os.remove(self.dir + "/runs/" + self.runs()[3])
        self.assertIn("1 unbacked", self.expect(11, "verdict", "mini.lua"))

    def test_an_edited_or_shortened_ledger_is_found(self):
        path = self.dir + "/ledger.jsonl"
        lines = read(path).splitlines(True)
        write(path, "".join(l.replace('"growth":', '"growth":0.1,"_":', 1) if '"event":"done"' in l else l for l in lines))
        self.assertIn("was changed", self.expect(3, "verdict", "mini.lua"))
        done = [i for i, l in enumerate(lines) if '"event":"done"' in l]
        write(path, "".join(lines[:done[2]] + lines[done[2] + 1:]))
        self.assertIn("removed, added or moved", self.expect(3, "verdict", "mini.lua"))

    def test_results_of_another_lock_with_the_same_shape_are_refused(self):
        write(self.at + "/old.lua", SPEC.replace('"<=", 1.0', '"<=", 9').replace('"mini"', '"old"'))
        self.expect(0, "lock", "old.lua")
        self.expect(0, "run", "old.lua", "-q")
        out = self.expect(3, "verdict", "mini.lua", "--out", "experiments/old")
        self.assertIn("locked 9, now 1", out)
        for name in ("ledger.jsonl", "runs"):  # the whole results of one put into the other's directory
            target = self.dir + "/" + name
            shutil.rmtree(target) if os.path.isdir(target) else os.remove(target)
            src = self.at + "/experiments/old/" + name
            shutil.copytree(src, target) if os.path.isdir(src) else shutil.copy(src, target)
        self.assertIn("registration.json was changed", self.expect(3, "verdict", "experiments/mini"))
        shutil.copy(self.at + "/experiments/old/registration.json", self.dir)  # ... with its registration
        self.assertIn("locked 9, now 1", self.expect(3, "verdict", "mini.lua"))

    def test_a_registration_beside_a_ledger_without_lock_is_refused(self):
        write(self.at + "/free.lua", SPEC.replace('"mini"', '"free"'))
        self.expect(0, "run", "free.lua", "-q")
        shutil.copy(self.dir + "/registration.json", self.at + "/experiments/free")
        self.assertIn("the ledger has no lock", self.expect(3, "verdict", "experiments/free"))


class Incomplete(Base):
    def fresh(self, *restrict):
        shutil.rmtree(self.dir)
        self.expect(0, "lock", "mini.lua")
        for words in restrict:
            self.expect(0, "run", "mini.lua", "-q", *words)

    def test_a_missing_run_is_named_and_nothing_is_judged(self):
        self.fresh(("family=a",), ("family=b", "depth=2,3"), ("family=b", "depth=4", "seed=0"))
        out = self.expect(11, "verdict", "mini.lua")
        self.assertIn("22 of 24 runs", out)
        self.assertIn("missing: no run at family=b depth=4 seed=1 lr=0.01", out)
        self.assertRegex(out, r"lowest +not evaluable")
        self.assertRegex(out, r"signature +false")
        self.assertIn("verdict: not evaluable: the plan is not complete, 2 runs are missing: no run at family=b depth=4 seed=1 lr=0.01 (the runs so far: against)", out)

    def test_a_depth_that_was_never_run_is_not_evaluable(self):
        self.fresh(("depth=2,3",))
        out = self.expect(11, "verdict", "mini.lua")
        self.assertIn("no runs at depth=4", out)
        self.assertRegex(out, r"signature +not evaluable")
        self.assertIn("verdict: not evaluable", out)

    def test_nothing_run_yet(self):
        self.fresh()
        self.assertIn("0 of 24 runs, no test set opened", self.expect(11, "verdict", "mini.lua"))

    def test_runs_older_than_the_lock_do_not_count_and_run_again(self):
        write(self.at + "/late.lua", SPEC.replace('"mini"', '"late"'))
        self.expect(0, "run", "late.lua", "-q")
        self.assertIn("24 runs already there are older than the lock and will not count", self.expect(0, "lock", "late.lua"))
        out = self.expect(11, "verdict", "late.lua")
        self.assertIn("24 runs are older than the lock and do not count", out)
        self.assertIn("0 of 24 runs", out)
        self.expect(0, "run", "late.lua", "-q")
        self.assertIn("24 of 24 runs", self.expect(10, "verdict", "late.lua"))
        self.assertEqual(48, len(os.listdir(self.at + "/experiments/late/runs")))


class Deviations(Base):
    def test_a_departure_is_possible_only_as_a_recorded_one(self):
        shutil.rmtree(self.dir)
        self.expect(0, "lock", "mini.lua")
        self.change("epochs = 3", "epochs = 2")
        self.assertIn("train.epochs: locked 3, now 2", self.expect(3, "run", "mini.lua"))
        self.assertIn("--reason", self.expect(2, "deviate", "mini.lua"))
        self.assertIn("differs in more than --field says", self.expect(2, "deviate", "mini.lua", "--reason", "x", "--field", "train.batch"))
        self.expect(0, "deviate", "mini.lua", "--reason", "the machine is lent for an hour", "--field", "train.epochs")
        self.expect(0, "run", "mini.lua", "-q")
        out = self.expect(10, "verdict", "mini.lua")
        self.assertIn("deviation 1: the machine is lent for an hour", out)
        self.assertIn("24 of 24 runs", out)
        self.change("epochs = 2", "epochs = 1")
        self.assertIn("train.epochs: locked 3, now 1", self.expect(3, "verdict", "mini.lua"))

    def test_rules_can_not_be_departed_from(self):
        self.change('"<=", 1.0', '"<=", 1.5')
        self.assertIn("rules cannot be changed after the lock", self.expect(3, "deviate", "mini.lua", "--reason", "it nearly passed"))

    def test_a_cut_grid_leaves_its_rules_not_evaluable(self):
        shutil.rmtree(self.dir)
        self.expect(0, "lock", "mini.lua")
        self.expect(0, "deviate", "mini.lua", "depth=2,3", "--reason", "no money for depth 4")
        self.expect(0, "run", "mini.lua", "depth=2,3", "-q")
        out = self.expect(11, "verdict", "mini.lua")
        self.assertIn("16 of 24 runs", out)
        self.assertIn("deviation 1: no money for depth 4", out)
        self.assertRegex(out, r"signature +not evaluable +no runs at depth=4|signature +not evaluable.*no runs at depth=4")
        self.assertIn("verdict: not evaluable: no runs at depth=4", out)
        self.assertEqual(out, self.expect(11, "verdict", "mini.lua", "depth=2,3"))

    def test_a_cut_grid_is_judged_by_the_locked_table_where_that_decides(self):
        shutil.rmtree(self.dir)
        self.change('ph.category { "for"', 'ph.category { "cut short", when = ph.unevaluable "signature" },\n    ph.category { "for"')
        self.expect(0, "lock", "mini.lua")
        self.expect(0, "run", "mini.lua", "depth=2,3", "-q")
        self.assertIn("not complete, 8 runs are missing", self.expect(11, "verdict", "mini.lua"))
        self.expect(0, "deviate", "mini.lua", "depth=2,3", "--reason", "no money for depth 4")
        self.assertIn("verdict: cut short", self.expect(10, "verdict", "mini.lua"))

    def test_a_note_without_a_field(self):
        self.expect(0, "deviate", "experiments/mini", "--reason", "power cut on the second day")
        self.assertIn("power cut", self.expect(10, "verdict", "mini.lua"))
        self.assertIn("the spec is unchanged", self.expect(2, "deviate", "mini.lua", "--reason", "x"))


class Recovery(Base):
    def test_a_recovered_ledger_says_so_first(self):
        shutil.rmtree(self.dir + "/runs")
        os.remove(self.dir + "/ledger.jsonl")
        self.expect(0, "recover", "log.txt", "--out", "experiments/mini")
        out = self.expect(10, "verdict", "experiments/mini")
        self.assertTrue(out.startswith("RECOVERED LEDGER"), out[:200])
        self.assertIn("24 of 24 runs", out)
        self.assertTrue(self.expect(10, "verdict", "mini.lua").startswith("RECOVERED LEDGER"))
        self.assertIn("already has a ledger", self.expect(1, "recover", "log.txt", "--out", "experiments/mini"))

    def test_the_log_of_another_plan_does_not_pass(self):
        os.remove(self.dir + "/ledger.jsonl")
        text = read(self.at + "/log.txt")
        lock = json.loads(read(self.dir + "/registration.json"))["lock"]
        write(self.at + "/other.txt", text.replace(lock, "0" * 64))
        self.expect(0, "recover", "other.txt", "--out", "experiments/mini")
        self.assertIn("another lock", self.expect(3, "verdict", "experiments/mini"))

    def test_a_cut_line_is_told_and_the_rest_kept(self):
        lines = read(self.at + "/log.txt").splitlines(True)
        last = max(i for i, l in enumerate(lines) if l.startswith("run-record "))
        lines[last] = lines[last][:200] + "\n"
        write(self.at + "/cut.txt", "".join(lines))
        out = self.expect(1, "recover", "cut.txt", "--out", "cut")
        self.assertIn("23 runs recovered", out)
        self.assertIn("line %d:" % (last + 1), out)

    def test_no_record_no_file_no_out(self):
        write(self.at + "/empty.txt", "nothing\n")
        self.assertIn("no line 'run-record", self.expect(1, "recover", "empty.txt", "--out", "x"))
        self.expect(1, "recover", "absent.txt", "--out", "x")
        self.expect(2, "recover", "log.txt")


class Gates(Base):
    def gated(self, verdict):
        write(self.at + "/next.lua", SPEC.replace('"mini"', '"next"').replace("measure =", 'gates = ph.gate { dir = "experiments/mini", verdict = "%s" },\n  measure =' % verdict))

    def test_a_closed_gate_refuses_to_run_with_the_reason(self):
        self.gated("for")
        out = self.expect(11, "run", "next.lua", "-q")
        self.assertIn("the gate is closed: the verdict of experiments/mini is 'against', not 'for'", out)
        self.assertFalse(os.path.exists(self.at + "/experiments/next/runs") and os.listdir(self.at + "/experiments/next/runs"))

    def test_an_open_gate_lets_it_run(self):
        self.gated("against")
        self.expect(0, "run", "next.lua", "-q")

    def test_a_tampered_unbacked_or_absent_other_keeps_it_closed(self):
        self.gated("against")
        path = self.dir + "/runs/" + self.runs()[0]
        with open(path, "r+b") as f:
            f.seek(-9, os.SEEK_END)
            f.write(b"x")
        self.assertIn("tampered", self.expect(11, "run", "next.lua"))
        os.remove(path)
        self.assertIn("files of judged runs of experiments/mini are not here", self.expect(11, "run", "next.lua"))
        shutil.rmtree(self.dir)
        self.assertIn("not registered", self.expect(11, "run", "next.lua"))


class SeedsAndReplay(Base):
    def test_seeds_come_from_the_lock(self):
        write(self.at + "/s.lua", SPEC.replace('"mini"', '"s"').replace("measure =", 'seeds = "lock",\n  measure ='))
        self.assertIn("the seeds come from the lock", self.expect(11, "run", "s.lua"))
        self.expect(0, "lock", "s.lua")
        self.expect(0, "run", "s.lua", "-q", "depth=2")
        out = phrun(self.at, "status", "experiments/s", "--json")[1]
        seeds = {r["seed"] for r in json.loads(out)["runs"]}
        self.assertEqual(2, len(seeds))
        self.assertTrue(all(s > 1000 for s in seeds))

    def test_replay_gives_the_same_bits(self):
        out = self.expect(0, "verify", "experiments/mini", "--replay", "2")
        self.assertEqual(2, out.count(": the same bits"))
        self.expect(2, "verify", "experiments/mini", "--replay", "0")


class Refusals(Base):
    def test_what_is_wrong_with_rules_is_told_with_file_and_line_all_at_once(self):
        self.change('ph.mean { "growth", family = "a", depth = 4 }, "<=", 1.0', 'ph.mean { "growht", family = "a", depth = 4 }, "<=", 1.0')
        self.change('ph.rank { ph.mean { "growth" }, family = "a" }', 'ph.rank { ph.mean { "growth" }, familly = "a" }')
        out = self.expect(2, "lock", "mini.lua")
        self.assertRegex(out, r"mini\.lua:\d+: .*unknown metric 'growht' \(did you mean 'growth'\?\)")
        self.assertRegex(out, r"the grid has no axis 'familly' \(did you mean 'family'\?\)")

    def test_selection_on_test_data_is_refused(self):
        self.change("select = { lr = { 1e-2, 3e-2 } }", 'select = { lr = { 1e-2, 3e-2 }, by = "test.accuracy" }')
        self.assertIn("test", self.expect(2, "run", "mini.lua"))
        write(self.at + "/mini.lua", SPEC.replace('ph.mean { "growth", family = "a", depth = 4 }', 'ph.max { "test.accuracy", runs = "all" }', 1))
        self.assertIn("a choice by test data is refused", self.expect(2, "run", "mini.lua"))

    def test_a_function_is_no_rule(self):
        self.change('{ ph.mean { "growth", family = "a", depth = 4 }, "<=", 1.0 }', "function(l) return true end")
        self.assertRegex(self.expect(2, "lock", "mini.lua"), r"mini\.lua:\d+: rule: .*a rule cannot be a Lua function")


if __name__ == "__main__":
    unittest.main()
