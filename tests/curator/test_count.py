"""Counting: whatever holds the rows, the counts are those of a plain loop."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.curator.counts import Tally, count_batches, count_codes
from dpcipher.errors import DataError
from dpcipher.privacy.terms import Privacy
from dpcipher.schema.schema import Schema

SHAPE = (2, 3, 4)
SCHEMA = Schema.from_domain(dict(zip("abc", SHAPE, strict=True)))
TABLES = [axes for size in (1, 2, 3) for axes in itertools.combinations(range(3), size)]
ROWS = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SHAPE)), max_size=30)


def by_hand(rows: list[tuple[int, ...]]) -> Tally:
    """Counts by a loop over rows and cells."""
    tables = []
    for axes in TABLES:
        seen = Counter(tuple(row[axis] for axis in axes) for row in rows)
        cells = itertools.product(*(range(SHAPE[axis]) for axis in axes))
        shape = [SHAPE[axis] for axis in axes]
        tables.append(np.array([seen[cell] for cell in cells], dtype=np.int64).reshape(shape))
    return Tally(len(rows), tuple(tables))


def batch(rows: list[tuple[int, ...]], owner: list[str | None] | None = None) -> pa.RecordBatch:
    """Rows as an Arrow record batch, perhaps with a column that says whose they are."""
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("abc")}
    if owner is not None:
        columns["who"] = pa.array(owner, pa.string())
    return pa.RecordBatch.from_pydict(columns)


def same(left: Tally, right: Tally) -> bool:
    """Bit-equal counts of the same type."""
    return left.n_rows == right.n_rows and all(
        a.dtype == b.dtype == np.int64 and np.array_equal(a, b)
        for a, b in zip(left.tables, right.tables, strict=True)
    )


@given(ROWS)
def test_the_kernel_counts_like_a_loop_over_rows(rows: list[tuple[int, ...]]) -> None:
    """Every table of every order, empty tables included."""
    codes = np.array(rows, dtype=np.int32).reshape(len(rows), 3)
    assert same(by_hand(rows), count_codes(codes, SHAPE, TABLES))


@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 7))
def test_chunks_and_row_order_do_not_change_the_counts(
    rows: list[tuple[int, ...]], random: object, size: int
) -> None:
    """Integer sums are the same in any order."""
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    chunks = [batch(shuffled[start : start + size]) for start in range(0, len(rows), size)]
    assert same(by_hand(rows), count_batches(chunks, SCHEMA, TABLES))


def test_no_batches_count_as_zero_rows() -> None:
    """An empty source gives tables of zeros, of the declared shapes."""
    assert same(by_hand([]), count_batches([], SCHEMA, TABLES))


@given(ROWS, st.integers(1, 3), st.data())
def test_a_person_counts_for_at_most_max_rows_whatever_the_order(
    rows: list[tuple[int, ...]], limit: int, data: st.DataObject
) -> None:
    """Each person keeps min(limit, own rows) rows, all of them that person's own, whatever the order of the table."""
    owner = data.draw(st.lists(st.sampled_from("pqr"), min_size=len(rows), max_size=len(rows)))
    person = Privacy.parse(epsilon=1, unit="add-remove", max_rows=limit, person="who")
    kept = count_batches([batch(rows, owner)], SCHEMA, TABLES, person)
    backwards = count_batches([batch(rows[::-1], owner[::-1])], SCHEMA, TABLES, person)
    assert same(kept, backwards)
    assert kept.n_rows == sum(min(limit, count) for count in Counter(owner).values())
    assert all((kept.tables[i] <= by_hand(rows).tables[i]).all() for i in range(len(TABLES)))


@given(ROWS, st.integers(1, 3), st.data())
def test_one_person_more_changes_each_table_by_at_most_max_rows(
    rows: list[tuple[int, ...]], limit: int, data: st.DataObject
) -> None:
    """The sensitivity that the noise is calibrated to, on random neighbours."""
    owner = data.draw(st.lists(st.sampled_from("pqr"), min_size=len(rows), max_size=len(rows)))
    person = Privacy.parse(epsilon=1, unit="add-remove", max_rows=limit, person="who")
    without = [(row, who) for row, who in zip(rows, owner, strict=True) if who != "p"]
    full = count_batches([batch(rows, owner)], SCHEMA, TABLES, person)
    less = count_batches([batch([r for r, _ in without], [w for _, w in without])], SCHEMA, TABLES, person)
    assert all(np.abs(a - b).sum() <= limit for a, b in zip(full.tables, less.tables, strict=True))


def test_a_row_without_a_person_is_refused_before_any_charge() -> None:
    """The error names the column and the rule, never a value."""
    with pytest.raises(DataError, match=r"person column \(who\) has rows without a person"):
        count_batches(
            [batch([(0, 0, 0)], [None])],
            SCHEMA,
            TABLES,
            Privacy.parse(epsilon=1, unit="add-remove", max_rows=1, person="who"),
        )
