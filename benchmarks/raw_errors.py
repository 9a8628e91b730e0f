"""How wrong synthetic rows are about raw numbers: the Wasserstein distance of a column, and random ranges of it alone and with another column."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from common import Floats
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

METRICS = ("distance", "range", "pair range")


def known(frame: pd.DataFrame, name: str) -> Floats:
    """The values of a column that are not missing."""
    return frame[name].dropna().to_numpy(dtype=float)


@dataclass(frozen=True)
class Compared:
    """One column of the truth and of the drawn rows: numbers, NaN where missing, or places among the sorted categories of the truth."""

    truth: Floats
    drawn: Floats
    categories: int

    @classmethod
    def of(cls, truth: pd.Series, drawn: pd.Series) -> "Compared":
        if pd.api.types.is_numeric_dtype(truth):
            return cls(*(cells.to_numpy(dtype=float, na_value=np.nan) for cells in (truth, drawn)), 0)
        levels = sorted(truth.unique())
        return cls(
            *(pd.Categorical(cells, levels).codes.astype(float) for cells in (truth, drawn)), len(levels)
        )

    @cached_property
    def known(self) -> Floats:
        """The values of the truth that are not missing."""
        return self.truth[~np.isnan(self.truth)]

    def condition(self, rng: np.random.Generator) -> Callable[[Floats], NDArray[np.bool_]]:
        """A range between two cells of the truth, or some of its categories."""
        if not self.categories:
            low, high = np.sort(rng.choice(self.known, 2))
            return lambda cells: (cells >= low) & (cells <= high)
        wanted = rng.random(self.categories) < 0.5
        wanted[0] |= not wanted.any()
        return lambda cells: np.append(wanted, False)[cells.astype(int)]


def errors(frame: pd.DataFrame, rows: pd.DataFrame, names: list[str]) -> dict[str, dict[str, float]]:
    """Of each column of numbers: Wasserstein distance, error of random ranges, and of random ranges of pairs with it."""
    rng = np.random.default_rng(0)
    columns = {str(name): Compared.of(frame[name], rows[name]) for name in frame.columns}
    scores: dict[str, dict[str, float]] = {}
    for name in names:
        ranges = [question([columns[name]], rng) for _ in range(300)]
        others = [other for other in frame.columns if other != name]
        pairs = [question([columns[name], columns[str(rng.choice(others))]], rng) for _ in range(300)]
        scores[name] = {
            "distance": float(wasserstein_distance(known(frame, name), known(rows, name))),
            "range": float(np.mean(ranges)),
            "pair range": float(np.mean(pairs)),
        }
    return scores


def question(columns: list[Compared], rng: np.random.Generator) -> float:
    """How wrong the share of rows is that meet a random condition on each column."""
    meets = [(column, column.condition(rng)) for column in columns]
    truth = np.logical_and.reduce([meet(column.truth) for column, meet in meets])
    drawn = np.logical_and.reduce([meet(column.drawn) for column, meet in meets])
    return float(abs(truth.mean() - drawn.mean()))
