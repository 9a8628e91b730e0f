"""Functions of the joint distribution, from one release, against answers that are known otherwise."""

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError
from dpcipher.inference.estimate import middle
from dpcipher.privacy.draws import SeededNoise
from dpcipher.tables.measurement import Noise, NoiseKind

SCHEMA = dc.Schema.from_domain({"a": 2, "b": 3})
COUNTS = np.array([[300, 200, 100], [150, 150, 100]])


def release(scale: float, mechanism: NoiseKind = "laplace") -> dc.Release:
    """A noisy table."""
    counts = SeededNoise(0).add(COUNTS.astype(np.int64), Noise(mechanism, scale))
    return dc.Release.from_tables(
        {("a", "b"): counts}, SCHEMA, scale=scale, mechanism=mechanism, n_rows=1_000
    )


def test_a_linear_query_agrees_with_the_closed_form() -> None:
    """Without sampling and with normal noise, the share of a cell has the estimate and the error of the least-squares query."""
    source = release(7.0, "gaussian")
    ours = dc.estimate(source, lambda joint: joint[0, 0], ("a", "b"), population=False, draws=1_000, seed=1)
    query = source.query(("a", "b"), np.array([[1.0, 0, 0], [0, 0, 0]]), share=True)
    assert float(ours.estimate) == pytest.approx(query.estimate, abs=0.15 * query.std_error)
    assert float(ours.std_error) == pytest.approx(query.std_error, rel=0.1)
    assert float(ours.sampling_variance) == 0
    assert float(ours.noise_share) == 1


def test_the_parts_of_the_variance_are_the_binomial_and_the_noise() -> None:
    """With little noise the error is that of a share of n rows; the parts add up, and the interval has the function's shape."""
    ours = dc.estimate(release(0.5), lambda joint: joint.sum(axis=0), ("a", "b"), draws=1_500, seed=1)
    share = COUNTS.sum(axis=0) / 1_000
    assert ours.std_error == pytest.approx(np.sqrt(share * (1 - share) / 1_000), rel=0.1)
    assert (ours.noise_share < 0.1).all()
    low, high = ours.interval(0.9)
    assert low.shape == high.shape == (3,)
    assert (high - low) == pytest.approx(2 * 1.645 * ours.std_error, rel=0.1)
    assert "3 estimates" in str(ours)


def test_the_answer_reads_as_a_line() -> None:
    """One number says its error, its interval and how much of it is noise."""
    text = str(dc.estimate(release(20.0), lambda joint: joint[1].sum(), ("a", "b"), draws=100, seed=0))
    assert "±" in text
    assert "privacy noise" in text


def test_results_show_themselves_shortly() -> None:
    """A posterior and an estimate are one line and a card with their own numbers, not all of their arrays."""
    source = release(1.0)
    drawn = dc.posterior(source, ("b", "a"), draws=200, seed=1)
    assert repr(drawn) == "<Posterior: columns b × a, draws 200, of the population, rows 1,000, cells 6>"
    largest = drawn.draws[:, 0, 0]  # the cell of 300 in 1,000 rows
    card = drawn._repr_html_()
    assert f"<td>{100 * largest.mean():.3g} %</td><td>{100 * largest.std():.2g} %</td>" in card
    assert f"Sampler: {drawn.report.chains} chains" in card
    many = dc.estimate(source, lambda joint: joint.sum(axis=0), ("a", "b"), draws=100, seed=1)
    assert repr(many) == "<Estimate: numbers 3, shape 3, draws 100>"
    assert all(f"<td>{value:.4g}</td>" in many._repr_html_() for value in (*many.estimate, *many.std_error))


def test_functions_that_cannot_be_used_are_refused() -> None:
    """Not callable, not finite, and shapes that change are parameter errors."""
    with pytest.raises(ParameterError, match="callable"):
        dc.estimate(release(5.0), "a", ("a", "b"), draws=10)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="finite"):
        dc.estimate(release(5.0), lambda joint: np.inf, ("a", "b"), draws=10)
    sizes = iter(range(1, 1_000))
    with pytest.raises(ParameterError, match="shapes"):
        dc.estimate(release(5.0), lambda joint: np.zeros(next(sizes)), ("a", "b"), draws=10)


def test_a_pair_that_no_table_shows_is_left_open() -> None:
    """From two columns measured alone, a cell of the pair may be anything between the bounds of Fréchet; taken for unrelated, it is the product of its margins."""
    alone = dc.Release.from_tables({("a",): [600, 400], ("b",): [450, 350, 200]}, SCHEMA, scale=1.0)

    def cell(joint: np.ndarray) -> float:
        return float(joint[0, 0])

    opened = dc.estimate(alone, cell, ("a", "b"), seed=1)
    closed = dc.estimate(alone, cell, ("a", "b"), seed=1, unmeasured="none")
    low, high = opened.interval()
    assert 0.05 < low < 0.6 * 0.45 - 0.1
    assert 0.6 * 0.45 + 0.1 < high < 0.45
    assert float(closed.estimate) == pytest.approx(0.6 * 0.45, abs=0.03)
    assert float(closed.std_error) < 0.2 * float(opened.std_error)
    assert "left open" in opened.notes[0]
    assert "taken for none" in closed.notes[0]
    with pytest.raises(ParameterError, match="'open' or 'none'"):
        dc.estimate(alone, cell, ("a", "b"), unmeasured="closed")  # type: ignore[arg-type]


def test_bounds_of_few_draws_are_their_order_statistics() -> None:
    """Of 19 draws the first and the last leave a twentieth of the law out on each side, on average."""
    low, high = middle(np.arange(1.0, 20.0), 0.9)
    assert (low, high) == pytest.approx((1.0, 19.0))
