#!/usr/bin/python3
"""Wrong results without a word, as trials of the whole program; those of the library alone are in tests/lua/silent_spec.lua."""
import os
import struct

import harness
from harness import Case


class TwoDataSets(Case):
    """A cache that leaves the directory out of its key: the second cell trained on the first one's data."""

    SPEC = """local ph = require "ph"
return ph.experiment {
  name = "two-dirs", grid = { task = { "equal", "telling" }, seed = 0 },
  task = function(cell) return ph.task.images { dir = cell.task, height = 2, width = 2, classes = 2, split = { train = 40, val = 20 }, seed = 1 } end,
  model = function(cell) return { ph.affine(2) } end,
  train = ph.sgd { lr = 1, epochs = 3, batch = 8 },
}
"""

    def images(self, folder, pixel):
        os.makedirs(self.path(folder))
        for prefix, n in (("train", 60), ("t10k", 20)):
            with open(self.path(folder, prefix + "-images-idx3-ubyte"), "wb") as f:
                f.write(struct.pack(">IIII", 0x803, n, 2, 2) + b"".join(bytes(pixel(i)) for i in range(n)))
            with open(self.path(folder, prefix + "-labels-idx1-ubyte"), "wb") as f:
                f.write(struct.pack(">II", 0x801, n) + bytes(i % 2 for i in range(n)))

    def test_each_cell_trains_and_is_tested_on_its_own(self):
        self.images("equal", lambda i: [7, 7, 7, 7])
        self.images("telling", lambda i: [250 * (i % 2), 9, 9, 250 - 250 * (i % 2)])
        spec = self.write("s.lua", self.SPEC)
        for out, words in (("one", []), ("jobs", ["-j", 2])):
            self.phrun(spec, "--out", out, *words)
            records = self.records(out)
            self.assertEqual([records["task=%s seed=0" % name]["metrics"]["test.accuracy"] for name in ("equal", "telling")], [0.5, 1])
            for record in records.values():
                self.assertTrue(record["data"].startswith(record["parts"]["data"]), record)
            self.assertIn("2 of 2 runs replayed, 2 with the same bits", self.phrun("verify", out, "--replay", 2).stdout)


if __name__ == "__main__":
    harness.main()
