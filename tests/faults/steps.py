"""What writes files, step by step: each can be prepared, run, run again, and judged by what it leaves."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import dpcipher as dc
from dpcipher.errors import DpcipherError, LedgerExceeded
from dpcipher.io.write import write_table
from dpcipher.pages.report import report
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit

UNIT = Unit("add-remove")
COST = Budget.parse(epsilon=0.01)
SCHEMA = dc.Schema.from_domain({"a": 2, "b": 3})
LEDGER, RELEASE = "people.ledger", "people.release.parquet"


@cache
def rows() -> pd.DataFrame:
    """The private rows."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.integers(0, 2, 50), "b": rng.integers(0, 3, 50)})


@cache
def published() -> dc.Release:
    """A release that is at hand."""
    return dc.measure(rows(), SCHEMA, epsilon=1.0, unit="add-remove")


@cache
def joint() -> dc.Joint:
    """Its joint."""
    return dc.solve(published())


def measure(folder: Path, name: str = RELEASE, *, create: bool = False) -> dc.Release:
    """A whole release: charged, drawn, written, marked."""
    options = {"epsilon": 0.01, "unit": "add-remove", "ledger": folder / LEDGER, "create": create}
    return dc.measure(rows(), SCHEMA, **options, save=folder / name, force=again(folder / name))


def again(path: Path) -> bool:
    """Whether a run before this one wrote the file, which may then be replaced."""
    return path.exists()


def new_ledger(folder: Path) -> None:
    """A ledger with much to spend."""
    Ledger.create(folder / LEDGER, epsilon=1000, unit="add-remove")


def create_if_absent(folder: Path) -> None:
    """A ledger, made unless it is there: what a second run of a creator finds depends on where the first failed."""
    if not (folder / LEDGER).exists():
        new_ledger(folder)
    else:
        Ledger.open(folder / LEDGER).charge(COST, unit=UNIT, what={})


def measure_and_create(folder: Path) -> None:
    """A release whose ledger is made for it, unless an earlier run made it, and perhaps spent it."""
    with suppress(LedgerExceeded):
        measure(folder, create=not (folder / LEDGER).exists())


@dataclass(frozen=True)
class Step:
    """Something that writes: what must be there before, what it does, and the files that a good end leaves."""

    run: Callable[[Path], object]
    leaves: frozenset[str]
    prepare: Callable[[Path], object] = lambda folder: None


def _file(name: str, write: Callable[[Path], object]) -> Step:
    return Step(lambda folder: write(folder / name), frozenset({name}))


_BOOK = frozenset({LEDGER, f"{LEDGER}.witness"})
STEPS = {
    "create a ledger": Step(create_if_absent, _BOOK),
    "charge it": Step(
        lambda folder: Ledger(folder / LEDGER).charge(COST, unit=UNIT, what={}), _BOOK, new_ledger
    ),
    "measure": Step(measure, _BOOK | {RELEASE}, new_ledger),
    "measure with a new ledger": Step(measure_and_create, _BOOK),
    "save a joint": _file("joint.npz", lambda path: joint().save(path, force=again(path))),
    "save a schema": _file("people.yaml", lambda path: SCHEMA.save(path, force=again(path))),
    "write rows as CSV": _file(
        "rows.csv", lambda path: write_table(path, joint().stream(20, seed=1), force=again(path))
    ),
    "write rows as gzip": _file(
        "rows.csv.gz", lambda path: write_table(path, joint().stream(20, seed=1), force=again(path))
    ),
    "write rows as Parquet": _file(
        "rows.parquet", lambda path: write_table(path, joint().stream(20, seed=1), force=again(path))
    ),
    "write a report": _file(
        "page.html", lambda path: report(published(), joint().sample(20, seed=1), path, force=again(path))
    ),
}


def released_not_charged(folder: Path) -> list[str]:
    """Release files of a folder that its ledger does not know, or that are not whole; the ledger itself must open."""
    book = folder / LEDGER
    files = sorted(path for path in folder.glob("*.parquet") if path.name.startswith("people"))
    if not book.exists():
        return [path.name for path in files]
    ledger = Ledger.open(book)
    wrong = []
    for path in files:
        try:
            release = dc.Release.load(path)
        except DpcipherError as error:
            wrong.append(f"{path.name}: {error}")
            continue
        verdict = ledger.verify(release.statement.ledger, checksum=release.checksum)
        if verdict.word != "recorded":
            wrong.append(f"{path.name}: {verdict.word}")
    return wrong


def strangers(folder: Path, step: Step) -> list[str]:
    """Files that a good end of a step does not leave."""
    allowed = step.leaves | {RELEASE}
    return sorted(path.name for path in folder.iterdir() if path.name not in allowed)
