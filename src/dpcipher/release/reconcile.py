"""Reconcile: the best estimate of every table from overlapping noisy ones, with the variance of every cell.

Generalised least squares (`least_squares`), no more: nothing is clipped, shrunk or rounded, so every estimate is unbiased and its variance is known.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.bands import Resolution
from dpcipher.release.least_squares import (
    Fitted,
    Grid,
    Group,
    Layout,
    LeastSquares,
    Slot,
    check_tied,
    freedom,
    merged,
)
from dpcipher.tables.domain import Axes, Bools, Domain, Floats, Shape, closure
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query, outer
from dpcipher.tables.table import broadcast_over, margin

MAX_SETS = 2**25
# Where exact tables fix every component of a sum, a share like this of its noise is left by rounding; exact means 0.
ROUNDING = 1e-13
_MOST_TRIED = 100  # pairs of levels of an axis, when two are looked for that zeros leave alone


@dataclass(frozen=True)
class Misfit:
    """How far one table is from all the others: a χ² (approximate for Laplace noise) and its size in standard deviations."""

    axes: Axes
    chi2: float
    dof: int

    @property
    def sigmas(self) -> float:
        """The χ² as a standard normal quantile (Wilson & Hilferty 1931); 0 when nothing can disagree."""
        if self.dof == 0:
            return 0.0
        spread = 2 / (9 * self.dof)
        return float(((self.chi2 / self.dof) ** (1 / 3) - (1 - spread)) / spread**0.5)


@dataclass(frozen=True)
class Disagreement:
    """The misfit of every measured table, in the order they were given, and of all together."""

    tables: tuple[Misfit, ...]
    overall: Misfit


@dataclass(frozen=True, eq=False)
class Reconciled:
    """Overlapping noisy tables made to agree: counts, and variances, for every table that some measured one is as fine as.

    A table is asked for by a `Query`, or by its columns alone, with every level.
    """

    measured: tuple[Measurement, ...]
    fit: LeastSquares

    @property
    def domain(self) -> Domain:
        """The columns of the tables."""
        return self.fit.domain

    @property
    def shape(self) -> Shape:
        """How many levels every column has."""
        return self.domain.sizes

    @cached_property
    def total(self) -> float:
        """The number of rows."""
        return float(self.fit.value(self.fit.slot(()))[0])

    @cached_property
    def total_variance(self) -> float:
        """The variance of the number of rows; 0 where it is known."""
        slot = self.fit.slot(())
        known = self.fit.covariance(slot, slot)
        return 0.0 if known is None else max(float(known[0, 0]), 0.0)

    def closure(self) -> list[Axes]:
        """Every non-empty set of columns that some measured table covers with every level, small sets first."""
        tables = [query.axes for query in self._grids if not query.groups]
        if sum(2 ** len(axes) for axes in tables) > MAX_SETS:
            raise SizeError(
                f"the tables hold more than {MAX_SETS:,} sets of columns; measure tables of fewer columns"
            )
        return closure(tables)[1:]

    def maximal(self) -> list[Axes]:
        """The measured sets of columns, with every level, that no other such set contains, in order."""
        whole = {query.axes: None for query in self._grids if query.axes and not query.groups}
        return sorted(axes for axes in whole if not self._is_inside(axes))

    @cached_property
    def merged(self) -> list[Query]:
        """The measured tables in groups of levels that no other measured table is as fine as."""
        queries = [query.plain() for query in self._grids if query.groups]
        finer = self._finer
        return [
            query
            for query in dict.fromkeys(queries)
            if not any(other != query and _as_fine(other, query) for other in finer(query))
        ]

    def table(self, wanted: Query | Axes) -> Floats:
        """The reconciled counts of a table; they may be negative."""
        query = _query(wanted)
        home = self._home(query)
        return _narrowed(home.counts, home.grid.query, query)

    def variance(self, wanted: Query | Axes) -> Floats:
        """The variance of every cell of `table(wanted)`."""
        query = _query(wanted)
        home = self._home(query)
        alone = home.grid.variance * self._width(query, home)
        value = alone.copy()
        for coefficient, norms in self._simple_terms(query, home):
            value += coefficient * outer(norms)
        tied = self._tied(home)
        value += self._explained(
            home, tied, {n: one for group in tied for n, one in self._reads(query, home, group)}
        )
        return np.where(value > ROUNDING * alone, value, 0.0)

    def mean_variance(self, wanted: Query | Axes) -> float:
        """The mean variance of the cells of `table(wanted)`."""
        query = _query(wanted)
        home = self._home(query)
        if self._tied(home):
            return float(self.variance(query).mean())
        alone = home.grid.variance * float(np.mean(self._width(query, home)))
        terms = self._simple_terms(query, home)
        value = alone + sum(
            coefficient * prod(float(n.mean()) for n in norms) for coefficient, norms in terms
        )
        return value if value > ROUNDING * alone else 0.0

    def linear_variance(self, wanted: Query | Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table(wanted))`, covariances included."""
        query = _query(wanted)
        home = self._home(query)
        return float(
            self._variances(home, self._widened(query, home, np.asarray(weights, dtype=float))[None])[0]
        )

    def interaction_variance(self, wanted: Query | Axes) -> float:
        """The variance of a unit contrast that no smaller table sees, as a mean over all of them; 0 where there is none."""
        query = _query(wanted)
        home, shape = self._home(query), query.shape(self.shape)
        if any(cells < 2 for cells in shape):
            return 0.0
        if home.structure.possible is not None:
            return self._possible_contrast(query, home)
        structure, places = home.structure, [home.grid.query.axes.index(axis) for axis in query.axes]
        if all(_between(home.grid.query, query, axis) is None for axis in query.axes):
            inner = [n for n, choice in enumerate(structure.choices) if self._spans(home, choice, query)]
            if not inner:
                return home.grid.variance * home.counts.size / prod(shape)
            if inner[0] in self._untied(home) and all(
                len(structure.resolutions[p].bands) == 2 for p in places
            ):
                lengths = (structure.resolutions[p].length(1) for p in places)
                return self.fit.variance(home.slots[inner[0]]) / prod(lengths)
        basis: Floats = np.eye(1)
        for cells in shape:
            basis = np.asarray(np.kron(basis, _contrasts(cells)))
        weights = [self._widened(query, home, one) for one in basis.reshape(-1, *shape)]
        return float(self._variances(home, np.stack(weights)).mean())

    def _spans(self, home: Fitted, choice: tuple[int, ...], query: Query) -> bool:
        """Whether a component varies along exactly the columns of a query."""
        return {home.grid.query.axes[place] for place, band in enumerate(choice) if band} == set(query.axes)

    def _possible_contrast(self, query: Query, home: Fitted) -> float:
        """The variance of a unit contrast of two levels of every column, between which all cells are possible; 0 where a column has one possible level.

        Where zeros leave no such levels, the mean variance of a cell stands for it: a noisy table must not pass for an exact one.
        """
        possible = self._width(query, home) > 0
        axes = tuple(range(possible.ndim))
        if any(np.count_nonzero(margin(possible, axes, (axis,))) < 2 for axis in axes):
            return 0.0
        levels = _possible_pairs(possible)
        if levels is None:
            return self.mean_variance(query)
        steps = [np.zeros(cells) for cells in possible.shape]
        for step, (first, second) in zip(steps, levels, strict=True):
            step[first], step[second] = 0.5**0.5, -(0.5**0.5)
        return self.linear_variance(query, outer(steps))

    @cached_property
    def disagreement(self) -> Disagreement:
        """How many sigmas the measured tables disagree by, one by one and together."""
        tables = [one for one in self.measured if isinstance(one.query, Query)]
        each = tuple(Misfit(one.query.axes, *self._misfit(one)) for one in tables)
        return Disagreement(each, self._overall(tables))

    @cached_property
    def _grids(self) -> dict[Query, Fitted]:
        return self.fit.fitted

    def _is_inside(self, axes: Axes) -> bool:
        rarest = min((self._holding[axis] for axis in axes), key=len)
        return any(len(q.axes) > len(axes) and not q.groups and set(axes) < set(q.axes) for q in rarest)

    @cached_property
    def _holding(self) -> dict[int, list[Query]]:
        """The measured queries that hold each column, small ones first."""
        holding: dict[int, list[Query]] = defaultdict(list)
        for query in sorted(self._grids, key=lambda q: (prod(q.shape(self.shape)), len(q.axes))):
            for axis in query.axes:
                holding[axis].append(query)
        return holding

    def _finer(self, query: Query) -> list[Query]:
        """Measured queries among which those that are as fine as this one are."""
        return min((self._holding.get(axis, []) for axis in query.axes), key=len, default=list(self._grids))

    def in_counts(self) -> list[Grid]:
        """The measured tables, repeats of one as one, all in counts: what contrasts and centred tables leave out is taken from the estimate."""
        found = []
        for one in self._grids.values():
            if one.grid.query.axes:
                told = _contrasted(one.grid.query, one.counts)
                found.append(Grid(one.grid.query, one.grid.counts + (one.counts - told), one.grid.variance))
        return found

    def is_even(self, axes: Axes) -> bool:
        """Whether all cells of a table are alike, so that sums of as many of them have one variance."""
        home = self._home(Query(axes))
        even = home.structure.possible is None and not home.grid.query.groups
        return even and not any(one.functions is not None for one in home.structure.resolutions)

    def _home(self, query: Query) -> Fitted:
        """The smallest measured table that is as fine as a query, found once."""
        if query not in self._homes:
            self._homes[query] = self._find_home(query)
        return self._homes[query]

    @cached_property
    def _homes(self) -> dict[Query, Fitted]:
        return dict(self._grids)

    def _find_home(self, query: Query) -> Fitted:
        for other in self._finer(query):
            if _as_fine(other, query):
                return self._grids[other]
        raise ReleaseError(
            f"no measured table holds {self.domain.named(query.axes)} with these levels; measure one that does, or ask for a coarser table"
        )

    def _width(self, query: Query, home: Fitted) -> Floats:
        """How many possible cells of its home each cell of a query sums."""
        possible = home.structure.possible
        cells = np.ones(home.structure.shape) if possible is None else possible.astype(float)
        return np.asarray(_narrowed(cells, home.grid.query, query), dtype=np.float64)

    def _widened(self, query: Query, home: Fitted, weights: Floats) -> Floats:
        """Weights of the cells of a query as weights of the cells of its home."""
        own = home.grid.query
        weights = broadcast_over(weights, query.axes, own.axes)
        for place, axis in enumerate(own.axes):
            between = _between(own, query, axis)
            if between is not None:
                weights = between.spread(weights, place)
        return np.asarray(np.broadcast_to(weights, home.structure.shape))

    def _untied(self, home: Fitted) -> dict[int, Group]:
        """The shared components of a table that are correlated with no other, anywhere; none where cells are impossible."""
        if home.structure.possible is not None:
            return {}
        simple = ((group.choices[0], group) for group in home.structure.groups if group.simple)
        return {
            number: group for number, group in simple if not np.isnan(self.fit.variance(home.slots[number]))
        }

    def _tied(self, home: Fitted) -> list[Group]:
        """The groups of its other shared components."""
        untied = self._untied(home)
        return [group for group in home.structure.groups if group.choices[0] not in untied]

    def _simple_terms(self, query: Query, home: Fitted) -> Iterator[tuple[float, list[Floats]]]:
        """What each untied component adds to the variance of all cells: a product of one vector for each column."""
        own, structure = home.grid.query, home.structure
        for number, group in self._untied(home).items():
            inverse = float(group.inverse[0, 0])
            coefficient = (self.fit.variance(home.slots[number]) * inverse - home.grid.variance) * inverse
            norms = []
            for place, axis in enumerate(own.axes):
                norm = self._norms(
                    structure.resolutions[place], structure.choices[number][place], own, query, axis
                )
                if axis in query.axes:
                    norms.append(norm)
                else:
                    coefficient *= float(norm[0])
            yield coefficient, norms

    def _norms(self, resolution: Resolution, band: int, own: Query, query: Query, axis: int) -> Floats:
        """For each cell of a query along one column, the squared length of what a band sees of it."""
        cells = resolution.cells
        if not band:
            return np.asarray(self._weights(cells, own, query, axis).sum(axis=0) ** 2)
        if axis in query.axes and _between(own, query, axis) is None and resolution.functions is None:
            return np.full(cells, 1 - 1 / cells)
        seen = resolution.transform(self._weights(cells, own, query, axis), 0)[resolution.rows[band]]
        return np.asarray((seen**2).sum(axis=0))

    def _weights(self, cells: int, own: Query, query: Query, axis: int) -> Floats:
        """The cells of a table along one column, by those of a query, that each of the latter sums."""
        if axis not in query.axes:
            return np.ones((cells, 1))
        between = _between(own, query, axis)
        return np.eye(cells) if between is None else between.matrix.T

    def _reads(self, query: Query, home: Fitted, group: Group) -> Iterator[tuple[int, Floats]]:
        """For each component of a group what its functions read of every cell of a query, in shapes that broadcast over the cells."""
        own, structure = home.grid.query, home.structure
        for number, part in zip(group.choices, group.parts, strict=True):
            if structure.possible is not None:
                unit = np.zeros((part.stop - part.start, prod(structure.shape[p] for p in structure.places)))
                unit[np.arange(len(unit)), group.positions[part]] = 1.0
                cells = np.broadcast_to(structure.cells(unit), (len(unit), *structure.shape))
                yield number, np.stack([_narrowed(one, own, query) for one in cells])
                continue
            read = np.ones((1, *(1 for _ in query.axes)))
            for place, axis in enumerate(own.axes):
                resolution, band = structure.resolutions[place], structure.choices[number][place]
                weights = self._weights(resolution.cells, own, query, axis)
                seen = (
                    resolution.transform(weights, 0)[resolution.rows[band]]
                    if band
                    else weights.sum(axis=0, keepdims=True)
                )
                inside = [seen.shape[1] if axis == other else 1 for other in query.axes]
                seen = seen.reshape(1, len(seen), *inside)
                read = (read[:, None] * seen).reshape(
                    -1, *np.broadcast_shapes(read.shape[1:], seen.shape[2:])
                )
            yield number, read

    def _explained(self, home: Fitted, groups: Sequence[Group], reads: dict[int, Floats]) -> Floats:
        """What sharing components changes in the variance of sums, of which their functions read so much: −v aᵀG⁻¹a + (G⁻¹a)ᵀ C (G⁻¹a)."""
        value, levers = np.zeros(()), {}
        for group in groups:
            for i, one in enumerate(group.choices):
                lever = reads[one] * group.inverse[0, 0] if group.simple else np.zeros(())
                for j, other in () if group.simple else enumerate(group.choices):
                    block = group.inverse[group.parts[i], group.parts[j]]
                    if np.any(block):
                        lever = lever + np.tensordot(block, reads[other], axes=1)
                value = value - home.grid.variance * (reads[one] * lever).sum(axis=0)
                mapped = group.maps[i]
                levers[one] = lever if mapped is None else np.tensordot(mapped.T, lever, axes=1)
        tied = []
        for number, lever in levers.items():
            variance = self.fit.variance(home.slots[number])
            if np.isnan(variance):
                tied.append((home.slots[number], lever))
            else:
                value = value + variance * (lever**2).sum(axis=0)
        for place, (slot, lever) in enumerate(tied):
            for second, right in tied[place:]:
                known = self.fit.covariance(slot, second)
                if known is not None:
                    times = 1.0 if slot == second else 2.0
                    value = value + times * (np.tensordot(known.T, lever, axes=1) * right).sum(axis=0)
        return np.asarray(value)

    def _variances(self, home: Fitted, weights: Floats) -> Floats:
        """The variances of weighted sums over the cells of a measured table, one for each of a stack of weights."""
        structure = home.structure
        if structure.possible is not None:
            weights = np.where(structure.possible, weights, 0.0)
        alone = home.grid.variance * (weights**2).sum(axis=tuple(range(1, weights.ndim)))
        seen = structure.coefficients(weights)
        reads = {
            number: seen[:, group.positions[part]].T
            for group in structure.groups
            for number, part in zip(group.choices, group.parts, strict=True)
        }
        value = alone + self._explained(home, structure.groups, reads)
        return np.where(value > ROUNDING * alone, value, 0.0)

    def _misfit(self, one: Measurement) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against everything else (repeats of itself included)."""
        if one.exact:
            return 0.0, 0
        (own,) = merged(self.domain, [one])
        home = self._grids[own.query]
        structure, together = home.structure, home.grid
        chi2, dof = 0.0, 0
        seen = structure.coefficients(own.counts[None])[0]
        rest = (
            own.counts - together.counts
            if structure.possible is None
            else np.where(structure.possible, own.counts - together.counts, 0.0)
        )
        left = float((rest**2).sum())
        left_dof = (
            rest.size if structure.possible is None else int(structure.possible.sum())
        ) - own.query.centred
        beyond = structure.coefficients(rest[None])[0]
        for group in structure.groups:
            slots = [home.slots[number] for number in group.choices]
            gap = seen[group.positions] - group.seen([self.fit.value(slot) for slot in slots])
            change = beyond[group.positions]
            inverse, information = group.square(group.inverse), group.square(group.information)
            left -= float(change @ inverse @ change)
            if not np.any(information):
                continue
            left_dof -= np.linalg.matrix_rank(information) if not group.simple else len(gap)
            part, rank = self._gap_misfit(group, slots, gap, information, own.variance)
            chi2, dof = chi2 + part, dof + rank
        if own.variance > together.variance * (1 + 1e-12):
            chi2, dof = chi2 + max(left, 0.0) / (own.variance - together.variance), dof + left_dof
        return chi2, int(dof)

    def _gap_misfit(
        self, group: Group, slots: Sequence[Slot], gap: Floats, information: Floats, variance: float
    ) -> tuple[float, int]:
        """gapᵀ Cov⁻¹ gap of what one table says of a group of components beyond what all say together, and the rank of that covariance."""
        if group.simple and not np.isnan(known := self.fit.variance(slots[0])):
            own = variance / float(information[0, 0])
            return (float(gap @ gap) / (own - known), len(gap)) if own - known > 1e-12 * own else (0.0, 0)
        # In the directions that the table sees: T F y has the covariance v T G Tᵀ.
        gram = group.square(group.gram)
        turn = gram @ information
        covariance = variance * gram @ information @ gram
        for i, one in enumerate(slots):
            for j, other in enumerate(slots):
                block = self.fit.covariance(one, other)
                if block is not None:
                    left, right = (group.maps[n] for n in (i, j))
                    block = block if left is None else left @ block
                    block = block if right is None else block @ right.T
                    covariance = covariance - turn[:, group.parts[i]] @ block @ turn[:, group.parts[j]].T
        return _quadratic(turn @ gap, covariance)

    def _overall(self, tables: Sequence[Measurement]) -> Misfit:
        chi2, observed = 0.0, 0
        for one in tables:
            (grid,) = merged(self.domain, [one])
            home = self._grids[grid.query]
            if grid.variance > 0:
                gaps = _contrasted(grid.query, grid.counts - home.counts)
                possible = home.structure.possible
                chi2 += float((gaps**2 if possible is None else (gaps**2)[possible]).sum()) / grid.variance
                observed += freedom(grid.query, gaps.shape) if possible is None else int(possible.sum())
        return Misfit((), chi2, observed - self.fit.parameters)


def reconcile(
    domain: Domain, measurements: Sequence[Measurement], *, total: float | None = None
) -> Reconciled:
    """Combine overlapping noisy tables of any resolution by generalised least squares; `total` is a public, exact number of rows.

    Exact tables that contradict one another, the total or the structural zeros of the domain are a `ReleaseError`.
    """
    if not measurements:
        raise ReleaseError("measurements (none) must hold at least one table")
    for one in measurements:
        if (
            one.query.axes and one.query.axes[-1] >= len(domain.sizes)
        ) or one.values.shape != one.query.shape(domain.sizes):
            raise ReleaseError(
                f"the table on axes {one.query.axes} must have the levels of its columns, got {one.values.shape}"
            )
    public = [] if total is None else [Measurement(Query(()), np.asarray(float(total)), Noise("none", 0.0))]
    return Reconciled(tuple(measurements), LeastSquares(domain, [*public, *measurements]))


def check_size(domain: Domain, queries: Sequence[Query]) -> None:
    """Refuse tables that structural zeros or uneven groups make too many to reconcile: a `SizeError` before anything is measured."""
    touched = (
        [query for query in dict.fromkeys(queries) if not domain.possible(query.axes).all()]
        if domain.zeros
        else []
    )
    if touched:
        layout = Layout(domain, list(dict.fromkeys(queries)))
        check_tied(layout.functions(touched))


def _query(wanted: Query | Axes) -> Query:
    return wanted if isinstance(wanted, Query) else Query(wanted)


def _as_fine(own: Query, wanted: Query) -> bool:
    """Whether every cell of a wanted query is a sum of cells of a measured one."""
    held = dict(zip(own.axes, own.forms, strict=True))
    forms = zip(wanted.axes, wanted.forms, strict=True)
    return all(axis in held and _within(held[axis], groups) for axis, groups in forms)


def _within(fine: Groups | None, coarse: Groups | None) -> bool:
    return fine is None or (coarse is not None and coarse.within(fine))


def _between(own: Query, wanted: Query, axis: int) -> Groups | None:
    """How cells of a measured table are grouped along a column that a query asks for; None where they are the same."""
    if axis not in wanted.axes:
        return None
    fine, coarse = (one.forms[one.axes.index(axis)] for one in (own, wanted))
    if coarse is None or fine == coarse:
        return None
    return coarse if fine is None else Groups(tuple(coarse.of[first] for first in fine.starts))


def _narrowed(cells: Floats, own: Query, wanted: Query) -> Floats:
    """Cells of a measured table summed into those of a query."""
    cells = margin(cells, own.axes, wanted.axes)
    for place, axis in enumerate(wanted.axes):
        between = _between(own, wanted, axis)
        cells = cells if between is None else between.merge(cells, place)
    return np.asarray(cells)


def _contrasts(cells: int) -> Floats:
    """Orthonormal contrasts between so many cells."""
    whole = np.linalg.qr(np.vstack([np.ones(cells), np.eye(cells)[1:]]).T)[0].T
    return np.asarray(whole[1:])


def _contrasted(query: Query, counts: Floats) -> Floats:
    """Counts less what a query does not ask for: their mean where it is centred, their means along its contrasts."""
    if query.centred:
        return np.asarray(counts - counts.mean())
    for place, axis in enumerate(query.axes):
        if axis in query.contrasts:
            counts = counts - counts.mean(axis=place, keepdims=True)
    return counts


def _quadratic(gap: Floats, covariance: Floats) -> tuple[float, int]:
    """gapᵀ covariance⁺ gap, and the rank of the covariance."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    real = values > 1e-8 * max(float(values.max(initial=0.0)), 1e-300)
    seen = vectors[:, real].T @ gap
    return float((seen**2 / values[real]).sum()), int(real.sum())


def _possible_pairs(possible: Bools) -> list[tuple[int, int]] | None:
    """Two levels of every axis between which all cells are possible, among the levels with the most of them; None where none are found."""
    if not possible.ndim:
        return [] if possible else None
    rank = np.argsort(-possible.reshape(len(possible), -1).sum(axis=1), kind="stable")
    for first, second in islice(combinations(rank.tolist(), 2), _MOST_TRIED):
        others = _possible_pairs(np.asarray(possible[first] & possible[second]))
        if others is not None:
            return [(first, second), *others]
    return None
