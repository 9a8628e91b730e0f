"""The combining rule against arithmetic done by hand, and against simulation."""

import numpy as np
import pytest

from dpcipher.errors import ParameterError
from dpcipher.inference.combine import combine


def test_the_rule_by_hand() -> None:
    """T = B/m + W and nu = (m-1)(1 + mW/B)², worked on paper for m = 3."""
    found = combine([1.0, 2.0, 6.0], [1.0, 2.0, 3.0])
    assert float(found.estimate) == 3.0
    assert float(found.between) == 7.0  # (4 + 1 + 9) / 2
    assert float(found.variance) == pytest.approx(7 / 3 + 2)
    assert float(found.dof) == pytest.approx(2 * (1 + 3 * 2 / 7) ** 2)


def test_the_interval_uses_student_and_not_rubin() -> None:
    """With B = W = 1 and m = 2: T = 1.5 and nu = 9, whose quantile is 2.262; Rubin's T would be 2.5."""
    low, high = combine([0.0, np.sqrt(2.0)], [1.0, 1.0]).interval(0.95)
    assert (high - low) / 2 == pytest.approx(2.2622 * np.sqrt(1.5), rel=1e-4)


def test_parameters_are_combined_each_for_itself() -> None:
    """A matrix of sets by parameters gives what one call per column gives."""
    rng = np.random.default_rng(0)
    estimates, variances = rng.normal(size=(5, 2, 3)), rng.uniform(1, 2, (5, 2, 3))
    whole = combine(estimates, variances)
    one = combine(estimates[:, 1, 2], variances[:, 1, 2])
    assert whole.variance.shape == (2, 3)
    assert (whole.estimate[1, 2], whole.variance[1, 2], whole.dof[1, 2]) == (
        one.estimate,
        one.variance,
        one.dof,
    )


def test_one_set_uses_its_own_variance_and_says_so() -> None:
    """With m = 1 there is no B: W alone, a normal quantile, and a note."""
    found = combine([2.0], [4.0])
    assert (float(found.variance), float(found.dof)) == (4.0, np.inf)
    assert found.interval(0.95)[1] == pytest.approx(2 + 2 * 1.959964)
    assert "leaves out the privacy noise" in found.notes[0]


def test_sets_that_agree_exactly_have_endless_degrees_of_freedom() -> None:
    """B = 0 gives nu = infinity, also where W = 0 as well."""
    assert combine([[1.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [2.0, 0.0]]).dof.tolist() == [np.inf, np.inf]


def test_an_unidentified_parameter_stays_unknown() -> None:
    """NaN in one set makes that parameter NaN and leaves the others alone."""
    found = combine([[np.nan, 1.0], [1.0, 3.0]], [[np.nan, 1.0], [1.0, 1.0]])
    assert np.isnan([found.estimate[0], found.variance[0], found.dof[0]]).all()
    assert found.estimate[1] == 2.0
    assert found.significant().tolist() == [False, False]


def test_draws_from_one_sanitization_are_refused() -> None:
    """Five draws from one sanitization share its noise."""
    with pytest.raises(ParameterError, match="sanitizations \\(1\\) must equal the number of sets \\(5\\)"):
        combine(np.ones(5), np.ones(5), sanitizations=1)


@pytest.mark.parametrize(
    ("estimates", "variances", "rule"),
    [
        ([], [], "one entry per data set"),
        (3.0, 1.0, "one entry per data set"),
        ([1.0, 2.0], [1.0], "shape of estimates"),
        ([1.0, np.inf], [1.0, 1.0], "must be finite"),
        ([1.0, 2.0], [1.0, -1.0], "0 or more"),
    ],
)
def test_what_cannot_be_combined_is_refused(estimates: object, variances: object, rule: str) -> None:
    """Each check fires, with its rule in the message."""
    with pytest.raises(ParameterError, match=rule):
        combine(estimates, variances)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0, 1, 95, True, "high"])
def test_a_level_outside_0_to_1_is_refused(level: object) -> None:
    """Percentages and words are not levels."""
    with pytest.raises(ParameterError, match="level"):
        combine([1.0, 2.0], [1.0, 1.0]).interval(level)  # type: ignore[arg-type]


def test_nominal_coverage_where_the_rule_holds() -> None:
    """Independent sets whose estimates scatter around the sampled one: 95 % intervals cover 95 % of 20,000 truths."""
    rng = np.random.default_rng(1)
    sampled = rng.normal(0, 1, 20_000)
    sets = sampled + rng.normal(0, 1.5, (5, 20_000))
    low, high = combine(sets, np.ones((5, 20_000))).interval(0.95)
    assert ((low < 0) & (high > 0)).mean() == pytest.approx(0.95, abs=0.006)


def test_a_combined_estimate_shows_itself() -> None:
    """One number with its interval in words, several as a short table, with their rule."""
    word = {"rows_from": "invented numbers"}
    alone, several = (
        combine(each, spread, **word)
        for each, spread in (([1.0, 2.0, 6.0], [1.0, 2.0, 3.0]), (np.ones((3, 20)), np.ones((3, 20))))
    )
    low, high = alone.interval()
    assert str(alone).startswith(
        f"3 ± {float(alone.std_error):.3g} (95 %: {float(low):.6g} to {float(high):.6g}; "
    )
    assert str(alone).endswith("from 3 sets, rule 'sanitizations'")
    assert repr(several) == "<Combined estimates: sets 3, rule sanitizations>"
    assert "… and 8 more." in several._repr_html_()
    assert "Degrees of freedom" in alone._repr_html_()
