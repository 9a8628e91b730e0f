"""Processes that are killed at random moments while they charge and measure, that race for a budget, and that are interrupted."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from steps import COST, LEDGER, UNIT, measure, new_ledger, released_not_charged

from dpcipher.errors import LedgerExceeded
from dpcipher.privacy.ledger import Ledger

NAMES = 700  # targets that are written in turn, so that later runs find what earlier ones left


@dataclass
class Outcome:
    """What is left after all kills."""

    kills: int = 0
    charged: int = 0
    compared: int = 0  # grants or releases that survived, each looked up in the ledger
    left: int = 0  # temporary files that killed writers left
    wrong: list[str] = field(default_factory=list)


def forked(work: Callable[[], object]) -> int:
    """Start work in a child process, which never comes back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn about forking next to idle BLAS threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def kill_after(work: Callable[[], object], seconds: float) -> None:
    """Let a child work, again and again, and kill it after so long."""

    def forever() -> None:
        while True:
            work()

    child = forked(forever)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kill_charges(folder: Path, kills: int, longest: float, seed: int = 0) -> Outcome:
    """Children note every charge that was granted, after it was; all of them must be in the ledger."""
    new_ledger(folder)
    ledger, rng, noted = Ledger(folder / LEDGER), random.Random(seed), folder / "granted"
    noted.touch()

    def charge() -> None:
        granted = ledger.charge(COST, unit=UNIT, what={})
        with noted.open("a") as file:
            file.write(f"{granted.id}\n")

    for _ in range(kills):
        kill_after(charge, rng.uniform(0, longest))
    known = {entry.id for entry in Ledger.open(ledger.path).entries}
    granted = noted.read_text().split("\n")[:-1]
    wrong = [f"granted, not charged: {id}" for id in granted if id not in known]
    ledger.charge(COST, unit=UNIT, what={})
    return Outcome(kills, len(known), len(granted), _leftovers(folder), wrong + _left_for_good(folder))


def kill_measures(folder: Path, kills: int, longest: float, seed: int = 0) -> Outcome:
    """Children measure and write releases; every file must be whole and paid for, whenever its writer was killed."""
    new_ledger(folder)
    measure(folder)
    rng = random.Random(seed)
    for number in range(kills):
        name = f"people-{number % NAMES}.parquet"
        kill_after(lambda name=name: measure(folder, name), rng.uniform(0, longest))  # type: ignore[misc]
    wrong, left = released_not_charged(folder), _leftovers(folder)
    for file in {path.name[1:].rpartition(".")[0] for path in folder.glob(".people-*")}:
        measure(folder, file)  # the next run
    entries = Ledger.open(folder / LEDGER).entries
    survived = len(list(folder.glob("people*.parquet")))
    wrong += released_not_charged(folder) + _left_for_good(folder)
    return Outcome(kills, len(entries), survived, left, wrong)


def race(folder: Path, processes: int, requests: int, limit: int) -> Outcome:
    """Many processes ask for a hundredth at a time; together they get `limit` hundredths and no more."""
    ledger = Ledger.create(folder / LEDGER, epsilon=limit * COST.amount, unit=UNIT)

    def ask(number: int) -> None:
        granted = 0
        for _ in range(requests):
            try:
                ledger.charge(COST, unit=UNIT, what={})
                granted += 1
            except LedgerExceeded:
                continue
        (folder / f"granted-{number}").write_text(str(granted))

    children = [forked(lambda number=number: ask(number)) for number in range(processes)]  # type: ignore[misc]
    ended = [os.waitpid(child, 0)[1] for child in children]
    granted = sum(int(path.read_text()) for path in folder.glob("granted-*"))
    entries = Ledger.open(ledger.path).entries
    wrong = [f"a process ended with {code}" for code in ended if code]
    if not granted == len(entries) == min(limit, processes * requests):
        wrong.append(f"{granted} granted and {len(entries)} charged of {limit}")
    return Outcome(0, len(entries), granted, 0, wrong)


def interrupt(words: list[str], folder: Path, seconds: float) -> tuple[int, str]:
    """Run the program in a folder and interrupt it after so long: its exit code as a shell has it, and what it said."""
    running = subprocess.Popen(
        [sys.executable, "-m", "dpcipher", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    said = running.stderr.readline()  # its first word, so that it is at work
    time.sleep(seconds)
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=300)
    return running.returncode if running.returncode >= 0 else 128 - running.returncode, said + rest


def _leftovers(folder: Path) -> int:
    return sum(path.name.startswith(".") for path in folder.iterdir())


def _left_for_good(folder: Path) -> list[str]:
    return [f"left behind: {path.name}" for path in folder.iterdir() if path.name.startswith(".")]
