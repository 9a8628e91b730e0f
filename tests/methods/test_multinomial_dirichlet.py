"""The multinomial-Dirichlet draw: its prior makes the promise true, and only just."""

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import betabinom
from test_contract import SCHEMA, planted, rows_of

from dpcipher.errors import BudgetError, LedgerExceeded
from dpcipher.methods import MultinomialDirichlet
from dpcipher.methods.dirichlet_prior import failure, least_prior, probable_prior
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Ledger
from dpcipher.schema.declared import column
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


def all_outputs(n_rows: int, cells: int) -> list[tuple[int, ...]]:
    """Every table of so many rows over so many cells."""
    if cells == 1:
        return [(n_rows,)]
    return [(first, *rest) for first in range(n_rows + 1) for rest in all_outputs(n_rows - first, cells - 1)]


def orders(drawn: tuple[int, ...]) -> float:
    """The logarithm of the number of orders in which a table of rows can be drawn."""
    return float(gammaln(sum(drawn) + 1) - gammaln(np.array(drawn) + 1).sum())


def told(here: tuple[int, ...], there: tuple[int, ...], prior: float, epsilon: float, n_rows: int) -> float:
    """The least δ for which the chances of all outputs from `here` are within e^ε of those from `there`, by enumeration."""
    excess = 0.0
    for x in all_outputs(n_rows, len(here)):
        one, other = (math.exp(log_chance(x, counts, prior) + orders(x)) for counts in (here, there))
        excess += max(0.0, one - math.exp(epsilon) * other)
    return excess


def neighbouring(relation: str, max_rows: int, most: int):
    """Pairs of tables over six cells in which one person's rows come to a cell; nobody else makes it worse than a crowd in one cell does."""
    for n_rows in range(most + 1):
        for others in ((0, 0, 0, 0, 0), (2, 1, 0, 0, 0)):
            origin = max_rows if relation == "replace" else 0
            yield (n_rows, others[0] + origin, *others[1:]), (n_rows + max_rows, *others)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (1.0, 1e-3), (0.5, 1e-2)])
def test_an_output_that_tells_more_is_improbable(
    relation: str, max_rows: int, epsilon: float, delta: float
) -> None:
    """All outputs of six rows over six cells: δ holds both ways, with a prior below the one that always holds."""
    exact = Fraction(epsilon).limit_denominator(10)
    prior = probable_prior(6, exact, max_rows, cells=6, delta=Fraction(delta))
    assert prior < least_prior(6, exact, max_rows)
    most = math.ceil(6 / math.expm1(epsilon / max_rows))
    worst = max(
        max(told(one, other, float(prior), epsilon, 6), told(other, one, float(prior), epsilon, 6))
        for one, other in neighbouring(relation, max_rows, most)
    )
    assert worst <= delta


@pytest.mark.parametrize(("prior", "epsilon"), [(2, 1.0), (3, 1.0), (1, 2.0), (5, 0.5)])
def test_the_failure_of_a_prior_bounds_what_tells_more(prior: int, epsilon: float) -> None:
    """Beside the probability of the outputs that tell more than e^ε, over every table that fills one cell; and near the tail it stands for."""
    outputs = all_outputs(8, 3)
    worst = 0.0
    crowded = np.arange(20)
    tails = betabinom.sf(np.floor(math.expm1(epsilon) * (prior + crowded)), 8, prior + crowded + 1, 2 * prior)
    for n_rows in range(20):
        with_row, without = (n_rows + 1, 0, 0), (n_rows, 0, 0)
        chances = [
            math.exp(log_chance(x, with_row, prior) + orders(x))
            for x in outputs
            if log_chance(x, with_row, prior) - log_chance(x, without, prior) > epsilon
        ]
        worst = max(worst, sum(chances))
    assert worst <= failure(Fraction(prior), 8, epsilon, 3) <= 3 * tails.max()


def test_steps_of_crowded_cells_bound_every_cell_in_them() -> None:
    """Thousands of rows, so that n_j goes in steps: never below the beta-binomial tail of any single n_j."""
    prior, epsilon, n_rows, cells = 40.0, 0.2, 2000, 50
    gain = math.expm1(epsilon)
    crowded = np.arange(math.floor(n_rows / gain - prior) + 1)
    tails = betabinom.sf(np.floor(gain * (prior + crowded)), n_rows, prior + crowded + 1, (cells - 1) * prior)
    assert tails.max() <= failure(Fraction(40), n_rows, epsilon, cells) <= 20 * tails.max()


def test_a_large_table_needs_less_prior_with_delta() -> None:
    """A thousand rows over ten thousand cells at ε = 1: the whole method, with what its conversion to rho costs, has a tenth of the prior."""
    always = MultinomialDirichlet(1.0, unit="add-remove").prior
    method = MultinomialDirichlet(1.0, unit="add-remove", delta=1e-6)
    assert method._prior(method._charge, cells=10_000) < always / 10
    assert method._prior(method._charge, cells=1) == method.prior


def test_the_charge_is_rho_with_half_of_delta(tmp_path: Path) -> None:
    """The ledger adds both up, the certificate states both, and a second draw is refused."""
    path = tmp_path / "people.ledger"
    frame = rows_of(planted(), SCHEMA)
    method = MultinomialDirichlet(1.0, unit="add-remove", delta=1e-6, n_rows=50, ledger=path, create=True)
    fitted = method.fit(frame, SCHEMA)
    whole = Budget.parse(epsilon=1.0, delta=1e-6).failing()
    (entry,) = Ledger(path).entries
    assert entry.cost == whole
    (event,) = fitted.statement.certificate["events"]
    assert (event["type"], event["delta"]) == ("posterior", "1/2000000")
    assert event["cost"] == pytest.approx(float(whole.rho))
    assert fitted.statement.may_fail
    with pytest.raises(LedgerExceeded):
        MultinomialDirichlet(1.0, unit="add-remove", delta=1e-6, n_rows=50, ledger=path).fit(frame, SCHEMA)


def test_the_drawn_rows_follow_the_weaker_prior() -> None:
    """The urn gets the prior that the budget pays for: the mean of many draws is that of the posterior."""
    counts = np.array([[600, 0, 0, 0], [0, 0, 0, 0]])
    schema = Schema.from_domain({"a": 2, "b": 4})
    method = MultinomialDirichlet(4.0, unit="add-remove", delta=1e-3, n_rows=40)
    alpha = float(method._prior(method._charge, cells=8))
    fits = [method.fit_counts(counts, schema, draws=Draws.seeded(seed)) for seed in range(300)]
    mean = np.mean([fit.joint.core.probabilities[0, 0] for fit in fits])
    assert mean == pytest.approx((600 + alpha) / (600 + 8 * alpha), abs=0.02)


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
    """No rows, an epsilon that would need an endless prior, and a delta that levels would need too."""
    with pytest.raises(BudgetError, match="levels"):
        MultinomialDirichlet(1.0, unit="replace", delta=1e-6).fit(
            "no such file",
            Schema(
                (
                    column(
                        "city",
                        "categorical",
                        levels="discover",
                        missing="level",
                        pattern="[A-Z]+",
                        max_length=6,
                    ),
                )
            ),
        )
    with pytest.raises(BudgetError, match="prior"):
        MultinomialDirichlet(1e-5, unit="replace", delta=1e-9, n_rows=10**7).check_schema(SCHEMA)
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
