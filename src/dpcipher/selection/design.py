"""Designs for small tables: how the budget is divided over the orders of tables, from public numbers alone.

Where the table of all columns is small, looking at the rows before measuring costs more than it can save. A design gives every order of
tables (all one-way tables, all pairs, …, the whole table) a share of the budget; within an order the tables share it. Which design is best
follows from the noise, the number of rows and a prior of how large interactions are.

Every table A that contains the columns S adds precision to the interaction of S: `precision(A) · cells(S) / cells(A)`, by least squares. The
tables of an order get equal shares, so that the sum over all tables of an order is an elementary symmetric sum of 1 / levels.

The error of an interaction is the mean over a prior of sizes (`SIZES`, as total variation distances, beside what so many rows show by chance)
of the posterior error of `risk`; the squared errors of a table's interactions add up. The design minimises, for one order of target tables, their
mean error; for several, the sum of the ratios to the least error possible in each.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from dpcipher.selection.allocation import MEAN_SIZE, NoiseModel
from dpcipher.selection.rounds import Round, screens
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes, Floats, elementary_symmetric

# Total variation distances of an interaction from what smaller tables predict, by its order; each as likely. The last is for all higher orders.
SIZES = ((0.05, 0.2, 0.4), (0.02, 0.12, 0.3), (0.0, 0.06, 0.2))
FEW_COLUMNS = 5  # up to which a design is always taken
CLEAR = 0.05  # expected total variation distance up to which a design of more columns is taken
STEPS = (
    0.5,
    0.25,
)  # of the budget: moved from one order to another; less than a quarter adds more noise to the rest than it brings
GAIN = 0.03  # by which the objective must fall for a move
NEGLIGIBLE = 0.002  # total variation distance, added to errors before they are compared in ratios


@dataclass(frozen=True)
class Design:
    """The share of the budget of each order, by order, and the expected error of the target tables of each order, as total variation distance."""

    shares: dict[int, float]
    errors: dict[int, float]


@dataclass(frozen=True)
class SmallTable:
    """A small table with so many rows: `orders` of tables may be measured; the error of tables of the `targets`, orders too, counts."""

    shape: tuple[int, ...]
    rows: float
    noise: NoiseModel
    orders: tuple[int, ...]
    targets: tuple[int, ...]
    mixed: bool = True  # whether a design may have tables of several orders

    def best(self) -> Design:
        """The design of least error: for one target order one order of tables; of several target orders none should suffer much."""
        alone = [self.errors(shares) for shares in self._single]
        if len(self.targets) == 1:
            return self._design(self._single[np.argmin([errors[self.targets[0]] for errors in alone])])
        least = {order: min(errors[order] for errors in alone) + NEGLIGIBLE for order in self.targets}

        def ratios(shares: Floats) -> float:
            errors = self.errors(shares)
            return math.fsum((errors[order] + NEGLIGIBLE) / least[order] for order in least)

        start = min(self._single, key=ratios)
        return self._design(_descend(start, ratios) if self.mixed else start)

    def tables(self, design: Design) -> dict[Axes, float]:
        """The share of every table of a design."""
        found: dict[Axes, float] = {}
        for order, share in design.shares.items():
            tables = list(combinations(range(len(self.shape)), order))
            found |= dict.fromkeys(tables, share / len(tables))
        return found

    def errors(self, shares: Floats) -> dict[int, float]:
        """The mean expected error of the target tables of each order, if the orders get these shares."""
        squares = self._component_errors(shares) ** 2
        return {
            order: float(np.mean(np.sqrt(squares[self._parts[order]].sum(axis=1)))) / self.rows
            for order in self.targets
        }

    def _design(self, shares: Floats) -> Design:
        named = {order: float(share) for order, share in zip(self.orders, shares, strict=True) if share}
        return Design(named, self.errors(shares))

    @property
    def _single(self) -> list[Floats]:
        """The designs of one order."""
        return list(np.eye(len(self.orders)))

    @cached_property
    def _components(self) -> list[Axes]:
        return [
            axes for k in range(1, max(self.targets) + 1) for axes in combinations(range(len(self.shape)), k)
        ]

    @cached_property
    def _parts(self) -> dict[int, np.ndarray]:
        """For each target order, a row of the places of its interactions for every table."""
        place = {axes: number for number, axes in enumerate(self._components)}
        return {
            order: np.array(
                [
                    [place[part] for k in range(1, order + 1) for part in combinations(axes, k)]
                    for axes in combinations(range(len(self.shape)), order)
                ]
            )
            for order in self.targets
        }

    @cached_property
    def _spread(self) -> Floats:
        """The precision of each interaction (row), where every table of an order (column) has precision 1."""
        return np.array([[self._implied(axes, order) for order in self.orders] for axes in self._components])

    def _implied(self, axes: Axes, order: int) -> float:
        rest = [1 / size for axis, size in enumerate(self.shape) if axis not in axes]
        return float(elementary_symmetric(rest, order - len(axes)))

    def _component_errors(self, shares: Floats) -> Floats:
        """The expected error of every interaction, in rows."""
        each = shares / [math.comb(len(self.shape), order) for order in self.orders]
        precision = self._spread @ [self.noise.discrete_precision(share) if share else 0.0 for share in each]
        cells, freedom, deviations = self._prior
        left = deviations / np.sqrt(1 + (precision / freedom)[:, None] * deviations**2)
        return np.asarray(MEAN_SIZE / 2 * cells * left.mean(axis=1))

    @cached_property
    def _prior(self) -> tuple[Floats, Floats, Floats]:
        """Of every interaction: the cells, the fraction of freedom, and the prior deviations of a cell."""
        cells, freedom, deviations = [], [], []
        for axes in self._components:
            n_cells = math.prod(self.shape[axis] for axis in axes)
            free = math.prod(1 - 1 / self.shape[axis] for axis in axes)
            chance = math.sqrt(self.rows / n_cells * free)
            sizes = SIZES[min(len(axes), len(SIZES)) - 1]
            cells.append(n_cells)
            freedom.append(free)
            deviations.append(
                [math.hypot(2 * size * self.rows / (MEAN_SIZE * n_cells), chance) for size in sizes]
            )
        return np.array(cells, dtype=float), np.array(freedom), np.array(deviations)


def _descend(shares: Floats, value: Callable[[Floats], float]) -> Floats:
    """Move budget between orders while that lowers the value."""
    lowest = value(shares)
    for step in STEPS:
        moved = True
        while moved:
            best = min(_moves(shares, step), key=value, default=shares)
            moved = value(best) < lowest * (1 - GAIN)
            if moved:
                shares, lowest = best, value(best)
    return shares


def _moves(shares: Floats, step: float) -> Iterator[Floats]:
    """The shares after moving a step, or all there is, from one order to another."""
    for source in np.flatnonzero(shares):
        for goal in range(len(shares)):
            if goal != source:
                moved = shares.copy()
                size = min(step, float(shares[source]))
                moved[source] -= size
                moved[goal] += size
                yield moved


def design_tables(
    target: SelectionTarget, noise: NoiseModel, rows: float, orders: tuple[int, ...], *, mixed: bool = True
) -> dict[Axes, float] | None:
    """The share of every table of the best design of some orders; None where looking first promises more.

    That is so with many columns, and noise above CLEAR.
    """
    small = SmallTable(
        tuple(target.shape[axis] for axis in target.varying), rows, noise, orders, _targets(target), mixed
    )
    design = small.best()
    if len(small.shape) > FEW_COLUMNS and max(design.errors.values()) > CLEAR:
        return None
    return _named(small, design, target)


def pair_design(target: SelectionTarget, noise: NoiseModel, rows: float) -> dict[Axes, float] | None:
    """The share of every one-way table or pair, whichever is better for pairs; None where not all pairs are candidates that count alike."""
    shape, width = tuple(target.shape[axis] for axis in target.varying), len(target.varying)
    if not target.is_even or target.count_tables(2) < math.comb(width, 2):
        return None
    small = SmallTable(shape, rows, noise, (1, 2), (min(target.order, 2),))
    return _named(small, small.best(), target)


def tables_without_scoring(
    target: SelectionTarget, noise: NoiseModel, rows: float, step: Round
) -> dict[Axes, float] | None:
    """What is measured where nothing is looked at: columns alone, or the best design of columns and pairs; None where something is."""
    if not step.n_read and not step.blind:
        return {(axis,): 1 / len(target.shape) for axis in range(len(target.shape))}
    return pair_design(target, noise, rows) if step.blind and not screens(noise, target, rows) else None


def _named(small: SmallTable, design: Design, target: SelectionTarget) -> dict[Axes, float]:
    """The tables of a design with the columns of the target; a column of one level adds no cell: the first table covers it."""
    tables = {
        tuple(target.varying[place] for place in axes): share for axes, share in small.tables(design).items()
    }
    first = next(iter(tables))
    return {
        target.first_table(len(first)) if axes == first else axes: share for axes, share in tables.items()
    }


def _targets(target: SelectionTarget) -> tuple[int, ...]:
    """The orders whose error counts: the one that was named, or all low ones; four columns too where there are more than a few."""
    if not target.beyond:
        return (target.order,)
    order = target.max_order if len(target.varying) > FEW_COLUMNS else target.order
    return tuple(range(1, min(order, len(target.varying)) + 1))
