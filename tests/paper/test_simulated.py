"""The first experiment in small: its population, its blocks, and the directions that hold with few repeats."""

import json
from collections.abc import Mapping
from itertools import product
from math import exp
from pathlib import Path

import numpy as np
import pytest

from dpcipher.errors import ParameterError
from dpcipher.inference.models import fit_models
from experiments.paper import models, simulated
from experiments.paper.blocks import STAMP, Blocks, split
from experiments.paper.contenders import CIPHER, FDH, MWEM, OURS, Contender, tvd
from experiments.paper.population import (
    COEFFICIENTS,
    POPULATION,
    REGRESSIONS,
    SEED,
    Population,
    random_coefficients,
)
from experiments.paper.readings import LITERAL, SWEPT
from experiments.paper.simulated import BLOCK, POPULATIONS, POWERS, SIZES, SimulatedBlock, run_block, tasks
from experiments.paper.view import cost


def test_the_published_coefficients_are_those_of_their_seed() -> None:
    """Nobody chose them one by one."""
    assert random_coefficients(SEED) == COEFFICIENTS


def test_the_joint_is_the_product_of_its_logits() -> None:
    """Cell by cell, from the definition."""
    for cell in product(range(2), range(2), range(3), range(3)):
        chance = 1.0
        for axis, rows in enumerate(COEFFICIENTS):
            dummies = [1.0]
            for earlier in range(axis):
                dummies += [float(cell[earlier] == level) for level in range(1, (2, 2, 3, 3)[earlier])]
            odds = [1.0, *(exp(sum(b * d for b, d in zip(row, dummies, strict=True))) for row in rows)]
            chance *= odds[cell[axis]] / sum(odds)
        assert POPULATION.joint[cell] == pytest.approx(chance)


def test_the_truth_of_the_ten_parameters_is_the_last_logit() -> None:
    """The model holds exactly there, so that bias and coverage are about the coefficients themselves."""
    np.testing.assert_allclose(REGRESSIONS[0].truth(POPULATION), np.ravel(COEFFICIENTS[3]), atol=1e-6)
    assert (REGRESSIONS[0].size, REGRESSIONS[1].size) == (10, 6)


def test_coefficients_of_another_shape_are_refused() -> None:
    """Checked at birth."""
    with pytest.raises(ParameterError, match="coefficients must be four tables"):
        Population(COEFFICIENTS[:3])


def test_blocks_cover_every_repeat_once() -> None:
    """Every scenario gets all repeats in every group, no two blocks share a name, and the literal reading comes before the others."""
    todo = tasks(250, tuple(SWEPT))
    groups = list(dict.fromkeys(block.group for block in todo))
    assert groups[1] == LITERAL
    assert set(SWEPT) <= set(groups)
    for n, power, group in product(SIZES, POWERS, groups):
        here = [b for b in todo if (b.n_rows, b.power, b.population, b.group) == (n, power, 0, group)]
        assert sum(block.repeats for block in here) == 250
    assert len({block.name for block in todo}) == len(todo)
    seeds = {block.entropy for block in todo}
    assert len(seeds) == len(split(250, BLOCK)) * len(SIZES) * len(POWERS) + POPULATIONS * len(POWERS)


def test_readings_are_paired() -> None:
    """Two readings of the same block see the same originals and the same noise: with nothing to guard they are equal."""
    literal, other = (
        run_block(SimulatedBlock(500, 2, 0, 2, group=group)) for group in (LITERAL, "clipped inputs")
    )
    same = np.isclose(
        literal["CIPHER 3-way/averaging"][:, 1], other["CIPHER 3-way [clipped inputs]/averaging"][:, 1]
    )
    assert same.all()


def test_printed_costs_are_the_meant_ones_swapped() -> None:
    """20 and 32 of 36; the full table costs 1."""
    assert cost(CIPHER[2]) == cost(CIPHER[3], "as printed") == pytest.approx(20 / 36)
    assert cost(CIPHER[3]) == cost(CIPHER[2], "as printed") == pytest.approx(32 / 36)
    assert cost(FDH) == cost(CIPHER[2], normal=False) == 1


def small_block(block: SimulatedBlock) -> Mapping[str, np.ndarray]:
    """A block of one cheap method: enough to see that nothing depends on what ran before."""
    rng = np.random.default_rng(block.entropy)
    return {"FDH/tvd": rng.random((block.repeats, 3)), "number": np.array([block.number])}


class Killed(BaseException):
    """What a test raises in place of a signal."""


def test_a_run_that_was_killed_and_resumed_equals_one_that_was_not(tmp_path: Path) -> None:
    """Killed in the middle of a block, with half a line on disk; then run again."""
    todo = tasks(3)[:5]
    whole = Blocks(tmp_path / "whole.jsonl", small_block, {"a": 1})
    whole.run(todo, workers=1, say=lambda text: None)

    def dies(block: SimulatedBlock) -> Mapping[str, np.ndarray]:
        if block == todo[3]:
            raise Killed
        return small_block(block)

    with pytest.raises(Killed):
        Blocks(tmp_path / "parts.jsonl", dies, {"a": 1}).run(todo, workers=1, say=lambda text: None)
    with (tmp_path / "parts.jsonl").open("ab") as torn:
        torn.write(b'{"name": "n2')
    said: list[str] = []
    parts = Blocks(tmp_path / "parts.jsonl", small_block, {"a": 1})
    parts.run(todo, workers=2, say=said.append)
    assert len(said) == 2
    for block in todo:
        first, second = whole.load()[block.name], parts.load()[block.name]
        assert first.keys() == second.keys()
        for key in first:
            np.testing.assert_array_equal(first[key], second[key])


def test_blocks_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    """Another version's folder is refused, and the file says that it is not private."""
    todo = tasks(1)[:1]
    path = tmp_path / "blocks.jsonl"
    Blocks(path, small_block, {"a": 1}).run(todo, workers=1, say=lambda text: None)
    assert json.loads(path.read_text().splitlines()[0])["stamp"] == STAMP
    with pytest.raises(ParameterError, match="another folder"):
        Blocks(path, small_block, {"a": 2}).run(todo, workers=1, say=lambda text: None)


def test_a_block_of_ours_repeats_and_holds_all_metrics() -> None:
    """The same block twice gives the same numbers."""
    block = SimulatedBlock(200, 0, 0, 2, group="ours")
    first, second = run_block(block), run_block(block)
    assert first["ours 2-way/tvd"].shape == (2, 3)
    assert {key.split("/")[1] for key in first} >= {
        "tvd",
        "linf",
        "joint_tvd",
        "estimate0",
        "variance1",
        "dof0",
    }
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


def test_models_of_one_release_are_those_of_fit_models() -> None:
    """The same release and seed through the public door give the same estimates and intervals."""
    counts = POPULATION.draw(500, 1, np.random.default_rng(3))[0]
    release = models.release_pairs(counts, 1.0, 7)
    found = models._fit(release, 11)
    for number, (formula, family) in enumerate(models.FORMULAS):
        fitted = fit_models(release, formula, family, draws=models.DRAWS, seed=11)
        low, high = fitted.combined.interval()
        expected = {"estimate": fitted.combined.estimate, "low": low, "high": high}
        for key, values in expected.items():
            np.testing.assert_allclose(found[f"{models.NAME}/{key}{number}"], values)


def test_models_of_one_release_know_the_truth_of_very_many_rows() -> None:
    """Their parameters stand in the order of the paper's regressions: with nearly no noise the estimates are the coefficients."""
    counts = np.rint(1e6 * POPULATION.joint).astype(np.int64)
    found = models.fit_originals(counts[None], epsilon=100.0, entropy=(1,))
    for number, regression in enumerate(REGRESSIONS):
        estimate = found[f"{models.NAME}/estimate{number}"][0]
        np.testing.assert_allclose(estimate, regression.truth(POPULATION), atol=0.15)


def mean_tvd(contender: Contender, power: int, many: int = 12) -> float:
    """The mean 2-way TVD of synthetic rows at one fifth of e^power."""
    counts = POPULATION.draw(200, many, np.random.default_rng(1))
    drawn = contender.draw(
        counts, epsilon=exp(power) / 5, seed=np.random.SeedSequence([2, power + 2]), rounds=2
    )
    return float(tvd(counts, drawn.rows, [2]).mean())


def test_the_directions_that_hold_with_few_repeats() -> None:
    """More budget helps; FDH beats the paper's engine un-normalised; ours beats the paper's engine; MWEM by single cells stays flat."""
    fdh, cipher, ours, cells = (
        [mean_tvd(one, power) for power in (-2, 0, 2)] for one in (FDH, CIPHER[2], OURS[2], MWEM["cells"][2])
    )
    for line in (fdh, cipher, ours):
        assert line == sorted(line, reverse=True)
    assert all(a < b for a, b in zip(fdh, cipher, strict=True))
    assert all(a < b for a, b in zip(ours, cipher, strict=True))
    assert max(cells) < 1.1 * min(cells)


def test_rounds_are_chosen_from_the_list() -> None:
    """And the same each time."""
    assert simulated.best_rounds(MWEM["cells"][2], 200, 0) in simulated.ROUNDS
