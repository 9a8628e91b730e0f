"""What tests share: optional parts are skipped visibly, and required where DPCIPHER_REQUIRE names them."""

import os
from pathlib import Path

import pytest

REQUIRED = set(filter(None, os.environ.get("DPCIPHER_REQUIRE", "").split(",")))


def missing(part: str, reason: str) -> None:
    """Skip a test that needs an absent part, or fail it where that part is required."""
    if part in REQUIRED:
        pytest.fail(f"{part} is required here, but {reason}")
    pytest.skip(f"{part}: {reason}")


@pytest.fixture
def data_folder() -> Path:
    """The folder of real tables, where DPCIPHER_DATA names one."""
    folder = os.environ.get("DPCIPHER_DATA", "")
    if not folder or not Path(folder).is_dir():
        missing("data", "DPCIPHER_DATA names no folder of real tables")
    return Path(folder)
