"""`audit`: check this installation, from the samplers to whole methods on neighbouring tables.

    samplers     the installed noise against its exact law
    mechanisms   noise, choices and the urn on neighbours: what draws prove of epsilon or mu, against what is claimed
    questions    every synthesizer, recorded on a frame and replayed on its neighbours: what one person changes, against what is declared
    releases     `measure` with everything it offers, recorded and replayed likewise
    levels       levels found in the rows, recorded and replayed likewise; and how often a text that only one person has is named
    methods      every synthesizer on its worst neighbour: what the exact losses of fresh answers prove, against its whole budget
    independence every synthesizer, run often: whether noise is drawn anew for every cell of every answer
    runs         whole runs with installed noise on both tables (thorough audits only)

`ratio` is what was found over what is claimed, or over the critical value of a test. A ratio above 1 has a chance of at most 10⁻⁶ over the whole audit
if everything is right.
"""

import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import Released
from dpcipher.errors import DpcipherWarning, ParameterError, did_you_mean
from dpcipher.evaluation.check import Check
from dpcipher.evaluation.levels import level_checks
from dpcipher.evaluation.mechanisms import mechanism_checks, sampler_checks
from dpcipher.evaluation.methods import independence_checks, method_checks, question_checks, run_checks
from dpcipher.evaluation.releases import release_checks


@dataclass(frozen=True)
class Effort:
    """How many draws each part takes."""

    sampler: int
    mechanism: int
    choice: int
    method: int
    independence: int  # whole runs of each method
    runs: int = 0  # whole runs of each method on each table
    levels: int = 1_000  # selections of texts


QUICK = Effort(sampler=100_000, mechanism=50_000, choice=50_000, method=50_000, independence=40)
THOROUGH = Effort(1_000_000, 1_000_000, 400_000, 2_000_000, independence=400, runs=2_000, levels=20_000)


@dataclass(frozen=True, repr=False)
class Audit(Released, Shown):
    """All rows, and the processor time they took."""

    checks: tuple[Check, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return {
            "passed": self.passed,
            "seconds": self.seconds,
            "rows": [check.to_dict() for check in self.checks],
        }

    def _card(self) -> Card:
        failed = [check for check in self.checks if not check.passed]
        parts = dict.fromkeys(check.part for check in self.checks)
        return Card(
            "Audit of this installation",
            {
                "Verdict": "passed" if self.passed else f"{len(failed)} FAILED: do not release with it",
                "Checks": f"{len(self.checks):,}",
                "Processor time": f"{self.seconds:,.0f} s",
            },
            ("part", "checks", "largest ratio"),
            [
                (part, f"{len(ratios):,}", f"{max(ratios):.3f}")
                for part in parts
                for ratios in [[check.ratio for check in self.checks if check.part == part]]
            ],
            notes=["print(audit) has every check."],
        )

    def _text(self) -> str:
        heads = ("part", "what", "unit", "claimed", "estimate", "ratio", "trials")
        lines = [heads, *(_cells(check) for check in self.checks)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
        table = [
            "  ".join(
                cell.ljust(width) if column < 3 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        failed = [check for check in self.checks if not check.passed]
        said = [
            f"FAILED   {check.part}: {check.what} ({check.unit}). {check.violation}".rstrip()
            for check in failed
        ]
        verdict = (
            "all passed" if not failed else f"{len(failed)} FAILED: do not release with this installation"
        )
        return "\n".join(
            [
                *table,
                "",
                *said,
                f"{len(self.checks)} checks, {verdict}; {self.seconds:.0f} s of processor time",
            ]
        )


def _cells(check: Check) -> tuple[str, ...]:
    ratio = "violated" if check.violation else f"{check.ratio:.3f}"
    return (
        check.part,
        check.what,
        check.unit,
        f"{check.claimed:.4g}",
        f"{check.estimate:.4g}",
        ratio,
        f"{check.trials:,}",
    )


def audit(
    *, thorough: bool = False, only: str | None = None, progress: Callable[[str], None] = lambda _: None
) -> Audit:
    """Check this installation: about a minute, or, `thorough`, up to an hour; `only` one of the parts. No private rows are needed.

    >>> import dpcipher as dc
    >>> dc.audit(only="independence").passed
    True
    """
    started, effort = time.process_time(), THOROUGH if thorough else QUICK
    rng = np.random.default_rng(secrets.randbits(128))
    parts: dict[str, Callable[[], Iterator[Check]]] = {
        "samplers": lambda: sampler_checks(effort.sampler),
        "mechanisms": lambda: mechanism_checks(effort.mechanism, effort.choice),
        "questions": lambda: question_checks(rng),
        "releases": lambda: release_checks(rng),
        "levels": lambda: level_checks(effort.levels, rng),
        "methods": lambda: method_checks(effort.method, rng),
        "independence": lambda: independence_checks(effort.independence),
    }
    if effort.runs:
        parts["runs"] = lambda: run_checks(effort.runs, rng)
    if only is not None and only not in parts:
        raise ParameterError(
            f"only ({only!r}) must be one of {', '.join(parts)}{did_you_mean(str(only), parts)}"
        )
    checks: list[Check] = []
    with warnings.catch_warnings():  # tiny tables under much noise say so, which is no finding here
        warnings.simplefilter("ignore", DpcipherWarning)
        for part in parts if only is None else (only,):
            progress(f"auditing {part}")
            checks.extend(parts[part]())
    return Audit(tuple(checks), time.process_time() - started)
