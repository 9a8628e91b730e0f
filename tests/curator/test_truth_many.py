"""Many tables at once: the same counts as one at a time, from every source of them."""

import os
import stat
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpcipher.curator import counts as truth
from dpcipher.curator import kernel
from dpcipher.curator.counts import CountSource, RowCounts, TableCounts, count_codes, receive
from dpcipher.curator.kernel import TableCounter
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4, "d": 1})
CODES = np.random.default_rng(8).integers(0, SCHEMA.shape, size=(700, 4)).astype(np.int32)
TABLES = [axes for size in (2, 0, 1, 3, 2, 4) for axes in combinations(range(4), size)]


def brute(axes: tuple[int, ...]) -> np.ndarray:
    """One row after another."""
    table = np.zeros([SCHEMA.shape[axis] for axis in axes], dtype=np.int64)
    for row in CODES:
        table[tuple(row[list(axes)])] += 1
    return table


def check(source: CountSource) -> None:
    """All tables in order, as int64, equal to brute force and to the counts of each."""
    found = list(source.many(TABLES))
    assert len(found) == len(TABLES)
    for axes, table in zip(TABLES, found, strict=True):
        assert table.dtype == np.int64
        np.testing.assert_array_equal(table, brute(axes))
        np.testing.assert_array_equal(table, source.counts(axes))


@pytest.mark.parametrize("source", [TableCounts(brute((0, 1, 2, 3))), RowCounts(CODES, SCHEMA.shape)])
def test_many_tables_are_the_tables_one_by_one(source: CountSource) -> None:
    """From the full table and from coded rows; no table, no count."""
    check(source)
    assert list(source.many([])) == []


def noted_passes(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, ...]]]:
    """Which tables every pass over the rows counts, of few cells at a time."""
    passes: list[list[tuple[int, ...]]] = []

    class Noted(TableCounter):
        def __init__(self, shape: tuple[int, ...], tables: list[tuple[int, ...]]) -> None:
            passes.append(tables)
            super().__init__(shape, tables)

    monkeypatch.setattr(truth, "TableCounter", Noted)
    monkeypatch.setattr(truth, "PASS_CELLS", 15)
    return passes


def test_tables_are_counted_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some at a time, so that a reader who stops early has paid for little more than what was read; the counts stay the same."""
    asked = noted_passes(monkeypatch)
    tables = RowCounts(CODES, SCHEMA.shape).many([(0, 1), (0, 2), (1, 2), (0, 1)])
    assert asked == []
    next(tables)
    assert asked == [[(0, 1), (0, 2)]]
    list(tables)
    assert asked == [[(0, 1), (0, 2)], [(1, 2)], [(0, 1)]]
    check(RowCounts(CODES, SCHEMA.shape))


def test_tables_that_are_expected_are_counted_in_one_pass_when_the_first_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many at a time as memory allows; any other table is still counted by itself, and the counts are those of brute force."""
    passes = noted_passes(monkeypatch)
    source = RowCounts(CODES, SCHEMA.shape)
    source.expect([(0, 1), (0, 1), (0, 2), (1, 2)])
    assert passes == []
    for axes in [(0, 1), (0, 1), (0, 2), (1, 2), (0, 3), (1, 2)]:
        np.testing.assert_array_equal(source.counts(axes), brute(axes))
    assert passes == [[(0, 1), (0, 2)], [(1, 2)], [(0, 3)]]


def test_counting_leaves_the_rows_as_they_were() -> None:
    """Numbers of cells are computed in place, on copies."""
    source, before = RowCounts(CODES, SCHEMA.shape), CODES.copy()
    list(source.many(TABLES))
    np.testing.assert_array_equal(CODES, before)
    np.testing.assert_array_equal(source.counts((2,)), brute((2,)))


def test_cell_numbers_beyond_32_bits_are_counted_with_64(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wide way counts alike, and is taken where the narrow one would overflow."""
    narrow = count_codes(CODES, SCHEMA.shape, [(0, 1, 2), (2,)]).tables
    monkeypatch.setattr(kernel, "LARGEST_UINT16", 3)
    middle = count_codes(CODES, SCHEMA.shape, [(0, 1, 2), (2,)]).tables
    monkeypatch.setattr(kernel, "LARGEST_INT32", 3)
    wide = count_codes(CODES, SCHEMA.shape, [(0, 1, 2), (2,)]).tables
    assert all(np.array_equal(one, other) for one, other in zip(narrow, wide, strict=True))
    assert all(np.array_equal(one, other) for one, other in zip(narrow, middle, strict=True))


def test_rows_in_pieces_count_as_rows_in_one_piece() -> None:
    """However many pieces, and whatever their layout in memory; none at all is an empty table."""
    pieces = [np.asfortranarray(CODES[:1]), CODES[1:300], CODES[300:300], np.asfortranarray(CODES[300:])]
    check(RowCounts(pieces, SCHEMA.shape))
    nobody = RowCounts([], SCHEMA.shape)
    assert (nobody.n_rows, nobody.counts((0, 1)).tolist()) == (0, [[0, 0, 0], [0, 0, 0]])


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_rows_are_read_once_into_a_file_without_a_name(spark: Any) -> None:
    """Every question is answered from it, for its owner's eyes only, also when Spark has gone away."""
    frame = spark.createDataFrame(pd.DataFrame(CODES, columns=list("abcd"))).repartition(3)
    pieces = receive(frame, SCHEMA).rows()
    held = os.fstat(next(fd for fd in map(int, os.listdir("/proc/self/fd")) if _is_spill(fd)))
    assert (held.st_nlink, stat.S_IMODE(held.st_mode)) == (0, 0o600)
    check(RowCounts(pieces, SCHEMA.shape))


def _is_spill(fd: int) -> bool:
    """Whether a descriptor is a regular file of just the size of the coded rows."""
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == CODES.size  # a byte for each code
