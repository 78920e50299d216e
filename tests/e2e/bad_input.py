#!/usr/bin/python3
"""What hostile and clumsy people do, from outside. Each trial ends in one clear line and the right exit code; nothing is lost,
nothing is left behind, nothing hangs. Tables of trials stand beside the class that runs them."""
import fcntl
import glob
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import h5py

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import PHRUN, ROOT, Case, main, spec_text  # noqa: E402

HEAD = 'local ph = require "ph"\n'
GRID = "{ family = 'resnet', depth = 3, seed = { 0, 1 } }"
TINY = spec_text(grid=GRID, epochs=2)
LONG = spec_text(grid=GRID, epochs=100000)


def model(body, grid="{ depth = 3, seed = 0 }"):
    """A spec whose model is `body`; it reads every axis."""
    return HEAD + """return ph.experiment { name = "tiny", task = ph.task.circles { classes = 3, width = 8, split = { train = 200, val = 64, test = 64 } },
  model = function(cell) local _ = cell.depth %s end, grid = %s, train = ph.adam { lr = 3e-3, batch = 32, epochs = 2 } }
""" % (body, grid)


def numbers(n):
    return "{ " + ", ".join(map(str, range(n))) + " }"


def block(body):
    return model("return { ph.stream { depth = 3, block = function(z) %s end }, ph.affine(3) }" % body)


class Bad(Case):
    def ends(self, words, want, pattern, text=True, **more):
        """Runs the program; it must end with `want` and say one plain line."""
        start = time.monotonic()
        done = subprocess.run([PHRUN, *words], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, **more)
        said = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, want, said[-1000:])
        self.assertEqual(len(said.splitlines()), 1 if text else 0, said[-1000:])
        self.assertRegex(said, pattern)
        self.assertNotRegex(said.rstrip("\n"), r"[\x00-\x1f]|traceback|lua/ph/|0x[0-9a-f]{8}")
        self.assertLess(len(said), 2500)
        self.assertLess(time.monotonic() - start, 60)
        return done

    def nothing_aside(self, folder="."):
        for where, _, files in os.walk(self.path(folder)):
            self.assertEqual([f for f in files if ".tmp-" in f], [], where)

    def tiny(self, out="r", text=TINY):
        self.write("tiny.lua", text)
        self.phrun("tiny.lua", "-q", "--out", out)
        return sorted(glob.glob(self.path(out, "runs", "*.h5")))

    def start(self, *words, **more):
        p = subprocess.Popen([PHRUN, *words], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p

    def wait_for(self, *names):
        end = time.monotonic() + 30
        while not os.path.exists(self.path(*names)):
            self.assertLess(time.monotonic(), end, names)
            time.sleep(0.02)


SPECS = {
    # what is not the text of a spec
    "empty": ("", "must return an experiment"),
    "NULs": ("\0" * 100, r"spec.lua:1: unexpected symbol"),
    "huge": ("--" + "x" * 5000000, "more than the limit"),
    "deep": ("return " + "(" * 100000 + "1" + ")" * 100000, "spec.lua: C stack overflow"),
    # what never ends or takes all there is (endless loops and tables are in host.py)
    "endless sibling": ("require 'endless'", r"endless.lua:1: more than \d+ instructions"),
    "doubling": ("local s = 'x' while true do s = s .. s end", r"spec.lua.* of memory"),
    "recursion": ("local function f() return 1 + f() end return f()", "spec.lua:1: stack overflow"),
    "native work": (HEAD + "while true do local a = ph.randn(300, 300) a = a * a * a * a end", r"spec.lua:2: more than \d+ (seconds of work|instr)"),
    "tensors": (HEAD + "local t = {} while true do t[#t + 1] = ph.randn(300, 300) end", "spec.lua:2: .*left to this spec"),
    "a large tensor": (HEAD + "return ph.randn(10^5, 10^5)", "spec.lua.*more than"),
    "a billion cells": (model("return { ph.affine(3) }", "{ a = %s, b = %s, seed = %s }" % ((numbers(1000),) * 3)), "spec.lua:.*grid: 1000000000 cells are more than"),
    "endless model": (model("while true do end"), r"spec.lua:3: more than \d+ instructions.*cell depth=3"),
    "endless block": (block("while true do end"), r"spec.lua:3: more than \d+ instructions"),
    # what is not an experiment
    "number": ("return 1", "must return an experiment, this one returns 1"),
    "function": ("return function() end", "returns a function"),
    "protocol": (HEAD + "return ph.adam { lr = 1, batch = 1, epochs = 1 }", "returns a protocol"),
    "two values": (TINY.replace("return ph.exp", "return nil, ph.exp"), "returns nothing"),
    # errors that are not messages
    "table": ("error { 1, 2 }", "spec.lua:1: error.. was called with a table value"),
    "nil": ("error()", "spec.lua:1: error.. was called with a nil value"),
    "function raised": ("error(function() end)", "spec.lua:1: .*a function value"),
    "assert": ("assert(false, {})", "spec.lua:1: .*a table value"),
    "table in a model": (model("error {}"), "spec.lua:3: .*a table value.*cell depth=3"),
    "control characters": (r'error "a\nb\0c\27[31m"', r"spec.lua:1: a b\\x00c\\x1b"),
    "long": ("error(('x'):rep(1e6))", r"spec.lua:1: x+\.\.\. \(\d+ bytes more\)"),
    "native error": (HEAD + "local a = ph.randn(3, 3) a:close() local b = a + a", "spec.lua:2: tensor is closed"),
    # ways out of the sandbox
    "os": ("os.execute 'touch out'", "undeclared name 'os'"),
    "io": ("io.open('out', 'w')", "undeclared name 'io'"),
    "load": ("load 'x = 1' ()", "undeclared name 'load'"),
    "pcall": ("while true do pcall(error) end", "undeclared name 'pcall'"),
    "coroutine": ("coroutine.wrap(function() end)()", "undeclared name 'coroutine'"),
    "metatable": ("setmetatable({}, {})", "undeclared name 'setmetatable'"),
    "string metatable": ("return getmetatable('').__index", "undeclared name 'getmetatable'"),
    "_G": ("return _G.os", "undeclared name '_G'"),
    "_ENV": ("return _ENV.os.exit(0)", "undeclared name 'os'"),
    "dump": ("return string.dump(function() end)", "spec.lua:1: string.dump does not exist in a spec"),
    "ph": (HEAD + "ph.adam = 1", "spec.lua:2: ph.adam cannot be changed"),
    "require a path": ("require '/etc/passwd'", "is not the name of a file beside the spec"),
    "require upwards": ("require '../spec'", "is not the name of a file beside the spec"),
    "require the program": ("require 'ph.native'", "ph/native.lua: cannot open"),
    "require itself": ("require 'spec'", "'spec' requires itself"),
    "require a folder": ("require 'folder'", "it is a directory"),
    "require binary": ("require 'binary'", "spec.lua:1: require 'binary': .*compiled"),
    # models
    "no stage": (model("return {}"), "has no stage that computes anything"),
    "hole": (model("return { ph.affine(8), nil, ph.affine(3) }"), "hole: nothing at index 2"),
    "wrong classes": (model("return { ph.affine(4) }"), "the task has 3 classes"),
    "too large": (model("return { ph.affine(65536), ph.affine(65536), ph.affine(3) }"), "a matrix of 65536 x 65536 numbers"),
    "too deep": (model("return { ph.stream { depth = 10^9, block = function(z) return z end }, ph.affine(3) }"), "at most 1048576"),
    "block gives nothing": (block(""), "must give a state, gives nothing"),
    "block compares": (block("if z > 0 then return z end return z"), "comparison of a value inside a block"),
    "block indexes": (block("return z.x"), "indexing"),
    "block scales by nan": (block("return (0/0) * z"), "must be finite, got nan"),
    "foreign value": (model("local keep local function f(z) keep = z return z end "
                            "return { ph.stream { depth = 3, block = f }, ph.stream { depth = 3, block = function(z) return z + keep end }, ph.affine(3) }"),
                      "a block sees only its own"),
    # keys and numbers
    "misspelt": (TINY.replace("batch = 32", "batch = 32, patiens = 3"), "unknown key 'patiens'"),
    "nan": (TINY.replace("lr = 3e-3", "lr = 0/0"), "got nan"),
    "fraction": (TINY.replace("batch = 32", "batch = 2.5"), "must be a whole number, got 2.5"),
    "name with a slash": (TINY.replace('"tiny"', '"../x"'), "a name of letters"),
    "hole in the grid": (TINY.replace("{ 0, 1 }", "{ 0, nil, 2 }"), "hole: nothing at index 2"),
    "axis twice": (TINY.replace("{ 0, 1 }", "{ 0, 0 }"), "has 0 twice"),
}


class Specs(Bad):
    def test_refused_in_one_line(self):
        self.write("endless.lua", "while true do end")
        self.write("binary.lua", "\x1bLua")
        os.mkdir(self.path("folder.lua"))
        for name, (text, pattern) in SPECS.items():
            with self.subTest(name):
                self.ends(["check", self.write("spec.lua", text)], 2, pattern)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_byte_order_mark_and_line_ends_of_other_systems(self):
        with open(self.path("spec.lua"), "wb") as f:
            f.write(b"\xef\xbb\xbf" + TINY.replace("\n", "\r\n").encode())
        self.phrun("check", "spec.lua")

    def test_paths(self):
        for name in ("sp ace é ✓.lua", "a\nb.lua", "no ending", "%s%d.lua"):
            with self.subTest(name):
                os.makedirs(self.path("f o"), exist_ok=True)
                self.write(os.path.join("f o", name), TINY)
                self.phrun(os.path.join("f o", name), "-n")
        for path in ("", ".", "nowhere.lua", "/dev/zero"):
            self.ends(["run", path], 2, "cannot (open|read)")

    def test_from_another_folder_and_from_none(self):
        path = self.write("spec.lua", TINY)
        done = subprocess.run([PHRUN, path, "-q", "--out", self.path("r")], cwd="/", capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run(["sh", "-c", f"mkdir gone; cd gone; rmdir ../gone; '{PHRUN}' '{path}' -q"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.one_line(done.stderr, "cannot create the directory")


WORDS = [
    (["foo"], 2, "unknown verb or file 'foo'"),
    (["rnu", "tiny.lua"], 2, "did you mean 'run'"),
    (["-x"], 2, "unknown option '-x'"),
    (["run"], 2, "missing argument"),
    (["run", "tiny.lua", "tiny.lua"], 2, "not key=value"),
    (["run", "tiny.lua", "-j", "0"], 2, "not a number from 1 to 1024"),
    (["run", "tiny.lua", "--checkpoint", "nan"], 2, "not a number of seconds"),
    (["run", "tiny.lua", "--out", ""], 2, "--out: needs the name"),
    (["run", "tiny.lua", "--foo"], 2, "unknown option '--foo'"),
    (["check", "tiny.lua", "depth="], 2, "has no value"),
    (["check", "tiny.lua", "depth=nan"], 2, "must be a whole number"),
    (["check", "tiny.lua", "depth=1e999"], 2, "must be finite"),
    (["check", "tiny.lua", "depth=3,3"], 2, "twice"),
    (["check", "tiny.lua", "dept=3"], 2, "did you mean 'depth'"),
    (["check", "tiny.lua", "train.epochs=99999999999999999999"], 2, "at most"),
    (["check", "tiny.lua", "depth=\x1b[31m"], 2, r"the string '\\x1b\[31m'"),
    (["check", "tiny.lua", "select.by=test.accuracy"], 2, "refused"),
    (["status", "nowhere"], 1, "no such directory"),
    (["status", "tiny.lua"], 1, "not a results directory"),
    (["verify", "nowhere"], 1, "not a results directory"),
    (["verify", "r", "--against", "tiny.lua"], 1, "not a results directory"),
    (["verify", "r", "--replay", "-1"], 2, "verify"),
    (["verdict", "r"], 11, "not registered"),
    (["verdict", "nowhere"], 2, "cannot open"),
    (["lock", "r"], 2, "it is a directory"),
    (["deviate", "r"], 2, "--reason"),
    (["report", "nowhere"], 2, "cannot open"),
    (["report", "tiny.lua"], 1, "nothing has been run"),
    (["recover", "tiny.lua", "--out", "rec"], 1, "no line 'run-record"),
    (["recover", "/dev/zero", "--out", "rec"], 1, "not a regular file"),
    (["plot", "nowhere"], 2, "no such file"),
    (["plot", "tiny.lua"], 3, "not a readable HDF5 file"),
    (["plot", "r", "nofigure"], 2, "no figure 'nofigure'"),
    (["inspect", "nowhere.h5"], 2, "cannot open"),
    (["inspect", "tiny.lua"], 2, "--program"),
    (["check", "nowhere.h5"], 2, "cannot open"),
    (["check", "r"], 2, "it is a directory"),
    (["bench", "e99"], 2, "no bench is called"),
    (["test", "nowhere"], 2, "no such file"),
]


class Words(Bad):
    def test_wrong_words(self):
        self.tiny()
        for words, want, pattern in WORDS:
            with self.subTest(words):
                self.ends(words, want, pattern)
        self.assertFalse(os.path.exists(self.path("rec")))


IMAGES = """local ph = require "ph"
return ph.experiment { name = "images", task = ph.task.images { dir = "data", height = 2, width = 2, classes = 3, split = { train = 4, val = 2 } },
  model = function(cell) return { ph.affine(3) } end, grid = { seed = 0 }, train = ph.adam { lr = 1e-3, batch = 4, epochs = 1 } }
"""


def pixels(n):
    return struct.pack(">IIII", 0x803, n, 2, 2) + bytes(i * 7 % 256 for i in range(4 * n))


def labels(n, value=None):
    return struct.pack(">II", 0x801, n) + bytes(i % 3 if value is None else value for i in range(n))


class Data(Bad):
    def setUp(self):
        super().setUp()
        self.write("images.lua", IMAGES)

    def good_data(self):
        shutil.rmtree(self.path("data"), ignore_errors=True)
        os.mkdir(self.path("data"))
        for prefix in ("train", "t10k"):
            self.put(prefix + "-images-idx3-ubyte", pixels(8))
            self.put(prefix + "-labels-idx1-ubyte", labels(8))

    def put(self, name, data):
        with open(self.path("data", name), "wb") as f:
            f.write(data)

    def refused(self, pattern):
        shutil.rmtree(self.path("r"), ignore_errors=True)
        self.ends(["images.lua", "-q", "--out", "r"], 1, pattern)
        self.assertEqual(self.events("r")[-1]["event"], "failed")
        self.assertEqual(os.listdir(self.path("r", "runs")) + os.listdir(self.path("r", "checkpoints")), [])

    def test_malformed_files(self):
        folder = os.path.join(os.path.dirname(ROOT), "shared", "data", "malformed")
        files = sorted(glob.glob(os.path.join(folder, "*idx[13]-ubyte*")))
        if not files:
            self.skipTest("no malformed data beside the checkout")
        for file in files:
            with self.subTest(os.path.basename(file)):
                self.good_data()
                slot = "train-labels-idx1-ubyte" if "idx1" in file else "train-images-idx3-ubyte"
                os.remove(self.path("data", slot))
                shutil.copy(file, self.path("data", slot + (".gz" if file.endswith(".gz") else "")))
                self.refused(r"failed: .*data/train-.*: byte \d+.*expected .*, found ")

    def test_wrong_contents(self):
        nan = struct.pack(">IIII", 0xD03, 8, 2, 2) + struct.pack(">32f", *[float("nan")] * 32)
        for name, data, pattern in (
            ("train-labels-idx1-ubyte", labels(8, 200), "expected a label below 3, found 200"),
            ("train-labels-idx1-ubyte", labels(7), "expected 8 labels"),
            ("train-images-idx3-ubyte", struct.pack("<IIII", 0x803, 8, 2, 2) + bytes(32), "little-endian"),
            ("train-images-idx3-ubyte", nan, "expected element type 08"),
            ("t10k-images-idx3-ubyte", pixels(0), "expected 0 labels|holds no image"),
        ):
            with self.subTest(pattern):
                self.good_data()
                self.put(name, data)
                self.refused(pattern)

    def test_a_test_set_without_images(self):
        self.good_data()
        self.put("t10k-images-idx3-ubyte", pixels(0))
        self.put("t10k-labels-idx1-ubyte", labels(0))
        self.refused("failed: .*data/t10k-images-idx3-ubyte holds no image")

    def test_what_is_no_file(self):
        for make in (os.mkdir, os.mkfifo, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink(p, p)):
            self.good_data()
            os.remove(self.path("data", "train-images-idx3-ubyte"))
            make(self.path("data", "train-images-idx3-ubyte"))
            self.refused("failed: .*train-images-idx3-ubyte: no such file")


def file_of_size_limit(n):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))


class Directories(Bad):
    def run_in(self, out, want, pattern, **more):
        self.write("tiny.lua", TINY)
        return self.ends(["tiny.lua", "-q", "--out", out], want, pattern, **more)

    def test_what_is_no_directory(self):
        self.write("file", "")
        for out in ("file", "file/below", "a/b/" + "c" * 300, "/proc/x", "/dev/null"):
            with self.subTest(out):
                self.run_in(out, 1, "cannot create the directory")
        self.assertEqual(self.read("file"), "")

    def test_things_in_the_way(self):
        for name, make, pattern in (("runs", lambda p: open(p, "w").close(), "a file of that name"), (".lock", os.mkdir, "cannot lock"),
                                    ("ledger.jsonl", os.mkdir, "it is a directory"), ("ledger.jsonl", os.mkfifo, "not a regular file")):
            with self.subTest(name):
                out = self.path("way" + str(len(os.listdir(self.dir))))
                os.mkdir(out)
                make(os.path.join(out, name))
                self.run_in(out, 1, pattern)

    def test_read_only(self):
        self.tiny()
        # root may write everywhere: then a file system that is read-only, where one can be mounted
        if os.geteuid() == 0:
            script = "mount --bind r r && mount -o remount,ro,bind r r || exit 77; %s"
            wrap = ["unshare", "-m", "sh", "-c"]
        else:
            script, wrap = "chmod 555 r; %s; code=$?; chmod 755 r; exit $code", ["sh", "-c"]
        for verb, want in (("tiny.lua -q --out r", 1), ("tiny.lua -n --out r", 0), ("status r", 0), ("verify r", 0), ("report r", 1)):
            done = subprocess.run([*wrap, script % f"'{PHRUN}' {verb}"], cwd=self.dir, capture_output=True, text=True)
            if done.returncode == 77 or "unshare" in done.stderr:
                self.skipTest("nothing can be mounted here")
            self.assertEqual(done.returncode, want, verb + done.stderr)
            if want:
                self.one_line(done.stderr, "cannot (lock|write|make)")

    def test_full_disk(self):
        """A limit of file sizes fails every write at its own place; afterwards the same command finishes the work."""
        self.write("tiny.lua", TINY)
        for n in (0, 100, 500, 1000, 3000, 10000, 20000):
            with self.subTest(n):
                out = f"full{n}"
                done = subprocess.run([PHRUN, "tiny.lua", "-q", "--out", out], cwd=self.dir, capture_output=True, text=True, preexec_fn=file_of_size_limit(n))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr.splitlines()[0], r"cannot (append|write): File too large")
                self.nothing_aside(out)
                self.phrun("tiny.lua", "-q", "--out", out)
                self.phrun("verify", out)
                self.assertEqual(len(self.records(out)), 2)

    def test_two_programs_at_once(self):
        self.write("long.lua", LONG)
        p = self.start("long.lua", "-q", "--out", "r")
        self.wait_for("r", "ledger.jsonl")
        time.sleep(0.2)
        self.ends(["long.lua", "-q", "--out", "r"], 1, rf"another phrun is writing here .*process {p.pid}")
        self.phrun("status", "r")
        self.phrun("long.lua", "-n", "--out", "r")
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 130)
        with open(self.path("r", ".lock")) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.ends(["long.lua", "-q", "--out", "r"], 1, "another phrun is writing here")

    def test_removed_while_running(self):
        self.write("long.lua", LONG.replace("epochs = 100000", "epochs = 3000"))
        p = self.start("long.lua", "-q", "--out", "r")
        self.wait_for("r", "ledger.jsonl")
        shutil.rmtree(self.path("r"))
        _, said = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"No such file or directory", said)

    def test_files_of_others_stay(self):
        self.tiny()
        others = ["notes.txt", "x.tmp-1234", "runs/data.h5", "checkpoints/more"]
        ours = ["ledger.jsonl.tmp-9", "runs/0123456789abcdef.h5.tmp-9"]
        for name in others + ours:
            self.write("r/" + name, "mine")
        self.tiny()
        for name in others:
            self.assertEqual(self.read("r", name), "mine", name)
        for name in ours:
            self.assertFalse(os.path.exists(self.path("r", name)), name)

    def test_odd_names_never_reach_a_shell(self):
        for out in ("q`touch pwned`", 'q"uo', "q'uo", "q$(touch pwned)", "é ✓ x", "a\nb", "-x", "%s\\n"):
            with self.subTest(out):
                self.tiny("./" + out)
                self.phrun("plot", "./" + out)
                if shutil.which("gnuplot"):
                    for picture in ("curves.png", "figures/cells.svg"):
                        self.assertTrue(os.path.getsize(self.path(out, picture)) > 1000, picture)
                self.phrun("verify", "./" + out)
        text = TINY.replace("seed = {", "mark = { '`touch pwned`', 'x' }, seed = {").replace("model = function(cell)", "model = function(cell) local _ = cell.mark")
        self.tiny("marks", text)
        self.phrun("plot", "marks")
        self.assertEqual(glob.glob(self.path("**", "pwned"), recursive=True), [])


class Damage(Bad):
    def test_ledger(self):
        self.tiny()
        with open(self.path("r", "ledger.jsonl"), "rb") as f:
            whole = f.read()
        lines = whole.splitlines(True)
        for name, text in (("random", os.urandom(3000).replace(b"\n", b"") + b"\n"), ("edited", whole.replace(b'"done"', b'"Done"')), ("removed", b"".join(lines[:1] + lines[2:])),
                           ("moved", b"".join(lines[:1] + lines[2:3] + lines[1:2] + lines[3:])), ("NULs", bytes(2000) + b"\n" + whole)):
            with self.subTest(name):
                with open(self.path("r", "ledger.jsonl"), "wb") as f:
                    f.write(text)
                self.ends(["tiny.lua", "-q", "--out", "r"], 3, r"r/ledger.jsonl: line \d")
                self.ends(["report", "r"], 3, r"r/ledger.jsonl: line \d")
                self.assertRegex(self.phrun("status", "r", want=3).stdout, r"BROKEN LEDGER.*line \d")
                self.phrun("verify", "r", want=3)
                with open(self.path("r", "ledger.jsonl"), "rb") as f:
                    self.assertEqual(f.read(), text)

    def test_torn_ledger_goes_on(self):
        self.tiny()
        with open(self.path("r", "ledger.jsonl"), "r+b") as f:
            f.truncate(os.path.getsize(self.path("r", "ledger.jsonl")) - 20)
        self.assertIn("cut short", self.phrun("status", "r").stdout)
        self.tiny()
        self.phrun("verify", "r")
        self.assertEqual(len(self.records("r")), 2)

    def test_run_file(self):
        for name, harm in (("cut", lambda p: os.truncate(p, 1000)), ("empty", lambda p: os.truncate(p, 0)), ("changed", lambda p: self.poke(p, 3000))):
            with self.subTest(name):
                shutil.rmtree(self.path("r"), ignore_errors=True)
                file = self.tiny()[0]
                harm(file)
                for words in (["inspect", file], ["check", file], ["plot", file], ["plot", "r"]):
                    self.ends(words, 3, "damaged|cut off|empty")
                self.phrun("verify", "r", want=3)
                self.tiny()  # an empty one is made again; what holds anything is not overwritten
                self.phrun("verify", "r", want=0 if name == "empty" else 3)

    def poke(self, path, at):
        with open(path, "r+b") as f:
            f.seek(at)
            old = f.read(1)
            f.seek(at)
            f.write(bytes([old[0] ^ 1]))

    def copy_with(self, source, target, change):
        """The same contents in a file of h5py, without the first line of ours, changed."""
        with h5py.File(source) as src, h5py.File(target, "w") as dst:
            for key in src:
                src.copy(key, dst)
            for key, value in src.attrs.items():
                dst.attrs[key] = value
            change(dst)

    def test_run_files_that_others_made(self):
        file = self.tiny()[0]
        with h5py.File(file) as f:
            keys = list(f)
        for key in [None, *keys]:
            with self.subTest(key):
                self.copy_with(file, self.path("x.h5"), lambda f: key and f.__delitem__(key))
                for verb in ("inspect", "check"):
                    self.ends([verb, "x.h5"], 3, "x.h5: not a run file of this version as it was written")
        with h5py.File(self.path("y.h5"), "w") as f:
            f.attrs["format"] = "phrun run"
        self.ends(["inspect", "y.h5"], 3, "y.h5: not a run file")
        self.ends(["plot", "y.h5"], 2, "no figures in it")

    def test_checkpoints(self):
        """A damaged checkpoint is reported and costs its run a fresh start, with the same bits at the end."""
        text = TINY.replace("epochs = 2", "epochs = 150").replace("seed = { 0, 1 }", "seed = 0")
        self.tiny("straight", text)
        p = self.start("tiny.lua", "-q", "--out", "stopped", "--checkpoint", "0")
        self.wait_for("stopped", "checkpoints", os.path.basename(glob.glob(self.path("straight", "runs", "*"))[0]))
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 130)
        kept = glob.glob(self.path("stopped", "checkpoints", "*.h5"))[0]
        shutil.copy(kept, self.path("whole.h5"))
        harms = {
            "cut": lambda p: os.truncate(p, 2000), "empty": lambda p: os.truncate(p, 0), "changed": lambda p: self.poke(p, 3000),
            "of others": lambda p: self.copy_with(self.path("whole.h5"), p, lambda f: f.__delitem__("state")),
            "a run file": lambda p: shutil.copy(glob.glob(self.path("straight", "runs", "*"))[0], p),
        }
        for name, harm in harms.items():
            with self.subTest(name):
                out = "damaged " + name
                shutil.copytree(self.path("stopped"), self.path(out))
                harm(self.path(out, "checkpoints", os.path.basename(kept)))
                self.ends(["tiny.lua", "-q", "--out", out], 0, "this run starts over$")
                self.same_bits("straight", out)


class Signals(Bad):
    def test_everything_is_saved(self):
        self.write("long.lua", LONG)
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            for jobs in ("1", "2"):
                with self.subTest(f"{name} -j {jobs}"):
                    out = f"{name}{jobs}"
                    p = self.start("long.lua", "--out", out, "-t", "1", "-j", jobs)
                    self.wait_for(out, "ledger.jsonl")
                    time.sleep(0.25)
                    p.send_signal(getattr(signal, name))
                    said = p.communicate(timeout=30)[1].decode()
                    self.assertEqual(p.returncode, 130, said)
                    self.assertIn("all is saved, resume with: phrun long.lua --out " + out, said)
                    self.assertEqual(len(os.listdir(self.path(out, "checkpoints"))), int(jobs))
                    self.nothing_aside(out)
                    self.phrun("verify", out)

    def test_at_the_very_start(self):
        self.write("long.lua", LONG)
        for delay in (0.02, 0.05, 0.1):
            p = self.start("long.lua", "-q", "--out", "r")
            time.sleep(delay)
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=30)
            self.assertIn(p.returncode, (130, -signal.SIGINT))
            self.nothing_aside()

    def test_nohup(self):
        self.write("long.lua", LONG)
        p = self.start("long.lua", "-q", "--out", "r", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for("r", "ledger.jsonl")
        p.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 130)


class Streams(Bad):
    def test_full_disk_behind_standard_output(self):
        self.tiny()
        for words in (["--help"], ["status", "r"], ["verify", "r"], ["check", "tiny.lua"], ["tiny.lua", "-q", "--out", "r2"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                done = subprocess.run([PHRUN, *words], cwd=self.dir, stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1)
                self.one_line(done.stderr, "^phrun: standard output: No space left")
        self.phrun("verify", "r2")

    def test_a_reader_that_leaves(self):
        self.tiny()
        for words in ("status r", "check tiny.lua", "tiny.lua -q --out r2"):
            done = subprocess.run(["bash", "-c", f"'{PHRUN}' {words} | true; exit ${{PIPESTATUS[0]}}"], cwd=self.dir, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_closed_streams_do_not_become_files(self):
        self.write("long.lua", LONG)
        self.write("tiny.lua", TINY)
        for closed in (">&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                shutil.rmtree(self.path("r"), ignore_errors=True)
                done = subprocess.run(["sh", "-c", f"'{PHRUN}' tiny.lua -j 2 --out r {closed}"], cwd=self.dir, timeout=60, stderr=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0)
                self.phrun("verify", "r")
        p = subprocess.Popen(["sh", "-c", f"exec '{PHRUN}' long.lua -q --out l >&-"], cwd=self.dir, stderr=subprocess.DEVNULL)
        self.wait_for("l", "ledger.jsonl")
        try:
            self.assertEqual(os.readlink(f"/proc/{p.pid}/fd/1"), "/dev/null")
        finally:
            p.terminate()
            p.wait(timeout=30)

    def test_odd_surroundings(self):
        self.write("tiny.lua", TINY)
        odd = [dict([word.split("=", 1)]) for word in (
            "LC_ALL=tr_TR.UTF-8", "OPENBLAS_NUM_THREADS=abc", "OPENBLAS_NUM_THREADS=1000000", "OPENBLAS_CORETYPE=nonsense", "OMP_NUM_THREADS=0", "COLUMNS=-3",
            "TMPDIR=/nonexistent", "PATH=/nonexistent", "HDF5_USE_FILE_LOCKING=x", "LUA_INIT=error")]
        self.phrun("tiny.lua", "-q", "--out", "r")
        for extra in [{"HOME": None}, {"TERM": None}, *odd]:
            with self.subTest(extra):
                shutil.rmtree(self.path("r2"), ignore_errors=True)
                done = self.phrun("tiny.lua", "-q", "--out", "r2", env=extra)
                self.assertEqual(done.stderr, "")
                self.same_bits("r", "r2")

    def test_too_little_address_space(self):
        if "asan" in PHRUN:
            self.skipTest("the sanitizer needs terabytes of it")
        told = 0
        for kib in range(100000, 450000, 25000):
            with self.subTest(kib):
                done = subprocess.run(["bash", "-c", f"ulimit -v {kib}; exec '{PHRUN}' --version"], capture_output=True, text=True, timeout=20)
                if done.returncode:
                    self.one_line(done.stderr, "out of memory|cannot allocate|failed to map")
                    told += 1
        self.assertTrue(0 < told < 14, told)


class Large(Bad):
    def test_ten_thousand_cells(self):
        self.write("grid.lua", model("local a = cell.a return { ph.affine(3) }", "{ depth = 3, a = %s, seed = %s }" % ((numbers(100),) * 2)))
        for words in (["check", "grid.lua"], ["grid.lua", "-n", "--out", "r"]):
            start = time.monotonic()
            self.phrun(*words)
            self.assertLess(time.monotonic() - start, 30, words)
        self.assertFalse(os.path.exists(self.path("r")))


SESSION = {
    "random": os.urandom(3000), "NUL": b"1\0+1\n", "binary": b"\x1bLua\n", "deep": b"(" * 100000 + b"\n", "long": b"1+" * 100000 + b"1\n",
    "errors": b"error {}\nerror()\nerror(42)\nerror(setmetatable({}, { __tostring = function() error 'x' end }))\nprint 'alive'\n",
    "values": b"setmetatable({}, { __tostring = function() return 3 end })\nsetmetatable({}, { __index = function() error() end })\nprint 'alive'\n",
    "unfinished": b"for i = 1, 2 do\n", "recursion": b"function f() return 1 + f() end f()\nprint 'alive'\n",
    "plot": b"plot()\nplot(1)\nplot {}\nplot 'x'\nload()\nload(3)\nprint 'alive'\n", "help": b"help(nil)\nhelp(1)\n?\n?foo\n??\n",
    "tensors": b"randn(1e6, 1e6)\nrandn(3):at(9)\nrandn(2, 2) * randn(3, 3)\nprint 'alive'\n", "files": b"load 'nowhere.lua'\nload 'nowhere.h5'\nprint 'alive'\n",
}


class Session(Bad):
    def test_garbage(self):
        for name, text in SESSION.items():
            with self.subTest(name):
                done = subprocess.run([PHRUN, "repl"], cwd=self.dir, input=text, capture_output=True, timeout=60)
                self.assertIn(done.returncode, (0, 1))
                self.assertNotRegex(done.stderr.decode(errors="replace"), r"traceback|lua/ph/|table: 0x")
                if text.endswith(b"print 'alive'\n"):
                    self.assertTrue(done.stdout.endswith(b"alive\n"), done.stdout[-200:])


class Logs(Bad):
    def test_recover(self):
        self.write("tiny.lua", TINY)
        log = self.phrun("tiny.lua", "-q", "--out", "r").stdout
        lines = [x for x in log.splitlines() if x.startswith("run-record ")]
        for name, text, want, left in (("whole", log, 0, 2), ("twice", log * 2, 0, 2), ("other line ends", log.replace("\n", "\r\n"), 0, 2), ("cut", lines[0] + "\n" + lines[1][:100], 1, 1),
                                       ("nothing", "x\n", 1, 0), ("no record", "run-record {}\n", 1, 0), ("no object", "run-record [1]\n", 1, 0)):
            with self.subTest(name):
                self.write("log", text)
                out = "rec " + name
                self.phrun("recover", "log", "--out", out, want=want)
                self.assertEqual(os.path.exists(self.path(out)), left > 0)
                if left:
                    self.assertEqual(len(self.records(out)), left)
                    self.assertTrue(re.search("recovered", self.phrun("status", out).stdout))
        self.write("log", log)
        self.ends(["recover", "log", "--out", "r"], 1, "already has a ledger")


if __name__ == "__main__":
    main()
