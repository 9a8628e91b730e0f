"""A sentence of the paper, the rule that judges it, and the verdict that follows under every reading.

Sentences and rules are data, in `claims.toml`: what is measured (a function of `quantities.py`), what is needed of it, and which open choices it is
judged under. A rule is the same for sentences that favour CIPHER and for those that do not. A comparison counts only beyond two standard errors of
the Monte Carlo run (more where a sentence makes many comparisons at once, by Bonferroni's rule); otherwise the answer is "too few repeats".
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import NormalDist

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.inference.combine import t_quantile
from dpcipher.tables.domain import Floats
from experiments.paper import quantities
from experiments.paper.quantities import OURS, Condition, Results, Settled
from experiments.paper.results import Scores, freedom, standard_error
from experiments.paper.stacks import LITERAL, Stack

HOLDS, FAILS, OPEN, UNDECIDABLE = "holds", "does not hold", "too few repeats", "not decidable"
CONFIRMED, CONDITIONAL, REFUTED = "confirmed", "conditional", "not confirmed"
STATUSES = (CONFIRMED, CONDITIONAL, REFUTED, OPEN, UNDECIDABLE)
# How the page counts sentences: conditional confirmations apart.
LITERALLY, PARTLY, ELSEWHERE = (
    "confirmed literally, not under every reading",
    "confirmed under some choices only",
    "confirmed only under other readings",
)
CLASSES = (CONFIRMED, LITERALLY, PARTLY, ELSEWHERE, REFUTED, OPEN, UNDECIDABLE)
# The parts of the page. What the paper counts or derives is told apart from what it finds.
ARITHMETIC = "arithmetic"
PARTS = {
    "storage": "Storage",
    ARITHMETIC: "Counts of cells, and budgets: arithmetic",
    "tables": "Tables of the simulated data (figures 2 and 3)",
    "models": "Regressions on the simulated data (figures 4, 5 and 6)",
    "methods": "The methods themselves",
    "bankruptcy": "The bankruptcy data (figure 7 and table 2)",
}
# What the paper leaves open beside the reading of its algorithm, and the words for it.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "mwem": {"cells": "MWEM by cells", "tables": "MWEM by tables"},
    "sets": {"1": "m = 1", "5": "m = 5"},
    "costs": {"as meant": "costs as meant", "as printed": "costs as printed"},
}
# Where a rule looks, by n and epsilon; "small" is every epsilon below 1, "large" every one above.
_ALL = slice(None)
PLACES = {
    "ε < 1": (_ALL, slice(0, 2)),
    "ε ≤ e⁻¹": (_ALL, slice(0, 2)),
    "ε ≤ 1": (_ALL, slice(0, 3)),
    "ε > 1": (_ALL, slice(3, 5)),
    "ε ≥ e⁻¹": (_ALL, slice(1, 5)),
    "ε = e⁻²": (_ALL, slice(0, 1)),
    "ε = e²": (_ALL, slice(4, 5)),
    "n = 500 and ε > 1": (slice(1, 2), slice(3, 5)),
}
SHARES = {"half": 0.5, "nine tenths": 0.9}
# One side of two standard errors.
_TAIL = 1 - NormalDist().cdf(2.0)


def marks(gap: Floats) -> Stack:
    """By a replicated gap, positive where something holds: 1 where it surely does, −1 where it surely does not, 0 where the repeats do not tell."""
    error = standard_error(gap)
    # Student's t: an error from fifty groups is itself known to about a tenth.
    limit = float(t_quantile(1 - 2 * _TAIL / max(gap[0].size, 1), freedom(gap))) * error
    exact = (error == 0) & (gap[0] >= 0)
    return np.asarray(np.where((gap[0] > limit) | exact, 1, np.where(gap[0] < -limit, -1, 0)))


_NEEDS = re.compile(
    r"(?P<name>\w+): "
    r"(?:(?P<side>at most|below|at least|above|within) (?P<first>-?[\d.e-]+)(?P<percent> %)?"
    r"(?: of (?P<middle>[\d.]+)(?: %)?)? (?P<many>everywhere|somewhere|in more than (?P<share>half|nine tenths))"
    r"|within a factor of (?P<factor>[\d.]+) everywhere"
    r"|(?P<same>the same sign at both n in nine tenths))"
    r"(?: at (?P<at>.+))?"
)


@dataclass(frozen=True)
class Rule:
    """What is needed of a quantity, in words: `linf_over_fdh: at most 1.1 everywhere at ε < 1`."""

    text: str

    def __post_init__(self) -> None:
        match = _NEEDS.fullmatch(self.text)
        if match is None or match["name"] not in vars(quantities) or match["at"] not in (None, *PLACES):
            raise ParameterError(f"rule ({self.text!r}) must name a quantity, what it needs and where")

    @property
    def _parts(self) -> re.Match[str]:
        match = _NEEDS.fullmatch(self.text)
        assert match is not None  # checked at birth
        return match

    @property
    def quantity(self) -> Callable[[Results], Floats | list[Floats]]:
        """The function that it judges."""
        found: Callable[[Results], Floats | list[Floats]] = getattr(quantities, self._parts["name"])
        return found

    @property
    def words(self) -> str:
        """The rule as the page has it: the name of the quantity, and what is needed."""
        return f"{(self.quantity.__doc__ or '').rstrip('.')}: {self.text.split(': ', 1)[1]}"

    def judge(self, results: Results) -> list[tuple[str, str]]:
        """Of each of its quantities the outcome, and the numbers it follows from."""
        values = self.quantity(results)
        return [self._judge(each) for each in (values if isinstance(values, list) else [values])]

    def _judge(self, values: Floats) -> tuple[str, str]:
        parts = self._parts
        if parts["at"]:
            values = values[(slice(None), *PLACES[parts["at"]])]
        gap = self._gap(values)
        signs = marks(gap)
        if parts["same"]:
            both = signs[0] * signs[1]
            found = f"opposite sides in {int(np.sum(both < 0))} of {both.size} comparisons"
            return _more_than(0.9, both), found + _unsure(both)
        found = f"{self._numbers(values, gap)}; in {int(np.sum(signs > 0))} of {signs.size}{_unsure(signs)}"
        return self._outcome(signs), found

    def _gap(self, values: Floats) -> Floats:
        """By how much what is needed holds, at each point."""
        parts = self._parts
        if parts["same"]:
            return values
        if parts["factor"]:
            return np.asarray(np.log(float(parts["factor"])) - np.abs(values))
        scale = 0.01 if parts["percent"] else 1.0
        level = scale * float(parts["first"])
        if parts["side"] == "within":
            return level - np.abs(values - scale * float(parts["middle"]))
        return level - values if parts["side"] in ("at most", "below") else values - level

    def _outcome(self, signs: Stack) -> str:
        many = self._parts["many"]
        if many == "somewhere":
            return HOLDS if np.any(signs > 0) else FAILS if np.all(signs < 0) else OPEN
        if many not in (None, "everywhere"):
            return _more_than(SHARES[self._parts["share"]], signs)
        return FAILS if np.any(signs < 0) else HOLDS if np.all(signs > 0) else OPEN

    def _numbers(self, values: Floats, gap: Floats) -> str:
        """At each epsilon the value that is furthest from what is needed (for "somewhere": nearest); without epsilon, the range."""
        plain = np.exp(values[0]) if self._parts["factor"] else values[0]
        percent = bool(self._parts["percent"])
        if values.ndim < 3:
            ends = (plain.min(), plain.max()) if plain.size > 1 else (plain.item(),)
            return "–".join(shown(float(value), percent=percent) for value in ends)
        by_epsilon = np.moveaxis(plain, 1, 0).reshape(plain.shape[1], -1)
        gaps = np.moveaxis(gap[0], 1, 0).reshape(plain.shape[1], -1)
        worst = gaps.argmax(axis=1) if self._parts["many"] == "somewhere" else gaps.argmin(axis=1)
        picked = np.take_along_axis(by_epsilon, worst[:, None], axis=1)[:, 0]
        return " / ".join(shown(float(value), percent=percent) for value in picked)


def _more_than(share: float, signs: Stack) -> str:
    """Whether something holds at more than a share of the points."""
    needed = share * signs.size
    if np.sum(signs > 0) > needed:
        return HOLDS
    return FAILS if np.sum(signs >= 0) <= needed else OPEN


def _unsure(signs: Stack) -> str:
    count = int(np.sum(signs == 0))
    return f" ({count} too close to tell)" if count else ""


def shown(value: float, *, percent: bool = False) -> str:
    """A number in three digits, or as a whole per cent.

    >>> shown(0.0123), shown(131250.0), shown(0.256, percent=True)
    ('.0123', '131,250', '26 %')
    """
    if percent:
        return f"{100 * value:.0f} %"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return re.sub(r"^(-?)0\.", r"\1.", text)


@dataclass(frozen=True)
class Finding:
    """What a rule found under one condition."""

    outcome: str
    found: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, and its rules; or the argument that settles it.

    `over` names the open choices it depends on: `"reading"` where CIPHER takes part, `"mwem"`, `"sets"` (m) and `"costs"`.
    """

    key: str
    part: str
    says: str
    where: str
    rules: tuple[Rule, ...] = ()
    over: tuple[str, ...] = ()
    argument: str = ""
    note: str = ""

    def conditions(self, readings: Sequence[str]) -> list[Condition]:
        """Every condition it is judged under, the literal reading first."""
        names = [name for name in self.over if name != "reading"]
        every = readings if "reading" in self.over else readings[:1]
        return [
            Condition(reading, tuple(zip(names, values, strict=True)))
            for reading in every
            for values in product(*(CHOICES[name] for name in names))
        ]

    @property
    def words(self) -> str:
        """The rule as the page has it."""
        return "; ".join(rule.words for rule in self.rules) or "by argument"

    def judge(self, results: Results) -> Finding:
        """All rules together: one that surely fails decides."""
        if self.argument:
            return Finding(HOLDS, self.argument)
        judged = []
        for rule in self.rules:
            try:
                judged += rule.judge(results)
            except Settled as settled:
                judged.append((HOLDS if settled.holds else UNDECIDABLE, str(settled)))
        outcomes = {outcome for outcome, _ in judged}
        outcome = next((word for word in (UNDECIDABLE, FAILS, OPEN) if word in outcomes), HOLDS)
        found = "; ".join(dict.fromkeys(text for _, text in judged))
        return Finding(outcome, found + (f" ({self.note})" if self.note else ""))


def load_claims() -> dict[str, tuple[Claim, ...]]:
    """Every sentence, by the part of the page."""
    text = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
    claims = {}
    for part, entries in tomllib.loads(text).items():
        claims[part] = tuple(
            Claim(
                key,
                part,
                rules=tuple(map(Rule, entry.pop("rules", ()))),
                over=tuple(entry.pop("over", ())),
                **entry,
            )
            for key, entry in entries.items()
        )
    return {part: claims[part] for part in PARTS}


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
    def kind(self) -> str:
        """The status, with conditional confirmations told apart."""
        if self.status != CONDITIONAL:
            return self.status
        literal = {finding.outcome for finding in self.literal.values()}
        return LITERALLY if literal == {HOLDS} else PARTLY if HOLDS in literal else ELSEWHERE

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

    def column(self, choices: tuple[tuple[str, str], ...]) -> dict[str, str]:
        """The outcome under every reading, other choices fixed."""
        here = self.findings.items()
        return {where.reading: finding.outcome for where, finding in here if where.choices == choices}


def in_words(condition: Condition) -> str:
    """The choices of a condition, without the reading."""
    return ", ".join(CHOICES[name][value] for name, value in condition.choices)


def judge(claim: Claim, view: Callable[[Condition], Results], readings: Sequence[str]) -> Verdict:
    """The verdict on a claim; `view` gives what was measured, as a condition sees it."""
    findings = {condition: claim.judge(view(condition)) for condition in claim.conditions(readings)}
    if "reading" not in claim.over:
        return Verdict(claim, findings, {})
    conditions = [Condition(OURS, where.choices) for where in claim.conditions([LITERAL])]
    return Verdict(claim, findings, {where: claim.judge(view(where)) for where in conditions})


def judge_all(
    *, storage: bool, first: Scores | None, second: Scores | None
) -> dict[str, tuple[Verdict, ...]]:
    """The verdicts by part of the page, of what was run."""
    judged = {}
    for part, claims in load_claims().items():
        scores = second if part == "bankruptcy" else first
        if storage if part in ("storage", ARITHMETIC) else scores is not None:
            readings = scores.readings if scores else (LITERAL,)
            judged[part] = tuple(
                judge(claim, lambda where: Results(where, first, second), readings) for claim in claims
            )
    return judged


def counts(verdicts: Sequence[Verdict], *, arithmetic: bool = False) -> dict[str, int]:
    """How many results (or pieces of arithmetic) are confirmed whatever is left open, under some conditions, and under none."""
    told = [verdict for verdict in verdicts if (verdict.claim.part == ARITHMETIC) == arithmetic]
    count = Counter(verdict.kind for verdict in told)
    return {name: count[name] for name in CLASSES}
