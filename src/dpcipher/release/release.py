"""The release: noisy tables and how they were made. The one object that both sides share."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import SEEDED
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.errors import NotPrivate, ReleaseError, WorkloadError
from dpcipher.release import file, published, shown
from dpcipher.release.query import Answer, ask, interval
from dpcipher.release.reconcile import Reconciled, reconcile
from dpcipher.release.statement import Statement
from dpcipher.schema.conditions import Cover
from dpcipher.schema.grouped import Grouped, labels_of, read_groups, table_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs, Axes, Floats
from dpcipher.tables.labelled import Bounds, Marginal
from dpcipher.tables.measurement import Measurement
from dpcipher.tables.query import Groups, Query


@dataclass(frozen=True, repr=False)
class Release(Shown, Drawable):
    """Noisy tables over a public schema, with the statement of how they were made.

    `measurements` holds `sets` independent sanitizations of the same tables, marked by their `set`. A set may hold the same table more
    than once, each with noise of its own; estimates combine them by inverse variance. A table may hold levels of its columns in groups, the same
    column in other groups than another table, and there may be the number of rows: the table of no columns. Where tables are centred it must be there,
    and `project` gives counts. `kind` remembers, in memory only, which library the rows came from, so that synthetic rows can go back to it.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> release.workload, release.n_rows
    ((('smokes', 'ill'),), 1000)
    >>> release.query(("smokes", "ill"), where={"smokes": 1, "ill": 1}).estimate
    240.0
    """

    schema: Schema
    measurements: tuple[Measurement, ...]
    statement: Statement
    kind: str = field(default="pandas", compare=False)

    @property
    def stamp(self) -> str:
        """Empty, unless the noise protects nobody."""
        return "" if self.statement.may_be_released else SEEDED

    def __post_init__(self) -> None:
        if not self.measurements:
            raise ReleaseError("measurements (none) must hold at least one table; measure at least one")
        for one in self.measurements:
            _check_measurement(self.schema, one)
        _check_sets(self.measurements)
        _check_every_attribute(self.schema, self.measurements)
        _check_totals(self)

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[Attrs, object],
        schema: Schema,
        *,
        scale: float | Mapping[Attrs, float],
        mechanism: str | Mapping[Attrs, str] = "laplace",
        groups: Mapping[Attrs, Mapping[str, Any]] | None = None,
        n_rows: int | None = None,
        count: str = "count",
    ) -> "Release":
        """Somebody else's noisy tables: arrays, data frames, or CSV files with a `count` column.

        `scale` is the b of discrete Laplace or the sigma of discrete Gaussian, one number or one per attrs; 0 means exact. `groups` says which
        tables have levels of a column in groups, and which: `{("age", "sex"): {"age": [0, 18, 65]}}`, as `dc.Grouped` takes them, which may
        also be the name of a table. A frame or file may say it by its labels instead, such as `0–17` and `65 or more`. `n_rows` is the number of rows where the publisher states it. The release says that its publisher declared all this;
        nothing is certified.
        """
        schema.require_signed()
        checked = published.read_tables(
            tables, schema, scale=scale, mechanism=mechanism, groups=groups, count=count
        )
        statement = Statement("declared", n_rows=published.checked_rows(n_rows))
        return cls(schema.without_notes(), checked, statement)

    @classmethod
    def load(cls, path: str | Path) -> "Release":
        """Read a release file, refusing a damaged one or one of a later version."""
        return cls(*file.read(Path(path)))

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write one Parquet file, complete or not at all; `force` replaces a file that is there already."""
        if not self.statement.may_be_released:
            raise NotPrivate(
                f"release (status {self.statement.status}) was made with seeded noise and must not be published; "
                "use dpcipher.measure, whose noise cannot be seeded"
            )
        return file.write(Path(path), self.schema, self.measurements, self.statement, force=force)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over the content: schema, statement, and what was measured."""
        return file.checksum(self.schema, self.measurements, self.statement)

    @property
    def origin(self) -> str:
        """The checksum, as what is made from the release carries it; empty where noise was seeded, since nothing of that may be published."""
        return self.checksum if self.statement.may_be_released else ""

    @property
    def sets(self) -> int:
        """How many independent sanitizations the release holds."""
        return 1 + max(one.set for one in self.measurements)

    @property
    def centred(self) -> bool:
        """Whether tables are centred, and the rows counted by themselves."""
        return any(one.query.centred for one in self.measurements)

    @cached_property
    def workload(self) -> tuple[Attrs, ...]:
        """The measured tables, each once: attrs, or `dc.Grouped` where levels are in groups; without groups of one column that has all of its levels in another."""
        whole = {axis for query in self._queries for axis, form in query.columns if form is None}
        kept = (
            query
            for query in self._queries
            if not (query.groups and len(query.axes) == 1 and query.axes[0] in whole)
        )
        return tuple(table_of(self.schema, query) for query in kept)

    @cached_property
    def _queries(self) -> Mapping[Query, None]:
        """What was counted, each once: what contrasts and centred tables are about are counts, too."""
        asked = (one.query for one in self.measurements if one.set == 0 and one.query.axes)
        return dict.fromkeys(query.plain() for query in asked if isinstance(query, Query))

    @cached_property
    def _holding(self) -> Mapping[int, Sequence[Query]]:
        """The measured tables that hold each column."""
        holding: dict[int, list[Query]] = {}
        for query in self._queries:
            for axis in query.axes:
                holding.setdefault(axis, []).append(query)
        return holding

    def finest(self, axes: Axes, groups: Mapping[int, Groups] = MappingProxyType({})) -> Query | None:
        """The finest table of some columns, of those given `groups` in these, that one measured table can be added up to; None where there is none."""
        if not groups and (whole := Query(axes)) in self._queries:
            return whole
        found: list[Query] = []
        for query in min((self._holding.get(axis, ()) for axis in axes), key=len, default=self._queries):
            held = dict(query.columns)
            if all(axis in held for axis in axes) and all(groups[a].within(held[a]) for a in groups):
                forms = tuple(groups.get(axis, held[axis]) for axis in axes)
                found.append(Query(axes, forms if any(forms) else ()))
        return max(found, key=lambda query: math.prod(query.shape(self.schema.shape)), default=None)

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
        known = [one for one in self.measurements if set in (None, one.set)]
        return reconcile(self.schema.domain, known, total=self.statement.n_rows)

    def project(self, attrs: str | Sequence[str]) -> Marginal:
        """The reconciled counts of any columns inside a measured table, axes in the order asked for.

        Where levels were measured in groups, the table is as fine as one measured table is; `dc.Grouped(attrs, age=[0, 18, 65])` asks for a coarser one.
        """
        cover, query = self.inside(attrs)
        return self._labelled(cover, cover.fold(self.reconciled.table(query)))

    def std_error(self, attrs: str | Sequence[str]) -> Marginal:
        """The standard error that the privacy noise gives every count of a table inside a measured one; labelled like `project`."""
        cover, query = self.inside(attrs)
        return self._labelled(cover, np.sqrt(cover.fold(self.reconciled.variance(query))))

    def interval(self, attrs: str | Sequence[str], level: float = 0.95) -> Bounds:
        """Bounds `(low, high)` of every count of a table, the privacy noise included; labelled, with a `frame`.

        Centred on the reconciled estimate; a cell's true count lies inside with a chance of about `level`: the noise of many tables
        together is close to normal (Laplace noise of one table alone: .937 at .95). Where the estimate is negative, the interval is 0 to an
        upper limit. Only tables inside a measured one have such bounds: elsewhere the error is the model's, which no such interval contains.
        """
        cover, query = self.inside(attrs)
        estimate = cover.fold(self.reconciled.table(query))
        bounds = interval(estimate, cover.fold(self.reconciled.variance(query)), level)
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
        cover, table = self.inside(attrs)
        return ask(self.schema, self.reconciled, cover, weights, query=table, where=where, share=share)

    def _labelled(self, cover: Cover, values: Floats) -> Marginal:
        return Marginal(cover.names, cover.labels, values, cover.shown)

    def _card(self) -> Card:
        return shown.card(self)

    def _draw(self, columns: Attrs | None) -> Plot:
        return shown.draw(self, columns)

    def inside(self, attrs: str | Sequence[str]) -> tuple[Cover, Query]:
        """The columns that cover some names, and the finest table of them that was measured."""
        cover = self.schema.cover(attrs)
        specs = attrs.groups if isinstance(attrs, Grouped) else {}
        groups = {
            self.schema.axes((name,))[0]: read_groups(self.schema, name, spec)[0]
            for name, spec in specs.items()
        }
        query = self.finest(cover.axes, groups)
        if query is None and self.finest(cover.axes) is not None:
            raise WorkloadError(
                f"groups of {' × '.join(cover.names)} must be as coarse as those of one measured table; it was measured as "
                f"{'; '.join(repr(table_of(self.schema, one)) for one in self._queries if set(cover.axes) <= set(one.axes))}"
            )
        if query is None:
            raise WorkloadError(
                f"attrs ({', '.join(cover.names)}) must lie inside one measured table; no measured table holds them together, "
                "so the release has no unbiased estimate of them. Measure a table that does, or use solve(release).project(...), "
                "whose error includes the model's"
            )
        return _in_groups(self.schema, cover, query), query


def _in_groups(schema: Schema, cover: Cover, query: Query) -> Cover:
    """The columns with their groups in the place of levels."""
    forms = {
        attr: form
        for attr, form in zip(schema.attrs_on(cover.axes), query.forms, strict=True)
        if form is not None
    }
    if not forms:
        return cover
    labels, shown = (
        tuple(labels_of(schema, name, forms.get(name), shown=shown) for name in cover.names)
        for shown in (False, True)
    )
    return replace(cover, labels=labels, shown=shown)


def _check_measurement(schema: Schema, one: Measurement) -> None:
    """A table of the schema's attributes that fits it, with every level, in groups of levels, or as contrasts."""
    query, shape = one.query, schema.shape
    if not isinstance(query, Query) or (query.axes and not 0 <= query.axes[0] <= query.axes[-1] < len(shape)):
        raise ReleaseError(f"the table on axes {query.axes} must hold counts of the schema's attributes")
    name = " × ".join(schema.attrs_on(query.axes)) or "of no columns"
    for axis, groups in query.columns:
        if groups is not None and len(groups.of) != shape[axis]:
            raise ReleaseError(
                f"groups of {schema.attrs[axis]} in {name} must hold each of its {shape[axis]} levels once; they hold {len(groups.of)}"
            )
    if one.values.shape != query.shape(shape):
        raise ReleaseError(
            f"table ({name}) of shape {one.values.shape} must have shape {query.shape(shape)}, as the schema says"
        )
    if query.contrasts and schema.zero_masks:
        raise ReleaseError(
            f"contrasts of {name} must be of a schema without structural zeros; measure counts instead"
        )


def _check_totals(release: Release) -> None:
    """Noisy unless the number of rows is public; where tables are centred one for each set, all of them so with Gaussian noise, and no cell impossible."""
    totals = [one for one in release.measurements if not one.query.axes]
    public, exact = release.statement.n_rows, {float(one.values) for one in totals if one.exact}
    if exact - {public} and (public is not None or release.statement.status != "declared" or len(exact) > 1):
        raise ReleaseError("totals must have noise, or be the public number of rows that the statement has")
    if not release.centred:
        return
    if {one.set for one in totals} != set(range(release.sets)):
        raise ReleaseError(f"totals must be there for each of the {release.sets} sets, as tables are centred")
    tables = [one for one in release.measurements if one.query.centred or len(one.query.axes) > 1]
    if release.schema.zero_masks or any(
        not one.query.centred or one.noise.kind != "gaussian" for one in tables
    ):
        raise ReleaseError(
            "centred tables must all be so, with Gaussian noise and a schema without structural zeros"
        )


def _check_sets(measurements: Sequence[Measurement]) -> None:
    """Sets are numbered from 0 without a gap, and each holds the same tables."""
    held: dict[object, Counter[object]] = {}
    for one in measurements:
        held.setdefault(one.set, Counter())[one.query] += 1
    if set(held) != set(range(len(held))) or any(isinstance(number, bool) for number in held):
        raise ReleaseError(f"sets ({len(held)} of them) must be numbered from 0 up, without a gap")
    if any(others != held[0] for others in held.values()):
        raise ReleaseError("sets must hold the same tables; measure each table in every set")


def _check_every_attribute(schema: Schema, measurements: Sequence[Measurement]) -> None:
    """Nothing can be said of an attribute that no table holds."""
    held = {axis for one in measurements for axis in one.query.axes}
    missing = [attr for axis, attr in enumerate(schema.attrs) if axis not in held]
    if missing:
        more = f" and {len(missing) - 6} more" if len(missing) > 6 else ""
        raise ReleaseError(
            f"tables omit {', '.join(missing[:6])}{more}; every attribute of the schema must be in one. "
            "Add a table, or take the column out of the schema"
        )
