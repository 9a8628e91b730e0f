"""Rows that do not fit in memory: the same counts from files without a name, which are there before the charge."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handed_counts import handed_counts  # noqa: F401

from dpcipher.curator import counts as count
from dpcipher.curator import held, persons
from dpcipher.curator.counts import RowCounts, receive
from dpcipher.curator.measure import measure
from dpcipher.errors import TableFileError
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.terms import Privacy
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 300, "c": 70_000, "d": 5})  # a byte, two, four, and one again
N_ROWS = 4_000
TABLES = [(0,), (1,), (0, 1), (1, 3), (0, 3), (3,)]


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for a few hundred rows, and no table counted before it is known to be asked for."""
    monkeypatch.setattr(held, "MEMORY_BYTES", 2_000)
    monkeypatch.setattr(count, "CHUNK_ROWS", 300)
    monkeypatch.setattr("dpcipher.selection.target.MOST_CELLS", 0)
    monkeypatch.setattr("dpcipher.io.objects.FRAME_ROWS", 170)
    monkeypatch.setattr("dpcipher.io.files.BATCH_ROWS", 170)


def people() -> pd.DataFrame:
    """Coded rows of persons who have between one and many of them, ids of several types among them."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(rng.integers(0, SCHEMA.shape, (N_ROWS, 4)), columns=list("abcd"))
    ids = [f"p{i}" if i % 3 else i for i in rng.geometric(0.004, N_ROWS)]
    return rows.assign(who=pd.Series(ids, dtype=object))


def by_hand(frame: pd.DataFrame, axes: tuple[int, ...]) -> np.ndarray:
    """One row after another."""
    table = np.zeros([SCHEMA.shape[axis] for axis in axes], dtype=np.int64)
    for row in frame[list("abcd")].to_numpy():
        table[tuple(row[list(axes)])] += 1
    return table


def spilled_files() -> Iterator[os.stat_result]:
    """Open regular files that have no name."""
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(descriptor))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_size:
            yield status


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at open files as Linux shows them")
@pytest.mark.usefixtures("small_memory")
def test_many_rows_are_held_in_a_file_without_a_name(tmp_path: Path) -> None:
    """For its owner's eyes only, eight bytes for the four codes of a row; it answers as the rows would, and goes with them."""
    frame = people()
    pq.write_table(pa.Table.from_pandas(frame[list("abcd")]), tmp_path / "rows.parquet")
    before = len(list(spilled_files()))
    rows = receive(tmp_path / "rows.parquet", SCHEMA).rows()
    new = list(spilled_files())[before:]
    assert [(file.st_size, stat.S_IMODE(file.st_mode)) for file in new] == [(8 * N_ROWS, 0o600)]
    source = RowCounts(rows, SCHEMA.shape)
    for axes, table in zip(TABLES, source.many(TABLES), strict=True):
        np.testing.assert_array_equal(table, by_hand(frame, axes))
        np.testing.assert_array_equal(table, source.counts(axes))
    del rows, source
    assert len(list(spilled_files())) == before


@pytest.mark.parametrize("memory", [0, 2**28])
def test_rows_are_recoded_in_a_file_as_in_memory(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes that bins merge, of a column of two bytes and of one of four: the counts of recoded rows."""
    monkeypatch.setattr(held, "MEMORY_BYTES", memory)
    frame, shape = people(), (2, 3, 7, 5)
    coarse = {1: np.arange(300, dtype=np.int32) // 100, 2: np.arange(70_000, dtype=np.int32) // 10_000}
    source = RowCounts(receive(frame, SCHEMA).rows(), SCHEMA.shape).recoded(coarse, shape)
    merged = frame.assign(b=frame["b"] // 100, c=frame["c"] // 10_000)
    expected = np.zeros((3, 7), dtype=np.int64)
    np.add.at(expected, (merged["b"], merged["c"]), 1)
    np.testing.assert_array_equal(source.counts((1, 2)), expected)
    assert source.n_rows == N_ROWS
    np.testing.assert_array_equal(source.counts((0, 1)).sum(axis=0), expected.sum(axis=1))


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("limit", [1, 3])
def test_persons_keep_the_same_rows_in_files_as_in_memory(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit-equal counts, whatever the number of partitions."""
    person, frame = Privacy.parse(epsilon=1, unit="add-remove", max_rows=limit, person="who"), people()
    tallies = []
    for memory, partitions in ((2**28, 64), (2_000, 64), (2_000, 1), (2_000, 3)):
        monkeypatch.setattr(held, "MEMORY_BYTES", memory)
        monkeypatch.setattr(persons, "PARTITIONS", partitions)
        tallies.append(receive(frame, SCHEMA, person).tally(TABLES))
    kept = frame["who"].map(str).value_counts().clip(upper=limit).sum()
    assert {tally.n_rows for tally in tallies} == {kept}
    for tally in tallies[1:]:
        for table, expected in zip(tally.tables, tallies[0].tables, strict=True):
            np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("options", [{"workload": "auto"}, {"workload": 1, "person": "who", "max_rows": 2}])
def test_a_release_of_many_rows_is_that_of_the_same_rows_in_memory(
    options: dict[str, Any], handed: list[np.ndarray], request: pytest.FixtureRequest
) -> None:
    """From the frame that a user hands in to the counts that noise is added to, chosen tables and persons."""
    terms = {"epsilon": 1.0, "unit": "add-remove"} | options
    measure(people(), SCHEMA, **terms)
    in_memory = [counts.copy() for counts in handed]
    handed.clear()
    request.getfixturevalue("small_memory")
    measure(people(), SCHEMA, **terms)
    first = len(SCHEMA.attrs) if options["workload"] == "auto" else len(in_memory)
    assert len(in_memory) >= first
    for counts, expected in zip(handed[:first], in_memory, strict=False):
        np.testing.assert_array_equal(counts, expected)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the full disk that Linux offers")
@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("options", [{"workload": "auto"}, {"workload": 1, "person": "who", "max_rows": 2}])
def test_a_full_disk_costs_no_budget(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the folder, and nothing is in the ledger."""
    ledger = Ledger.create(
        tmp_path / "people.ledger", epsilon=2, unit="add-remove", max_rows=options.get("max_rows", 1)
    )

    monkeypatch.setattr(held.tempfile, "TemporaryFile", lambda: open("/dev/full", "r+b"))  # noqa: SIM115
    with pytest.raises(TableFileError, match=r"No space left on device\); nothing was charged.*TMPDIR"):
        measure(people(), SCHEMA, epsilon=1.0, unit="add-remove", ledger=ledger, **options)
    assert ledger.spent.epsilon == 0
