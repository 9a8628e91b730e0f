"""What a charge costs: processor time of one charge against the number of earlier ones.

usage: python benchmarks/ledger.py
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from common import markdown, write_page

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Unit

EARLIER = (1, 100, 1000, 5000)
REPEATS = 20
UNIT = Unit("add-remove")
COST = Budget.parse(epsilon=0.001)
WHAT = {"tables": 91, "sets": 1, "mechanism": "laplace", "schema": "0" * 64}


def fill(path: Path, earlier: int) -> None:
    """A ledger with so many charges, each released; what it holds is not synced, only what is timed is."""
    ledger, real = Ledger.create(path, epsilon=1000, unit="add-remove"), os.fsync
    os.fsync = lambda fd: None
    try:
        for _ in range(earlier):
            ledger.mark_released(ledger.charge(COST, unit=UNIT, what=WHAT).id, "0" * 64)
    finally:
        os.fsync = real


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of processor time and of wall clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


def charge(path: Path) -> Callable[[], object]:
    return lambda: Ledger(path).charge(COST, unit=UNIT, what=WHAT)


def first(path: Path) -> tuple[float, float]:
    """The first charge of a fresh process, which verifies the whole ledger."""
    command = [sys.executable, __file__, str(path)]
    cpu, wall = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(cpu), float(wall)


def median(readings: list[tuple[float, float]]) -> tuple[float, float]:
    cpu, wall = (sorted(column)[len(readings) // 2] for column in zip(*readings, strict=True))
    return cpu, wall


def main() -> None:
    rows = []
    for earlier in EARLIER:
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
            path = Path(folder) / "people.ledger"
            fill(path, earlier)
            size = path.stat().st_size / 1e6
            fresh = median([first(path) for _ in range(5)])
            charge(path)()
            later = median([timed(charge(path)) for _ in range(REPEATS)])
        rows.append([f"{earlier:,}", f"{size:.2f}", *(f"{value:.1f}" for value in (*later, *fresh))])
        print(rows[-1], flush=True)
    head = [
        "earlier charges",
        "ledger, MB",
        "a charge, ms of processor",
        "elapsed, ms",
        "first charge of a process, ms of processor",
        "elapsed, ms",
    ]
    sections = [
        "One charge: lock, read, verify, add up, append, sync, write and sync the witness. Every earlier charge was released, so that the ledger has two "
        f"records for each. Medians of {REPEATS} charges, and of five fresh processes.",
        markdown(head, rows),
        "A process verifies a ledger in full once. After that it compares the bytes with those it has verified, and verifies what was added. The time that "
        "passes is mostly the disk's: four syncs, the ledger's and the witness's, each of the file and of its folder.",
    ]
    write_page("ledger", "What a charge costs", "python benchmarks/ledger.py", sections)


if __name__ == "__main__":
    print(*timed(charge(Path(sys.argv[1])))) if len(sys.argv) > 1 else main()
