"""Tables that are foreseen: whatever a selection then asks for is among them, and the answers are those that rows give."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import CountedTables, CountSource, RowCounts, count_codes
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.request import Auto
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection import target as foreseen
from dpcipher.selection.select import select
from dpcipher.selection.target import SelectionTarget, foreseen_tables
from dpcipher.tables.measurement import Measurement

SHAPES = ((40, 9, 3, 2, 16, 5, 7), (4, 1, 4, 4, 4, 1, 4, 4, 4, 4), (2,) * 14)
AUTOS = (
    Auto(),
    Auto(max_order=2),
    Auto(predict="c2"),
    Auto(target=[("c0", "c2", "c3"), ("c5", "c6")]),
    Auto(max_cells=100, column_weights={"c0": 3.0}),
)
BUDGETS: Sequence[dict[str, float]] = ({"epsilon": 0.05}, {"epsilon": 1.0}, {"rho": 0.01}, {"rho": 1.0})


def dependent_rows(shape: tuple[int, ...], n_rows: int) -> np.ndarray:
    """Columns that all follow a hidden class."""
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 6, n_rows)
    columns = [(hidden * (axis + 2) + rng.geometric(0.6, n_rows)) % size for axis, size in enumerate(shape)]
    return np.stack(columns, axis=1)


def chosen(source: CountSource, schema: Schema, auto: Auto, budget: dict[str, float]) -> list[Measurement]:
    """What is measured with seeded draws."""
    terms = Privacy(Budget.parse(**budget), Unit("add-remove"))
    return select(Session(schema, terms, PrivateRows(source, Draws.seeded(5))), auto)


@pytest.mark.parametrize(("shape", "budget"), list(itertools.product(SHAPES, BUDGETS)))
def test_counts_of_the_foreseen_tables_answer_every_question_as_rows_do(
    shape: tuple[int, ...], budget: dict[str, float]
) -> None:
    """A table that was not foreseen would be an error; the same questions get the same draws, so the tables are equal."""
    codes, schema = (
        dependent_rows(shape, 3_000),
        Schema.from_domain({f"c{a}": size for a, size in enumerate(shape)}),
    )
    for auto in AUTOS:
        tables = foreseen_tables(SelectionTarget.of(auto, schema))
        assert tables is not None
        counted = CountedTables(count_codes(codes, shape, tables), tables)
        found = chosen(counted, schema, auto, budget)
        expected = chosen(RowCounts(codes.astype(np.int32), shape), schema, auto, budget)
        assert [(table.query, table.noise) for table in found] == [
            (table.query, table.noise) for table in expected
        ]
        assert all(map(np.array_equal, [t.values for t in found], [t.values for t in expected]))


def test_foreseen_are_all_columns_and_candidates_each_once() -> None:
    """As brute force lists them."""
    shape = (40, 9, 3, 2, 16, 5, 7)
    tables = foreseen_tables(
        SelectionTarget.of(Auto(max_cells=500), Schema.from_domain({f"c{a}": n for a, n in enumerate(shape)}))
    )
    every = [axes for order in range(1, 5) for axes in itertools.combinations(range(7), order)]
    assert tables is not None
    assert sorted(tables) == sorted(
        axes for axes in every if len(axes) == 1 or math.prod(shape[axis] for axis in axes) <= 500
    )


def test_nothing_is_foreseen_of_many_tables_many_cells_or_a_small_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then rows, or the full table, are kept."""
    target = SelectionTarget.of(Auto(), Schema.from_domain({f"c{axis}": 8 for axis in range(9)}))
    assert foreseen_tables(target) is not None
    assert (
        foreseen_tables(SelectionTarget.of(Auto(), Schema.from_domain({f"c{axis}": 2 for axis in range(60)})))
        is None
    )
    assert foreseen_tables(SelectionTarget.of(Auto(), Schema.from_domain({"a": 3, "b": 4, "c": 5}))) is None
    monkeypatch.setattr(foreseen, "MOST_CELLS", 1_000)
    assert foreseen_tables(target) is None
