"""How columns entered a model where that is a choice: the order of an ordinal outcome, and dates and levels as numbers."""

from collections.abc import Container, Iterable, Mapping, Sequence

from dpcipher.inference.formula import ParsedFormula, has_intercept, quoted
from dpcipher.inference.notes import Note, Rank
from dpcipher.schema.bins import Bins
from dpcipher.schema.columns import Column
from dpcipher.schema.schema import Schema

UNITS = {
    "date": "a date counts in days since 1970-01-01, and so do the coefficients; I({name} / 365.25) counts in years",
    "time": "a time of day counts in seconds since midnight, and so do the coefficients; I({name} / 3600) counts in hours",
}
PER = {"date": "per day; I({name} / 365.25) is per year", "time": "per second; I({name} / 3600) is per hour"}
NO_INTERCEPT = "the formula leaves out the intercept, but an ordinal model needs its cut points and always has them: the first level of a category stays the reference"


def coding_notes(
    formula: ParsedFormula, family: str | None, schema: Schema, numbers: Iterable[str], given: Container[str]
) -> list[Note]:
    """What was assumed about the order of the outcome, and the unit of dates and levels among `numbers`; `given` are the columns whose order was asked for."""
    kinds = {name: schema.column(name).kind for name in numbers}
    levels = [name for name, kind in kinds.items() if kind == "ordinal" and name not in formula.outcome]
    notes = [*unit_notes(kinds), *_level_notes(levels)]
    outcome = formula.plain_outcome
    if family == "ordinal" and outcome in schema.names and outcome not in given:
        notes += _order_notes(schema.column(outcome))
    return notes


def intercept_notes(right: str, text: str, family: str) -> list[Note]:
    """That an ordinal model has its cut points also where the formula leaves out the intercept."""
    if family != "ordinal" or has_intercept(right, text):
        return []
    return [Note(NO_INTERCEPT, "an ordinal model keeps its cut points: the formula cannot leave them out")]


def unit_notes(kinds: Mapping[str, str]) -> list[Note]:
    """In what dates and times of day count, of columns by their kind."""
    return [
        Note(
            f"{name}: {UNITS[kind].format(name=quoted(name))}",
            f"{name} is {PER[kind].format(name=quoted(name))}",
        )
        for name, kind in kinds.items()
        if kind in UNITS
    ]


def _level_notes(names: Sequence[str]) -> list[Note]:
    """That the levels of ordinal columns are taken for the numbers that they are."""
    return [
        Note(
            f"{name}: its levels are numbers and enter as such, so a step between neighbours counts by their difference; "
            f"C({quoted(name)}) makes categories of them",
            f"{name} enters as a number; C({quoted(name)}) makes categories",
        )
        for name in names
    ]


def _order_notes(column: Column) -> list[Note]:
    """Which order an ordinal outcome was given, where its kind does not say: of unordered levels, and of special values."""
    domain = column.domain
    if isinstance(domain, Bins):
        if not domain.special:
            return []
        special = ", ".join(domain.labels[domain.n_bins :])
        text = f"the special values of {column.name} ({special}) are taken to be above its bins; if they belong elsewhere, give the order with the option levels"
        return [Note(text, f"special values of {column.name} count as above its bins", Rank.ASSUMED)]
    if column.kind != "categorical" or domain.size < 3:
        return []
    text = (
        f"the levels of {column.name} are declared without an order and taken to rise as they are listed ({' < '.join(domain.labels):.200}); "
        "if they do not, give the order with the option levels"
    )
    return [Note(text, f"levels of {column.name} are taken to rise as the schema lists them", Rank.ASSUMED)]
