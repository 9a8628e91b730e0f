"""Interactions that no table shows, left open, against the model solved by hand."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import dpcipher as dc
from dpcipher.inference.unmeasured import leave_open, smallest_unmeasured
from dpcipher.posteriors.prior import Levels, contrast_sd
from dpcipher.posteriors.raking import rake
from dpcipher.tables.query import Query


def odds(tables: np.ndarray) -> np.ndarray:
    """The log odds ratio of every 2×2 table."""
    return np.log(tables[:, 0, 0] * tables[:, 1, 1] / (tables[:, 0, 1] * tables[:, 1, 0]))


def test_measured_tables_stay_as_they_are() -> None:
    """All pairs of a 2×3×3 table before and after, to the tolerance of raking."""
    joints = np.random.default_rng(0).dirichlet(np.ones(18), size=20).reshape(20, 2, 3, 3)
    pairs = [(0, 1), (0, 2), (1, 2)]
    opened = leave_open(joints, [Levels(2), Levels(3), Levels(3)], pairs, [(0, 1, 2)], seed=1)
    for drop in (1, 2, 3):
        np.testing.assert_allclose(opened.sum(axis=drop), joints.sum(axis=drop), atol=1e-6)
    assert np.abs(opened - joints).max() > 0.005


def test_an_open_pair_has_the_priors_log_odds_ratio() -> None:
    """Two columns measured alone: the log odds ratio is normal with the standard deviation that the prior gives a pair."""
    joints = np.repeat(np.outer([0.3, 0.7], [0.6, 0.4])[None], 4_000, axis=0)
    opened = leave_open(joints, [Levels(2)] * 2, [(0,), (1,)], [(0, 1)], seed=2)
    assert odds(opened).std() == pytest.approx(contrast_sd(2), rel=0.05)
    assert odds(opened).mean() == pytest.approx(0, abs=0.1)
    np.testing.assert_allclose(opened.sum(axis=2)[:, 0], 0.3, atol=1e-6)


def test_raking_a_pair_is_the_table_with_that_odds_ratio_and_those_margins() -> None:
    """Against the one free cell found by a root finder."""
    goal = np.outer([0.3, 0.7], [0.6, 0.4])[None]
    ratio = 1.7
    start = np.array([[np.exp(ratio), 1.0], [1.0, 1.0]])[None]

    def miss(logit: float) -> float:
        cell = 0.3 * expit(logit)
        return float(np.log(cell * (0.7 - 0.6 + cell) / ((0.3 - cell) * (0.6 - cell))) - ratio)

    cell = 0.3 * expit(brentq(miss, -8, 8))
    assert rake(start, goal, [Query((0,)), Query((1,))])[0, 0, 0] == pytest.approx(cell, abs=1e-6)


def test_nothing_to_open_changes_nothing() -> None:
    """Sets inside a measured table are known."""
    joints = np.random.default_rng(1).dirichlet(np.ones(4), size=3).reshape(3, 2, 2)
    assert leave_open(joints, [Levels(2)] * 2, [(0, 1)], [(0, 1)], seed=1) is joints


def test_impossible_cells_stay_empty() -> None:
    """A structural zero of the joint is one of the opened joint."""
    joints = np.random.default_rng(2).dirichlet(np.ones(8), size=5).reshape(5, 2, 2, 2)
    joints[:, 0, 0] = 0
    opened = leave_open(
        joints / joints.sum(axis=(1, 2, 3), keepdims=True), [Levels(2)] * 3, [(0, 1), (2,)], [(0, 2)], seed=3
    )
    assert (opened[:, 0, 0] == 0).all()
    np.testing.assert_allclose(opened.sum(axis=(1, 2, 3)), 1, atol=1e-6)


def test_the_smallest_unmeasured_sets() -> None:
    """Pairs of four columns leave the triples; a chain leaves the pairs off it; what is asked for is left out."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert smallest_unmeasured(4, pairs) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    assert smallest_unmeasured(3, [(0, 1), (1, 2)]) == [(0, 2)]
    assert smallest_unmeasured(3, [(0, 1, 2)]) == []
    assert smallest_unmeasured(4, pairs, asked=[(0, 1, 2)]) == [(0, 1, 3), (0, 2, 3), (1, 2, 3)]


def test_closed_intervals_that_are_the_same_are_said_to_be() -> None:
    """The equations of a logistic model of two columns hold pairs alone; those of three columns the triple of these, which no table shows."""
    schema = dc.Schema.from_domain({"a": 2, "b": 2, "c": 2, "y": 2})
    cells = np.random.default_rng(5).dirichlet(np.ones(16)).reshape(schema.shape) * 4_000
    pairs = {
        (schema.attrs[i], schema.attrs[j]): cells.sum(axis=tuple({0, 1, 2, 3} - {i, j})).round()
        for i, j in combinations(range(4), 2)
    }
    release = dc.Release.from_tables(pairs, schema, scale=2.0)
    notes = {
        formula: "\n".join(dc.fit_models(release, formula, "logistic", draws=100, seed=1).notes)
        for formula in ("y ~ a + b", "y ~ a + b + c")
    }
    assert "closed_low to closed_high, which are much the same here" in notes["y ~ a + b"]
    assert "closed_low to closed_high: at least 0." in notes["y ~ a + b + c"]
