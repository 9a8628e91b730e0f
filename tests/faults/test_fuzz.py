"""Ten thousand wrong files and tables, in a process whose memory and time are limited; `benchmarks/fuzz.py` goes on for an hour."""

from pathlib import Path

import pytest

pytest.importorskip("resource")

import fuzzing
from private_cases import CANARIES, NUMBER, WORD

from dpcipher.errors import DataError


def test_ten_thousand_cases(tmp_path: Path) -> None:
    """Typed and byte by byte: refused with an error of our own, or read; at once, and no canary in any message, warning or log."""
    found = fuzzing.fuzz(tmp_path, cases=10_000)
    assert [wrong for loader in found["loaders"].values() for wrong in loader["wrong"]] == []
    assert sum(loader["cases"] for loader in found["loaders"].values()) == 10_000
    for loader in found["loaders"].values():
        assert loader["refused"] > 100
        assert loader["loaded"] > 0
    assert found["megabytes"] < fuzzing.MOST_GROWTH


def test_two_hundred_files_of_rows_tell_no_cell(tmp_path: Path) -> None:
    """CSV alone, for a quick look."""
    found = fuzzing.fuzz(tmp_path, cases=200, seed=5, only=("CSV",))
    assert found["loaders"]["CSV"]["cases"] == 200
    assert found["loaders"]["CSV"]["wrong"] == []


def _quoting() -> None:
    raise DataError(f"could not read {WORD}")


def _chained() -> None:
    try:
        int(WORD)
    except ValueError as wrong:
        raise DataError("a cell is no number") from wrong


def _printing() -> None:
    print(NUMBER)


def _broken() -> None:
    raise KeyError("a")


@pytest.mark.parametrize(
    ("case", "says"), [(_quoting, "tells"), (_chained, "tells"), (_printing, "tells"), (_broken, "crashes")]
)
def test_what_is_wrong_is_noticed(case, says: str) -> None:
    """A canary in a message, in the error behind it, or on a stream; and an error that is not ours."""
    _, _, wrong = fuzzing.judge(case, CANARIES)
    assert wrong
    assert wrong[0].startswith(says)
