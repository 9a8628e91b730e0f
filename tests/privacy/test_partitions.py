"""Finding texts by noise and a threshold: the bound on lone texts and the divergence of whole outputs, against exact laws by enumeration."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpcipher.errors import BudgetError
from dpcipher.privacy.budget import Budget, cost, noise_for
from dpcipher.privacy.draws import SeededNoise
from dpcipher.privacy.partitions import PartitionSelection, named_alone, tail, threshold_for
from dpcipher.privacy.terms import Unit
from dpcipher.tables.measurement import Noise

DELTA = Fraction(1, 20)


@cache
def exact_tail(sigma: float, m: int) -> float:
    """P(noise ≥ m), with fifty digits; what is left out is below 1e-40."""
    with localcontext() as context:
        context.prec = 50
        scale = 2 * Decimal(sigma) ** 2
        weight = {k: (-(Decimal(k) ** 2) / scale).exp() for k in range(int(14 * sigma) + 3)}
        whole = 2 * sum(weight.values()) - 1
        above = sum(weight[k] for k in weight if k >= max(m, 1))
        return float((above if m > 0 else whole - sum(weight[k] for k in weight if k >= 1 - m)) / whole)


def partitions(k: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every way to have `k` rows or fewer in lone texts."""
    yield ()
    for first in range(1, min(k, largest or k) + 1):
        yield from ((first, *rest) for rest in partitions(k - first, first))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.53, 9.5])
def test_tails_are_upper_bounds_to_nine_digits(sigma: float) -> None:
    """Against sums with fifty digits, down to probabilities of 1e-20."""
    for m in range(1, int(9 * sigma) + 2):
        exact = exact_tail(sigma, m)
        assert exact <= tail(sigma, m) <= max(exact * (1 + 1e-8), 1e-300)


def test_the_normal_bound_takes_over_where_sums_grow_long() -> None:
    """Beyond the summed range the bound stays above the sums, by about one step of the noise."""
    assert tail(2049.0, 10_000) > tail(2048.0, 10_000)
    assert tail(2049.0, 10_000) == pytest.approx(tail(2048.0, 9_995), rel=1e-2)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("sigma", [0.7, 3.0, 12.0])
@pytest.mark.parametrize("delta", [DELTA, Fraction(1, 10**6)])
def test_the_threshold_is_the_lowest_that_hides_every_lone_person(
    k: int, sigma: float, delta: Fraction
) -> None:
    """Over every way to have k rows in lone texts, the exact probability that one is named is within delta, and one lower it need not be."""
    threshold = threshold_for(sigma, delta, Unit("add-remove", k))

    def worst(at: int) -> tuple[float, float]:
        chances = [[exact_tail(sigma, at - c) for c in rows] for rows in partitions(k)]
        return max(1 - math.prod(1 - t for t in row) for row in chances), max(map(sum, chances))

    assert worst(threshold)[0] <= delta
    assert worst(threshold)[1] == pytest.approx(named_alone(sigma, threshold, k), rel=1e-6)
    assert threshold == k or worst(threshold - 1)[1] > delta


def law(counts: Counter[str], chosen: PartitionSelection) -> dict[frozenset[str], float]:
    """The exact probability of every set of named texts."""
    chance = {text: exact_tail(chosen.noise.scale, chosen.threshold - n) for text, n in counts.items() if n}
    sets = (itertools.compress(chance, bits) for bits in itertools.product((0, 1), repeat=len(chance)))
    return {
        (named := frozenset(texts)): math.prod(p if text in named else 1 - p for text, p in chance.items())
        for texts in sets
    }


@pytest.mark.parametrize(
    "unit", [Unit("add-remove"), Unit("add-remove", 2), Unit("replace"), Unit("replace", 2)]
)
def test_whole_outputs_keep_the_charge_on_every_neighbour(unit: Unit) -> None:
    """The exact divergence of the named sets of neighbours, one person with any rows, stays within (rho, delta) converted."""
    mechanism = noise_for(Budget.parse(rho=0.2), unit)
    chosen = PartitionSelection.calibrated(mechanism, DELTA, unit)
    spent = Budget(rho=cost(mechanism, unit).rho, delta=DELTA)
    base = Counter({"a": chosen.threshold, "b": 1, "c": max(1, chosen.threshold - 1)})
    k = unit.max_rows
    people = [
        Counter(rows) for n in range(k + 1) for rows in itertools.combinations_with_replacement("abxy", n)
    ]
    pairs = [(base + one, base) for one in people]
    if unit.relation == "replace":
        full = [one for one in people if one.total() == k]
        pairs = [(base + one, base + two) for one in full for two in full]
    worst = 0.0
    for delta in (0.06, 0.1, 0.2):
        epsilon = float(spent.epsilon_at(Fraction(str(delta))))
        for here, there in pairs:
            p, q = law(here, chosen), law(there, chosen)
            for one, other in ((p, q), (q, p)):
                gap = sum(max(0.0, x - math.exp(epsilon) * other.get(s, 0.0)) for s, x in one.items())
                assert gap <= delta
                worst = max(worst, gap / delta)
    assert worst > 0.3  # a lone text does appear: the failure is real


def test_named_texts_do_not_depend_on_order_and_are_capped_by_noisy_counts() -> None:
    """Sorted before noise and after it; of too many, those with the largest noisy counts stay."""
    chosen = PartitionSelection(Noise("gaussian", 1.0), 10, DELTA)
    counts = {"d": 900, "a": 100, "c": 50, "b": 700, "lone": 1}
    once = chosen.named(counts, SeededNoise(1), 10)
    assert once == chosen.named(dict(reversed(counts.items())), SeededNoise(1), 10) == ("a", "b", "c", "d")
    assert chosen.named(counts, SeededNoise(1), 2) == ("b", "d")
    assert chosen.named({}, SeededNoise(1), 2) == ()


def test_named_texts_are_noisy() -> None:
    """At the threshold a text is named about half of the time, by the law of the noise: the true count decides nothing by itself."""
    chosen = PartitionSelection(Noise("gaussian", 3.0), 50, DELTA)
    named = [
        len(chosen.named({f"t{i}": 50 for i in range(100)}, SeededNoise(seed), 100)) for seed in range(50)
    ]
    assert sum(named) / 5000 == pytest.approx(exact_tail(3.0, 0), abs=5 * 0.5 / math.sqrt(5000))


def test_how_frequent_a_text_must_be_is_said_by_the_law() -> None:
    """The count at which a text is named with probability one half, or 95 %, by the exact tail."""
    chosen = PartitionSelection.calibrated(Noise("gaussian", 6.0), Fraction(1, 10**6), Unit("add-remove"))
    for probability in (0.5, 0.95):
        count = chosen.found_at(probability)
        assert exact_tail(6.0, chosen.threshold - count) >= probability
        assert exact_tail(6.0, chosen.threshold - count + 1) < probability + 1e-9 or probability == 0.5


def test_some_25_rows_are_enough_at_epsilon_1_for_the_whole_budget() -> None:
    """All of (1, 1e-6), half of delta for failures, finds a text of 25 rows half of the time."""
    cost = Budget.parse(epsilon=1, delta=1e-6).failing()
    chosen = PartitionSelection.calibrated(
        noise_for(cost, Unit("add-remove")), cost.failure, Unit("add-remove")
    )
    assert chosen.threshold == chosen.found_at(0.5) == 25


def test_laplace_noise_finds_no_levels() -> None:
    """Its tail would need a far higher threshold for the same rho, and pure epsilon allows no failure."""
    with pytest.raises(BudgetError, match="must be 'gaussian'"):
        PartitionSelection.calibrated(Noise("laplace", 1.0), DELTA, Unit("add-remove"))


def test_draws_of_lone_texts_stay_within_delta() -> None:
    """A person with two lone texts, 100,000 times: named about as often as the exact law says, and at most delta."""
    unit = Unit("add-remove", 2)
    chosen = PartitionSelection.calibrated(noise_for(Budget.parse(rho=0.5), unit), DELTA, unit)
    trials = 100_000
    noisy = SeededNoise(3).add(np.ones((trials, 2), dtype=np.int64), chosen.noise)
    share = float((noisy >= chosen.threshold).any(axis=1).mean())
    exact = 1 - (1 - exact_tail(chosen.noise.scale, chosen.threshold - 1)) ** 2
    assert share == pytest.approx(exact, abs=5 * math.sqrt(exact / trials))
    assert share <= float(DELTA)
