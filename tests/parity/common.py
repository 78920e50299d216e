"""What the comparisons with PyTorch share: a session of phrun, arrays in and out, the model of the optimizer tests."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHRUN = os.path.abspath(os.environ.get("PHRUN", os.path.join(ROOT, "build", "phrun")))
KINDS = {np.dtype("float32"): "f32", np.dtype("float64"): "f64", np.dtype("int32"): "i32"}
TYPES = {"f32": (np.float32, torch.float32), "f64": (np.float64, torch.float64)}


class Session:
    """A directory of arrays, and sessions of phrun that read and write them."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="phrun-parity-")
        atexit.register(shutil.rmtree, self.dir, True)

    def put(self, name, array):
        """Writes an array; returns the Lua expression that reads it."""
        array = np.ascontiguousarray(array)
        array.tofile(os.path.join(self.dir, name))
        shape = ", ".join(map(str, array.shape))
        return f'native.from_bytes(native.read_file("{name}"), {{ {shape} }}, "{KINDS[array.dtype]}")'

    def run(self, lua):
        """Runs lines of Lua. `add(path, value)` keeps a tensor; returns what was kept, by path."""
        text = "\n".join(
            ['native = require "ph.native"', "items = {}", "function add(p, v) items[#items + 1] = { path = p, value = v } end", lua,
             'if #items > 0 then assert(native.h5_write("out.h5", items)) end']
        )
        done = subprocess.run([PHRUN], input=text + "\n", text=True, capture_output=True, cwd=self.dir)
        if done.returncode or done.stderr:
            sys.exit(f"phrun ended with {done.returncode}: {done.stderr[:2000]}")
        return read(os.path.join(self.dir, "out.h5"))


def read(path):
    found = {}
    with h5py.File(path) as f:
        f.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def cayley(A):
    S = A - A.mT
    identity = torch.eye(A.shape[-1], dtype=A.dtype)
    return torch.linalg.solve(identity + S / 2, identity - S / 2)


def damping(L, h, budget=1.0):
    top = torch.linalg.eigvalsh(L @ L.mT)[..., -1]
    L = L * torch.where(h * top > budget, torch.sqrt(budget / (h * top)), torch.ones_like(top))[..., None, None]
    R = L @ L.mT
    identity = torch.eye(L.shape[-1], dtype=L.dtype)
    return torch.linalg.solve(identity + h * R / 2, identity - h * R / 2)


MODEL = """phrun-ir 1
dtype {dtype}
input 1 5
segment once 1
param W 8 5 uniform 0.447
param b 1 8 uniform 0.447
node 0 state
node 1 apply p0 n0
node 2 bias n1 p1
result n2
end
segment depth 3
param A 8 8 normal 0.18
param L 8 8 normal 0.5
param B 8 8 normal 0.35
param W 8 8 uniform 0.35
param b 1 8 uniform 0.35
node 0 state
node 1 skew p0
node 2 cayley n1
node 3 guard step=0.6 budget=1 p1
node 4 gram n3
node 5 damping step=0.6 n4
node 6 matmul n5 n2
node 7 apply n6 n0
node 8 apply p3 n0
node 9 bias n8 p4
node 10 gelu n9
node 11 apply p2 n10
node 12 scale by=0.6 n11
node 13 add n7 n12
result n13
end
segment once 1
param gamma 1 8 ones
param beta 1 8 zeros
param W 3 8 uniform 0.35
param b 1 3 uniform 0.35
node 0 state
node 1 layernorm eps=1e-05 n0 p0 p1
node 2 apply p2 n1
node 3 bias n2 p3
result n3
end
loss softmax_cross_entropy
"""


def forward(P, x):
    """MODEL: an affine stage, three layers with a guarded damping and a gelu port, LayerNorm, an affine head."""
    z = x @ P["s1.W"][0].T + P["s1.b"][0]
    for t in range(3):
        M = damping(P["s2.L"][t], 0.6) @ cayley(P["s2.A"][t])
        port = F.gelu(z @ P["s2.W"][t].T + P["s2.b"][t]) @ P["s2.B"][t].T
        z = z @ M.T + 0.6 * port
    z = F.layer_norm(z, (8,), P["s3.gamma"].reshape(-1), P["s3.beta"].reshape(-1), 1e-5)
    return z @ P["s3.W"][0].T + P["s3.b"][0]
