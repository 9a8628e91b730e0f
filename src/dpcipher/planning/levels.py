"""How frequent a text must be to be found, where a schema leaves levels open: known before any row is read."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcipher.privacy.budget import percent, show
from dpcipher.privacy.terms import Privacy
from dpcipher.request.shares import discovery_share, selection_for
from dpcipher.schema.schema import Schema

USUALLY = 0.95
TEXTS = 256  # that rows are taken to hold: the second is half as frequent as the first, the third a third, and so on


@dataclass(frozen=True)
class LevelPlan:
    """What finding levels takes of the budget, and what it finds: a text of `half` rows every other time, of `usually` rows 19 times out of 20.

    No more than `most` texts of a column can have so many rows, and `expected` of them do where the k-th text is a k-th as frequent as the first: these need a
    number of rows.
    """

    columns: tuple[str, ...]
    share: Fraction
    delta: Fraction
    threshold: int
    half: int
    usually: int
    most: int | None = None
    expected: int | None = None

    def lines(self) -> list[str]:
        """For people."""
        names = ", ".join(self.columns)
        found = f"a text of {self.half:,} rows is found every other time, of {self.usually:,} rows 19 times out of 20"
        if self.expected is not None:
            found += f"; about {self.expected:,} in a column where the k-th text is 1/k as frequent as the first, never more than {self.most:,}"
        cost = f"{percent(self.share)} of the budget, and delta = {show(self.delta)} that a lone text shows"
        return [f"Levels   {names}: {found}; {cost}. Rarer texts become other."]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return {
            **vars(self),
            "columns": list(self.columns),
            "share": str(self.share),
            "delta": str(self.delta),
        }


def level_plan(schema: Schema, privacy: Privacy, n_rows: int | None = None) -> LevelPlan | None:
    """What a release with this budget would find; None where the schema leaves no levels open. Refused as `measure` would."""
    chosen = selection_for(schema, privacy)
    if chosen is None:
        return None
    names = tuple(column.name for column in schema.columns if column.discovers)
    return LevelPlan(
        columns=names,
        share=discovery_share(schema),
        delta=chosen.delta * len(names),
        threshold=chosen.threshold,
        half=chosen.found_at(0.5),
        usually=chosen.found_at(USUALLY),
        most=None if n_rows is None else max(1, n_rows // max(chosen.threshold, 1)),
        expected=None if n_rows is None else _expected(n_rows, chosen.threshold),
    )


def _expected(n_rows: int, threshold: int) -> int:
    """The texts that reach the threshold where the k-th of `TEXTS` is a k-th as frequent as the first; at least one is foreseen.

    >>> _expected(6_000, 100)  # the first has a sixth of the rows
    9
    """
    first = n_rows / math.fsum(1 / k for k in range(1, TEXTS + 1))
    return max(1, min(TEXTS, math.floor(first / max(threshold, 1))))
