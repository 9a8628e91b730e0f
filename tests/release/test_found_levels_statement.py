"""The statement of a release that found levels: what a file may say of it, and what the pages say to people."""

from typing import Any

import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import ReleaseError
from dpcipher.pages.words import protection
from dpcipher.release.statement import Statement

EVENT = {
    "type": "levels",
    "what": "levels of city",
    "share": "1/20",
    "cost": 0.001,
    "delta": "1/2000000",
    "threshold": 104,
}
BUDGET = {"epsilon": "1", "delta": "1/1000000"}


def stated(budget: dict[str, str] = BUDGET, **event: Any) -> Statement:
    """A statement with one such event."""
    certificate = {
        "measure": "rho",
        "total": 0.02,
        "by": "test",
        "delta": "1/2000000",
        "events": [{**EVENT, **event}],
    }
    unit = {"relation": "add-remove", "max_rows": 1}
    return Statement(status="unrecorded", unit=unit, budget=budget, certificate=certificate)


@pytest.mark.parametrize("delta", ["1/0", "0", "2", "1e-6", 0.1, None, "9" * 5000, "-1/2"])
def test_a_delta_that_is_none_is_refused(delta: object) -> None:
    """It is computed with, so that it must be a probability."""
    with pytest.raises(ReleaseError, match=r"certificate\.events\[0\]\.delta .* must be a fraction such as"):
        stated(delta=delta)


@pytest.mark.parametrize("budget", [{"epsilon": "1"}, {"rho": "1/10"}])
def test_a_promise_without_delta_has_no_such_event(budget: dict[str, str]) -> None:
    """A file that claims both contradicts itself."""
    with pytest.raises(ReleaseError, match=r"budget: delta \(None\) must be given where levels are found"):
        stated(budget)


def test_pages_say_what_was_found_and_what_kept_others_out() -> None:
    """The threshold and the chance, beside the budget."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "city": {"kind": "categorical", "levels": "discover", "pattern": "[A-Z]+", "max_length": 3}
            }
        }
    )
    release = dc.measure(
        pd.DataFrame({"city": ["AB"] * 900}), schema, workload=1, epsilon=1.0, delta=1e-6, unit="add-remove"
    )
    said = protection(release)
    assert said[2].startswith(
        "The levels of city were found in the rows: a text was named only if its count, with noise, reached 74."
    )
    assert "at most 5e-07" in said[2]
