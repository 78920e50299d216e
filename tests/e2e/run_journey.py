#!/usr/bin/python3
"""From a spec to results on disk: running, running again, stopping, going on, failing, reading meanwhile."""
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import time
import unittest

import h5py
import harness
from harness import PHRUN, spec_text


class Running(harness.Case):
    def test_a_run_leaves_a_sound_directory_and_tells_its_result(self):
        self.write("tiny.lua", spec_text())
        done = self.phrun("tiny.lua")
        self.assertRegex(done.stdout, r"(?m)^  family +depth .*val acc % +test acc % +growth")
        self.assertRegex(done.stdout, r"(?m)^  ph +3 ")
        self.assertIn("results: experiments/tiny", done.stdout)
        self.assertIn("sound", self.phrun("verify", "experiments/tiny").stdout)
        for record in self.records("experiments/tiny").values():
            self.assertEqual((record["status"], record["chosen"], record["test_opened"]), ("done", True, 1))
            for name in ("val.accuracy", "test.accuracy", "growth", "grad.first", "grad.max", "grad.min", "port.violations", "port.ratio"):
                self.assertIn(name, record["metrics"])
            self.assertEqual(record["metrics"]["port.violations"], 0)
        self.assertEqual(os.listdir(self.path("experiments/tiny/checkpoints")), [])

    def test_a_second_time_it_does_nothing_and_says_why(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua")
        before = self.read("experiments/tiny", "ledger.jsonl")
        done = self.phrun("tiny.lua")
        self.assertIn("all 2 runs of tiny are already done: same model, task, data, protocol and measures", done.stdout)
        self.assertEqual(before, self.read("experiments/tiny", "ledger.jsonl"))

    def test_only_cells_whose_meaning_changed_run_again_each_with_the_reason(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua")

        def plan(text, *words):
            self.write("tiny.lua", text)
            return self.phrun("tiny.lua", "-n", *words).stdout

        same = "-- a comment\n" + spec_text().replace("  grid", "      grid").replace("batch = 32, epochs = 4", "epochs = 4,\n batch = 32")
        self.assertIn("0 to run, 0 to resume, 2 already done", plan(same))
        self.assertRegex(plan(spec_text(lr="lr = 1e-2,")), r"(?s)train lr: 0.003 -> 0.01.*2 to run")
        changed = plan(spec_text().replace("return z + ph.affine", "return 0.5 * z + ph.affine"))
        self.assertRegex(changed, r"family=resnet .*run +changed: model: ")
        self.assertRegex(changed, r"family=ph .*already done")
        wider = plan(spec_text(grid='{ family = { "ph", "resnet" }, depth = { 3, 5 }, seed = 0 }'))
        self.assertRegex(wider, r"(?s)depth=5 .*new.*2 to run, 0 to resume, 2 already done")
        self.phrun("tiny.lua")
        self.assertEqual(len(self.records("experiments/tiny")), 4)
        hashes = {e["spec_hash"] for e in self.events("experiments/tiny") if e["event"] == "started"}
        self.assertEqual(len(hashes), 2, "each run keeps the hash of the spec it came from")

    def test_selection_opens_the_test_set_of_the_chosen_candidate_only(self):
        self.write("tiny.lua", spec_text(lr="", select="select = { lr = { 1e-5, 3e-3 }, by = 'val.accuracy' },"))
        self.phrun("tiny.lua")
        records = self.records("experiments/tiny")
        self.assertEqual(len(records), 4)
        for r in records.values():
            self.assertEqual(r["chosen"], r["select"]["lr"] == 3e-3, r["label"])
            self.assertEqual(r["test_opened"], int(r["chosen"]))
            self.assertEqual("test.accuracy" in r["metrics"], r["chosen"])

    def test_a_candidate_that_comes_to_be_chosen_later_is_measured_then(self):
        self.write("tiny.lua", spec_text(lr="", select="select = { lr = { 1e-5, 3e-3 }, by = 'val.accuracy' },"))
        self.phrun("tiny.lua")
        self.phrun("tiny.lua", "select.lr=1e-5")
        state = json.loads(self.phrun("status", "experiments/tiny", "--json").stdout)
        for r in state["runs"]:
            self.assertEqual(r["chosen"], r["select"]["lr"] == 1e-5, r["label"])
            self.assertEqual(r["test_opened"], 1)
        self.assertIn("sound", self.phrun("verify", "experiments/tiny").stdout)


class Groups(harness.Case):
    """Rates by parameter name, and training in float64."""

    def weights(self, out, group):
        run = os.listdir(self.path(out, "runs"))[0]
        with h5py.File(self.path(out, "runs", run)) as f:
            rates = json.loads(f["config/rates"][()])
            return {name: f[group][name][()] for name in f[group]}, rates

    def test_a_frozen_parameter_keeps_its_bits_and_the_run_file_has_the_rates(self):
        one = spec_text(grid='{ family = "ph", depth = 3, seed = 0 }', lr="lr = 3e-3, groups = { { 'L', frozen = true }, { 's2.*', lr = 0.5 } },")
        self.write("one.lua", one)
        self.write("short.lua", one.replace("epochs = 4", "epochs = 1"))
        self.phrun("one.lua", "--out", "one")
        self.phrun("short.lua", "--out", "short")
        long, rates = self.weights("one", "final")
        short, _ = self.weights("short", "final")
        self.assertTrue((long["s1.L"] == short["s1.L"]).all())
        self.assertFalse((long["s1.A"] == short["s1.A"]).all())
        self.assertEqual((rates["s2.W"]["lr"], rates["s1.A"]["lr"], rates["s1.L"]["frozen"]), (1.5e-3, 3e-3, True))

    def test_float64_is_another_run_with_weights_of_that_type(self):
        single = spec_text(grid='{ family = "ph", depth = 3, seed = 0 }')
        self.write("single.lua", single)
        self.write("double.lua", single.replace("measure =", "dtype = 'f64', measure ="))
        self.phrun("single.lua", "--out", "single")
        self.phrun("double.lua", "--out", "double")
        a, b = self.weights("single", "final")[0]["s1.A"], self.weights("double", "final")[0]["s1.A"]
        self.assertEqual((a.dtype.str, b.dtype.str), ("<f4", "<f8"))
        self.assertLess(abs(a - b).max(), 1e-3)  # 28 steps of 3e-3; both follow one path up to rounding
        self.assertIn("sound", self.phrun("verify", "double", "--replay", 1).stdout)


class Iterations(harness.Case):
    """Streams by property from a spec: tied over depth with a number of the iteration, terms of the loss, observations."""

    MODEL = """local ph = require "ph"
local d <const> = 8
local function block(z, t)
  local one = ph.linear { 1, name = "e" }(z)
  ph.observe("energy", ph.mul(one, one))
  %s
  return z + (0.1 / (1 + t)) * ph.linear(d)(ph.tanh(ph.affine(d)(z)))
end
return ph.experiment {
  name = "it", task = ph.task.circles { classes = 3, width = d, split = { train = 200, val = 64, test = 64 } },
  model = function(cell) return { ph.stream { depth = %d, tied = true, block = block }, ph.affine(3) } end,
  grid = { seed = 0 }, train = ph.adam { lr = 3e-3, batch = 64, epochs = %d }, measure = { ph.growth(), ph.observed() },
}
"""

    def energy(self, name, term, depth, epochs):
        self.write(name + ".lua", self.MODEL % (term, depth, epochs))
        self.phrun(name + ".lua", "--out", name, "-q")
        run = os.listdir(self.path(name, "runs"))[0]
        with h5py.File(self.path(name, "runs", run)) as f:
            return f["profiles/s1/observe.energy"][()]

    def test_a_term_of_the_loss_makes_what_it_weighs_small(self):
        free = self.energy("free", "", 6, 30)
        held = self.energy("held", "ph.term(10, ph.mul(one, one))", 6, 30)
        self.assertEqual(free.shape, (6,))
        self.assertLess(held.mean(), 0.2 * free.mean())

    def test_a_tied_stream_a_thousand_iterations_deep_trains_and_resumes(self):
        self.assertEqual(self.energy("deep", "", 1000, 2).shape, (1000,))
        self.assertIn("1 of 1 runs replayed, 1 with the same bits", self.phrun("verify", "deep", "--replay", 1).stdout)


class Bits(harness.Case):
    def test_threads_jobs_cores_and_blas_settings_do_not_change_a_bit(self):
        self.write("tiny.lua", spec_text(grid='{ family = { "ph", "resnet" }, depth = 3, seed = { 0, 1 } }'))
        self.phrun("tiny.lua", "--out", "one", "-t", 1)
        for name, words, env in (("two", ["-t", 2], {}), ("jobs", ["-j", 2, "-t", 1], {}), ("unset", [], {"OPENBLAS_NUM_THREADS": None}),
                                 ("blas1", [], {"OPENBLAS_NUM_THREADS": "1"}), ("blas2", ["-j", 3], {"OPENBLAS_NUM_THREADS": "2"})):
            self.phrun("tiny.lua", "--out", name, *words, env=env)
            self.same_bits("one", name)
        subprocess.run(["taskset", "-c", "0", PHRUN, "tiny.lua", "--out", "pinned"], cwd=self.dir, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.same_bits("one", "pinned")

    def test_the_comparison_sees_another_seed(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "a")
        self.write("tiny.lua", spec_text(lr="lr = 0.0030001,"))
        self.phrun("tiny.lua", "--out", "b")
        done = self.phrun("verify", "a", "--against", "b", want=10)
        self.assertRegex(done.stdout, r"family=ph depth=3 seed=0: /\S+ differs by up to")


class Stopping(harness.Case):
    def start(self, *words, **more):
        return subprocess.Popen(self.command(*words), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def wait_for(self, condition, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if condition():
                return
            time.sleep(0.005)
        self.fail("waited in vain")

    def stop_and_go_on(self, number, *words):
        self.write("long.lua", spec_text(epochs=120, patience=40))
        self.phrun("long.lua", "--out", "straight")
        stops = 0
        for attempt in range(4):
            p = self.start("long.lua", "--out", "stopped", "--checkpoint", "0.01", *words, start_new_session=True)
            folder = self.path("stopped", "checkpoints")
            self.wait_for(lambda: p.poll() is not None or (os.path.isdir(folder) and os.listdir(folder)))
            time.sleep(0.02 * attempt)
            if p.poll() is None:
                os.kill(p.pid, number)
            out, err = p.communicate(timeout=60)
            self.assertIn(p.returncode, (0, 130, -number), err)  # -number: the signal came before the program had begun
            stops += "interrupted; all is saved, resume with: phrun long.lua --out stopped" in err
        self.assertGreater(stops, 0)
        self.phrun("long.lua", "--out", "stopped")
        self.assertIn("resumed", [e["event"] for e in self.events("stopped")])
        self.same_bits("straight", "stopped")
        self.assertEqual(self.records("straight"), self.records("stopped"))

    def test_sigterm_saves_and_the_same_command_goes_on_to_the_same_bits(self):
        self.stop_and_go_on(signal.SIGTERM)

    def test_ctrl_c_with_workers_too(self):
        self.stop_and_go_on(signal.SIGINT, "-j", 2)

    def test_every_step_is_a_place_to_go_on_from(self):
        """Kills at many places of an epoch with a checkpoint after every step; histories and weights stay the same."""
        self.write("tiny.lua", spec_text(epochs=3))
        self.phrun("tiny.lua", "--out", "straight")
        for attempt in range(40):
            p = self.start("tiny.lua", "--out", "killed", "--checkpoint", 0, start_new_session=True)
            time.sleep(0.03 + 0.004 * attempt)
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            if p.returncode == 0:
                break
        self.phrun("tiny.lua", "--out", "killed")
        self.same_bits("straight", "killed")
        self.assertEqual(self.records("straight"), self.records("killed"))

    def test_workers_of_a_killed_parent_end_and_the_command_goes_on(self):
        self.write("long.lua", spec_text(epochs=400))
        p = self.start("long.lua", "--out", "r", "-j", 2, "--checkpoint", "0.01")
        self.wait_for(lambda: os.path.isdir(self.path("r", "checkpoints")) and len(os.listdir(self.path("r", "checkpoints"))) == 2)
        p.kill()
        p.communicate()
        self.phrun("long.lua", "--out", "r")
        self.phrun("verify", "r")

    def test_two_programs_do_not_write_to_one_directory(self):
        self.write("long.lua", spec_text(epochs=100000))
        p = self.start("long.lua", "--out", "r")
        self.wait_for(lambda: os.path.exists(self.path("r", "ledger.jsonl")))
        second = self.phrun("long.lua", "--out", "r", want=1)
        self.one_line(second.stderr, r"phrun: r: another phrun is writing here .*%d" % p.pid)
        p.terminate()
        p.communicate()
        self.assertEqual(p.returncode, 130)


class Failing(harness.Case):
    grid = '{ { family = { "ph", "resnet" }, depth = 3, seed = 0 }, { family = "gone", depth = 3, seed = 0 } }'
    task = ("function(cell) if cell.family == 'gone' then return ph.task.images { dir = 'no/where', split = { train = 10, val = 10 } } end "
            "return ph.task.circles { classes = 3, width = d, split = { train = 200, val = 64, test = 64 } } end")
    model = ("block.gone = function(z) return z end\n\nreturn ph.experiment", "return ph.experiment")

    def failing(self):
        text = spec_text(grid=self.grid, task=self.task).replace(self.model[1], self.model[0])
        text = text.replace("return { ph.stream", "local first = cell.family == 'gone' and ph.affine(d) or function(z) return z end\n    return { first, ph.stream")
        return text.replace("ph.affine(3) }", "ph.affine(cell.family == 'gone' and 10 or 3) }")

    def test_a_missing_file_is_a_failure_of_its_cell_told_at_once_and_the_others_finish(self):
        self.write("f.lua", self.failing())
        done = self.phrun("f.lua", "--out", "r", "-k", want=1)
        self.assertRegex(done.stderr, r"(?m)^failed: family=gone .*no/where/train-images-idx3-ubyte: no such file")
        records = self.records("r")
        self.assertEqual(sorted(r["status"] for r in records.values()), ["done", "done", "failed"])
        again = self.phrun("f.lua", "--out", "r", "-n", want=0)
        self.assertRegex(again.stdout, r"failed before: .*no such file")

    def test_without_k_nothing_new_is_started_after_a_failure(self):
        text = self.failing().replace('{ { family = { "ph", "resnet" }, depth = 3, seed = 0 }, { family = "gone", depth = 3, seed = 0 } }',
                                      '{ { family = "gone", depth = 3, seed = 0 }, { family = { "ph", "resnet" }, depth = 3, seed = 0 } }')
        self.write("f.lua", text)
        done = self.phrun("f.lua", "--out", "r", want=1)
        self.assertRegex(done.stderr, "stopped; -k continues with the other cells")
        self.assertEqual([r["status"] for r in self.records("r").values()], ["failed"])

    def test_a_diverged_run_is_a_result(self):
        text = spec_text(lr="", select="select = { lr = { 3e-3, 1e6 } },", grid='{ family = { "ph", "resnet" }, depth = 12, seed = 0 }')
        self.write("d.lua", text.replace("ph.tanh", "ph.relu"))
        done = self.phrun("d.lua", "--out", "r")
        records = self.records("r")
        bad = [r for r in records.values() if r["status"] == "diverged"]
        self.assertEqual(len(bad), 2)
        for r in bad:
            self.assertGreater(r["step"], 0)
            self.assertIsInstance(r["last_loss"], float)
            self.assertFalse(r["chosen"])
        self.assertRegex(done.stderr, r"(?m)^diverged  ph .*at step \d+ \(epoch \d+\).*last finite loss")
        self.assertEqual(self.phrun("verify", "r").returncode, 0)
        self.assertIn("already done: it diverged", self.phrun("d.lua", "--out", "r", "-n").stdout)

    def test_a_directory_that_can_not_be_written_is_one_clear_line(self):
        self.write("tiny.lua", spec_text())
        self.write("file", "")
        done = self.phrun("tiny.lua", "--out", "file/r", want=1)
        self.one_line(done.stderr, r"phrun: file: cannot create the directory: a file of that name is in the way")

    def test_a_full_disk_loses_nothing(self):
        """A limit of file size stands for the full disk: the write of the run file fails, the ledger stays whole."""
        self.write("tiny.lua", spec_text())

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        done = self.phrun("tiny.lua", "--out", "r", want=1, preexec_fn=limit)
        self.assertRegex(done.stderr, r"(?i)file too large")
        self.phrun("verify", "r")
        self.phrun("tiny.lua", "--out", "r")
        self.phrun("verify", "r")

    def test_an_edited_ledger_is_refused(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r")
        text = self.read("r", "ledger.jsonl")
        self.write("r/ledger.jsonl", text.replace('"test.accuracy":0.', '"test.accuracy":1.', 1))
        self.assertRegex(self.phrun("verify", "r", want=3).stdout, r"line \d+ was changed")
        self.one_line(self.phrun("tiny.lua", "--out", "r", want=3).stderr, r"ledger.jsonl: line \d+ was changed")

    def test_a_changed_run_file_is_found(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r")
        name = sorted(os.listdir(self.path("r", "runs")))[0]
        with open(self.path("r", "runs", name), "r+b") as f:
            f.seek(-9, 2)
            byte = f.read(1)
            f.seek(-9, 2)
            f.write(bytes([byte[0] ^ 1]))
        self.assertIn(name + ": changed since it was written", self.phrun("verify", "r", want=3).stdout)
        os.remove(self.path("r", "runs", name))
        self.assertIn("1 present, 1 unbacked", self.phrun("verify", "r").stdout)


class Telling(harness.Case):
    def test_logs_are_plain_and_carry_every_field(self):
        self.write("tiny.lua", spec_text())
        with open(self.path("log"), "w") as log:
            subprocess.run(self.command("tiny.lua", "--out", "r"), cwd=self.dir, stdout=log, stderr=subprocess.STDOUT, check=True)
        text = self.read("log")
        self.assert_plain(text)
        self.assertLess(max(map(len, text.splitlines())), 4000)
        logged = [json.loads(line.split(" ", 1)[1]) for line in text.splitlines() if line.startswith("run-record ")]
        self.assertEqual(logged, [e["record"] for e in self.events("r") if "record" in e])

    def terminal(self, env):
        self.write("tiny.lua", spec_text(epochs=30))
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve(PHRUN, self.command("tiny.lua", "--out", env.get("TERM", "") + "r"), dict(os.environ, **env))
        out = b""
        while select.select([fd], [], [], 60)[0]:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                break
            out += chunk
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        return out.decode().replace("\r\n", "\n")

    def test_a_terminal_gets_a_bar_and_no_machine_lines(self):
        text = self.terminal({"TERM": "xterm-256color"})
        self.assertRegex(text, r"\r\x1b\[K\[=* *\] +\d+%")
        self.assertNotIn("run-record", text)

    def test_a_dumb_terminal_gets_plain_text(self):
        self.assert_plain(self.terminal({"TERM": "dumb"}))

    def test_no_color_is_obeyed(self):
        self.assertIsNone(re.search(r"\x1b\[[0-9;]*m", self.terminal({"TERM": "xterm-256color", "NO_COLOR": "1"})))

    def test_quiet_says_only_results(self):
        self.write("tiny.lua", spec_text())
        done = self.phrun("tiny.lua", "-q")
        self.assertEqual(done.stderr, "")
        self.assertIn("results:", done.stdout)

    def test_readers_do_not_disturb_and_are_not_disturbed(self):
        self.write("long.lua", spec_text(epochs=60, grid='{ family = { "ph", "resnet" }, depth = 3, seed = { 0, 1, 2, 3 } }'))
        p = subprocess.Popen(self.command("long.lua", "--out", "r", "--checkpoint", "0"), cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        looks = 0
        while p.poll() is None:
            if os.path.exists(self.path("r", "ledger.jsonl")):
                self.phrun("status", "r", "--json")
                for folder in ("runs", "checkpoints"):
                    for name in os.listdir(self.path("r", folder)):
                        if name.endswith(".h5"):
                            look = subprocess.run(["h5dump", "-H", self.path("r", folder, name)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                                  env=dict(os.environ, HDF5_USE_FILE_LOCKING="TRUE" if looks % 2 else "FALSE"))
                            if look.returncode:
                                self.assertFalse(os.path.exists(self.path("r", folder, name)), look.stderr)
                            looks += 1
        self.assertEqual(p.returncode, 0, p.stderr.read())
        p.stderr.close()
        self.assertGreater(looks, 3)


class Images(harness.Case):
    """Tiny files in the format of MNIST: 60 and 20 images of 4 x 4 pixels, three classes."""

    def setUp(self):
        super().setUp()
        for prefix, n in (("train", 60), ("t10k", 20)):
            pixels = bytes((i * 37 + j * 11 + (i % 3) * 80) % 256 for i in range(n) for j in range(16))
            self.idx(prefix + "-images-idx3-ubyte", (n, 4, 4), pixels)
            self.idx(prefix + "-labels-idx1-ubyte", (n,), bytes(i % 3 for i in range(n)))
        task = "ph.task.images { dir = 'data', height = 4, width = 4, classes = 3, split = { train = 40, val = 20 } }"
        text = spec_text(task=task).replace("return { ph.stream", "return { ph.affine(d), ph.stream")
        self.write("images.lua", text)

    def idx(self, name, dims, body):
        os.makedirs(self.path("data"), exist_ok=True)
        with open(self.path("data", name), "wb") as f:
            f.write(bytes([0, 0, 8, len(dims)]) + b"".join(d.to_bytes(4, "big") for d in dims) + body)

    def change(self, name, at, size=None):
        with open(self.path("data", name), "r+b") as f:
            f.seek(at)
            byte = f.read(1)
            f.seek(at)
            f.write(bytes([byte[0] ^ 1]))
            if size:
                f.truncate(size)

    def test_the_confusion_table_is_printed_and_saved(self):
        done = self.phrun("images.lua", "--out", "r")
        self.assertRegex(done.stdout, r"confusion on the test set, label by answer: family=ph.*\n +label +0 +1 +2")
        name = sorted(os.listdir(self.path("r", "runs")))[0]
        self.assertRegex(self.phrun("inspect", os.path.join("r", "runs", name)).stdout, r"/confusion +i32 \(3, 3\)")

    def test_one_byte_of_the_data_makes_its_runs_again_and_moving_the_files_does_not(self):
        self.phrun("images.lua", "--out", "r")
        os.rename(self.path("data"), self.path("moved"))
        self.assertIn("2 already done", self.phrun("images.lua", "--out", "r", "-n", "data=moved").stdout)
        os.rename(self.path("moved"), self.path("data"))
        self.change("t10k-images-idx3-ubyte", 100)
        done = self.phrun("images.lua", "--out", "r", "-n")
        self.assertRegex(done.stdout, r"(?s)changed: data: [0-9a-f]{12} -> [0-9a-f]{12}\n.*2 to run")

    def test_a_short_file_is_a_failure_with_file_and_sizes(self):
        self.change("train-images-idx3-ubyte", 100, 900)
        done = self.phrun("images.lua", "--out", "r", want=1)
        self.assertRegex(done.stderr, r"(?m)^failed: .*train-images-idx3-ubyte.*9[07][06]")
        self.assertEqual(os.listdir(self.path("r", "runs")), [])


class Documents(harness.Case):
    def test_the_example_of_the_file_format_reads_a_run_file(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r")
        example = self.example("docs/file-format.md", "python")
        for name in os.listdir(self.path("r", "runs")):
            done = subprocess.run(["/usr/bin/python3", self.write("example.py", example), self.path("r", "runs", name)], stdout=subprocess.PIPE, text=True, check=True)
            self.assertRegex(done.stdout, r"(?s)^%s done .*'val.accuracy'.*last epoch: .*'epoch': 4.0.*s1\.\w+ \(3, 8, \d\) float32 0\.\d" % name[:16])

    def test_the_example_of_the_readme_compiles(self):
        self.write("mine.lua", self.example("README.md", "lua"))
        self.assertIn("mine: 9 cells, 18 runs, 3 models", self.phrun("check", "mine.lua").stdout)

    def example(self, document, language):
        with open(os.path.join(harness.ROOT, document)) as f:
            return f.read().split("```" + language + "\n")[1].split("```")[0]


class Words(harness.Case):
    def test_an_unknown_verb_is_one_line_with_a_suggestion(self):
        self.one_line(self.phrun("statsu", want=2).stderr, "unknown verb or file 'statsu'.*did you mean 'status'")

    def test_wrong_options_are_one_line(self):
        self.write("tiny.lua", spec_text())
        self.one_line(self.phrun("tiny.lua", "--job", "2", want=2).stderr, "run: unknown option '--job'")
        self.one_line(self.phrun("tiny.lua", "-j", "0", want=2).stderr, "'0' is not a number from 1 to 1024")
        self.one_line(self.phrun("tiny.lua", "depth", want=2).stderr, "'depth' is not key=value")
        self.one_line(self.phrun("status", "nowhere", want=1).stderr, "nowhere: no such directory")

    def test_check_prints_cost_without_running(self):
        self.write("tiny.lua", spec_text())
        done = self.phrun("check", "tiny.lua")
        self.assertRegex(done.stdout, r"(?m)^  family=ph depth=3 +8 -> 3 +1 +\d")
        self.assertFalse(os.path.exists(self.path("experiments")))

    def test_bench_works_without_a_peer(self):
        for option in ("--reference", "--peer"):  # the second is the older name
            done = self.phrun("bench", "e6", "--quick", option, "nowhere.py")
            self.assertIn("peer: not found, skipped", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^  ph +240 +32 +256 +1 +\d+\.\d\d ")
        self.assertRegex(done.stdout, r"stream phase to micro-kernel peak, ph, one thread +0\.\d\d")

    def test_inspect_reads_a_run_file(self):
        self.write("tiny.lua", spec_text())
        self.phrun("tiny.lua", "--out", "r")
        name = os.path.join("r", "runs", sorted(os.listdir(self.path("r", "runs")))[0])
        done = self.phrun("inspect", name)
        self.assertRegex(done.stdout, r"(?m)^  /history +f64 \(4, 6\)")
        self.assertRegex(done.stdout, r"(?m)^  test.accuracy +0\.")
        self.assertRegex(self.phrun("inspect", "tiny.lua", "--ir", "family=ph").stdout, r"(?m)^phrun-ir 1$")
        program = self.phrun("inspect", "tiny.lua", "--program", "family=ph").stdout
        self.assertRegex(program, r"(?m)^plan: f32")
        self.assertEqual(program, self.phrun("inspect", "tiny.lua", "--plan", "family=ph").stdout)  # the older name

    def test_status_of_a_directory_that_is_none(self):
        self.one_line(self.phrun("status", ".", want=1).stderr, "not a results directory")


if __name__ == "__main__":
    unittest.main(verbosity=2)
