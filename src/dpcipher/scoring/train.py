"""Train on synthetic rows, test on real ones: does a classifier learnt from synthetic rows work on people it has not seen?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.inference.design import one_hot
from dpcipher.scoring.onehot import Classifier, fit_classifier

Codes = NDArray[np.int32]

MOST_ROWS = 50_000


@dataclass(frozen=True)
class Accuracy:
    """Shares of held-out rows predicted rightly: after training on synthetic rows, on private rows, and by always saying the most common level."""

    target: str
    synthetic: float
    private: float
    majority: float


def accuracy(
    private: Codes,
    synthetic: Codes,
    holdout: Codes,
    shape: Sequence[int],
    axis: int,
    *,
    target: str,
    seed: int = 0,
) -> Accuracy:
    """Multinomial ridge logits of one column on all others, tested on `holdout`.

    Private rows that are in the held-out set must not be among the rows the release was measured on, or the comparison flatters.
    """
    rng = np.random.default_rng(seed)
    others = [a for a in range(len(shape)) if a != axis]
    sizes = [shape[a] for a in others]
    x, truth = one_hot(holdout[:, others], sizes), holdout[:, axis]

    def score(rows: Codes) -> float:
        model = _fit(_some(rows, rng), others, sizes, axis, shape[axis])
        return float((model.predict(x) == truth).mean())

    majority = int(np.bincount(private[:, axis]).argmax())
    return Accuracy(target, score(synthetic), score(private), float((truth == majority).mean()))


def _fit(rows: Codes, others: list[int], sizes: list[int], axis: int, classes: int) -> Classifier:
    return fit_classifier(one_hot(rows[:, others], sizes), rows[:, axis], classes)


def _some(codes: Codes, rng: np.random.Generator) -> Codes:
    return codes if len(codes) <= MOST_ROWS else codes[rng.choice(len(codes), MOST_ROWS, replace=False)]
