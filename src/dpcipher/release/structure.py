"""Structures: how the components that tables share stand in their cells.

A table with counts y reads its shared components as f = F y, with covariance v G, G = F Fᵀ, where v is the variance of its noise. Where its columns are plain,
G is a number for each component. Components that are correlated in its cells are one group: those of uneven groups of levels with the total, all of a table
with impossible cells.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from scipy.linalg import block_diag

from dpcipher.errors import SizeError
from dpcipher.release.sharing import Choice, Form, IntArray
from dpcipher.tables.domain import Bools, Floats
from dpcipher.tables.table import PART

MOST_TIED = 5_000  # functions that are solved together
NOTHING = 1e-12  # what is smaller than this part of its scale is rounding
SINGULAR = 1e-9  # so is a direction of less than this part of the largest


def check_tied(functions: int) -> None:
    """Refuse more functions than can be solved together."""
    if functions > MOST_TIED:
        raise SizeError(
            f"uneven groups of levels and structural zeros tie {functions:,} functions of the tables, of at most {MOST_TIED:,}; "
            "measure fewer tables of these columns"
        )


@dataclass(frozen=True, eq=False)
class Group:
    """Shared components of a table that are correlated in its cells: where its coefficients of them stand, G⁻¹, and what it says of them.

    `map` says of which combinations of the functions the coefficients are, where they are not of each; `nulls` are combinations of coefficients that
    impossible cells fix at 0.
    """

    choices: tuple[int, ...]
    slots: IntArray
    inverse: Floats
    information: Floats
    map: Floats | None
    nulls: Floats

    @classmethod
    def joined(cls, groups: Sequence["Group"]) -> "Group":
        """Several groups as one."""
        maps = [np.eye(len(group.slots)) if group.map is None else group.map for group in groups]
        return cls(
            tuple(number for group in groups for number in group.choices),
            np.concatenate([group.slots for group in groups]),
            block_diag(*(group.inverse for group in groups)),
            block_diag(*(group.information for group in groups)),
            block_diag(*maps) if any(group.map is not None for group in groups) else None,
            block_diag(*(group.nulls for group in groups)),
        )

    def seen(self, functions: Floats) -> Floats:
        """Functions (rows of them) as coefficients of the table."""
        return functions if self.map is None else functions @ self.map.T

    def told(self, coefficients: Floats) -> Floats:
        """The adjoint: coefficients as functions."""
        return coefficients if self.map is None else coefficients @ self.map

    @cached_property
    def rank(self) -> int:
        """In how many directions the table sees it."""
        return int(np.linalg.matrix_rank(self.information, tol=NOTHING * np.abs(self.inverse).max()))

    @property
    def precision(self) -> Floats:
        """What a table with noise of variance 1 adds to the precision of the functions."""
        return self.information if self.map is None else self.map.T @ self.information @ self.map


class Structure:
    """How shared components, choices of bands of the columns, stand in the cells of tables of one form.

    Coefficients stand in slots, those of one component after those of another; `owner` is the place of the component of each. Where the structure is
    `plain`, `inverse` and `information` have a number for each component, and there are no groups.
    """

    def __init__(self, form: Form, choices: tuple[Choice, ...], possible: Bools | None = None) -> None:
        self.form, self.choices, self.possible = form, choices, possible
        self.shape = tuple(one.cells for one in form.resolutions)
        columns = range(len(self.shape))
        self._places = tuple(p for p in columns if any(choice[p] for choice in choices))
        self._summed = tuple(p for p in columns if p not in self._places)
        self._others = prod(self.shape[place] for place in self._summed)
        self._inner = tuple(self.shape[place] for place in self._places)
        numbers = np.arange(prod(self._inner)).reshape(self._inner)
        parts = [numbers[tuple(self._rows(choice))].ravel() for choice in choices]
        self._positions: IntArray = np.concatenate(parts)
        self.owner: IntArray = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self.plain = possible is None and all(form.resolutions[p].plain for p in self._places)
        self.inverse = self.information = np.zeros(len(choices))
        if self.plain:
            lengths = [prod(self._lengths(choice)) for choice in choices]
            self.inverse = 1 / (self._others * np.array(lengths))
            told = [self._is_told(choice) for choice in choices]
            self.information = np.where(told, self.inverse, 0.0)
        self.groups = [] if self.plain else [self._group(numbers) for numbers in self._together()]

    def _rows(self, choice: Choice) -> Iterable[slice]:
        return (self.form.resolutions[p].rows[choice[p]] for p in self._places)

    def _lengths(self, choice: Choice) -> Iterable[float]:
        return (self.form.resolutions[p].lengths[choice[p]] for p in self._places)

    def _is_told(self, choice: Choice) -> bool:
        """Whether a table says anything of a component: a centred one nothing of the total, contrasts nothing of what is constant along them."""
        return all(choice[p] for p in self.form.contrasts) and not (self.form.centred and not any(choice))

    def _together(self) -> list[tuple[int, ...]]:
        """Choices that are correlated: all of them where cells are impossible, else those that agree on plain columns."""
        plain = [p for p in self._places if self.form.resolutions[p].plain and self.possible is None]
        groups: dict[Choice, list[int]] = defaultdict(list)
        for number, choice in enumerate(self.choices):
            groups[tuple(choice[p] for p in plain)].append(number)
        return [tuple(group) for group in groups.values()]

    def _group(self, numbers: tuple[int, ...]) -> Group:
        slots = np.concatenate([np.flatnonzero(self.owner == number) for number in numbers])
        check_tied(len(slots))
        inverse, nulls = _inverse(self._gram(slots), self.possible is not None)
        information = inverse
        if self.form.contrasts:
            information = inverse @ self._gram(slots, self.form.contrasts) @ inverse
        if self.form.centred and not any(self.choices[numbers[0]]):
            total = np.zeros_like(inverse)
            total.flat[0] = 1 / prod(self.shape)
            left = inverse - total
            information = np.where(np.abs(left) < NOTHING * inverse.flat[0], 0.0, left)
        choices, resolutions = [self.choices[number] for number in numbers], self.form.resolutions
        crossed = any(resolutions[p].maps[choice[p]] is not None for choice in choices for p in self._places)
        whole = block_diag(*map(self._map, choices)) if crossed else None
        return Group(numbers, slots, inverse, information, whole, nulls)

    def alone(self, numbers: Sequence[int]) -> Group:
        """Some components of a plain structure as a group: correlated not in the cells of this table, but in others."""
        slots = np.flatnonzero(np.isin(self.owner, numbers))
        inverse, information = (np.diag(one[self.owner[slots]]) for one in (self.inverse, self.information))
        return Group(tuple(numbers), slots, inverse, information, None, np.zeros((0, len(slots))))

    def _map(self, choice: Choice) -> Floats:
        """Which combinations of a component's functions this table sees."""
        every: Floats = np.eye(1)
        for place, rows in zip(self._places, self._rows(choice), strict=True):
            own = self.form.resolutions[place].maps[choice[place]]
            every = np.asarray(np.kron(every, np.eye(rows.stop - rows.start) if own is None else own))
        return every

    def _gram(self, slots: IntArray, contrasts: Iterable[int] = ()) -> Floats:
        """The inner products of functions over the possible cells of the table; along contrasts, of functions less their means."""
        if self.possible is not None:
            step = max(1, PART // prod(self.shape))
            parts = (slots[start : start + step] for start in range(0, len(slots), step))
            return np.vstack([self.read(self.functions(some))[:, slots] for some in parts])
        gram = np.full((len(slots),) * 2, float(self._others))
        indices = np.unravel_index(self._positions[slots], self._inner)
        for place, index in zip(self._places, indices, strict=True):
            products = self.form.resolutions[place].products
            if place in contrasts:
                products = products - np.outer(products[:, 0], products[0]) / self.shape[place]
                products[np.abs(products) < NOTHING * self.shape[place]] = 0.0
            gram *= products[np.ix_(index, index)]
        return gram

    @cached_property
    def whole(self) -> Group:
        """All components as one group."""
        return self.alone(range(len(self.choices))) if self.plain else Group.joined(self.groups)

    def times_inverse(self, coefficients: Floats) -> Floats:
        """Rows of coefficients times G⁻¹."""
        if self.plain:
            return coefficients * self.inverse[self.owner]
        turned = np.zeros_like(coefficients)
        for group in self.groups:
            turned[:, group.slots] = coefficients[:, group.slots] @ group.inverse
        return turned

    @cached_property
    def rank(self) -> int:
        """Of how many numbers a table says something."""
        return int(np.count_nonzero(self.information[self.owner])) + sum(group.rank for group in self.groups)

    def read(self, values: Floats) -> Floats:
        """F y of a stack of tables: the coefficients of shared components, a row for each table."""
        if self.possible is not None:
            values = np.where(self.possible, values, 0.0)
        inner = values.sum(axis=tuple(1 + place for place in self._summed)) if self._summed else values
        for number, place in enumerate(self._places):
            inner = self.form.resolutions[place].transform(inner, 1 + number)
        return inner.reshape(len(values), -1)[:, self._positions]

    def cells(self, coefficients: Floats) -> Floats:
        """Fᵀ of rows of coefficients: a stack of tables."""
        inner = np.zeros((len(coefficients), prod(self._inner)))
        inner[:, self._positions] = coefficients
        inner = inner.reshape(-1, *self._inner)
        for number, place in enumerate(self._places):
            inner = self.form.resolutions[place].combine(inner, 1 + number)
        shaped = inner.reshape(-1, *(n if p in self._places else 1 for p, n in enumerate(self.shape)))
        whole = np.broadcast_to(shaped, (len(inner), *self.shape))
        return whole if self.possible is None else whole * self.possible

    def functions(self, slots: IntArray, weights: Floats | None = None) -> Floats:
        """Functions of shared components, or rows of weighted sums of them, written out in the cells of the table."""
        weights = np.eye(len(slots)) if weights is None else weights
        coefficients = np.zeros((len(weights), len(self.owner)))
        coefficients[:, slots] = weights
        return self.cells(coefficients)


structure_of = lru_cache(maxsize=256)(Structure)


def _inverse(gram: Floats, singular: bool) -> tuple[Floats, Floats]:
    """The inverse on the directions that have one, and the others; only impossible cells make functions dependent."""
    if not singular:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        inverse[np.abs(inverse) < NOTHING * np.abs(inverse).max()] = 0.0
        return inverse, np.zeros((0, len(gram)))
    values, vectors = np.linalg.eigh(gram)
    real = values > SINGULAR * values.max(initial=1.0)
    return (vectors[:, real] / values[real]) @ vectors[:, real].T, vectors[:, ~real].T
