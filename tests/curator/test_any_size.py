"""Nothing fails after the charge, whatever the size of the noise and the number of rows: a request is refused before it, or answered."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcipher as dc
from dpcipher.errors import DpcipherError
from dpcipher.methods import METHODS

CLOSED = dc.Schema.from_domain({"a": 2, "b": 3, "c": 4})
OPEN = dc.Schema.from_dict(
    {
        "columns": {
            "a": {"kind": "integer", "min": 0, "max": 1},
            "b": {"kind": "integer", "min": 0, "max": 99, "bins": "auto"},
            "c": {"kind": "integer", "min": 0, "max": 3},
        }
    }
)
# Where a selection looks at all pairs, at some or at none, and where a table is taken for empty.
ROWS = st.one_of(st.integers(1, 12), st.integers(318, 366), st.integers(0, 3_000))
EPSILONS = st.floats(-13, 5).map(lambda power: 10.0**power)


def rows(n_rows: int, schema: dc.Schema) -> pd.DataFrame:
    """Rows in which columns go together."""
    rng = np.random.default_rng(n_rows)
    a = rng.integers(0, 2, n_rows)
    b = (a + rng.integers(0, 2, n_rows)) * (1 if schema is CLOSED else 40)
    return pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 4, n_rows)})


def fails_after_the_charge(ask: Any, options: dict[str, Any]) -> str:
    """Ask with a ledger of its own, of which a refusal leaves no entry and an answer one; else what is wrong."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = dc.Ledger.create(Path(folder) / "people.ledger", **LIMIT, unit=options["unit"])
        try:
            answer = ask(**options, ledger=ledger)
        except DpcipherError as refused:
            answer = refused
        expected = 0 if isinstance(answer, DpcipherError) else 1
        return "" if len(ledger.entries) == expected else f"{len(ledger.entries)} entries: {answer}"


LIMIT = {"epsilon": 10**6}


@pytest.mark.parametrize("unit", ["add-remove", "replace"])
@pytest.mark.parametrize("schema", [CLOSED, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("workload", [1, 2, "auto", dc.Auto(max_order=2, max_cells=20)], ids=str)
@settings(max_examples=30)
@given(epsilon=EPSILONS, n_rows=ROWS)
def test_measure_never_fails_after_the_charge(
    workload: int | str | dc.Auto, schema: dc.Schema, unit: str, epsilon: float, n_rows: int
) -> None:
    """Given tables, and chosen ones with the whole table among them and without it; bins declared and to be found."""
    data = rows(n_rows, schema)
    wrong = fails_after_the_charge(
        lambda **options: dc.measure(data, schema, workload=workload, **options),
        {"epsilon": epsilon, "unit": unit},
    )
    assert wrong == ""


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.needs_budget])
@settings(max_examples=30)
@given(epsilon=EPSILONS, n_rows=ROWS, unit=st.sampled_from(["add-remove", "replace"]), is_open=st.booleans())
def test_no_method_fails_after_the_charge(
    name: str, epsilon: float, n_rows: int, unit: str, is_open: bool
) -> None:
    """Every synthesizer of the registry."""
    schema = OPEN if is_open else CLOSED
    data = rows(n_rows, schema)
    wrong = fails_after_the_charge(
        lambda epsilon, **options: METHODS[name](epsilon, **options).fit(data, schema),
        {"epsilon": epsilon, "unit": unit},
    )
    assert wrong == ""
