"""Structural zeros that together, but not one by one, leave a row without any level."""

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc

ZEROS = [
    {"impossible": {"a": ["0"], "c": ["1"]}, "becomes": {"c": "0"}},
    {"impossible": {"b": ["0"], "c": ["0"]}, "becomes": {"b": "1"}},
]


@pytest.mark.parametrize("workload", [1, 2])
@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_rows_that_zeros_leave_nowhere_to_go_are_not_drawn(workload: int) -> None:
    """a = 0 and b = 0 leave no level of c: the rows engine makes no such row, and does not fail once the budget is charged."""
    columns = [{"name": name, "kind": "categorical", "levels": ["0", "1"]} for name in "abc"]
    schema = dc.Schema.from_dict({"columns": columns, "zeros": ZEROS})
    codes = np.array(
        [row for row in np.ndindex(2, 2, 2) if not ((row[0] == 0 and row[2] == 1) or row[1:] == (0, 0))]
    )
    rows = pd.DataFrame(np.repeat(codes, 60, axis=0).astype(str), columns=list("abc"))
    fitted = dc.Cipher(1.0, unit="add-remove", workload=workload, engine="rows").fit(rows, schema)
    drawn = fitted.sample(2_000, seed=1)
    assert len(drawn) == 2_000
    assert not ((drawn.a == "0") & (drawn.c == "1")).any()
    assert not ((drawn.b == "0") & (drawn.c == "0")).any()
