"""What a release says about a few columns: every table that overlaps them, summed over the other columns, whatever the groups of its levels."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError, SolveError, shown_count
from dpcipher.posteriors.noise_law import NoiseLaw
from dpcipher.posteriors.prior import Levels, levels_of
from dpcipher.release.release import Release
from dpcipher.tables.domain import Axes, Bools, Floats, Shape, maximal
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query
from dpcipher.tables.table import margin

MOST_CELLS = 20_000
# Sums with at most this excess kurtosis are averaged with others of the same columns: nearly normal, they lose next to nothing by it.
NEARLY_NORMAL = 1.0
# The noise given to exact tables beside noisy ones, as a share of theirs.
SOFTENED = 0.1
# And to exact tables in groups of levels, at least, as a share of their mean count.
SOFTENED_GROUPS = 0.01
# Standard errors that no total is off by, Laplace noise included.
FAR = 12.0


@dataclass(frozen=True)
class Observed:
    """Noisy answers to a query about the columns, numbered among them, in rows, and the law of the noise on each.

    Answers are counts, less what the query does not ask for: less their mean where it is centred. `noise` and `summed` say where the noise came from, for
    counts of one table: each has that of so many of its cells. `noise` is None for exact tables and means of several.
    """

    query: Query
    counts: Floats
    law: NoiseLaw
    exact: bool
    noise: Noise | None = None
    summed: int = 0

    @property
    def axes(self) -> Axes:
        """The columns."""
        return self.query.axes

    @property
    def tells_total(self) -> bool:
        """Whether its counts add up to the number of rows."""
        return not (self.query.centred or self.query.contrasts)

    @property
    def tells_levels(self) -> bool:
        """Whether it has a count for each level."""
        return bool(self.axes) and not (self.query.groups or self.query.contrasts)

    @property
    def total_variance(self) -> float:
        """The variance of the sum of its counts."""
        return float(self.law.variance.sum())


@dataclass(frozen=True)
class Evidence:
    """The levels of the columns, which cells are possible, the tables seen, and the number of rows where it is known."""

    levels: tuple[Levels, ...]
    possible: Bools
    tables: tuple[Observed, ...]
    n_rows: float | None

    @property
    def shape(self) -> Shape:
        """How many levels every column has."""
        return tuple(levels.size for levels in self.levels)

    @property
    def measured(self) -> list[Axes]:
        """The largest sets of columns that some table holds together; every column alone, at least."""
        return maximal(
            [
                *(table.axes for table in self.tables if table.axes),
                *((axis,) for axis in range(len(self.shape))),
            ]
        )

    @property
    def queries(self) -> list[Query]:
        """What the tables count: no query twice, and none whose cells are sums of cells of another."""
        every = list(dict.fromkeys(table.query.plain() for table in self.tables if table.axes))
        return [one for one in every if not any(other.refines(one) for other in every if other != one)]

    @property
    def one_table(self) -> Observed | None:
        """The table that holds all columns, where it is the only one about them, tables in groups of levels aside; None elsewhere."""
        tables = [table for table in self.tables if table.axes and not table.query.groups]
        alone = len(tables) == 1 and len(tables[0].axes) == len(self.levels) and tables[0].tells_levels
        return tables[0] if alone else None

    @property
    def rows_estimate(self) -> float:
        """The inverse-variance mean of the tables' totals."""
        if self.n_rows is not None:
            return self.n_rows
        knowing = [table for table in self.tables if table.tells_total]
        weights = [1 / table.total_variance for table in knowing]
        return float(np.average([table.counts.sum() for table in knowing], weights=weights))

    @property
    def exact_tables(self) -> list[Observed]:
        """The tables that are known exactly."""
        return [table for table in self.tables if table.exact and table.axes]

    @property
    def exact_margins(self) -> list[Observed] | None:
        """Tables of all measured sets where every one of them is known exactly; None elsewhere."""
        known = []
        for axes in self.measured:
            table = next((t for t in self.exact_tables if t.tells_levels and set(axes) <= set(t.axes)), None)
            if table is None:
                return None
            known.append(replace(table, query=Query(axes), counts=margin(table.counts, table.axes, axes)))
        return known


def gather(release: Release, axes: Axes) -> Evidence:
    """Everything in a release about the attributes on `axes`."""
    levels = tuple(levels_of(release.schema, release.schema.attrs[axis]) for axis in axes)
    cells = prod(size for size, _ in levels)
    if cells > MOST_CELLS:
        raise SizeError(
            f"columns make a table of {shown_count(cells)} cells; the posterior takes at most {MOST_CELLS:,}. Name fewer columns, or columns of fewer levels"
        )
    possible = release.schema.domain.possible(axes)
    projected = [_observed(release, one, axes) for one in release.measurements]
    tables = _merged([table for table in projected if table is not None])
    n_rows = _known_rows(release, tables)
    if n_rows is not None and n_rows < 1:
        raise SolveError("the release is about no rows, so it says nothing about any column")
    if any(table.exact for table in tables):
        release.reconciled  # noqa: B018  refuses exact tables that contradict one another
    if n_rows is not None:
        for table in tables:
            _check_rows(table, n_rows)
    telling = [table for table in tables if table.axes or n_rows is None]
    return Evidence(levels, possible, tuple(_softened(telling)), n_rows)


def _softened(tables: Sequence[Observed]) -> list[Observed]:
    """Exact tables as if they had a little noise, against which nothing could be seen.

    The tables that agree with an exact one form a curved surface; chains could not follow it. The draws are fitted to it afterwards.
    """
    noisy = [table for table in tables if not table.exact]
    coarse = [_soft(table, noisy) for table in tables if table.exact and table.query.groups]
    fine = [_soft(table, [*noisy, *coarse]) for table in tables if table.exact and not table.query.groups]
    return [*noisy, *fine, *coarse]


def _soft(exact: Observed, noisy: Sequence[Observed]) -> Observed:
    """An exact table with noise that leaves what it shares with any noisy one known far better than from that.

    A sum that both can make has the variance of the noisy table times its cells in the sum. Tables that share no column share the number of rows, which is
    known with every exact table. What a group holds besides its sum may be known from the prior alone, over a wide part of the surface: the sum then
    varies by a small share.
    """
    beside = [table.total_variance for table in noisy if set(table.axes) & set(exact.axes)]
    variance = SOFTENED**2 * min(beside, default=0.0) / exact.counts.size
    if exact.query.groups:
        variance = max(variance, (SOFTENED_GROUPS * float(exact.counts.mean())) ** 2)
    return replace(exact, law=NoiseLaw.normal(exact.counts.shape, variance))


def _observed(release: Release, one: Measurement, axes: Axes) -> Observed | None:
    """One measurement of a release, summed over what is not asked for; None where that leaves noise alone."""
    query, own = one.query, one.query.axes
    if not isinstance(query, Query) or (query.contrasts and one.exact):
        raise SolveError(
            "exact contrasts cannot be drawn from the posterior; use release.project, or a table of counts"
        )
    kept = [axis for axis in own if axis in axes]
    if not set(query.contrasts) <= set(kept) or (query.centred and not kept):
        return None
    forms = tuple(form for axis, form in zip(own, query.forms, strict=True) if axis in axes)
    inner, contrasts = (tuple(axes.index(axis) for axis in some) for some in (kept, query.contrasts))
    asked = Query(inner, forms if any(forms) else (), contrasts, query.centred)
    # Impossible cells hold noise alone, so only the others are summed.
    possible = query.plain().apply(release.schema.domain.possible(own).astype(int), own) > 0
    counts, variance = one.in_rows()
    counts, cells = (
        margin(part, own, tuple(kept)) for part in (np.where(possible, counts, 0.0), possible.astype(int))
    )
    law, alike = NoiseLaw.of(one.noise.kind, variance, cells), len(np.unique(cells[cells > 0])) == 1
    noise = one.noise if alike and not (one.exact or query.centred or query.contrasts) else None
    return Observed(asked, counts, law, one.exact, noise, int(cells.max()))


def _merged(tables: Sequence[Observed]) -> list[Observed]:
    """Nearly normal tables of the same columns as one; exact ones once, and only if they agree."""
    groups: dict[object, list[Observed]] = defaultdict(list)
    kept = []
    for table in tables:
        if table.exact or table.law.excess.max() <= NEARLY_NORMAL:
            groups[table.query, table.exact].append(table)
        else:
            kept.append(table)
    return [*kept, *(_mean(group) for group in groups.values())]


def _mean(group: list[Observed]) -> Observed:
    first = group[0]
    if first.exact or len(group) == 1:
        return first
    weights = [1 / table.law.variance for table in group]
    counts = np.average([table.counts for table in group], axis=0, weights=weights)
    law = NoiseLaw.mean([table.law for table in group])
    return replace(first, counts=np.asarray(counts), law=law, noise=None)


def _known_rows(release: Release, tables: Sequence[Observed]) -> float | None:
    """The number of rows where it is public, stated or as the sum of an exact table."""
    if release.statement.n_rows is not None:
        return float(release.statement.n_rows)
    return next((float(table.counts.sum()) for table in tables if table.exact), None)


def _check_rows(table: Observed, n_rows: float) -> None:
    """Refuse a public number of rows that no noise could bring the total of a table to."""
    error = 0.0 if table.exact else table.total_variance**0.5
    if table.tells_total and abs(table.counts.sum() - n_rows) > FAR * error + 0.5:
        raise ReleaseError(
            f"n_rows ({n_rows:,.0f}) and the sum of a table ({table.counts.sum():,.0f}) must be within {FAR:.0f} standard errors of its noise ({error:,.1f}); "
            "correct n_rows, the counts, or the scale"
        )
