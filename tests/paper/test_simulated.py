"""The first experiment in small: its population, its blocks, and the directions that hold with few repeats."""

import json
from collections.abc import Mapping
from itertools import product
from math import exp
from pathlib import Path

import numpy as np
import pytest

from dpcipher.errors import ParameterError
from experiments.paper import simulated
from experiments.paper.blocks import ORIGINAL, POWERS, STAMP, Block, Blocks
from experiments.paper.population import (
    COEFFICIENTS,
    POPULATION,
    REGRESSIONS,
    SEED,
    Population,
    random_coefficients,
)
from experiments.paper.quantities import cost
from experiments.paper.simulated import CIPHER, FDH, METHODS, MWEM, OURS, POPULATIONS, SIZES, run_block, tasks
from experiments.paper.stacks import LITERAL, ROUNDS, SWEPT, read, tvd


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
    """Every scenario gets all repeats of every method, no two blocks share a name, and the literal reading comes before the others."""
    todo = tasks(250, tuple(SWEPT))
    methods = list(dict.fromkeys(block.method for block in todo))
    assert methods[:2] == [ORIGINAL, FDH]
    assert {read(CIPHER[2], reading) for reading in SWEPT} <= set(methods)
    assert methods.index(CIPHER[2]) < methods.index(read(CIPHER[2], "clipped"))
    for n, power, method in product(SIZES, POWERS, methods):
        here = [b for b in todo if (b.scenario, b.power, b.population, b.method) == (n, power, 0, method)]
        assert sum(block.repeats for block in here) == 250
    assert len({block.name for block in todo}) == len(todo)
    seeds = {simulated.entropy(block) for block in todo}
    assert len(seeds) == 3 * len(SIZES) * len(POWERS) + POPULATIONS * len(POWERS)
    assert len(tasks(250)) < len(todo)


def test_readings_are_paired() -> None:
    """Two readings of the same block see the same originals and the same noise: with nothing to guard they are equal."""
    literal, other = (
        run_block(Block(500, 2, 0, 2, read(CIPHER[3], reading))) for reading in (LITERAL, "clipped inputs")
    )
    np.testing.assert_allclose(literal["averaging"][:, 1], other["averaging"][:, 1])


def test_printed_costs_are_the_meant_ones_swapped() -> None:
    """20 and 32 of 36; the full table costs 1."""
    assert cost(CIPHER[2]) == cost(CIPHER[3], "as printed") == pytest.approx(20 / 36)
    assert cost(CIPHER[3]) == cost(CIPHER[2], "as printed") == pytest.approx(32 / 36)
    assert cost(FDH) == cost(FDH, "as printed") == 1


def small_block(block: Block) -> Mapping[str, np.ndarray]:
    """A block of one cheap method: enough to see that nothing depends on what ran before."""
    rng = np.random.default_rng(simulated.entropy(block))
    return {"tvd": rng.random((block.repeats, 3)), "number": np.array([block.number])}


class Killed(BaseException):
    """What a test raises in place of a signal."""


def test_a_run_that_was_killed_and_resumed_equals_one_that_was_not(tmp_path: Path) -> None:
    """Killed in the middle of a block, with half a line on disk; then run again."""
    todo = tasks(3)[:5]
    whole = Blocks(tmp_path / "whole.jsonl", small_block, {"a": 1})
    whole.run(todo, workers=1, say=lambda text: None)

    def dies(block: Block) -> Mapping[str, np.ndarray]:
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


def test_a_block_repeats_and_holds_all_metrics() -> None:
    """The same block twice gives the same numbers; methods on few repeats are run on few."""
    block = Block(200, 0, 0, 6, OURS[2])
    first, second = run_block(block), run_block(block)
    assert first["tvd"].shape == (6, 3)
    assert first.keys() >= {"tvd", "linf", "joint_tvd", "estimate0", "variance1", "dof0", "separated"}
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])
    assert run_block(Block(200, 0, 0, 6, "PrivBayes"))["tvd"].shape == (2, 3)
    assert run_block(Block(200, 0, 0, 6, simulated.after(MWEM["cells"][2], 4)))["tvd"].shape == (3, 3)
    assert "estimate0" not in run_block(Block(200, 0, 0, 2, OURS[2], population=1))


def mean_tvd(name: str, power: int, many: int = 12) -> float:
    """The mean 2-way TVD of synthetic rows at one fifth of e^power."""
    counts = POPULATION.draw(200, many, np.random.default_rng(1))
    seed = np.random.SeedSequence([2, power + 2])
    drawn = METHODS[name].draw(counts, epsilon=exp(power) / 5, seed=seed, rounds=2)
    return float(tvd(counts, drawn.rows, [2]).mean())


def test_the_directions_that_hold_with_few_repeats() -> None:
    """More budget helps; FDH beats the paper's engine un-normalised; ours beats the paper's engine; MWEM by single cells stays flat."""
    fdh, cipher, ours, cells = (
        [mean_tvd(name, power) for power in (-2, 0, 2)]
        for name in (FDH, CIPHER[2], OURS[2], MWEM["cells"][2])
    )
    for line in (fdh, cipher, ours):
        assert line == sorted(line, reverse=True)
    assert all(a < b for a, b in zip(fdh, cipher, strict=True))
    assert all(a < b for a, b in zip(ours, cipher, strict=True))
    assert max(cells) < 1.1 * min(cells)


def test_rounds_are_chosen_from_the_list() -> None:
    """And the same each time."""
    assert simulated.best_rounds(MWEM["cells"][2], 200, 0) in ROUNDS
