#!/usr/bin/env python3
"""The host program from outside: BLAS made to fit the CPU, where modules come from, limits that end a spec, signals."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import PHRUN, ROOT, Case  # noqa: E402

class Blas(Case):
    def version(self, **env):
        return self.phrun("--version", "-v", env={"OPENBLAS_CORETYPE": None, **env}).stdout

    def field(self, text, name):
        return re.search(rf"openblas +{name}: (.*)", text).group(1)

    def test_core_fits_or_is_the_users(self):
        text = self.version()
        self.assertEqual(self.field(text, "wanted"), "")
        self.assertEqual(self.field(text, "ok"), "true")
        self.assertEqual(self.field(text, "threads"), "1")
        text = self.version(OPENBLAS_CORETYPE="Prescott", OPENBLAS_NUM_THREADS="2")
        self.assertEqual((self.field(text, "origin"), self.field(text, "threads")), ("user", "1"))

    def test_version_names_what_computes(self):
        text = self.version()
        self.assertRegex(text, r"\Aphrun \d+\.\d+\.\d+")
        for name in ("cpu", "features", "kernels", "OpenBLAS", "core:", "hdf5", "compiler", "system"):
            self.assertIn(name, text)

    def test_the_host_chooses_for_a_user_who_has_not(self):
        with open("/proc/cpuinfo") as f:
            flags = f.read()
        text = self.version()
        if "avx2" not in flags:
            self.skipTest("this CPU runs what OpenBLAS chooses")
        self.assertEqual(self.field(text, "origin"), "host")
        self.assertIn(self.field(text, "core"), ("Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"))

    def test_starts_no_threads_and_leaves_the_environment(self):
        env = dict(os.environ, OPENBLAS_NUM_THREADS="8")
        p = subprocess.Popen([PHRUN, "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        p.stdin.write(b"(require 'ph.native').getenv 'OPENBLAS_NUM_THREADS'\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b'8\n')
        self.assertEqual(len(os.listdir(f"/proc/{p.pid}/task")), 1)
        p.communicate(timeout=20)

    def test_with_one_process_allowed(self):
        """OpenBLAS sends itself SIGINT when it cannot start its threads."""
        if os.getuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root: a limit of processes holds for other users")
        done = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "prlimit", "--nproc=1", PHRUN, "--version"],
                              capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Modules(Case):
    def test_installed_tree_is_found_beside_the_program(self):
        os.makedirs(self.path("usr/bin"))
        shutil.copy2(PHRUN, self.path("usr/bin/phrun"))
        shutil.copytree(os.path.join(ROOT, "lua"), self.path("usr/share/phrun/lua"))
        done = subprocess.run([self.path("usr/bin/phrun"), "repl"], input="(require 'ph.native').lua_dir\n", capture_output=True, text=True,
                              cwd="/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.path.realpath(done.stdout.strip()), os.path.realpath(self.path("usr/share/phrun/lua")))

    def test_nothing_comes_from_the_current_folder(self):
        os.makedirs(self.path("ph"))
        self.write("ph/cli.lua", "error 'wrong module'\n")
        self.write("argparse.lua", "error 'wrong module'\n")
        self.phrun("--version", env={"LUA_PATH": "./?.lua", "LUA_PATH_5_4": "./?.lua", "LUA_INIT": "error 'wrong start'"})

    def test_a_missing_tree_is_one_line(self):
        os.makedirs(self.path("bin"))
        shutil.copy2(PHRUN, self.path("bin/phrun"))
        os.makedirs(self.path("share/phrun/lua/ph/verb"))
        self.write("share/phrun/lua/ph/verb/cli.lua", "return { main = function() error 'broken' end }\n")
        done = subprocess.run([self.path("bin/phrun")], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1)
        self.one_line(done.stderr, "^phrun: .*broken$")
        done = subprocess.run([self.path("bin/phrun")], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=dict(os.environ, PHRUN_DEBUG="1"))
        self.assertIn("stack traceback", done.stderr)


class Limits(Case):
    def refused(self, text, pattern, seconds=60):
        start = time.monotonic()
        done = self.phrun("check", self.write("spec.lua", text), want=2)
        self.assertLess(time.monotonic() - start, seconds)
        self.one_line(done.stderr, pattern)

    def test_endless_spec(self):
        self.refused("while true do end\n", "spec.lua:1: more than .* instructions")

    def test_hungry_spec(self):
        self.refused("local t = {}\nfor i = 1, 1e9 do t[i] = { i } end\n", "spec.lua:.* of memory")
        self.refused("return ('x'):rep(1e12)\n", "spec.lua.*(memory|too large)")

    def test_endless_pattern(self):
        self.refused("local s = ('a'):rep(3000)\nreturn s:find(('a-'):rep(100) .. 'b')\n", "spec.lua.*stuck in one library call")

    def test_compiled_spec(self):
        path = self.path("spec.lua")
        with open(path, "wb") as f:
            f.write(b"\x1bLua\x54\x00\x19\x93")
        self.one_line(self.phrun("check", path, want=2).stderr, "spec.lua")


class Output(Case):
    def test_full_disk_behind_standard_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([PHRUN, "repl"], input="io.write('x')\n", stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)

    def test_reader_that_leaves(self):
        done = subprocess.run(["sh", "-c", f"yes 1+1 | '{PHRUN}' repl | head -1"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "2\n", ""))


class Signals(Case):
    def test_native_work_that_cannot_stop_ends_at_the_second(self):
        p = subprocess.Popen([PHRUN, "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(b"1\ns = ('a'):rep(3000) s:find(('a-'):rep(100) .. 'b')\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b"1\n")
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        time.sleep(0.4)
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=10)
        self.assertEqual(p.returncode, 130)


if __name__ == "__main__":
    unittest.main()
