"""MWEM: the constants of its budget, its update, and what it converges to."""

import math

import numpy as np
import pytest
from replaying import run
from test_contract import SCHEMA, planted

from dpcipher.methods import MWEM
from dpcipher.methods.mwem import Measurement, replay
from dpcipher.methods.scores import GRID
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema

PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def margins(table: np.ndarray, pairs: list[tuple[int, int]] = PAIRS) -> list[np.ndarray]:
    """The two-way tables."""
    return [table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in pair)) for pair in pairs]


def test_half_of_every_round_chooses_and_half_measures() -> None:
    """With T rounds and a public number of rows: Pr ∝ exp(ε·s/(4TΔ)), and noise of scale 2TΔ/ε."""
    tape, _ = run(MWEM(2.0, unit="replace", rounds=3), planted(), SCHEMA)
    kinds = [kind for kind, _, _ in tape.asked]
    scales = [scale for _, _, scale in tape.asked]
    assert kinds == ["choice", "laplace"] * 3
    assert scales[0::2] == [4 * 3 * 2 * GRID / 2.0] * 3
    assert scales[1::2] == [2 * 3 * 2 / 2.0] * 3


def test_a_private_number_of_rows_is_bought_with_a_tenth() -> None:
    """Under add-remove the first question is the number of rows."""
    tape, events = run(MWEM(1.0, unit="add-remove", rounds=3), planted(), SCHEMA)
    assert [event["share"] for event in events] == ["1/10"] + ["3/20"] * 6
    assert tape.asked[0][1] == 400
    assert tape.asked[0][2] == 10


def test_cells_are_measured_one_at_a_time() -> None:
    """A cell changes by one row under replacement too, so neither the choice nor the noise pays for two."""
    tape, _ = run(MWEM(2.0, unit="replace", rounds=2, queries="cells"), planted(), SCHEMA)
    assert [len(truth.ravel()) for _, truth, _ in tape.asked] == [37, 1] * 2
    assert [scale for _, _, scale in tape.asked] == [4 * 2 * GRID / 2.0, 2 * 2 / 2.0] * 2


def test_scores_are_the_errors_of_the_current_table() -> None:
    """In the first round the current table is uniform: L1 error less the number of cells, in units of the grid."""
    counts = planted()
    tape, _ = run(MWEM(2.0, unit="replace", rounds=1), counts, SCHEMA)
    expected = [np.abs(margin - 400 / margin.size).sum() - margin.size for margin in margins(counts)]
    np.testing.assert_allclose(tape.asked[0][1] / GRID, expected, atol=0.01)


def test_the_update_is_the_published_one() -> None:
    """One step on a table, and on a cell, against the formula written out cell by cell."""
    table, n = np.array([[10.0, 20.0], [30.0, 40.0]]), 100.0
    whole = replay(table, [Measurement((0,), np.array([50.0, 50.0]))], n, 1)
    expected = table * np.exp((np.array([50.0, 50.0]) - table.sum(axis=1)) / (2 * n))[:, None]
    np.testing.assert_allclose(whole, expected * n / expected.sum())
    cell = replay(table, [Measurement((0, 1), np.array(25.0), (0, 1))], n, 1)
    expected = table.copy()
    expected[0, 1] *= math.exp((25.0 - 20.0) / (2 * n))
    np.testing.assert_allclose(cell, expected * n / expected.sum())


def test_wild_measurements_do_not_overflow() -> None:
    """Noise far beyond the number of rows leaves a finite table."""
    table = replay(np.ones((2, 2)), [Measurement((0,), np.array([1e9, -1e9]))], 4.0, 50)
    assert np.isfinite(table).all()
    assert table.sum() == pytest.approx(4.0)


@pytest.mark.parametrize(
    "options", [{"rounds": 12, "passes": 60}, {"rounds": 60, "queries": "cells", "passes": 20}]
)
def test_pairs_are_recovered_without_noise(options: dict[str, object]) -> None:
    """As the budget grows the pair tables of the data come back."""
    counts = planted()
    method = MWEM(3e4, unit="replace", **options).fit_counts(counts, SCHEMA, draws=Draws.seeded(1))
    fitted = method.joint.core.probabilities
    errors = [np.abs(a / 400 - b).sum() / 2 for a, b in zip(margins(counts), margins(fitted), strict=True)]
    assert np.mean(errors) < 0.01


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_within_the_published_bound(seed: int) -> None:
    """Max error of the averaged table at most 2n√(log|D|/T) + 10T·log|Q|/ε (Hardt, Ligett and McSherry, theorem 2.2)."""
    counts, rounds, epsilon = planted(5000), 10, 1.0
    method = MWEM(epsilon, unit="replace", rounds=rounds, queries="cells", average=True, passes=1)
    fitted = method.fit_counts(counts, SCHEMA, draws=Draws.seeded(seed)).joint.core.probabilities
    worst = max(np.abs(a - 5000 * b).max() for a, b in zip(margins(counts), margins(fitted), strict=True))
    assert worst <= 2 * 5000 * math.sqrt(math.log(36) / rounds) + 10 * rounds * math.log(37) / epsilon


def test_the_published_algorithm_uses_every_answer_once() -> None:
    """Cells, one pass, the mean of the rounds: three rounds by hand, without noise, with the worst cell in each."""
    counts, rounds, n = planted(5000), 3, 5000
    options = {"queries": "cells", "average": True, "passes": 1, "rounds": rounds}
    method = MWEM(3e4, unit="replace", **options).fit_counts(counts, SCHEMA, draws=Draws.seeded(1))
    table, mean = np.full(counts.shape, n / counts.size), np.zeros(counts.shape)
    for _ in range(rounds):
        mean += table / rounds
        gaps = [a - b for a, b in zip(margins(counts), margins(table), strict=True)]
        pair = int(np.argmax([np.abs(gap).max() for gap in gaps]))
        cell = np.unravel_index(np.abs(gaps[pair]).argmax(), gaps[pair].shape)
        inside = np.ones(counts.shape, dtype=bool)
        for axis, level in zip(PAIRS[pair], cell, strict=True):
            inside &= np.indices(counts.shape)[axis] == level
        table = np.where(inside, table * np.exp(gaps[pair][cell] / (2 * n)), table)
        table *= n / table.sum()
    np.testing.assert_allclose(method.joint.core.probabilities, mean / n, rtol=1e-6)


def test_averaging_returns_the_mean_of_the_rounds() -> None:
    """With one round the mean is the table before it: uniform."""
    method = MWEM(1.0, unit="replace", rounds=1, average=True).fit_counts(
        planted(), SCHEMA, draws=Draws.seeded(1)
    )
    np.testing.assert_allclose(method.joint.core.probabilities, 1 / 36)


def test_rounds_follow_the_schema_alone() -> None:
    """As many as columns, at most as many as tables."""
    for sizes, expected in (({"a": 2, "b": 2, "c": 2, "d": 2}, 4), ({"a": 2, "b": 2}, 1), ({"a": 5}, 1)):
        schema = Schema.from_domain(sizes)
        tape, _ = run(MWEM(1.0, unit="replace"), np.ones(schema.shape, dtype=int), schema)
        assert len(tape.asked) == 2 * expected


@pytest.mark.parametrize("options", [{"rounds": 0}, {"passes": 0}, {"queries": "rows"}, {"rounds": 2.5}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    """At birth."""
    with pytest.raises(ValueError, match=next(iter(options))):
        MWEM(1.0, unit="replace", **options)
