#!/usr/bin/env python3
"""Whole runs of `phrun run` beside PyTorch in float64, from the same start, data and orders: weights, history, and the measures on
the best weights. phrun trains in float32, so differences are its rounding."""
import glob
import json
import os
import subprocess
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from common import PHRUN, Session, cayley, damping, read
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

TRAIN, BATCH, EPOCHS, DEPTH, SEED = 300, 32, 10, 4, 5
STEPS = EPOCHS * -(-TRAIN // BATCH)
SPEC = """local ph = require "ph"
local d <const>, h <const> = 8, 0.6
local function block(z)
  return ph.damping { d, step = h } * (ph.cayley { d } * z) + h * ph.linear(d)(ph.tanh(ph.affine(d)(z)))
end
return ph.experiment {
  name = "parity", grid = { seed = %d },
  task = ph.task.circles { classes = 4, width = d, spread = 0.4, noise = 0.3, split = { train = 300, val = 40, test = 100 } },
  model = function() return { ph.stream { depth = %d, block = block }, ph.affine(4) } end,
  train = %s,
  measure = { ph.growth(), ph.gradient_envelope(), ph.port_budget() },
}
"""
START = """do
local one = load("s.lua")
local plan = assert(native.plan(one:ir(1), {{ batch = 32 }}))
plan:init({seed})
for _, p in ipairs((plan:params())) do add("/start/" .. p.name, plan:get(p.name, "value")) end
for epoch = 1, {epochs} do add("/order/" .. epoch, native.permutation({seed}, "order/" .. epoch, 0, {train})) end
local data = one.experiment:task_of(one.experiment:cells()[1]):load({seed})
for _, split in ipairs {{ "train", "val", "test" }} do
  add("/x/" .. split, data[split].x)
  add("/y/" .. split, data[split].y)
end
end"""


def ramped(opt, steps, floor):
    parts = [LinearLR(opt, start_factor=1 / steps, total_iters=steps - 1), CosineAnnealingLR(opt, T_max=STEPS - steps, eta_min=floor)]
    return SequentialLR(opt, parts, [steps])


# name -> protocol in the spec; the same in PyTorch: optimizer, schedule, clip
CASES = {
    "adam, everything": (
        "ph.adam { lr = 5e-3, batch = 32, epochs = 10, weight_decay = 0.3, beta1 = 0.8, beta2 = 0.95, eps = 1e-6, clip = 0.5, "
        'schedule = "warmup_cosine", warmup = 1.5, lr_min = 1e-4 }',
        lambda p: torch.optim.AdamW(p, lr=5e-3, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.3),
        lambda opt: ramped(opt, 15, 1e-4), 0.5),
    "sgd, momentum, decay, cosine": (
        'ph.sgd { lr = 5e-2, batch = 32, epochs = 10, weight_decay = 0.01, momentum = 0.9, schedule = "cosine", lr_min = 1e-3 }',
        lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9, weight_decay=0.01),
        lambda opt: CosineAnnealingLR(opt, T_max=STEPS, eta_min=1e-3), 0),
    "sgd, momentum, warm-up, clip": (
        'ph.sgd { lr = 5e-2, batch = 32, epochs = 10, momentum = 0.9, schedule = "warmup", warmup = 2, clip = 1 }',
        lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9),
        lambda opt: LinearLR(opt, start_factor=1 / 20, total_iters=19), 1),
}


def forward(W, z, states=None):
    for t in range(DEPTH):
        if states is not None:
            states.append(z)
        port = torch.tanh(z @ W["s1.W"][t].T + W["s1.b"][t]) @ W["s1.B"][t].T
        z = z @ (damping(W["s1.L"][t], 0.6) @ cayley(W["s1.A"][t])).T + 0.6 * port
    if states is not None:
        states.append(z)
    return z @ W["s2.W"][0].T + W["s2.b"][0]


def evaluate(W, x, y):
    out = forward(W, x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).double().mean().item()


def reference(kept, case):
    _, optimizer, schedule, clip = case
    W = {k[6:]: torch.tensor(v).double().requires_grad_() for k, v in kept.items() if k.startswith("start/")}
    opt = optimizer(list(W.values()))
    rates = schedule(opt)
    x = {split: torch.tensor(kept["x/" + split]).double() for split in ("train", "val")}
    y = {split: torch.tensor(kept["y/" + split]).long() for split in ("train", "val")}
    history = []
    for epoch in range(1, EPOCHS + 1):
        order, loss_sum, hits = torch.tensor(kept[f"order/{epoch}"]).long() - 1, 0.0, 0
        for first in range(0, TRAIN, BATCH):
            rows = order[first : first + BATCH]
            opt.zero_grad()
            out = forward(W, x["train"][rows])
            loss = F.cross_entropy(out, y["train"][rows])
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(list(W.values()), clip)
            lr = opt.param_groups[0]["lr"]
            opt.step()
            rates.step()
            loss_sum, hits = loss_sum + loss.item() * len(rows), hits + (out.argmax(1) == y["train"][rows]).sum().item()
        with torch.no_grad():
            val = evaluate(W, x["val"], y["val"])
        history.append((epoch, lr, loss_sum / TRAIN, hits / TRAIN, *val))
    return {k: v.detach().numpy() for k, v in W.items()}, np.array(history)


def measures(W, x, y):
    states = []
    W = {k: torch.tensor(v).double() for k, v in W.items()}
    F.cross_entropy(forward(W, x.requires_grad_(), states), y).backward(retain_graph=True, inputs=[x])
    grads = torch.autograd.grad(F.cross_entropy(forward(W, x, states := []), y), states)
    norms, g = [s.detach().norm(dim=1) for s in states], np.array([v.norm().item() for v in grads])
    budget, ratio = norms[0], 0.0
    for t in range(DEPTH):
        port = 0.6 * (torch.tanh(states[t].detach() @ W["s1.W"][t].T + W["s1.b"][t]) @ W["s1.B"][t].T)
        budget = budget + port.norm(dim=1)
        ratio = max(ratio, (norms[t + 1] / budget).max().item())
    growth = (norms[-1] / norms[0]).quantile(0.5).item()
    return {"growth": growth, "grad.first": g[0] / g[-1], "grad.max": (g / g[-1]).max(), "grad.min": (g / g[-1]).min(), "port.ratio": ratio}


class Training(unittest.TestCase):
    def test_runs(self):
        for name, case in CASES.items():
            with self.subTest(case=name):
                self.compare(name, case)

    def compare(self, name, case):
        session = Session()
        with open(os.path.join(session.dir, "s.lua"), "w", encoding="utf-8") as f:
            f.write(SPEC % (SEED, DEPTH, case[0]))
        subprocess.run([PHRUN, "run", "s.lua", "--out", "o", "-q"], cwd=session.dir, check=True, stdout=subprocess.DEVNULL)
        kept = session.run(START.format(seed=SEED, epochs=EPOCHS, train=TRAIN))
        run = read(glob.glob(os.path.join(session.dir, "o", "runs", "*.h5"))[0])
        record = json.loads(run["record"])
        weights, history = reference(kept, case)
        off = max(np.abs(v - run["final/" + k]).max() for k, v in weights.items())
        rows = np.abs(run["history"] - history).max(0)
        best = {k[5:]: v for k, v in run.items() if k.startswith("best/")}
        x, y = torch.tensor(kept["x/test"]).double(), torch.tensor(kept["y/test"]).long()
        found = measures(best, x, y)
        worst = max(abs(record["metrics"][k] / v - 1) for k, v in found.items())
        print(f"{name:30s} weights {off:.1e}  history {rows[1:].max():.1e}  measures {worst:.1e}")
        self.assertLess(off, 1e-4)
        self.assertLess(rows[1], 1e-16)
        self.assertLess(rows[[2, 4]].max(), 1e-4)
        self.assertEqual(rows[3] + rows[5], 0)
        self.assertLess(worst, 1e-5)
        self.assertEqual(record["metrics"]["port.violations"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
