"""A whole run of both experiments with invented scores: the keys and shapes of real blocks, numbers of our own, planted where a test wants them."""

import re
from collections.abc import Mapping
from functools import cache
from math import prod
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from experiments.paper import __main__ as command
from experiments.paper import bankruptcy, results, simulated
from experiments.paper.bankruptcy_data import OUTCOME, SHAPE, Bankruptcy, columns_of_cells
from experiments.paper.blocks import ORIGINAL, Block

Arrays = dict[str, np.ndarray]
Plant = Mapping[str, float]
_run_first, _run_second = simulated.run_block, bankruptcy.run_block


def invented_rows(seed: int = 0) -> Bankruptcy:
    """250 rows of the shape of the bankruptcy data, with a class that follows one quality."""
    levels = columns_of_cells()
    weights = np.where((levels[:, 4] == 2) == (levels[:, OUTCOME] == 1), 5.0, 1.0)
    cells = np.random.default_rng(seed).choice(prod(SHAPE), 250, p=weights / weights.sum())
    return Bankruptcy(np.stack(np.unravel_index(cells, SHAPE), axis=1))


@cache
def _first_template(method: str) -> Arrays:
    """One real block, two repeats; one reading stands for all others."""
    return dict(_run_first(Block(200, 2, 0, 2, method)))


@cache
def _second_template(method: str, sets: int) -> Arrays:
    return dict(_run_second(Block(sets, 2, 0, 1, method), invented_rows()))


def _one_reading(method: str) -> str:
    return re.sub(r"\[.*\]", "[clipped]", method)


def _scored(template: Arrays, block: Block, entropy: tuple[int, ...], every: int, plant: Plant) -> Arrays:
    """Scores around the template's mean: positive, a tenth of noise, times what is planted for their key."""
    made, repeats = {}, -(-block.repeats // every)
    for key, values in template.items():
        name = f"{block.method}/{key}"
        rng = np.random.default_rng([*entropy, crc32(name.encode())])
        mean = np.nan_to_num(np.abs(values.astype(float)), nan=1.0, posinf=4.0).mean(axis=0)
        # The rounds of a run and the regression of the real rows are the same in all repeats.
        noise = 0.0 if key == "rounds" or name in ("original/estimate", "original/variance") else 0.1
        errors = noise * rng.standard_normal((repeats, *mean.shape)).clip(-3, 3)
        made[key] = plant.get(name, 1.0) * mean * (1 + errors)
    return made


def install(monkeypatch: pytest.MonkeyPatch, plant: Plant | None = None) -> None:
    """Let the experiments compute invented blocks, on invented rows, with few random populations."""
    planted, change = plant or {}, monkeypatch.setattr

    def first(block: Block) -> Arrays:
        every = 1 if block.method == ORIGINAL else simulated.METHODS[block.method].every
        template = _first_template(_one_reading(block.method))
        return _scored(template, block, simulated.entropy(block), every, planted)

    def second(block: Block, data: Bankruptcy) -> Arrays:
        every = 1 if block.method == ORIGINAL else bankruptcy.METHODS[block.method].every
        template = _second_template(_one_reading(block.method), block.scenario)
        return _scored(template, block, bankruptcy.entropy(block), every, planted)

    for module in (simulated, bankruptcy):
        change(module, "best_rounds", lambda *args: 2)
    for module in (results, command):
        change(module, "load", lambda data: invented_rows())
    change(simulated, "POPULATIONS", 2)
    change(simulated, "run_block", first)
    change(bankruptcy, "run_block", second)


def files_below(path: Path) -> dict[str, bytes]:
    """Every file below a folder but the journals, by its name."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.suffix != ".jsonl"
    }
