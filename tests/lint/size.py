#!/usr/bin/env python3
"""Files and functions are short enough to be read in one go: size.py [FILE...] (default: every tracked C and Lua file).

A function counts from the line of its name to the line that closes it; a function inside another one counts for both. The
limits say when it is time to split something, not how: that is done by idea.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# (beginning of the path, endings, most lines of a file, most lines of a function); the first that fits counts, None: no limit
LIMITS = [
    ("specs/", (".lua",), None, None),  # committed experiments stay as they are
    ("tests/lua/", (".lua",), None, None),  # `describe` is one function around all of its tests
    ("tests/", (".c", ".h"), None, 80),  # a test tells its story in one place
    ("bench/", (".c", ".h"), 400, 60),
    ("", (".lua",), 400, 30),
    ("", (".c", ".h"), 400, 40),
]

# what is not code: comments, strings, in C also directives with the lines that they go on in
SKIP_C = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""", re.S | re.M
)
SKIP_LUA = re.compile(r"""(?:--)?\[(=*)\[.*?\]\1\]|--[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)

WORD_LUA = re.compile(r"\b(?:function|if|do|repeat|end|until)\b")
NAME_LUA = re.compile(r"(?:([\w.:]+)\s*=\s*)?\bfunction\b\s*([\w.:]*)")
NAME_C = re.compile(r"(\w+)\s*(?:\([\w\s,]+\)\s*)?$")


def blanked(text, skip):
    """The text with blanks in place of what is not code: same length, same lines."""
    return skip.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def line_at(text, at):
    return text.count("\n", 0, at) + 1


def functions_lua(text):
    """(name, first line, last line) of every function: each word that opens something waits for the one that closes it."""
    text = blanked(text, SKIP_LUA)
    waiting = []
    for word in WORD_LUA.finditer(text):
        if word.group() not in ("end", "until"):
            waiting.append(word)
        elif waiting:
            opened = waiting.pop()
            if opened.group() == "function":
                yield name_lua(text, opened), line_at(text, opened.start()), line_at(text, word.start())


def name_lua(text, word):
    """The name of a function: behind the word, or before the equals sign; "function" when it has none."""
    for named in NAME_LUA.finditer(text, text.rfind("\n", 0, word.start()) + 1):
        if named.end() > word.start():
            return named.group(2) or named.group(1) or "function"
    return "function"


def functions_c(text):
    """(name, first line, last line) of every function: a brace outside of all others, right behind a parameter list."""
    text = blanked(text, SKIP_C)
    depth, start = 0, None
    for brace in re.finditer(r"[{}]", text):
        if brace.group() == "{":
            if depth == 0 and text[: brace.start()].rstrip().endswith(")"):
                start = opening(text, text.rindex(")", 0, brace.start()))
            depth += 1
            continue
        depth -= 1
        if depth == 0 and start is not None:
            name = NAME_C.search(text[max(0, start - 200) : start])
            yield name.group(1) if name else "a function", line_at(text, start), line_at(text, brace.start())
            start = None


def opening(text, close):
    """Where the parenthesis stands that the one at `close` closes."""
    depth = 0
    for at in range(close, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return 0


def limits_of(path):
    for start, endings, lines, longest in LIMITS:
        if path.startswith(start) and path.endswith(endings):
            return lines, longest
    return None, None


def complaints(path, text):
    lines, longest = limits_of(path)
    if lines and text.count("\n") > lines:
        yield f"{path}: {text.count(chr(10))} lines, the limit is {lines}"
    if longest:
        for name, first, last in (functions_lua if path.endswith(".lua") else functions_c)(text):
            if last - first + 1 > longest:
                yield f"{path}:{first}: {name} has {last - first + 1} lines, the limit is {longest}"


def main(paths):
    if not paths:
        listed = subprocess.run(
            ["git", "ls-files", "*.c", "*.h", "*.lua"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        paths = [ROOT / path for path in listed.stdout.split()]
    found = 0
    for path in map(Path, paths):
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        for line in complaints(name, path.read_text(encoding="utf-8")):
            print(line)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
