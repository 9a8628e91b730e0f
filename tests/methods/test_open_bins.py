"""Every method on a schema whose bins are open: it finds them and goes on, or refuses before anything is spent."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpcipher.errors import ParameterError
from dpcipher.evaluation.compare import compare
from dpcipher.evaluation.replay import compare_answers, record
from dpcipher.methods import METHODS, MultinomialDirichlet, Uniform
from dpcipher.methods.multinomial_dirichlet import least_prior
from dpcipher.request.request import finding_share
from dpcipher.request.session import Session
from dpcipher.schema import Schema, column

SCHEMA = Schema(
    (
        column("age", "integer", min=0, max=99, bins="auto", max_bins=6),
        column("pay", "number", min=0, max=1000, bins="auto", max_bins=5, missing="level"),
        column("sex", "categorical", levels=["F", "M"]),
    )
)


def people(n: int) -> pd.DataFrame:
    """Two numbers and a category."""
    rng = np.random.default_rng(4)
    pay = np.minimum(rng.exponential(60, n), 1000)
    pay[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"age": rng.integers(0, 100, n), "pay": pay, "sex": rng.choice(["F", "M"], n)})


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
@pytest.mark.parametrize("name", METHODS)
def test_every_method_finds_bins_and_goes_on(name: str) -> None:
    """Synthetic rows lie in the declared range, and the certificate holds what finding cost."""
    fitted = METHODS[name](2.0, unit="add-remove").fit(people(800), SCHEMA)
    certificate = fitted.statement.certificate
    drawn = fitted.sample(50, seed=1)
    assert Fraction(certificate["bins"]["share"]) <= finding_share(SCHEMA) == Fraction(1, 15)
    assert drawn["age"].between(0, 99).all()
    assert drawn["pay"].dropna().between(0, 1000).all()
    assert sum(event["cost"] for event in certificate["events"]) <= 2.0 * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
@pytest.mark.parametrize("name", METHODS)
def test_questions_of_every_method_hold_on_a_neighbour(name: str) -> None:
    """From the frame on, with the same answers: one person more."""
    method, frame = METHODS[name](3.0, unit="add-remove"), people(300)
    here = record(method, frame, SCHEMA, seed=2)
    other = pd.concat([frame, pd.DataFrame({"age": [99], "pay": [1000.0], "sex": ["M"]})])
    there = record(method, other, SCHEMA, replay=here, seed=2)
    assert all(cost <= declared * (1 + 1e-9) for _, cost, declared in compare_answers(method, here, there))


def test_rows_drawn_from_the_posterior_pay_with_what_finding_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior follows from the part of epsilon that is left, not from all of it."""
    priors: list[Fraction] = []
    real = Session.draw_rows

    def urn(self: Any, prior: Fraction, *rest: Any, **more: Any) -> Any:
        priors.append(prior)
        return real(self, prior, *rest, **more)

    monkeypatch.setattr(Session, "draw_rows", urn)
    method = MultinomialDirichlet(2.0, unit="add-remove", n_rows=100)
    certificate = method.fit(people(500), SCHEMA).statement.certificate
    left = 2 * (1 - Fraction(certificate["bins"]["share"]))
    assert priors == [least_prior(100, left, 1)]
    assert priors[0] > method.prior
    assert math.isclose(certificate["events"][-1]["cost"], float(left))


def test_nothing_is_found_without_a_budget() -> None:
    """A method that could do without is told why it cannot here."""
    with pytest.raises(ParameterError, match="bins: auto"):
        Uniform(unit="add-remove").fit(people(10), SCHEMA)


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_methods_are_compared_on_bins_that_each_run_finds() -> None:
    """Scores are those of the stand-in's bins, alike for all runs."""
    scores = compare(
        people(400), SCHEMA, methods=["cipher", "independent"], epsilons=[5.0], repeats=2, unit="add-remove", workers=1
    ).frame  # fmt: skip
    assert len(scores) == 4
    assert scores["tvd_1"].between(0, 1).all()
