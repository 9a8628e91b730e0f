"""The bundle of everything that is drawn, and the exact urn."""

from itertools import product
from math import comb, prod

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chisquare

from dpcipher.privacy.draws import Draws, draw_posterior_counts


def dirichlet_multinomial(drawn: tuple[int, ...], alphas: np.ndarray) -> float:
    """The textbook probability of counts drawn from a multinomial with Dirichlet probabilities."""
    n, total = sum(drawn), alphas.sum()
    logs = (
        gammaln(total)
        - gammaln(total + n)
        + sum(gammaln(a + x) - gammaln(a) for a, x in zip(alphas, drawn, strict=True))
    )
    ways = prod(comb(sum(drawn[: i + 1]), x) for i, x in enumerate(drawn))
    return ways * float(np.exp(logs))


@pytest.mark.parametrize("draws", [Draws.secure(), Draws.seeded(4)])
def test_the_urn_is_a_dirichlet_multinomial(draws: Draws) -> None:
    """All outcomes of four draws from three cells, against the textbook formula."""
    weights, step = np.array([3, 1, 8], dtype=np.int64), 2
    outcomes = [x for x in product(range(5), repeat=3) if sum(x) == 4]
    chances = np.array([dirichlet_multinomial(x, weights / step) for x in outcomes])
    seen = dict.fromkeys(outcomes, 0)
    for _ in range(4000):
        seen[tuple(draw_posterior_counts(weights, step, 4, draws.below).tolist())] += 1
    assert chances.sum() == pytest.approx(1)
    assert chisquare(list(seen.values()), 4000 * chances).pvalue > 1e-6


def test_a_cell_without_weight_is_never_drawn() -> None:
    """Structural zeros stay empty."""
    drawn = draw_posterior_counts(np.array([0, 5, 0], dtype=np.int64), 1, 200, Draws.seeded(1).below)
    assert drawn.tolist() == [0, 200, 0]


def test_only_secure_draws_are_private() -> None:
    """A seed anywhere in the bundle takes the promise away."""
    assert Draws.secure().is_private
    assert not Draws.seeded(1).is_private
    mixed = Draws(
        Draws.secure().noise, Draws.seeded(1).chooser, Draws.secure().below, np.random.default_rng(1)
    )
    assert not mixed.is_private


def test_a_seed_repeats_everything() -> None:
    """The same seed, the same numbers; another seed, others."""
    numbers = [[Draws.seeded(seed).below(10**9), Draws.seeded(seed).rng.random()] for seed in (5, 5, 6)]
    assert numbers[0] == numbers[1]
    assert numbers[0] != numbers[2]
