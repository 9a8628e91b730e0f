"""The multinomial-Dirichlet draw: its prior makes the promise true, and only just."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from test_contract import SCHEMA, planted, rows_of

from dpcipher.errors import BudgetError
from dpcipher.methods import MultinomialDirichlet
from dpcipher.methods.multinomial_dirichlet import least_prior
from dpcipher.privacy.choose import Draws
from dpcipher.schema.schema import Schema


def log_chance(drawn: tuple[int, ...], counts: tuple[int, ...], prior: float) -> float:
    """The log-probability of an output, up to the number of orders, which neighbours share."""
    alphas = np.array(counts) + prior
    total = alphas.sum()
    return float(
        gammaln(total) - gammaln(total + sum(drawn)) + (gammaln(alphas + drawn) - gammaln(alphas)).sum()
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("max_rows", [1, 2])
def test_no_output_tells_neighbours_apart(relation: str, max_rows: int) -> None:
    """All outputs of four rows over three cells, all tables of up to four rows, all neighbours: at most e^ε, and nearly reached."""
    epsilon, drawn_rows = 0.8, 4
    prior = float(least_prior(drawn_rows, Fraction(4, 5), max_rows))
    outputs = [x for x in product(range(5), repeat=3) if sum(x) == drawn_rows]
    worst = 0.0
    for counts in (x for x in product(range(5), repeat=3) if sum(x) <= 4):
        for here in range(3):
            for there in range(3):
                other = list(counts)
                other[there] += max_rows
                if relation == "replace":
                    other[here] -= max_rows
                if min(other) < 0:
                    continue
                gaps = [
                    abs(log_chance(x, counts, prior) - log_chance(x, tuple(other), prior)) for x in outputs
                ]
                worst = max(worst, max(gaps))
    assert worst <= epsilon
    assert worst > 0.6 * epsilon


def test_the_prior_is_the_published_bound() -> None:
    """α ≥ ñ/(e^ε − 1): 116 a cell for 200 rows at ε = 1, rounded up."""
    prior = least_prior(200, Fraction(1), 1)
    assert prior >= Fraction(200 / math.expm1(1))
    assert float(prior) == pytest.approx(200 / math.expm1(1), rel=1e-4)
    assert int(prior) == 116


def test_samples_only_repeat_the_drawn_rows() -> None:
    """Whatever is sampled later was drawn once, at fit."""
    method = MultinomialDirichlet(1.0, unit="add-remove", n_rows=9).fit(rows_of(planted(), SCHEMA), SCHEMA)
    drawn = method.joint.core.probabilities * 9
    np.testing.assert_allclose(drawn, np.rint(drawn))
    assert drawn.sum() == pytest.approx(9)
    rows = method.sample(500, seed=2).to_numpy()
    assert all(drawn[tuple(row)] > 0 for row in rows)
    assert len(method.sample()) == 9


def test_the_data_come_back_as_the_prior_vanishes() -> None:
    """With a huge budget and many rows the table is the data's."""
    counts = planted(400)
    method = MultinomialDirichlet(200.0, unit="replace", n_rows=20_000).fit_counts(
        counts, SCHEMA, draws=Draws.seeded(1)
    )
    assert np.abs(method.joint.core.probabilities - counts / 400).sum() / 2 < 0.08


def test_bad_parameters_are_refused() -> None:
    """A delta, no rows, and an epsilon that would need an endless prior."""
    with pytest.raises(BudgetError, match="delta"):
        MultinomialDirichlet(1.0, unit="replace", delta=1e-6)
    with pytest.raises(ValueError, match="n_rows"):
        MultinomialDirichlet(1.0, unit="replace", n_rows=0)
    with pytest.raises(BudgetError, match="prior"):
        MultinomialDirichlet(1e-5, unit="replace", n_rows=10**5)


def test_cells_outside_the_schema_have_no_prior() -> None:
    """One column of one level: every row is that cell."""
    schema = Schema.from_domain({"a": 1})
    method = MultinomialDirichlet(1.0, unit="replace", n_rows=3).fit_counts(
        np.array([5]), schema, draws=Draws.seeded(1)
    )
    assert method.joint.core.probabilities.tolist() == [1.0]
