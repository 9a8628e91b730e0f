"""The exact shares of a charge: what finding levels and bins takes, what is left for tables, and the finest share that a table gets."""

from collections.abc import Mapping
from fractions import Fraction

from dpcipher.errors import BudgetError, did_you_mean
from dpcipher.privacy.budget import Budget, noise_for, positive_fraction
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Privacy
from dpcipher.schema.grouped import said, table_key
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.tables.domain import Attrs

PARTS = 2**24  # allocated shares are rounded down to whole multiples of about 1 / PARTS of what is left
FINEST = 4 * PARTS  # no question of a selection gets less than 1 / FINEST of the charge, counted in tables
BINS, EACH_BINS = Fraction(1, 10), Fraction(1, 30)  # of the charge: for all open columns, and for one
COARSE = Fraction(1, 2)  # of what finding bins may take: what coarse counts take beside it
# What is not named is lost in all tables, and a tenth less for the tables raises their noise by a twentieth: on generated tables with few frequent texts and
# many rare ones a tenth gave errors of pairs 5 to 11 % below those of a twentieth, and of the other columns 0 to 5 % above.
LEVELS, EACH_LEVELS = Fraction(1, 5), Fraction(1, 10)


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
    mechanism = noise_for(whole.share(discovery_share(schema) / number), privacy.unit)
    return PartitionSelection.calibrated(mechanism, whole.failure / number, privacy.unit)


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
