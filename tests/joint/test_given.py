"""Conditions on values inside bins: every row has a value that was asked for."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import DpcipherWarning
from dpcipher.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("age", "integer", min=0, max=99, bins=10, missing="level"),
        Column("pay", "number", edges=[0, 10, 20, 50]),
        Column("day", "date", min="2024-01-01", max="2024-12-31", bins=12),
        Column("sex", "categorical", levels=["F", "M"]),
        Column("code", "integer", min=0, max=99, bins=5, missing_values=["N"]),
    )
)


def joint() -> dc.Joint:
    """A joint over invented tables."""
    rng = np.random.default_rng(3)
    pairs = {(a, b): rng.integers(20, 90, (SCHEMA.n_cells([a]), SCHEMA.n_cells([b])))
             for a, b in (("age", "sex"), ("pay", "sex"), ("day", "sex"), ("sex", "code"))}  # fmt: skip
    solved = dc.solve(dc.Release.from_tables(pairs, SCHEMA, scale=3.0))
    assert isinstance(solved, dc.Joint)
    return solved


JOINT = joint()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"age": 20}, {20}),
        ({"age": "20"}, {20}),
        ({"age": [21, 25, 44]}, {21, 25, 44}),
        ({"pay": 12.5}, {12.5}),
        ({"day": "2024-02-29"}, {dt.date(2024, 2, 29)}),
        ({"code": 7}, {7}),
        ({"code": "N"}, {"N"}),
    ],
)
def test_rows_have_the_values_that_were_asked_for(given: dict[str, object], expected: set[object]) -> None:
    """A value, a list of them, a date, a code of a column that also holds texts."""
    (name,) = given
    rows = JOINT.sample(400, seed=1, given=given)
    cells = rows[name].dt.date if name == "day" else rows[name]
    assert {float(cell) if str(cell).isdigit() else cell for cell in cells} == expected
    assert rows["sex"].nunique() == 2


def test_a_bin_that_is_asked_for_by_its_label_is_drawn_whole() -> None:
    """Also where a value of it is asked for too."""
    for given in ({"age": "20..29"}, {"age": ["20..29", 25]}):
        ages = JOINT.sample(2_000, seed=2, given=given)["age"]
        assert set(ages) == set(range(20, 30))
    assert JOINT.sample(50, seed=2, given={"age": None})["age"].isna().all()


def test_values_within_a_bin_are_as_likely_as_each_other_and_bins_as_the_joint_has_them() -> None:
    """Against the probabilities of the bins."""
    ages = JOINT.sample(20_000, seed=4, given={"age": [21, 29, 44]})["age"]
    shares = pd.Series(ages).value_counts(normalize=True)
    table = np.asarray(JOINT.project("age"))
    low = table[2] / (table[2] + table[4])
    assert shares[44] == pytest.approx(1 - low, abs=0.02)
    assert shares[21] == pytest.approx(low / 2, abs=0.02)


def test_a_range_that_cuts_bins_says_so() -> None:
    """Only whole bins are drawn from, and the warning names them; whole bins are no matter for one."""
    with pytest.warns(DpcipherWarning, match=r"whole bins alone, 30..39 to 30..39"):
        ages = JOINT.sample(200, seed=1, given={"age": {"min": 25, "max": 44}})["age"]
    assert ages.between(30, 39).all()
    assert JOINT.sample(200, seed=1, given={"age": {"min": 20, "max": 39}})["age"].between(20, 39).all()
