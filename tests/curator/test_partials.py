"""Counts of partitions as bytes: whatever is cut, packed and added up again is the sum, and what a worker refuses it says in our words."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpcipher.curator import spark_workers
from dpcipher.curator import spark_workers as partials
from dpcipher.curator.counts import count_codes
from dpcipher.curator.spark_workers import (
    UNREADABLE,
    Adding,
    Blocks,
    Counting,
    Owning,
    add_packed,
    assembled,
    columns_of_block,
    packed,
    pieces,
)
from dpcipher.privacy.terms import Cap
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Codes, Counts

SHAPE = (3, 300, 2, 70_000)
SCHEMA = Schema.from_domain(dict(zip("abcd", SHAPE, strict=True)))
TABLES: list[Axes] = [(), (1,), (3,), *itertools.combinations(range(3), 2)]


@given(
    st.integers(1, 40).flatmap(
        lambda length: st.lists(
            arrays(np.int64, length, elements=st.sampled_from([0, 0, 0, 1, 255, 256, 65_536, 2**32, 2**40])),
            min_size=1,
            max_size=4,
        )
    )
)
def test_packed_counts_add_up_to_their_sum(parts: list[Counts]) -> None:
    """Dense or sparse, small counts and large ones; a piece is filled up with zeros."""
    total = None
    for counts in parts:
        total = add_packed(total, packed(counts))
    assert np.array_equal(np.sum(parts, axis=0), total[: len(parts[0])])
    assert not total[len(parts[0]) :].any()


@pytest.mark.parametrize("cells", [1, 7, 2**18])
def test_tables_in_pieces_come_back(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the length of a piece, also where it ends inside a table, and where a piece without counts is left out."""
    monkeypatch.setattr(partials, "PIECE_CELLS", cells)
    tables = [np.array([[0, 4], [0, 0]]), np.zeros(20, dtype=np.int64), np.array([1, 2, 3])]
    sums = {number: add_packed(None, counts) for number, counts in pieces(11, tables)}
    n_rows, found = assembled(sums, (2, 20, 3, 2), [(0, 3), (1,), (2,)])
    assert n_rows == 11
    assert all(np.array_equal(a, b) for a, b in zip(found, tables, strict=True))


def rows_of(n_rows: int, seed: int) -> Codes:
    """Coded rows."""
    return np.random.default_rng(seed).integers(0, SHAPE, (n_rows, 4)).astype(np.int32)


def batches_of(codes: Codes, size: int, **more: Sequence[object]) -> list[pa.RecordBatch]:
    """The rows as Spark hands them to a worker, a few at a time."""
    columns = {name: codes[:, axis] for axis, name in enumerate("abcd")}
    return pa.table({**columns, **more}).to_batches(size)


def worked(work: Any, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """What a worker makes of one partition."""
    return list(work(iter(batches)))


@pytest.fixture(autouse=True)
def one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers without Spark: the partition has no number."""
    monkeypatch.setattr(spark_workers, "_partition", lambda: 0)


FACTS = json.dumps(SCHEMA.to_dict())


def summed(parts: list[list[pa.RecordBatch]]) -> tuple[int, tuple[Counts, ...]]:
    """The counts of several partitions added up, some first."""
    first = worked(Adding(), [batch for part in parts[:2] for batch in part])
    last = worked(Adding(), [*first, *(batch for part in parts[2:] for batch in part)])
    sums = {
        batch.column(0)[0].as_py(): add_packed(None, batch.column(2)[0].as_py())
        for batch in last
        if len(batch)
    }
    return assembled(sums, SHAPE, TABLES)


def test_partitions_of_any_size_add_up_to_the_counts_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with nearly all rows, some with few, one with none; rounds of few rows, and pieces of few cells."""
    monkeypatch.setattr(spark_workers, "ROUND_ROWS", 50)
    monkeypatch.setattr(partials, "PIECE_CELLS", 1000)
    partitions = [rows_of(n_rows, seed) for seed, n_rows in enumerate((2000, 1, 0, 30))]
    counting = Counting(FACTS, tuple(TABLES))
    n_rows, tables = summed([worked(counting, batches_of(codes, 20)) for codes in partitions])
    expected = count_codes(np.concatenate(partitions), SHAPE, TABLES)
    assert n_rows == expected.n_rows
    assert all(np.array_equal(a, b) for a, b in zip(tables, expected.tables, strict=True))


def test_blocks_hold_the_codes_in_their_narrowest_integers() -> None:
    """A byte, two or four for each code."""
    codes = rows_of(100, 1)
    [block] = worked(Blocks(FACTS), batches_of(codes, 30))
    columns = columns_of_block(block.column(0)[0].as_py(), SHAPE)
    assert [column.dtype.name for column in columns] == ["uint8", "uint16", "uint8", "int32"]
    assert np.array_equal(np.stack(columns, axis=1), codes)


def test_rows_of_a_person_that_cannot_count_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one who has nearly all rows no more go out of each round than may count; what counts in the end is the same."""
    monkeypatch.setattr(spark_workers, "ROUND_ROWS", 100)
    codes = rows_of(1000, 2)
    who = ["heavy"] * 900 + [str(number % 40) for number in range(100)]
    owned = worked(Owning(FACTS, Cap("who"), 3), batches_of(codes, 25, who=who))
    assert sum(names.count("heavy") for names in (batch.column(0).to_pylist() for batch in owned)) == 9 * 3
    counted = worked(Counting(FACTS, tuple(TABLES), 3), owned)
    alone = worked(Owning(FACTS, Cap("who"), 3), batches_of(codes, 1000, who=who))
    assert summed([counted])[0] == 3 + 40 * 2 + 20
    for a, b in zip(
        summed([counted])[1], summed([worked(Counting(FACTS, tuple(TABLES), 3), alone)])[1], strict=True
    ):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "work", [Counting(FACTS, tuple(TABLES)), Blocks(FACTS), Owning(FACTS, Cap("who"), 1)], ids=str
)
def test_a_refusal_is_a_message_without_the_value(work: Any) -> None:
    """A worker raises nothing: what it raises would stand in Spark's logs with its traceback."""
    codes = rows_of(60, 3)
    codes[50, 1] = 4711
    said = worked(work, batches_of(codes, 20, who=["x"] * 60))
    message = said[-1].column(said[-1].num_columns - 1)[0].as_py()
    assert "column 'b'" in message
    assert "4711" not in message


def test_errors_of_others_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their words may quote a cell."""

    def encode(*_: object) -> None:
        raise ValueError("could not convert 4711")

    monkeypatch.setattr(Schema, "encode_columns", encode)
    [said] = worked(Counting(FACTS, tuple(TABLES)), batches_of(rows_of(5, 4), 5))
    assert said.column(3)[0].as_py() == UNREADABLE
    [summed_up] = worked(Adding(), [said])
    assert summed_up.column(3)[0].as_py() == UNREADABLE
