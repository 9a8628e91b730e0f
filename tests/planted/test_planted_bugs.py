"""The tests catch what they are there for: each known bug, planted in a copy of the source, fails the test that names it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bugs import BUGS, Bug

import dpcipher

SOURCE = Path(dpcipher.__file__).parent
TESTS = Path(__file__).parent.parent


def test_every_bug_has_a_place_to_be_planted() -> None:
    """The text that a bug replaces stands in the source once, and the test that catches it exists."""
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 12
    for bug in BUGS:
        text = (SOURCE / bug.file).read_text(encoding="utf-8")
        assert text.count(bug.right) == 1, bug.name
        path, _, name = bug.caught_by.partition("::")
        assert f"def {name.split('[')[0]}" in (TESTS / path).read_text(encoding="utf-8"), bug.name


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    """The named test fails where the bug is; that it passes where it is not, every other run shows."""
    shutil.copytree(SOURCE, tmp_path / "dpcipher", ignore=shutil.ignore_patterns("__pycache__"))
    planted = tmp_path / "dpcipher" / bug.file
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
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "DPCIPHER_REQUIRE": ""}
    told = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 1, f"{bug.name} was not caught by {bug.caught_by}\n{told.stdout[-2000:]}"
