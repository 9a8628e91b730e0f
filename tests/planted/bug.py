"""A known violation, and how it is planted in a copy of the source to see it caught."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import dpcipher

SOURCE = Path(dpcipher.__file__).parent
TESTS = Path(__file__).parent.parent
_FINDING = re.compile(r"first extra item: Check\(part='([^']*)', what='([^']*)', unit='([^']*)'")


@dataclass(frozen=True)
class Bug:
    """One violation: where the source says `right`, it says `wrong`, and `caught_by` must fail. `source` says who made it before."""

    name: str
    source: str
    file: str
    right: str
    wrong: str
    caught_by: str

    @property
    def by_audit(self) -> bool:
        """Whether the audit that every user can run is what must catch it."""
        return self.caught_by.startswith("audits/")


@dataclass(frozen=True)
class Verdict:
    """Whether a planted bug was caught, and the end of what the test said."""

    caught: bool
    said: str

    @property
    def finding(self) -> str:
        """The first row of an audit that failed, if it was one."""
        row = _FINDING.search(self.said)
        return "" if row is None else f"{row[1]}: {row[2]} ({row[3]})"


def plant(bug: Bug, folder: Path) -> Verdict:
    """Run the test of a bug against a copy of the source that has it."""
    shutil.copytree(SOURCE, folder / "dpcipher", ignore=shutil.ignore_patterns("__pycache__"))
    planted = folder / "dpcipher" / bug.file
    planted.write_text(planted.read_text(encoding="utf-8").replace(bug.right, bug.wrong), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        str(TESTS / bug.caught_by),
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder), "DPCIPHER_REQUIRE": ""}
    ended = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False
    )
    return Verdict(ended.returncode == 1 and "= FAILURES =" in ended.stdout, ended.stdout[-6000:])
