"""Conditions on values inside bins: every row has a value that was asked for."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import ConditionError, DpcipherWarning
from dpcipher.schema import Schema, column

SCHEMA = Schema(
    (
        column("age", "integer", min=0, max=99, bins=10, missing="level"),
        column("pay", "number", edges=[0, 10, 20, 50]),
        column("day", "date", min="2024-01-01", max="2024-12-31", bins=12),
        column("sex", "categorical", levels=["F", "M"]),
        column("code", "integer", min=0, max=99, bins=5, missing_values=["N"]),
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


@pytest.mark.filterwarnings("error")
def test_the_edges_of_numbers_cut_no_bin() -> None:
    """10 is where two bins of pay meet: 0 to 10 is the whole of the first, and no matter for a warning."""
    pays = JOINT.sample(200, seed=1, given={"pay": {"min": 0, "max": 10}})["pay"]
    assert pays.between(0, 10, inclusive="left").all()


CUT = Schema(
    (
        column("income", "number", edges=[8192, 9152, 16384], decimals=2, special=[0], other="nearest"),
        column("score", "integer", min=0, max=100, bins=4, step=5, missing_values=[-9]),
        column("year", "integer", min=2000, max=2024, other="nearest"),
        column("start", "date", min="2020-01-01", max="2024-12-31", bins=5, other="nearest"),
    )
)


@pytest.mark.parametrize(
    ("name", "wrong", "right", "rule"),
    [
        ("income", 1234, 8192, "numbers from 8192 to 16384 of at most 2 decimals, 0"),
        ("income", 9000.555, 9000.55, "numbers from 8192 to 16384 of at most 2 decimals, 0"),
        ("income", "16384.01", "16384", "numbers from 8192 to 16384 of at most 2 decimals, 0"),
        ("income", [0, 1], 0, "numbers from 8192 to 16384 of at most 2 decimals, 0"),
        ("score", 12, 15, "multiples of 5 from 0 to 100, and for what is missing -9"),
        ("score", 105, -9, "multiples of 5 from 0 to 100, and for what is missing -9"),
        ("year", 2050, 2024, "whole numbers from 2000 to 2024"),
        ("start", "2031-01-01", "2024-12-31", "dates from 2020-01-01 to 2024-12-31"),
    ],
)
def test_a_value_that_no_row_can_have_is_refused_with_those_that_it_can(
    name: str, wrong: object, right: object, rule: str
) -> None:
    """Also where a private row with it would be put into the nearest bin; its neighbour on the grid and in the range is taken."""
    with pytest.raises(ConditionError, match=rf"column '{name}' has no (value|level) .*; it has {rule}(;|$)"):
        CUT.allowed({name: wrong})
    (mask,) = CUT.allowed({name: right}).values()
    assert mask.sum() == 1


def test_a_range_without_a_whole_bin_is_refused_with_the_bins() -> None:
    """The range of the column and its first bins are said, and no label that merely looks alike."""
    with pytest.raises(ConditionError, match=r"no level within .* from 0 to 99; its bins are 0..9, 10..19"):
        JOINT.sample(5, given={"age": {"min": 100, "max": 200}})
