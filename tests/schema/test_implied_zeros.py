"""Structural zeros that follow from others, against all rows of small tables written out."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.schema.rules import zeros as implied
from dpcipher.schema.rules.zeros import implied_zeros
from dpcipher.tables.domain import zero_cells
from effort import at_most


def random_zeros(rng, shape, pairs):
    """Zeros of some pairs of a table, with about a third of their cells."""
    return [(pair, rng.random([shape[axis] for axis in pair]) < 0.35) for pair in pairs]


def empty_cells(shape, zeros, pair):
    """The cells of a pair that no row of the whole table is in: written out."""
    possible = ~zero_cells(tuple(range(len(shape))), shape, zeros)
    return ~possible.any(axis=tuple(axis for axis in range(len(shape)) if axis not in pair))


@pytest.mark.parametrize("seed", range(40))
def test_no_possible_cell_is_called_impossible(seed):
    """Whatever pairs have zeros: what follows from them is empty in the whole table."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 5, 5))
    pairs = [pair for pair in combinations(range(5), 2) if rng.random() < 0.5]
    zeros = random_zeros(rng, shape, pairs)
    found = implied_zeros(zeros, shape)
    assert (
        zero_cells(tuple(range(5)), shape, [*zeros, *found]).sum()
        == zero_cells(tuple(range(5)), shape, zeros).sum()
    )
    for pair, mask in found:
        declared = zero_cells(pair, shape, [zero for zero in zeros if zero[0] == pair])
        assert (mask & ~declared).any()
        assert not (mask & ~empty_cells(shape, zeros, pair)).any()


@pytest.mark.parametrize(
    "tree",
    [[(0, 1), (0, 2), (0, 3), (0, 4)], [(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 3), (1, 3), (2, 3), (2, 4)]],
)
@pytest.mark.parametrize("seed", range(8))
def test_all_that_follows_along_a_tree_is_found(tree, seed):
    """Where pairs with zeros form a tree, a pair is impossible exactly where the whole table has no row."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(3, 6, 5))
    zeros = random_zeros(rng, shape, tree)
    for _, mask in zeros:  # every level goes with some level of the other column
        longest = np.arange(max(mask.shape))
        mask[longest % mask.shape[0], longest % mask.shape[1]] = False
    known = [*zeros, *implied_zeros(zeros, shape)]
    for pair in combinations(range(5), 2):
        np.testing.assert_array_equal(zero_cells(pair, shape, known), empty_cells(shape, zeros, pair))


def test_work_is_bounded(monkeypatch):
    """Many columns of many levels tied to one take little time; what was found until then is right."""
    rng = np.random.default_rng(0)
    shape = (50, *[200] * 40)
    zeros = [((0, axis), rng.random((50, 200)) < 0.9) for axis in range(1, 41)]
    with at_most(seconds=30):
        assert len(implied_zeros(zeros, shape)) > 100
    monkeypatch.setattr(implied, "MOST_WORK", 0)
    assert implied_zeros(zeros, shape) == []


RULES = [
    {"rule": f"age {sign} {year} -> {name} {what} 'N'", "breaking": "follow"}
    if what == "=="
    else f"age {sign} {year} -> {name} {what} 'N'"
    for name, year in (("married", 15), ("income", 15), ("school", 5))
    for sign, what in (("<", "=="), (">=", "!="))
]


def people(n_rows):
    """Rows with three columns that are N for children, of two ages."""
    rng = np.random.default_rng(4)
    age = rng.integers(0, 80, n_rows)
    married, school = (rng.choice(levels, n_rows) for levels in (["no", "yes"], ["some", "none"]))
    income = rng.choice(["a", "b", "c", "d"], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame(
        {
            "income": np.where(age < 15, "N", income),
            "married": np.where(age < 15, "N", married),
            "school": np.where(age < 5, "N", school),
            "age": age,
        }
    )


def test_columns_that_one_condition_ties_share_what_they_know():
    """From a frame to rows: the children of all tables are one number, and rows that are drawn column by column keep it."""
    columns = {
        "income": {"kind": "categorical", "levels": ["a", "b", "c", "d", "N"]},
        "married": {"kind": "categorical", "levels": ["no", "yes", "N"]},
        "school": {"kind": "categorical", "levels": ["some", "none", "N"]},
        "age": {"kind": "integer", "edges": [0, 5, 15, 30, 45, 60, 80]},
    }
    schema = dc.Schema.from_dict({"columns": columns, "rules": RULES})
    income, married = schema.attrs.index("income"), schema.attrs.index("married")
    known = zero_cells((income, married), schema.shape, schema.zero_masks)
    assert known[-1].tolist() == [True, True, False]
    assert known[:, -1].tolist() == [True, True, True, True, False]
    release = dc.measure(people(4_000), schema, epsilon=0.7, workload=2, unit="add-remove")
    reconciled = release.reconciled
    children = [reconciled.table((schema.attrs.index(name),))[-1] for name in ("income", "married")]
    children.append(reconciled.table((schema.attrs.index("age"),))[:2].sum())
    np.testing.assert_allclose(children, children[0])
    rows = dc.solve(release, engine="rows").sample(20_000, seed=1)
    assert ((rows["married"] == "N") == (rows["income"] == "N")).all()
    sigma = reconciled.variance((income,))[-1] ** 0.5
    assert abs((rows["married"] == "N").mean() * reconciled.total - children[0]) < 2 * sigma + 40
