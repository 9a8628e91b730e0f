"""How columns entered a model where that is a choice: the order of an ordinal outcome, and dates as numbers."""

from collections.abc import Container, Iterable, Mapping

from dpcipher.inference.formula import ParsedFormula, has_intercept, quoted
from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.schema import Schema

UNITS = {
    "date": "a date counts in days since 1970-01-01, and so do the coefficients; I({name} / 365.25) counts in years",
    "time": "a time of day counts in seconds since midnight, and so do the coefficients; I({name} / 3600) counts in hours",
}
NO_INTERCEPT = "the formula leaves out the intercept, but an ordinal model needs its cut points and always has them: the first level of a category stays the reference"


def coding_notes(
    formula: ParsedFormula, family: str | None, schema: Schema, numbers: Iterable[str], given: Container[str]
) -> list[str]:
    """What was assumed about the order of the outcome and the unit of dates among `numbers`; `given` are the columns whose order was asked for."""
    notes = unit_notes({name: schema.column(name).kind for name in numbers})
    outcome = formula.plain_outcome
    if family == "ordinal" and outcome in schema.names and outcome not in given:
        notes += _order_notes(schema.column(outcome))
    return notes


def intercept_notes(right: str, text: str, family: str) -> list[str]:
    """That an ordinal model has its cut points also where the formula leaves out the intercept."""
    return [NO_INTERCEPT] if family == "ordinal" and not has_intercept(right, text) else []


def unit_notes(kinds: Mapping[str, str]) -> list[str]:
    """In what dates and times of day count, of columns by their kind."""
    return [
        f"{name}: {UNITS[kind].format(name=quoted(name))}" for name, kind in kinds.items() if kind in UNITS
    ]


def _order_notes(column: Column) -> list[str]:
    """Which order an ordinal outcome was given, where its kind does not say: of unordered levels, and of special values."""
    domain = column.domain
    if isinstance(domain, Binned):
        if not domain.special:
            return []
        special = ", ".join(domain.labels[domain.n_bins :])
        return [
            f"the special values of {column.name} ({special}) are taken to be above its bins; if they belong elsewhere, give the order with the option levels"
        ]
    if column.kind != "categorical" or domain.size < 3:
        return []
    return [
        f"the levels of {column.name} are declared without an order and taken to rise as they are listed ({' < '.join(domain.labels):.200}); "
        "if they do not, give the order with the option levels"
    ]
