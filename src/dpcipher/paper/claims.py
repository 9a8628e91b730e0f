"""A claim of the paper beside our numbers, with a verdict that follows from them by a rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.marginals.arrays import Floats

CONFIRMED = "confirmed"
REFUTED = "not confirmed"
UNDECIDABLE = "not decidable"
VERDICTS = (CONFIRMED, REFUTED, UNDECIDABLE)


@dataclass(frozen=True)
class Claim:
    """What the paper says and where, our numbers, the verdict, and what our own engine makes of it.

    `but` qualifies the verdict, for example by the reading it holds for.
    """

    says: str
    where: str
    numbers: str
    verdict: str
    ours: str = ""
    but: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ParameterError(f"verdict ({self.verdict!r}) must be one of {', '.join(VERDICTS)}")

    def row(self) -> list[str]:
        """One row of the verdict table."""
        verdict = f"**{self.verdict}**" + (f" {self.but}" if self.but else "")
        return [self.says, self.where, self.numbers, verdict, self.ours or "—"]


def judge(holds: bool | np.bool_) -> str:
    """The verdict of a rule that either holds or does not."""
    return CONFIRMED if holds else REFUTED


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with its heads.

    >>> print(markdown_table(["n", "error"], [["200", ".1"]]), end="")
    | n | error |
    |---|---|
    | 200 | .1 |
    """
    rows = ["| " + " | ".join(cells) + " |\n" for cells in (heads, *lines)]
    return rows[0] + "|" + "---|" * len(heads) + "\n" + "".join(rows[1:])


def verdict_table(claims: Sequence[Claim]) -> str:
    """A row for each claim."""
    heads = ["the paper says", "where", "our numbers, paper's engine", "verdict", "with our engine"]
    return markdown_table(heads, [claim.row() for claim in claims])


def series(values: Sequence[float] | Floats, digits: int = 3) -> str:
    """Numbers in the order of epsilon.

    >>> series([0.5, 0.25], 2)
    '.50 / .25'
    """
    return " / ".join(
        f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
        for value in values
    )


def percents(values: Sequence[float] | Floats) -> str:
    """Shares as whole per cents.

    >>> percents([0.5, 0.256])
    '50 / 26 %'
    """
    return " / ".join(f"{100 * value:.0f}" for value in values) + " %"


def spread(lines: Floats | Sequence[Floats]) -> float:
    """The largest ratio, at any epsilon, of the largest to the smallest of several methods."""
    return float((np.max(lines, axis=0) / np.min(lines, axis=0)).max())
