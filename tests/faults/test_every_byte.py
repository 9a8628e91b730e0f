"""Every kind of file, cut and bent at every few bytes; `benchmarks/faults.py` takes every byte."""

from pathlib import Path

import every_byte
import pytest

KINDS = {
    "release": 5,
    "joint, dense": 2,
    "joint, chain": 5,
    "ledger": 1,
    "witness": 1,
    "schema, YAML": 3,
    "schema, JSON": 3,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoiled_file_is_refused_or_says_the_same(kind: str, tmp_path: Path) -> None:
    """A schema may become another one, which its reader sees; everything else has a checksum, a chain or a witness."""
    files = every_byte.write_all(tmp_path)
    assert set(files) == set(KINDS)
    path, says = files[kind]
    found = every_byte.spoil(path, says, KINDS[kind])
    assert found.wrong == []
    assert found.copies >= 2 * found.size // KINDS[kind]
    assert found.refused > found.copies / 3
