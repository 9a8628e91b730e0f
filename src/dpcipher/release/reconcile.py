"""Reconcile: the best estimate of every table from overlapping noisy ones, with the variance of every cell, and how far each is from the others.

Generalised least squares (`least_squares`), no more: nothing is clipped, shrunk or rounded, so every estimate is unbiased and its variance is known.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, takewhile
from math import prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.least_squares import Fitted, Grid, LeastSquares, merged
from dpcipher.release.sharing import Components
from dpcipher.release.structure import NOTHING, Group, check_tied, structure_of
from dpcipher.tables.domain import Axes, Bools, Domain, Floats, Shape, closure, maximal
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query, outer
from dpcipher.tables.table import PART, broadcast_over, centre, margin

MAX_SETS = 2**25
# Where exact tables fix every component of a sum, a share like this of its noise is left by rounding; exact means 0.
_ROUNDING = 1e-13
_MOST_TRIED = 100  # pairs of levels of an axis, when two are looked for that zeros leave alone
_SINGULAR = 1e-8  # a direction of a covariance below this part of the largest is rounding


@dataclass(frozen=True, eq=False)
class Reading:
    """A query as sums of cells of a measured table, its home. Variances are those of `least_squares`, Var(wᵀμ)."""

    fit: LeastSquares
    home: Fitted
    query: Query

    @property
    def counts(self) -> Floats:
        """The estimate of every cell."""
        return self._narrowed(self.home.counts)

    @property
    def variance(self) -> Floats:
        """The variance of every cell."""
        alone = self.home.grid.variance * self.width
        value = alone.copy()
        for coefficient, squares in self._products():
            value += coefficient * outer(squares)
        for changes, sums in self._directions():
            value += np.tensordot(changes, sums**2, axes=1)
        return np.where(value > _ROUNDING * alone, value, 0.0)

    @property
    def mean_variance(self) -> float:
        """The mean variance of the cells."""
        if self._tied is not None:
            return float(self.variance.mean())
        alone = self.home.grid.variance * float(np.mean(self.width))
        terms = (change * prod(float(one.mean()) for one in squares) for change, squares in self._products())
        return _at_least_rounding(alone + sum(terms), alone)

    def linear_variance(self, weights: Floats) -> float:
        """The variance of a weighted sum of the cells."""
        cells = self._widened(weights)
        seen, owner = self.home.structure.read(cells[None])[0], self.home.structure.owner
        alone = self.home.grid.variance * float((cells**2).sum())
        untied = self.fit.untied(self.home)
        value = alone + sum(change * float((seen[owner == place] ** 2).sum()) for place, _, change in untied)
        if self._tied is not None:
            reads = seen[self._tied.slots]
            value += float(reads @ self._change @ reads)
        return _at_least_rounding(value, alone)

    @property
    def interaction_variance(self) -> float:
        """The variance of a unit contrast that no smaller table sees, as a mean over all of them; 0 where there is none."""
        shape = self.query.shape(self.fit.domain.sizes)
        if any(cells < 2 for cells in shape):
            return 0.0
        if self.home.structure.possible is not None:
            return self._possible_contrast()
        freedom = prod(cells - 1 for cells in shape)
        alone = value = self.home.grid.variance * self.home.counts.size / prod(shape)
        for change, squares in self._products(centred=True):
            value += change * prod(float(one.sum()) for one in squares) / freedom
        for changes, sums in self._directions():
            centred = centre(sums, first=1).reshape(len(sums), -1)
            value += float(changes @ (centred**2).sum(axis=1)) / freedom
        return _at_least_rounding(value, alone)

    def _possible_contrast(self) -> float:
        """The variance of a unit contrast of two levels of every column, between which all cells are possible; 0 where a column has one possible level.

        Where zeros leave no such levels, the mean variance of a cell stands for it: a noisy table must not pass for an exact one.
        """
        possible = self.width > 0
        axes = tuple(range(possible.ndim))
        if any(np.count_nonzero(margin(possible, axes, (axis,))) < 2 for axis in axes):
            return 0.0
        levels = _possible_pairs(possible)
        if levels is None:
            return self.mean_variance
        steps = [np.zeros(cells) for cells in possible.shape]
        for step, (first, second) in zip(steps, levels, strict=True):
            step[first], step[second] = 0.5**0.5, -(0.5**0.5)
        return self.linear_variance(outer(steps))

    @property
    def width(self) -> Floats:
        """How many possible cells of the home each cell sums."""
        possible = self.home.structure.possible
        return self._narrowed(
            np.ones(self.home.structure.shape) if possible is None else possible.astype(float)
        )

    @cached_property
    def _tied(self) -> Group | None:
        return self.fit.tied(self.home)

    @cached_property
    def _change(self) -> Floats:
        """What knowing correlated components changes in the variance of what they read: −v G⁻¹ + G⁻¹ C G⁻¹."""
        assert self._tied is not None
        levers = self._tied.told(self._tied.inverse)
        known = self.fit.covariance(self.home.components[list(self._tied.choices)].tolist())
        return np.asarray(levers @ known @ levers.T - self.home.grid.variance * self._tied.inverse)

    def _directions(self) -> Iterator[tuple[Floats, Floats]]:
        """Sums of the functions of correlated components as the cells read them, which change the variance each by itself: how much, and a stack of tables."""
        if self._tied is not None:
            changes, vectors = np.linalg.eigh(self._change)
            structure = self.home.structure
            step = max(1, PART // prod(structure.shape))
            for some in (slice(start, start + step) for start in range(0, len(changes), step)):
                cells = structure.functions(self._tied.slots, vectors[:, some].T)
                yield changes[some], np.stack([self._narrowed(one) for one in cells])

    def _products(self, *, centred: bool = False) -> Iterator[tuple[float, list[Floats]]]:
        """What each uncorrelated component changes in the variance of all cells: a product of one vector for each column.

        Where `centred`, the means of what is seen along each column are left out.
        """
        for number, _, change in self.fit.untied(self.home):
            choice, squares = self.home.structure.choices[number], []
            for place, axis in enumerate(self.home.grid.query.axes):
                square = self._square(place, choice[place], centred)
                if axis in self.query.axes:
                    squares.append(square)
                else:
                    change *= float(square[0])
            yield change, squares

    def _square(self, place: int, band: int, centred: bool) -> Floats:
        """For each cell along one column of the home, the squared length of what a band sees of it."""
        resolution, axis = self.home.structure.form.resolutions[place], self.home.grid.query.axes[place]
        sums = dict(self._sums.columns).get(axis)
        if axis not in self.query.axes:
            weights = np.ones((resolution.cells, 1))
        elif sums is not None:
            weights = sums.matrix.T
        elif band and resolution.functions is not None:
            weights = np.eye(resolution.cells)
        else:
            return np.full(resolution.cells, 1 - 1 / resolution.cells if band else float(not centred))
        seen = weights.sum(axis=0, keepdims=True)
        if band:
            seen = resolution.transform(weights, 0)[resolution.rows[band]]
        if centred and axis in self.query.axes:
            seen = centre(seen, first=1)
        return np.asarray((seen**2).sum(axis=0))

    @cached_property
    def _sums(self) -> Query:
        """The query, of cells of the home."""
        return self.query.of_cells(self.home.grid.query)

    def _narrowed(self, cells: Floats) -> Floats:
        """Cells of the home summed into those of the query."""
        return np.asarray(self._sums.merge(margin(cells, self.home.grid.query.axes, self.query.axes)))

    def _widened(self, weights: Floats) -> Floats:
        """Weights of the cells of the query as weights of the possible cells of the home."""
        structure = self.home.structure
        weights = broadcast_over(self._sums.spread(weights), self.query.axes, self.home.grid.query.axes)
        return np.where(
            True if structure.possible is None else structure.possible, weights, np.zeros(structure.shape)
        )


def _at_least_rounding(value: float, alone: float) -> float:
    return value if value > _ROUNDING * alone else 0.0


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


def disagreement(fit: LeastSquares, measured: Sequence[Measurement]) -> Disagreement:
    """The misfit of every measured table, and of all together."""
    tables = [one for one in measured if isinstance(one.query, Query)]
    gaps = [_gap(fit, one) for one in tables if not one.exact]
    chi2 = sum(float((gap**2).sum()) / own.variance for own, _, gap in gaps)
    overall = Misfit((), chi2, sum(home.freedom for _, home, _ in gaps) - fit.parameters)
    return Disagreement(tuple(Misfit(one.query.axes, *_misfit(fit, one)) for one in tables), overall)


def _gap(fit: LeastSquares, one: Measurement) -> tuple[Grid, Fitted, Floats]:
    """A measured table, what became of it, and how far it is from that in what it says."""
    (own,) = merged(fit.domain, [one])
    home = fit.fitted[own.query]
    gap = own.query.less_means(own.counts - home.counts)
    return own, home, gap if home.structure.possible is None else gap * home.structure.possible


def _misfit(fit: LeastSquares, one: Measurement) -> tuple[float, int]:
    """χ² and degrees of freedom of one measured table against everything else, repeats of itself included.

    Its gap to the estimate has its own covariance less that of the estimate: v P − P C P for what it says of shared components (P is the precision that it
    adds to theirs, for v = 1), and beyond them v less the variance of all repeats together.
    """
    own, home, gap = _gap(fit, one)
    if one.exact:
        return 0.0, 0
    chi2, dof, structure = 0.0, 0, home.structure
    seen = structure.read(gap[None])
    left = float((gap**2).sum() - (structure.times_inverse(seen) * seen).sum())
    for place, variance, _ in fit.untied(home):
        if structure.information[place]:
            alone = own.variance / float(structure.information[place])
            if alone - variance > NOTHING * alone:
                part = seen[0, structure.owner == place]
                chi2, dof = chi2 + float((part**2).sum()) / (alone - variance), dof + len(part)
    tied = fit.tied(home)
    if tied is not None:
        precision, known = tied.precision, fit.covariance(home.components[list(tied.choices)].tolist())
        pull = tied.told(seen[0, tied.slots] @ tied.information)
        values, vectors = np.linalg.eigh(own.variance * precision - precision @ known @ precision)
        real = values > _SINGULAR * max(float(values.max(initial=0.0)), 1e-300)
        chi2 += float(((vectors[:, real].T @ pull) ** 2 / values[real]).sum())
        dof += int(real.sum())
    if own.variance > home.grid.variance * (1 + NOTHING):
        chi2 += max(left, 0.0) / (own.variance - home.grid.variance)
        dof += home.freedom - structure.rank
    return chi2, dof


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
        return maximal(query.axes for query in self._grids if query.axes and not query.groups)

    @cached_property
    def merged(self) -> list[Query]:
        """The measured tables in groups of levels that no other measured table is as fine as."""
        queries = dict.fromkeys(query.plain() for query in self._grids if query.groups)
        return [query for query in queries if not self._is_refined(query)]

    def _is_refined(self, query: Query) -> bool:
        """Whether a measured table of more cells is as fine as a query."""
        cells = prod(query.shape(self.shape))
        larger = takewhile(lambda one: prod(one.shape(self.shape)) > cells, reversed(self._finer(query)))
        return any(other.refines(query) for other in larger)

    def table(self, wanted: Query | Axes) -> Floats:
        """The reconciled counts of a table; they may be negative."""
        return self._read(wanted).counts

    def variance(self, wanted: Query | Axes) -> Floats:
        """The variance of every cell of `table(wanted)`."""
        return self._read(wanted).variance

    def mean_variance(self, wanted: Query | Axes) -> float:
        """The mean variance of the cells of `table(wanted)`."""
        return self._read(wanted).mean_variance

    def linear_variance(self, wanted: Query | Axes, weights: Floats) -> float:
        """The variance of `sum(weights * table(wanted))`, covariances included."""
        return self._read(wanted).linear_variance(np.asarray(weights, dtype=float))

    def interaction_variance(self, wanted: Query | Axes) -> float:
        """The variance of a unit contrast that no smaller table sees, as a mean over all of them; 0 where there is none."""
        return self._read(wanted).interaction_variance

    @cached_property
    def disagreement(self) -> Disagreement:
        """How many sigmas the measured tables disagree by, one by one and together."""
        return disagreement(self.fit, self.measured)

    def _read(self, wanted: Query | Axes) -> Reading:
        query = wanted if isinstance(wanted, Query) else Query(wanted)
        return Reading(self.fit, self._home(query), query)

    @cached_property
    def _grids(self) -> dict[Query, Fitted]:
        return self.fit.fitted

    @cached_property
    def _ordered(self) -> list[Query]:
        """The measured queries, small ones first."""
        return sorted(self._grids, key=lambda query: (prod(query.shape(self.shape)), len(query.axes)))

    @cached_property
    def _holding(self) -> dict[int, list[Query]]:
        """Those that hold each column."""
        holding: dict[int, list[Query]] = defaultdict(list)
        for query in self._ordered:
            for axis in query.axes:
                holding[axis].append(query)
        return holding

    def _finer(self, query: Query) -> list[Query]:
        """Measured queries among which those that are as fine as this one are."""
        return min((self._holding.get(axis, []) for axis in query.axes), key=len, default=self._ordered)

    def in_counts(self) -> list[Grid]:
        """The measured tables, repeats of one as one, all in counts: what contrasts and centred tables leave out is taken from the estimate."""
        found = []
        for one in self._grids.values():
            if one.grid.query.axes:
                left_out = one.counts - one.grid.query.less_means(one.counts)
                found.append(Grid(one.grid.query, one.grid.counts + left_out, one.grid.variance))
        return found

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
            if other.refines(query):
                return self._grids[other]
        raise ReleaseError(
            f"no measured table holds {self.domain.named(query.axes)} with these levels; measure one that does, or ask for a coarser table"
        )


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
    if not domain.zeros and not any(query.groups for query in distinct):
        return  # nothing is tied
    components, tied = Components(domain, distinct, [False] * len(distinct)), [np.zeros(0, dtype=np.intp)]
    for sharing in components.sharings:
        names = enumerate(sharing.numbers if domain.zeros else ())
        cut = [n for n, one in names if not domain.possible(distinct[one].axes).all()]
        groups = [group.choices for group in structure_of(sharing.form, sharing.choices).groups]
        tied += [sharing.components[cut].ravel(), *(sharing.components[:, some].ravel() for some in groups)]
    check_tied(int(components.sizes[np.unique(np.concatenate(tied))].sum()))
