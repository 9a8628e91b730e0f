"""The tests catch what they are there for: each known bug, planted in a copy of the source, fails the test that names it."""

from pathlib import Path

import pytest
from bug import SOURCE, TESTS, Bug, plant
from bugs import BUGS


def test_every_bug_has_a_place_to_be_planted() -> None:
    """The text that a bug replaces stands in the source once, and the test that catches it exists."""
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 24
    assert sum(bug.by_audit for bug in BUGS) >= 6
    for bug in BUGS:
        text = (SOURCE / bug.file).read_text(encoding="utf-8")
        assert text.count(bug.right) == 1, bug.name
        compile(text.replace(bug.right, bug.wrong), bug.file, "exec")
        path, _, name = bug.caught_by.partition("::")
        assert f"def {name.split('[')[0]}" in (TESTS / path).read_text(encoding="utf-8"), bug.name


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    """The named test fails where the bug is; that it passes where it is not, every other run shows."""
    verdict = plant(bug, tmp_path)
    assert verdict.caught, f"{bug.name} was not caught by {bug.caught_by}\n{verdict.said[-2000:]}"
