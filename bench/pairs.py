#!/usr/bin/env python3
"""Paired slices: programs that wait for "SECONDS" on a line and answer with milliseconds per step are asked turn about.

  bench/pairs.py --slices 30 --seconds 0.25 "build/bench_step A.ir 32 256 1" "other/bench_step A.ir 32 256 1"

Prints, for each program after the first, the median of the ratios of neighbouring slices (first / other) and their range
from the first to the third quartile. A ratio above 1 means that the other is faster.
"""
import argparse
import shlex
import statistics
import subprocess


def ask(program, seconds):
    program.stdin.write(f"{seconds}\n")
    program.stdin.flush()
    answer = program.stdout.readline()
    if not answer:
        raise SystemExit("pairs: a program ended early")
    return float(answer)


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    q = statistics.quantiles(values, n=4)
    return q[0], q[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("commands", nargs="+")
    args = parser.parse_args()
    programs = [subprocess.Popen(shlex.split(c), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for c in args.commands]
    for p in programs:
        ask(p, args.seconds)
    times = [[] for _ in programs]
    for k in range(args.slices):
        order = range(len(programs)) if k % 2 == 0 else reversed(range(len(programs)))
        for i in order:
            times[i].append(ask(programs[i], args.seconds))
    print(f"{statistics.median(times[0]):10.3f} ms  {args.commands[0]}")
    for i in range(1, len(programs)):
        ratios = [a / b for a, b in zip(times[0], times[i])]
        low, high = quartiles(ratios)
        print(f"{statistics.median(times[i]):10.3f} ms  ratio {statistics.median(ratios):.3f} [{low:.3f} {high:.3f}]  {args.commands[i]}")
    for p in programs:
        p.stdin.close()


if __name__ == "__main__":
    main()
