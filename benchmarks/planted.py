"""Known violations planted in the source one by one: which test, or which row of the audit, catches each.

usage: python benchmarks/planted.py [--kept FILE]     with a file, bugs that it says were caught are not planted again
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from common import markdown, write_page

sys.path.append(str(Path(__file__).parents[1] / "tests" / "planted"))

from bug import Bug, Verdict, plant
from bugs import BUGS


def caught(bug: Bug) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        return plant(bug, Path(folder))


def row(bug: Bug, verdict: Verdict) -> list[str]:
    where = f"`dpcipher audit`: {verdict.finding}" if verdict.finding else f"`tests/{bug.caught_by}`"
    return [bug.name, bug.source, where if verdict.caught else "**NOT CAUGHT**"]


def main(kept: Path | None) -> int:
    known = dict(map(json.loads, kept.read_text().splitlines())) if kept and kept.exists() else {}
    rows, missed = [], 0
    for bug in BUGS:
        if repr(bug) in known:
            rows.append(known[repr(bug)])
            continue
        verdict = caught(bug)
        missed += not verdict.caught
        rows.append(row(bug, verdict))
        print(" | ".join(rows[-1]), "" if verdict.caught else verdict.said[-1500:], flush=True)
        if kept and verdict.caught:
            with kept.open("a") as file:
                file.write(json.dumps([repr(bug), rows[-1]]) + "\n")
    sections = [
        f"{len(BUGS)} known ways to break the promise, each planted in a copy of the source by changing a line or two; the test that must notice it is then run. "
        f"{len(BUGS) - missed} of {len(BUGS)} were caught, {sum('dpcipher audit' in line[2] for line in rows)} of them by the audit that every user can run.",
        markdown(["bug", "known from", "caught by"], rows),
    ]
    write_page("planted", "Planted bugs", "make planted", sections)
    return min(missed, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path)
    sys.exit(main(parser.parse_args().kept))
