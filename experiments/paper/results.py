"""Scores over the repeats of a run, with their Monte Carlo error, by the jackknife over groups of repeats.

A *replicated* value has one more axis, the first: the value from all repeats, then from all but one group of them, for each group. Arithmetic on
replicated values (ratios, differences, roots, logarithms) carries the error along, and values of the same repeats stay paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.inference.combine import t_quantile
from dpcipher.inference.sss import CATEGORIES, sss
from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy, simulated
from experiments.paper.bankruptcy_data import load
from experiments.paper.blocks import ORIGINAL, POWERS, Arrays, Block, Blocks
from experiments.paper.population import POPULATION, REGRESSIONS
from experiments.paper.stacks import Method, Stack, in_run

GROUPS = 50
# A score of FDH on the repeats that the methods of later papers were run on, so that it stays paired with theirs.
THINNED = "tvd, thinned"
# Of the regression with a binary outcome: its scores have names of their own.
BINARY = " (binary)"
SPREAD = ("tvd", "linf", "accuracy")


def replicated_sum(values: Stack) -> Floats:
    """The sum over all repeats (first axis), and over all but each group.

    >>> replicated_sum(np.arange(100.0))[:3].tolist()
    [4950.0, 4900.0, 4898.0]
    """
    member = np.arange(len(values)) % GROUPS
    parts = np.stack([values[member == group].sum(axis=0) for group in range(GROUPS)])
    total = parts.sum(axis=0)
    return np.concatenate([total[None], total - parts]).astype(float)


def replicated_mean(values: Stack) -> Floats:
    """The mean over the repeats where it is known, replicated."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(replicated_sum(np.where(known, values, 0.0)) / replicated_sum(known))


def standard_error(replicated: Floats) -> Floats:
    """The Monte Carlo error of replicated values; infinite where a group held all there was."""
    left = replicated[1:]
    with np.errstate(invalid="ignore"):
        error = np.sqrt((GROUPS - 1) / GROUPS * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return np.asarray(np.where(np.isnan(error), np.inf, error))


def freedom(replicated: Floats) -> int:
    """The degrees of freedom of a standard error: one less than the groups that held any repeats."""
    left = replicated[1:].reshape(GROUPS, -1)
    return max(int(np.any(left != replicated[0].ravel(), axis=1).sum()) - 1, 1)


def exactly(value: Stack | Sequence[float] | float) -> Floats:
    """A value without Monte Carlo error, replicated."""
    return np.repeat(np.asarray(value, dtype=float)[None], 1 + GROUPS, axis=0)


@dataclass(frozen=True)
class Scores:
    """The scores of one experiment, by method and metric.

    `means` are replicated, with axes for the scenario (n or m), epsilon, and the place: the order of tables, or the parameter. `spread` has standard
    deviations over repeats instead. `random` has the mean TVD of every random population: populations, epsilon, orders.
    """

    repeats: int
    readings: tuple[str, ...]
    scenarios: tuple[int, ...]
    means: Mapping[tuple[str, str], Floats]
    spread: Mapping[tuple[str, str], Floats]
    random: Mapping[str, Floats] = field(default_factory=dict)

    def frame(self) -> pd.DataFrame:
        """Every score as a row: method, metric, scenario, power of e, place, mean, its error, spread."""
        rows = []
        for (method, metric), values in self.means.items():
            error = standard_error(values)
            spread = self.spread.get((method, metric), np.full(error.shape, np.nan))
            for place in np.ndindex(error.shape):
                where = (self.scenarios[place[0]], POWERS[place[1]], place[2])
                rows.append((method, metric, *where, values[(0, *place)], error[place], spread[place]))
        names = ["method", "metric", "scenario", "power", "place", "mean", "error", "spread"]
        return pd.DataFrame(rows, columns=names)


@dataclass(frozen=True)
class Intervals:
    """Estimates with their 95 % intervals, repeats by parameters."""

    estimate: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, arrays: Arrays, number: int | str, every: int = 1) -> "Intervals":
        """The t-intervals of combined inference, on every few repeats."""
        estimate, variance, dof = (
            arrays[f"{key}{number}"][::every] for key in ("estimate", "variance", "dof")
        )
        half = t_quantile(0.95, dof) * np.sqrt(variance)
        return cls(estimate, estimate - half, estimate + half)

    def side(self, known: Stack) -> tuple[Floats, Stack]:
        """Estimates, and whether their intervals exclude 0, of the parameters that are known."""
        significant = (self.low > 0) | (self.high < 0)
        return self.estimate[known], significant[known]


def infer(own: Intervals, original: Intervals, truth: Floats | None) -> dict[str, Floats]:
    """Replicated scores of estimates and their intervals; without a truth, the original's estimate is it.

    By parameter: bias, RMSE, coverage, width. Over all of them: the share of each SSS category, and of the parameters that fewer than two of a
    repeat's sets identify, which are left out of everything else.
    """
    known = ~np.isnan(own.estimate) & ~np.isnan(original.estimate)
    aim = original.estimate if truth is None else truth
    error = np.where(known, own.estimate - aim, np.nan)
    categories = np.full(known.shape, "", dtype="<U8")
    categories[known] = sss(original.side(known), own.side(known)).categories
    counted = replicated_sum(known.sum(axis=1))
    covered = (own.low <= aim) & (aim <= own.high)
    with np.errstate(invalid="ignore"):
        shares = {name: replicated_sum((categories == name).sum(axis=1)) / counted for name in CATEGORIES}
    return {
        "bias": replicated_mean(error),
        "rmse": np.sqrt(replicated_mean(error**2)),
        "coverage": replicated_mean(np.where(known, covered, np.nan)),
        "width": replicated_mean(np.where(known, own.high - own.low, np.nan)),
        **{name: share[:, None] for name, share in shares.items()},
        "unknown": replicated_mean((~known).astype(float)).mean(axis=1, keepdims=True),
    }


def summarise_simulated(folder: Path, repeats: int, readings: Sequence[str]) -> Scores:
    """The scores of a finished run of the first experiment."""
    todo = simulated.tasks(repeats, readings)
    arrays = _finished(simulated.blocks(folder), todo)
    truths = [regression.truth(POPULATION) for regression in REGRESSIONS]
    means, spread = _summarise(arrays, simulated.METHODS, readings, simulated.SIZES, truths)
    thinned = [
        replicated_mean(arrays[simulated.FDH, n, power, 0]["tvd"][:: simulated.RIVAL_EVERY])
        for n, power in product(simulated.SIZES, POWERS)
    ]
    means[simulated.FDH, THINNED] = _by_scenario(thinned, simulated.SIZES)
    random: dict[str, list[Floats]] = {}
    for (method, _, _, population), here in arrays.items():
        if population:
            random.setdefault(method, []).append(here["tvd"].mean(axis=0))
    tables = {name: np.array(each).reshape(-1, len(POWERS), 3) for name, each in random.items()}
    return Scores(repeats, tuple(readings), simulated.SIZES, means, spread, tables)


def summarise_bankruptcy(folder: Path, repeats: int, readings: Sequence[str], data: Path | None) -> Scores:
    """The scores of a finished run of the second experiment."""
    arrays = _finished(bankruptcy.blocks(folder, load(data)), bankruptcy.tasks(repeats, readings))
    means, spread = _summarise(arrays, bankruptcy.METHODS, readings, bankruptcy.SETS, [None])
    return Scores(repeats, tuple(readings), bankruptcy.SETS, means, spread)


Gathered = Mapping[tuple[str, int, int, int], Arrays]


def _finished(blocks: Blocks, todo: Sequence[Block]) -> Gathered:
    """The repeats of all blocks of a method in a scenario, in one array for each score; populations in their order."""
    arrays = blocks.load()
    parts: dict[tuple[str, int, int, int], list[Arrays]] = {}
    for block in todo:
        where = (block.method, block.scenario, block.power, block.population)
        parts.setdefault(where, []).append(arrays[block.name])
    return {
        where: {k: np.concatenate([p[k] for p in each]) for k in each[0]} for where, each in parts.items()
    }


def _summarise(
    arrays: Gathered,
    methods: Mapping[str, Method],
    readings: Sequence[str],
    scenarios: Sequence[int],
    truths: Sequence[Floats | None],
) -> tuple[dict[tuple[str, str], Floats], dict[tuple[str, str], Floats]]:
    """Means and spreads of the original and of every method."""
    means, spread = {}, {}
    for name in (ORIGINAL, *in_run(methods, readings)):
        every = methods[name].every if name in methods else 1
        cells = [
            dict(
                _scores(arrays[name, scenario, power, 0], arrays[ORIGINAL, scenario, power, 0], every, truths)
            )
            for scenario, power in product(scenarios, POWERS)
        ]
        for metric in cells[0]:
            means[name, metric] = _by_scenario([cell[metric] for cell in cells], scenarios)
        for metric in SPREAD:
            here = [arrays[name, *where, 0].get(metric) for where in product(scenarios, POWERS)]
            if here[0] is not None:
                values = np.array([part.std(axis=0) for part in here])  # type: ignore[union-attr]
                spread[name, metric] = values.reshape(len(scenarios), len(POWERS), -1)
    return means, spread


def _by_scenario(cells: Sequence[Floats], scenarios: Sequence[int]) -> Floats:
    """Replicated values of every scenario and epsilon in one array."""
    values = np.stack(cells, axis=1)
    return values.reshape(len(values), len(scenarios), len(POWERS), -1)


def _scores(
    here: Arrays, original: Arrays, every: int, truths: Sequence[Floats | None]
) -> Iterator[tuple[str, Floats]]:
    """Every replicated score of one method in one scenario."""
    for key, values in here.items():
        if not key.startswith(("estimate", "variance", "dof")):
            yield key, replicated_mean(values)
    for number, truth in enumerate(truths):
        suffix = str(number) if len(truths) > 1 else ""
        if f"estimate{suffix}" in here:
            scores = infer(Intervals.of(here, suffix), Intervals.of(original, suffix, every), truth)
            yield from ((key + BINARY * number, values) for key, values in scores.items())


def plain(value: Any) -> Any:
    """Frames, arrays and keyed tables as what JSON can hold, numbers rounded to what they mean."""
    if isinstance(value, pd.DataFrame):
        return {name: plain(column.tolist()) for name, column in value.items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), 5) if np.isfinite(value) else None
    return value
