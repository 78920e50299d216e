#!/usr/bin/env python3
"""Learning rates of every step beside PyTorch's schedulers, stepped once a step. Cosine reaches lr_min one step after the last;
step 1 of a warm-up of r steps has lr / r, step r has lr and so has step r + 1."""
import unittest

import numpy as np
import torch
from common import Session
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

STEPS_AN_EPOCH, EPOCHS, LR, LR_MIN = 7, 6, 0.01, 0.001
STEPS = STEPS_AN_EPOCH * EPOCHS


def phrun(keys):
    lua = f"""
local p, rates = ph.adam {{ lr = {LR}, epochs = {EPOCHS}, batch = 1, {keys} }}, {{}}
for step = 1, {STEPS} do rates[step] = p:rate(step, {STEPS}, {STEPS_AN_EPOCH}) end
add("/rates", native.from(rates, "f64"))
"""
    return Session().run("do" + lua + "end")["rates"]


def pytorch(scheduler):
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=LR)
    schedule, rates = scheduler(opt), []
    for _ in range(STEPS):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        schedule.step()
    return np.array(rates)


def cosine(opt, steps=STEPS):
    return CosineAnnealingLR(opt, T_max=steps, eta_min=LR_MIN)


def linear(opt, ramp):
    return LinearLR(opt, start_factor=1 / ramp, total_iters=ramp - 1)


class Schedules(unittest.TestCase):
    def agree(self, name, ours, theirs):
        off = np.abs(ours - theirs).max()
        print(f"{name:32s} {off:.1e}")
        self.assertLess(off, 1e-16)

    def test_cosine(self):
        self.agree("cosine", phrun(f"schedule = 'cosine', lr_min = {LR_MIN}"), pytorch(cosine))

    def test_warmup(self):
        for epochs in (1, 2, 0.5, 5.9):
            ramp = int(np.floor(epochs * STEPS_AN_EPOCH + 0.5))
            ours = phrun(f"schedule = 'warmup', warmup = {epochs}")
            self.agree(f"warmup, {ramp} steps", ours, pytorch(lambda opt: linear(opt, ramp)))
            self.assertAlmostEqual(ours[0], LR / ramp, delta=1e-18)
            self.assertEqual(ours[ramp - 1], LR)

    def test_warmup_then_cosine(self):
        for epochs in (1, 2, 0.5, 5.9):
            ramp = int(np.floor(epochs * STEPS_AN_EPOCH + 0.5))
            ours = phrun(f"schedule = 'warmup_cosine', warmup = {epochs}, lr_min = {LR_MIN}")
            parts = lambda opt: SequentialLR(opt, [linear(opt, ramp), cosine(opt, STEPS - ramp)], [ramp])
            self.agree(f"warmup_cosine, {ramp} steps", ours, pytorch(parts))


if __name__ == "__main__":
    unittest.main(verbosity=2)
