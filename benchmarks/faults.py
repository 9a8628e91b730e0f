"""Is anything ever released that was not charged: kills at random moments, failing system calls, races, interrupts, spoiled files.

usage: python benchmarks/faults.py [--kills 1000] [--interrupts 60] [--folder FOLDER]
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from common import markdown, write_page

sys.path.append(str(Path(__file__).parents[1] / "tests" / "faults"))

import every_byte
import injected
import kills
from steps import LEDGER, SCHEMA, new_ledger, published, released_not_charged, rows

from dpcipher.privacy.ledger import Ledger

CHARGE_SECONDS, MEASURE_SECONDS = 0.15, 0.6  # the longest life of a child
PROCESSES, REQUESTS, GRANTS = 16, 1_000, 1_000
INTERRUPTS = 60
MEASURE = f"measure people.csv people.yaml --epsilon 1/1000 --unit add-remove --max-rows 1 --ledger {LEDGER} -o people.parquet"
SYNTH = "synth given.parquet -n 2000000 -o rows.csv"
Result = TypeVar("Result")


def within(parent: Path | None, work: Callable[[Path], Result]) -> Result:
    """Do something in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        return work(Path(folder))


def interrupts(folder: Path, times: int) -> list[list[object]]:
    """Interrupt two commands at random moments of their work; how they ended, and what was wrong then."""
    new_ledger(folder)
    SCHEMA.save(folder / "people.yaml")
    rows().sample(2_000_000, replace=True, random_state=1).to_csv(folder / "people.csv", index=False)
    published().save(folder / "given.parquet")
    rng, found = random.Random(0), []
    for name, words in (("measure", MEASURE), ("synth", SYNTH)):
        ends, wrong = {130: 0, 0: 0}, list[str]()
        for _ in range(times // 2):
            code, said = kills.interrupt(words.split(), folder, rng.uniform(0, 1.5))
            ends[code] = ends.get(code, 0) + 1
            wrong += released_not_charged(folder)
            wrong += [path.name for path in folder.iterdir() if path.name.startswith(".")]
            wrong += ["a traceback"] if "Traceback" in said else []
            Ledger.open(folder / LEDGER)
        others = sum(ends.values()) - ends[130] - ends[0]
        found.append([name, times // 2, ends[130], ends[0], others, len(wrong)])
    return found


def failing(folder: Path) -> list[list[object]]:
    """Every change of every step made to fail."""
    library = injected.compiled(folder)
    if library is None:
        return []
    found = injected.inject(library, folder)
    for step in found.values():
        print(*step["wrong"], sep="\n", end="")
    names = ("calls", "faults", "refused", "harmless", "killed")
    return [[name, *(step[part] for part in names), len(step["wrong"])] for name, step in found.items()]


def spoiled(folder: Path) -> list[list[object]]:
    """Every kind of file, cut at every byte, and with a bit of every byte flipped."""
    table = []
    for name, (path, says) in every_byte.write_all(folder).items():
        found = every_byte.spoil(path, says, 1)
        print(*found.wrong, sep="\n", end="")
        other = found.copies - found.refused - found.same
        table.append([name, found.size, found.copies, found.refused, found.same, other, len(found.wrong)])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument(
        "--folder", type=Path, help="where files are written; by default the temporary folder"
    )
    parser.add_argument("--interrupts", type=int, default=INTERRUPTS)
    options = parser.parse_args()
    memory = Path("/dev/shm")
    failed = within(memory if memory.is_dir() else None, failing)
    print(markdown(["step"], failed), flush=True)
    bent = within(memory if memory.is_dir() else None, spoiled)
    print(markdown(["file"], bent), flush=True)
    outcomes = {
        "charge": within(options.folder, lambda at: kills.kill_charges(at, options.kills, CHARGE_SECONDS)),
        "measure": within(options.folder, lambda at: kills.kill_measures(at, options.kills, MEASURE_SECONDS)),
    }
    print(outcomes, flush=True)
    raced = within(options.folder, lambda at: kills.race(at, PROCESSES, REQUESTS, GRANTS))
    print(raced, flush=True)
    ended = within(options.folder, lambda at: interrupts(at, options.interrupts))
    for outcome in (*outcomes.values(), raced):
        print(*outcome.wrong, sep="\n", end="")
    sections = [
        "**Kills.** A process charges a ledger, or measures and writes releases, again and again; it is killed at a random moment, and the next one "
        "goes on. `compared` are grants that were noted, and release files that survived: each was looked up in the ledger by its id, head and checksum. "
        "`left` are temporary files of killed writers at the end; the next run removed them.",
        markdown(
            ["killed while it", "kills", "charged", "compared", "left", "wrong"],
            [[name, o.kills, o.charged, o.compared, o.left, len(o.wrong)] for name, o in outcomes.items()],
        ),
        f"**Race.** {PROCESSES} processes make {REQUESTS:,} requests each for a hundredth of epsilon, of a ledger that holds {GRANTS:,} of them: "
        f"{raced.compared:,} were granted, {raced.charged:,} are charged, {len(raced.wrong)} wrong.",
        "**Failing system calls.** A library loaded before the C library counts the calls that open for writing, write, sync, cut, rename, link or remove files, of Python and "
        "of Arrow alike, and makes each of them in turn fail with ENOSPC, EIO, EACCES and EROFS, once and for good, or kills the process there. After each, the ledger "
        "must open, nothing may be released that is not charged, errors must be our own with advice, and the next run must go well and leave nothing behind of the first. "
        "`harmless`: the step came to its end all the same, because what failed was the giving of a file to a group, or the removal of a temporary name.",
        markdown(["step", "calls", "faults", "refused", "harmless", "killed", "wrong"], failed)
        if failed
        else "Not done: no compiler.",
        "**Interrupts** (SIGINT) at random moments after the first word of progress. 130 is the exit code of an interrupted command; 0 of one that had ended.",
        markdown(["command", "interrupts", "exit 130", "exit 0", "other", "wrong"], ended),
        "**Spoiled files.** A file of every kind, cut at every byte and with one bit of every byte flipped. It is refused, or says the same (a bit that nobody reads). A schema is "
        "a text without a checksum: another letter may be another schema, which is read as such; a release holds the schema it was made with, under its own checksum.",
        markdown(["file", "bytes", "copies", "refused", "same", "another schema", "wrong"], bent),
    ]
    command = f"python benchmarks/faults.py --kills {options.kills} --interrupts {options.interrupts}"
    write_page("faults", "Nothing is released that was not charged", command, sections)


if __name__ == "__main__":
    main()
