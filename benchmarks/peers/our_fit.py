"""Fit our table engine to noisy tables in a file: the counterpart of mbi_fit.py, timed the same way in a fresh process.

usage: python our_fit.py IN.npz OUT.npz
"""

import json
import sys
import time

import numpy as np

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.table import solve_table
from dpcipher.release.reconcile import reconcile
from dpcipher.tables.domain import Domain
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query


def main() -> None:
    given = np.load(sys.argv[1])
    shape, tables = tuple(given["shape"].tolist()), [tuple(axes) for axes in json.loads(str(given["tables"]))]
    sizes = [int(np.prod([shape[axis] for axis in axes])) for axes in tables]
    domain, noise = (
        Domain(tuple(map(str, range(len(shape)))), shape),
        Noise("gaussian", float(given["sigma"])),
    )
    joints, seconds = [], []
    for flat in given["y"]:
        started = time.perf_counter()
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        measured = [
            Measurement(Query(axes), part.reshape([shape[axis] for axis in axes]), noise)
            for part, axes in zip(parts, tables, strict=True)
        ]
        joint, _ = solve_table(denoise(reconcile(domain, measured)))
        seconds.append(time.perf_counter() - started)
        joints.append(joint)
    np.savez(sys.argv[2], joints=np.array(joints), seconds=np.array(seconds))


if __name__ == "__main__":
    main()
