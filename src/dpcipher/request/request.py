"""What is asked: which tables with which noise, or how they are chosen, under which promise. All of it is checked before any row is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from dpcipher.errors import ParameterError, SizeError, warn
from dpcipher.privacy.budget import Budget, noise_for
from dpcipher.privacy.terms import Cap, Privacy
from dpcipher.release.file import check_fits_file, most_tables
from dpcipher.release.reconcile import check_size
from dpcipher.request.auto import Auto, parse_auto
from dpcipher.request.shares import FINEST, after_finding, table_shares
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.measurement import Noise
from dpcipher.tables.query import Query


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
        self.mechanisms  # noqa: B018 - a budget too small or too large for them is refused

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
    def mechanisms(self) -> tuple[Noise, ...]:
        """The noise of each given table."""
        left, unit = self.left, self.privacy.unit
        affordable = {share: noise_for(left.share(share), unit) for share in set(self.shares)}
        return tuple(affordable[share] for share in self.shares)

    @property
    def purpose(self) -> dict[str, Any]:
        """What the ledger records of it."""
        if self.auto is not None:
            return {"tables": "auto", "sets": self.sets}
        kind = self.mechanisms[0].kind
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
