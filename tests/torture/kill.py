#!/usr/bin/python3
"""kill.py [--kills N] [--jobs N] [--seed N] - a grid of 20 tiny runs, killed (-9, the whole process group) at N random moments.

After each kill the same command is started again, with nothing else done. At the end the directory must be what an
undisturbed one is: each run once, the same bits, every file readable. Exit 1 and a line for what is not so."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import PHRUN, spec_text  # noqa: E402

GRID = '{ family = { "ph", "resnet" }, depth = 4, seed = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 } }'


def start(where, out, jobs):
    command = [PHRUN, "grid.lua", "--out", out, "--checkpoint", "0.02", "-j", str(jobs)]
    return subprocess.Popen(command, cwd=where, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def records(path):
    """Closing records by run, and how many closing events each run has."""
    found, times = {}, {}
    with open(os.path.join(path, "ledger.jsonl")) as f:
        for line in f:
            e = json.loads(line)
            if "record" in e:
                r = dict(e["record"])
                r.pop("seconds")
                found[r["run"]] = r
                times[r["run"]] = times.get(r["run"], 0) + 1
    return found, times


def disturb(where, jobs, kills, chance, span):
    """Kills until `kills` of them hit a running program. Returns the number of starts."""
    hits = starts = 0
    while hits < kills:
        p = start(where, "killed", jobs)
        starts += 1
        time.sleep(chance.uniform(0.0, span))
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            hits += 1
        _, err = p.communicate()
        if p.returncode not in (0, -signal.SIGKILL):
            sys.exit("start %d ended with %s: %s" % (starts, p.returncode, err))
        if p.returncode == 0:  # finished before the blow: begin a new directory, the kills go on
            check(where)
            shutil.rmtree(os.path.join(where, "killed"))
    p = start(where, "killed", jobs)
    _, err = p.communicate(timeout=300)
    if p.returncode:
        sys.exit("the last start ended with %d: %s" % (p.returncode, err))
    return starts


def check(where):
    straight, _ = records(os.path.join(where, "straight"))
    killed, times = records(os.path.join(where, "killed"))
    if len(killed) != 20 or set(times.values()) != {1}:
        sys.exit("the ledger has %d runs, closed %s times" % (len(killed), sorted(times.values())))
    if straight != killed:
        sys.exit("records differ from those of an undisturbed grid")
    for folder in ("runs", "checkpoints"):
        for name in os.listdir(os.path.join(where, "killed", folder)):
            if subprocess.run(["h5dump", os.path.join(where, "killed", folder, name)], stdout=subprocess.DEVNULL).returncode:
                sys.exit(folder + "/" + name + " cannot be read")
    left = [n for f in ("", "runs", "checkpoints") for n in os.listdir(os.path.join(where, "killed", f)) if ".tmp-" in n]
    if left:
        sys.exit("left behind: %s" % left)
    done = subprocess.run([PHRUN, "verify", "killed", "--against", "straight"], cwd=where, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    where = tempfile.mkdtemp(prefix="phrun-kill-")
    with open(os.path.join(where, "grid.lua"), "w") as f:
        f.write(spec_text(grid=GRID, epochs=6))
    began = time.time()
    p = start(where, "straight", args.jobs)
    _, err = p.communicate(timeout=300)
    if p.returncode:
        sys.exit("the undisturbed grid ended with %d: %s" % (p.returncode, err))
    span = time.time() - began
    starts = disturb(where, args.jobs, args.kills, random.Random(args.seed), span)
    check(where)
    shutil.rmtree(where)
    print("1..1\nok 1 - P8: %d kills -9 (seed %d, %d starts): 20 runs, each once, same bits, all files sound" % (args.kills, args.seed, starts))


if __name__ == "__main__":
    main()
