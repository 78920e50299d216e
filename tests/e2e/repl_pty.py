#!/usr/bin/env python3
"""The interactive session from outside: on a terminal (a pty) and piped."""
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import fcntl
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import PHRUN, Case  # noqa: E402

ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07")


class Terminal:
    """phrun on a pty of 80 x 24; everything that was shown so far is in self.seen."""

    def __init__(self, home, *words, term="xterm"):
        env = dict(os.environ, HOME=home, TERM=term, LC_ALL="C.UTF-8")
        for name in ("XDG_STATE_HOME", "COLUMNS", "LINES"):
            env.pop(name, None)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execve(PHRUN, [PHRUN, *words], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.raw, self.mark = b"", 0

    def text(self):
        return ESCAPE.sub(b"", self.raw).decode(errors="replace").replace("\r", "")

    def pump(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            self.raw += data
            return bool(data)
        return True

    def expect(self, pattern, seconds=10):
        """Waits until the pattern is shown after what was expected before; returns the match."""
        end = time.monotonic() + seconds
        while True:
            found = re.compile(pattern, re.S).search(self.text(), self.mark)
            if found:
                self.mark = found.end()
                return found
            if time.monotonic() > end or not self.pump(0.1):
                raise AssertionError(f"no {pattern!r} in {self.text()[self.mark:]!r}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        self.send(text + "\r")

    def close(self):
        """Exit code after the end of the program."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"does not end: {self.text()[-300:]!r}")


class OnTerminal(Case):
    def setUp(self):
        super().setUp()
        self.t = Terminal(self.dir)
        self.t.expect("phrun 0.*help\\(\\).*> ")

    def end(self):
        self.t.send("\x04")
        self.assertEqual(self.t.close(), 0)

    def test_values_and_tensors(self):
        t = self.t
        t.line("1 + 1")
        t.expect(r"\n2\n")
        t.line("_ * 21")
        t.expect(r"\n42\n")
        t.line("cayley(skew(3))")
        t.expect(r"f64 \(3, 3\)  range \[.*\n  .*\n  .*\n  .*\n> ")
        self.end()

    def test_several_lines(self):
        t = self.t
        t.line("for i = 1, 2 do")
        t.expect(">> ")
        t.line("print(i * 100) end")
        t.expect("\n100\n200\n> ")
        self.end()

    def test_errors_are_one_line(self):
        t = self.t
        t.line("nothing + 1")
        t.expect(r"\nundefined name 'nothing'  in 'nothing \+ 1'\n> ")
        self.end()

    def test_completion(self):
        t = self.t
        t.send("type(ph.cayl\t")
        t.expect(r"ph\.cayley")
        t.line(")")
        t.expect("\n(function|table)\n")
        t.line("alpha_one, alpha_two = 1, 2")
        t.expect("> ")
        t.send("alp\t\t")
        t.expect(r"\nalpha_one +alpha_two\n")
        t.line("one")
        t.expect("\n1\n")
        self.end()

    def test_editing(self):
        t = self.t
        t.send("41 + 1x\x7f\x01\x05\r")  # backspace, begin, end of the line
        t.expect("\n42\n")
        t.send("'\u00e9\u00e8'\r")
        t.expect("\n\u00e9\u00e8\n")
        self.end()

    def test_history_is_kept(self):
        t = self.t
        t.line("1000 + 234")
        t.expect("\n1234\n")
        self.end()
        with open(os.path.join(self.dir, ".local/state/phrun/history")) as f:
            self.assertEqual(f.read(), "1000 + 234\n")
        self.t = t = Terminal(self.dir)
        t.expect("> ")
        t.send("\x1b[A")
        t.expect(r"1000 \+ 234")
        t.send("\r")
        t.expect("\n1234\n")
        self.end()

    def test_interrupt_in_lua(self):
        t = self.t
        t.line("x = 5 while true do end")
        time.sleep(0.3)
        t.send("\x03")
        t.expect("interrupted\n> ")
        t.line("x")
        t.expect("\n5\n")
        self.end()

    def test_interrupt_in_native_work(self):
        t = self.t
        t.line("a = zeros(1000, 1000) x = 7")
        t.expect("> ")
        t.line("while true do b = a * a end")
        time.sleep(0.5)
        t.send("\x03")
        t.expect("interrupted\n> ")
        t.line("x")
        t.expect("\n7\n")
        self.end()

    def test_interrupt_at_the_prompt(self):
        t = self.t
        t.send("half a line")
        t.expect("half a line")
        t.send("\x03")
        t.expect("> ")
        t.line("f(")
        t.expect(">> ")
        t.send("\x03")
        t.expect("\n> ")
        t.line("2 + 3")
        t.expect("\n5\n")
        self.end()

    def test_second_interrupt_ends_what_cannot_stop(self):
        t = self.t
        t.line("s = ('a'):rep(3000) s:find(('a-'):rep(100) .. 'b')")
        time.sleep(0.5)
        t.send("\x03")
        time.sleep(0.4)
        t.send("\x03")
        self.assertEqual(t.close(), 130)

    def test_end_of_input_inside_something_longer(self):
        t = self.t
        t.line("f(")
        t.expect(">> ")
        t.send("\x04")
        t.expect("\n> ")
        t.line("2 + 3")
        t.expect("\n5\n")
        self.end()

    def test_stop_and_go_on(self):
        t = self.t
        os.kill(t.pid, signal.SIGSTOP)
        os.kill(t.pid, signal.SIGCONT)
        t.line("2 + 3")
        t.expect("\n5\n")
        self.end()

    def test_history_that_cannot_be_written(self):
        self.end()
        os.makedirs(os.path.join(self.dir, "home/.local"))
        with open(os.path.join(self.dir, "home/.local/state"), "w") as f:
            f.write("in the way\n")
        self.t = t = Terminal(os.path.join(self.dir, "home"))
        t.expect("> ")
        t.line("2 + 3")
        t.expect("history is not kept: .*\n5\n")
        t.line("2 + 4")
        t.expect("\n6\n")
        self.assertEqual(t.text().count("history is not kept"), 1)
        self.end()

    def test_dumb_terminal(self):
        self.end()
        self.t = t = Terminal(self.dir, "repl", term="dumb")
        t.expect("> ")
        t.line("2 + 3")
        t.expect("\n5\n")
        self.end()
        self.assertNotIn(b"\x1b", t.raw)


class Piped(Case):
    def repl(self, text, *words):
        return subprocess.run([PHRUN, *words], input=text, capture_output=True, text=True, timeout=60, cwd=self.dir)

    def test_field_case(self):
        r = self.repl("cayley(skew(3))\nx=randn(1000,1000)\nx\nfor i=1,2 do\nprint(i)\nend\nfoo(\nhelp(cayly)\n", "repl")
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stdout, r"\Af64 \(3, 3\)  range \[[^\n]*\](\n +-?[\d.]+){1}")
        self.assertIn("\nf64 (1000, 1000)  range [", r.stdout)
        self.assertIn("...", r.stdout)
        self.assertIn("\n1\n2\n", r.stdout)
        self.assertIn("did you mean 'cayley'?", r.stdout)
        self.assertEqual(r.stderr, "unfinished input at the end, begun at line 7: 'foo('\n")
        self.assertNotIn("> ", r.stdout)
        self.assertLess(len(r.stdout.splitlines()), 20)

    def test_no_arguments_is_the_session(self):
        r = self.repl("1+1\n")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "2\n", ""))

    def test_nothing_in_nothing_out(self):
        r = self.repl("", "repl")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    def test_order_of_print_and_values(self):
        r = self.repl("local _ = io.write('a\\n')\nprint 'b'\n'c'\nlocal _ = io.write('d\\n')\n'e'", "repl")
        self.assertEqual(r.stdout, "a\nb\nc\nd\ne\n")

    def test_carriage_returns_and_last_line_without_newline(self):
        r = self.repl("1\r\n2", "repl")
        self.assertEqual((r.returncode, r.stdout), (0, "1\n2\n"))

    def test_bytes_that_are_no_text(self):
        r = subprocess.run([PHRUN, "repl"], input=b"\x00\xff\x1bLua\n1\n", capture_output=True, timeout=60)
        self.assertEqual(r.returncode, 1)
        self.assertTrue(r.stdout.endswith(b"1\n"))
        self.assertEqual(r.stderr.count(b"\n"), 1)

    def test_errors_set_the_exit_code(self):
        r = self.repl("error 'x'\n1\n", "repl")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (1, "1\n", "x  in 'error 'x''\n"))

    def test_interrupt_while_waiting(self):
        p = subprocess.Popen([PHRUN, "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(b"1+1\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b"2\n")
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=10)
        self.assertEqual(p.returncode, 130)


if __name__ == "__main__":
    unittest.main()
