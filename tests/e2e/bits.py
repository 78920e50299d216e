#!/usr/bin/python3
"""The bits of finished runs are golden values: quick, digits and one cell of E6 per family.

A digest covers the weights (best and final), the history, the profiles, the confusion table and every metric; times and
the machine are left out. tests/golden/bits.json holds them per arithmetic version; PHRUN_UPDATE=1 writes them anew, which
is right only together with a raised arithmetic version.
"""
import hashlib
import json
import os

import h5py
import numpy

import harness
from harness import ROOT, Case

GOLDEN = os.path.join(ROOT, "tests", "golden", "bits.json")
PARTS = ("best", "final", "history", "profiles", "confusion")
DATA = "/usr/share/datasets/fashion-mnist"  # where the package of that name puts it

# Profiles have new names since; the digests are of the bits, under the names of the first files.
FIRST_NAMES = {"grad.norm": "gradient", "grad.ratio": "gradient_ratio"}

QUICK = ("quick.lua",)
DIGITS = ("digits.lua",)
E6 = ("e6.lua", "depth=30", "seed=0", "task=circles")


def add(h, name, value):
    """Feeds one dataset to the digest: its path, type, shape and bytes."""
    group, _, last = name.rpartition("/")
    path = f"{group}/{FIRST_NAMES.get(last, last)}" if group.startswith("profiles/") else name
    h.update(f"{path} {value.dtype.str} {value.shape}\n".encode())
    h.update(numpy.ascontiguousarray(value).tobytes())


def digest(path):
    """(arithmetic version, label, sha256) of a run file."""
    h = hashlib.sha256()
    with h5py.File(path, "r") as f:
        record = json.loads(f["record"][()])
        names = []
        f.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in sorted(n for n in names if n.split("/")[0] in PARTS):
            add(h, name, f[name][()])
        arithmetic = str(f["provenance"].attrs["arithmetic"])
    h.update(json.dumps([record["metrics"], record["best_epoch"], record["steps"]], sort_keys=True).encode())
    return arithmetic, record["label"], h.hexdigest()


class Bits(Case):
    def digests(self, words, env=None):
        out = self.path("out")
        spec = os.path.join(ROOT, "specs", words[0])
        self.phrun(spec, *words[1:], "-j", 2, "-q", "--out", out, env=env)
        runs = os.path.join(out, "runs")
        return [digest(os.path.join(runs, name)) for name in sorted(os.listdir(runs))]

    def golden(self, name, words, env=None):
        digests = self.digests(words, env)
        arithmetic, found = digests[0][0], {label: value for _, label, value in digests}
        with open(GOLDEN, encoding="utf-8") as f:
            table = json.load(f)
        if os.environ.get("PHRUN_UPDATE"):
            table.setdefault(arithmetic, {})[name] = found
            with open(GOLDEN, "w", encoding="utf-8") as f:
                json.dump(table, f, indent=1, sort_keys=True)
                f.write("\n")
        self.assertEqual(found, table.get(arithmetic, {}).get(name))

    def test_quick(self):
        self.golden("quick", QUICK)

    def test_quick_with_avx2_kernels(self):
        self.golden("quick", QUICK, env={"PHRUN_KERNELS": "avx2"})

    def test_one_cell_of_e6_per_family(self):
        self.golden("e6", E6)

    def test_digits(self):
        if not os.path.isdir(DATA):
            self.skipTest("the Fashion-MNIST package is not installed")
        self.golden("digits", DIGITS)


if __name__ == "__main__":
    harness.main()
