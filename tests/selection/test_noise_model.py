"""What shares buy: against the mechanisms themselves, a simulation of their noise, and the rule for a shortlist by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcipher.privacy.budget import Budget, choice_scale, noise_for
from dpcipher.privacy.draws import SeededNoise
from dpcipher.privacy.terms import Unit
from dpcipher.selection.allocation import NoiseModel
from dpcipher.selection.rounds import COLUMNS, ONE_WAY, READING, column_share, pair_round

UNITS = [Unit(relation, rows) for relation in ("add-remove", "replace") for rows in (1, 3)]
WHOLES = [Budget.parse(epsilon=0.3), Budget.parse(rho=0.004)]


def part(whole: Budget, share: Fraction) -> Budget:
    """A share of a budget, exactly."""
    return whole.share(share)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("whole", WHOLES, ids=["epsilon", "rho"])
class TestNoise:
    """The deviations that a plan counts with are those of the mechanisms that will draw."""

    def test_a_table(self, whole: Budget, unit: Unit) -> None:
        """Each set has an equal part of the share."""
        for share in (Fraction(1, 3), Fraction(1, 200)):
            variance = noise_for(part(whole, share / 5), unit).variance
            assert NoiseModel(whole, unit, 5).precision(float(share)) == pytest.approx(1 / variance, rel=1e-3)

    def test_a_cell(self, whole: Budget, unit: Unit) -> None:
        """The discrete noise itself, also where it is far below one row; never less than the least that a session draws."""
        for factor, share in ((1, Fraction(1, 7)), (40, Fraction(1, 2))):
            budget = Budget.parse(**{name: value * factor for name, value in vars(whole).items() if value})
            deviation = math.sqrt(noise_for(part(budget, share / 2), unit).variance)
            assert NoiseModel(budget, unit, 2).discrete_precision(float(share)) ** -0.5 == pytest.approx(
                deviation, rel=1e-4
            )
        generous = Budget.parse(**{name: 10**6 for name, value in vars(whole).items() if value})
        assert 0 < NoiseModel(generous, unit).discrete_precision(1.0) ** -0.5 < 1e-6

    def test_distances(self, whole: Budget, unit: Unit) -> None:
        """Each of forty distances that one person moves by l1: the L1 or L2 length of all of them sets the noise."""
        share = Fraction(1, 20)
        worth = part(whole, share)
        if worth.rho is not None:
            deviation = math.sqrt(40 * unit.l1**2 / (2 * float(worth.rho)))
        else:
            deviation = math.sqrt(2) * 40 * unit.l1 / float(worth.epsilon)
        assert NoiseModel(whole, unit).distance(40, float(share)) == pytest.approx(deviation)

    def test_choices(self, whole: Budget, unit: Unit) -> None:
        """Seven rounds, each with a seventh of the share: Gumbel noise of the scale of the exponential mechanism."""
        share = Fraction(1, 40)
        scale = choice_scale(part(whole, share / 7), unit.l1)
        gumbel = np.random.default_rng(0).gumbel(scale=scale, size=200_000).std()
        assert NoiseModel(whole, unit).choice(7, float(share)) == pytest.approx(gumbel, rel=0.02)

    def test_all_pairs_measured_alike(self, whole: Budget, unit: Unit) -> None:
        """The mean TVD of noise alone, drawn."""
        sizes, rows, noise = [4, 6, 9, 6, 25, 10], 4000, SeededNoise(1)
        mechanism = noise_for(part(whole, Fraction(1, len(sizes))), unit)
        drawn = [
            np.abs(noise.add(np.zeros(size * 400, dtype=np.int64), mechanism)).sum() / 400 / 2 / rows
            for size in sizes
        ]
        assert NoiseModel(whole, unit).mean_tvd(sizes, rows) == pytest.approx(np.mean(drawn), rel=0.05)

    def test_triples(self, whole: Budget, unit: Unit) -> None:
        """Noise on a triple of four levels, without what its pairs tell: (3/4)³ of its variance, summed over 64 cells and halved."""
        mechanism = noise_for(part(whole, Fraction(1, 30)), unit)
        left = math.sqrt(mechanism.variance * (3 / 4) ** 3)
        expected = 64 * math.sqrt(2 / math.pi) * left / 2
        assert NoiseModel(whole, unit).triple_error(4, 1 / 30) == pytest.approx(expected, rel=1e-3)


def test_all_pairs_are_taken_unseen_where_they_are_not_mostly_noise() -> None:
    """A tenth of total variation distance is the limit."""
    sizes = [4] * 780
    enough = 780 / 2 * (4 * math.sqrt(2 / math.pi) / (2 * 2000 * 0.1)) ** 2
    for rho, is_all in ((enough * 1.01, True), (enough * 0.99, False)):
        noise = NoiseModel(Budget.parse(rho=rho), Unit("add-remove"))
        assert pair_round(noise, sizes, 40, 2000).blind == is_all


def test_all_are_looked_at_where_they_can_be_told_apart() -> None:
    """Large tables, mostly noise, but their distances are read with noise of .15 of the rows at a thirtieth of the budget."""
    sizes = [2500] * 10
    enough = 10 * 30 / (2 * 300**2)
    for rho, is_all in ((enough * 1.01, True), (enough * 0.99, False)):
        noise = NoiseModel(Budget.parse(rho=rho), Unit("add-remove"))
        assert noise.mean_tvd(sizes, 2000) > 1
        assert (pair_round(noise, sizes, 1, 2000).n_read == 10) == is_all


def test_nothing_to_choose_from_is_nothing_to_look_at() -> None:
    """No pairs at all."""
    noise = NoiseModel(Budget.parse(epsilon=1), Unit("add-remove"))
    assert pair_round(noise, [], 1, 100).n_read == 0


def test_from_none_to_all_are_looked_at() -> None:
    """From next to no budget to a generous one: none, a growing list, all; and reading all costs less the more there is."""
    sizes = [9] * 300
    found = [
        pair_round(NoiseModel(Budget.parse(rho=rho), Unit("replace")), sizes, 25, 500)
        for rho in np.geomspace(1e-9, 1e6, 60)
    ]
    numbers = [step.n_read for step in found if not step.blind]
    assert numbers[0] == 0
    assert numbers[-1] == 300
    assert numbers == sorted(numbers)
    assert any(0 < number < 300 for number in numbers)
    read = [step.share for step in found if step.n_read == 300]
    assert read == sorted(read, reverse=True)
    assert read[-1] < read[0] <= READING


def test_columns_come_first_where_pairs_are_told_apart_by_what_they_predict() -> None:
    """Forty columns of three levels, drawn: with the share, noise moves the distance of two independent columns by about half the noise of the choice."""
    rows, shape, sizes = 20_000, (3,) * 40, [9] * 780
    noise = NoiseModel(Budget.parse(rho=1e-3), Unit("add-remove"))
    share = column_share(noise, shape, rows, pair_round(noise, sizes, 40, rows))
    assert ONE_WAY < share < COLUMNS
    rng, sd = np.random.default_rng(0), noise.discrete_precision(float(share / 40)) ** -0.5
    errors = rng.normal(0, sd, (2_000, 2, 3))
    errors -= errors.mean(axis=2, keepdims=True)
    moved = np.abs(errors[:, 0, :, None] / 3 + errors[:, 1, None, :] / 3).sum(axis=(1, 2)).mean()
    assert moved == pytest.approx(0.05 * rows, rel=0.25)


def test_columns_get_between_a_little_and_half_before_a_choice() -> None:
    """Less the larger the budget; and only a little where nothing is chosen."""
    rows, shape, sizes = 2_000, (4,) * 40, [16] * 780
    found = []
    for rho in np.geomspace(1e-7, 10, 40):
        noise = NoiseModel(Budget.parse(rho=rho), Unit("add-remove"))
        step = pair_round(noise, sizes, 40, rows)
        found.append(column_share(noise, shape, rows, step))
        assert found[-1] == ONE_WAY or not step.takes_all
    chosen = [share for share in found if share > ONE_WAY]
    assert chosen[0] == COLUMNS
    assert chosen == sorted(chosen, reverse=True)
    assert found[0] == found[-1] == ONE_WAY
