"""Every change of a file made to fail, or to be the last thing a process does, by a library loaded before the C library."""

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import injected
import pytest
from steps import STEPS

from conftest import missing

MEMORY = Path("/dev/shm")  # where syncing costs nothing


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are synced."""
    made = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    yield made
    shutil.rmtree(made)


def test_no_failing_write_breaks_a_promise(folder: Path) -> None:
    """A full disk and a read-only one, once and for good, and a kill, at every change of every step.

    What fails is our own error with advice; the ledger opens; nothing is released that is not charged; the next run goes well and leaves
    nothing of the first. The other errors are tried by `benchmarks/faults.py`.
    """
    library = injected.compiled(folder)
    if library is None:
        missing("gcc", "no compiler for the library that makes system calls fail")
    found = injected.inject(library, folder, (errno.ENOSPC, errno.EROFS, injected.KILL))
    assert set(found) == set(STEPS)
    assert [wrong for step in found.values() for wrong in step["wrong"]] == []
    for step in found.values():
        assert step["calls"] >= 5
        assert step["refused"] > 3 * step["harmless"]
        assert step["killed"] == step["calls"]
