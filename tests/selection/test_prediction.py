"""What is predicted of tables that were not measured: independent columns, and rows fitted to what was."""

import numpy as np
import pytest

from dpcipher.selection.allocation import interaction_risk
from dpcipher.selection.prediction import EMPTY, GRAIN, Prediction, fitted, independent
from dpcipher.tables.measurement import Measurement
from release.measured import noisy, reconcile

SHAPE = (2, 3, 4)
ONE_WAY = [np.array([300.0, 700.0]), np.array([100.0, 250.0, 650.0]), np.array([400.0, 300.0, 200.0, 100.0])]


def one_way(variance: float) -> list[Measurement]:
    """Exact counts that are said to have so much noise."""
    return [noisy((axis,), counts, variance) for axis, counts in enumerate(ONE_WAY)]


def test_independent_columns_are_predicted_by_products() -> None:
    """Nearly exact one-way tables: any table is the product of its margins, times the rows."""
    prediction = independent(reconcile(SHAPE, one_way(1e-6)))
    assert prediction is not None
    assert prediction.total == pytest.approx(1000)
    expected = np.einsum("i,j,k->ijk", *ONE_WAY) / 1000**2
    np.testing.assert_allclose(prediction.predict((0, 1, 2)), expected, rtol=1e-3)
    np.testing.assert_allclose(prediction.predict((0, 2)), expected.sum(axis=1), rtol=1e-3)


def test_what_cannot_be_is_predicted_to_be_empty() -> None:
    """A structural zero holds no rows, in its own table and in larger ones; the rest holds all of them."""
    mask = np.zeros((2, 3), dtype=bool)
    mask[1, 2] = True
    prediction = independent(reconcile(SHAPE, one_way(1e-6), zeros=(((0, 1), mask),)))
    assert prediction is not None
    for axes in ((0, 1), (0, 1, 2)):
        table = prediction.predict(axes)
        assert (table[1, 2] == 0).all()
        assert table.sum() == pytest.approx(prediction.total)


def test_goals_are_whole_sixteenths_of_the_prediction() -> None:
    """Never off by more than half a sixteenth, and whole numbers, so that distances are."""
    table = np.random.default_rng(0).gamma(1.0, 7.0, (3, 4))
    goal = Prediction(table.sum(), lambda axes: table).goal((0, 1))
    assert goal.dtype == np.int64
    assert np.abs(goal / GRAIN - table).max() <= 0.5 / GRAIN


def test_rows_are_fitted_to_pairs_that_were_measured() -> None:
    """A measured pair is reproduced, its third column is independent of it, and the same tables give the same rows."""
    pair = np.array([[280.0, 15.0, 5.0], [20.0, 35.0, 645.0]])
    pair *= 1000 / pair.sum()
    measured = [noisy((0, 1), pair, 1e-6), noisy((2,), ONE_WAY[2], 1e-6)]
    prediction, again = (fitted(reconcile(SHAPE, measured)) for _ in range(2))
    assert prediction is not None
    assert again is not None
    np.testing.assert_allclose(prediction.predict((0, 1)), pair, atol=5)
    expected = np.multiply.outer(pair, ONE_WAY[2]) / 1000
    assert np.abs(prediction.predict((0, 1, 2)) - expected).sum() < 40
    np.testing.assert_array_equal(prediction.predict((0, 1, 2)), again.predict((0, 1, 2)))


def test_an_empty_cell_of_fitted_rows_may_hold_some() -> None:
    """The risk of a table counts a quarter row in every cell; that of independent columns, whose cells are never empty, does not."""
    precision, table = np.array([0.0, 0.01, 1.0]), np.array([[90.0, 0.0], [0.0, 10.0]])
    for slack in (0.0, EMPTY):
        found = Prediction(100.0, lambda axes: table, slack).risk((0, 1), 30.0)(precision)
        np.testing.assert_array_equal(found, interaction_risk(table + slack, 30.0, precision))
    assert EMPTY == 0.25


@pytest.mark.parametrize("predict", [independent, fitted])
def test_where_noise_has_drowned_the_rows_nothing_is_predicted(predict) -> None:
    """A total at or below zero: no prediction."""
    drowned = [noisy((axis,), counts - 5000, 1e6) for axis, counts in enumerate(ONE_WAY)]
    assert predict(reconcile(SHAPE, drowned)) is None
