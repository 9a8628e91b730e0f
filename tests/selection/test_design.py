"""Designs of small tables: precision against least squares, and never knowingly worse than one order alone."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.terms import Unit
from dpcipher.request.request import Auto
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import NoiseModel
from dpcipher.selection.design import FEW_COLUMNS, NEGLIGIBLE, SmallTable, design_tables
from dpcipher.selection.target import SelectionTarget
from release.measured import noisy, reconcile

SHAPES = [(2, 2, 3, 3), (6, 9, 3, 3, 3), (2, 5)]
BUDGETS = [{"epsilon": math.exp(-2)}, {"epsilon": 7.0}, {"rho": 1e-3}, {"rho": 0.5}]


def small(
    shape: tuple[int, ...], targets: tuple[int, ...], rows: float = 500.0, **budget: float
) -> SmallTable:
    """A small table, all of whose orders may be measured."""
    noise = NoiseModel(Budget.parse(**budget), Unit("add-remove"))
    return SmallTable(shape, rows, noise, tuple(range(1, len(shape) + 1)), targets)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_precision_is_that_of_least_squares(budget: dict[str, float]) -> None:
    """Every table of a mixed design, reconciled: the variance of every interaction is the inverse of its precision."""
    table = small((2, 3, 4), (1, 2, 3), **budget)
    shares = np.array([0.25, 0.5, 0.25])
    measured = []
    for order, share in zip(table.orders, shares, strict=True):
        sets = list(combinations(range(3), order))
        variance = 1 / table.noise.discrete_precision(float(share) / len(sets))
        measured += [noisy(axes, np.zeros([table.shape[a] for a in axes]), variance) for axes in sets]
    exact = reconcile(table.shape, measured)
    each = shares / [math.comb(3, order) for order in table.orders]
    precision = table._spread @ [table.noise.discrete_precision(share) for share in each]
    for axes, found in zip(table._components, precision, strict=True):
        assert found == pytest.approx(1 / exact.interaction_variance(axes), rel=1e-9)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_order_alone_is_better_for_its_target(shape: tuple[int, ...], budget: dict[str, float]) -> None:
    """One target order: the best of all single orders. Several: the ratios to the best add up to no more than with any single order."""
    orders = tuple(range(1, min(3, len(shape)) + 1))
    least = {}
    for order in orders:
        table = small(shape, (order,), **budget)
        alone = [table.errors(shares)[order] for shares in np.eye(len(shape))]
        assert table.best().errors[order] == pytest.approx(min(alone))
        least[order] = min(alone) + NEGLIGIBLE
    table = small(shape, orders, **budget)

    def ratios(errors: dict[int, float]) -> float:
        return sum((errors[order] + NEGLIGIBLE) / least[order] for order in orders)

    design = table.best()
    assert ratios(design.errors) <= min(ratios(table.errors(shares)) for shares in np.eye(len(shape))) + 1e-9
    assert sum(design.shares.values()) == pytest.approx(1)
    assert sum(table.tables(design).values()) == pytest.approx(1)


def test_more_budget_and_more_rows_lower_every_error() -> None:
    """The same design at ten times the budget, or with ten times the rows."""
    shares = np.array([0.25, 0.25, 0.25, 0.25])
    plain = small(SHAPES[0], (1, 2, 3), epsilon=1.0).errors(shares)
    for other in (
        small(SHAPES[0], (1, 2, 3), epsilon=10.0),
        small(SHAPES[0], (1, 2, 3), 5000.0, epsilon=1.0),
    ):
        assert all(error < plain[order] for order, error in other.errors(shares).items())


def test_under_pure_epsilon_few_cells_are_measured_whole() -> None:
    """The paper's 2×2×3×3: noise grows with the number of tables, and thirty-six cells are one table."""
    for epsilon in np.exp([-2, -1, 0, 1, 2]):
        assert set(small(SHAPES[0], (1, 2, 3), epsilon=float(epsilon)).best().shares) == {4}


def chosen(schema: dict[str, int], auto: Auto, rows: float = 500.0) -> dict[tuple[int, ...], float] | None:
    """The tables of a design at rho = .01, or None."""
    target = SelectionTarget.of(auto, Schema.from_domain(schema))
    noise = NoiseModel(Budget.parse(rho=0.01), Unit("replace"))
    return design_tables(target, noise, rows, target.orders)


def test_every_column_is_covered_and_no_table_is_wider_than_allowed() -> None:
    """A column of one level goes with the first table; `max_order` bounds the design."""
    schema = {"a": 2, "b": 1, "c": 3, "d": 2, "e": 1}
    for auto in (Auto(), Auto(max_order=2), Auto(target=1), Auto(target=3)):
        tables = chosen(schema, auto)
        assert tables is not None
        assert {axis for axes in tables for axis in axes} == set(range(5))
        assert sum(tables.values()) == pytest.approx(1)
    narrow = chosen(schema, Auto(max_order=2))
    assert narrow is not None
    assert max(len(set(axes) - {1, 4}) for axes in narrow) <= 2


def test_many_columns_are_measured_by_a_design_only_where_noise_is_small() -> None:
    """Ten binary columns: a design with many rows, a look at them with few; a few columns always have a design."""
    schema = {f"c{place}": 2 for place in range(10)}
    assert chosen(schema, Auto(), 1e6) is not None
    assert chosen(schema, Auto(), 100.0) is None
    few = {f"c{place}": 2 for place in range(FEW_COLUMNS)}
    assert chosen(few, Auto(), 2.0) is not None


@pytest.mark.parametrize(
    ("auto", "small_enough"),
    [
        (Auto(), True),
        (Auto(max_cells=23), False),
        (Auto(max_order=1), False),
        (Auto(target=[("a", "b")]), False),
        (Auto(predict="a"), False),
        (Auto(column_weights={"a": 2.0}), False),
        (Auto(column_weights=dict.fromkeys("abc", 2.0)), True),
    ],
)
def test_designs_are_for_whole_tables_whose_columns_count_alike(auto: Auto, small_enough: bool) -> None:
    """Not where the whole is too large, or some tables count more than others."""
    assert SelectionTarget.of(auto, Schema.from_domain({"a": 2, "b": 3, "c": 4})).is_small == small_enough
