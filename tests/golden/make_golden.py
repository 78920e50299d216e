#!/usr/bin/env python3
"""Extracts the golden files from the reference fixtures.

    make_golden.py FIXTURES.h5 [OUTDIR]

The fixtures come from an independent numpy program (float64; edge cases in exact rational arithmetic; every gradient checked
against automatic differentiation and finite differences). Each group becomes one small file that keeps datasets, attributes
and names as they are. Tolerances live in the files (`tol`, `atol`) and, with their reasons, in tests/lua/laws_spec.lua (laws) and tests/c/test_fixtures.c
(engine).
"""
import os
import sys

import h5py
import numpy as np

LAWS = ("laws", "lowrank", "edge", "tests")
ENGINE = ("layer", "guard", "net", "layernorm")


def copy_attrs(src, dst):
    """Strings become fixed-length and truth values integers: the plainest forms of HDF5."""
    for name, value in src.attrs.items():
        if isinstance(value, str):
            value = np.bytes_(value.encode())
        elif isinstance(value, (bool, np.bool_)):
            value = int(value)
        dst.attrs[name] = value


def copy(src, dst):
    copy_attrs(src, dst)
    for name, item in src.items():
        if isinstance(item, h5py.Group):
            copy(item, dst.create_group(name))
        else:
            copy_attrs(item, dst.create_dataset(name, data=item[()], track_times=False))


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(__file__))
    with h5py.File(sys.argv[1], "r") as source:
        for group in LAWS + ENGINE:
            path = os.path.join(out, ("laws_%s.h5" if group in LAWS else "%s.h5") % group)
            with h5py.File(path, "w", libver=("earliest", "v108")) as target:
                copy_attrs(source, target)
                copy(source[group], target)
            print(os.path.basename(path), os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
