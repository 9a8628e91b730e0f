"""What a plan says about rows that are held: as many bytes as are then held, and where."""

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.curator import held
from dpcipher.curator.counts import receive

SCHEMA = dc.Schema.from_domain({"a": 256, "b": 257, "c": 70_000})
TERMS = {"epsilon": 1.0, "unit": "add-remove"}
LARGE = dc.Auto(
    max_cells=20_000_000
)  # tables that are not counted before it is known which of them are asked for


def test_the_plan_counts_the_bytes_that_are_held() -> None:
    """One, two and four bytes for columns of 256, 257 and 70,000 levels, as the rows then take."""
    plan = dc.plan(SCHEMA, workload=LARGE, n_rows=1_000, **TERMS)
    frame = pd.DataFrame(np.zeros((1_000, 3), dtype=int), columns=list("abc"))
    (block,) = receive(frame, SCHEMA).rows()
    assert plan.held is not None
    assert plan.held.n_bytes == sum(column.nbytes for column in block) == 7_000
    assert not plan.held.in_file
    assert plan.to_dict()["held"]["row_bytes"] == 7
    assert (
        "Rows     codes are held until the tables are chosen and measured: 7 bytes a row, 1 MB in memory."
        in str(plan)
    )


@pytest.mark.parametrize("n_rows", [None, 10**9])
def test_the_plan_names_the_file_where_rows_are_many(n_rows: int | None) -> None:
    """Also where no number of rows was given, as what may happen."""
    plan = dc.plan(SCHEMA, workload=LARGE, n_rows=n_rows, **TERMS)
    assert "temporary file without a name, in the folder of TMPDIR" in str(plan)
    assert plan.held is not None
    assert plan.held.in_file is (None if n_rows is None else 7 * n_rows > held.MEMORY_BYTES)


def test_nothing_is_held_where_tables_are_given_or_foreseen_or_the_full_table_is_small() -> None:
    """Unless rows are limited for each person."""
    assert dc.plan(SCHEMA, workload="auto", **TERMS).held is None
    small = dc.Schema.from_domain({"a": 2, "b": 3})
    assert dc.plan(small, **TERMS).held is None
    assert dc.plan(small, workload="auto", **TERMS).held is None
    held = dc.plan(small, person="who", **TERMS).held
    assert held is not None
    assert held.until == "the rows of each person are known"
