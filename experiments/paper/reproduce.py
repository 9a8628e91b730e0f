"""Reproduce the paper: storage, both experiments, the figures, and one table of verdicts. NOT PRIVATE: noise is seeded."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.errors import ParameterError, TableFileError, did_you_mean
from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy, figures, simulated
from experiments.paper.bankruptcy_data import load
from experiments.paper.blocks import STAMP, Say
from experiments.paper.claims import OURS, Condition, Finding, Verdict
from experiments.paper.page import LINK, write_page
from experiments.paper.plotting import figure
from experiments.paper.readings import LITERAL, chosen
from experiments.paper.replicates import standard_error
from experiments.paper.storage import checks
from experiments.paper.summary import (
    BankruptcySummary,
    Card,
    Inference,
    SimulatedSummary,
    summarise_bankruptcy,
    summarise_simulated,
)
from experiments.paper.verdicts import counts, judge_all

PARTS = ("storage", "experiment1", "experiment2")
# The second experiment gets a tenth of the repeats: its tables have forty times the cells, and it has one original, not thousands.
SECOND_SHARE = 10


@dataclass(frozen=True)
class Reproduction:
    """The page that was written, and the verdicts."""

    folder: Path
    page: Path
    verdicts: tuple[Verdict, ...]

    @property
    def text(self) -> str:
        """A few lines for people."""
        lines = [f"{number:4d}  {name}" for name, number in counts(self.verdicts).items() if number]
        return "\n".join(
            [f"{len(self.verdicts)} sentences of the paper", *lines, f"written: {self.page}", STAMP]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "stamp": STAMP,
            "page": str(self.page),
            "counts": counts(self.verdicts),
            "claims": [_told(verdict) for verdict in self.verdicts],
        }


def reproduce(
    what: str = "all",
    folder: Path = Path("reproduction"),
    *,
    repeats: int = 1000,
    second_repeats: int | None = None,
    reading: str | Sequence[str] = LITERAL,
    data: Path | None = None,
    workers: int | None = None,
    say: Say = lambda text: None,
) -> Reproduction:
    """Run one part or all, go on where an earlier run in the folder was stopped, and write figures, numbers and a page.

    `repeats` are those of the first experiment; the second has a tenth, or `second_repeats`. `reading` is `"literal"`, other readings to put
    beside it, or `"all"`. `data` is the folder of the bankruptcy data, by default the one that DPCIPHER_DATA names; without it `all` leaves the
    second experiment out and says so.
    """
    second_repeats = max(1, repeats // SECOND_SHARE) if second_repeats is None else second_repeats
    _check(what, repeats, second_repeats)
    readings = chosen(reading)
    figure(1, 1)  # a missing part is said before an hour's work, not after it
    pictures(folder).mkdir(parents=True, exist_ok=True)
    parts = _parts(what, data, say)
    cores = workers or os.cpu_count() or 1
    first = _first(folder, repeats, readings, cores, say) if "experiment1" in parts else None
    second = _second(folder, second_repeats, readings, data, cores, say) if "experiment2" in parts else None
    if "storage" in parts:
        figures.draw_storage(pictures(folder) / "fig1-storage.svg")
    return write(folder, storage="storage" in parts, first=first, second=second)


def write(
    folder: Path, *, storage: bool, first: SimulatedSummary | None, second: BankruptcySummary | None
) -> Reproduction:
    """Judge what was run, and write the page and its numbers."""
    judged = judge_all(storage=storage, first=first, second=second)
    verdicts = tuple(verdict for part in judged.values() for verdict in part)
    numbers = {
        "stamp": STAMP,
        "storage": checks(),
        "experiment1": first,
        "experiment2": second,
        "claims": [_told(verdict) for verdict in verdicts],
    }
    (folder / "numbers.json").write_text(
        json.dumps(plain(numbers), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    page = write_page(folder, judged, storage=storage, first=first, second=second)
    return Reproduction(folder, page, verdicts)


def _told(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    claim = verdict.claim
    findings = [
        {"reading": where.reading, **dict(where.choices), "outcome": finding.outcome, "found": finding.found}
        for where, finding in (*verdict.findings.items(), *_named_ours(verdict))
    ]
    return {
        "key": claim.key,
        "says": claim.says,
        "where": claim.where,
        "rule": claim.rule,
        "verdict": verdict.status,
        "flips": verdict.flips,
        "findings": findings,
    }


def _named_ours(verdict: Verdict) -> list[tuple[Condition, Finding]]:
    return [(Condition(OURS, where.choices), finding) for where, finding in verdict.ours.items()]


def pictures(folder: Path) -> Path:
    """Where the figures of a page go."""
    return folder / LINK


def _check(what: str, repeats: int, second_repeats: int) -> None:
    if what not in (*PARTS, "all"):
        raise ParameterError(
            f"what ({what!r}) must be one of {', '.join(PARTS)}, all{did_you_mean(what, PARTS)}"
        )
    for name, number in (("repeats", repeats), ("second_repeats", second_repeats)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ParameterError(
                f"{name} ({number!r}) must be a whole number of at least 1; try repeats=1000"
            )


def _parts(what: str, data: Path | None, say: Say) -> Sequence[str]:
    """What will be run: without data, `all` is the rest."""
    if what == "storage" or what == "experiment1":
        return (what,)
    try:
        load(data)
    except TableFileError as missing:
        if what == "experiment2":
            raise
        say(f"experiment 2 is left out: {missing}")
        return PARTS[:2]
    return PARTS if what == "all" else (what,)


def _first(folder: Path, repeats: int, readings: Sequence[str], workers: int, say: Say) -> SimulatedSummary:
    simulated.run(
        folder, repeats=repeats, readings=readings, workers=workers, say=_prefixed(say, "experiment 1")
    )
    summary = summarise_simulated(folder, repeats, readings)
    figures.draw_simulated(pictures(folder), summary)
    return summary


def _second(
    folder: Path, repeats: int, readings: Sequence[str], data: Path | None, workers: int, say: Say
) -> BankruptcySummary:
    say_second = _prefixed(say, "experiment 2")
    bankruptcy.run(folder, data=data, repeats=repeats, readings=readings, workers=workers, say=say_second)
    summary = summarise_bankruptcy(folder, repeats, readings, data)
    figures.draw_bankruptcy(pictures(folder), summary)
    return summary


def _prefixed(say: Say, words: str) -> Callable[[str], None]:
    return lambda text: say(f"{words}: {text}")


def _with_error(replicated: Floats) -> dict[str, Any]:
    """A replicated value as its value and its Monte Carlo error."""
    return {"value": plain(replicated[0]), "error": plain(standard_error(replicated))}


def _card(card: Card) -> dict[str, Any]:
    """The scores of a method in a scenario, each with its error."""
    metrics = ("bias", "rmse", "coverage", "width")
    return {
        **{key: _with_error(values) for key, values in card.means.items()},
        "spread": plain(card.spread),
        "regressions": [
            {
                **{name: _with_error(getattr(inference, name)) for name in metrics},
                "shares": {name: _with_error(share) for name, share in inference.shares.items()},
            }
            for inference in card.inference
        ],
    }


def plain(value: Any) -> Any:
    """Dataclasses, arrays and keyed tables as what JSON can hold, numbers rounded to what they mean."""
    if isinstance(value, Card):
        return _card(value)
    if isinstance(value, Inference):
        return _card(Card({}, {}, (value,)))["regressions"][0]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {
            "|".join(map(str, key)) if isinstance(key, tuple) else str(key): plain(item)
            for key, item in value.items()
        }
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), 5) if np.isfinite(value) else None
    return value
