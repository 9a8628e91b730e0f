"""A sentence of the paper, the rule that judges it, and the verdict that follows under every reading.

A rule is data beside its sentence: what is measured, what is needed, and which open choices it is judged under. It is the same for sentences that
favour CIPHER and for those that do not. A comparison counts only beyond two standard errors of the Monte Carlo run (more where a sentence makes many
comparisons at once, by Bonferroni's rule); otherwise the answer is "too few repeats".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np

from dpcipher.inference.combine import t_quantile
from dpcipher.tables.domain import Floats
from experiments.paper.readings import LITERAL
from experiments.paper.replicates import freedom, standard_error

HOLDS, FAILS, OPEN, UNDECIDABLE = "holds", "does not hold", "too few repeats", "not decidable"
OUTCOMES = (HOLDS, FAILS, OPEN, UNDECIDABLE)
CONFIRMED, CONDITIONAL, REFUTED = "confirmed", "conditional", "not confirmed"
STATUSES = (CONFIRMED, CONDITIONAL, REFUTED, OPEN, UNDECIDABLE)
OURS = "ours"
# One side of two standard errors.
_TAIL = 1 - NormalDist().cdf(2.0)
# What the paper leaves open beside the reading of its algorithm.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "mwem": ("cells", "tables"),
    "sets": ("1", "5"),
    "costs": ("as meant", "as printed"),
}
_WORDS = {"mwem": "MWEM by {}", "sets": "m = {}", "costs": "costs {}"}


@dataclass(frozen=True)
class Condition:
    """One way to fill what the paper leaves open: the reading of its algorithm (or our engine), and a value for each other choice."""

    reading: str = LITERAL
    choices: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, name: str) -> str:
        return dict(self.choices).get(name, CHOICES[name][0])

    @property
    def column(self) -> str:
        """The choices in words, without the reading."""
        return ", ".join(_WORDS[name].format(value) for name, value in self.choices)


@dataclass(frozen=True)
class Finding:
    """What a rule found under one condition: the outcome, the number pair, and what the small plot shows (by epsilon, with the level that is needed)."""

    outcome: str
    found: str
    line: tuple[float, ...] = ()
    level: float | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, and its rule, in words and as a function of what was measured.

    `over` names the open choices it depends on: `"reading"` where CIPHER takes part, `"mwem"`, `"sets"` (m) and `"costs"`.
    """

    key: str
    says: str
    where: str
    rule: str
    judge: Callable[[Any], Finding]
    over: tuple[str, ...] = ()

    def conditions(self, readings: Sequence[str]) -> list[Condition]:
        """Every condition it is judged under, the literal reading first."""
        names = [name for name in self.over if name != "reading"]
        every = readings if "reading" in self.over else readings[:1]
        return [
            Condition(reading, tuple(zip(names, values, strict=True)))
            for reading in every
            for values in product(*(CHOICES[name] for name in names))
        ]


@dataclass(frozen=True)
class Verdict:
    """A claim with its findings under every condition; `ours` are those of our engine in the place of CIPHER."""

    claim: Claim
    findings: Mapping[Condition, Finding]
    ours: Mapping[Condition, Finding]

    @property
    def literal(self) -> dict[Condition, Finding]:
        """The findings under the literal reading, one for each column."""
        return {where: found for where, found in self.findings.items() if where.reading == LITERAL}

    @property
    def status(self) -> str:
        """Confirmed under every condition, under some, or under none; undecided where the literal reading is."""
        outcomes = {finding.outcome for finding in self.findings.values()}
        if outcomes == {HOLDS}:
            return CONFIRMED
        if {finding.outcome for finding in self.literal.values()} == {OPEN}:
            return OPEN
        if HOLDS in outcomes:
            return CONDITIONAL
        if FAILS in outcomes:
            return REFUTED
        return OPEN if OPEN in outcomes else UNDECIDABLE

    @property
    def flips(self) -> list[str]:
        """The readings whose outcome differs from the literal one's in some column."""
        literal = {where.choices: found.outcome for where, found in self.literal.items()}
        return list(
            dict.fromkeys(
                where.reading
                for where, found in self.findings.items()
                if found.outcome != literal[where.choices]
            )
        )

    @property
    def readings(self) -> list[str]:
        """The readings it was judged under."""
        return list(dict.fromkeys(where.reading for where in self.findings))


def judge(claim: Claim, view: Callable[[Condition], Any], readings: Sequence[str]) -> Verdict:
    """The verdict on a claim; `view` gives what was measured, as a condition sees it."""
    findings = {condition: claim.judge(view(condition)) for condition in claim.conditions(readings)}
    ours = (
        {
            condition: claim.judge(view(Condition(OURS, condition.choices)))
            for condition in claim.conditions([LITERAL])
        }
        if "reading" in claim.over
        else {}
    )
    return Verdict(claim, findings, ours)


@dataclass(frozen=True)
class Margins:
    """By how much a sentence holds at each point: replicated, positive where it holds."""

    gap: Floats

    @property
    def marks(self) -> Floats:
        """1 where it surely holds, −1 where it surely does not, 0 where the repeats do not tell."""
        gap, error = self.gap[0], standard_error(self.gap)
        # Student's t: an error from fifty groups is itself known to about a tenth.
        limit = float(t_quantile(1 - 2 * _TAIL / max(gap.size, 1), freedom(self.gap))) * error
        exact = (error == 0) & (gap >= 0)
        return np.asarray(np.where((gap > limit) | exact, 1, np.where(gap < -limit, -1, 0)))

    def everywhere(self) -> str:
        """Whether it holds at every point."""
        if np.any(self.marks < 0):
            return FAILS
        return HOLDS if np.all(self.marks > 0) else OPEN

    def somewhere(self) -> str:
        """Whether it holds at some point."""
        if np.any(self.marks > 0):
            return HOLDS
        return FAILS if np.all(self.marks < 0) else OPEN

    def more_than(self, share: float) -> str:
        """Whether it holds at more than a share of the points."""
        needed = share * self.marks.size
        if self.sure > needed:
            return HOLDS
        return FAILS if np.sum(self.marks >= 0) <= needed else OPEN

    @property
    def sure(self) -> int:
        """At how many points it surely holds."""
        return int(np.sum(self.marks > 0))

    def __str__(self) -> str:
        unsure = int(np.sum(self.marks == 0))
        return f"{self.sure} of {self.marks.size}" + (f" ({unsure} too close to tell)" if unsure else "")


def every(outcomes: Iterable[str]) -> str:
    """All of several outcomes."""
    known = list(outcomes)
    return next((word for word in (UNDECIDABLE, FAILS, OPEN) if word in known), HOLDS)


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with its heads.

    >>> print(markdown_table(["n", "error"], [["200", ".1"]]), end="")
    | n | error |
    |---|---|
    | 200 | .1 |
    """
    rows = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n" for cells in (heads, *lines)
    ]
    return rows[0] + "|" + "---|" * len(heads) + "\n" + "".join(rows[1:])


def series(values: Sequence[float] | Floats, digits: int = 2) -> str:
    """Numbers in the order of epsilon.

    >>> series([0.5, 1.25])
    '.50 / 1.25'
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


def ratio_line(ratio: Floats) -> tuple[float, ...]:
    """A replicated ratio by epsilon (third axis), averaged over everything else."""
    plain = ratio[0]
    others = tuple(axis for axis in range(plain.ndim) if axis != 1)
    return tuple(float(value) for value in plain.mean(axis=others))


def span(values: Floats) -> str:
    """The smallest and the largest of several numbers.

    >>> span(np.array([0.5, 1.25]))
    '0.50–1.25'
    """
    return f"{values.min():.2f}–{values.max():.2f}"
