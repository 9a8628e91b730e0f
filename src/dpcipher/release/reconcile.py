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
from dpcipher.release.components import Components
from dpcipher.release.least_squares import Fitted, Grid, Group, LeastSquares, check_tied, merged, rank, times
from dpcipher.tables.domain import Axes, Bools, Domain, Floats, Shape, closure
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Groups, Query, outer
from dpcipher.tables.table import broadcast_over, centre, margin

MAX_SETS = 2**25
# Where exact tables fix every component of a sum, a share like this of its noise is left by rounding; exact means 0.
ROUNDING = 1e-13
_LEAST_FREE = 1e-12  # what is smaller than this part of a variance is rounding
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
        return float(self.fit.values[0])

    @cached_property
    def total_variance(self) -> float:
        """The variance of the number of rows; 0 where it is known."""
        return max(float(self.fit.covariance([0])[0, 0]), 0.0)

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
        for coefficient, squares in self._products(query, home):
            value += coefficient * outer(squares)
        for reads, matrix in self._tied_reads(query, home):
            value += (reads * (matrix @ reads)).sum(axis=0).reshape(value.shape)
        return np.where(value > ROUNDING * alone, value, 0.0)

    def mean_variance(self, wanted: Query | Axes) -> float:
        """The mean variance of the cells of `table(wanted)`."""
        query = _query(wanted)
        home = self._home(query)
        if self._groups(home)[1] is not None:
            return float(self.variance(query).mean())
        alone = value = home.grid.variance * float(np.mean(self._width(query, home)))
        for coefficient, squares in self._products(query, home):
            value += coefficient * prod(float(one.mean()) for one in squares)
        return value if value > ROUNDING * alone else 0.0

    def linear_variance(self, wanted: Query | Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table(wanted))`, covariances included."""
        query = _query(wanted)
        home = self._home(query)
        cells = self._widened(query, home, np.asarray(weights, dtype=float))
        if home.structure.possible is not None:
            cells = np.where(home.structure.possible, cells, 0.0)
        seen = home.structure.coefficients(cells[None])[0]
        alone = value = home.grid.variance * float((cells**2).sum())
        simple, rest = self._groups(home)
        for group, coefficient in simple:
            value += coefficient * float((seen[group.positions] ** 2).sum())
        if rest is not None:
            reads = seen[rest.positions]
            value += float(reads @ self._explained(home, rest) @ reads)
        return value if value > ROUNDING * alone else 0.0

    def interaction_variance(self, wanted: Query | Axes) -> float:
        """The variance of a unit contrast that no smaller table sees, as a mean over all of them; 0 where there is none."""
        query = _query(wanted)
        home, shape = self._home(query), query.shape(self.shape)
        if any(cells < 2 for cells in shape):
            return 0.0
        if home.structure.possible is not None:
            return self._possible_contrast(query, home)
        alone = value = home.grid.variance * home.counts.size / prod(shape)
        freedom = prod(cells - 1 for cells in shape)
        for coefficient, squares in self._products(query, home, centred=True):
            value += coefficient * prod(float(one.sum()) for one in squares) / freedom
        for reads, matrix in self._tied_reads(query, home):
            centred = centre(reads.reshape(-1, *shape), first=1).reshape(reads.shape)
            value += float((centred * (matrix @ centred)).sum()) / freedom
        return value if value > ROUNDING * alone else 0.0

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

    def _groups(self, home: Fitted) -> tuple[list[tuple[Group, float]], Group | None]:
        """The groups of a table of which nothing is correlated with anything, with what knowing them changes in its variance; and all others as one."""
        simple, rest = [], []
        for group in home.structure.groups:
            known = float(self.fit.variances[home.components[group.choices[0]]])
            if group.simple and not np.isnan(known):
                inverse = float(group.inverse)
                simple.append((group, (known * inverse - home.grid.variance) * inverse))
            else:
                rest.append(group)
        return simple, Group.joined(rest) if rest else None

    def _explained(self, home: Fitted, group: Group) -> Floats:
        """What knowing correlated components changes in the variance of what they read: −v G⁻¹ + G⁻¹ C G⁻¹."""
        levers = group.told(group.inverse)
        known = self.fit.covariance(home.components[list(group.choices)].tolist())
        return np.asarray(levers @ known @ levers.T - home.grid.variance * group.inverse)

    def _products(
        self, query: Query, home: Fitted, *, centred: bool = False
    ) -> Iterator[tuple[float, list[Floats]]]:
        """What each uncorrelated component changes in the variance of all cells of a query: a product of one vector for each of its columns.

        Where `centred`, the means of what is seen along each of its columns are left out.
        """
        for group, coefficient in self._groups(home)[0]:
            choice, squares = home.structure.choices[group.choices[0]], []
            for place, axis in enumerate(home.grid.query.axes):
                square = self._square(query, home, place, choice[place], centred)
                if axis in query.axes:
                    squares.append(square)
                else:
                    coefficient *= float(square[0])
            yield coefficient, squares

    def _square(self, query: Query, home: Fitted, place: int, band: int, centred: bool) -> Floats:
        """For each cell of a query along one column, the squared length of what a band sees of it."""
        own, resolution = home.grid.query, home.structure.resolutions[place]
        axis, cells = own.axes[place], resolution.cells
        between = _between(own, query, axis)
        if axis not in query.axes:
            weights = np.ones((cells, 1))
        elif between is not None:
            weights = between.matrix.T
        elif band and resolution.functions is not None:
            weights = np.eye(cells)
        else:
            return np.full(cells, 1 - 1 / cells if band else float(not centred))
        seen = weights.sum(axis=0, keepdims=True)
        if band:
            seen = resolution.transform(weights, 0)[resolution.rows[band]]
        if centred and axis in query.axes:
            seen = centre(seen, first=1)
        return np.asarray((seen**2).sum(axis=0))

    def _tied_reads(self, query: Query, home: Fitted) -> Iterator[tuple[Floats, Floats]]:
        """What the functions of correlated components read of each cell of a query, and what knowing them changes; nothing where there are none."""
        rest = self._groups(home)[1]
        if rest is not None:
            cells = home.structure.functions(rest.positions)
            reads = [_narrowed(one, home.grid.query, query).ravel() for one in cells]
            yield np.stack(reads), self._explained(home, rest)

    def _gap(self, one: Measurement) -> tuple[Grid, Fitted, Floats]:
        """A measured table, what became of it, and how far it is from that, as far as it says."""
        (own,) = merged(self.domain, [one])
        home = self._grids[own.query]
        gap = _contrasted(own.query, own.counts - home.counts)
        return (
            own,
            home,
            gap if home.structure.possible is None else np.where(home.structure.possible, gap, 0.0),
        )

    def _misfit(self, one: Measurement) -> tuple[float, int]:
        """χ² and degrees of freedom of one measured table against everything else, repeats of itself included.

        Its gap to the estimate has a covariance that is smaller than its own by that of the estimate: v P − P C P for what it says of shared components (P is
        their precision for v = 1), and beyond them v less the variance of all repeats together.
        """
        own, home, gap = self._gap(one)
        if one.exact:
            return 0.0, 0
        chi2, dof, left, left_dof = 0.0, 0, float((gap**2).sum()), home.freedom
        seen = home.structure.coefficients(gap[None])[0]
        for group in home.structure.groups:
            part = seen[group.positions]
            left, left_dof = left - float(times(part, group.inverse) @ part), left_dof - rank(group)
        simple, rest = self._groups(home)
        for group, _ in (pair for pair in simple if pair[0].information):
            alone = own.variance / float(group.information)
            free = alone - float(self.fit.variances[home.components[group.choices[0]]])
            if free > _LEAST_FREE * alone:
                chi2 += float((seen[group.positions] ** 2).sum()) / free
                dof += len(group.positions)
        if rest is not None:
            precision = rest.precision
            known = self.fit.covariance(home.components[list(rest.choices)].tolist())
            pull = rest.told(seen[rest.positions] @ rest.information)
            part_chi2, part_dof = _quadratic(pull, own.variance * precision - precision @ known @ precision)
            chi2, dof = chi2 + part_chi2, dof + part_dof
        if own.variance > home.grid.variance * (1 + _LEAST_FREE):
            chi2, dof = chi2 + max(left, 0.0) / (own.variance - home.grid.variance), dof + left_dof
        return chi2, dof

    @cached_property
    def disagreement(self) -> Disagreement:
        """How many sigmas the measured tables disagree by, one by one and together."""
        tables = [one for one in self.measured if isinstance(one.query, Query)]
        gaps = [self._gap(one) for one in tables if not one.exact]
        chi2 = sum(float((gap**2).sum()) / own.variance for own, _, gap in gaps)
        overall = Misfit((), chi2, sum(home.freedom for _, home, _ in gaps) - self.fit.parameters)
        return Disagreement(tuple(Misfit(one.query.axes, *self._misfit(one)) for one in tables), overall)


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
    distinct = list(dict.fromkeys(queries))
    touched = [
        n for n, query in enumerate(distinct) if domain.zeros and not domain.possible(query.axes).all()
    ]
    if touched:
        check_tied(Components(domain, distinct, [False] * len(distinct)).functions(touched))


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
