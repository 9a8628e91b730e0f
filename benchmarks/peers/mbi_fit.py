"""Fit mbi's mirror descent to noisy tables in a file; runs in an environment of its own (see benchmarks/README.md).

usage: python mbi_fit.py IN.npz OUT.npz    IN: shape, tables (one row of axes each), sigma, y (one row of all cells per release)
"""

import json
import sys
import time

import numpy as np

import mbi  # isort: skip


def main() -> None:
    given = np.load(sys.argv[1])
    shape, tables = given["shape"].tolist(), json.loads(str(given["tables"]))
    domain = mbi.Domain([str(axis) for axis in range(len(shape))], shape)
    sizes = [int(np.prod([shape[axis] for axis in axes])) for axes in tables]
    joints, seconds = [], []
    for flat in given["y"]:
        started = time.perf_counter()
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        measured = [
            mbi.LinearMeasurement(part, tuple(map(str, axes)), stddev=float(given["sigma"]))
            for part, axes in zip(parts, tables, strict=True)
        ]
        model = mbi.estimation.MirrorDescent().estimate(domain, measured)
        joint = np.asarray(model.project(domain.attributes).datavector()).reshape(shape)
        seconds.append(time.perf_counter() - started)
        joints.append(joint / joint.sum())
    np.savez(sys.argv[2], joints=np.array(joints), seconds=np.array(seconds))


if __name__ == "__main__":
    main()
