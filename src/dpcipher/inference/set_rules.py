"""Which rule combines m sets: the one that is asked for, or the one that the sets say is theirs."""

from collections.abc import Collection, Sequence
from typing import Any

from dpcipher.drawing.curator_only import UNKNOWN
from dpcipher.errors import ParameterError
from dpcipher.inference.combine import Rule, word_of
from dpcipher.inference.notes import Note, Rank, listed
from dpcipher.joint.imputed import BREAKS, Imputed, tells_release

CONTRADICTED = (
    "the sets say that they were drawn from one release, solve(release, draws=m), whose rule is 'imputations'; rule={rule!r}, as asked for, "
    "does not fit them"
)
BROKEN = {
    "n_rows": "the sets have another number of rows than the table: intervals are off",
    "given": "the sets are a part with as many rows as all: intervals are too short",
    "independent": "rows were drawn independently: intervals are too wide",
}
BINNED = (
    "{names}: these values were drawn inside bins, unrelated to the other columns: slopes on them come out too near 0, which no interval here holds. "
    "Sample with values='middle' (synth --values middle), or give fit_models the release or its draws themselves"
)


def origin_of(sets: Sequence[Any], rows_from: str | None) -> tuple[str, list[Note]]:
    """The stamp of what is made of these sets, and on whose word they carry none: unless all of them tell of a release, they may be private."""
    if rows_from is not None:
        return "", [
            Note(word, f"public on this word alone: {rows_from.strip()}", Rank.UNKNOWN)
            for word in word_of(rows_from)
        ]
    return ("" if all(map(tells_release, sets)) else UNKNOWN), []


def rule_of(sets: Sequence[Any], rule: Rule | None, columns: Collection[str]) -> tuple[Rule, list[Note]]:
    """The rule for these sets, and what they say of themselves that a model of `columns` should know."""
    marks = [Imputed.of(data) for data in sets]
    imputed = [mark for mark in marks if mark is not None]
    if not imputed:
        return rule or "sanitizations", []
    if rule is None and len(imputed) < len(marks):
        raise ParameterError(
            f"sets ({len(marks)}) must be of one kind: {len(imputed)} of them were drawn from a release by solve(draws=m), the others do not say where "
            "they are from. Give rule='imputations' where all were drawn so"
        )
    chosen: Rule = rule or ("imputations" if len(marks) > 1 else "sanitizations")
    return chosen, _notes(imputed, rule, columns)


def _notes(imputed: list[Imputed], rule: Rule | None, columns: Collection[str]) -> list[Note]:
    binned = dict.fromkeys(name for mark in imputed for name in mark.binned if name in columns)
    changed = dict.fromkeys(option for mark in imputed for option in mark.changed)
    notes = [Note(f"{option}: {BREAKS[option]}", BROKEN[option], Rank.UNKNOWN) for option in changed]
    if rule not in (None, "imputations"):
        short = f"rule={rule!r} does not fit sets drawn from one release; take 'imputations'"
        notes.insert(0, Note(CONTRADICTED.format(rule=rule), short, Rank.UNKNOWN))
    if binned:
        short = f"slopes on {listed(binned)} come out too near 0; sample with values='middle'"
        notes.append(Note(BINNED.format(names=", ".join(binned)), short, Rank.SENSITIVE))
    return notes
