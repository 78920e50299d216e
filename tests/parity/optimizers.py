#!/usr/bin/env python3
"""Trajectories of 120 steps from the same weights, data and orders: in float64 they agree with PyTorch to rounding. Clipping is
compared with clip/norm; PyTorch's clip_grad_norm_ divides by norm + 1e-6."""
import unittest

import numpy as np
import torch
from common import MODEL, TYPES, Session, forward

# name -> options, and the largest difference of any weight after 120 steps in float64 and in float32; strong decay is chaotic
CASES = {
    "adam": (dict(kind="adam", lr=3e-3), 1e-14, 3e-6),
    "adam, other betas": (dict(kind="adam", lr=3e-3, beta1=0.5, beta2=0.9), 1e-14, 3e-6),
    "adam, no memory": (dict(kind="adam", lr=3e-3, beta1=0.0, beta2=0.0, eps=1e-3), 1e-13, 1e-5),
    "adam, large eps": (dict(kind="adam", lr=1e-1, eps=0.1), 1e-12, 2e-4),
    "adam, decay": (dict(kind="adam", lr=3e-3, weight_decay=0.1), 1e-13, 2e-5),
    "adam, strong decay": (dict(kind="adam", lr=2e-2, weight_decay=10), 1e-10, 1e-2),
    "adam, clipped": (dict(kind="adam", lr=3e-3, clip=0.3, eps=1e-2), 1e-14, 3e-6),
    "sgd": (dict(kind="sgd", lr=0.1), 1e-13, 1e-5),
    "sgd, momentum": (dict(kind="sgd", lr=0.05, momentum=0.9), 1e-13, 1e-4),
    "sgd, decay": (dict(kind="sgd", lr=0.1, weight_decay=0.1), 1e-13, 1e-5),
    "sgd, both": (dict(kind="sgd", lr=0.05, momentum=0.9, weight_decay=0.1), 1e-13, 1e-4),
    "sgd, all": (dict(kind="sgd", lr=0.05, momentum=0.9, weight_decay=0.1, clip=0.3), 1e-12, 1e-4),
}
SAMPLES, BATCH, EPOCHS = 90, 32, 40  # three steps an epoch, the last of 26 samples
rng = np.random.default_rng(5)
X, Y = rng.standard_normal((SAMPLES, 5)), rng.integers(0, 3, SAMPLES).astype(np.int32)

STEPS = """
local plan = assert(native.plan(ir, {{ batch = {batch}, threads = 1 }}))
plan:init(7)
for _, p in ipairs((plan:params())) do add("/{k}/start/" .. p.name, plan:get(p.name, "value")) end
local losses = {{}}
for epoch = 1, {epochs} do
  local order = native.permutation(7, "order/" .. epoch, 0, {samples})
  if {k} == 0 then add(string.format("/order/%d", epoch), order) end
  for first = 1, {samples}, {batch} do
    losses[#losses + 1] = plan:step(data, order:slice(1, first, math.min(first + {batch} - 1, {samples})), {options}).loss
  end
end
for _, p in ipairs((plan:params())) do add("/{k}/final/" .. p.name, plan:get(p.name, "value")) end
add("/{k}/loss", native.from(losses, "f64"))
plan:close()
"""


def lua_table(options):
    return "{ " + ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v!r}" for k, v in options.items()) + " }"


def trained(dtype):
    session = Session()
    lines = ["do", f"local ir = [[{MODEL.format(dtype=dtype)}]]",
             f"local data = native.data({session.put('x', X.astype(TYPES[dtype][0]))}, {session.put('y', Y)})"]
    for k, (options, _, _) in enumerate(CASES.values()):
        lines.append("do" + STEPS.format(k=k, batch=BATCH, epochs=EPOCHS, samples=SAMPLES, options=lua_table(options)) + "end")
    return session.run("\n".join(lines + ["end"]))


def optimizer(options, parameters):
    decay = options.get("weight_decay", 0)
    if options["kind"] == "sgd":
        return torch.optim.SGD(parameters, lr=options["lr"], momentum=options.get("momentum", 0), weight_decay=decay)
    betas = (options.get("beta1", 0.9), options.get("beta2", 0.999))
    return torch.optim.AdamW(parameters, lr=options["lr"], betas=betas, eps=options.get("eps", 1e-8), weight_decay=decay)


def clip(parameters, most):
    norm = torch.sqrt(sum((p.grad**2).sum() for p in parameters))
    for p in parameters if norm > most else ():
        p.grad *= most / norm


def reference(kept, k, options, dtype):
    start = {path.split("/")[-1]: v for path, v in kept.items() if path.startswith(f"{k}/start/")}
    P = {name: torch.tensor(v, dtype=TYPES[dtype][1]).requires_grad_() for name, v in start.items()}
    parameters, losses = list(P.values()), []
    opt = optimizer(options, parameters)
    x, y = torch.tensor(X.astype(TYPES[dtype][0])), torch.tensor(Y).long()
    for epoch in range(1, EPOCHS + 1):
        order = torch.tensor(kept[f"order/{epoch}"]).long() - 1
        for first in range(0, SAMPLES, BATCH):
            rows = order[first : first + BATCH]
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(forward(P, x[rows]), y[rows])
            loss.backward()
            if options.get("clip"):
                clip(parameters, options["clip"])
            opt.step()
            losses.append(loss.item())
    return {name: v.detach().double().numpy() for name, v in P.items()}, np.array(losses)


class Optimizers(unittest.TestCase):
    def agree(self, dtype):
        kept = trained(dtype)
        for k, (name, (options, f64, f32)) in enumerate(CASES.items()):
            weights, losses = reference(kept, k, options, dtype)
            off = max(np.abs(v - kept[f"{k}/final/{key}"]).max() for key, v in weights.items())
            print(f"{dtype}  {name:20s} weights {off:.1e}  losses {np.abs(losses - kept[f'{k}/loss']).max():.1e}")
            with self.subTest(case=name):
                self.assertLess(off, f64 if dtype == "f64" else f32)
                moved = max(np.abs(v - kept[f"{k}/start/{key}"]).max() for key, v in weights.items())
                self.assertGreater(moved, 0.01)

    def test_float64(self):
        self.agree("f64")

    def test_float32(self):
        self.agree("f32")


if __name__ == "__main__":
    unittest.main(verbosity=2)
