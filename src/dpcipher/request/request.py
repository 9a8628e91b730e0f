"""What is asked: which tables with which noise, or how they are chosen, under which promise. All of it is checked before any row is read.

Of the charge, finding levels and bins takes exact shares, and tables get the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Self

from dpcipher.errors import BudgetError, ParameterError, SizeError, WorkloadError, did_you_mean, warn
from dpcipher.privacy.budget import Budget, noise_for, noise_within, positive_fraction
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Cap, Privacy
from dpcipher.release.file import check_fits_file, most_tables
from dpcipher.release.reconcile import check_size
from dpcipher.schema.grouped import Grouped, said, table_key
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import MAX_TABLE_CELLS, Workload
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import Noise
from dpcipher.tables.query import Query

PARTS = 2**24  # allocated shares are rounded down to whole multiples of about 1 / PARTS of what is left
FINEST = 4 * PARTS  # no question of a selection gets less than 1 / FINEST of the charge, counted in tables
BINS, EACH_BINS = Fraction(1, 10), Fraction(1, 30)  # of the charge: for all open columns, and for one
COARSE = Fraction(1, 2)  # of what finding bins may take: what coarse counts take beside it
# What is not named is lost in all tables, and a tenth less for the tables raises their noise by a twentieth: on generated tables with few frequent texts and
# many rare ones a tenth gave errors of pairs 5 to 11 % below those of a twentieth, and of the other columns 0 to 5 % above.
LEVELS, EACH_LEVELS = Fraction(1, 5), Fraction(1, 10)


LARGEST_WEIGHT = 1e6  # so that the product over a target stays finite


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The options of automatic selection: tables of up to `max_order` columns and `max_cells` cells are candidates.

    `target` is the workload whose error should be small: an order, or a list of attrs; by default all tables of up to three columns, and larger
    ones that no smaller table explains. `predict` names a column instead: then error counts where it helps to predict that column. A target
    table weighs the product of its columns' `column_weights`, which are 1 unless given. Without a `max_order`, tables of up to four columns
    are looked for, and all columns together where that is a small table. Every column is measured, whatever its size.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({name: 4 for name in "abcdefghij"})
    >>> choose = dc.Auto(predict="a", max_order=2)
    >>> dc.plan(schema, workload=choose, epsilon=1.0, delta=1e-6, unit="add-remove", n_rows=5_000).selection.pairs
    9
    """

    max_order: int | None = None
    max_cells: int = 10_000
    target: int | Sequence[Sequence[str]] | None = None
    column_weights: Mapping[str, float] | None = None
    predict: str | None = None

    def __post_init__(self) -> None:
        for name, least, example in (("max_order", 1, 3), ("max_cells", 4, 10_000)):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not (value is None and name == "max_order") and not (whole and value >= least):
                raise ParameterError(
                    f"{name} ({value!r}) must be a whole number of at least {least}; try {name}={example}"
                )
        if self.max_cells > MAX_TABLE_CELLS:
            raise ParameterError(
                f"max_cells ({self.max_cells}) must be at most {MAX_TABLE_CELLS}; try max_cells=10_000"
            )
        if self.target is not None and not _is_order(self.target) and not _is_list(self.target):
            raise WorkloadError(
                f"target ({self.target!r}) must be an order such as 2, or a list of tables such as [('age', 'sex')]"
            )
        if self.predict is not None and not isinstance(self.predict, str):
            raise ParameterError(
                f"predict ({self.predict!r}) must be the name of a column; try predict='income'"
            )
        if self.predict is not None and self.target is not None:
            raise ParameterError(
                f"predict ({self.predict!r}) must stand alone: it says which tables count, and so does target; leave one out"
            )
        if not isinstance(self.column_weights, Mapping | None):
            raise ParameterError(
                f"column_weights ({self.column_weights!r}) must give numbers by column; try column_weights={{'income': 2.0}}"
            )
        for name, weight in (self.column_weights or {}).items():
            if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight <= LARGEST_WEIGHT:
                raise ParameterError(
                    f"column_weights[{name!r}] ({weight!r}) must be a number from 0 to 1e6; try 2.0, or leave it out for 1.0"
                )


def parse_auto(workload: object, *, weights: object = None) -> Auto | None:
    """How to choose tables, where `workload` is "auto" or an `Auto`; None where it names them."""
    if not isinstance(workload, Auto) and workload != "auto":
        if isinstance(workload, str):
            raise ParameterError(
                f"workload ({workload!r}) must be 'auto', an order such as 2, or a list of tables such as [('age', 'sex')]"
            )
        return None
    if weights is not None:
        raise ParameterError(
            "weights are for tables that are given; where they are chosen say workload=dc.Auto(column_weights={'income': 2.0}) instead"
        )
    return workload if isinstance(workload, Auto) else Auto()


def _is_order(target: object) -> bool:
    return isinstance(target, Integral) and not isinstance(target, bool)


def _is_list(target: object) -> bool:
    """Whether it is a sequence of tables, each a sequence of names."""
    tables = target if isinstance(target, Sequence) and len(target) > 0 else [None]
    return all(
        isinstance(names, Sequence)
        and not isinstance(names, str | Grouped)
        and len(names) > 0
        and all(isinstance(name, str) for name in names)
        for names in tables
    )


@dataclass(frozen=True)
class Request:
    """Tables, given or to be chosen, in so many sets, under a promise. Everything in it is public; what can be refused is refused when it is made.

    `shares` are those of each given table in one set, of what finding bins and levels leaves.
    """

    schema: Schema
    privacy: Privacy
    workload: Workload | Auto
    shares: tuple[Fraction, ...] = ()
    sets: int = 1

    def __post_init__(self) -> None:
        check_sets(self.sets)
        if self.auto is not None:
            if most_pairs(self.schema, self.sets) < 1:
                raise SizeError(
                    f"workload: {len(self.schema.attrs):,} columns in each of {self.sets} sets are more than one release file can list; measure fewer sets"
                )
            noise_for(self.left.share(Fraction(1, FINEST * self.sets)), self.privacy.unit)
            return
        check_fits_file(self.schema, self.given, self.sets)
        if self.schema.zero_masks:
            check_size(self.schema.domain, self.queries)
        self.noises  # noqa: B018 - a budget too small or too large for them is refused

    @classmethod
    def parse(
        cls,
        schema: Schema,
        privacy: Privacy,
        *,
        workload: int | str | Auto | Sequence[Sequence[str]] = 2,
        weights: Mapping[Attrs, float] | None = None,
        sets: int = 1,
    ) -> Self:
        """What a caller wrote: an order, a list of tables with or without weights, "auto", or options of the choice."""
        check_sets(sets)
        auto = parse_auto(workload, weights=weights)
        if auto is not None:
            return cls(schema, privacy, auto, sets=sets)
        assert not isinstance(workload, str | Auto)  # parse_auto refused every other word
        parsed = Workload.parse(schema, workload)
        if any(query.groups for query in parsed.queries) and not schema.zero_masks:
            check_size(schema.domain, parsed.queries)
        return cls(schema, privacy, parsed, table_shares(parsed, weights, sets), sets)

    @property
    def auto(self) -> Auto | None:
        """How tables are chosen; None where they are given."""
        return self.workload if isinstance(self.workload, Auto) else None

    @property
    def given(self) -> Workload:
        """The tables, where they are given."""
        assert isinstance(self.workload, Workload)
        return self.workload

    @property
    def axes(self) -> list[Axes]:
        """The axes of each given table."""
        return [query.axes for query in self.given.queries]

    @property
    def queries(self) -> list[Query]:
        """What is asked of the rows for each given table."""
        return list(self.given.queries)

    @property
    def left(self) -> Budget:
        """What there is for tables, at least: what finding bins and levels leaves of the budget."""
        return after_finding(self.privacy.budget, self.schema)

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """The noise of each given table."""
        left, unit = self.left.composable(), self.privacy.unit
        affordable = {share: noise_for(left.share(share), unit) for share in set(self.shares)}
        return tuple(affordable[share] for share in self.shares)

    @property
    def purpose(self) -> dict[str, Any]:
        """What the ledger records of it."""
        if self.auto is not None:
            return {"tables": "auto", "sets": self.sets}
        kind = self.noises[0].kind
        return {"tables": len(self.given.tables), "sets": self.sets, "mechanism": kind}

    def on(self, schema: Schema, budget: Budget | None = None) -> Self:
        """The same of a schema in which more is found, under what is left of the budget then."""
        privacy = self.privacy if budget is None else replace(self.privacy, budget=budget)
        workload = self.workload if self.auto else Workload.parse(schema, self.given)
        return replace(self, schema=schema, privacy=privacy, workload=workload)


def most_pairs(schema: Schema, sets: int) -> int:
    """How many pairs may be chosen for the release to be written: each table of it perhaps twice."""
    return most_tables(schema, sets) // 2 - len(schema.attrs)


def check_person(schema: Schema, cap: Cap | None) -> None:
    """Warn where the schema says whose row each is and that is not used: then rows are protected, and not persons."""
    if schema.person is not None and (cap is None or cap.column != schema.person):
        given = "is not given" if cap is None else f"is {cap.column!r}"
        warn(
            f"person {given}, and the schema says that {schema.person!r} names whose row each is: without it rows are protected, and not persons; "
            f"use person={schema.person!r} (--person {schema.person}), or correct the schema"
        )


def check_sets(sets: object) -> None:
    """Refuse a number of sanitizations that is none."""
    if isinstance(sets, bool) or not isinstance(sets, int) or sets < 1:
        raise ParameterError(
            f"sets ({sets!r}) must be a whole number above 0; try sets=1, or 5 for inference over sets"
        )


def finding_share(schema: Schema) -> Fraction:
    """The most that finding bins takes of the charge: a thirtieth for every open column, up to a tenth."""
    n_open = sum(column.is_open and not column.discovers for column in schema.columns)
    return min(BINS, EACH_BINS * n_open)


def coarse_share(schema: Schema) -> Fraction:
    """What coarse counts of found bins take of the charge, beside the search."""
    return COARSE * finding_share(schema)


def discovery_share(schema: Schema) -> Fraction:
    """What finding levels takes of the charge: a tenth for each column, a fifth at most."""
    return min(LEVELS, EACH_LEVELS * sum(column.discovers for column in schema.columns))


def after_finding(budget: Budget, schema: Schema) -> Budget:
    """What is left of a budget for tables, at least: all of it where there is nothing to find."""
    share, budget = finding_share(schema) + coarse_share(schema), after_levels(budget, schema)
    return budget.share(1 - share) if share else budget


def after_levels(budget: Budget, schema: Schema) -> Budget:
    """What finding levels leaves of a budget: all of it where there are none to find."""
    return budget.failing().share(1 - discovery_share(schema)) if schema.discovers else budget


def selection_for(schema: Schema, privacy: Privacy) -> PartitionSelection | None:
    """Noise and threshold for each column of a schema whose levels are to be found; None where there is none."""
    number = sum(column.discovers for column in schema.columns)
    if not number:
        return None
    whole = privacy.charge(may_fail=True)
    noise = noise_within(whole, discovery_share(schema) / number, privacy.unit)
    return PartitionSelection.calibrated(noise, whole.failure / number, privacy.unit)


def table_shares(
    workload: Workload, weights: Mapping[Attrs, float] | None = None, sets: int = 1
) -> tuple[Fraction, ...]:
    """The share that each table gets in one set of what is there for tables: equal, or by weight."""
    parts = _table_weights(workload, weights)
    whole = sum(parts, Fraction(0)) * sets
    return tuple(part / whole for part in parts)


def _table_weights(workload: Workload, weights: Mapping[Attrs, float] | None) -> tuple[Fraction, ...]:
    if weights is None:
        return (Fraction(1),) * len(workload.tables)
    given = {table_key(attrs): value for attrs, value in weights.items()}
    known = {table_key(attrs) for attrs in workload.tables}
    unknown = [attrs for attrs in weights if table_key(attrs) not in known]
    if unknown:
        hint = did_you_mean(said(unknown[0]), [said(attrs) for attrs in workload.tables])
        raise BudgetError(f"weights name {unknown[0]!r}, which is not a table of the workload{hint}")
    absent = [attrs for attrs in workload.tables if table_key(attrs) not in given]
    if absent:
        raise BudgetError(
            f"weights have no entry for {absent[0]!r}; give one per table, or none for equal shares"
        )
    return tuple(positive_fraction("weight", given[table_key(attrs)]) for attrs in workload.tables)
