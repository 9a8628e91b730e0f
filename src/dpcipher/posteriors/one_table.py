"""One noisy table that holds all the columns: the population straight from it.

Every cell has a count of its own, so the true counts can be summed out (`whole_counts`), and what is left is the posterior of the population, without
the detour over the rows' own table that overlapping tables need. Rows are taken for Poisson: where their number is free that is the same as multinomial
ones, and where it is public nearly so, as long as the table knows its total about as well (see `one_table`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcipher.posteriors.evidence import Evidence
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.targets import RowsTarget
from dpcipher.posteriors.whole_counts import WholeCounts
from dpcipher.tables.domain import Floats

# Numbers that the sums over counts are made from, a second of processor time. Noise that needs more is wide, and no harder to sample in the general way.
MOST_WORK = 100_000_000
# Below any rate that matters, and above what a logarithm cannot take.
LEAST = 1e-300


@dataclass(frozen=True)
class OneTableTarget(RowsTarget):
    """The population given one noisy table: coefficients, then the logarithm of the number of rows where it is not known."""

    counts: WholeCounts

    @cached_property
    def _can_be(self) -> Floats:
        return self.model.possible.ravel().astype(float)

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """The potential of every point, and its gradient."""
        coefficients, rows = self.split(points)
        chances = self.model.probabilities(coefficients)
        values, counts = (self._can_be * part for part in self.counts(_log_rates(rows, chances)))
        total = counts.sum(axis=1)
        gradient = coefficients - self.model.pull(counts - total[:, None] * chances)
        potential = 0.5 * (coefficients**2).sum(axis=1) - values.sum(axis=1)
        if self.n_rows is None:  # flat in the number of rows
            potential = potential + rows - points[:, -1]
            gradient = np.concatenate([gradient, (rows - total - 1)[:, None]], axis=1)
        return potential, gradient

    def curvature(self, point: Floats) -> Floats:
        """The information to be expected: a count of rate λ, seen with noise of variance v, tells λ²/(λ + v) about log λ."""
        rates, design = self.rates(point), self.model.design
        told = rates**2 / (rates + self.counts.variance + LEAST)
        directions = design - rates @ design / rates.sum()
        if self.n_rows is None:
            directions = np.concatenate([directions, np.ones((len(design), 1))], axis=1)
        curvature = (directions.T * told) @ directions
        curvature[: self.model.size, : self.model.size] += np.eye(self.model.size)
        return np.asarray(curvature)

    def draw_tables(self, points: Floats, rng: np.random.Generator) -> Floats:
        """The true counts of every cell, given the population and the noisy ones: draws by cells."""
        coefficients, rows = self.split(points)
        log_rates = _log_rates(rows, self.model.probabilities(coefficients))
        return self._can_be * self.counts.draw(log_rates, rng)


def one_table(evidence: Evidence, model: LogLinear) -> OneTableTarget | None:
    """The target where a single table of whole counts holds all columns, and its noise is at most the chance of the rows themselves; None elsewhere.

    With more noise a cell may be an empty one or not, and chains would have to find both; the general way, which is slow where there is little noise, then is
    the faster one. A public number of rows, too, may be worth more than the table's total. Coarse counts are left to the pairs, which are drawn by themselves where there
    are more than two columns (`pair_sums`), and to the general way elsewhere.
    """
    table = evidence.one_table
    if table is None or table.noise is None or (table.counts % 1).any():
        return None
    if len(evidence.shape) <= 2 and any(other.query.groups for other in evidence.tables):
        return None
    counts = WholeCounts(table.counts.ravel(), table.noise, table.summed)
    if counts.variance * table.counts.size > evidence.rows_estimate:
        return None
    return OneTableTarget(model, evidence.n_rows, counts) if counts.work <= MOST_WORK else None


def _log_rates(rows: Floats, chances: Floats) -> Floats:
    return np.asarray(np.log(rows)[:, None] + np.log(np.maximum(chances, LEAST)))
