#!/usr/bin/env python3
"""Values and adjoints of ops in float64 beside PyTorch and, for activations, beside 60 digits of mpmath."""
import unittest

import mpmath as mp
import numpy as np
import torch
import torch.nn.functional as F
from common import Session, cayley, damping

mp.mp.dps = 60
EXACT = {
    "gelu": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)) if x < 50 else x + mp.log1p(mp.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "tanh": mp.tanh,
}
TORCH = {"gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "sigmoid": torch.sigmoid, "tanh": torch.tanh}


def samples(session, name, arrays, attrs="{}"):
    """Value and cotangents (of ones) of an op whose first argument is a sample value."""
    args = ", ".join(session.put(f"a{i}", a) for i, a in enumerate(arrays))
    return session.run(f"""do
local args, sample, attrs = {{ {args} }}, {{ true }}, {attrs}
local y = native.op("{name}", args, attrs, sample)
add("/y", y)
for i, g in ipairs(native.op_bwd("{name}", args, attrs, sample, {session.put("g", np.ones(arrays[0].shape))})) do add("/g" .. i, g) end
end""")


class Ops(unittest.TestCase):
    def test_activations(self):
        rng = np.random.default_rng(1)
        special = np.array([0.0, 1e-30, 5, 15, 20, 38, 104, 709, 746, 1e4])
        x = np.concatenate([special, -special, rng.uniform(-12, 12, 1000), rng.normal(size=500) * 10.0 ** rng.uniform(-8, 2, 500)])
        for name, exact in EXACT.items():
            kept = samples(Session(), name, [x.reshape(1, -1)])
            t = torch.tensor(x, requires_grad=True)
            TORCH[name](t).sum().backward()
            want = [exact(mp.mpf(float(v))) for v in x]
            ulp = [np.spacing(max(abs(float(w)), np.finfo(float).tiny)) for w in want]
            normal = [abs(w) > 1e-300 for w in want]  # smaller results have fewer digits
            off = [float(abs(mp.mpf(float(y)) - w)) / u for y, w, u in zip(kept["y"].ravel(), want, ulp)]
            worst = max(o for o, n in zip(off, normal) if n)
            slope = np.abs(kept["g1"].ravel() - t.grad.numpy()).max()
            print(f"{name:9s} {worst:.1f} ulp of the exact value, slope {slope:.1e} from PyTorch")
            self.assertLess(worst, 8)
            self.assertLess(slope, 3e-9)  # PyTorch's softplus is x above 20

    def test_layernorm(self):
        rng = np.random.default_rng(3)
        for n in (1, 2, 8, 33, 100):
            for eps in (1e-5, 1e-12, 0.1):
                x, gamma, beta = rng.normal(size=(40, n)), rng.normal(size=(1, n)), rng.normal(size=(1, n))
                kept = samples(Session(), "layernorm", [x, gamma, beta], f"{{ eps = {eps!r} }}")
                t = [torch.tensor(v, requires_grad=True) for v in (x, gamma.ravel(), beta.ravel())]
                y = F.layer_norm(t[0], (n,), t[1], t[2], eps)
                y.sum().backward()
                want = [y.detach().numpy()] + [v.grad.numpy() for v in t]
                got = [kept["y"], kept["g1"], kept["g2"].ravel(), kept["g3"].ravel()]
                for w, v in zip(want, got):
                    steepest = (1 + np.abs(gamma).max()) / np.sqrt(eps)
                    self.assertLess(np.abs(w - v).max(), 1e-14 * steepest + 1e-12)

    def test_transport_and_dissipation(self):
        rng = np.random.default_rng(4)
        worst = 0.0
        for d in (1, 2, 7, 16, 33, 64):
            for size in (0.3, 1.0, 3.0):
                A, G = rng.normal(size=(d, d)) * size / np.sqrt(d), rng.normal(size=(d, d))
                session = Session()
                kept = session.run(f"""do
local A, G = {session.put("A", A)}, {session.put("G", G)}
local S, L = native.op("skew", {{ A }}, {{}}), native.op("guard", {{ A }}, {{ step = 0.6, budget = 1 }})
add("/C", native.op("cayley", {{ S }}, {{}}))
add("/gA", native.op_bwd("skew", {{ A }}, {{}}, {{}}, native.op_bwd("cayley", {{ S }}, {{}}, {{}}, G)[1])[1])
local R = native.op("gram", {{ L }}, {{}})
add("/D", native.op("damping", {{ R }}, {{ step = 0.6 }}))
local gR = native.op_bwd("damping", {{ R }}, {{ step = 0.6 }}, {{}}, G)[1]
add("/gL", native.op_bwd("guard", {{ A }}, {{ step = 0.6, budget = 1 }}, {{}}, native.op_bwd("gram", {{ L }}, {{}}, {{}}, gR)[1])[1])
end""")
                for name, f, grad in (("C", cayley, "gA"), ("D", lambda L: damping(L, 0.6), "gL")):
                    a = torch.tensor(A, requires_grad=True)
                    value = f(a)
                    (value * torch.tensor(G)).sum().backward()
                    off = np.abs(value.detach().numpy() - kept[name]).max()
                    slope = np.abs(a.grad.numpy() - kept[grad]).max() / max(1.0, np.abs(a.grad.numpy()).max())
                    worst = max(worst, off, slope)
        print(f"transport, dissipation and their adjoints: {worst:.1e}")
        self.assertLess(worst, 1e-12)


if __name__ == "__main__":
    unittest.main(verbosity=2)
