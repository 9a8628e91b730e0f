"""Predicting one column: gradient boosting trained on synthetic rows of `workload="auto"` and of `Auto(predict=...)`, tested on real rows.

usage: DPCIPHER_DATA=FOLDER python benchmarks/predict.py [repeats=2]    (needs scikit-learn)

A quarter of the rows is held out; AUC of each level against the others, weighted by how frequent it is. Noise is seeded: nothing is private.
"""

import sys

import numpy as np
from common import markdown, real, write_page
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpcipher.methods.cipher import Cipher
from dpcipher.privacy.choose import Draws
from dpcipher.schema.schema import Schema
from dpcipher.selection.target import Auto

TASKS = (
    ("adult", 13, "income"),
    ("nist_ma2019", 7, "NPF"),
    ("nist_ma2019", 9, "OWN_RENT"),
    ("mushroom", 0, "class"),
)


def auc(train: np.ndarray, test: np.ndarray, column: int) -> float:
    """The AUC on `test` of a model of a column trained on `train`."""
    others = [axis for axis in range(train.shape[1]) if axis != column]
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(
        train[:, others], train[:, column]
    )
    chances, scores, weights = model.predict_proba(test[:, others]), [], []
    for level in np.unique(test[:, column]):
        places = np.flatnonzero(model.classes_ == level)
        is_level = test[:, column] == level
        scores.append(roc_auc_score(is_level, chances[:, places[0]]) if places.size else 0.5)
        weights.append(is_level.sum())
    return float(np.average(scores, weights=weights))


def synthetic(train: np.ndarray, shape: tuple[int, ...], workload: Auto, seed: int) -> np.ndarray:
    """As many rows as there are, at (ε, δ) = (1, 10⁻⁹)."""
    schema = Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)})
    method = Cipher(1.0, delta=1e-9, unit="add-remove", workload=workload)
    joint = method.fit_counts(train, schema, draws=Draws.seeded(seed), codes=True).joint
    return np.concatenate(list(joint.core.sample(len(train), np.random.default_rng(seed))))


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    found = []
    for name, column, says in TASKS:
        codes, shape = real(name)
        order = np.random.default_rng(0).permutation(len(codes))
        test, train = codes[order[: len(codes) // 4]], codes[order[len(codes) // 4 :]]
        best = auc(train, test, column)
        scores = [
            np.mean([auc(synthetic(train, shape, auto, seed), test, column) for seed in range(repeats)])
            for auto in (Auto(), Auto(predict=f"c{column}"))
        ]
        gap = (best - scores[1]) / max(best - scores[0], 1e-9)
        found.append([name, says, *(f"{value:.3f}" for value in (best, *scores)), f"{gap:.2f}"])
        print(found[-1], flush=True)
    head = ["data", "column", "real rows", "auto", "predict", "gap left"]
    note = (
        f"(ε, δ) = (1, 10⁻⁹), add-remove, {repeats} seeds. Gap left: of the distance of auto from real rows."
    )
    write_page(
        "predict",
        "Predicting one column",
        f"python benchmarks/predict.py {repeats}",
        [note, markdown(head, found)],
    )


if __name__ == "__main__":
    main()
