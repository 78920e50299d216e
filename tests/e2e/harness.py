"""What the end-to-end tests share: the program, a scratch directory, small specs."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHRUN = os.path.abspath(os.environ.get("PHRUN", os.path.join(ROOT, "build", "phrun")))

SPEC = """local ph = require "ph"
local d <const> = 8
local block = {}
function block.ph(z)
  return ph.damping { d, step = 0.5 } * (ph.cayley { d } * z) + 0.5 * ph.linear(d)(ph.tanh(ph.affine(d)(z)))
end
function block.resnet(z) return z + ph.affine(d)(ph.tanh(ph.affine(d)(z))) end

return ph.experiment {
  name = "tiny",
  task = %(task)s,
  model = function(cell) return { ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(3) } end,
  grid = %(grid)s,
  %(select)s
  train = ph.adam { %(lr)s batch = 32, epochs = %(epochs)d, patience = %(patience)d },
  measure = { ph.growth(), ph.gradient_envelope(), ph.port_budget() },
}
"""
TASK = "ph.task.circles { classes = 3, width = d, split = { train = 200, val = 64, test = 64 } }"


def spec_text(grid='{ family = { "ph", "resnet" }, depth = 3, seed = 0 }', select="", lr="lr = 3e-3,", epochs=4, patience=0, task=TASK):
    return SPEC % dict(grid=grid, select=select, lr=lr, epochs=epochs, patience=patience, task=task)


class Case(unittest.TestCase):
    """A test with its own directory; self.phrun runs the program in it."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="phrun-e2e-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def read(self, *names):
        with open(self.path(*names), newline="") as f:  # a carriage return stays one
            return f.read()

    def command(self, *words):
        return [PHRUN] + [str(w) for w in words]

    def phrun(self, *words, want=0, env=None, **more):
        """Runs the program; fails unless it ends with `want` (None: any). Returns the finished process."""
        full = dict(os.environ, **(env or {}))
        full = {k: v for k, v in full.items() if v is not None}
        done = subprocess.run(self.command(*words), cwd=self.dir, env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300, **more)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()  # text mode would make newlines of carriage returns
        if want is not None:
            self.assertEqual(done.returncode, want, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def events(self, out):
        return [json.loads(line) for line in self.read(out, "ledger.jsonl").splitlines()]

    def records(self, out):
        """Last record of each run by label, without what may differ between two runs of the same thing."""
        found = {}
        for e in self.events(out):
            if "record" in e:
                r = dict(e["record"])
                r.pop("seconds", None)
                found[r["label"]] = r
        return found

    def one_line(self, text, pattern):
        lines = text.strip().splitlines()
        self.assertEqual(len(lines), 1, text)
        self.assertRegex(lines[0], pattern)

    def same_bits(self, a, b):
        done = self.phrun("verify", a, "--against", b)
        self.assertRegex(done.stdout, r"[1-9]\d* runs with the same bits, 0 differences")

    def assert_plain(self, text):
        self.assertIsNone(re.search("[\r\x1b]", text), repr(text[:400]))


def main():
    unittest.main(verbosity=2)
