"""modips: shares of the sets, bounds, and the posterior."""

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted

from dpcipher.methods import Modips
from dpcipher.privacy.choose import Draws


@pytest.mark.parametrize("sets", [1, 5])
def test_every_set_has_its_own_noise_and_share(sets: int) -> None:
    """m full tables with noise of scale Δm/ε."""
    tape, events = run(Modips(2.0, unit="replace", sets=sets), planted(), SCHEMA)
    assert [(truth.size, scale) for _, truth, scale in tape.asked] == [(36, 2 * sets / 2.0)] * sets
    assert [event["share"] for event in events] == [str(1) if sets == 1 else f"1/{sets}"] * sets


def test_sets_come_back_as_a_list() -> None:
    """m joints, m tables, all different; a seed repeats all of them."""
    method = Modips(1.0, unit="replace", sets=3).fit_counts(planted(), SCHEMA, draws=Draws.seeded(1))
    assert len(method.joint) == 3
    tables = method.sample(40, seed=2)
    assert [len(table) for table in tables] == [40, 40, 40]
    assert not tables[0].equals(tables[1])
    assert tables[2].equals(method.sample(40, seed=2)[2])


def test_probabilities_follow_the_posterior() -> None:
    """Without noise to speak of, the mean over sets is (α + n)/Σ(α + n), and the spread is that of a Dirichlet."""
    counts, alpha = planted(), 0.5
    method = Modips(10_000.0, unit="replace", sets=400, alpha=alpha).fit_counts(
        counts, SCHEMA, draws=Draws.seeded(1)
    )
    drawn = np.array([joint.core.probabilities for joint in method.joint])
    shape = counts + alpha
    mean = shape / shape.sum()
    deviation = np.sqrt(mean * (1 - mean) / (shape.sum() + 1))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * deviation.max() / 20)
    np.testing.assert_allclose(drawn.std(axis=0)[counts > 5], deviation[counts > 5], rtol=0.25)


@pytest.mark.parametrize("options", [{"sets": 0}, {"alpha": 0.0}, {"alpha": "1"}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    """At birth."""
    with pytest.raises(ValueError, match=next(iter(options))):
        Modips(1.0, unit="replace", **options)
