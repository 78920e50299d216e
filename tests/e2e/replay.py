#!/usr/bin/python3
"""Replays by a reader who trusts nothing in a results directory: nothing that it names is written, and the reader's nonce
draws the cells."""
import hashlib
import json
import os
import re

import h5py
import numpy

import harness
from harness import spec_text


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Replay(harness.Case):
    def setUp(self):
        super().setUp()
        grid = '{ family = { "ph", "resnet" }, depth = { 1, 2 }, seed = 0 }'
        text = spec_text(grid=grid, epochs=1).replace('local ph = require "ph"', 'local ph = require "ph"\nlocal h = require "dir.helper"')
        self.write("tiny.lua", text)
        os.mkdir(self.path("dir"))
        self.write("dir/helper.lua", "return 1\n")
        self.phrun("tiny.lua", "-q", "--out", "r")

    def seal(self, path):
        """Makes an edited run file whole again, as one who forges it would."""
        with open(path, "rb") as f:
            data = f.read()
        line = b"phrun run file, HDF5 from byte 512 on, sha256 of it: " + sha(data[512:]).encode() + b"\n"
        with open(path, "wb") as f:
            f.write(line + bytes(512 - len(line)) + data[512:])

    def rechain(self, exchanged):
        """Writes the ledger anew with other hashes of files."""
        out, prev = [], ""
        for line in self.read("r", "ledger.jsonl").splitlines():
            for old, new in exchanged.items():
                line = line.replace(old, new)
            text = re.match(r'^(.*),"hash":"[0-9a-f]+"}$', line).group(1) + "}"
            text = re.sub(r'"prev":"[0-9a-f]*"', '"prev":"%s"' % prev, text, count=1)
            prev = sha(text.encode())
            out.append(text[:-1] + ',"hash":"%s"}' % prev)
        self.write("r/ledger.jsonl", "\n".join(out) + "\n")

    def forge(self, stored):
        """Puts another path of the sibling file into every run file."""
        exchanged = {}
        for name in os.listdir(self.path("r", "runs")):
            path = self.path("r", "runs", name)
            with open(path, "rb") as f:
                old = sha(f.read())
            with h5py.File(path, "r+") as f:
                for key, value in (("path", stored.encode()), ("text", b"return 'this was written by the audit'\n")):
                    del f["spec/files/001/" + key]
                    f["spec/files/001/" + key] = numpy.bytes_(value)
            self.seal(path)
            with open(path, "rb") as f:
                exchanged[old] = sha(f.read())
        self.rechain(exchanged)

    def test_nothing_that_a_results_directory_names_is_written(self):
        victim = self.write("victim", "precious\n")
        for stored in ("../" * 12 + victim.lstrip("/"), victim, "dir/../../../victim"):
            self.forge(stored)
            self.assertIn("sound", self.phrun("verify", "r").stdout)
            before = sorted(os.listdir(self.dir))
            self.phrun("verify", "r", "--replay", 1, want=None)
            self.assertEqual(self.read("victim"), "precious\n")
            self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_the_spec_and_its_siblings_come_from_the_run_file(self):
        os.remove(self.path("dir", "helper.lua"))
        os.remove(self.path("tiny.lua"))
        self.assertIn("4 of 4 runs replayed, 4 with the same bits", self.phrun("verify", "r", "--replay", "all").stdout)

    def test_the_nonce_draws_the_cells_and_is_printed(self):
        drawn = set()
        for nonce in "abcdefgh":
            out = self.phrun("verify", "r", "--replay", 1, "--nonce", nonce).stdout
            self.assertEqual(out, self.phrun("verify", "r", "--replay", 1, "--nonce", nonce).stdout)
            drawn.add(re.search(r"(?m)^  (.*): the same bits", out).group(1))
        self.assertGreater(len(drawn), 1)
        first = self.phrun("verify", "r", "--replay", 1).stdout
        self.assertRegex(first, r"\(--nonce [0-9a-f]{16}\)")

    def test_a_forged_metric_is_found(self):
        name = os.listdir(self.path("r", "runs"))[0]
        path = self.path("r", "runs", name)
        with open(path, "rb") as f:
            old = sha(f.read())
        with h5py.File(path, "r+") as f:
            record = f["record"][()].decode()
            value = json.dumps(json.loads(record)["metrics"]["test.accuracy"])
            forged = record.replace('"test.accuracy":' + value, '"test.accuracy":0.99')
            self.assertNotEqual(record, forged)
            del f["record"]
            f["record"] = numpy.bytes_(forged.encode())
        self.seal(path)
        with open(path, "rb") as f:
            new = sha(f.read())
        self.rechain({old: new, '"test.accuracy":' + value: '"test.accuracy":0.99'})
        self.phrun("verify", "r", "--replay", "all", want=10)


if __name__ == "__main__":
    harness.main()
