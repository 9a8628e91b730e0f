"""Does any wrong file crash or hang a loader, or make it tell a private cell: typed and byte-level cases, for as long as you like.

usage: python benchmarks/fuzz.py --minutes 60 [--seed 1]
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import markdown, write_page

sys.path.append(str(Path(__file__).parents[1] / "tests" / "faults"))

import fuzzing

PART = 10.0  # minutes of one process; then another takes its place, with another seed


def add(whole: dict[str, Any], part: dict[str, Any]) -> None:
    """The findings of one more process."""
    for name, found in part["loaders"].items():
        known = whole.setdefault(name, {"cases": 0, "refused": 0, "loaded": 0, "slowest": 0.0, "wrong": []})
        for key in ("cases", "refused", "loaded", "wrong"):
            known[key] = known[key] + found[key]
        known["slowest"] = max(known["slowest"], found["slowest"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="by default another one every time")
    options = parser.parse_args()
    first = seed = secrets.randbits(40) if options.seed is None else options.seed
    whole: dict[str, Any] = {}
    grown, seconds, left = 0.0, 0.0, options.minutes
    while left > 0:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            part = fuzzing.fuzz(Path(folder), minutes=min(PART, left), seed=seed)
        add(whole, part)
        grown, seconds = max(grown, part["megabytes"]), seconds + part["seconds"]
        left, seed = left - PART, seed + 1
        print({name: (found["cases"], len(found["wrong"])) for name, found in whole.items()}, flush=True)
    wrong = [line for found in whole.values() for line in found["wrong"]]
    print(*wrong, sep="\n")
    total = sum(found["cases"] for found in whole.values())
    rows = [
        [
            name,
            f"{found['cases']:,}",
            f"{found['refused']:,}",
            f"{found['loaded']:,}",
            f"{1000 * found['slowest']:.0f}",
            len(found["wrong"]),
        ]
        for name, found in whole.items()
    ]
    sections = [
        f"{total:,} wrong files and tables in {options.minutes:g} minutes ({seconds / 60:.1f} of processor time), from seeds {first} to {seed - 1}: **{len(wrong)}** crashes, hangs or told canaries; "
        f"memory grew by at most {grown:.0f} MB. Half of the cases change values that have a type, the others bytes. A case is wrong if its error is not our own, if it takes "
        f"more than {fuzzing.MOST_SECONDS:g} s, or if a private cell stands in the error, in an error behind it that a traceback would show, in a warning, a log or on a stream. The process may "
        f"take {fuzzing.MOST_GIGABYTES} GB.",
        markdown(["loader", "cases", "refused", "read", "slowest, ms of processor", "wrong"], rows),
        "CSV, Parquet, Arrow and pandas are private tables on their way to `measure`; canaries sit in their cells, column names and broken bytes. What is read is used: joints are "
        "drawn from, ledgers charged, schemas written and read again.",
    ]
    write_page("fuzz", "Fuzzing of everything that is read", "python benchmarks/fuzz.py", sections)
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
