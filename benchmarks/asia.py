"""The asia network, all pairs, pure epsilon 1: our table engine against mbi 2.0's mirror descent on the same noisy tables.

usage: DPCIPHER_NETWORKS=FOLDER DPCIPHER_MBI=PYTHON-OF-ITS-ENVIRONMENT python benchmarks/asia.py [repeats=25]
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import laplace, load_coded, markdown, noisy, show, subsets, tvd_dense, write_page
from small import logits

PEERS = Path(__file__).parent / "peers"
QUIET = {"OMP_NUM_THREADS": "2", "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}


def fit(python: str, script: str, given: Path) -> tuple[np.ndarray, np.ndarray]:
    """Joints and seconds of each fit, in a fresh process."""
    out = given.with_suffix(f".{script}.npz")
    subprocess.run([python, PEERS / script, given, out], check=True, env={**os.environ, **QUIET})
    found = np.load(out)
    return found["joints"], found["seconds"]


def study(name: str, data: list[np.ndarray], shape: tuple[int, ...], folder: Path) -> list[list[object]]:
    tables = subsets(len(shape), 2)
    mechanism = laplace(len(tables), 1.0)
    observed, truths = [], []
    for seed, codes in enumerate(data):
        measured = noisy(codes, shape, tables, mechanism, seed)
        observed.append(np.concatenate([one.counts.ravel() for one in measured]))
        truth = np.zeros(shape)
        np.add.at(truth, tuple(codes.T), 1 / len(codes))
        truths.append(truth)
    given = folder / f"{len(shape)}.npz"
    np.savez(
        given, shape=shape, tables=json.dumps(tables), sigma=np.sqrt(mechanism.variance), y=np.array(observed)
    )
    rows = []
    peers = {"ours": (sys.executable, "our_fit.py"), "mbi 2.0": (os.environ["DPCIPHER_MBI"], "mbi_fit.py")}
    for method, (python, script) in peers.items():
        joints, seconds = fit(python, script, given)
        error = np.mean([tvd_dense(t, p) for t, p in zip(truths, joints, strict=True)], axis=0)
        rows.append([name, method, show(error, 5), f"{seconds[0]:.3f}", f"{np.median(seconds[1:]):.4f}"])
    ours, peer = rows
    rows.append(
        [
            name,
            "mbi ÷ ours",
            "",
            f"{float(peer[3]) / float(ours[3]):.0f} ×",
            f"{float(peer[4]) / float(ours[4]):.1f} ×",
        ]
    )
    return rows


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    nets = Path(os.environ["DPCIPHER_NETWORKS"])
    codes, shape = load_coded(nets / "asia.csv", nets / "asia-domain.json")
    small = (2, 2, 3, 3)
    with tempfile.TemporaryDirectory() as folder:
        rows = study("asia, 8 columns, n=10,000", [codes] * repeats, shape, Path(folder))
        rows += study(
            "2×2×3×3, n=500", [logits(small, 500, seed) for seed in range(repeats)], small, Path(folder)
        )
    note = (
        f"All pairs, discrete Laplace, pure ε = 1, add-remove, {repeats} repetitions; mean TVD of 1/2/3-way tables. Each method in a fresh "
        "process, imports excluded: cold is its first fit (compilation included), warm the median of the others."
    )
    head = ["data", "method", "TVD", "cold, s", "warm, s"]
    write_page(
        "asia",
        "Against mbi 2.0 on the same tables",
        f"python benchmarks/asia.py {repeats}",
        [note, markdown(head, rows)],
    )


if __name__ == "__main__":
    main()
