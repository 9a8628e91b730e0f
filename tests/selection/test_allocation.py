"""The allocation of the budget: against a numerical optimum where risks are convex, and an exhaustive search where they are not."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.optimize import minimize

from dpcipher.selection.allocation import allocate_budget, interaction_risk, share_grid

Curve = Callable[[np.ndarray], np.ndarray]
GRID = share_grid(1.0)


def curve(rng: np.random.Generator, *, pure: bool) -> Curve:
    """The weighted error of a random table as a function of its part: precision grows with it, or with its square."""
    expected = rng.dirichlet(np.ones(6)).reshape(2, 3) * 1000
    distance, weight, epsilon = rng.uniform(5, 600), rng.uniform(0.2, 3), rng.uniform(0.005, 0.2)
    if pure:
        return lambda part: weight * interaction_risk(expected, distance, (epsilon * part) ** 2 / 2)
    return lambda part: weight * interaction_risk(expected, distance, 0.02 * part)


def shared(curves: Sequence[Curve]) -> np.ndarray:
    """What the allocation gives each."""
    return allocate_budget(np.array([one(GRID) for one in curves]), GRID)


def total(curves: Sequence[Curve], shares: np.ndarray) -> float:
    """The error that is left, from the curves themselves."""
    return sum(float(one(np.array([share]))[0]) for one, share in zip(curves, shares, strict=True))


def test_convex_risks_reach_the_optimum() -> None:
    """Four to six tables, against sequential quadratic programming: within a hundredth."""
    rng = np.random.default_rng(0)
    for count in (4, 4, 5, 5, 6, 6):
        curves = [curve(rng, pure=False) for _ in range(count)]
        best = minimize(
            lambda shares, curves=curves: total(curves, np.maximum(shares, 0)),
            np.full(count, 1 / count),
            bounds=[(0, 1)] * count,
            constraints=[{"type": "eq", "fun": lambda shares: shares.sum() - 1}],
            method="SLSQP",
            options={"ftol": 1e-10, "maxiter": 300},
        )
        assert best.success
        assert total(curves, shared(curves)) <= 1.01 * best.fun


def searched(curves: Sequence[Curve], steps: int = 200) -> float:
    """The least error of three tables over all ways to share in steps of a two-hundredth."""
    first, second, third = (one(np.linspace(0, 1, steps + 1)) for one in curves)
    left = steps - np.add.outer(np.arange(steps + 1), np.arange(steps + 1))
    errors = np.add.outer(first, second) + third[np.maximum(left, 0)]
    return float(errors[left >= 0].min())


def test_risks_that_are_not_convex_come_near_the_optimum() -> None:
    """Pure epsilon: within a few hundredths of an exhaustive search, and most often at it."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(60):
        curves = [curve(rng, pure=True) for _ in range(3)]
        ratios.append(total(curves, shared(curves)) / searched(curves))
    assert max(ratios) < 1.04
    assert np.median(ratios) < 1.002


@pytest.mark.parametrize("epsilon", [0.01, 0.02, 0.05, 0.1, 1.0])
def test_alike_tables_that_cannot_all_be_measured_are_taken_in_turn(epsilon: float) -> None:
    """Ten of one kind under pure epsilon: at least as good as the best number of them with equal parts."""
    one: Curve = lambda part: interaction_risk(np.full((2, 2), 250.0), 500.0, (epsilon * part) ** 2 / 2)  # noqa: E731
    found = shared([one] * 10)
    nothing, some = float(one(np.zeros(1))[0]), one(1 / np.arange(1, 11))
    best = min(k * some[k - 1] + (10 - k) * nothing for k in range(1, 11))
    assert total([one] * 10, found) <= 1.01 * best
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("pure", [False, True])
def test_the_whole_budget_is_shared_by_what_is_worth_it(pure: bool) -> None:
    """Parts add up to the budget, whatever its unit; a table that nothing can be gained from gets none."""
    rng = np.random.default_rng(2)
    for budget in (1.0, 0.17, 40.0):
        curves = [curve(rng, pure=pure) for _ in range(8)]
        grid = share_grid(budget)
        risks = np.array([one(grid) for one in curves])
        risks[3], risks[5] = 0.0, 77.0
        found = allocate_budget(risks, grid)
        assert found.sum() == pytest.approx(budget, rel=1e-12)
        assert (found >= 0).all()
        assert found[3] == found[5] == 0


def test_equal_tables_get_equal_parts() -> None:
    """Two kinds of tables, five of each, in any order."""
    rng = np.random.default_rng(3)
    kinds = [curve(rng, pure=False), curve(rng, pure=False)]
    places = rng.permutation([0, 1] * 5)
    found = shared([kinds[place] for place in places])
    assert [len(set(found[places == kind])) for kind in (0, 1)] == [1, 1]
    assert len(set(found)) == 2


def test_more_worth_gets_more() -> None:
    """The same table at a larger weight never gets less."""
    rng = np.random.default_rng(4)
    base = curve(rng, pure=False)
    found = shared([lambda part, weight=weight: weight * base(part) for weight in (0.5, 1, 2, 8)])
    assert (np.diff(found) > 0).all()


def test_where_nothing_can_be_gained_nothing_is_shared() -> None:
    """All risks constant: no table gets anything."""
    assert (allocate_budget(np.ones((4, len(GRID))), GRID) == 0).all()


def test_one_table_gets_everything() -> None:
    """A budget for one table is its own."""
    assert shared([curve(np.random.default_rng(5), pure=False)]) == pytest.approx([1.0])


def test_thousands_of_tables_can_be_shared_among() -> None:
    """Five thousand tables, of which a hundred matter: they get nearly everything."""
    rng = np.random.default_rng(6)
    strong, weak = np.full((2, 2), 2500.0), 4.0
    risks = np.array(
        [interaction_risk(strong, 3000.0 if place < 100 else weak, 0.01 * GRID) for place in range(5000)]
    )
    order = rng.permutation(5000)
    found = allocate_budget(risks[order], GRID)
    assert found.sum() == pytest.approx(1)
    assert found[order < 100].sum() > 0.9
