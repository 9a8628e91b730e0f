"""The counting kernel: joint tables, blocks and threads change how rows are counted, and no count."""

import itertools
import math
import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.curator import kernel
from dpcipher.curator.counts import count_batches
from dpcipher.curator.kernel import TableCounter, in_threads
from dpcipher.errors import DataError
from dpcipher.schema import Schema
from dpcipher.schema.cells import code_type
from dpcipher.tables.covering import ALL_JOINT_CELLS, few_joint_tables, joint_tables

SHAPES = ((2, 3, 4, 1, 5), (2,) * 9, (250, 300, 2, 3), (70_000, 2, 3), (16, 16, 16, 16, 2))


def coded(shape: tuple[int, ...], n_rows: int, seed: int = 0) -> list[np.ndarray]:
    """Columns of random codes, the last level among them."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, shape, (n_rows, len(shape)))
    rows[0] = np.array(shape) - 1
    return [rows[:, axis].astype(code_type(size)) for axis, size in enumerate(shape)]


def by_hand(columns: list[np.ndarray], axes: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """One row after another."""
    table = np.zeros([shape[axis] for axis in axes], dtype=np.int64)
    for cell, times in Counter(zip(*(columns[axis].tolist() for axis in axes), strict=True)).items():
        table[cell] = times
    return table


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rows", [1, 50])
def test_tables_counted_together_are_tables_counted_alone(
    shape: tuple[int, ...], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks above and below the size from which joint tables are counted, tables of all orders, one of them twice."""
    monkeypatch.setattr(kernel, "JOINT_ROWS", rows)
    monkeypatch.setattr(kernel, "BLOCK_ROWS", 64)
    orders = (2, 1, 3)
    tables = [axes for order in orders for axes in itertools.combinations(range(len(shape)), order)]
    tables = [axes for axes in [*tables, tables[0]] if math.prod(shape[a] for a in axes) <= 2**20]
    counter = TableCounter(shape, [(), *tables])
    parts = [coded(shape, n_rows, seed) for seed, n_rows in enumerate((49, 1_000, 1, 50))]
    for part in parts:
        counter.add(part)
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    total, *counts = counter.tables()
    assert total == counter.n_rows == 1_100
    for axes, table in zip(tables, counts, strict=True):
        assert table.dtype == np.int64
        np.testing.assert_array_equal(table, by_hand(whole, axes, shape))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6).map(tuple),
    st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=12),
    st.integers(1, 200),
)
def test_every_table_is_a_margin_of_its_joint_table(
    shape: tuple[int, ...], chosen: list[set[int]], most_cells: int
) -> None:
    """A joint table is no larger than allowed, unless it is one of the tables."""
    tables = [tuple(sorted({axis % len(shape) for axis in axes})) for axes in chosen]
    joints = joint_tables(shape, tables, most_cells)
    assert joints.keys() == set(tables)
    for axes, joint in joints.items():
        assert set(axes) <= set(joint)
        assert list(joint) == sorted(set(joint))
        assert joint in tables or math.prod(shape[axis] for axis in joint) <= most_cells


@pytest.mark.parametrize(("distinct", "repeat"), [(20, True), (5_000, False)])
def test_rows_that_repeat_are_sorted_and_counted_once(
    distinct: int, repeat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same counts either way, and from the first piece on only where rows repeat; pieces of other sizes are counted as they come."""
    monkeypatch.setattr(kernel, "SORTING_TABLES", 1)
    monkeypatch.setattr(kernel, "SORTED_ROWS", 300)
    monkeypatch.setattr(kernel, "JOINT_ROWS", 100)
    monkeypatch.setattr(kernel, "BLOCK_ROWS", 64)
    shape = (250, 300, 2, 3)
    tables = [axes for order in (1, 2, 3) for axes in itertools.combinations(range(4), order)]
    places = np.random.default_rng(1).integers(0, distinct, 1_099)
    rows = [column[places] for column in coded(shape, distinct)]
    counter = TableCounter(shape, tables)
    assert counter.sorts
    for start, stop in ((0, 300), (300, 450), (450, 460), (460, 1_099)):
        counter.add([column[start:stop] for column in rows])
    assert counter.sorts == repeat
    assert counter.n_rows == 1_099
    for axes, table in zip(tables, counter.tables(), strict=True):
        assert table.dtype == np.int64
        np.testing.assert_array_equal(table, by_hand(rows, axes, shape))


def test_rows_are_sorted_only_for_many_tables_of_a_full_table_that_can_be_numbered() -> None:
    """All pairs of Adult's columns are few; cells beyond 64 bits have no number."""
    triples = list(itertools.combinations(range(14), 3))
    assert TableCounter((9,) * 14, triples).sorts
    assert not TableCounter((9,) * 14, list(itertools.combinations(range(14), 2))).sorts
    assert not TableCounter((99,) * 14, triples).sorts


def test_joint_tables_are_few_and_their_memory_is_bounded() -> None:
    """The pairs of Adult are margins of a third as many; those of 300 binary columns stay within the memory that is allowed."""
    adult = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    pairs = list(itertools.combinations(range(14), 2))
    assert len(set(few_joint_tables(adult, pairs).values())) <= 31
    wide = few_joint_tables((2,) * 300, list(itertools.combinations(range(300), 2)))
    assert sum(2 ** len(joint) for joint in set(wide.values())) <= ALL_JOINT_CELLS


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_count_and_no_refusal(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts are equal; of two batches that are refused, the first speaks; and no thread is left behind."""
    monkeypatch.setattr(kernel, "n_threads", lambda: threads)
    monkeypatch.setattr(kernel, "JOINT_ROWS", 100)
    shape = (2, 3, 4)
    schema = Schema.from_domain(dict(zip("abc", shape, strict=True)))
    columns = coded(shape, 5_000)
    table = pa.table(dict(zip("abc", columns, strict=True)))
    before = threading.active_count()
    tally = count_batches(table.to_batches(max_chunksize=130), schema, [(0, 1), (1, 2), (0, 2)])
    assert tally.n_rows == 5_000
    np.testing.assert_array_equal(tally.tables[1], by_hand(columns, (1, 2), shape))
    refused = [
        table.slice(0, 500),
        pa.table({"a": [1], "b": [9], "c": [0]}),
        pa.table({"a": [9], "b": [0], "c": [0]}),
    ]
    with pytest.raises(DataError, match="column 'b'"):
        count_batches([batch for part in refused for batch in part.to_batches()], schema, [(0, 1)])
    assert threading.active_count() == before


def test_few_batches_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading waits for counting: a stream is never read far ahead, and results come in its order."""
    monkeypatch.setattr(kernel, "n_threads", lambda: 2)
    read: list[int] = []

    def stream() -> Iterator[int]:
        for item in range(50):
            read.append(item)
            yield item

    for place, result in enumerate(in_threads(lambda item: item * item, stream())):
        assert result == place * place
        assert len(read) <= place + 4
