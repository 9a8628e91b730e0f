"""Which rule combines m sets: the one that is asked for, or the one that the sets say is theirs."""

from collections.abc import Collection, Sequence
from typing import Any

from dpcipher.drawing.curator_only import UNKNOWN
from dpcipher.errors import ParameterError
from dpcipher.inference.combine import Rule, word_of
from dpcipher.joint.imputed import BREAKS, Imputed, tells_release

CONTRADICTED = (
    "the sets say that they were drawn from one release, solve(release, draws=m), whose rule is 'imputations'; rule={rule!r}, as asked for, "
    "does not fit them"
)
BINNED = (
    "{names}: these values were drawn inside bins, unrelated to the other columns: slopes on them come out too near 0, which no interval here holds. "
    "Sample with values='middle' (synth --values middle), or give fit_models the release or its draws themselves"
)


def origin_of(sets: Sequence[Any], rows_from: str | None) -> tuple[str, list[str]]:
    """The stamp of what is made of these sets, and on whose word they carry none: unless all of them tell of a release, they may be private."""
    if rows_from is not None:
        return "", word_of(rows_from)
    return ("" if all(map(tells_release, sets)) else UNKNOWN), []


def rule_of(sets: Sequence[Any], rule: Rule | None, columns: Collection[str]) -> tuple[Rule, list[str]]:
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


def _notes(imputed: list[Imputed], rule: Rule | None, columns: Collection[str]) -> list[str]:
    binned = dict.fromkeys(name for mark in imputed for name in mark.binned if name in columns)
    changed = dict.fromkeys(option for mark in imputed for option in mark.changed)
    return [
        *([CONTRADICTED.format(rule=rule)] if rule not in (None, "imputations") else []),
        *(f"{option}: {BREAKS[option]}" for option in changed),
        *([BINNED.format(names=", ".join(binned))] if binned else []),
    ]
