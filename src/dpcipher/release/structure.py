"""Structures: how the components that tables share stand in their cells.

A table with counts y reads its shared components as f = F y, with covariance v G, G = F Fᵀ, where v is the variance of its noise. Components that are correlated in its
cells are one group: those of uneven groups of levels with the total, all of a table with impossible cells. Elsewhere a component is a group of its own, and
its part of G a number.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.linalg import block_diag

from dpcipher.errors import SizeError
from dpcipher.release.bands import IntArray
from dpcipher.release.sharing import Choice, Sharing
from dpcipher.tables.domain import Bools, Floats
from dpcipher.tables.table import PART

MOST_TIED = 5_000  # functions that are solved together
NOTHING = 1e-12  # what is smaller than this part of its scale is rounding
SINGULAR = 1e-9  # so is a direction of less than this part of the largest
_ONE = np.ones(())


def check_tied(functions: int) -> None:
    """Refuse more functions than can be solved together."""
    if functions > MOST_TIED:
        raise SizeError(
            f"uneven groups of levels and structural zeros tie {functions:,} functions of the tables, of at most {MOST_TIED:,}; "
            "measure fewer tables of these columns"
        )


@dataclass(frozen=True, eq=False)
class Group:
    """Shared components of a table that are correlated in its cells: the positions of their coefficients, G⁻¹, and what the table says of them.

    Both matrices are one number where nothing is correlated. `map` says of which combinations of the functions the coefficients are, where they are
    not of each; `nulls` are combinations of coefficients that impossible cells fix at 0.
    """

    choices: tuple[int, ...]
    positions: IntArray
    inverse: Floats
    information: Floats
    map: Floats | None
    nulls: Floats

    @property
    def simple(self) -> bool:
        """Whether it is one component, with the same noise on each of its functions."""
        return self.inverse.ndim == 0

    @classmethod
    def joined(cls, groups: Sequence["Group"]) -> "Group":
        """Several groups as one."""
        maps = [group.square(_ONE) if group.map is None else group.map for group in groups]
        return cls(
            tuple(number for group in groups for number in group.choices),
            np.concatenate([group.positions for group in groups]),
            block_diag(*(group.square(group.inverse) for group in groups)),
            block_diag(*(group.square(group.information) for group in groups)),
            block_diag(*maps) if any(group.map is not None for group in groups) else None,
            block_diag(*(group.nulls for group in groups)),
        )

    def square(self, matrix: Floats) -> Floats:
        """One of its matrices, written out."""
        return matrix if matrix.ndim else matrix * np.eye(len(self.positions))

    def seen(self, functions: Floats) -> Floats:
        """Functions (rows of them) as coefficients of the table."""
        return functions if self.map is None else functions @ self.map.T

    def told(self, coefficients: Floats) -> Floats:
        """The adjoint: coefficients as functions."""
        return coefficients if self.map is None else coefficients @ self.map

    @property
    def rank(self) -> int:
        """In how many directions the table sees it."""
        if self.simple:
            return len(self.positions) * bool(self.information)
        return int(np.linalg.matrix_rank(self.information, tol=NOTHING * np.abs(self.inverse).max()))

    @property
    def precision(self) -> Floats:
        """What a table with noise of variance 1 adds to the precision of the functions."""
        return self.information if self.map is None else self.map.T @ self.information @ self.map


def times(values: Floats, matrix: Floats) -> Floats:
    """Rows times a matrix, or a number that stands for one."""
    return values @ matrix if matrix.ndim else values * matrix


class Structure:
    """How shared components stand in the cells of tables of one form."""

    def __init__(self, sharing: Sharing, possible: Bools | None = None) -> None:
        self.resolutions, self.choices, self.possible = sharing.resolutions, sharing.choices, possible
        self.shape = tuple(one.cells for one in self.resolutions)
        columns = range(len(self.shape))
        self.places = tuple(p for p in columns if any(choice[p] for choice in self.choices))
        self._summed = tuple(p for p in columns if p not in self.places)
        self._others = prod(self.shape[place] for place in self._summed)
        self._inner = tuple(self.shape[place] for place in self.places)
        self._plain = tuple(p for p in self.places if self.resolutions[p].plain)
        self.groups = [self._group(sharing, numbers) for numbers in self._together()]

    def _together(self) -> list[tuple[int, ...]]:
        """Choices that are correlated: all of them where cells are impossible, else those that agree on plain columns."""
        groups: dict[Choice, list[int]] = defaultdict(list)
        for number, choice in enumerate(self.choices):
            groups[tuple(choice[p] for p in self._plain) if self.possible is None else ()].append(number)
        return [tuple(group) for group in groups.values()]

    def _positions(self, choice: Choice) -> IntArray:
        numbers = np.arange(prod(self._inner)).reshape(self._inner)
        return numbers[tuple(self.resolutions[p].rows[choice[p]] for p in self.places)].ravel()

    def _group(self, sharing: Sharing, numbers: tuple[int, ...]) -> Group:
        choices = [self.choices[number] for number in numbers]
        positions = np.concatenate([self._positions(choice) for choice in choices])
        nulls = np.zeros((0, len(positions)))
        if self.possible is None and self._plain == self.places:
            lengths = (self.resolutions[p].length(choices[0][p]) for p in self.places)
            inverse = 1 / np.array(float(self._others * prod(lengths)))
            information = inverse * all(choices[0][p] for p in sharing.contrasts)
        else:
            check_tied(len(positions))
            inverse, nulls = _inverse(self._gram(positions), self.possible is not None)
            information = inverse
            if sharing.contrasts:
                information = inverse @ self._gram(positions, sharing.contrasts) @ inverse
        if sharing.centred and not any(choices[0]):
            total = np.zeros_like(inverse)
            total.flat[0] = 1 / prod(self.shape)
            left = inverse - total
            information = np.where(np.abs(left) < NOTHING * inverse.flat[0], 0.0, left)
        crossed = any(
            self.resolutions[p].maps[choice[p]] is not None for choice in choices for p in self.places
        )
        maps = block_diag(*map(self._map, choices)) if crossed else None
        return Group(numbers, positions, inverse, np.asarray(information), maps, nulls)

    def _map(self, choice: Choice) -> Floats:
        """Which combinations of a component's functions this table sees."""
        every: Floats = np.eye(1)
        for place in self.places:
            resolution, band = self.resolutions[place], choice[place]
            own, rows = resolution.maps[band], resolution.rows[band]
            every = np.asarray(np.kron(every, np.eye(rows.stop - rows.start) if own is None else own))
        return every

    def _gram(self, positions: IntArray, contrasts: Iterable[int] = ()) -> Floats:
        """The inner products of functions over the possible cells of the table; along contrasts, of functions less their means."""
        if self.possible is not None:
            step = max(1, PART // prod(self.shape))
            parts = (positions[start : start + step] for start in range(0, len(positions), step))
            return np.vstack([self.coefficients(self.functions(some))[:, positions] for some in parts])
        gram = np.full((len(positions),) * 2, float(self._others))
        for place, index in zip(self.places, np.unravel_index(positions, self._inner), strict=True):
            products = self.resolutions[place].products
            if place in contrasts:
                products = products - np.outer(products[:, 0], products[0]) / self.shape[place]
                products[np.abs(products) < NOTHING * self.shape[place]] = 0.0
            gram *= products[np.ix_(index, index)]
        return gram

    def functions(self, positions: IntArray, weights: Floats | None = None) -> Floats:
        """Functions of shared components, or rows of weighted sums of them, written out in the cells of the table."""
        weights = np.eye(len(positions)) if weights is None else weights
        coefficients = np.zeros((len(weights), prod(self._inner)))
        coefficients[:, positions] = weights
        return self.cells(coefficients)

    def coefficients(self, values: Floats) -> Floats:
        """F y of a stack of tables: all coefficients on the columns that are shared, a row for each table."""
        if self.possible is not None:
            values = np.where(self.possible, values, 0.0)
        inner = values.sum(axis=tuple(1 + place for place in self._summed)) if self._summed else values
        for number, place in enumerate(self.places):
            inner = self.resolutions[place].transform(inner, 1 + number)
        return inner.reshape(len(values), -1)

    def cells(self, coefficients: Floats) -> Floats:
        """Fᵀ of rows of coefficients: a stack of tables."""
        inner = coefficients.reshape(-1, *self._inner)
        for number, place in enumerate(self.places):
            inner = self.resolutions[place].combine(inner, 1 + number)
        shaped = inner.reshape(-1, *(n if p in self.places else 1 for p, n in enumerate(self.shape)))
        whole = np.broadcast_to(shaped, (len(inner), *self.shape))
        return whole if self.possible is None else whole * self.possible


def _inverse(gram: Floats, singular: bool) -> tuple[Floats, Floats]:
    """The inverse on the directions that have one, and the others; only impossible cells make functions dependent."""
    if not singular:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        inverse[np.abs(inverse) < NOTHING * np.abs(inverse).max()] = 0.0
        return inverse, np.zeros((0, len(gram)))
    values, vectors = np.linalg.eigh(gram)
    real = values > SINGULAR * values.max(initial=1.0)
    return (vectors[:, real] / values[real]) @ vectors[:, real].T, vectors[:, ~real].T
