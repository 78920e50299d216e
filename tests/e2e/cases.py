#!/usr/bin/python3
"""Faults that people who do this work report again and again, as trials of the whole program. Each class is one kind of fault
and its names carry the numbers of that list; trials of the library alone are in tests/lua/cases_spec.lua and laws_spec.lua."""
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

import h5py
import harness
from harness import PHRUN, ROOT, spec_text

GRID = '{ family = { "ph", "resnet" }, depth = 3, seed = { 0, 1 } }'


class Case(harness.Case):
    def same_run_files(self, a, b):
        """Histories, last and best weights of two directories, read by another program: the same bytes, kinds and shapes."""
        names = sorted(os.listdir(self.path(a, "runs")))
        self.assertEqual(names, sorted(os.listdir(self.path(b, "runs"))))
        self.assertGreater(len(names), 0)
        for name in names:
            one, two = self.arrays(a, "runs", name), self.arrays(b, "runs", name)
            self.assertEqual(sorted(one), sorted(two), name)
            self.assertTrue({"history", "final", "best"} <= {key.split("/")[0] for key in one}, sorted(one))
            for key in one:
                self.assertEqual(one[key], two[key], "%s of %s and %s: %s" % (name, a, b, key))
        self.assertEqual(self.records(a), self.records(b))

    def arrays(self, *path):
        """Name -> shape, kind and bytes of every array that a run computes."""
        found = {}

        def add(name, item):
            if isinstance(item, h5py.Dataset) and name.split("/")[0] in ("history", "final", "best", "confusion", "profiles"):
                found[name] = (item.shape, str(item.dtype), item[()].tobytes())

        with h5py.File(self.path(*path)) as f:
            f.visititems(add)
        return found

    def start(self, *words, **more):
        return subprocess.Popen(self.command(*words), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, **more)

    def refused(self, text, *lines, verbs=(["check"], ["run"])):
        """The program says exactly these lines, ends with 2 and leaves nothing."""
        self.write("s.lua", text)
        for verb in verbs:
            done = self.phrun(*verb, "s.lua", want=2)
            self.assertEqual((done.stdout, done.stderr.splitlines()), ("", list(lines)))
        self.assertFalse(os.path.exists(self.path("experiments")))


def changed(old, new, text=None):
    text = text or spec_text()
    assert text.count(old) == 1, old
    return text.replace(old, new)


class MisspeltKeys(Case):
    """P1: accepted, and the default used."""

    def test_p1_three_in_one_file_are_told_in_one_go(self):
        text = changed('name = "tiny"', 'name = "tiny", familly = "ph"').replace("width = d, split", "lr = 1e-3, width = d, split").replace("patience = 0", "patiance = 5")
        self.refused(text, "s.lua:10: experiment: unknown key 'familly' (did you mean the axis 'family' of grid?)",
                     "s.lua:11: task.circles: unknown key 'lr' (it belongs to train (adam, sgd) or select)",
                     "s.lua:15: adam: unknown key 'patiance' (did you mean 'patience'?)")

    def test_p1_each_alone(self):
        self.refused(changed("patience = 0", "patiance = 5"), "s.lua:15: adam: unknown key 'patiance' (did you mean 'patience'?)")
        self.refused(changed("step = 0.5", "step = 0.5, bugdet = 2"), "s.lua:5: damping: unknown key 'bugdet' (did you mean 'budget'?)")
        self.refused(changed("lr = 3e-3", "lr = 3e-3, protocol = { patiance = 5 }"),
                     "s.lua:15: adam: unknown key 'protocol' (keys: lr, batch, epochs, schedule, warmup, lr_min, patience, monitor, clip, weight_decay, checkpoint, "
                     "groups, beta1, beta2, eps)")


class UndeclaredNames(Case):
    """P2: an absent name is nil, that is: the option is absent."""

    def test_p2_a_family_without_quotes(self):
        self.refused(changed('"ph", "resnet"', '"ph", resnt'), "s.lua:13: undeclared name 'resnt' (did you mean \"resnet\"?)")
        self.refused(changed("family = { \"ph\", \"resnet\" }", "family = resnt"), "s.lua:13: undeclared name 'resnt' (did you mean \"resnet\"?)")


class Holes(Case):
    """P3: # of a list with a hole is what it likes; the depths behind the hole are dropped."""

    def test_p3_the_index_of_the_hole_is_named(self):
        self.refused(changed("depth = 3", "depth = { 30, nil, 240 }"), "s.lua:13: experiment: grid: 'depth' has a hole: nothing at index 2 of 3")
        self.refused(changed("depth = 3", "depth = { 30, 120, [4] = 240 }"), "s.lua:13: experiment: grid: 'depth' has a hole: nothing at index 3 of 4")


class Numbers(Case):
    """P4: 240/2 is 120.0, and another cell than 120; nan and inf train on."""

    def test_p4_integral_numbers_are_integers_however_written(self):
        odd = changed("depth = 3", "depth = 6/2").replace("batch = 32", "batch = 2^5").replace("epochs = 4", "epochs = 4e0")
        self.write("tiny.lua", odd)
        done = self.phrun("tiny.lua")
        self.assertEqual(sorted(self.records("experiments/tiny")), ["family=ph depth=3 seed=0", "family=resnet depth=3 seed=0"])
        self.assertNotIn("3.0 ", done.stdout.split("\ntiny\n")[1].split("growth")[0])
        self.assertIn("adam{batch=32,", done.stdout)
        self.assertIn("epochs=4,", done.stdout)
        self.write("tiny.lua", spec_text())
        self.assertIn("all 2 runs of tiny are already done", self.phrun("tiny.lua").stdout)
        check = self.phrun("check", self.write("big.lua", changed("depth = 3", "depth = 240/2"))).stdout
        self.assertIn("family=ph depth=120", check)
        self.assertNotIn("120.0", check)

    def test_p4_the_others_are_refused_with_key_and_reason(self):
        for old, new, line in (
                ("depth = 3", "depth = 7/2", "s.lua:13: experiment: grid: 'depth' element 1 must be a whole number, got 3.5"),
                ("depth = 3", "depth = -3", "s.lua:13: experiment: grid: 'depth' element 1 must be at least 1, got -3"),
                ("depth = 3", "depth = 2^60", "s.lua:13: experiment: grid: 'depth' element 1 must be at most 1000000, got 1.1529215046068e+18"),
                ("lr = 3e-3", "lr = 0/0", "s.lua:15: adam: 'lr' must be a number, got nan (an undefined result such as 0/0)"),
                ("lr = 3e-3", "lr = 1/0", "s.lua:15: adam: 'lr' must be finite, got inf")):
            self.refused(changed(old, new), line, verbs=(["run"],))


class Repeated(Case):
    """P5: the same spec and seed give other weights with other threads, another directory, another core of the CPU."""

    def spec(self):
        # odd width and a short last batch, so that every kernel has its tails
        return changed("local d <const> = 8", "local d <const> = 19", spec_text(grid=GRID, epochs=3))

    def test_p5_same_bits_for_directories_threads_jobs_cores_and_blas_settings(self):
        os.makedirs(self.path("elsewhere"))
        for folder in ("", "elsewhere/"):
            self.write(folder + "tiny.lua", self.spec())
        self.phrun("tiny.lua", "--out", "one", "-t", 1)
        for name, words, env in (("two", ["-t", 2], {}), ("jobs", ["-j", 2], {}), ("unset", ["-t", 2], {"OPENBLAS_NUM_THREADS": None}),
                                 ("blas1", [], {"OPENBLAS_NUM_THREADS": "1"}), ("blas2", ["-j", 2, "-t", 2], {"OPENBLAS_NUM_THREADS": "2"})):
            self.phrun("tiny.lua", "--out", name, *words, env=env)
            self.same_run_files("one", name)
        for cwd, words in (("", ["taskset", "-c", "0", PHRUN, "tiny.lua", "--out", "pinned"]), ("elsewhere", [PHRUN, "tiny.lua", "--out", "../moved"])):
            subprocess.run(words, cwd=self.path(cwd), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.same_run_files("one", "pinned")
        self.same_run_files("one", "moved")

    def test_p5_same_bits_for_every_cpu_with_fused_multiply_add(self):
        self.write("tiny.lua", self.spec())
        for name in ("avx2", "avx512"):
            done = self.phrun("tiny.lua", "--out", name, env={"PHRUN_KERNELS": name})
            if "no such kernels" in done.stderr:
                self.skipTest("no %s kernels here" % name)
            run = sorted(os.listdir(self.path(name, "runs")))[0]
            with h5py.File(self.path(name, "runs", run)) as f:
                self.assertEqual(json.loads(bytes(f["provenance"][()]))["kernels_f32"], name)
        self.same_run_files("avx2", "avx512")

    def test_p5_the_comparison_sees_one_bit(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "a")
        self.phrun("tiny.lua", "--out", "b")
        self.same_run_files("a", "b")
        with h5py.File(self.path("b", "runs", sorted(os.listdir(self.path("b", "runs")))[0]), "r+") as f:
            weights = f["best/s1.W"][()]
            weights.view("i4")[0, 0, 0] ^= 1
            f["best/s1.W"][...] = weights
        with self.assertRaises(AssertionError):
            self.same_run_files("a", "b")


class Stopped(Case):
    """P6: after a stop the order of samples, Adam's moments or the best epoch begin anew."""

    def stop(self, want, number, batch):
        """Stops a run of six epochs with a signal where its checkpoint fulfils `want`, goes on, compares. Tries until it was so."""
        text = spec_text(grid='{ family = "ph", depth = 60, seed = 0 }', epochs=6).replace("batch = 32", "batch = %d" % batch).replace("train = 200", "train = 1000")
        self.write("six.lua", text)
        self.phrun("six.lua", "--out", "straight")
        for attempt in range(12):
            out = "stopped%d" % attempt
            p = self.start("six.lua", "--out", out, "--checkpoint", 0)
            state = {}
            while p.poll() is None and not want(state):
                state = self.state(out) or state
            if p.poll() is None:
                os.killpg(p.pid, number)
            p.communicate(timeout=60)
            state = self.state(out)
            if state and want(state) and state["epoch"] <= 6:
                break
        else:
            self.fail("never stopped there")
        self.phrun("six.lua", "--out", out)
        self.assertIn("resumed", [e["event"] for e in self.events(out)])
        self.same_run_files("straight", out)
        self.assertEqual(self.records(out)["family=ph depth=60 seed=0"]["epochs"], 6)

    def state(self, out):
        """State in the only checkpoint of a directory; None when there is none."""
        folder = self.path(out, "checkpoints")
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            try:
                with open(os.path.join(folder, name), "rb") as f, h5py.File(io.BytesIO(f.read())) as h5:
                    return json.loads(bytes(h5["state"][()]))
            except (FileNotFoundError, OSError):  # gone or still being written aside (.tmp-PID)
                continue
        return None

    def test_p6_sigterm_at_the_end_of_an_epoch(self):
        # one batch an epoch: every place to stop is the end of one
        self.stop(lambda s: s.get("epoch", 0) >= 4 and s["step"] == 0, signal.SIGTERM, 1000)

    def test_p6_sigterm_in_the_middle_of_an_epoch(self):
        self.stop(lambda s: s.get("epoch", 0) >= 4 and s["step"] > 0, signal.SIGTERM, 32)

    def test_p6_kill_in_the_middle_of_an_epoch(self):
        self.stop(lambda s: s.get("epoch", 0) >= 2 and s["step"] > 0, signal.SIGKILL, 32)



class OneCellFails(Case):
    """P9: one cell ends the grid, or ends it unseen."""

    def test_p9_the_others_finish_and_each_end_is_told_for_what_it_is(self):
        text = spec_text(grid='{ { family = { "ph", "resnet" }, depth = 240, seed = 0 }, { family = "gone", depth = 3, seed = 0 } }',
                         lr="", select="select = { lr = { 3e-3, 1e6 } },", epochs=2,
                         task="function(cell) if cell.family == 'gone' then return ph.task.images { dir = 'no/where', split = { train = 10, val = 10 } } end "
                              "return ph.task.circles { classes = 3, width = d, split = { train = 200, val = 64, test = 64 } } end")
        text = changed("function(cell) return { ph.stream", "function(cell)\n    if cell.family == 'gone' then return { ph.affine(10) } end\n    return { ph.stream", text)
        text = changed("ph.affine(3) } end", "ph.affine(3) }\n  end", text).replace("ph.tanh", "ph.relu")
        self.write("s.lua", text)
        done = self.phrun("s.lua", "--out", "r", "-k", want=1)
        self.assertRegex(done.stderr, r"(?m)^failed: family=gone .*no/where/train-images-idx3-ubyte: no such file")
        records = self.records("r")
        self.assertEqual({(r["cell"]["family"], r["select"]["lr"] > 1): r["status"] for r in records.values()},
                         {("gone", False): "failed", ("gone", True): "failed", ("ph", False): "done", ("ph", True): "diverged", ("resnet", False): "done", ("resnet", True): "diverged"})
        for r in records.values():
            if r["status"] == "diverged":
                self.assertGreaterEqual(r["step"], 1)
                self.assertTrue(1 <= r["layer"] <= 240, r)
                self.assertTrue(0 < r["last_loss"] < 1e40, r)
            if r["status"] == "failed":
                self.assertIn("no/where/train-images-idx3-ubyte", r["reason"])
        self.assertEqual({r["label"]: r["chosen"] for r in records.values() if r["chosen"]}, {"family=%s depth=240 seed=0 lr=0.003" % f: True for f in ("ph", "resnet")})
        self.phrun("verify", "r")


class SameDirectory(Case):
    """P10: a second run writes over the first, or mixes results of two specs."""

    def run_files(self, out):
        found = {}
        for name in os.listdir(self.path(out, "runs")):
            with open(self.path(out, "runs", name), "rb") as f:
                found[name] = f.read()
        return found

    def test_p10_nothing_twice_only_new_cells_and_each_run_knows_its_spec(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r")
        first = self.run_files("r")
        ledger = self.read("r", "ledger.jsonl")
        self.assertIn("all 2 runs of tiny are already done: same model, task, data, protocol and measures", self.phrun("tiny.lua", "--out", "r").stdout)
        self.assertEqual(self.read("r", "ledger.jsonl"), ledger)
        self.write("tiny.lua", spec_text(grid='{ family = { "ph", "resnet" }, depth = { 5, 3 }, seed = 0 }'))
        done = self.phrun("tiny.lua", "--out", "r")
        self.assertEqual(sorted(json.loads(line.split(" ", 1)[1])["cell"]["depth"] for line in done.stdout.splitlines() if line.startswith("run-record ")), [5, 5])
        self.assertTrue(self.read("r", "ledger.jsonl").startswith(ledger))
        self.assertEqual({n: bytes_ for n, bytes_ in self.run_files("r").items() if n in first}, first)
        state = json.loads(self.phrun("status", "r", "--json").stdout)
        hashes = {r["label"]: r["spec_hash"] for r in state["runs"]}
        self.assertEqual(len(set(hashes.values())), 2)
        text = self.phrun("status", "r").stdout
        for r in state["runs"]:
            self.assertRegex(text, r"(?m)^  %s  .* %s" % (r["run"], r["spec_hash"][:8]))
        self.assertEqual(hashes["family=ph depth=3 seed=0"], hashes["family=resnet depth=3 seed=0"])


class Reruns(Case):
    """P11: a comment makes everything run again, or a changed helper nothing."""

    HELPER = "local h = {}\nfunction h.branch(d, ph, z)\n  return ph.affine(d)(ph.tanh(z))\nend\nreturn h\n"

    def images(self, touched=0):
        """A data set of 3 x 2 pixels; `touched` is added to one byte."""
        os.makedirs(self.path("data"), exist_ok=True)
        for prefix, n in (("train", 40), ("t10k", 10)):
            pixels = bytearray((i * 37 + i * i) % 251 for i in range(6 * n))
            pixels[7] += touched * (prefix == "train")
            with open(self.path("data", prefix + "-images-idx3-ubyte"), "wb") as f:
                f.write(struct.pack(">IIII", 0x803, n, 3, 2) + pixels)
            with open(self.path("data", prefix + "-labels-idx1-ubyte"), "wb") as f:
                f.write(struct.pack(">II", 0x801, n) + bytes(i % 10 for i in range(n)))

    def spec(self):
        text = spec_text(grid='{ family = { "ph", "resnet", "pixels" }, depth = 3, seed = 0 }', epochs=1,
                         task="function(cell)\n    if cell.family == 'pixels' then return ph.task.images { dir = 'data', height = 3, width = 2, split = { train = 30, val = 10 } } end\n"
                              "    return ph.task.circles { classes = 3, width = d, split = { train = 200, val = 64, test = 64 } }\n  end")
        text = changed("function(cell) return { ph.stream", "function(cell)\n    if cell.family == 'pixels' then return { ph.affine(10) } end\n    return { ph.stream", text)
        text = changed("ph.affine(3) } end", "ph.affine(3) }\n  end", text)
        text = changed("return z + ph.affine(d)(ph.tanh(ph.affine(d)(z)))", "return z + helper.branch(d, ph, ph.affine(d)(z))", text)
        return 'local helper = require "helper"\n' + text

    def plan(self, text=None, helper=None):
        """What would run, by family, with the reason."""
        self.write("s.lua", text or self.spec())
        self.write("helper.lua", helper or self.HELPER)
        out = self.phrun("s.lua", "--out", "r", "-n").stdout
        rows = re.findall(r"(?m)^  [0-9a-f]{16}  family=(\w+) \S+ seed=0 +(run|-) +(.*?) *$", out)
        self.assertEqual(len(rows), 3, out)
        return {family: why for family, what, why in rows if what == "run"}

    def test_p11_what_makes_a_rerun_and_why(self):
        self.images()
        self.assertEqual(self.plan(), {"ph": "new", "resnet": "new", "pixels": "new"})
        self.phrun("s.lua", "--out", "r")
        self.assertEqual(self.plan(), {})
        self.assertEqual(self.plan("-- a comment\n" + self.spec(), "-- another\n" + self.HELPER), {})
        self.assertEqual(self.plan(re.sub(r"(?m)^", "    ", self.spec()), self.HELPER.replace("\n  return", "\n\t\treturn")), {})
        self.assertEqual(self.plan(changed("batch = 32, epochs = 1, patience = 0", "patience = 0,\n    epochs = 1, batch = 32", self.spec())), {})
        every = self.plan(changed("lr = 3e-3", "lr = 1e-2", self.spec()))
        self.assertEqual(sorted(every), ["ph", "pixels", "resnet"])
        for why in every.values():
            self.assertIn("train lr: 0.003 -> 0.01", why)
        body = self.plan(helper=self.HELPER.replace("ph.tanh(z)", "ph.relu(z)"))
        self.assertEqual(list(body), ["resnet"])
        self.assertIn("changed: model: ", body["resnet"])
        self.images(touched=1)
        byte = self.plan()
        self.assertEqual(list(byte), ["pixels"])
        self.assertIn("changed: data", byte["pixels"])
        self.images()
        self.assertEqual(self.plan(), {})


class ChoosingByTest(Case):
    """P12: the best of many runs on the test set is reported as a result."""

    def test_p12_selection_by_test_data_is_refused(self):
        text = changed("train = ph.adam", "select = { lr = { 1e-3, 3e-3 }, by = 'test.acc' },\n  train = ph.adam", spec_text(lr=""))
        self.refused(text, "s.lua:15: select: 'by' must be one of val.accuracy, val.loss: choosing by test data is refused, got 'test.acc'")

    def test_p12_a_rule_that_is_a_function_is_refused(self):
        text = changed("measure =", "rules = { ph.rule { 'best', function(runs) return runs.test.accuracy > 0.9 end } },\n  measure =")
        self.write("s.lua", text)
        for verb in ("check", "run"):
            self.one_line(self.phrun(verb, "s.lua", want=2).stderr, r"s\.lua:16: rule: .*a rule cannot be a Lua function")

    def test_p12_the_verdict_says_how_often_test_data_was_opened(self):
        self.write("s.lua", changed("measure =", "rules = { ph.rule { 'learns', { ph.mean { 'test.accuracy' }, '>=', 0.1 } } },\n  measure ="))
        self.phrun("lock", "s.lua")
        self.phrun("s.lua", "-q")
        self.assertIn("2 of 2 runs, each test set opened once", self.phrun("verdict", "s.lua").stdout)


class Verdicts(Case):
    """P14 to P16: a threshold is moved after the results are known; results of another plan, or that are not there, count."""

    SLOW = "ph.rule { 'slow', { ph.mean { 'growth', family = 'ph' }, '<=', %s } }"

    def locked(self, name, grid, rules):
        self.write(name + ".lua", changed("measure =", "rules = { %s },\n  measure =" % rules, spec_text(grid=grid, epochs=1)).replace('"tiny"', '"%s"' % name))
        self.phrun("lock", name + ".lua")

    def test_p14_a_threshold_that_was_moved(self):
        self.locked("plan", GRID, self.SLOW % "1.0")
        self.phrun("plan.lua", "-q")
        first = self.phrun("verdict", "plan.lua", want=10).stdout
        text = self.read("plan.lua")
        self.write("plan.lua", changed("'<=', 1.0", "'<=', 1.5", text))
        done = self.phrun("verdict", "plan.lua", want=3)
        self.assertIn("rules.slow.when.right: locked 1, now 1.5", done.stdout + done.stderr)
        self.assertNotRegex(done.stdout + done.stderr, r"verdict: |true|false")
        self.write("plan.lua", "-- only a remark\n" + text.replace("measure =", "-- another\n      measure ="))
        self.assertEqual(self.phrun("verdict", "plan.lua", want=10).stdout, first)

    def test_p15_results_of_another_lock(self):
        self.locked("early", GRID, self.SLOW % "9")
        self.phrun("early.lua", "-q")
        self.locked("late", GRID, self.SLOW % "1.0")
        done = self.phrun("verdict", "late.lua", "--out", "experiments/early", want=3)
        self.assertIn("locked 9, now 1", done.stdout + done.stderr)
        self.assertNotIn("verdict: ", done.stdout + done.stderr)

    def test_p15_59_of_60_runs(self):
        self.locked("sixty", '{ family = { "ph", "resnet" }, depth = 2, seed = { %s } }' % ", ".join(map(str, range(30))),
                    "ph.rule { 'first', { ph.mean { 'test.accuracy', family = 'ph' }, '>=', 0 } }, ph.rule { 'second', { ph.mean { 'test.accuracy', family = 'resnet' }, '>=', 0 } }")
        self.phrun("sixty.lua", "-q", "family=ph")
        self.phrun("sixty.lua", "-q", "family=resnet", "seed=" + ",".join(str(s) for s in range(30) if s != 17))
        done = self.phrun("verdict", "sixty.lua", want=11)
        self.assertIn("59 of 60 runs", done.stdout)
        self.assertIn("missing: no run at family=resnet depth=2 seed=17", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ +first +true ")
        self.assertRegex(done.stdout, r"(?m)^ +second +not evaluable.*seed=17")
        self.assertRegex(done.stdout, r"(?m)^verdict: not evaluable")

    def test_p16_a_depth_that_was_cut(self):
        self.locked("cut", '{ family = { "ph", "resnet" }, depth = { 12, 48, 96 }, seed = 0 }',
                    "ph.rule { 'lowest', ph.every { { ph.rank { ph.mean { 'growth' }, family = 'ph' }, '==', 1 }, depth = ph.at_least(48) } }")
        self.phrun("cut.lua", "-q", "depth=12,48")
        done = self.phrun("verdict", "cut.lua", want=11)
        self.assertRegex(done.stdout, r"(?m)^ +lowest +not evaluable +no runs at depth=96")
        self.assertNotRegex(done.stdout, r"(?m)^ +lowest +(true|false)")
        self.phrun("deviate", "cut.lua", "depth=12,48", "--reason", "no time for depth 96")
        done = self.phrun("verdict", "cut.lua", want=11)
        self.assertRegex(done.stdout, r"(?m)^ +lowest +not evaluable +no runs at depth=96")
        self.phrun("cut.lua", "-q")
        self.assertRegex(self.phrun("verdict", "cut.lua", want=None).stdout, r"(?m)^ +lowest +(true|false)")


class Logs(Case):
    """P21: a log full of carriage returns, from which nothing can be rebuilt."""

    def test_p21_file_pipe_dumb_terminal_and_no_color(self):
        self.write("tiny.lua", spec_text(epochs=40))
        for name, tail in (("file", "> file.log 2>&1"), ("pipe", "2>&1 | cat > pipe.log")):
            for env in ({}, {"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "xterm-256color"}):
                out = name + "".join(env)
                subprocess.run(["bash", "-c", 'set -o pipefail; "$0" run tiny.lua --out %s %s' % (out, tail), PHRUN], cwd=self.dir, check=True, env=dict(os.environ, **env))
                text = self.read(name + ".log")
                self.assert_plain(text)
                self.assertLess(max(map(len, text.splitlines())), 4000)
                self.assertLess(len(text.splitlines()), 80)
                ends = [line for line in text.splitlines() if line.startswith("run-record ")]
                self.assertEqual([json.loads(line.split(" ", 1)[1]) for line in ends], [e["record"] for e in self.events(out) if "record" in e])
        os.remove(self.path("pipeNO_COLORTERM", "ledger.jsonl"))
        self.phrun("recover", "pipe.log", "--out", "again")
        again = self.records("again")
        self.assertEqual(sorted(again), ["family=ph depth=3 seed=0", "family=resnet depth=3 seed=0"])
        for label, r in self.records("pipe").items():
            self.assertEqual({k: v for k, v in again[label].items() if k != "recovered"}, r)


class Plots(Case):
    """P22: no display, no picture; a text plot wider than the terminal."""

    def test_p22_pictures_without_a_display_and_text_in_80_columns(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r")
        before = set(os.listdir(self.path("r")))
        self.phrun("plot", "r", env={"DISPLAY": None, "WAYLAND_DISPLAY": None})
        figures = [os.path.join(root, n) for root, _, names in os.walk(self.path("r")) for n in names]
        for ending, magic in ((".png", b"\x89PNG\r\n"), (".svg", b"<svg")):
            found = [n for n in figures if n.endswith(ending) and os.path.basename(n) not in before]
            self.assertGreater(len(found), 0, figures)
            for name in found:
                with open(name, "rb") as f:
                    self.assertIn(magic, f.read(2000), name)
        done = subprocess.run([PHRUN, "repl"], input=b"plot(randn(200))\n", capture_output=True, cwd=self.dir,
                              env={k: v for k, v in os.environ.items() if k != "DISPLAY"})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = done.stdout.decode()
        self.assert_plain(text)
        self.assertGreater(len(text.splitlines()), 10)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)


class Readers(Case):
    """P26: a look at a running grid stops it, or is refused."""

    def test_p26_h5dump_and_status_beside_a_grid(self):
        for locking in ("TRUE", "FALSE"):
            self.write("long.lua", spec_text(epochs=10, grid='{ family = { "ph", "resnet" }, depth = 3, seed = { 0, 1, 2 } }'))
            env = dict(os.environ, HDF5_USE_FILE_LOCKING=locking)
            p = self.start("long.lua", "--out", locking, "--checkpoint", 0, "-q", env=env)
            looks, end = {"runs": 0, "checkpoints": 0}, time.time() + 6
            while p.poll() is None and time.time() < end:
                if not os.path.exists(self.path(locking, "ledger.jsonl")):
                    time.sleep(0.01)
                    continue
                self.assertEqual(self.phrun("status", locking).stderr, "")
                for folder in looks:
                    for name in [n for n in os.listdir(self.path(locking, folder)) if n.endswith(".h5")][:2]:
                        path = self.path(locking, folder, name)
                        look = subprocess.run(["h5dump", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
                        self.assertTrue(look.returncode == 0 or not os.path.exists(path), look.stderr)
                        looks[folder] += look.returncode == 0
            self.assertEqual((p.communicate(timeout=120)[1], p.returncode), ("", 0))
            self.assertGreater(min(looks.values()), 0, looks)
            self.assertIn("sound", self.phrun("verify", locking).stdout)


class BlasCore(Case):
    """P27: kernels of a CPU twenty years old, and nobody sees it."""

    def test_p27_the_program_names_its_blas_and_warns_when_the_core_does_not_fit(self):
        free = {"OPENBLAS_CORETYPE": None}
        text = self.phrun("--version", "-v", env=free).stdout
        self.assertRegex(text, r"openblas +config: OpenBLAS \d+\.\d+\.\d+")
        self.assertRegex(text, r"openblas +core: \w+")
        self.assertRegex(text, r"openblas +threads: 1\n")
        self.assertRegex(text, r"features +\w+")
        self.assertRegex(text, r"hdf5 +1\.\d+")
        self.assertNotIn("warning", text)
        old = self.phrun("--version", "-v", env=dict(free, OPENBLAS_CORETYPE="Prescott")).stdout
        if "avx2" in text:
            self.assertRegex(old, r"warning +OpenBLAS runs its kernels for Prescott, those for \w+ fit this CPU better")
        rate = subprocess.run([PHRUN, "repl"], input="(require 'ph.native').sgemm_rate(64, 0.1)\n", capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k not in free}).stdout
        sys.stderr.write("sgemm 64 x 64 x 64: %.0f GFLOP/s  " % float(rate))


class Files(Case):
    """Files that only their own program reads."""

    def test_the_example_of_the_format_page_reads_a_run_that_diverged_too(self):
        with open(os.path.join(ROOT, "docs", "file-format.md")) as f:
            blocks = re.findall(r"(?s)```python\n(.*?)```", f.read())
        self.assertEqual(len(blocks), 1)
        self.write("example.py", blocks[0])
        self.write("tiny.lua", spec_text(lr="", select="select = { lr = { 3e-3, 1e6 } },", grid='{ family = "resnet", depth = 12, seed = 0 }').replace("ph.tanh", "ph.relu"))
        self.phrun("tiny.lua", "--out", "r")
        statuses = set()
        for record in self.records("r").values():
            done = subprocess.run([sys.executable, "example.py", "r/runs/%s.h5" % record["run"]], cwd=self.dir, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("%s %s {" % (record["run"], record["status"])), done.stdout)
            self.assertRegex(done.stdout, r"(?m)^last epoch: (none|\{'epoch': )")
            self.assertRegex(done.stdout, r"(?m)^s1\.W \(12, 8, 8\) float32 \d")
            statuses.add(record["status"])
        self.assertEqual(statuses, {"done", "diverged"})

    def test_a_spec_of_300_kib_and_a_profile_of_2000_layers_come_back_whole(self):
        """Texts above HDF5's limit for attributes and compact data, and profiles of deep streams."""
        text = spec_text(grid='{ family = "resnet", depth = 2000, seed = 0 }', epochs=1) + "".join("-- %06d gr\u00f6\u00dfe\n" % i for i in range(18000))
        self.assertGreater(len(text.encode()), 300 * 1024)
        self.write("large.lua", text)
        self.phrun("large.lua", "--out", "r")
        path = self.path("r", "runs", os.listdir(self.path("r", "runs"))[0])
        with h5py.File(path) as f:
            self.assertEqual(bytes(f["spec/text"][()]), text.encode())
            profiles = {name: f["profiles"][name].shape for name in f["profiles"] if hasattr(f["profiles"][name], "shape")}
            f["profiles"].visititems(lambda name, item: profiles.update({name: item.shape}) if hasattr(item, "shape") else None)
            self.assertIn((2001,), profiles.values(), profiles)
        dump = subprocess.run(["h5dump", "-H", path], check=True, capture_output=True, text=True)
        self.assertEqual(dump.stderr, "")
        self.assertIn('DATASET "text"', dump.stdout)

    def test_h5dump_and_h5py_open_runs_and_checkpoints(self):
        self.write("long.lua", spec_text(epochs=5000))
        p = self.start("long.lua", "--out", "r", "--checkpoint", "0.01", "-j", 2)
        folder = self.path("r", "checkpoints")
        while p.poll() is None and not (os.path.isdir(folder) and len([n for n in os.listdir(folder) if n.endswith(".h5")]) == 2):
            time.sleep(0.005)
        os.killpg(p.pid, signal.SIGTERM)
        p.communicate(timeout=60)
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r2")
        files = [self.path(d, f, n) for d, f in (("r", "checkpoints"), ("r2", "runs")) for n in os.listdir(self.path(d, f))]
        self.assertEqual(len(files), 4)
        for path in files:
            self.assertTrue(path.endswith(".h5"), path)
            text = subprocess.run(["h5dump", "-r", path], check=True, capture_output=True, text=True)
            self.assertEqual(text.stderr, "")
            self.assertIn('DATASET "history"', text.stdout)
            with h5py.File(path) as f:
                self.assertIn(bytes(f.attrs["format"]), (b"phrun run", b"phrun checkpoint"))
                self.assertEqual(f["final/s1.W"].shape, (3, 8, 8))
                if bytes(f.attrs["format"]) == b"phrun checkpoint":
                    self.assertGreaterEqual(json.loads(bytes(f["state"][()]))["epoch"], 1)
                    self.assertEqual(f["moment2/s1.W"].shape, (3, 8, 8))


if __name__ == "__main__":
    harness.main()
