"""Known violations planted in the source one by one: which test, or which row of the audit, catches each.

usage: python benchmarks/planted.py [WORDS OF A NAME …]     with words, those bugs alone, and no page
"""

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


def main(words: list[str]) -> int:
    chosen = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    rows, missed = [], 0
    for bug in chosen:
        verdict = caught(bug)
        missed += not verdict.caught
        rows.append(row(bug, verdict))
        print(" | ".join(rows[-1]), flush=True)
        if not verdict.caught:
            print(verdict.said[-1500:], flush=True)
    if not words:
        sections = [
            f"{len(BUGS)} known ways to break the promise, each planted in a copy of the source by changing a line or two; the test that must notice it is then run. "
            f"{len(BUGS) - missed} of {len(BUGS)} were caught, {sum(bug.by_audit for bug in BUGS)} of them by the audit that every user can run.",
            markdown(["bug", "known from", "caught by"], rows),
        ]
        write_page("planted", "Planted bugs", "make planted", sections)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
