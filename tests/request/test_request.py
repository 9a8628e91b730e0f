"""A request is public, exact, and refused before any row is read or budget spent."""

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import BudgetError, DpcipherError, LedgerError
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.terms import Privacy
from dpcipher.request.request import Auto, Request
from dpcipher.schema import column
from dpcipher.schema.workload import Workload
from dpcipher.tables.query import Query

SCHEMA = dc.Schema.from_domain({"a": 2, "b": 3, "c": 4})
OPEN = dc.Schema((column("age", "integer", min=0, max=99, bins="auto"), column("sex", "boolean")))
TERMS = Privacy.parse(epsilon=1, unit="add-remove")


def test_shares_are_exact_and_add_up_to_all_sets() -> None:
    """By weight, as fractions; noise is that of each share."""
    weights = {("a", "b"): 0.1, ("c",): 0.2}
    request = Request.parse(SCHEMA, TERMS, workload=[("a", "b"), ("c",)], weights=weights, sets=3)
    assert request.shares == (Fraction(1, 9), Fraction(2, 9))
    assert [noise.scale for noise in request.noises] == [9, 4.5]
    assert request.purpose == {"tables": 2, "sets": 3, "mechanism": "laplace"}


def test_what_finding_leaves_pays_for_the_tables() -> None:
    """A thirtieth of the charge finds bins, half as much counts them coarsely; then the same tables share what was left."""
    request = Request.parse(OPEN, TERMS, workload=2)
    assert request.left == Budget(epsilon=1 - Fraction(1, 30) * Fraction(3, 2))
    closed = request.on(OPEN.closed({"age": [0.0, 10.0, 20.0, 100.0]}), Budget(epsilon=Fraction(1, 2)))
    assert closed.given.tables == request.given.tables
    assert closed.given.cells == (3 * 2,)
    assert closed.noises[0].scale == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"workload": 4},
        {"workload": "best"},
        {"workload": [("a", "z")]},
        {"sets": 0},
        {"weights": {("a", "b"): 1.0}},
        {"workload": "auto", "weights": {("a",): 1.0}},
        {"privacy": Privacy.parse(epsilon=1e-12, unit="add-remove")},
        {"privacy": Privacy.parse(epsilon=1e-6, unit="add-remove"), "workload": Auto()},
    ],
    ids=str,
)
def test_what_can_be_refused_is_refused(wrong: dict[str, object]) -> None:
    """Nothing but public facts is needed for that."""
    with pytest.raises(DpcipherError):
        Request.parse(SCHEMA, **{"privacy": TERMS, **wrong})  # type: ignore[arg-type]


def test_a_search_that_would_be_refused_costs_nothing(tmp_path: Path) -> None:
    """A budget that pays for one table and not for a level of a search: refused before the ledger is created."""
    rows = pd.DataFrame({"age": range(100), "sex": True})
    words = {"workload": [("age", "sex")], "epsilon": 3e-12, "unit": "add-remove"}
    with pytest.raises(BudgetError, match="scale"):
        dc.measure(rows, OPEN, **words, ledger=tmp_path / "t.ledger", create=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BudgetError, match="scale"):
        dc.plan(OPEN, **words)
    with pytest.raises(LedgerError):
        dc.Ledger.open(tmp_path / "t.ledger")


@pytest.mark.parametrize(
    "query", [Query((0, 1), contrasts=(1,)), Query((0, 1), centred=True)], ids=["contrasts", "centred"]
)
def test_what_a_row_moves_further_than_counts_is_no_part_of_a_workload(query: Query) -> None:
    """The noise of a workload is priced for one row in one cell; a row moves a contrast of three levels by four."""
    assert query.moved(SCHEMA.shape, "add-remove")[0] > 1
    with pytest.raises(DpcipherError, match="must hold tables of counts"):
        Workload((("a", "b"),), (query,), (6,))
