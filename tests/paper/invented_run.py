"""A whole run of both experiments with invented scores: the keys and shapes of real blocks, numbers of our own, planted where a test wants them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np

from experiments.paper import bankruptcy, models, simulated
from experiments.paper.bankruptcy import BankruptcyBlock
from experiments.paper.bankruptcy_data import OUTCOME, SCHEMA, Bankruptcy, columns_of_cells
from experiments.paper.readings import LITERAL
from experiments.paper.simulated import MODELS, RIVAL, RIVAL_EVERY, SETS_GROUP, SimulatedBlock

Plant = Mapping[str, float]


def invented_rows(seed: int = 0) -> Bankruptcy:
    """250 rows of the shape of the bankruptcy data, with a class that follows one quality."""
    rng = np.random.default_rng(seed)
    levels = columns_of_cells()
    weights = np.where((levels[:, 4] == 2) == (levels[:, OUTCOME] == 1), 5.0, 1.0)
    cells = rng.choice(len(levels), 250, p=weights / weights.sum())
    return Bankruptcy(np.stack(np.unravel_index(cells, SCHEMA.shape), axis=1).astype(np.int32))


@cache
def _first_template(group: str) -> dict[str, np.ndarray]:
    """One real block of a group, two repeats."""
    return dict(simulated.run_block(SimulatedBlock(200, 2, 0, 2, group=group)))


@cache
def _second_template(group: str, sets: int) -> dict[str, np.ndarray]:
    return dict(bankruptcy.run_block(BankruptcyBlock(2, sets, 0, 1, group), invented_rows()))


def _scored(
    template: dict[str, np.ndarray], repeats: int, seed: list[int], plant: Plant
) -> dict[str, np.ndarray]:
    """Scores around the template's mean: positive, a tenth of noise, times what is planted for their key."""
    made = {}
    for key, values in template.items():
        rng = np.random.default_rng([*seed, crc32(key.encode())])
        if key.startswith("original/") and values.ndim == 1:
            made[key] = values
            continue
        mean = np.nan_to_num(np.abs(values.astype(float)), nan=1.0, posinf=4.0).mean(axis=0)
        noise = 0.0 if key.endswith("/rounds") else 0.1
        made[key] = (
            plant.get(key, 1.0) * mean * (1 + noise * rng.standard_normal((repeats, *mean.shape)).clip(-3, 3))
        )
    return made


def first_block(block: SimulatedBlock, plant: Plant) -> dict[str, np.ndarray]:
    """An invented block of the first experiment."""
    readable = block.group in (*simulated.GROUPS, LITERAL)
    template = _first_template(block.group if readable else "clipped")
    renamed = {key.replace("[clipped]", f"[{block.group}]"): values for key, values in template.items()}
    if block.population:
        renamed = {key: values for key, values in renamed.items() if key.endswith("/tvd")}
    every = {RIVAL: RIVAL_EVERY, MODELS: models.EVERY}.get(block.group, 1)
    scores = _scored(renamed, -(-block.repeats // every), list(block.entropy), plant)
    return {k: v[:: simulated.ORACLE_EVERY] if " rounds" in k else v for k, v in scores.items()}


def second_block(block: BankruptcyBlock, plant: Plant) -> dict[str, np.ndarray]:
    """An invented block of the second experiment."""
    readable = block.group in (*simulated.GROUPS, LITERAL)
    template = _second_template(block.group if readable else "clipped", block.sets)
    renamed = {key.replace("[clipped]", f"[{block.group}]"): values for key, values in template.items()}
    repeats = -(-block.repeats // RIVAL_EVERY) if block.group == RIVAL else block.repeats
    return _scored(renamed, repeats, list(block.entropy), plant)


def install(monkeypatch: object, plant: Plant | None = None) -> None:
    """Let the experiments compute invented blocks, on invented rows, with few random populations."""
    planted = plant or {}
    change = monkeypatch.setattr  # type: ignore[attr-defined]
    change(simulated, "best_rounds", lambda *args: 2)
    change(bankruptcy, "best_rounds", lambda *args: 2)
    change(simulated, "POPULATIONS", 2)
    for group in (*simulated.GROUPS, LITERAL, "clipped"):
        _first_template(group)
        if group not in (SETS_GROUP, simulated.LIMIT, MODELS):
            for sets in bankruptcy.SETS:
                _second_template(group, sets)
    change(simulated, "run_block", lambda block: first_block(block, planted))
    change(bankruptcy, "run_block", lambda block, data: second_block(block, planted))


def rows_of(path: Path) -> dict[str, bytes]:
    """Every file below a folder but the journals, by its name."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.suffix != ".jsonl"
    }
