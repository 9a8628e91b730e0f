"""What a release says about a few columns: every table that overlaps them, summed over the other columns, whatever the groups of its levels."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from dpcipher.errors import ReleaseError, SizeError, SolveError, shown_count
from dpcipher.posteriors.noise_law import ROUNDING, NoiseLaw
from dpcipher.posteriors.prior import Levels, levels_of
from dpcipher.posteriors.whole_counts import SummedNoise
from dpcipher.release.release import Release
from dpcipher.tables.domain import Axes, Bools, Floats, Shape, maximal, zero_cells
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Groups, Query
from dpcipher.tables.table import margin

MOST_CELLS = 20_000
# Sums with at most this excess kurtosis are averaged with others of the same columns: nearly normal, they lose next to nothing by it.
NEARLY_NORMAL = 1.0
# The noise given to exact tables beside noisy ones, as a share of theirs.
SOFTENED = 0.1
# Standard errors that no total is off by, Laplace noise included.
FAR = 12.0


@dataclass(frozen=True)
class Observed:
    """Noisy counts over some of the columns (axes numbered among them) and the law of the noise on each.

    `noise` is where it came from, for counts of one table; None for exact and centred tables, tables in groups of levels and means of several. Counts of a
    `centred` table are less their mean. `groups` has for each column None or the groups of its levels; it is empty where no column has any.
    """

    axes: Axes
    counts: Floats
    law: NoiseLaw
    exact: bool
    noise: SummedNoise | None = None
    centred: bool = False
    groups: tuple[Groups | None, ...] = ()

    def counted(self, margins: Floats) -> Floats:
        """A stack of margins on its axes as such a table counts them, flat: cell by cell, or levels of a group together."""
        for place, groups in enumerate(self.groups, start=1):
            margins = margins if groups is None else groups.merge(margins, place)
        return margins.reshape(len(margins), -1)

    def spread(self, slopes: Floats) -> Floats:
        """The transpose of `counted`, by the levels of its axes."""
        slopes = slopes.reshape(-1, *self.counts.shape)
        for place, groups in enumerate(self.groups, start=1):
            slopes = slopes if groups is None else groups.spread(slopes, place)
        return slopes


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
        every = list(dict.fromkeys(Query(table.axes, table.groups) for table in self.tables if table.axes))
        return [one for one in every if not any(other.refines(one) for other in every if other != one)]

    @property
    def one_table(self) -> Observed | None:
        """The table that holds all columns, where it is the only one about them, tables in groups of levels aside; None elsewhere."""
        tables = [table for table in self.tables if table.axes and not table.groups]
        return tables[0] if len(tables) == 1 and len(tables[0].axes) == len(self.levels) else None

    @property
    def rows_estimate(self) -> float:
        """The inverse-variance mean of the tables' totals."""
        if self.n_rows is not None:
            return self.n_rows
        knowing = [table for table in self.tables if not table.centred]
        weights = [1 / (table.law.variance * table.counts.size) for table in knowing]
        return float(np.average([table.counts.sum() for table in knowing], weights=weights))

    @property
    def exact_tables(self) -> dict[Axes, Floats]:
        """The counts of the tables that are known exactly."""
        return {table.axes: table.counts for table in self.tables if table.exact and table.axes}

    @property
    def exact_margins(self) -> dict[Axes, Floats] | None:
        """The counts of all measured sets where every one of them is exact; None elsewhere."""
        known: dict[Axes, Floats] = {}
        for axes in self.measured:
            table = next((t for t in self.tables if t.exact and set(axes) <= set(t.axes)), None)
            if table is None:
                return None
            known[axes] = margin(table.counts, table.axes, axes)
        return known


def gather(release: Release, axes: Axes) -> Evidence:
    """Everything in a release about the attributes on `axes`."""
    levels = tuple(levels_of(release.schema, release.schema.attrs[axis]) for axis in axes)
    cells = prod(size for size, _ in levels)
    if cells > MOST_CELLS:
        raise SizeError(
            f"columns make a table of {shown_count(cells)} cells; the posterior takes at most {MOST_CELLS:,}. Name fewer columns, or columns of fewer levels"
        )
    possible = ~zero_cells(axes, release.schema.shape, release.schema.zero_masks)
    projected = [_observed(release, one, axes) for one in release.measurements]
    tables = _merged([table for table in projected if table.axes or not table.centred])
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
    """Exact tables beside noisy ones as if they had a little noise, against which nothing could be seen.

    The tables that agree with an exact one form a curved surface; chains could not follow it. The draws are fitted to it afterwards.
    """
    noisy = [table for table in tables if not table.exact]
    return [replace(table, law=_soft(table, noisy)) if table.exact else table for table in tables]


def _soft(exact: Observed, noisy: Sequence[Observed]) -> NoiseLaw:
    """Noise that leaves what an exact table shares with any noisy one known far better than from that.

    A sum that both can make has the variance of the noisy table times its cells in the sum. Tables that share no column share the number of rows, which is
    known with every exact table.
    """
    known = [
        table.law.variance * table.counts.size / exact.counts.size
        for table in noisy
        if set(table.axes) & set(exact.axes)
    ]
    return NoiseLaw(max(SOFTENED**2 * min(known, default=0.0), ROUNDING), 0.0)


def _observed(release: Release, one: Measurement, axes: Axes) -> Observed:
    """One measurement of a release, summed over what is not asked for."""
    query, own = one.query, one.query.axes
    if not isinstance(query, Query) or query.contrasts or (query.groups and one.exact):
        what = "exact tables in groups of levels" if query.groups else "contrasts and sums over tables"
        raise SolveError(
            f"{what} cannot be drawn from the posterior; use release.project, or tables of noisy counts"
        )
    keep = tuple(axis for axis in own if axis in axes)
    inner = tuple(axes.index(axis) for axis in keep)
    forms = tuple(form for axis, form in zip(own, query.forms, strict=True) if axis in keep)
    groups = forms if any(forms) else ()
    counts, variance = one.in_rows()
    if query.centred:
        kept = margin(counts, own, keep)
        law = NoiseLaw(max(variance * counts.size / kept.size, ROUNDING), 0.0)
        return Observed(inner, np.asarray(kept), law, exact=False, centred=True, groups=groups)
    # Impossible cells hold noise alone, so only the others are summed; the law is that of the longest sum.
    can_be = ~zero_cells(own, release.schema.shape, release.schema.zero_masks)
    possible = query.apply(can_be.astype(int), own) > 0
    kept = margin(np.where(possible, counts, 0.0), own, keep)
    summed = int(margin(possible.astype(int), own, keep).max())
    noise = None if one.exact or groups else SummedNoise(one.noise, summed)
    return Observed(inner, np.asarray(kept), NoiseLaw.of(one.noise, summed), one.exact, noise, groups=groups)


def _merged(tables: Sequence[Observed]) -> list[Observed]:
    """Nearly normal tables of the same columns as one; exact ones once, and only if they agree."""
    groups: dict[object, list[Observed]] = defaultdict(list)
    kept = []
    for table in tables:
        if table.exact or table.law.excess <= NEARLY_NORMAL:
            groups[table.axes, table.groups, table.centred, table.exact].append(table)
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
    exact = next((table for table in tables if table.exact), None)
    return None if exact is None else float(exact.counts.sum())


def _check_rows(table: Observed, n_rows: float) -> None:
    """Refuse a public number of rows that no noise could bring the total of a table to."""
    error = 0.0 if table.exact else (table.law.variance * table.counts.size) ** 0.5
    if not table.centred and abs(table.counts.sum() - n_rows) > FAR * error + 0.5:
        raise ReleaseError(
            f"n_rows ({n_rows:,.0f}) and the sum of a table ({table.counts.sum():,.0f}) must be within {FAR:.0f} standard errors of its noise ({error:,.1f}); "
            "correct n_rows, the counts, or the scale"
        )
