"""Least squares over tables of any columns and resolutions: what they share is estimated once, and every table is corrected by it.

A component is one choice of bands (`bands`) of some columns; its functions are products of theirs. Two tables share exactly the components that both see.
Table q with counts y and noise of variance v reads the shared ones as f = F y, with covariance v G, G = F Fᵀ. So it adds G⁻¹/v to their precision, and once
they are estimated as t, with covariance C, its own counts and any weighted sum of them are

    μ = y + FᵀG⁻¹(t − f),      Var(wᵀμ) = v(|w|² − aᵀG⁻¹a) + (G⁻¹a)ᵀ C (G⁻¹a),   a = F w,

which is exactly generalised least squares. G is a number for each component where nothing is correlated in the cells of a table: the mean is then weighted by
inverse variances (the basis of ResidualPlanner, arXiv 2305.08175; there it plans the noise, here it combines whatever was measured). Uneven groups of levels tie
a column to the total, impossible cells tie all components of their table; those are solved together (`elimination`). Contrasts and centred tables
add no precision to what they do not see. Exact tables fix components beforehand.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations_with_replacement, product, repeat
from math import prod
from typing import Any

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.bands import IntArray, Partition, Resolution, column_bands, common_functions
from dpcipher.release.elimination import Elimination
from dpcipher.tables.domain import Axes, Bools, Domain, Floats
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Combination, Groups, Query
from dpcipher.tables.table import PART

Key = tuple[int, ...]  # the bands of a component, numbered over all columns and ascending; () is the total
Choice = tuple[int, ...]  # for each column of a table one of the bands that it sees, 0 for the constant
Bands = tuple[int, ...]  # the numbers of the bands of a column that a table sees, -1 for the constant
Slot = tuple[int, int]  # where a component stands: among those of so many functions, and its row there

MOST_TIED = 5_000  # functions that are solved together
_NONE: frozenset[int] = frozenset()
_FREE_KEYS = 2**20
_NOTHING = 1e-12  # what is smaller than this part of its scale is rounding
_CONTRADICTS = 1e-6  # exact tables may differ by so much of their size


@dataclass(frozen=True, eq=False)
class Grid:
    """A query, and what all measurements of it say together: counts and their variance (0 = exact)."""

    query: Query
    counts: Floats
    variance: float


def merged(domain: Domain, measurements: Iterable[Measurement]) -> list[Grid]:
    """One grid for each query: repeats are averaged with inverse-variance weights, exact ones must agree."""
    repeats: dict[Query, list[tuple[Floats, float]]] = defaultdict(list)
    for one in measurements:
        if isinstance(one.query, Query):
            repeats[one.query].append(one.in_rows())
    return [Grid(query, *_mean(domain, query, group)) for query, group in repeats.items()]


def _mean(domain: Domain, query: Query, group: Sequence[tuple[Floats, float]]) -> tuple[Floats, float]:
    exact = [counts for counts, variance in group if variance == 0]
    for counts in exact[1:]:
        check_same(f"the exact tables of {domain.named(query.axes)}", exact[0], counts)
    if exact or len(group) == 1:
        return (exact[0], 0.0) if exact else group[0]
    precision = np.array([1 / variance for _, variance in group])
    stacked = np.stack([counts for counts, _ in group])
    return np.tensordot(precision, stacked, axes=1) / precision.sum(), 1 / float(precision.sum())


def check_same(what: str, one: Floats, other: Floats) -> None:
    """Refuse exact counts that differ."""
    if np.abs(one - other).max(initial=0.0) > _CONTRADICTS * (1 + np.abs(one).max(initial=0.0)):
        raise ReleaseError(
            f"{what} contradict each other; correct one of them, or declare its noise with a scale above 0"
        )


@dataclass(frozen=True, eq=False)
class Group:
    """Shared components of a table that are correlated in its cells: their coefficients, G, its inverse, and the information that the table has on them.

    `maps` says of which combinations of the components the coefficients are; `nulls` are combinations of coefficients that impossible cells fix at 0.
    """

    choices: tuple[int, ...]
    positions: IntArray
    parts: tuple[slice, ...]
    gram: Floats
    inverse: Floats
    information: Floats
    maps: tuple[Floats | None, ...]
    nulls: Floats

    @property
    def simple(self) -> bool:
        """Whether it is one component, uncorrelated, and the noise on each of its functions is the same."""
        return len(self.choices) == 1 and self.maps[0] is None and self.inverse.size == 1

    def square(self, matrix: Floats) -> Floats:
        """One of its matrices written out: of a simple group only the number on the diagonal is kept."""
        return matrix[0, 0] * np.eye(len(self.positions)) if self.simple else matrix

    def seen(self, values: Sequence[Floats]) -> Floats:
        """Components (each a row or a stack of rows) as coefficients of the table."""
        mapped = (v if m is None else v @ m.T for v, m in zip(values, self.maps, strict=True))
        return np.concatenate(list(mapped), axis=-1)

    def split(self, coefficients: Floats) -> list[Floats]:
        """The adjoint: coefficients as components."""
        parts = (coefficients[..., part] for part in self.parts)
        return [p if m is None else p @ m for p, m in zip(parts, self.maps, strict=True)]


class Structure:
    """How shared components stand in the cells of tables of one form."""

    def __init__(
        self,
        resolutions: Sequence[Resolution],
        choices: Sequence[Choice],
        contrasts: frozenset[int] = frozenset(),
        centred: bool = False,
        possible: Bools | None = None,
    ) -> None:
        self.resolutions, self.choices, self.possible = tuple(resolutions), tuple(choices), possible
        self.shape = tuple(one.cells for one in resolutions)
        self._contrasts, self._centred = contrasts, centred
        self.places = tuple(p for p in range(len(resolutions)) if any(choice[p] for choice in choices))
        self._summed = tuple(p for p in range(len(resolutions)) if p not in self.places)
        self._others = prod(self.shape[place] for place in self._summed)
        inner = tuple(self.shape[place] for place in self.places)
        numbers = np.arange(prod(inner)).reshape(inner)
        self._positions = [
            numbers[tuple(self.resolutions[p].rows[choice[p]] for p in self.places)].ravel()
            for choice in choices
        ]
        self.groups = [self._group(tuple(group)) for group in self._together()]

    def _together(self) -> Iterable[list[int]]:
        """Choices that are correlated: all of them where cells are impossible, else those that agree on plain columns."""
        groups: dict[Choice, list[int]] = defaultdict(list)
        for number, choice in enumerate(self.choices):
            plain = tuple(choice[p] if self.resolutions[p].plain else -1 for p in self.places)
            groups[plain if self.possible is None else ()].append(number)
        return groups.values()

    def _group(self, choices: tuple[int, ...]) -> Group:
        positions = [self._positions[number] for number in choices]
        maps = tuple(self._map(self.choices[number]) for number in choices)
        stops = np.cumsum([len(one) for one in positions]).tolist()
        parts = tuple(slice(stop - len(p), stop) for p, stop in zip(positions, stops, strict=True))
        flat = (
            self.possible is None
            and len(choices) == 1
            and all(self.resolutions[p].plain for p in self.places)
        )
        gram = self._length(self.choices[choices[0]]) if flat else self._products(choices, self._inner)
        inverse, nulls = (
            (1 / gram, np.zeros((0, stops[-1]))) if flat else _inverse(gram, self.possible is not None)
        )
        information = inverse
        if self._contrasts:
            seen = gram * float(all(self.choices[choices[0]][p] for p in self._contrasts)) if flat else None
            seen = self._products(choices, self._inner_contrasts) if seen is None else seen
            information = inverse * seen * inverse if flat else inverse @ seen @ inverse
        if self._centred and not any(self.choices[choices[0]]):
            information = np.array(information)
            information[0, 0] -= 1 / prod(self.shape)
            information[np.abs(information) < _NOTHING * inverse[0, 0]] = 0.0
        return Group(choices, np.concatenate(positions), parts, gram, inverse, information, maps, nulls)

    def _map(self, choice: Choice) -> Floats | None:
        """Which combinations of a component this table sees; None where it sees all of it."""
        maps = [self.resolutions[p].maps[choice[p]] for p in self.places]
        if all(one is None for one in maps):
            return None
        sizes = [self._size(p, choice[p]) for p in self.places]
        whole: Floats = np.eye(1)
        for one, size in zip(maps, sizes, strict=True):
            whole = np.asarray(np.kron(whole, np.eye(size) if one is None else one))
        return whole

    def _size(self, place: int, band: int) -> int:
        rows = self.resolutions[place].rows[band]
        return int(rows.stop - rows.start)

    def _length(self, choice: Choice) -> Floats:
        return np.array([[self._others * prod(self.resolutions[p].length(choice[p]) for p in self.places)]])

    def _products(self, choices: tuple[int, ...], inner: Any) -> Floats:
        """The inner products of all functions of some components, over the cells of the table."""
        blocks = [[inner(self.choices[i], self.choices[j]) for j in choices] for i in choices]
        return np.block(blocks)

    def _inner(self, one: Choice, other: Choice) -> Floats:
        if self.possible is not None:
            return self._inner_possible(one, other)
        whole = np.full((1, 1), float(self._others))
        for place in self.places:
            whole = np.kron(whole, self.resolutions[place].products(one[place], other[place]))
        return whole

    def _inner_contrasts(self, one: Choice, other: Choice) -> Floats:
        """The same less the means along contrasts."""
        whole = np.full((1, 1), float(self._others))
        for place in self.places:
            resolution = self.resolutions[place]
            block = resolution.products(one[place], other[place])
            if place in self._contrasts:
                sums = self._sums[place]
                left, right = (sums[resolution.rows[choice[place]]] for choice in (one, other))
                block = block - np.outer(left, right) / resolution.cells
                block[np.abs(block) < _NOTHING * resolution.cells] = 0.0
            whole = np.kron(whole, block)
        return whole

    @cached_property
    def _sums(self) -> dict[int, Floats]:
        """The sum of every function over the cells of its column."""
        return {p: self.resolutions[p].transform(np.ones(self.shape[p]), 0) for p in self._contrasts}

    def _inner_possible(self, one: Choice, other: Choice) -> Floats:
        """The same over possible cells alone: functions times what is possible on the columns of either."""
        union = tuple(p for p in self.places if one[p] or other[p])
        operands: list[Any] = [self._possible_on(union), list(union)]
        outs: tuple[list[int], list[int]] = ([], [])
        n = len(self.shape)
        for side, (choice, out) in enumerate(zip((one, other), outs, strict=True)):
            for place in (p for p in union if choice[p]):
                letter = n * (1 + side) + place
                operands += [
                    self._written[place][self.resolutions[place].rows[choice[place]]],
                    [letter, place],
                ]
                out.append(letter)
        block = np.einsum(*operands, [*outs[0], *outs[1]], optimize=True)
        return np.asarray(block).reshape(self._choice_size(one), self._choice_size(other))

    def _choice_size(self, choice: Choice) -> int:
        return prod(self._size(p, choice[p]) for p in self.places)

    def _possible_on(self, places: Axes) -> Floats:
        if places not in self._possible_counts:
            others = tuple(p for p in range(len(self.shape)) if p not in places)
            assert self.possible is not None
            self._possible_counts[places] = self.possible.sum(axis=others, dtype=np.float64)
        return self._possible_counts[places]

    @cached_property
    def _possible_counts(self) -> dict[Axes, Floats]:
        return {}

    @cached_property
    def _written(self) -> dict[int, Floats]:
        return {p: self.resolutions[p].transform(np.eye(self.shape[p]), 0) for p in self.places}

    def coefficients(self, values: Floats) -> Floats:
        """F y of a stack of tables: all coefficients on the columns that are shared, a row for each table."""
        if self.possible is not None:
            values = np.where(self.possible, values, 0.0)
        inner = values.sum(axis=tuple(1 + place for place in self._summed)) if self._summed else values
        for number, place in enumerate(self.places):
            inner = self.resolutions[place].transform(inner, 1 + number)
        return inner.reshape(len(values), -1)

    def cells(self, coefficients: Floats) -> Floats:
        """Fᵀ of rows of coefficients: tables that broadcast over the cells."""
        inner = coefficients.reshape(-1, *(self.shape[place] for place in self.places))
        for number, place in enumerate(self.places):
            inner = self.resolutions[place].combine(inner, 1 + number)
        shaped = inner.reshape(-1, *(n if p in self.places else 1 for p, n in enumerate(self.shape)))
        return shaped if self.possible is None else shaped * self.possible


def _inverse(gram: Floats, singular: bool) -> tuple[Floats, Floats]:
    """The inverse on the directions that have one, and the others; only impossible cells make functions dependent."""
    if not singular:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        inverse[np.abs(inverse) < _NOTHING * np.abs(inverse).max()] = 0.0
        return inverse, np.zeros((0, len(gram)))
    values, vectors = np.linalg.eigh(gram)
    real = values > 1e-9 * values.max(initial=1.0)
    return (vectors[:, real] / values[real]) @ vectors[:, real].T, vectors[:, ~real].T


@dataclass(frozen=True, eq=False)
class Form:
    """Queries whose columns are seen in the same way, by number, and for each column the numbers of the bands that each of them sees."""

    resolutions: tuple[Resolution, ...]
    contrasts: frozenset[int]  # by place
    centred: bool
    offered: tuple[tuple[int, ...], ...]  # the bands of each column that no earlier column has, too
    sort: bool  # whether bands that several columns have may stand out of order
    numbers: list[int] = field(default_factory=list)
    bands: list[tuple[Bands, ...]] = field(default_factory=list)

    @property
    def n_keys(self) -> int:
        """How many components each query has."""
        return prod(map(len, self.offered))

    def choices(self) -> Iterator[Choice]:
        """All components, as choices of bands."""
        return product(*self.offered)

    def keys(self, choice: Choice) -> Iterator[Key]:
        """One component of each of the queries."""
        places = [place for place, band in enumerate(choice) if band]
        if not places:
            return repeat((), len(self.numbers))
        keys = zip(*([bands[place][choice[place]] for bands in self.bands] for place in places), strict=True)
        return (tuple(sorted(key)) for key in keys) if self.sort else keys


@dataclass(frozen=True, eq=False)
class Sharing:
    """Queries of one form that share the same components, by number, and the row of each of these among those of its size."""

    form: Form
    choices: tuple[Choice, ...]
    sizes: tuple[int, ...]
    numbers: IntArray
    rows: IntArray  # queries by choices


class Layout:
    """The columns' bands, and which components tables share; it follows from the queries alone."""

    def __init__(self, domain: Domain, queries: Sequence[Query], pooled: Sequence[Query] = ()) -> None:
        self.domain = domain
        self._sizes: list[int] = []
        self._common: dict[int, list[int]] = {}  # the bands that several columns have
        self._columns = self._bands(Counter(pair for query in (*queries, *pooled) for pair in _forms(query)))
        self._forms = self._same_forms(queries)
        forced = [
            key for query in pooled for key in _keys([self._columns[pair][1] for pair in _forms(query)])
        ]
        self.shared = self._shared(len(queries), forced)
        counts: Counter[int] = Counter()
        self.slots: dict[Key, Slot] = {}
        for key in sorted(self.shared):
            size = prod(self._sizes[band] for band in key)
            self.slots[key] = size, counts[size]
            counts[size] += 1
        self.counts = dict(counts)

    def _bands(
        self, used: Counter[tuple[int, Groups | None]]
    ) -> dict[tuple[int, Groups | None], tuple[Resolution, Bands]]:
        """What each column is seen as in each of its forms, and the numbers of the bands; the constant has none."""
        columns: dict[int, dict[Partition, tuple[int, Groups | None]]] = defaultdict(dict)
        common = common_functions(self.domain) if self.domain.zeros else {}
        for axis, groups in used:
            of = tuple(range(self.domain.sizes[axis])) if groups is None else groups.of
            columns[axis][of] = axis, groups
        found = {}
        for axis in sorted(columns):
            pairs = columns[axis]
            order = tuple(sorted(pairs, key=lambda of: (-used[pairs[of]], -max(of), of)))
            blocks = common.get(axis, {})
            functions = tuple((of, functions) for of, (_, functions) in blocks.items())
            resolutions, sizes, shared = column_bands(self.domain.sizes[axis], order, functions)
            numbers = [-1, *range(len(self._sizes), len(self._sizes) + len(sizes) - 1)]
            self._sizes += sizes[1:]
            for of, bands in shared.items():
                first = self._common.setdefault(blocks[of][0], [numbers[band] for band in bands])
                for band, number in zip(bands, first, strict=True):
                    numbers[band] = number
            for of, resolution in resolutions.items():
                found[pairs[of]] = resolution, tuple(numbers[band] for band in resolution.bands)
        return found

    def _same_forms(self, queries: Sequence[Query]) -> list[Form]:
        forms: dict[Any, Form] = {}
        for number, query in enumerate(queries):
            seen = [self._columns[pair] for pair in _forms(query)]
            contrasts = frozenset(map(query.axes.index, query.contrasts)) if query.contrasts else _NONE
            offered = None
            if self._common:
                kept = zip((bands for _, bands in seen), _once(bands for _, bands in seen), strict=True)
                offered = tuple(tuple(bands.index(band) for band in once) for bands, once in kept)
            kind = (*[id(one) for one, _ in seen], contrasts, query.centred, offered)
            if kind not in forms:
                every = offered or tuple(tuple(range(len(bands))) for _, bands in seen)
                resolutions = tuple(one for one, _ in seen)
                forms[kind] = Form(resolutions, contrasts, query.centred, every, bool(self._common))
            forms[kind].numbers.append(number)
            forms[kind].bands.append(tuple([bands for _, bands in seen]))
        return list(forms.values())

    def read(self, query: Query) -> tuple[list[Resolution], list[Bands]]:
        """What a query sees of each of its columns, and the numbers of the bands."""
        seen = [self._columns[pair] for pair in _forms(query)]
        return [one for one, _ in seen], [bands for _, bands in seen]

    def named(self, key: Key) -> str:
        """The columns of a component as a person reads them."""
        axes = {axis for (axis, _), (_, bands) in self._columns.items() if set(bands) & set(key)}
        return self.domain.named(tuple(sorted(axes)))

    def functions(self, queries: Iterable[Query]) -> int:
        """How many functions some queries share with any."""
        keys = {key for query in queries for _, key in self._inside(tuple(self.read(query)[1]))}
        return sum(self.slots[key][0] for key in keys)

    def _is_wide(self, form: Form, n_queries: int) -> bool:
        """Whether going through all components of a query takes longer than comparing it with all others."""
        return form.n_keys > max(n_queries, 64) and not form.contrasts

    def _shared(self, n_queries: int, forced: Iterable[Key]) -> frozenset[Key]:
        """Components that two tables see, or that a contrast, a centred table or a combination needs.

        Columns of one level double the subsets of a table and leave its cells as they are, so that a tiny release could hold endless work: more
        subsets than eight for each cell are a `SizeError`.
        """
        budget = _FREE_KEYS + 8 * sum(
            len(f.numbers) * prod(one.cells for one in f.resolutions) for f in self._forms
        )
        holders: Counter[Key] = Counter(())
        needed: set[Key] = {(), *forced}
        wide: list[tuple[Bands, ...]] = []
        for form in self._forms:
            if self._is_wide(form, n_queries):
                wide += form.bands
                continue
            budget = _spend(budget, len(form.numbers) * form.n_keys)
            for choice in form.choices():
                if form.contrasts:
                    needed.update(form.keys(choice))
                elif any(choice):
                    holders.update(form.keys(choice))
        for bands in wide:
            budget = _spend(budget, n_queries)
            others = (other for one in self._forms for other in one.bands if other is not bands)
            overlaps = {_overlap(bands, other) for other in others}
            budget = _spend(budget, sum(prod(map(len, one)) for one in overlaps))
            holders.update(set(chain.from_iterable(map(_keys, overlaps))))
        return frozenset(needed | {key for key, number in holders.items() if number > 1})

    def sharings(self) -> Iterator[Sharing]:
        """All queries, those of one form and one set of shared components together."""
        n_queries = sum(len(form.numbers) for form in self._forms)
        for form in self._forms:
            if self._is_wide(form, n_queries):
                for number, bands in zip(form.numbers, form.bands, strict=True):
                    both = self._inside(bands)
                    yield self._sharing(
                        form, [c for c, _ in both], np.array([number]), [[key] for _, key in both]
                    )
                continue
            choices = list(form.choices())
            keys = [list(form.keys(choice)) for choice in choices]
            held = np.array([[key in self.shared for key in column] for column in keys]).T
            patterns, which = np.unique(held, axis=0, return_inverse=True)
            for number, pattern in enumerate(patterns):
                rows = np.flatnonzero(which.ravel() == number)
                kept = np.flatnonzero(pattern)
                columns = (
                    [[keys[c][row] for row in rows] for c in kept]
                    if len(patterns) > 1
                    else [keys[c] for c in kept]
                )
                yield self._sharing(form, [choices[c] for c in kept], np.array(form.numbers)[rows], columns)

    def _sharing(
        self, form: Form, choices: list[Choice], numbers: IntArray, keys: list[list[Key]]
    ) -> Sharing:
        rows = np.array([[self.slots[key][1] for key in column] for column in keys]).T
        sizes = tuple(self.slots[column[0]][0] for column in keys)
        return Sharing(form, tuple(choices), sizes, numbers, rows)

    def _inside(self, columns: tuple[Bands, ...]) -> list[tuple[Choice, Key]]:
        """The shared components of a wide table."""
        places = enumerate(_once(columns))
        place = {band: (p, columns[p].index(band)) for p, bands in places for band in bands if band >= 0}
        found = []
        for key in self.shared:
            if all(band in place for band in key) and len({place[band][0] for band in key}) == len(key):
                choice = [0] * len(columns)
                for band in key:
                    choice[place[band][0]] = place[band][1]
                found.append((tuple(choice), key))
        return sorted(found)


def _forms(query: Query) -> Iterable[tuple[int, Groups | None]]:
    """The columns of a query, each with its groups."""
    return zip(query.axes, query.forms, strict=True)


def _spend(budget: int, work: int) -> int:
    if work > budget:
        raise SizeError("the tables share too many sets of columns; measure tables of fewer columns")
    return budget - work


def _key(bands: Sequence[Bands], choice: Choice) -> Key:
    return tuple(sorted(column[band] for column, band in zip(bands, choice, strict=True) if band))


def _once(columns: Iterable[Bands]) -> list[Bands]:
    """The bands of each column that no earlier column has: on possible cells they are the same functions."""
    earlier: set[int] = set()
    kept = []
    for bands in columns:
        kept.append(tuple(band for band in bands if band < 0 or band not in earlier))
        earlier.update(bands)
    return kept


def _keys(bands: Iterable[Bands]) -> Iterator[Key]:
    """All components of a table that sees these bands of its columns."""
    return (tuple(sorted(band for band in choice if band >= 0)) for choice in product(*_once(bands)))


def _overlap(held: tuple[Bands, ...], other: tuple[Bands, ...]) -> tuple[Bands, ...]:
    """What a table shares with another, column by column."""
    both = {*chain.from_iterable(held)} & {*chain.from_iterable(other)} - {-1}
    columns = [tuple(band for band in column if band in both) for column in _once(held)]
    return tuple((-1, *column) for column in columns if column)


@dataclass
class Unknowns:
    """The shared components while they are added up: precision and right-hand side by slot, links between those that are tied."""

    right: dict[int, Floats]
    precision: dict[int, Floats]
    known: dict[Slot, Floats] = field(default_factory=dict)
    links: dict[Slot, dict[Slot, Floats]] = field(default_factory=lambda: defaultdict(dict))
    nulls: list[dict[Slot, Floats]] = field(default_factory=list)

    @classmethod
    def of(cls, layout: Layout) -> "Unknowns":
        """Nothing known yet."""
        counts = layout.counts.items()
        return cls(
            {size: np.zeros((n, size)) for size, n in counts}, {size: np.zeros(n) for size, n in counts}
        )

    def link(self, one: Slot, other: Slot, block: Floats) -> None:
        """Add a block to the precision, and its transpose."""
        self.links[one][other] = self.links[one].get(other, 0.0) + block
        if one != other:
            self.links[other][one] = self.links[other].get(one, 0.0) + block.T


@dataclass(frozen=True, eq=False)
class Fitted:
    """A grid with its corrected counts, its structure, and where its shared components stand."""

    grid: Grid
    structure: Structure
    sizes: tuple[int, ...]
    rows: IntArray
    counts: Floats

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Where its shared components stand."""
        return tuple(zip(self.sizes, self.rows.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Stack:
    """Grids of one form, and where the components stand that they share."""

    structure: Structure
    grids: list[Grid]
    sizes: tuple[int, ...]
    rows: IntArray  # grids by components

    @property
    def counts(self) -> Floats:
        """The counts of all of them."""
        return np.stack([grid.counts for grid in self.grids])


class LeastSquares:
    """Measurements made to agree: corrected counts of every grid, and the covariance of what they share."""

    def __init__(self, domain: Domain, measurements: Sequence[Measurement]) -> None:
        self.domain = domain
        grids = merged(domain, measurements)
        combined = [one for one in measurements if isinstance(one.query, Combination)]
        pooled = [query for one in combined for query, _ in _terms(one.query)]
        self.layout = Layout(domain, [grid.query for grid in grids], pooled)
        self._unknowns = Unknowns.of(self.layout)
        stacks = list(self._stacks(grids))
        for stack in stacks:  # exact tables fix components before anything is averaged
            if stack.grids[0].variance == 0:
                self._fix(stack)
        for stack in stacks:
            if stack.grids[0].variance > 0:
                self._add(stack)
        for one in combined:
            self._add_combination(one)
        self._solve()
        self.fitted = {one.grid.query: one for stack in stacks for one in self._correct(stack)}

    def _stacks(self, grids: Sequence[Grid]) -> Iterator[Stack]:
        """Grids of one form together, in parts of few numbers: those with impossible cells one by one, exact ones apart."""
        for sharing in self.layout.sharings():
            form = sharing.form
            whole = Structure(form.resolutions, sharing.choices, form.contrasts, form.centred)
            parts: dict[Any, list[int]] = defaultdict(list)
            masks: dict[int, Bools] = {}
            for place, number in enumerate(sharing.numbers.tolist()):
                possible = self._possible(grids[number])
                if possible is not None:
                    masks[place] = possible
                parts[None if possible is None else place, grids[number].variance == 0].append(place)
            for (place, _), places in parts.items():
                structure = (
                    whole
                    if place is None
                    else Structure(form.resolutions, sharing.choices, possible=masks[place])
                )
                step = max(1, PART // max(1, prod(whole.shape)))
                for start in range(0, len(places), step):
                    some = places[start : start + step]
                    yield Stack(
                        structure,
                        [grids[n] for n in sharing.numbers[some].tolist()],
                        sharing.sizes,
                        sharing.rows[some],
                    )

    def _possible(self, grid: Grid) -> Bools | None:
        """The cells of a grid that can hold rows; None where all can."""
        if not self.domain.zeros:
            return None
        possible = self.domain.possible(grid.query.axes)
        if possible.all():
            return None
        seen = np.asarray(grid.query.plain().apply(possible.astype(np.int64), grid.query.axes) > 0)
        if grid.query.centred or grid.query.contrasts:
            raise ReleaseError("centred tables and contrasts cannot be reconciled with structural zeros")
        if grid.variance == 0 and np.any(grid.counts[~seen] != 0):
            raise ReleaseError(
                f"the exact table of {self.domain.named(grid.query.axes)} has rows where the schema's structural zeros allow none; "
                "correct one of them"
            )
        return None if seen.all() else seen

    def _fix(self, stack: Stack) -> None:
        """Take what exact tables say of components as known."""
        seen, known = stack.structure.coefficients(stack.counts), self._unknowns.known
        for group in stack.structure.groups:
            if any(one is not None for one in group.maps):
                raise SizeError("exact tables of crossing groups cannot be reconciled; declare a small noise")
            for number, part in zip(group.choices, group.parts, strict=True):
                for grid, row, values in zip(stack.grids, stack.rows[:, number].tolist(), seen, strict=True):
                    slot, value = (stack.sizes[number], row), values[group.positions[part]]
                    what = f"the exact table of {self.domain.named(grid.query.axes)} and another"
                    check_same(what, known.setdefault(slot, value), value)

    def _add(self, stack: Stack) -> None:
        """Add the information of noisy tables of one form to what they share."""
        unknowns = self._unknowns
        seen = stack.structure.coefficients(stack.counts)
        weights = np.array([1 / grid.variance for grid in stack.grids])
        for group in stack.structure.groups:
            rows = [stack.rows[:, number] for number in group.choices]
            sizes = [stack.sizes[number] for number in group.choices]
            own = seen[:, group.positions] * weights[:, None]
            if group.simple:
                informed = float(group.information[0, 0])
                np.add.at(unknowns.right[sizes[0]], rows[0], own * informed)
                np.add.at(unknowns.precision[sizes[0]], rows[0], weights * informed)
                continue
            for size, places, pull in zip(sizes, rows, group.split(own @ group.information), strict=True):
                np.add.at(unknowns.right[size], places, pull)
            for i, j in combinations_with_replacement(range(len(rows)), 2):
                block = group.information[group.parts[i], group.parts[j]]
                if i == j or np.any(block):
                    block = _mapped(block, group.maps[i], group.maps[j])
                    for one, other, weight in _pairs(rows[i], rows[j], weights):
                        unknowns.link((sizes[i], one), (sizes[j], other), weight * block)
            if len(group.nulls):
                slots = [(stack.sizes[number], int(stack.rows[0, number])) for number in group.choices]
                parts = (part.T for part in group.split(group.nulls))
                unknowns.nulls.append(dict(zip(slots, parts, strict=True)))

    def _add_combination(self, one: Measurement) -> None:
        """Add what sums of cells of several tables say: y = Σ M x, with the cells x of each table written in all of its components."""
        assert isinstance(one.query, Combination)
        readers: dict[Slot, Floats] = {}
        for query, matrix in one.query.terms:
            resolutions, bands = self.layout.read(query)
            choices = list(product(*(range(len(column)) for column in bands)))
            structure = Structure(resolutions, choices)
            for group in structure.groups:
                full = np.zeros((len(group.positions), prod(structure.shape)))
                full[:, group.positions] = group.square(group.inverse)
                cells = np.broadcast_to(structure.cells(full), (len(full), *structure.shape)).reshape(
                    len(full), -1
                )
                for number, block in zip(group.choices, group.split((cells @ matrix.T).T), strict=True):
                    slot = self.layout.slots[_key(bands, choices[number])]
                    readers[slot] = readers.get(slot, 0.0) + block
        values, variance = one.in_rows()
        for first, left in readers.items():
            self._unknowns.right[first[0]][first[1]] += left.T @ values / variance
            for second, right in readers.items():
                if first <= second:
                    self._unknowns.link(first, second, left.T @ right / variance)

    def _solve(self) -> None:
        """Estimate the components, and keep what their covariance follows from."""
        unknowns = self._unknowns
        with np.errstate(divide="ignore", invalid="ignore"):
            self._values = {n: r / unknowns.precision[n][:, None] for n, r in unknowns.right.items()}
            self._variances = {n: 1 / precision for n, precision in unknowns.precision.items()}
        for slot, value in unknowns.known.items():
            self._values[slot[0]][slot[1]], self._variances[slot[0]][slot[1]] = value, 0.0
        tied = [slot for slot in unknowns.links if slot not in unknowns.known]
        check_tied(sum(size for size, _ in tied))
        normal: dict[Any, dict[Any, Floats]] = {}
        right: dict[Any, Floats] = {}
        for slot in tied:
            size, row = slot
            diagonal = unknowns.precision[size][row] * np.eye(size)
            normal[slot] = {o: b for o, b in unknowns.links[slot].items() if o not in unknowns.known}
            normal[slot][slot] = diagonal + unknowns.links[slot].get(slot, 0.0)
            gone = (b @ unknowns.known[o] for o, b in unknowns.links[slot].items() if o in unknowns.known)
            right[slot] = unknowns.right[size][row] - sum(gone, np.zeros(size))
        self.constraints = _add_nulls(unknowns, normal, right)
        for key, (size, row) in self.layout.slots.items():
            blank = (size, row) not in normal and not np.isfinite(self._variances[size][row])
            if blank or ((size, row) in normal and not np.any(np.diag(normal[size, row][size, row]))):
                raise ReleaseError(self._nothing_says(key))
        self._tied = Elimination(normal, right)
        for slot in tied:
            self._values[slot[0]][slot[1]] = self._tied.values[slot]
            self._variances[slot[0]][slot[1]] = np.nan

    def _nothing_says(self, key: Key) -> str:
        if not key:
            return "centred tables and contrasts need the number of rows beside them; measure Query(()) too"
        return f"contrasts of several columns need those of fewer beside them; measure {self.layout.named(key)} too"

    def _correct(self, stack: Stack) -> Iterator[Fitted]:
        """Correct tables of one form by the components that they share."""
        counts = stack.counts
        if stack.structure.possible is not None:
            counts = np.where(stack.structure.possible, counts, 0.0)
        seen = stack.structure.coefficients(counts)
        moved = np.zeros_like(seen)
        for group in stack.structure.groups:
            agreed = group.seen([self._values[stack.sizes[n]][stack.rows[:, n]] for n in group.choices])
            gap = agreed - seen[:, group.positions]
            moved[:, group.positions] = gap * group.inverse[0, 0] if group.simple else gap @ group.inverse
        corrected = counts + stack.structure.cells(moved)
        for grid, rows, one in zip(stack.grids, stack.rows, corrected, strict=True):
            yield Fitted(grid, stack.structure, stack.sizes, rows, one)

    def variance(self, slot: Slot) -> float:
        """The variance of each function of a component; NaN where it is tied to others."""
        return float(self._variances[slot[0]][slot[1]])

    def value(self, slot: Slot) -> Floats:
        """The estimate of a component."""
        return np.asarray(self._values[slot[0]][slot[1]])

    def covariance(self, one: Slot, other: Slot) -> Floats | None:
        """The covariance of two components; None where there is none."""
        if one in self._unknowns.known or other in self._unknowns.known:
            return None
        if one in self._tied.rank and other in self._tied.rank:
            return self._tied.inverse(one, other)
        return self.variance(one) * np.eye(one[0]) if one == other else None

    def slot(self, key: Key) -> Slot:
        """Where a shared component stands."""
        return self.layout.slots[key]

    @cached_property
    def parameters(self) -> int:
        """How many free numbers the noisy tables estimate together; what exact tables and impossible cells fix is not counted."""
        slots = self.layout.slots.values()
        count = sum(size for size, row in slots if (size, row) not in self._unknowns.known)
        count -= self.constraints + self._tied.unidentified
        for one in self.fitted.values():
            if one.grid.variance > 0:
                possible = one.structure.possible
                seen = sum(self._seen(one, group) for group in one.structure.groups)
                cells = freedom(one.grid.query, one.counts.shape) if possible is None else int(possible.sum())
                count += cells - seen
        return count

    def _seen(self, one: Fitted, group: Group) -> int:
        """In how many directions a table sees a group of components."""
        if group.simple:
            return len(group.positions) if group.information[0, 0] else 0
        return int(np.linalg.matrix_rank(group.information, tol=_NOTHING * np.abs(group.inverse).max()))


def check_tied(functions: int) -> None:
    """Refuse more functions than can be solved together."""
    if functions > MOST_TIED:
        raise SizeError(
            f"uneven groups of levels and structural zeros tie {functions:,} functions of the tables, of at most {MOST_TIED:,}; "
            "measure fewer tables of these columns"
        )


def freedom(query: Query, shape: Sequence[int]) -> int:
    """How many numbers a table says: one for each cell, less what a centred table and contrasts leave out."""
    if query.centred:
        return prod(shape) - 1
    return prod(n - (axis in query.contrasts) for axis, n in zip(query.axes, shape, strict=True))


def _terms(query: Query | Combination) -> tuple[tuple[Query, Floats], ...]:
    return query.terms if isinstance(query, Combination) else ()


def _mapped(block: Floats, left: Floats | None, right: Floats | None) -> Floats:
    block = block if left is None else left.T @ block
    return block if right is None else block @ right


def _pairs(left: IntArray, right: IntArray, weights: Floats) -> Iterator[tuple[int, int, float]]:
    """Every pair of rows once, with the sum of its weights."""
    width = int(right.max()) + 1
    pairs, where = np.unique(left * width + right, return_inverse=True)
    sums = np.bincount(where.ravel(), weights)
    return zip((pairs // width).tolist(), (pairs % width).tolist(), sums.tolist(), strict=True)


def _add_nulls(unknowns: Unknowns, normal: dict[Any, dict[Any, Floats]], right: dict[Any, Floats]) -> int:
    """Add what impossible cells fix exactly, nᵀt = 0 for each null vector n, as multipliers that are eliminated last; how many there are.

    Adding basis basisᵀ to the precision changes no solution, and makes the blocks that come before the multipliers regular.
    """
    tied = sorted({slot for null in unknowns.nulls for slot in null} & normal.keys())
    columns, wanted = [], []
    for null in unknowns.nulls:
        n = next(iter(null.values())).shape[1]
        columns.append(
            np.vstack([null.get(slot, np.zeros((slot[0], n))) for slot in tied] or [np.zeros((0, n))])
        )
        gone = (unknowns.known[slot] @ block for slot, block in null.items() if slot in unknowns.known)
        wanted.append(-sum(gone, np.zeros(n)))
    if not columns:
        return 0
    basis, sizes, turn = np.linalg.svd(np.hstack(columns), full_matrices=False)
    real = sizes > 1e-9
    values = turn[real] @ np.concatenate(wanted) / sizes[real]
    if np.abs(turn[~real] @ np.concatenate(wanted)).max(initial=0.0) > _CONTRADICTS * (
        1 + np.abs(values).max(initial=0.0)
    ):
        raise ReleaseError(
            "exact tables contradict the schema's structural zeros; correct one of them, or declare a noise with a scale above 0"
        )
    if not tied or not real.any():
        return 0
    rows = dict(zip(tied, np.split(basis[:, real], np.cumsum([slot[0] for slot in tied])[:-1]), strict=True))
    weight = max(float(np.abs(normal[slot][slot]).max()) for slot in tied)
    multipliers = (int(real.sum()), -1)
    for one in tied:
        right[one] = right[one] + weight * rows[one] @ values
        for other in tied:
            normal[one][other] = normal[one].get(other, 0.0) + weight * rows[one] @ rows[other].T
        normal[one][multipliers] = rows[one]
    normal[multipliers] = {one: rows[one].T for one in tied}
    normal[multipliers][multipliers] = np.zeros((len(values), len(values)))
    right[multipliers] = values
    return len(values)
