"""The posterior of columns that were measured together in groups of levels: fast, right on groups, and open inside them."""

import numpy as np
import pytest

import dpcipher as dc

SIZES = {"age": 40, "sex": 2}
SCHEMA = dc.Schema.from_domain(SIZES)
RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(RNG.gamma(3.0, 60.0, size=(40, 2))) + 20
STARTS = list(range(0, 40, 4))
SCALE = 8.0


def _release() -> dc.Release:
    """Single ages alone, and ages in groups of four by sex, with Gaussian noise."""
    noisy = [
        counts + np.round(RNG.normal(0, SCALE, counts.shape)).astype(int)
        for counts in (COUNTS.sum(axis=1), COUNTS.reshape(10, 4, 2).sum(axis=1))
    ]
    return dc.Release.from_tables(
        {("age",): noisy[0], ("age", "sex"): noisy[1]},
        SCHEMA,
        scale=SCALE,
        mechanism="gaussian",
        groups={("age", "sex"): {"age": STARTS}},
    )


@pytest.fixture(scope="module")
def release() -> dc.Release:
    """One release for all tests of this file."""
    return _release()


@pytest.fixture(scope="module")
def drawn(release: dc.Release) -> dc.posterior:
    """Draws of ages by sex."""
    return dc.posterior(release, ("age", "sex"), draws=400, seed=1)


def test_groups_and_margins_have_the_estimates_and_errors_of_least_squares(release, drawn) -> None:
    """With noise far below the counts, the draws of what was measured are those of least squares."""
    rows = drawn.table_draws * drawn.rows[:, None, None]
    for attrs, sums in (
        (("age", "sex"), rows.reshape(400, 10, 4, 2).sum(axis=2)),
        (("age",), rows.sum(axis=2)),
    ):
        estimate, error = np.asarray(release.project(attrs)), np.asarray(release.std_error(attrs))
        assert np.abs(sums.mean(axis=0) - estimate).max() < 0.35 * error.max()
        assert np.allclose(sums.std(axis=0), error, rtol=0.25)


def test_odds_inside_a_group_are_those_of_the_prior(drawn) -> None:
    """No table tells two ages of a group apart by sex: neighbours in an order differ by √2 a priori, for table and rows alike."""
    for draws in (drawn.table_draws, drawn.draws):
        logs = np.log(draws)
        ratios = (logs[:, 0::4, 0] - logs[:, 0::4, 1]) - (logs[:, 1::4, 0] - logs[:, 1::4, 1])
        assert abs(ratios.mean()) < 0.15
        assert ratios.std() == pytest.approx(2**0.5, rel=0.05)


def test_pairs_too_large_to_be_sampled_by_level_are_sampled_by_groups() -> None:
    """Two columns of 60 levels, merged to 6 by 6: by level they would have 3,481 interactions, more than the posterior takes."""
    schema = dc.Schema.from_domain({"x": 60, "y": 60})
    truth = np.outer(np.linspace(1, 3, 60), np.linspace(2, 1, 60)) * 20
    tables = {("x",): truth.sum(axis=1), ("y",): truth.sum(axis=0)}
    tables["x", "y"] = truth.reshape(6, 10, 6, 10).sum(axis=(1, 3))
    starts = list(range(0, 60, 10))
    release = dc.Release.from_tables(
        {attrs: np.round(counts) for attrs, counts in tables.items()},
        schema,
        scale=20.0,
        mechanism="gaussian",
        groups={("x", "y"): {"x": starts, "y": starts}},
    )
    drawn = dc.posterior(release, ("x", "y"), draws=50, seed=2)
    groups = drawn.table_draws.reshape(50, 6, 10, 6, 10).sum(axis=(2, 4))
    assert np.abs(groups.mean(axis=0) - tables["x", "y"] / truth.sum()).max() < 0.001


def test_crossing_groups_are_told_apart_as_finely_as_both_do() -> None:
    """Two tables of the same pair in groups that cross: each keeps its counts."""
    schema = dc.Schema.from_domain({"a": 6, "b": 2, "c": 2})
    truth = np.arange(1, 25).reshape(6, 2, 2) * 40.0
    by_b, by_c = truth.sum(axis=2), truth.sum(axis=1)
    left = np.stack([by_b[[0, 1, 2]].sum(axis=0), by_b[[3, 4, 5]].sum(axis=0)])
    right = np.stack([by_c[[0, 1]].sum(axis=0), by_c[[2, 3]].sum(axis=0), by_c[[4, 5]].sum(axis=0)])
    release = dc.Release.from_tables(
        {("a", "b"): left, ("a", "c"): right},
        schema,
        scale=5.0,
        mechanism="gaussian",
        groups={("a", "b"): {"a": [0, 3]}, ("a", "c"): {"a": [0, 2, 4]}},
    )
    drawn = dc.posterior(release, ("a", "b", "c"), draws=200, seed=3)
    rows = drawn.table_draws.mean(axis=0) * truth.sum()
    assert np.allclose(rows.sum(axis=2).reshape(2, 3, 2).sum(axis=1), left, atol=6)
    assert np.allclose(rows.sum(axis=1).reshape(3, 2, 2).sum(axis=1), right, atol=6)


def test_a_note_says_what_was_measured_in_groups(drawn) -> None:
    """The columns are named, once."""
    assert [note for note in drawn.notes if note.startswith("age × sex was measured in groups")]
