"""A plan of an open schema judges tables by what is expected to be found, and not by the most there can be."""

from dataclasses import replace

import pytest

import dpcipher as dc
from dpcipher.planning.auto import Step
from dpcipher.schema import Column

SCHEMA = dc.Schema(
    (
        Column("age", "integer", min=0, max=99, bins="auto"),
        Column("pay", "number", min=0, max=1000, bins="auto", edges=[100, 200, 300, 400, 500]),
        Column("sex", "boolean"),
    )
)
CITY = Column("city", "categorical", levels="discover", pattern="[a-z]+", max_length=4)


@pytest.mark.parametrize("n_rows", [50, 3_000, 10**6])
def test_tables_have_the_cells_of_the_expected_bins(n_rows: int) -> None:
    """Forced edges make at least their own bins; noise is that of the same shares as before."""
    plan = dc.plan(SCHEMA, epsilon=1.0, unit="add-remove", n_rows=n_rows)
    age, pay = (found.expected for found in plan.bins)
    assert age is not None
    assert pay is not None
    cells = {table.attrs: table.n_cells for table in plan.tables}
    assert cells == {
        ("age", "pay"): age * max(pay, 6),
        ("age", "sex"): age * 2,
        ("pay", "sex"): max(pay, 6) * 2,
    }
    most = dc.plan(SCHEMA, epsilon=1.0, unit="add-remove")
    assert [table.n_cells for table in most.tables] == [64 * 64, 128, 128]
    assert [table.sd for table in most.tables] == [table.sd for table in plan.tables]
    assert plan.cost.to_dict().keys() == most.cost.to_dict().keys()
    assert "those of the bins expected" in str(plan)
    assert "those of the most bins" in str(most)


def test_more_levels_than_the_rows_allow_are_not_expected() -> None:
    """With 1,000 rows and a threshold of 74, at most 13 texts can be found, beside other."""
    schema = dc.Schema((CITY, Column("sex", "boolean")))
    plan = dc.plan(schema, epsilon=1.0, delta=1e-6, unit="add-remove", n_rows=1_000)
    assert plan.levels is not None
    assert plan.n_cells == (1_000 // plan.levels.threshold + 1) * 2


def test_a_chosen_workload_counts_candidates_of_the_expected_bins() -> None:
    """A pair of two open columns of 128 bins has too many cells to be a candidate, one of the expected bins has not."""
    wide = tuple(replace(column, max_bins=128) for column in SCHEMA.columns[:2])
    schema = dc.Schema((*wide, SCHEMA.columns[2], Column("c", "categorical", levels=list("abc"))))
    options = {"epsilon": 1.0, "delta": 1e-6, "unit": "add-remove", "workload": "auto"}
    assert dc.plan(schema, **options).pairs == 5
    assert dc.plan(schema, **options, n_rows=5_000).pairs == 6


def test_triples_that_are_looked_at_are_not_said_to_be_none() -> None:
    """Where only the second round is too noisy, that is what is said."""
    schema = dc.Schema.from_domain(dict.fromkeys("abcdefghijkl", 4))
    plan = dc.plan(schema, workload="auto", epsilon=1.0, delta=1e-9, unit="add-remove", n_rows=10_000)
    pairs = next(step for step in plan.steps if step.name == "distances of pairs")
    alone = replace(plan, second_tvd=1.5, steps=(pairs,))
    both = replace(alone, steps=(pairs, Step("distances of triples", pairs.share, 3, 9, 1.0)))
    assert "Triples  none: their noise" in str(alone)
    assert "Triples  only those looked at above; no second round: its noise" in str(both)
