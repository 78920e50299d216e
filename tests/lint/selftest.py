#!/usr/bin/env python3
"""The lints themselves: each must refuse a planted fault, with the right line, and pass the same text without it."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def function_lua(lines):
    return "local function long()\n" + "  print()\n" * (lines - 2) + "end\n\nlong()\n"


def function_c(lines):
    return "void long_one(void) {\n" + "  f();\n" * (lines - 2) + "}\n"


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def plant(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def said(self, *command):
        done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def refused(self, command, name, text, message):
        code, out = self.said(*command, self.plant(name, text))
        self.assertNotEqual(code, 0, out)
        self.assertIn(message, out)

    def passed(self, command, name, text):
        code, out = self.said(*command, self.plant(name, text))
        self.assertEqual(code, 0, out)


class Size(Planted):
    lint = [HERE / "size.py"]

    def test_functions(self):
        self.passed(self.lint, "a.lua", function_lua(30))
        self.refused(self.lint, "a.lua", function_lua(31), "a.lua:1: long has 31 lines, the limit is 30")
        self.passed(self.lint, "a.c", function_c(40))
        self.refused(self.lint, "a.c", function_c(41), "a.c:1: long_one has 41 lines, the limit is 40")

    def test_files(self):
        for name, line in (("a.lua", "print()\n"), ("a.c", "int f(int);\n"), ("a.h", "int f(int);\n")):
            self.passed(self.lint, name, line * 400)
            self.refused(self.lint, name, line * 401, f"{name}: 401 lines, the limit is 400")

    def test_words_in_texts_and_comments_open_nothing(self):
        lua = "local function f()\n  -- if function\n  return \"end\", 'do', [[\nrepeat\n]]\nend\n" + "f()\n" * 40
        self.passed(self.lint, "a.lua", lua)
        c = "/* { */\nint f(void) {\n  return '{' + \"}\"[0];\n}\n#define A(x) \\\n  {\n" + "int a;\n" * 50
        self.passed(self.lint, "a.c", c)

    def test_functions_inside_and_names_by_macro(self):
        inside = "local t = {\n  run = function()\n" + "    print()\n" * 29 + "  end,\n}\nreturn t\n"
        self.refused(self.lint, "a.lua", inside, "a.lua:2: run has 31 lines")
        self.refused(self.lint, "a.c", function_c(41).replace("long_one(", "NAME(k_one)("), "NAME has 41 lines")


class Columns(Planted):
    lint = ["luacheck", "--quiet", "--no-color", "--config", ROOT / ".luacheckrc"]

    def test_lines_of_lua(self):
        text = "local a = " + "1" * 110 + "%s\nreturn a\n"
        self.passed(self.lint, "a.lua", text % "")
        self.refused(self.lint, "a.lua", text % "1", "a.lua:1:121: line is too long (121 > 120)")


class Dialect(Planted):
    lint = [HERE / "c_dialect.py"]

    def test_braces(self):
        body = "int f(int x) {\n  if (x)%s\n  return 0;\n}\n"
        self.passed(self.lint, "a.c", body % " {\n    return 1;\n  }")
        self.refused(self.lint, "a.c", body % "\n    return 1;", "must have braces")

    def test_one_declaration_and_one_statement_a_line(self):
        self.passed(self.lint, "a.c", "int f(int x) {\n  int a = 1;\n  int b = x;\n  return a + b;\n}\n")
        self.refused(self.lint, "a.c", "int f(int x) {\n  int a = 1, b = x;\n  return a + b;\n}\n", "a comma joins two")
        self.refused(self.lint, "a.c", "int f(int x) {\n  x++, g(x);\n  return x;\n}\n", "a comma joins two")


class Tracked(Planted):
    """Lints that look at every tracked file: they run as copies in a repository of their own."""

    def setUp(self):
        super().setUp()
        shutil.copytree(HERE, self.folder / "tests/lint")
        shutil.copy(ROOT / ".clang-format", self.folder)
        subprocess.run(["git", "init", "-q", self.folder], check=True)

    def lint(self, name):
        subprocess.run(["git", "add", "planted.*"], cwd=self.folder, check=True)
        return self.said(self.folder / "tests/lint" / name)

    def test_words(self):
        for right, wrong, message in (
            ("It cannot be.", "It can%snot be." % " ", 'write "cannot"'),
            ("It is not a file.", "It is%sno file." % " ", 'write "is not a"'),
            ("kept permanently", "kept for%sever" % " ", 'write "permanently"'),
            ("a path", "/%s/a" % "home", "a path of one machine"),
            ("done", "TOD%s" % "O", "unfinished work"),
        ):
            self.plant("planted.md", right + "\n")
            self.assertEqual(self.lint("words.sh"), (0, ""))
            self.plant("planted.md", wrong + "\n")
            code, out = self.lint("words.sh")
            self.assertEqual(code, 1, wrong)
            self.assertIn("planted.md:1:" + wrong, out)
            self.assertIn(message, out)

    def test_layout_of_c(self):
        text = "int f(int " + "a" * 100 + ", int b%s);\n"
        self.plant("planted.c", text % "")
        self.assertEqual(self.lint("format.sh")[0], 0)
        self.plant("planted.c", text % "bbbb")
        code, out = self.lint("format.sh")
        self.assertNotEqual(code, 0)
        self.assertIn("planted.c:1:", out)


class Words(Planted):
    def complaint(self, name, text):
        """What words.sh says in a tree that holds itself and one file."""
        self.plant("tests/lint/words.sh", (HERE / "words.sh").read_text(encoding="utf-8")).chmod(0o755)
        self.plant(name, text)
        subprocess.run("git init -q . && git add -A", shell=True, cwd=self.folder, check=True)
        return self.said(self.folder / "tests/lint/words.sh")

    def test_phrases_that_are_not_english(self):
        for name, text, message in (
            ("a.lua", "-- it can" + " not be read\n", 'write "cannot"'),
            ("a.md", "Marked for" + " ever.\n", 'write "permanently" or "forever"'),
            ("a.c", "/* %s is" + " no number */\n", 'write "is not a"'),
            ("a.lua", "-- the fault is" + " told\n", "a program reports"),
            ("a.lua", 'error("a matrix is' + ' needed")\n', "must be WHAT, got VALUE"),
            ("a.c", "int a; /* cut off," + " */\n", "end the sentence"),
        ):
            code, out = self.complaint(name, text)
            self.assertEqual(code, 1, text + out)
            self.assertIn(message, out)

    def test_good_sentences(self):
        text = "-- There is no row, it is no longer here, they are told apart; no lock is needed.\n"
        self.assertEqual(self.complaint("a.lua", text), (0, ""))


class Layers(Planted):
    lint = [HERE / "layers.py"]

    def complaints(self):
        return self.said(*self.lint, self.folder)[1]

    def test_no_module_outside_of_a_room(self):
        self.plant("lua/ph/init.lua", "return {}\n")
        self.assertNotIn("init.lua", self.complaints())
        self.plant("lua/ph/loose.lua", "return {}\n")
        self.assertIn("lua/ph/loose.lua: belongs into a room", self.complaints())

    def test_no_room_without_a_line_that_says_what_may_enter(self):
        self.assertIn("lua/ph/util: has no README.md", self.complaints())
        self.plant("lua/ph/util/README.md", "Texts.\n")
        self.assertNotIn("lua/ph/util: has no README.md", self.complaints())
        self.plant("lua/ph/attic/old.lua", "return {}\n")
        self.assertIn("lua/ph/attic/old.lua: the room attic has no place", self.complaints())

    def test_no_room_requires_a_later_one(self):
        self.plant("lua/ph/verb/run.lua", 'return require "ph.util.json"\n')
        self.assertNotIn("verb/run.lua", self.complaints())
        self.plant("lua/ph/util/json.lua", '-- require "ph.spec"\nreturn require "ph.verb.run"\n')
        self.assertIn("lua/ph/util/json.lua: util must not require ph.verb.run", self.complaints())
        self.assertNotIn("ph.spec", self.complaints())

    def test_ph_itself_stands_above_the_rooms_it_is_made_of(self):
        self.plant("lua/ph/init.lua", 'return require "ph.laws"\n')
        self.plant("lua/ph/repl/names.lua", 'return require "ph"\n')
        self.assertNotIn("names.lua", self.complaints())
        self.plant("lua/ph/laws/init.lua", 'return require "ph"\n')
        self.assertIn("lua/ph/laws/init.lua: laws must not require ph\n", self.complaints())

    def test_no_layer_includes_a_higher_one(self):
        self.plant("core/ir/ir.h", "int ir;\n")
        self.plant("core/engine/run/plan.h", '#include "ir/ir.h"\n')
        self.assertNotIn("plan.h", self.complaints())
        self.plant("core/base/mem.c", '#include "ir/ir.h"\n')
        self.assertIn('core/base/mem.c: "ir/ir.h": core/base must not include core/ir', self.complaints())
        self.plant("core/kernels/kern.c", "#include <hdf5.h>\n")
        self.assertIn("core/kernels/kern.c: <hdf5.h> belongs to core/store alone", self.complaints())

    def test_headers_stand_alone(self):
        self.plant("core/base/mem.h", "size_t n;\n")
        self.assertIn("core/base/mem.h: does not compile alone", self.complaints())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
