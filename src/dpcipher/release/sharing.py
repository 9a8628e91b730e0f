"""Sharing: the components that tables have in common, and which tables have each.

A component is one choice of bands (`bands`) of some columns, the total being the choice of none; its functions are products of theirs. Two tables share exactly
the components that both see.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dpcipher.errors import SizeError
from dpcipher.release.bands import IntArray, Partition, Resolution, column_bands, common_functions
from dpcipher.tables.domain import Bools, Domain
from dpcipher.tables.query import Groups, Query

Choice = tuple[int, ...]  # for each column of a table one of the bands that it sees, 0 for the constant
Bands = tuple[
    int, ...
]  # the bands that a table sees of a column, numbered over all columns; -1 for the constant
Column = tuple[Resolution, Bands]

_NONE: frozenset[int] = frozenset()
_WIDE = 2**12  # a table of more components is compared with all others instead of going through them
_MOST_SHARED = 2**22


class Form(NamedTuple):
    """How queries see their columns, and which of these, by place, they ask contrasts of."""

    resolutions: tuple[Resolution, ...]
    contrasts: frozenset[int]
    centred: bool


@dataclass(frozen=True, eq=False)
class Sharing:
    """Queries of one form that share the same components, as choices of bands."""

    form: Form
    choices: tuple[Choice, ...]
    numbers: IntArray  # of the queries
    components: IntArray  # queries by choices: the numbers of the components


@dataclass(frozen=True, eq=False)
class _Kind:
    """Queries of one form, the components that they may share, and the bands that each of them sees."""

    form: Form
    choices: list[Choice]
    needed: bool  # whether all components are, shared or not
    numbers: list[int]
    bands: list[list[Bands]]

    @property
    def keys(self) -> IntArray:
        """Queries by choices by columns: the bands of a component, the constant ones first."""
        choices = np.array(self.choices, dtype=np.intp).reshape(len(self.choices), -1)
        keys = np.empty((len(self.bands), *choices.shape), dtype=np.intp)
        for place in range(choices.shape[1]):
            column = np.array([bands[place] for bands in self.bands], dtype=np.intp)
            keys[:, :, place] = column[:, choices[:, place]]
        keys.sort(axis=-1)
        return keys


class Components:
    """The components that some queries share, by number, the total first; it follows from the queries alone."""

    def __init__(self, domain: Domain, queries: Sequence[Query], needed: Sequence[bool]) -> None:
        """All components of a query that is `needed` are there, shared or not."""
        self.domain = domain
        self._band_sizes: list[int] = []
        self._several = False  # whether some band is one of several columns
        self._columns = self._read_columns(Counter(pair for query in queries for pair in _forms(query)))
        kinds = list(self._kinds(queries, needed))
        ids, keys = _numbered([kind.keys for kind in kinds], len(self._band_sizes))
        shared = np.bincount(np.concatenate([one.ravel() for one in ids])) > 1
        shared[0] = True
        for kind, own in zip(kinds, ids, strict=True):
            shared[own] |= kind.needed
        self._keys = keys[shared]
        self.sizes: IntArray = np.array([*self._band_sizes, 1])[self._keys].prod(axis=1)
        self.starts: IntArray = np.cumsum(self.sizes) - self.sizes  # among all functions
        parts = (_sharings(kind, own, shared) for kind, own in zip(kinds, ids, strict=True))
        self.sharings = list(chain.from_iterable(parts))

    def _read_columns(
        self, used: Counter[tuple[int, Groups | None]]
    ) -> dict[tuple[int, Groups | None], Column]:
        """What each column is seen as in each of its forms, and the numbers of the bands."""
        columns: dict[int, dict[Partition, tuple[int, Groups | None]]] = defaultdict(dict)
        common = common_functions(self.domain) if self.domain.zeros else {}
        several: dict[int, list[int]] = {}
        for axis, groups in used:
            of = tuple(range(self.domain.sizes[axis])) if groups is None else groups.of
            columns[axis][of] = axis, groups
        found = {}
        for axis, pairs in sorted(columns.items()):
            order = tuple(sorted(pairs, key=lambda of: (-used[pairs[of]], -max(of), of)))
            blocks = common.get(axis, {})
            functions = tuple((of, functions) for of, (_, functions) in blocks.items())
            resolutions, sizes, shared = column_bands(self.domain.sizes[axis], order, functions)
            numbers = [-1, *range(len(self._band_sizes), len(self._band_sizes) + len(sizes) - 1)]
            self._band_sizes += sizes[1:]
            for of, bands in shared.items():
                first = several.setdefault(blocks[of][0], [numbers[band] for band in bands])
                for band, number in zip(bands, first, strict=True):
                    numbers[band] = number
            for of, resolution in resolutions.items():
                found[pairs[of]] = resolution, tuple(numbers[band] for band in resolution.bands)
        self._several = bool(several)
        return found

    def _kinds(self, queries: Sequence[Query], needed: Sequence[bool]) -> Iterator[_Kind]:
        kinds: dict[Any, list[int]] = defaultdict(list)
        seen = [[self._columns[pair] for pair in _forms(query)] for query in queries]
        for number, (query, columns) in enumerate(zip(queries, seen, strict=True)):
            offered = _once(columns) if self._several else None
            ids = tuple([id(one) for one, _ in columns])
            contrasts = frozenset(map(query.axes.index, query.contrasts)) if query.contrasts else _NONE
            kinds[ids, contrasts, query.centred, needed[number], offered].append(number)
        for (_, contrasts, centred, need, _), numbers in kinds.items():
            columns = seen[numbers[0]]
            offered = _once(columns)
            wide = not need and prod(map(len, offered)) > max(_WIDE, len(queries))
            for some in ([number] for number in numbers) if wide else [numbers]:
                bands = [[own for _, own in seen[number]] for number in some]
                others = chain(seen[: some[0]], seen[some[0] + 1 :])
                choices = _overlaps(bands[0], offered, others) if wide else product(*offered)
                form = Form(tuple(one for one, _ in columns), contrasts, centred)
                yield _Kind(form, list(choices), need, some, bands)

    def named(self, component: int) -> str:
        """The columns of a component as a person reads them."""
        key = {*self._keys[component].tolist()} - {-1}
        axes = {axis for (axis, _), (_, bands) in self._columns.items() if key & set(bands)}
        return self.domain.named(tuple(sorted(axes)))


def _forms(query: Query) -> Iterable[tuple[int, Groups | None]]:
    """The columns of a query, each with its groups."""
    return zip(query.axes, query.forms, strict=True)


def _once(columns: Iterable[Column]) -> tuple[Choice, ...]:
    """The bands of each column that no earlier column has: on possible cells they are the same functions."""
    earlier: set[int] = set()
    offered = []
    for _, bands in columns:
        offered.append(tuple(n for n, band in enumerate(bands) if band < 0 or band not in earlier))
        earlier.update(bands)
    return tuple(offered)


def _overlaps(
    bands: list[Bands], offered: Sequence[Choice], others: Iterable[list[Column]]
) -> Iterable[Choice]:
    """The components of a wide table that some other table sees, too."""
    overlaps: set[tuple[Choice, ...]] = {((0,),) * len(bands)}
    for columns in others:
        held = {-1, *chain.from_iterable(own for _, own in columns)}
        kept = zip(bands, offered, strict=True)
        overlaps.add(tuple(tuple(n for n in some if own[n] in held) for own, some in kept))
    if sum(prod(map(len, one)) for one in overlaps) > _MOST_SHARED:
        raise SizeError("the tables share too many sets of columns; measure tables of fewer columns")
    return sorted(set(chain.from_iterable(product(*one) for one in overlaps)))


def _numbered(blocks: Sequence[IntArray], bands: int) -> tuple[list[IntArray], IntArray]:
    """A number for each component of each query, the same for the same bands, and the bands of each number."""
    ids: IntArray = np.zeros(sum(prod(block.shape[:2]) for block in blocks), dtype=np.intp)
    width = max(block.shape[2] for block in blocks)
    keys: IntArray = np.zeros((1, 0), dtype=np.intp)
    for place in range(-width, 0):
        column = [
            block[:, :, place].ravel() if -place <= block.shape[2] else np.full(prod(block.shape[:2]), -1)
            for block in blocks
        ]
        found, ids = np.unique(ids * (bands + 1) + np.concatenate(column) + 1, return_inverse=True)
        keys = np.column_stack([keys[found // (bands + 1)], found % (bands + 1) - 1])
    stops = np.cumsum([prod(block.shape[:2]) for block in blocks])[:-1]
    parts = zip(blocks, np.split(ids, stops), strict=True)
    return [part.reshape(block.shape[:2]) for block, part in parts], keys


def _sharings(kind: _Kind, ids: IntArray, shared: Bools) -> Iterator[Sharing]:
    """The queries of a kind, those that share the same components together."""
    numbers = np.cumsum(shared) - 1
    patterns: dict[bytes, list[int]] = defaultdict(list)
    for row, pattern in enumerate(map(bytes, shared[ids])):
        patterns[pattern].append(row)
    for rows in patterns.values():
        held = shared[ids[rows[0]]]
        choices = tuple(choice for choice, kept in zip(kind.choices, held, strict=True) if kept)
        yield Sharing(kind.form, choices, np.array(kind.numbers)[rows], numbers[ids[rows][:, held]])
