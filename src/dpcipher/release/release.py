"""The release: noisy tables and how they were made. The one object that both sides share."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import SEEDED
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import NotPrivate, ReleaseError, WorkloadError
from dpcipher.release import declared, file, load, shown
from dpcipher.release.coarse import check_runs
from dpcipher.release.file import Beside, CoarseTable, NoisyTable, NoisyTotal
from dpcipher.release.query import Answer, ask, interval
from dpcipher.release.reconcile import Coarse, Noisy, Reconciled, reconcile
from dpcipher.release.statement import Statement
from dpcipher.schema.condition import Cover
from dpcipher.schema.schema import Schema
from dpcipher.tables.centred import in_rows
from dpcipher.tables.domain import Attrs, Axes, Floats
from dpcipher.tables.labelled import Bounds, Marginal

__all__ = ["CoarseTable", "NoisyTable", "NoisyTotal", "Release", "all_noisy", "as_noisy"]


@dataclass(frozen=True, repr=False)
class Release(Shown, Drawable):
    """Noisy tables over a public schema, with the statement of how they were made.

    `tables` holds `sets` independent sanitizations of the same workload, marked by their `set`. A set may hold the same table more
    than once, each with noise of its own; estimates combine them by inverse variance. `coarse` holds counts of runs of levels of columns whose bins
    were found, in every set; estimates use them beside the tables. `totals` holds the number of rows, in every set, where tables are centred
    (`marginals.centred`): their `counts` are then cells times their number, less the number of rows, and `project` gives counts. `kind` remembers, in
    memory only, which library the rows came from, so that synthetic rows can go back to it.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> release.workload, release.n_rows
    ((('smokes', 'ill'),), 1000)
    >>> release.query(("smokes", "ill"), where={"smokes": 1, "ill": 1}).estimate
    240.0
    """

    schema: Schema
    tables: tuple[NoisyTable, ...]
    statement: Statement
    kind: str = field(default="pandas", compare=False)
    coarse: tuple[CoarseTable, ...] = ()
    totals: tuple[NoisyTotal, ...] = ()

    @property
    def stamp(self) -> str:
        """Empty, unless the noise protects nobody."""
        return "" if self.statement.may_be_released else SEEDED

    def __post_init__(self) -> None:
        if not self.tables:
            raise ReleaseError("tables (none) must hold at least one table; measure at least one")
        for table in self.tables:
            _check_table(self.schema, table)
        _check_every_attribute(self.schema, self.tables)
        _check_sets(self.tables)
        for one in self.coarse:
            _check_coarse(self.schema, one, self.sets)
        if self.totals:
            _check_totals(self)

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[Attrs, object],
        schema: Schema,
        *,
        scale: float | Mapping[Attrs, float],
        mechanism: str | Mapping[Attrs, str] = "laplace",
        n_rows: int | None = None,
        count: str = "count",
    ) -> "Release":
        """Somebody else's noisy tables: arrays, data frames, or CSV files with a `count` column.

        `scale` is the b of discrete Laplace or the sigma of discrete Gaussian, one number or one per attrs; 0 means exact.
        `n_rows` is the number of rows where the publisher states it. The release says that its publisher declared all this;
        nothing is certified.
        """
        schema.require_signed()
        checked = declared.read_tables(tables, schema, scale=scale, mechanism=mechanism, count=count)
        statement = Statement("declared", n_rows=declared.checked_rows(n_rows))
        return cls(schema.without_notes(), checked, statement)

    @classmethod
    def load(cls, path: str | Path) -> "Release":
        """Read a release file, refusing a damaged one or one of a later version."""
        schema, tables, statement, beside = load.read(Path(path))
        return cls(schema, tables, statement, coarse=tuple(beside.coarse), totals=tuple(beside.totals))

    def save(self, path: str | Path) -> Path:
        """Write one Parquet file: to a temporary name, synced to disk, then renamed."""
        if not self.statement.may_be_released:
            raise NotPrivate(
                f"release (status {self.statement.status}) was made with seeded noise and must not be published; "
                "use dpcipher.measure, whose noise cannot be seeded"
            )
        return file.write(Path(path), self.schema, self.tables, self.statement, self._beside)

    @property
    def checksum(self) -> str:
        """SHA-256 over the content: schema, tables, statement, coarse counts and totals."""
        return file.checksum(self.schema, self.tables, self.statement, self._beside)

    @property
    def _beside(self) -> Beside:
        return Beside(self.coarse, self.totals)

    @property
    def sets(self) -> int:
        """How many independent sanitizations the release holds."""
        return 1 + max(table.set for table in self.tables)

    @property
    def workload(self) -> tuple[Attrs, ...]:
        """The attrs of the measured tables, each once."""
        return tuple(dict.fromkeys(table.attrs for table in self.tables if table.set == 0))

    @property
    def n_rows(self) -> int:
        """Rows to synthesize by default: the public number, else the reconciled noisy total."""
        if self.statement.n_rows is not None:
            return self.statement.n_rows
        return max(0, round(self.reconciled.total))

    @cached_property
    def reconciled(self) -> Reconciled:
        """The tables of all sets, made to agree by generalised least squares."""
        return self.reconcile()

    def reconcile(self, set: int | None = None) -> Reconciled:
        """Make the tables agree: those of one set, or of all of them together."""
        if set is not None and not 0 <= set < self.sets:
            raise ReleaseError(f"set ({set}) must be one of the release's sets, 0 to {self.sets - 1}")
        measured = all_noisy(
            self.schema,
            [table for table in self.tables if set in (None, table.set)],
            [total for total in self.totals if set in (None, total.set)],
        )
        coarse = [
            Coarse(
                self.schema.attrs.index(c.attr),
                np.array(c.starts),
                c.counts.astype(float),
                c.mechanism.variance,
            )
            for c in self.coarse
            if set in (None, c.set)
        ]
        total = None if self.statement.n_rows is None else float(self.statement.n_rows)
        try:
            return reconcile(
                self.schema.shape, measured, total=total, zeros=self.schema.zero_masks, coarse=coarse
            )
        except ReleaseError as error:
            raise ReleaseError(self._with_names(str(error))) from None

    def in_rows(self, table: NoisyTable) -> Noisy:
        """One of the tables with its counts, and the variance of their noise, in rows."""
        return as_noisy(self.schema.axes(table.attrs), table, centred=bool(self.totals))

    def _with_names(self, message: str) -> str:
        """The algebra knows attributes by number; a person knows them by name."""

        def names(axes: re.Match[str]) -> str:
            return " × ".join(self.schema.attrs[int(axis)] for axis in axes[1].split(", "))

        return re.sub(r"\((\d+(?:, \d+)*),?\)", names, message).replace("on axes ", "on ")

    def project(self, attrs: str | Sequence[str]) -> Marginal:
        """The reconciled counts of any columns inside a measured table, axes in the order asked for.

        Levels of two columns that structural zeros make the same people may have two estimates, each unbiased and within its own margin.
        """
        cover = self._inside(attrs)
        return self._labelled(cover, cover.fold(self.reconciled.table(cover.axes)))

    def std_error(self, attrs: str | Sequence[str]) -> Marginal:
        """The standard error that the privacy noise gives every count of a table inside a measured one; labelled like `project`."""
        cover = self._inside(attrs)
        return self._labelled(cover, np.sqrt(self._variance(cover)))

    def interval(self, attrs: str | Sequence[str], level: float = 0.95) -> Bounds:
        """Bounds `(low, high)` of every count of a table, the privacy noise included; labelled, with a `frame`.

        Centred on the reconciled estimate; a cell's true count lies inside with a chance of about `level`: the noise of many tables
        together is close to normal (Laplace noise of one table alone: .937 at .95). Where the estimate is negative, the interval is 0 to an
        upper limit. Only tables inside a measured one have such bounds: elsewhere the error is the model's, which no such interval contains.
        """
        cover = self._inside(attrs)
        estimate = cover.fold(self.reconciled.table(cover.axes))
        bounds = interval(estimate, self._variance(cover), level)
        low, high, middle = (self._labelled(cover, values) for values in (*bounds, estimate))
        return Bounds(low, high, middle, self.statement.scope)

    def query(
        self,
        attrs: str | Sequence[str],
        weights: Floats | None = None,
        *,
        where: Mapping[str, object] | None = None,
        share: bool = False,
    ) -> Answer:
        """A linear question about a measured table, with a standard error that includes the privacy noise.

        `weights` has one number per cell, in the order of `attrs`; `where={"sex": "F"}` counts the rows that meet a condition instead;
        `share=True` asks for the share of all rows.
        """
        return ask(self.schema, self.reconciled, self._inside(attrs), weights, where=where, share=share)

    def _labelled(self, cover: Cover, values: Floats) -> Marginal:
        return Marginal(cover.names, cover.labels, values, cover.shown)

    def _card(self) -> Card:
        return shown.card(self)

    def _draw(self, columns: Attrs | None) -> Plot:
        return shown.draw(self, columns)

    def _variance(self, cover: Cover) -> Floats:
        """The noise variance of every cell of a table, sums over the rest of a compound included."""
        if len(cover.opened) == len(cover.names):
            return cover.fold(self.reconciled.variance(cover.axes))
        shape = tuple(len(labels) for labels in cover.labels)
        numbers = np.arange(math.prod(shape)).reshape(shape)
        home = cover.spread(numbers).reshape([self.schema.shape[axis] for axis in cover.axes])
        cells = (
            self.reconciled.linear_variance(cover.axes, (home == cell).astype(float))
            for cell in range(numbers.size)
        )
        return np.fromiter(cells, dtype=np.float64).reshape(shape)

    def _inside(self, attrs: str | Sequence[str]) -> Cover:
        cover = self.schema.cover(attrs)
        if not any(set(cover.attrs) <= set(table.attrs) for table in self.tables):
            raise WorkloadError(
                f"attrs ({', '.join(cover.names)}) must lie inside one measured table; no measured table holds them together, "
                "so the release has no unbiased estimate of them. Measure a table that does, or use solve(release).project(...), "
                "whose error includes the model's"
            )
        return cover


def as_noisy(axes: Axes, table: NoisyTable, *, centred: bool) -> Noisy:
    """A measured table on `axes` in rows."""
    if not centred:
        return Noisy(axes, np.asarray(table.counts, dtype=np.float64), table.mechanism.variance)
    return Noisy(axes, in_rows(table.counts), table.mechanism.variance / table.counts.size**2, centred=True)


def all_noisy(schema: Schema, tables: Sequence[NoisyTable], totals: Sequence[NoisyTotal]) -> list[Noisy]:
    """Measured tables in rows, and the number of rows where it is noisy; tables are centred where it was measured."""
    measured = [as_noisy(schema.axes(table.attrs), table, centred=bool(totals)) for table in tables]
    noisy = [total for total in totals if total.mechanism.variance > 0]
    return measured + [Noisy((), np.asarray(float(total.count)), total.mechanism.variance) for total in noisy]


def _check_table(schema: Schema, table: NoisyTable) -> None:
    """Attrs known and in the schema's order, counts finite and of the declared shape."""
    axes = schema.axes(table.attrs)
    expected = tuple(schema.shape[axis] for axis in axes)
    name = " × ".join(table.attrs)
    if tuple(schema.attrs[axis] for axis in axes) != table.attrs:
        raise ReleaseError(f"table ({name}) must name its attributes in the schema's order")
    if table.counts.shape != expected:
        raise ReleaseError(
            f"table ({name}) of shape {table.counts.shape} must have shape {expected}, as the schema says"
        )
    low, high = table.counts.min(), table.counts.max()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ReleaseError(f"table ({name}) must hold finite counts; it has NaN or infinite cells")
    if low < -file.LARGEST_COUNT or high > file.LARGEST_COUNT:
        raise ReleaseError(f"table ({name}) must hold counts within ±2**62; use larger units")


def _check_coarse(schema: Schema, one: CoarseTable, sets: int) -> None:
    """Runs of levels of one attribute, a count within bounds for each, all with noise, in a set that has tables."""
    check_runs(one.starts, schema.shape[schema.attrs.index(one.attr)])
    if one.counts.shape != (len(one.starts),) or (np.abs(one.counts) > file.LARGEST_COUNT).any():
        raise ReleaseError(
            f"coarse counts of {one.attr} must be {len(one.starts)} numbers within ±2**62, one for each run"
        )
    if not one.mechanism.variance > 0 or not 0 <= one.set < sets:
        raise ReleaseError(
            f"coarse counts of {one.attr} must have noise, and be of one of the sets 0 to {sets - 1}"
        )


def _check_totals(release: Release) -> None:
    """One for each set, noisy unless the number of rows is public; all tables noisy, and no cell impossible."""
    if sorted(total.set for total in release.totals) != list(range(release.sets)):
        raise ReleaseError(f"totals must be one for each of the {release.sets} sets")
    public = release.statement.n_rows
    for total in release.totals:
        if not (total.mechanism.variance > 0 if public is None else total.count == public):
            raise ReleaseError(
                "totals must have noise, or be the public number of rows that the statement has"
            )
    if any(table.mechanism.kind != "gaussian" for table in release.tables) or release.schema.zero_masks:
        raise ReleaseError("centred tables must have Gaussian noise, and a schema without structural zeros")


def _check_sets(tables: Sequence[NoisyTable]) -> None:
    """Sets are numbered from 0 without a gap, and each holds the same tables."""
    held: dict[object, Counter[Attrs]] = {}
    for table in tables:
        held.setdefault(table.set, Counter())[table.attrs] += 1
    if set(held) != set(range(len(held))) or any(isinstance(number, bool) for number in held):
        raise ReleaseError(f"sets ({len(held)} of them) must be numbered from 0 up, without a gap")
    if any(others != held[0] for others in held.values()):
        raise ReleaseError("sets must hold the same tables; measure each table in every set")


def _check_every_attribute(schema: Schema, tables: Sequence[NoisyTable]) -> None:
    """Nothing can be said of an attribute that no table holds."""
    held = {attr for table in tables for attr in table.attrs}
    missing = [attr for attr in schema.attrs if attr not in held]
    if missing:
        more = f" and {len(missing) - 6} more" if len(missing) > 6 else ""
        raise ReleaseError(
            f"tables omit {', '.join(missing[:6])}{more}; every attribute of the schema must be in one. "
            "Add a table, or take the column out of the schema"
        )
