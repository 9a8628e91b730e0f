"""Everything that speaks for the promise, run and put on one page: the audit, planted bugs, faults and fuzzing; about three hours on one core.

usage: python benchmarks/evidence.py [page]

`page` writes docs/evidence.md from the results that are there, and runs nothing.
"""

import subprocess
import sys
from pathlib import Path

from common import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
COMMANDS = {
    "audit": ("audit.py", "--thorough"),
    "planted": ("planted.py",),
    "faults": ("faults.py", "--kills", "1000", "--interrupts", "20"),
    "fuzz": ("fuzz.py", "--minutes", "60"),
}
MOST_LINES = 40  # of tables
OPENING = """# Evidence

What speaks for the promise that this library makes, beside its [proofs](privacy.md): samplers and synthesizers [audited](audit.md), known violations planted and caught, kills, failing disks and races survived, and wrong files
read. Each part is the beginning of a page of results; `make evidence` runs all of them again and writes this page.
[The threat model](threats.md) says what they do not cover."""


def beginning(name: str) -> str:
    """A page of results up to its second heading, one level deeper; of a long table only what stands before it."""
    lines = (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    end = next((number for number, line in enumerate(lines) if line.startswith("## ")), len(lines))
    kept = lines[:end]
    if sum(line.startswith("|") for line in kept) > MOST_LINES:
        kept = kept[: next(number for number, line in enumerate(kept) if line.startswith("|"))]
    text = "\n".join(kept).replace("](../../docs/", "](").strip()
    return f"#{text}\n\n[All of it](../benchmarks/results/{name}.md)"


def page() -> str:
    """The page, from the results that are there."""
    return "\n\n".join([OPENING, *map(beginning, COMMANDS)]) + "\n"


def main() -> None:
    if sys.argv[1:] != ["page"]:
        for script, *options in COMMANDS.values():
            subprocess.run([sys.executable, Path(__file__).parent / script, *options], check=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
