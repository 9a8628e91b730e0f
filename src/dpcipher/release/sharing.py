"""Sharing: the components that tables have in common, and which tables have each.

A component is one choice of bands of some columns, the total being the choice of none; its functions are products of theirs. Two tables share exactly
the components that both see.

Bands are the functions of a column's levels, sorted by which of its resolutions see them. A resolution sees the functions that are the same within each of its groups. Where some order of the
levels makes all groups runs, these functions are spanned by the constant and by one step for every cut between neighbours, and cuts are linearly
independent: a band holds the steps that the same resolutions have. Each resolution sees whole bands, and two tables share exactly those bands that both see.
Where groups cross, no such order need exist: the column then has one band beside the constant, and each resolution sees a linear map of it.

Structural zeros can make a function of one column that of another: "no work" is "no job" where each goes with the other. Such functions are bands of both
columns, and the same component wherever either column is measured.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations, product
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dpcipher.errors import SizeError
from dpcipher.tables.domain import Bools, Domain, Floats
from dpcipher.tables.query import Groups, Query

IntArray = NDArray[np.intp]
Partition = tuple[int, ...]  # the group that each level is in, as in `Groups.of`


@dataclass(frozen=True, eq=False)
class Resolution:
    """What one resolution of a column sees: as many functions at its cells as there are cells, one band after another and the constant first.

    `functions` is None where no other resolution of the column is measured: the functions are then those of a Householder reflection that takes the first
    cell to the constant, and are never written out. `maps` says which combination of a band of the column its own functions are; None where they are
    the band itself.
    """

    cells: int
    bands: tuple[int, ...]
    rows: tuple[slice, ...]  # the functions of each of these bands
    maps: tuple[Floats | None, ...]
    functions: Floats | None = None

    def transform(self, values: Floats, place: int) -> Floats:
        """The inner products of its functions with values at its cells, along one dimension."""
        if self.functions is None:
            turned = self._reflect(values, place)
            turned[(slice(None),) * place + (0,)] = values.sum(axis=place)  # exact, where counts are whole
            return turned
        return np.moveaxis(np.tensordot(self.functions, values, axes=(1, place)), 0, place)

    def combine(self, coefficients: Floats, place: int) -> Floats:
        """The adjoint: sums of its functions with some coefficients, at its cells."""
        if self.functions is None:
            scaled = coefficients.copy()
            scaled[(slice(None),) * place + (0,)] *= sqrt(self.cells)
            return self._reflect(scaled, place)
        return np.moveaxis(np.tensordot(self.functions, coefficients, axes=(0, place)), 0, place)

    def _reflect(self, values: Floats, place: int) -> Floats:
        """Values less twice their part along u = 1/√K - e₀."""
        first = (slice(None),) * place + (slice(0, 1),)
        part = values.sum(axis=place, keepdims=True) / sqrt(self.cells) - values[first]
        if self.cells == 1:
            return values.copy()
        step = part / (1 - 1 / sqrt(self.cells))  # 2/|u|² is 1/(1 - 1/√K)
        turned = np.asarray(values - step / sqrt(self.cells))
        turned[first] += step
        return turned

    @cached_property
    def lengths(self) -> list[float]:
        """The squared length of the first function of each of its bands."""
        if self.functions is None:
            return [float(self.cells), *[1.0] * (len(self.rows) - 1)]
        return [float((self.functions[rows.start] ** 2).sum()) for rows in self.rows]

    @cached_property
    def plain(self) -> bool:
        """Whether nothing is correlated in its cells, and the functions of each band have one length."""
        if self.functions is None:
            return True
        apart = np.abs(self.functions @ self.functions.T - self._apart).max()
        return bool(apart <= 1e-10 * max(self.lengths)) and all(one is None for one in self.maps)

    @cached_property
    def products(self) -> Floats:
        """The inner products of its functions."""
        if self.functions is None or self.plain:
            return self._apart
        return np.asarray(self.functions @ self.functions.T)

    @property
    def _apart(self) -> Floats:
        """The inner products of functions of these lengths where nothing is correlated."""
        return np.diag(np.repeat(self.lengths, [rows.stop - rows.start for rows in self.rows]))


# Levels in blocks, and functions of the blocks, by level.
Common = tuple[Partition, tuple[tuple[float, ...], ...]]
Found = tuple[dict[Partition, Resolution], tuple[int, ...], dict[Partition, tuple[int, ...]]]


@lru_cache(maxsize=1024)
def column_bands(levels: int, used: tuple[Partition, ...], common: tuple[Common, ...] = ()) -> Found:
    """What each of the resolutions of a column sees, how many functions each band has, and which bands are functions that other columns have, too.

    Resolutions that most tables have come first. Functions in `common` that cannot be bands by themselves are left out.

    >>> resolutions, sizes, _ = column_bands(4, ((0, 1, 2, 3), (0, 0, 1, 1)))
    >>> sizes, resolutions[0, 0, 1, 1].bands, resolutions[0, 1, 2, 3].plain
    ((1, 1, 2), (0, 1), True)
    """
    if len(used) == 1 and not common:
        (of,) = used
        cells = 1 + max(of)
        rows = (slice(0, 1), slice(1, cells)) if cells > 1 else (slice(0, 1),)
        whole = Resolution(cells, tuple(range(len(rows))), rows, (None,) * len(rows))
        return {of: whole}, (1, cells - 1)[: len(rows)], {}
    partitions = [*used, *(of for of, _ in common if of not in used)]
    order = np.lexsort(
        [np.array(of) for of in sorted(partitions, key=lambda of: (max(of), of), reverse=True)]
    )
    runs = all(len(set(of)) == 1 + np.count_nonzero(np.diff(np.array(of)[order])) for of in partitions)
    if runs:
        return _by_cuts(levels, used, dict(common), order)
    return column_bands(levels, used) if common else _crossed(levels, used)


def _by_cuts(
    levels: int,
    used: Sequence[Partition],
    common: Mapping[Partition, Sequence[Sequence[float]]],
    order: IntArray,
) -> Found:
    """Bands of resolutions whose groups are runs in some order of the levels."""
    cuts: dict[frozenset[Partition], list[int]] = defaultdict(list)
    for place in range(1, levels):
        having = frozenset(of for of in {*used, *common} if of[order[place]] != of[order[place - 1]])
        if having & set(used):
            cuts[having].append(place)
    rank = {of: place for place, of in enumerate(used)}
    bands: list[tuple[frozenset[Partition], Floats]] = [(frozenset(used), np.ones((1, levels)))]
    shared: dict[Partition, tuple[int, ...]] = {}
    for having in sorted(cuts, key=lambda one: (-len(one), cuts[one])):
        block = next((of for of in common if of in having and max(of) == len(cuts[having])), None)
        if block is not None:
            shared[block] = tuple(range(len(bands), len(bands) + len(common[block])))
            bands += [(having, np.array([function])) for function in common[block]]
            continue
        # Orthonormal in the cells of the resolution that most tables have: nothing is correlated there.
        of = min(having & set(used), key=lambda one: rank[one])
        below = [functions for seen, functions in bands if seen & set(used) >= having & set(used)]
        steps = np.zeros((len(cuts[having]), levels))
        steps[:, order] = np.arange(levels) >= np.array(cuts[having])[:, None]
        both = np.vstack([*below, steps])[:, _firsts(of)]
        basis = np.linalg.qr(both.T)[0].T[-len(steps) :]
        bands.append((having, np.asarray(basis[:, list(of)])))
    resolutions = {}
    for of in used:
        seen = [number for number, (having, _) in enumerate(bands) if of in having]
        parts = [bands[number][1][:, _firsts(of)] for number in seen]
        resolutions[of] = Resolution(
            1 + max(of), tuple(seen), _rows(parts), (None,) * len(seen), np.vstack(parts)
        )
    return resolutions, tuple(len(functions) for _, functions in bands), shared


def _crossed(levels: int, used: Sequence[Partition]) -> Found:
    """Two bands, the constant and all else, of which each resolution sees a part."""
    own = {of: beyond_the_mean(np.eye(1 + max(of))[:, list(of)]) for of in used}
    basis = beyond_the_mean(np.vstack(list(own.values())))
    resolutions = {}
    for of, functions in own.items():
        parts = [np.ones((1, 1 + max(of))), functions[:, _firsts(of)]]
        rows = _rows(parts)
        resolutions[of] = Resolution(1 + max(of), (0, 1), rows, (None, functions @ basis.T), np.vstack(parts))
    return resolutions, (1, len(basis)), {}


def beyond_the_mean(functions: Floats) -> Floats:
    """An orthonormal basis of what some functions span, less their means."""
    centred = functions - functions.mean(axis=1, keepdims=True)
    _, sizes, turn = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(turn[sizes > 1e-9 * sizes.max(initial=1e-300)])


def _firsts(of: Partition) -> list[int]:
    """The first level of each group."""
    firsts: dict[int, int] = {}
    for level, group in enumerate(of):
        firsts.setdefault(group, level)
    return [firsts[group] for group in range(len(firsts))]


def _rows(parts: Sequence[Floats]) -> tuple[slice, ...]:
    stops = np.cumsum([len(part) for part in parts]).tolist()
    return tuple(slice(stop - len(part), stop) for stop, part in zip(stops, parts, strict=True))


def common_functions(domain: Domain) -> dict[int, dict[Partition, tuple[int, tuple[tuple[float, ...], ...]]]]:
    """For each column its blocks of levels that structural zeros tie to those of other columns: a number that tied blocks have in common, and functions of them.

    Two columns are tied where their levels fall into blocks such that a row in a block of one is in the same block of the other.
    """
    ties: dict[tuple[int, Partition], list[tuple[int, Partition, tuple[int, ...]]]] = defaultdict(list)
    for first, second in sorted({pair for axes, _ in domain.zeros for pair in combinations(axes, 2)}):
        one, other = _blocks(domain.possible((first, second)))
        if max(one) > 0 and max(other) == max(one):
            (here, down), (there, across) = _numbered(one), _numbered(other)
            ties[first, here].append((second, there, tuple(down.index(block) for block in across)))
            ties[second, there].append((first, here, tuple(across.index(block) for block in down)))
    found: dict[int, dict[Partition, tuple[int, tuple[tuple[float, ...], ...]]]] = defaultdict(dict)
    for number, start in enumerate(sorted(ties)):
        if start[1] in found[start[0]]:
            continue
        blocks = beyond_the_mean(np.eye(1 + max(start[1]))[:, list(start[1])])[:, _firsts(start[1])]
        reached = [(*start, blocks)]
        for axis, of, values in reached:  # grows while it is gone through
            if of not in found[axis]:
                found[axis][of] = number, tuple(map(tuple, values[:, list(of)].tolist()))
                reached += [(other, there, values[:, list(turn)]) for other, there, turn in ties[axis, of]]
    return dict(found)


def _blocks(possible: Bools) -> tuple[list[int], list[int]]:
    """The block of each level of two columns: levels are in one where a row can have both. Levels that no row can have are in the first block."""
    rows, columns = possible.shape
    _, block = connected_components(sparse.bmat([[None, possible], [possible.T, None]]), directed=False)
    alive = np.concatenate([possible.any(axis=1), possible.any(axis=0)])
    numbers = {old: new for new, old in enumerate(dict.fromkeys(block[alive].tolist()))}
    found = [numbers[b] if lives else 0 for b, lives in zip(block.tolist(), alive, strict=True)]
    return found[:rows], found[rows : rows + columns]


def _numbered(blocks: list[int]) -> tuple[Partition, list[int]]:
    """Blocks numbered by their first levels, and what each of them was called."""
    names = list(dict.fromkeys(blocks))
    return tuple(names.index(block) for block in blocks), names


Choice = tuple[int, ...]  # for each column of a table one of the bands that it sees, 0 for the constant
Bands = tuple[int, ...]  # that a table sees of a column, numbered over all columns; -1 for the constant
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
        self._columns = self._read_columns(Counter(pair for query in queries for pair in query.columns))
        kinds = list(self._kinds(queries, needed))
        ids, keys = _number_components([kind.keys for kind in kinds], len(self._band_sizes))
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
        seen = [[self._columns[pair] for pair in query.columns] for query in queries]
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


components_of = lru_cache(maxsize=64)(Components)


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


def _number_components(blocks: Sequence[IntArray], bands: int) -> tuple[list[IntArray], IntArray]:
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
