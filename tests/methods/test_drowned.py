"""Where noise drowns the data the budget is spent all the same: there is an answer, and it says that nothing is known."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_contract import MADE, SCHEMA, planted

from dpcipher.errors import DpcipherWarning, SolveError
from dpcipher.methods import Cipher, FullHistogram, Independent, cipher
from dpcipher.privacy.draws import Draws, NoiseSource, SeededChooser, SeededNoise
from dpcipher.privacy.ledger import Ledger

EMPTY = pd.DataFrame({attr: np.zeros(0, dtype=np.int64) for attr in SCHEMA.attrs})
# Its rows are drawn from a prior, so that no noise can drown them.
DROWNABLE = sorted(set(MADE) - {"multinomial-dirichlet"})


class Drowning(NoiseSource):
    """Answers that are all far below zero, as an unlucky draw of a tiny budget may be."""

    is_private = False

    def _noisy(self, counts, mechanism):
        return counts * 0 - 10**6

    def certificate(self, mechanism, unit):
        """What the law of the noise costs."""
        return SeededNoise(0).certificate(mechanism, unit)


def drowning() -> Draws:
    """Noise below zero, choices by a seed."""
    rng = np.random.default_rng(1)
    return Draws(Drowning(), SeededChooser(rng), lambda bound: bound // 2, rng)


@pytest.mark.parametrize("name", DROWNABLE)
def test_every_method_answers_and_warns(name: str) -> None:
    """No rows by default, a distribution to draw from on request, and a warning that is also in the joint's health."""
    method = MADE[name](1.0, unit="add-remove")
    with pytest.warns(DpcipherWarning) as caught:
        fitted = method.fit_counts(planted(), SCHEMA, draws=drowning())
    health = fitted.joint.health
    assert tuple(str(one.message) for one in caught) == health.warnings
    assert any("not above 0" in text for text in health.warnings)
    assert len(fitted.sample()) == fitted.joint.n_rows == 0
    assert len(fitted.sample(7, seed=1)) == 7


@pytest.mark.parametrize("method", [Cipher, FullHistogram])
def test_a_uniform_answer_names_itself(method: type[Cipher] | type[FullHistogram]) -> None:
    """The engine in the health is `uniform`, with the reason."""
    with pytest.warns(DpcipherWarning) as caught:
        fitted = method(1.0, unit="add-remove").fit_counts(planted(), SCHEMA, draws=drowning())
    assert "nothing is known, because" in str(caught[0].message)
    assert str(fitted.joint.health).startswith("engine uniform: ")
    np.testing.assert_allclose(fitted.joint.core.project((0, 1, 2, 3)), 1 / 36)


def test_independent_columns_name_what_was_lost() -> None:
    """Also where the number of rows is public and only the counts drowned."""
    with pytest.warns(DpcipherWarning, match="nothing is known of a, b, c and 1 more"):
        Independent(1.0, unit="replace").fit_counts(planted(), SCHEMA, draws=drowning())
    fine = Independent(100.0, unit="replace").fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
    assert fine.joint.health.warnings == ()


@pytest.mark.parametrize("name", DROWNABLE)
def test_a_warning_turned_into_an_error_loses_nothing(name: str, tmp_path: Path) -> None:
    """It comes last: the charge is marked as released, and the warning carries the result."""
    path = tmp_path / "people.ledger"
    method = MADE[name](1.0, unit="replace", ledger=path, create=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DpcipherWarning)
        with pytest.raises(DpcipherWarning) as raised:
            method.fit(EMPTY, SCHEMA)
    assert Ledger.open(path).entries[0].checksum is not None
    fitted = raised.value.fitted
    assert fitted.statement.status == "certified"
    assert len(fitted.sample(3)) == 3


def test_tables_that_cannot_be_solved_are_answered_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an engine refuses, after the charge there is a uniform joint that says why; the release stays at hand."""

    def refuse(*_: object, **__: object) -> None:
        raise SolveError("the moon is full")

    monkeypatch.setattr(cipher, "solve_set", refuse)
    method = Cipher(1.0, unit="add-remove")
    with pytest.warns(DpcipherWarning, match="could not be solved: the moon is full"):
        fitted = method.fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
    assert fitted.joint.health.engine == "uniform"
    assert fitted.joint.n_rows == fitted.release.n_rows > 0
