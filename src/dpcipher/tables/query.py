"""Queries: linear questions about a table, each answered by an array of numbers.

A `Query` is a table of some columns. Every column enters in one of three forms: by its levels, in groups of levels, or by contrasts, which say how its
cells differ and nothing of their sum. A `Combination` adds up cells of several such tables: slots that are pooled, weighted counts, differences.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.groups import span
from dpcipher.errors import WorkloadError
from dpcipher.tables.domain import Axes, Floats, Shape
from dpcipher.tables.table import margin


@dataclass(frozen=True)
class Groups:
    """Levels put together: the number of the group that each level is in, and what the groups are called, where they have names.

    Groups are numbered in the order of their first levels. They are runs where levels of one group follow one another.

    >>> Groups.runs([0, 2], 5).of
    (0, 0, 1, 1, 1)
    >>> Groups.of_lists([[0, 3], [1, 2]], 4).merge(np.array([5, 1, 2, 7]), 0).tolist()
    [12, 3]
    """

    of: tuple[int, ...]
    names: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        firsts = list(dict.fromkeys(self.of))
        if not self.of or firsts != list(range(len(firsts))):
            raise WorkloadError("groups must be numbered in the order of their first levels, from 0")
        if self.names and len(self.names) != len(firsts):
            raise WorkloadError(f"names of groups must be {len(firsts)}, one for each group")

    @classmethod
    def runs(cls, starts: Sequence[int], levels: int) -> "Groups":
        """Groups of levels that follow one another; each begins at one of `starts`."""
        if not starts or starts[0] != 0 or list(starts) != sorted(set(starts)) or starts[-1] >= levels:
            raise WorkloadError(
                f"starts ({list(starts)!s:.60}) of runs must ascend from level 0, below the number of levels ({levels})"
            )
        return cls(tuple((np.searchsorted(starts, np.arange(levels), "right") - 1).tolist()))

    @classmethod
    def of_lists(cls, lists: Sequence[Sequence[int]], levels: int, names: Sequence[str] = ()) -> "Groups":
        """Groups that list their levels by number, each level once."""
        if sorted(level for levels in lists for level in levels) != list(range(levels)):
            raise WorkloadError(f"groups must hold each of the {levels} levels once")
        order = sorted(range(len(lists)), key=lambda group: min(lists[group], default=levels))
        of = {level: number for number, group in enumerate(order) for level in lists[group]}
        return cls(
            tuple(of[level] for level in range(levels)), tuple(names[group] for group in order if names)
        )

    @classmethod
    def crossed(cls, several: Sequence["Groups | None"]) -> "Groups | None":
        """The coarsest groups that lie inside those of each of several; None where these are the levels.

        >>> Groups.crossed([Groups.runs([0, 2], 4), Groups.runs([0, 3], 4)]).of
        (0, 0, 1, 2)
        """
        kept = [groups.of for groups in several if groups is not None]
        if len(kept) < len(several) or not kept:
            return None
        numbers: dict[tuple[int, ...], int] = {}
        of = tuple(numbers.setdefault(cell, len(numbers)) for cell in zip(*kept, strict=True))
        return None if len(numbers) == len(of) else cls(of)

    @cached_property
    def size(self) -> int:
        """How many groups there are."""
        return 1 + max(self.of)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first level of each group."""
        return tuple(self.of.index(group) for group in range(self.size))

    @cached_property
    def are_runs(self) -> bool:
        """Whether the levels of every group follow one another."""
        return list(self.of) == sorted(self.of)

    @cached_property
    def _order(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The levels, one group after another, and where each group begins among them."""
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(np.array(self.of)[order], np.arange(self.size))

    def merge(self, values: NDArray[Any], place: int) -> NDArray[Any]:
        """The sums over each group, along one dimension."""
        order, starts = self._order
        ordered = values if self.are_runs else values.take(order, axis=place)
        return np.asarray(np.add.reduceat(ordered, starts, axis=place))

    def spread(self, values: NDArray[Any], place: int) -> NDArray[Any]:
        """What each group has, for every one of its levels."""
        return np.asarray(values.take(np.array(self.of), axis=place))

    def labels(self, levels: Sequence[str]) -> list[str]:
        """What the groups are called: by their names, or by the labels of their levels.

        >>> Groups.runs([0, 2, 3], 5).labels(["0..4", "5..9", "10..14", "15", "not known"])
        ['0..9', '10..14', '15 – not known']
        >>> Groups.of_lists([[0, 3], [1], [2, 4]], 5).labels(["AL", "CA", "NV", "NY", "TX"])
        ['AL, NY', 'CA', 'NV, TX']
        """
        if self.names:
            return list(self.names)
        if self.are_runs:
            ends = [*self.starts[1:], len(levels)]
            return [
                span(levels[start], levels[end - 1]) for start, end in zip(self.starts, ends, strict=True)
            ]
        held: list[list[str]] = [[] for _ in range(self.size)]
        for level, group in zip(levels, self.of, strict=True):
            held[group].append(level)
        return [", ".join(group) for group in held]

    def within(self, other: "Groups | None") -> bool:
        """Whether each group of `other` (None: each level) lies inside one group of these."""
        return other is None or len(set(zip(self.of, other.of, strict=True))) == other.size


@dataclass(frozen=True)
class Query:
    """The table of some columns, by number and ascending.

    `groups` has for each column None, for every level by itself, or the groups that its levels are in; it is empty where no column has groups. Of the
    columns in `contrasts` only differences are asked: K·count less the sum of all K cells along that column. Where `centred`, the whole table is asked
    so: K·count less the sum of all its K cells. A column in a single group is left out.

    >>> Query((0, 1), (Groups.runs([0, 2], 3), None)).apply(np.array([[1, 2], [3, 4], [5, 6]]), (0, 1)).tolist()
    [[4, 6], [5, 6]]
    """

    axes: Axes
    groups: tuple[Groups | None, ...] = ()
    contrasts: Axes = ()
    centred: bool = False

    def __post_init__(self) -> None:
        if list(self.axes) != sorted(set(self.axes)) or not set(self.contrasts) <= set(self.axes):
            raise WorkloadError(f"axes {self.axes} must ascend, and contrasts {self.contrasts} be among them")
        if self.centred and self.contrasts:
            raise WorkloadError("a query may be centred or have contrasts, not both")
        if self.groups:
            self._simplify()

    def _simplify(self) -> None:
        if len(self.groups) != len(self.axes):
            raise WorkloadError(f"groups must be {len(self.axes)}, one for each axis, None for every level")
        if not any(self.groups):
            object.__setattr__(self, "groups", ())
            return
        kept = [(a, g) for a, g in zip(self.axes, self.groups, strict=True) if g is None or g.size > 1]
        groups = tuple(None if g is None or g.size == len(g.of) else g for _, g in kept)
        object.__setattr__(self, "axes", tuple(axis for axis, _ in kept))
        object.__setattr__(self, "groups", groups if any(groups) else ())
        object.__setattr__(self, "contrasts", tuple(a for a in self.contrasts if a in self.axes))

    @property
    def forms(self) -> tuple[Groups | None, ...]:
        """For each column its groups; None for every level."""
        return self.groups or (None,) * len(self.axes)

    @property
    def columns(self) -> tuple[tuple[int, Groups | None], ...]:
        """Each column with its groups; None for every level."""
        return tuple(zip(self.axes, self.forms, strict=True))

    def shape(self, sizes: Shape) -> Shape:
        """How many cells there are along each column; `sizes` are the numbers of levels of all columns."""
        if not self.groups:
            return tuple(sizes[axis] for axis in self.axes)
        return tuple(sizes[axis] if groups is None else groups.size for axis, groups in self.columns)

    def plain(self) -> "Query":
        """The counts behind contrasts or a centred table."""
        return Query(self.axes, self.groups)

    def refines(self, other: "Query") -> bool:
        """Whether every cell of another query is a sum of cells of this one."""
        held = dict(self.columns)
        return all(
            axis in held and (held[axis] is None or (groups is not None and groups.within(held[axis])))
            for axis, groups in other.columns
        )

    def of_cells(self, finer: "Query") -> "Query":
        """Its sums as those of the cells of a finer query, which stand in the place of levels."""
        held, forms = dict(finer.columns), list(self.forms)
        for place, (axis, groups) in enumerate(self.columns):
            fine = held[axis]
            if groups is not None and fine is not None:
                forms[place] = Groups(tuple(groups.of[level] for level in fine.starts))
        return Query(self.axes, tuple(forms))

    def apply(self, table: NDArray[Any], axes: Axes) -> NDArray[Any]:
        """The exact answer, from a table on `axes` with every level."""
        return self.contrast(self.merge(margin(table, axes, self.axes)))

    def merge(self, values: NDArray[Any], first: int = 0) -> NDArray[Any]:
        """Counts of levels summed in its groups; dimensions before `first` number tables."""
        for place, groups in enumerate(self.groups, start=first):
            values = values if groups is None else groups.merge(values, place)
        return values

    def spread(self, values: NDArray[Any], first: int = 0) -> NDArray[Any]:
        """What each group has, for every one of its levels."""
        for place, groups in enumerate(self.groups, start=first):
            values = values if groups is None else groups.spread(values, place)
        return values

    def contrast(self, values: NDArray[Any]) -> NDArray[Any]:
        """Counts of its cells as the query asks for them: as they are, less their sum, or along each contrast.

        Whole counts are limited so that no product or sum leaves int64, which moves no answer further than a row does.
        """
        if not (self.centred or self.contrasts):
            return values
        if values.dtype.kind == "i":
            most = 2**62 // (values.size << values.ndim)
            values = np.clip(values, -most, most)
        if self.centred:
            return np.asarray(values.size * values - values.sum())
        for place, axis in enumerate(self.axes):
            if axis in self.contrasts:
                values = values.shape[place] * values - values.sum(axis=place, keepdims=True)
        return values

    def less_means(self, values: Floats, first: int = 0) -> Floats:
        """Counts less what it does not ask for: their mean where it is centred, their means along its contrasts; its own transpose."""
        if self.centred:
            flat = values.reshape(*values.shape[:first], -1)
            return np.asarray(flat - flat.mean(axis=-1, keepdims=True)).reshape(values.shape)
        for place, axis in enumerate(self.axes, start=first):
            if axis in self.contrasts:
                values = values - values.mean(axis=place, keepdims=True)
        return values

    def moved(self, sizes: Shape, relation: str) -> tuple[int, int]:
        """How far one row moves the answer, in L1 and squared L2: a row that is added or removed, or one that is replaced.

        Cells do not overlap, so a row moves one count by 1. A contrast along K cells moves K - 1 in one of them and 1 in the others, which is K(K - 1) in
        squared L2. A row that is replaced moves two such vectors apart, furthest where they differ along the shortest contrast alone or along a column
        without one. A table of one cell that is centred is asked as if it moved.
        """
        replaced, shape = relation == "replace", self.shape(sizes)
        if self.centred:
            n = prod(shape)
            return (2 * n, 2 * n * n) if replaced else (max(2 * (n - 1), 1), max(n * (n - 1), 1))
        lengths = [n for axis, n in zip(self.axes, shape, strict=True) if axis in self.contrasts]
        once = prod(max(2 * (n - 1), 1) for n in lengths), prod(max(n * (n - 1), 1) for n in lengths)
        if not replaced:
            return once
        apart = (2 * once[0], 2 * once[1]) if len(lengths) < len(shape) or not lengths else (0, 0)
        return max(apart[0], _furthest_l1(lengths)), max(apart[1], _furthest_l2_squared(lengths))


def _furthest_l1(lengths: Sequence[int]) -> int:
    """The largest L1 distance of two rows that differ along contrasts of these lengths alone."""
    most = 0
    for differs in product((False, True), repeat=len(lengths)):
        along = [n for n, differ in zip(lengths, differs, strict=True) if differ]
        same = prod(max(2 * (n - 1), 1) for n, differ in zip(lengths, differs, strict=True) if not differ)
        # Along each column two cells are one row's and the other's, n - 2 are neither's: value here, value there, how many.
        kinds = [((n - 1, -1, 1), (-1, n - 1, 1), (-1, -1, n - 2)) for n in along]
        gaps = (
            abs(prod(k[0] for k in cell) - prod(k[1] for k in cell)) * prod(k[2] for k in cell)
            for cell in product(*kinds)
        )
        most = max(most, same * sum(gaps)) if along else most
    return most


def _furthest_l2_squared(lengths: Sequence[int]) -> int:
    """The same in squared L2: 2·∏K(K - 1)·(1 + 1/(K - 1)) for the least K, which is 2K² times the others."""
    if not lengths or max(lengths) < 2:
        return 0
    least = min(n for n in lengths if n > 1)
    others = list(lengths)
    others.remove(least)
    return 2 * least**2 * prod(max(n * (n - 1), 1) for n in others)


@dataclass(frozen=True, eq=False)
class Combination:
    """Sums of cells of several tables: the matrix of each term times the flat answer to its query, added up."""

    terms: tuple[tuple[Query, Floats], ...]
    groups: ClassVar[tuple[()]] = ()
    contrasts: ClassVar[tuple[()]] = ()
    centred: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.terms or len({matrix.shape[:1] for _, matrix in self.terms}) != 1:
            raise WorkloadError("terms must be at least one, with matrices of equally many rows")
        if any(query.centred or query.contrasts for query, _ in self.terms):
            raise WorkloadError("terms must be counts; put contrasts into the matrices")

    @property
    def axes(self) -> Axes:
        """The columns of all terms."""
        return tuple(sorted({axis for query, _ in self.terms for axis in query.axes}))

    def shape(self, sizes: Shape) -> Shape:
        """How many sums there are."""
        return self.terms[0][1].shape[:1]

    def apply(self, table: NDArray[Any], axes: Axes) -> NDArray[Any]:
        """The exact answer, from a table on `axes` with every level."""
        return np.asarray(sum(matrix @ query.apply(table, axes).ravel() for query, matrix in self.terms))

    def moved(self, sizes: Shape, relation: str) -> tuple[int, int]:
        """How far one row moves the answer, at most, in L1 and squared L2: the largest columns of the matrices, added up."""
        l1 = sum(float(np.abs(matrix).sum(axis=0).max()) for _, matrix in self.terms)
        l2 = sum(float((matrix**2).sum(axis=0).max() ** 0.5) for _, matrix in self.terms)
        times = 2 if relation == "replace" else 1
        return int(np.ceil(times * l1)), int(np.ceil(round((times * l2) ** 2, 9)))


def outer(vectors: Sequence[Floats]) -> Floats:
    """The product of one vector for each column, as a table."""
    return reduce(np.multiply.outer, vectors, np.ones(()))
