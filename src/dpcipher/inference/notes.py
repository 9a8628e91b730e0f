"""The notes of a model: in full, and on one line for the first view where they belong there."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from dpcipher.inference.combine import ASSUMED, BIAS, FITS, ONE_SET
from dpcipher.inference.design import Task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.formula import ParsedFormula, quoted
from dpcipher.posteriors.posterior import Posterior
from dpcipher.release.release import Release
from dpcipher.schema.bins import Bins
from dpcipher.schema.columns import Column
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Floats

ALIKE = 0.02  # in parts of a width, and in standard errors: a difference that no reader needs to know of
MOVED, NARROWED = 0.25, 0.8  # a difference that the first view names
UNITS = {
    "date": "a date counts in days since 1970-01-01, and so do the coefficients; I({name} / 365.25) counts in years",
    "time": "a time of day counts in seconds since midnight, and so do the coefficients; I({name} / 3600) counts in hours",
}
PER = {"date": "per day; I({name} / 365.25) is per year", "time": "per second; I({name} / 3600) is per hour"}
NO_INTERCEPT = (
    "the formula leaves out the intercept, but an ordinal model needs its cut points and always has them: "
    "the first level of a category stays the reference"
)
FIRTH = (
    "separation: some maximum-likelihood estimates are infinite in set(s) {sets}, so every set was fitted "
    "with Firth's penalty, "
    "which keeps them finite and shrinks them slightly"
)
ALIASED = (
    "not identified in every set: {terms}; their levels are missing, or follow from other terms, in set(s) "
    "{sets}"
)


class Rank(IntEnum):
    """How much a note matters to a reader; the lowest comes first."""

    UNKNOWN = 0  # part of the answer is missing, or leaves the noise out
    UNSETTLED = 1
    SENSITIVE = 2  # another choice that the data cannot check gives another answer
    UNMEASURED = 3
    ABOUT = 4  # of which rows the answer is
    ASSUMED = 5
    CODING = 6


@dataclass(frozen=True)
class Note:
    """A sentence or two, and a short form for the first view; without one, it is in the details alone."""

    text: str
    short: str = ""
    rank: Rank = Rank.CODING


def in_short(notes: Iterable[Note]) -> tuple[str, ...]:
    """The short forms, the most important first.

    >>> in_short([Note("a long one", "b", Rank.ABOUT), Note("another", "a", Rank.UNKNOWN), Note("a detail")])
    ('a', 'b')
    """
    return tuple(note.short for note in sorted(notes, key=lambda note: note.rank) if note.short)


def listed(names: Iterable[str], most: int = 3) -> str:
    """Names on a part of a line; the first few of many.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def listed_sets(numbers: Iterable[int]) -> str:
    """The numbers of some sets."""
    return ", ".join(map(str, numbers))


# Models of any source: how columns entered, where that is a choice.


def coding_notes(
    formula: ParsedFormula, family: str | None, schema: Schema, numbers: Iterable[str], given: Container[str]
) -> list[Note]:
    """The assumed order of the outcome, and the units of dates and levels among `numbers`.

    `given` are the columns whose order the caller gave.
    """
    kinds = {name: schema.column(name).kind for name in numbers}
    levels = [name for name, kind in kinds.items() if kind == "ordinal" and name not in formula.outcome]
    notes = [*unit_notes(kinds), *map(_level_note, levels)]
    outcome = formula.plain_outcome
    if family == "ordinal" and outcome in schema.names and outcome not in given:
        notes += _order_notes(schema.column(outcome))
    return notes


def intercept_notes(formula: ParsedFormula, family: str) -> list[Note]:
    """That an ordinal model has its cut points also where the formula leaves out the intercept."""
    if family != "ordinal" or formula.has_intercept:
        return []
    return [Note(NO_INTERCEPT, "an ordinal model keeps its cut points: the formula cannot leave them out")]


def unit_notes(kinds: Mapping[str, str]) -> list[Note]:
    """The units of dates and times of day, of columns by their kind."""
    return [
        Note(
            f"{name}: {UNITS[kind].format(name=quoted(name))}",
            f"{name} is {PER[kind].format(name=quoted(name))}",
        )
        for name, kind in kinds.items()
        if kind in UNITS
    ]


def _level_note(name: str) -> Note:
    """That the levels of an ordinal column are taken for the numbers that they are."""
    return Note(
        f"{name}: its levels are numbers and enter as such, so a step between neighbours counts by their "
        "difference; "
        f"C({quoted(name)}) makes categories of them",
        f"{name} enters as a number; C({quoted(name)}) makes categories",
    )


def _order_notes(column: Column) -> list[Note]:
    """The order of an ordinal outcome that its kind does not tell: unordered levels, special values."""
    domain = column.domain
    if isinstance(domain, Bins):
        if not domain.special:
            return []
        special = ", ".join(domain.labels[domain.n_bins :])
        text = (
            f"the special values of {column.name} ({special}) are taken to be above its bins; if they belong "
            "elsewhere, give the order with the option levels"
        )
        return [Note(text, f"special values of {column.name} count as above its bins", Rank.ASSUMED)]
    if column.kind != "categorical" or domain.size < 3:
        return []
    text = (
        f"the levels of {column.name} are declared without an order and taken to rise as they are listed "
        f"({' < '.join(domain.labels):.200}); "
        "if they do not, give the order with the option levels"
    )
    return [Note(text, f"levels of {column.name} are taken to rise as the schema lists them", Rank.ASSUMED)]


# Models over m sets.

COMBINED = {
    ONE_SET: Note(
        ONE_SET, "one set: the privacy noise is in no interval; fit the release, or sets=5", Rank.UNKNOWN
    ),
    FITS["sanitizations"]: Note(
        FITS["sanitizations"],
        "the rule is for independent sanitizations, not for draws of one release",
        Rank.ASSUMED,
    ),
    BIAS: Note(BIAS, "bias from shrinkage and clipping is in no interval", Rank.SENSITIVE),
    ASSUMED: Note(
        ASSUMED, "interactions that no table of the release shows are taken for none", Rank.SENSITIVE
    ),
}


def separation_notes(sets: Sequence[int]) -> list[Note]:
    """That every fit is penalised, since these sets are separated."""
    if not sets:
        return []
    short = "some set is separated: every fit has Firth's penalty and is slightly shrunk"
    return [Note(FIRTH.format(sets=listed_sets(sets)), short, Rank.UNSETTLED)]


def unidentified_notes(estimates: Floats, terms: Sequence[str]) -> list[Note]:
    """The terms that some set does not identify."""
    missing = np.isnan(estimates)
    if not missing.any():
        return []
    unknown = np.asarray(missing.any(axis=0))
    lost = [term for term, some in zip(terms, unknown, strict=True) if some]
    sets = listed_sets(1 + np.flatnonzero(missing.any(axis=1)))
    text = ALIASED.format(terms=", ".join(lost), sets=sets)
    return [Note(text, f"not identified in every set: {listed(lost, 2)}", Rank.UNKNOWN)]


# Models from a release.


def assumption_notes(
    task: Task, measured: Bools, drawn: DrawSummary, closed: DrawSummary | None, unmeasured: Sequence[Axes]
) -> list[Note]:
    """The parameters that rest on unmeasured interactions, and the effect of taking these for none."""
    notes = []
    if not measured.all():
        text = (
            f"{_named(task, ~measured)}: no measured table holds {' and '.join(task.formula.outcome)} "
            "together with the columns of these terms, or of an interaction that they "
            "are part of, so the release shows them only as far as the other tables leave no room; the rest "
            "is the prior's. Leave the interaction out, or measure such a table"
        )
        short = f"no table shows {(~measured).sum()} of the {measured.size} terms: they rest on a weak prior"
        notes.append(Note(text, short, Rank.UNMEASURED))
    if drawn.zero.any():
        notes.append(Note(f"{_named(task, drawn.zero)}: 0 in every draw, by the model and not by the data"))
    if unmeasured:
        sets = [" × ".join(task.formula.columns[axis] for axis in axes) for axes in unmeasured]
        named = "; ".join(sets[:4]) + (f"; and {len(sets) - 4} more" if len(sets) > 4 else "")
        start = f"no table shows the interaction of {named}: it is "
        if closed is None:
            text = f"{start}taken for none, which the release cannot check"
            short = "interactions that no table shows are taken for none"
            notes.append(Note(text, short, Rank.SENSITIVE))
        else:
            effect, short = _closed_note(task, drawn, closed)
            text = f"{start}left open, as far as a weak prior lets it go. {effect}"
            notes.append(Note(text, short, Rank.SENSITIVE))
    return notes


def _closed_note(task: Task, drawn: DrawSummary, closed: DrawSummary) -> tuple[str, str]:
    """The largest effect of taking the unmeasured interactions for none, in full and in short."""
    (low, high), (inner_low, inner_high) = drawn.interval(), closed.interval()
    with np.errstate(divide="ignore", invalid="ignore"):
        narrower = np.where(drawn.zero, np.nan, (inner_high - inner_low) / (high - low))
        moved = np.where(drawn.zero, np.nan, (closed.estimate - drawn.estimate) / drawn.std_error)
    start = "Taken for none, which the release cannot check, it gives the intervals closed_low to closed_high"
    if np.isnan(narrower).all():
        return start, ""
    least, far = int(np.nanargmin(narrower)), int(np.nanargmax(np.abs(moved)))
    if narrower[least] >= 1 - ALIKE and abs(moved[far]) <= ALIKE:
        return f"{start}, which are much the same here", ""
    short = "what no table shows, taken for none, "
    if abs(moved[far]) >= MOVED:
        short += f"moves estimates by up to {abs(moved[far]):.1f} s.e."
    elif narrower[least] <= NARROWED:
        short += f"narrows intervals to {narrower[least]:.2f} of their width"
    else:
        short = ""
    text = (
        f"{start}: at least {narrower[least]:.2f} times as wide ({task.terms[least]}), "
        f"estimates moved by at most {abs(moved[far]):.1f} standard errors ({task.terms[far]})"
    )
    return text, short


def missing_notes(task: Task, joint: Posterior) -> list[Note]:
    """The share of rows that the model is about, where others are left out for a missing value."""
    if not task.cells.dropped:
        return []
    share = float(np.median(task.weights(joint.draws).sum(axis=1)))
    text = (
        f"rows in which {', '.join(task.cells.dropped)} is missing are left out (missing='drop'): the "
        "coefficients are about the "
        f"{100 * share:.1f} % of the rows in which all columns of the model are known"
    )
    short = f"about {100 * share:.1f} % of the rows: in the others {listed(task.cells.dropped)} is missing"
    return [Note(text, short, Rank.ABOUT)]


def prior_notes(task: Task, dominated: Bools, measured: Bools, noise_share: Floats) -> list[Note]:
    """The parameters about which measured tables say little, for their noise or for few rows."""
    marked = dominated & measured
    few = marked & (noise_share < 0.5)
    reasons = (
        ("the noise leaves the release little to say about these", marked & ~few),
        ("the rows are too few to say much about these", few),
    )
    return [
        Note(
            f"{_named(task, which)}: {reason}; their intervals are more than half as wide as before any "
            "data, "
            "and the weak prior (log odds ratios within about ±4) shapes them"
        )
        for reason, which in reasons
        if which.any()
    ]


def fit_notes(task: Task, drawn: DrawSummary, converged: Bools) -> list[Note]:
    """Parameters that are not identified, fits that did not converge, and the Monte Carlo error."""
    notes, unknown = [], np.asarray(np.isnan(drawn.draws).any(axis=0))
    if unknown.any():
        text = (
            f"not identified: {_named(task, unknown)}; these follow from other terms, or structural zeros "
            "leave their levels no rows, or no choice of the outcome; of a reference level, the option "
            "levels makes another one the reference"
        )
        notes.append(Note(text, f"not identified: {_named(task, unknown, 2)}", Rank.UNKNOWN))
    if not converged.all():
        failed = f"{(~converged).sum():,} of {len(converged):,} draws"
        text = (
            f"in {failed} the fit did not converge: a level predicts the outcome almost perfectly there, and "
            "intervals that reach far out are to be read as open"
        )
        short = f"the fit did not converge in {failed}: read far ends of intervals as open"
        notes.append(Note(text, short, Rank.UNSETTLED))
    text = (
        f"{len(drawn.draws):,} draws: an end of a 95 % interval is known to about "
        f"±{drawn.monte_carlo_error():.2f} standard errors, "
        f"and p to no less than {2 / (len(drawn.draws) + 1):.2g}"
    )
    notes.append(Note(text))
    return notes


def row_notes(release: Release) -> list[Note]:
    """The rows that are counted, and that those of one person are taken for independent."""
    notes, scope, unit = list[Note](), release.statement.scope, release.statement.unit
    if scope:
        notes.append(Note(scope, f"counts are {release.statement.counted}", Rank.ABOUT))
    if unit and unit["max_rows"] > 1:
        text = (
            "rows of one person count as independent rows: where they are alike, the sampling part of the "
            "intervals is too short"
        )
        notes.append(
            Note(text, "rows of one person count as independent: intervals may be too short", Rank.ABOUT)
        )
    return notes


def _named(task: Task, which: Bools, most: int = 6) -> str:
    """The parameters that are marked, by name; the first few of many."""
    return listed((term for term, marked in zip(task.terms, which, strict=True) if marked), most)
