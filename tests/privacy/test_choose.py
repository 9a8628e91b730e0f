"""The exponential mechanism: its law, its cost, and what it refuses."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chisquare

from dpcipher.errors import BudgetError, ParameterError
from dpcipher.privacy.budget import Budget, choice_cost, choice_scale
from dpcipher.privacy.draws import Chooser, OpenDPChooser, SeededChooser

SCORES = np.array([0, 1, 3, 3, -2], dtype=np.int64)


def law(scores: np.ndarray, scale: float) -> np.ndarray:
    """Probabilities proportional to exp(score / scale)."""
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


def frequencies(chooser: Chooser, scale: float, draws: int) -> np.ndarray:
    """How often each candidate was chosen."""
    return np.bincount([chooser.choose(SCORES, scale) for _ in range(draws)], minlength=len(SCORES))


@pytest.mark.parametrize("chooser", [OpenDPChooser(), SeededChooser(np.random.default_rng(3))])
def test_choices_follow_the_exponential_law_and_no_other(chooser: Chooser) -> None:
    """The right scale passes a chi-square test; half and double the scale are rejected."""
    seen = frequencies(chooser, 2.0, 6000)
    assert chisquare(seen, 6000 * law(SCORES, 2.0)).pvalue > 1e-6
    assert chisquare(seen, 6000 * law(SCORES, 1.0)).pvalue < 1e-20
    assert chisquare(seen, 6000 * law(SCORES, 4.0)).pvalue < 1e-20


def rounds_law(scores: np.ndarray, scale: float, k: int) -> dict[tuple[int, ...], float]:
    """The probability of every ordered choice of `k`, round after round among those that are left."""
    weights = np.exp((scores - scores.max()) / scale)
    found = {}
    for order in permutations(range(len(scores)), k):
        left = weights.sum() - np.concatenate([[0.0], np.cumsum(weights[list(order)])[:-1]])
        found[order] = float(np.prod(weights[list(order)] / left))
    return found


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("private", [True, False], ids=["opendp", "seeded"])
def test_several_choices_are_rounds_of_one(private: bool, k: int) -> None:
    """Ordered choices of two and of all four follow the law of successive rounds; half and double the scale are rejected."""
    chooser = OpenDPChooser() if private else SeededChooser(np.random.default_rng(7))
    scores = SCORES[[0, 1, 2, 4]]
    orders = rounds_law(scores, 2.0, k)
    seen = dict.fromkeys(orders, 0)
    for _ in range(8000):
        seen[tuple(chooser.choose_many(scores, 2.0, k))] += 1
    counted = list(seen.values())
    assert chisquare(counted, 8000 * np.array(list(orders.values()))).pvalue > 1e-6
    for wrong in (1.0, 4.0):
        assert chisquare(counted, 8000 * np.array(list(rounds_law(scores, wrong, k).values()))).pvalue < 1e-12


def test_one_choice_is_several_choices_of_one() -> None:
    """The same seed gives the same candidate either way."""
    one, many = (SeededChooser(np.random.default_rng(5)) for _ in range(2))
    assert [one.choose(SCORES, 2.0) for _ in range(50)] == [
        many.choose_many(SCORES, 2.0, 1)[0] for _ in range(50)
    ]


@pytest.mark.parametrize("k", [0, -1, 6, 1.0, True, None])
def test_the_number_of_choices_must_be_that_of_some_candidates(k: object) -> None:
    """From one to all of them."""
    with pytest.raises(ParameterError, match="number of candidates"):
        SeededChooser(np.random.default_rng(0)).choose_many(SCORES, 1.0, k)


@pytest.mark.parametrize("k", [1, 3, 3000])
@pytest.mark.parametrize("sensitivity", [1, 7])
@pytest.mark.parametrize(
    "budget", [Budget(rho=Fraction(1, 50)), Budget(rho=Fraction(1, 3)), Budget(epsilon=Fraction(1, 3))]
)
def test_several_choices_stay_within_their_share_exactly(budget: Budget, sensitivity: int, k: int) -> None:
    """k rounds at a k-th of the share each use it up and no more; for pure epsilon the exact cost says so."""
    zcdp = budget.rho is not None
    each = Budget(rho=budget.rho / k) if zcdp else Budget(epsilon=budget.epsilon / k)
    scale = choice_scale(each, sensitivity)
    certified = OpenDPChooser().certificate(scale, sensitivity, zcdp=zcdp, k=k)
    exact = Fraction(certified) if zcdp else choice_cost(scale, sensitivity, k).epsilon
    assert exact <= (budget.rho if zcdp else budget.epsilon)
    assert certified == pytest.approx(float(budget.rho if zcdp else budget.epsilon), rel=1e-9)
    assert SeededChooser(np.random.default_rng(0)).certificate(
        scale, sensitivity, zcdp=zcdp, k=k
    ) == pytest.approx(certified, rel=1e-12)


def test_permute_and_flip_would_be_noticed() -> None:
    """OpenDP's choice for pure epsilon has another law, which the same test rejects."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    flip = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0)
    seen = np.bincount([flip(SCORES) for _ in range(20_000)], minlength=len(SCORES))
    assert chisquare(seen, 20_000 * law(SCORES, 2.0)).pvalue < 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_pure_cost_is_that_of_opendp(epsilon: float) -> None:
    """2·sensitivity/scale, the same number as OpenDP's own map for this scale, and within the budget."""
    budget = Budget.parse(epsilon=epsilon)
    scale = choice_scale(budget, 7)
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    theirs = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale).map(7)
    ours = OpenDPChooser().certificate(scale, 7, zcdp=False)
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert choice_cost(scale, 7).epsilon <= budget.epsilon


def test_zcdp_cost_is_an_eighth_of_epsilon_squared() -> None:
    """OpenDP's map stays within rho and uses all of it; the seeded stand-in says the same."""
    budget = Budget(rho=Fraction(1, 50))
    scale = choice_scale(budget, 3)
    rho = OpenDPChooser().certificate(scale, 3, zcdp=True)
    assert Fraction(rho) <= budget.rho
    assert rho == pytest.approx(0.02, rel=1e-9)
    assert SeededChooser(np.random.default_rng(0)).certificate(scale, 3, zcdp=True) == pytest.approx(rho)
    assert rho == pytest.approx((2 * 3 / scale) ** 2 / 8)


def test_no_neighbouring_scores_differ_by_more_than_epsilon() -> None:
    """Over all vectors of scores within one of each other, no candidate's probability changes by more than e^epsilon; some nearly do."""
    scale = choice_scale(Budget.parse(epsilon=0.7), 1)
    base = np.array([0, 4, 2])
    ratios = [
        np.abs(np.log(law(base, scale) / law(base + np.array(shift), scale))).max()
        for shift in product((-1, 0, 1), repeat=3)
    ]
    assert max(ratios) <= 0.7
    assert max(ratios) > 0.5


@pytest.mark.parametrize("sensitivity", [0, -1, 1.0, True])
def test_sensitivity_must_be_a_whole_number(sensitivity: object) -> None:
    """Scores are integers, so is what changes them."""
    with pytest.raises(ParameterError, match="sensitivity"):
        choice_scale(Budget.parse(epsilon=1), sensitivity)


@pytest.mark.parametrize(
    "scores", [np.array([0.5, 1.0]), np.array([], dtype=np.int64), np.array([2**62], dtype=np.int64)]
)
def test_scores_that_are_not_exact_are_refused(scores: np.ndarray) -> None:
    """Floats, nothing, and what would overflow."""
    with pytest.raises(ParameterError, match="scores"):
        SeededChooser(np.random.default_rng(0)).choose(scores, 1.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    """No noise and infinite noise alike."""
    with pytest.raises(BudgetError, match="scale"):
        OpenDPChooser().choose(SCORES, scale)
