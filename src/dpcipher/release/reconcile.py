"""Reconcile: the best estimate of every table from overlapping noisy ones, with the variance of every cell.

Generalised least squares (`least_squares`), no more: nothing is clipped, shrunk or rounded, so every estimate is unbiased and its variance is known.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError
from dpcipher.release.least_squares import Fitted, Grid, LeastSquares
from dpcipher.release.misfit import Disagreement, disagreement
from dpcipher.release.readings import Reading
from dpcipher.release.sharing import Components
from dpcipher.release.structure import check_tied, structure_of
from dpcipher.tables.domain import Axes, Domain, Floats, Shape, closure
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

MAX_SETS = 2**25


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
            if not any(other != query and other.refines(query) for other in finer(query))
        ]

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
                left_out = one.counts - one.grid.query.less_means(one.counts)
                found.append(Grid(one.grid.query, one.grid.counts + left_out, one.grid.variance))
        return found

    def is_even(self, axes: Axes) -> bool:
        """Whether all cells of a table are alike, so that sums of as many of them have one variance."""
        home = self._home(Query(axes))
        even = home.structure.possible is None and not home.grid.query.groups
        return even and not any(one.functions is not None for one in home.structure.form.resolutions)

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
