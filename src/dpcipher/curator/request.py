"""What is asked: which tables with which noise, under which promise. All of it is checked before any row is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcipher.errors import BudgetError, ParameterError, did_you_mean, warn
from dpcipher.privacy.budget import positive_fraction
from dpcipher.privacy.noise import mechanism_for
from dpcipher.privacy.terms import Cap, Privacy
from dpcipher.release.file import check_fits_file
from dpcipher.release.reconcile import check_zeros
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.tables.domain import Attrs
from dpcipher.tables.measurement import Noise


@dataclass(frozen=True)
class MeasurementRequest:
    """A checked request: what to measure, under which promise, with which noise. Everything in it is public."""

    schema: Schema
    workload: Workload
    privacy: Privacy
    sets: int
    shares: tuple[Fraction, ...]  # of the whole charge, of each table in one set
    mechanisms: tuple[Noise, ...]

    @property
    def axes(self) -> list[tuple[int, ...]]:
        """The axes of each table."""
        return [self.schema.axes(attrs) for attrs in self.workload.tables]


def make_request(
    schema: Schema,
    *,
    workload: int | Sequence[Sequence[str]],
    privacy: Privacy,
    sets: int = 1,
    weights: Mapping[Attrs, float] | None = None,
) -> MeasurementRequest:
    """Check a request against the schema; nothing private is opened."""
    check_sets(sets)
    parsed = Workload.parse(schema, workload)
    check_fits_file(schema, parsed, sets)
    if schema.zero_masks:
        check_zeros(schema.shape, [schema.axes(attrs) for attrs in parsed.tables], schema.zero_masks)
    shares = table_shares(parsed, weights, sets)
    affordable = {share: mechanism_for(privacy.budget.share(share), privacy.unit) for share in set(shares)}
    mechanisms = tuple(affordable[share] for share in shares)
    return MeasurementRequest(schema, parsed, privacy, sets, shares, mechanisms)


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


def table_shares(
    workload: Workload, weights: Mapping[Attrs, float] | None = None, sets: int = 1
) -> tuple[Fraction, ...]:
    """The share of the whole charge that each table gets in one set: equal, or by weight."""
    parts = table_weights(workload, weights)
    whole = sum(parts, Fraction(0)) * sets
    return tuple(part / whole for part in parts)


def table_weights(workload: Workload, weights: Mapping[Attrs, float] | None) -> tuple[Fraction, ...]:
    """The weight of each table: equal, or as given."""
    if weights is None:
        return (Fraction(1),) * len(workload.tables)
    given = {frozenset(attrs): value for attrs, value in weights.items()}
    known = {frozenset(attrs) for attrs in workload.tables}
    unknown = [attrs for attrs in weights if frozenset(attrs) not in known]
    if unknown:
        hint = did_you_mean(" × ".join(unknown[0]), [" × ".join(attrs) for attrs in workload.tables])
        raise BudgetError(f"weights name {unknown[0]!r}, which is not a table of the workload{hint}")
    absent = [attrs for attrs in workload.tables if frozenset(attrs) not in given]
    if absent:
        raise BudgetError(
            f"weights have no entry for {absent[0]!r}; give one per table, or none for equal shares"
        )
    return tuple(positive_fraction("weight", given[frozenset(attrs)]) for attrs in workload.tables)
