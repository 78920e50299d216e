#!/usr/bin/env python3
"""One dialect of C: every body has braces, a statement declares one name, and no comma joins two statements.

It reads the text, so it also sees what the compiler of one machine skips: kernels of other instruction sets and the bodies
of macros. The head of a loop that is a macro may have one statement on its own line. `c_dialect.py [FILE...]`; without names it reads every tracked C file.
"""

import re
import subprocess
import sys
from pathlib import Path

TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|\\\n|[ \t\r\f]+)|(?P<line>\n)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[A-Za-z_]\w*(?:##\w+)*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<mark>.)""",
    re.S,
)
HEADS = {"if", "for", "while", "switch"}


def tokens(text):
    """(line, token) without comments; a string is one token. A directive ends in a token of its own, "#end"."""
    line, directive = 1, False
    for m in TOKEN.finditer(text):
        if m.lastgroup == "line" and directive:
            directive = False
            yield line, "#end"
        elif m.lastgroup not in ("skip", "line"):
            if m.group() == "#" and not directive:
                directive = True
            yield line, m.group()
        line += m.group().count("\n")


def split(text):
    """The code and, one by one, the bodies of its macros, as lists of (line, token)."""
    code, macros, directive = [], [], None
    for line, token in tokens(text):
        if token == "#end":
            macros.append(directive)
            directive = None
        elif directive is not None:
            directive.append((line, token))
        elif token == "#":
            directive = []
        else:
            code.append((line, token))
    bodies = [m[body_of(m):] for m in macros if m and m[0][1] == "define"]
    return [code] + [b for b in bodies if any(t == ";" or t in HEADS for _, t in b)]


def body_of(macro):
    """Index at which the body of `define NAME(...) body` starts."""
    if len(macro) > 2 and macro[2][1] == "(":
        return closing(macro, 2) + 1
    return 2


def closing(part, at):
    """Index of the bracket that closes the one at `at`, or the end."""
    depth = 0
    for i in range(at, len(part)):
        depth += part[i][1] in "([{" if len(part[i][1]) == 1 else 0
        depth -= part[i][1] in ")]}" if len(part[i][1]) == 1 else 0
        if depth == 0:
            return i
    return len(part)


def bodies(part, loops):
    """Control statements without braces."""
    for i, (line, token) in enumerate(part):
        if token in HEADS or token in loops:
            if i + 1 < len(part) and part[i + 1][1] == "(":
                end = closing(part, i + 1) + 1
                one_line = token in loops and end < len(part) and part[end][0] == line
                if end < len(part) and part[end][1] != "{" and not one_line and not ends_do(part, i, end):
                    yield line, f"the body of '{token}' must have braces"
        elif token in ("else", "do") and i + 1 < len(part) and part[i + 1][1] not in ("{", "if"):
            yield line, f"the body of '{token}' must have braces"


def ends_do(part, at, end):
    """Whether `while (...)` at `at` closes a `do { ... }`."""
    return part[at][1] == "while" and at > 0 and part[at - 1][1] == "}" and part[end][1] == ";"


def outside(part, start, end):
    """The tokens from `start` to `end` that are in no brackets; a pair of brackets counts as its closing one."""
    found, i = [], start
    while i < end:
        i = closing(part, i) if part[i][1] in ("(", "[") else i
        if i < end:
            found.append(part[i][1])
        i += 1
    return found


def brace(part, start, at):
    """What the brace at `at` of the statement begun at `start` opens: "code", "fields", or None for a list of values."""
    before = outside(part, start, at)
    if "=" in before or "return" in before or "enum" in before:
        return None
    last = before[-1] if before else ""
    return "fields" if before and last != ")" and ("struct" in before or "union" in before) else "code"


def functions(part, start):
    """Whether the statement at `start` declares functions by the name of their type: `ph_op_fn ph_op_add, ph_op_mul;`."""
    if start + 1 < len(part) and part[start + 1][1] == "(":  # a macro that needs no semicolon stands before it
        start = closing(part, start + 1) + 1
    words = [t for _, t in part[start:start + 3]]
    return len(words) == 3 and words[0] not in ("static", "extern") and re.match(r"\w", words[1]) and words[2] == ","


def commas(part):
    """Commas outside all brackets: of a second declarator, or of a second statement. Fields may share a type."""
    start, i, within = 0, 0, ["code"]
    while i < len(part):
        line, token = part[i]
        opens = brace(part, start, i) if token == "{" else None
        if opens or token in (";", "}"):
            within += [opens] if opens else []
            within = within[:-1] if token == "}" and len(within) > 1 else within
            start = i + 1
        elif token in ("(", "[", "{"):
            i = closing(part, i)
        elif token == ":" and part[start][1] in ("case", "default"):
            start = i + 1
        elif token == "," and within[-1] == "code" and not (len(within) == 1 and functions(part, start)):
            yield line, "a comma joins two declarations or two statements: write two"
        i += 1


def faults(text, loops):
    for part in split(text):
        yield from bodies(part, loops)
        if any(t == ";" for _, t in part):
            yield from commas(part)


def loop_macros(texts):
    """Names of macros whose body is the head of a loop."""
    return {name for text in texts for name in re.findall(r"#define (\w+)\([^)]*\) (?:PH_UNROLL )?for \(", text)}


def main(names):
    names = names or subprocess.run(
        ["git", "ls-files", "*.c", "*.h"], capture_output=True, text=True, check=True).stdout.split()
    texts = {name: Path(name).read_text(encoding="utf-8") for name in names}
    loops = loop_macros(texts.values())
    bad = [f"{n}:{line}: {why}" for n, text in texts.items() for line, why in sorted(faults(text, loops))]
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
