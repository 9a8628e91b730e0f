"""Reproduce the paper: storage, both experiments, the figures, and one table of verdicts. NOT PRIVATE: noise is seeded."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcipher.errors import ParameterError, TableFileError, did_you_mean
from experiments.paper import bankruptcy, figures, simulated
from experiments.paper.bankruptcy_data import load
from experiments.paper.blocks import STAMP, Say
from experiments.paper.judge import Verdict, counts, judge_all
from experiments.paper.page import LINK, write_page
from experiments.paper.quantities import OURS, Condition
from experiments.paper.results import Scores, plain, summarise_bankruptcy, summarise_simulated
from experiments.paper.stacks import LITERAL, chosen

PARTS = ("storage", "experiment1", "experiment2")
# The second experiment gets a tenth of the repeats: its tables have forty times the cells, and it has one original, not thousands.
SECOND_SHARE = 10


@dataclass(frozen=True)
class Reproduction:
    """The page that was written, and the verdicts."""

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
        claims = [_as_dict(verdict) for verdict in self.verdicts]
        return {"stamp": STAMP, "page": str(self.page), "counts": counts(self.verdicts), "claims": claims}


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
    parts = _parts(what, data, say)
    # A missing part of the environment is said before an hour's work, not after it.
    figures.blank(1, 1)
    if "experiment2" in parts:
        bankruptcy.svm()
    pictures, cores = folder / LINK, workers or os.cpu_count() or 1
    pictures.mkdir(parents=True, exist_ok=True)
    first = second = None
    if "experiment1" in parts:
        todo = simulated.tasks(repeats, readings)
        simulated.blocks(folder).run(todo, workers=cores, say=_prefixed(say, "experiment 1"))
        first = summarise_simulated(folder, repeats, readings)
        figures.draw_simulated(pictures, first)
    if "experiment2" in parts:
        todo = bankruptcy.tasks(second_repeats, readings)
        bankruptcy.blocks(folder, load(data)).run(todo, workers=cores, say=_prefixed(say, "experiment 2"))
        second = summarise_bankruptcy(folder, second_repeats, readings, data)
        figures.draw_bankruptcy(pictures, second)
    if "storage" in parts:
        figures.draw_storage(pictures)
    return write(folder, storage="storage" in parts, first=first, second=second)


def write(folder: Path, *, storage: bool, first: Scores | None, second: Scores | None) -> Reproduction:
    """Judge what was run, and write the page and its numbers."""
    judged = judge_all(storage=storage, first=first, second=second)
    page = write_page(folder, judged, storage=storage, first=first, second=second)
    done = Reproduction(page, tuple(verdict for part in judged.values() for verdict in part))
    numbers = {
        "stamp": STAMP,
        "experiment1": first and plain(first.frame()),
        "random": first and plain(first.random),
        "experiment2": second and plain(second.frame()),
        "claims": done.to_dict()["claims"],
    }
    text = json.dumps(numbers, ensure_ascii=False) + "\n"
    (folder / "numbers.json").write_text(text, encoding="utf-8")
    return done


def _as_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    claim = verdict.claim
    ours = {Condition(OURS, where.choices): finding for where, finding in verdict.ours.items()}
    findings = [
        {"reading": where.reading, **dict(where.choices), "outcome": finding.outcome, "found": finding.found}
        for where, finding in {**verdict.findings, **ours}.items()
    ]
    return {
        "key": claim.key,
        "says": claim.says,
        "where": claim.where,
        "rule": claim.words,
        "verdict": verdict.status,
        "flips": verdict.flips,
        "findings": findings,
    }


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
    if what in ("storage", "experiment1"):
        return (what,)
    try:
        load(data)
    except TableFileError as missing:
        if what == "experiment2":
            raise
        say(f"experiment 2 is left out: {missing}")
        return PARTS[:2]
    return PARTS if what == "all" else (what,)


def _prefixed(say: Say, words: str) -> Callable[[str], None]:
    return lambda text: say(f"{words}: {text}")
