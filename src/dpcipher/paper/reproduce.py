"""Reproduce the paper: storage, both experiments, the figures, and one table of verdicts. NOT PRIVATE: noise is seeded."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.errors import ParameterError, TableFileError, did_you_mean
from dpcipher.paper import bankruptcy, figures, simulated
from dpcipher.paper.bankruptcy_data import load
from dpcipher.paper.blocks import STAMP, Say
from dpcipher.paper.claims import Claim
from dpcipher.paper.claims_bankruptcy import bankruptcy_claims
from dpcipher.paper.claims_models import model_claims
from dpcipher.paper.claims_tables import table_claims
from dpcipher.paper.page import write_page
from dpcipher.paper.storage import checks, storage_claims
from dpcipher.paper.summary import (
    BankruptcySummary,
    SimulatedSummary,
    summarise_bankruptcy,
    summarise_simulated,
)

PARTS = ("storage", "experiment1", "experiment2")
# The second experiment gets a tenth of the repeats: its tables have forty times the cells, and it has one original, not thousands.
SECOND_SHARE = 10


@dataclass(frozen=True)
class Reproduction:
    """The page that was written, and the verdicts."""

    folder: Path
    page: Path
    claims: tuple[Claim, ...]

    @property
    def text(self) -> str:
        """A few lines for people."""
        counts = Counter(claim.verdict for claim in self.claims)
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
        return f"{len(self.claims)} claims of the paper: {verdicts}\nwritten: {self.page}\n{STAMP}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"stamp": STAMP, "page": str(self.page), "claims": [plain(claim) for claim in self.claims]}


def reproduce(
    what: str = "all",
    folder: Path = Path("reproduction"),
    *,
    repeats: int = 1000,
    data: Path | None = None,
    workers: int | None = None,
    say: Say = lambda text: None,
) -> Reproduction:
    """Run one part or all, go on where an earlier run in the folder was stopped, and write figures, numbers and a page.

    `repeats` are those of the first experiment; the second has a tenth. `data` is the folder of the bankruptcy data, by default the
    one that DPCIPHER_DATA names; without it `all` leaves the second experiment out and says so.
    """
    _check(what, repeats)
    figures.figure(1, 1)  # a missing part is said before an hour's work, not after it
    pictures(folder).mkdir(parents=True, exist_ok=True)
    parts = _parts(what, data, say)
    cores = workers or os.cpu_count() or 1
    first = _first(folder, repeats, cores, say) if "experiment1" in parts else None
    second = (
        _second(folder, max(1, repeats // SECOND_SHARE), data, cores, say) if "experiment2" in parts else None
    )
    if "storage" in parts:
        figures.draw_storage(pictures(folder) / "fig1-storage.svg")
    claims = (
        *(storage_claims() if "storage" in parts else ()),
        *((*table_claims(first), *model_claims(first)) if first else ()),
        *(bankruptcy_claims(second) if second else ()),
    )
    numbers = {
        "stamp": STAMP,
        "storage": checks(),
        "experiment1": first,
        "experiment2": second,
        "claims": claims,
    }
    (folder / "numbers.json").write_text(
        json.dumps(plain(numbers), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    page = write_page(folder, claims, storage="storage" in parts, first=first, second=second)
    return Reproduction(folder, page, claims)


def pictures(folder: Path) -> Path:
    """Where the figures of a page go."""
    return folder / "reproduction"


def _check(what: str, repeats: int) -> None:
    if what not in (*PARTS, "all"):
        raise ParameterError(
            f"what ({what!r}) must be one of {', '.join(PARTS)}, all{did_you_mean(what, PARTS)}"
        )
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ParameterError(f"repeats ({repeats!r}) must be a whole number of at least 1; try repeats=1000")


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


def _first(folder: Path, repeats: int, workers: int, say: Say) -> SimulatedSummary:
    simulated.run(folder, repeats=repeats, workers=workers, say=_prefixed(say, "experiment 1"))
    summary = summarise_simulated(folder, repeats)
    figures.draw_simulated(pictures(folder), summary)
    return summary


def _second(folder: Path, repeats: int, data: Path | None, workers: int, say: Say) -> BankruptcySummary:
    bankruptcy.run(folder, data=data, repeats=repeats, workers=workers, say=_prefixed(say, "experiment 2"))
    summary = summarise_bankruptcy(folder, repeats, data)
    figures.draw_bankruptcy(pictures(folder), summary)
    return summary


def _prefixed(say: Say, words: str) -> Callable[[str], None]:
    return lambda text: say(f"{words}: {text}")


def plain(value: Any) -> Any:
    """Dataclasses, arrays and keyed tables as what JSON can hold, numbers rounded to what they mean."""
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
    return round(float(value), 5) if isinstance(value, (float, np.floating)) else value
