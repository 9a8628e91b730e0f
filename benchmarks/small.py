"""Small tables: our engine against max-entropy, the uniform table and independence, all on the same noisy tables.

usage: python benchmarks/small.py [repeats=200]
"""

import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd
from common import (
    Axes,
    Floats,
    agreed,
    data_folder,
    laplace,
    markdown,
    noisy,
    show,
    subsets,
    tvd_dense,
    write_page,
)
from maxent import design, max_entropy

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.table import solve_table
from dpcipher.release.reconcile import Reconciled

EPSILONS = {"e^-2": np.exp(-2), "e^-1": np.exp(-1), "1": 1.0, "e": np.e, "e^2": np.exp(2), "no noise": None}
Codes = np.ndarray


def logits(shape: Sequence[int], n_rows: int, seed: int, intercept: float = 1.0, slope: float = 1.0) -> Codes:
    """Rows from a sequence of main-effects multinomial logits with normal coefficients of these sizes, new ones for every seed."""
    rng = np.random.default_rng([1, seed])
    columns: list[np.ndarray] = []
    for size in shape:
        score = np.tile(intercept * rng.normal(size=size), (n_rows, 1))
        for earlier, levels in zip(columns, shape, strict=False):
            score += slope * rng.normal(size=(levels, size))[earlier]
        columns.append(np.argmax(score + rng.gumbel(size=score.shape), axis=1))
    return np.stack(columns, axis=1)


def bankruptcy() -> Codes:
    """The paper's second experiment: Class with CR (6 levels), IR with CO (9), OR, MR, FF."""
    frame = pd.read_csv(data_folder() / "bankruptcy" / "qualitative_bankruptcy.csv")
    codes = {name: pd.factorize(frame[name], sort=True)[0] for name in frame}
    columns = [
        codes["Class"] * 3 + codes["Credibility"],
        codes["IndustrialRisk"] * 3 + codes["Competitiveness"],
        codes["OperatingRisk"],
        codes["ManagementRisk"],
        codes["FinancialFlexibility"],
    ]
    return np.stack(columns, axis=1)


def independence(reconciled: Reconciled) -> Floats:
    """The product of the one-way tables of the same release, negative counts set to zero."""
    joint = np.ones(())
    for axis in range(len(reconciled.domain.sizes)):
        one = np.maximum(reconciled.table((axis,)), 0) + 1e-12
        joint = np.multiply.outer(joint, one / one.sum())
    return joint


def study(name: str, shape: Sequence[int], tables: list[Axes], data: Sequence[Codes]) -> list[list[object]]:
    """One row per epsilon: errors of every method and our ratio to the best-known ones."""
    matrix, rows = design(shape, tables), []
    for label, epsilon in EPSILONS.items():
        observed, truths, ours, product = [], [], [], []
        for seed, codes in enumerate(data):
            measured = noisy(codes, shape, tables, laplace(len(tables), epsilon), seed)
            fitted = agreed(shape, measured)
            truth = np.zeros(shape)
            np.add.at(truth, tuple(codes.T), 1 / len(codes))
            truths.append(truth)
            observed.append(np.concatenate([m.values.ravel() for m in measured]) / max(fitted.total, 1))
            ours.append(solve_table(denoise(fitted))[0])
            product.append(independence(fitted))
        # a small table is solved to the end; the larger one as far as `gap` says, since every step costs forty times as much
        most = 200_000 if matrix.size < 10_000 else 2_000
        entropy, gap = max_entropy(matrix, np.array(observed), most=most)
        methods = {
            "ours": ours,
            "max-entropy": list(entropy.reshape(-1, *shape)),
            "independence": product,
            "uniform": [np.full(shape, 1 / np.prod(shape))] * len(data),
        }
        means = {
            method: np.mean([tvd_dense(t, p) for t, p in zip(truths, joints, strict=True)], axis=0)
            for method, joints in methods.items()
        }
        ratios = [show(means["ours"] / np.maximum(means[other], 1e-9), 2) for other in list(methods)[1:]]
        if epsilon is None:
            ratios = ["ours − max-entropy " + show(means["ours"] - means["max-entropy"]), "", ""]
        rows.append([name, label, *(show(means[method]) for method in methods), *ratios, f"{gap:.0e}"])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    small, large = (2, 2, 3, 3), (6, 9, 3, 3, 3)
    rows = []
    for name, sizes in {"weak": (0.0, 0.25), "mild": (0.1, 0.4), "strong": (1.0, 1.0)}.items():
        data = [logits(small, 500, seed, *sizes) for seed in range(repeats)]
        for order in (2, 3):
            rows += study(f"2×2×3×3, n=500, {name}, order {order}", small, subsets(4, order), data)
    rows += study(
        "bankruptcy 6×9×3×3×3, n=250, order 2", large, subsets(5, 2), [bankruptcy()] * (repeats // 4)
    )
    rows += study(
        "logits 6×9×3×3×3, n=250, order 2",
        large,
        subsets(5, 2),
        [logits(large, 250, s) for s in range(repeats // 4)],
    )
    head = [
        "tables",
        "ε",
        "ours",
        "max-entropy",
        "independence",
        "uniform",
        "÷ max-entropy",
        "÷ independence",
        "÷ uniform",
        "gap",
    ]
    note = (
        "Mean TVD of 1/2/3-way tables against the true table; discrete Laplace, add-remove, the budget split equally over the "
        f"tables; {repeats} repetitions ({repeats // 4} for the larger shape), a new table for each where it is simulated. Every method "
        "sees the same noisy tables. `gap` is the worst optimality gap of the max-entropy fits."
    )
    write_page(
        "small",
        "Small tables against max-entropy",
        f"python benchmarks/small.py {repeats}",
        [note, markdown(head, rows)],
    )


if __name__ == "__main__":
    main()
