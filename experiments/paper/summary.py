"""Scores over the repeats of a run: a card for each scenario (n or m, and epsilon) and method, every value replicated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.inference.combine import t_quantile
from dpcipher.inference.sss import CATEGORIES, sss
from dpcipher.tables.domain import Floats
from experiments.paper import bankruptcy, models
from experiments.paper.bankruptcy_data import load
from experiments.paper.contenders import ROUNDS, Stack
from experiments.paper.population import POPULATION, REGRESSIONS
from experiments.paper.replicates import replicated_mean, replicated_sum
from experiments.paper.rivals import RIVALS
from experiments.paper.simulated import POWERS, RIVAL_EVERY, SIZES, SimulatedBlock, blocks, tasks

ORIGINAL = "original"
ESTIMATES = ("estimate", "variance", "dof")
# Plain means over the repeats, where a method has them.
MEANS = ("tvd", "linf", "joint_tvd", "pooled_tvd", "averaging", "rounds", "separated", "seconds")
# Table 2 of the paper: per cent of 50 test cases, by power of e and method.
PRINTED: Mapping[str, tuple[float, ...]] = {
    "CIPHER": (67.8, 64.7, 68.5, 77.8, 90.3),
    "MWEM": (50.0, 51.3, 51.0, 47.2, 47.3),
    "FDH": (41.1, 55.5, 63.8, 85.7, 98.8),
}


@dataclass(frozen=True)
class Inference:
    """A regression over all repeats: by parameter, and the shares of the SSS categories over all of them. All replicated.

    `unknown` is the share of parameters that fewer than two of a repeat's sets identify; they are left out of everything else.
    """

    bias: Floats
    rmse: Floats
    coverage: Floats
    width: Floats
    shares: Mapping[str, Floats]
    unknown: float

    @property
    def log_odds(self) -> Floats:
        """The log-odds of the category Best."""
        best = np.clip(self.shares["Best"], 1e-4, 1 - 1e-4)
        return np.asarray(np.log(best / (1 - best)))


@dataclass(frozen=True)
class Card:
    """The scores of one method in one scenario: replicated means by name, standard deviations over repeats, and regressions."""

    means: Mapping[str, Floats]
    spread: Mapping[str, Floats] = field(default_factory=dict)
    inference: tuple[Inference, ...] = ()


@dataclass(frozen=True)
class SimulatedSummary:
    """The scores of the first experiment.

    `cards` by n, power and method; `thinned` the same of FDH over the repeats that the rivals were run on; `originals` the regressions of the
    original tables; `models` those of one release, by n and power; `random` the mean TVD of each random population, by power and method
    (populations by orders).
    """

    repeats: int
    readings: tuple[str, ...]
    cards: Mapping[tuple[int, int, str], Card]
    thinned: Mapping[tuple[int, int, str], Card]
    originals: Mapping[int, tuple[Inference, ...]]
    models: Mapping[tuple[int, int], tuple[Inference, ...]]
    random: Mapping[tuple[int, str], Floats]

    def each(self, name: str, score: Callable[[Card], Any]) -> Floats:
        """A replicated score of one method by n and epsilon."""
        return np.moveaxis(
            np.array([[score(self.cards[n, power, name]) for power in POWERS] for n in SIZES]), 2, 0
        )


@dataclass(frozen=True)
class BankruptcySummary:
    """The scores of the second experiment; `original` and `majority` are the accuracies without any synthesis."""

    repeats: int
    readings: tuple[str, ...]
    cards: Mapping[tuple[int, int, str], Card]
    original: float
    majority: float

    def each(self, sets: int, name: str, score: Callable[[Card], Any]) -> Floats:
        """A replicated score of one method by epsilon."""
        return np.moveaxis(np.array([score(self.cards[sets, power, name]) for power in POWERS]), 1, 0)


Arrays = Mapping[str, Stack]


def summarise_simulated(folder: Path, repeats: int, readings: Sequence[str]) -> SimulatedSummary:
    """Read every block of a finished run."""
    todo = tasks(repeats, readings)
    arrays = blocks(folder).load({block.name for block in todo})
    gathered: dict[tuple[int, int, int], list[SimulatedBlock]] = {}
    for block in todo:
        gathered.setdefault((block.population, block.n_rows, block.power), []).append(block)
    cards: dict[tuple[int, int, str], Card] = {}
    thinned: dict[tuple[int, int, str], Card] = {}
    originals: dict[int, tuple[Inference, ...]] = {}
    modelled: dict[tuple[int, int], tuple[Inference, ...]] = {}
    truths = [regression.truth(POPULATION) for regression in REGRESSIONS]
    for n in SIZES:
        for power in POWERS:
            here = joined([arrays[block.name] for block in gathered[0, n, power]])
            for name in _names(here):
                every = RIVAL_EVERY if name in RIVALS else 1
                cards[n, power, name] = _card(here, name, truths, every)
            thinned[n, power, "FDH"] = _card(_every(here, "FDH", RIVAL_EVERY), "FDH", [])
            own = [_own(here, ORIGINAL, number) for number in range(len(truths))]
            originals.setdefault(
                n, tuple(infer(each, each, truth) for each, truth in zip(own, truths, strict=True))
            )
            modelled[n, power] = tuple(
                infer(_modelled(here, number), own[number].every(models.EVERY), truth)
                for number, truth in enumerate(truths)
            )
    random = _random(arrays, gathered)
    return SimulatedSummary(repeats, tuple(readings), cards, thinned, originals, modelled, random)


def joined(parts: Iterable[Arrays]) -> dict[str, Stack]:
    """The repeats of several blocks, in one array for each score."""
    gathered: dict[str, list[Stack]] = {}
    for part in parts:
        for key, values in part.items():
            gathered.setdefault(key, []).append(values)
    return {key: np.concatenate(values) for key, values in gathered.items()}


def _names(here: Arrays) -> list[str]:
    """The methods that have a TVD."""
    return [key.removesuffix("/tvd") for key in here if key.endswith("/tvd")]


def _every(here: Arrays, name: str, step: int) -> dict[str, Stack]:
    """Every few repeats of a method's distances, of each block of a hundred."""
    return {f"{name}/{key}": here[f"{name}/{key}"][::step] for key in ("tvd", "linf")}


def _card(here: Arrays, name: str, truths: Sequence[Floats], every: int = 1) -> Card:
    means = {key: replicated_mean(here[f"{name}/{key}"]) for key in MEANS if f"{name}/{key}" in here}
    for rounds in ROUNDS:
        for key in (f"tvd after {rounds} rounds", f"linf after {rounds} rounds"):
            if f"{name}/{key}" in here:
                means[key] = replicated_mean(here[f"{name}/{key}"])
    spread = {key: here[f"{name}/{key}"].std(axis=0) for key in ("tvd", "linf") if f"{name}/{key}" in here}
    regressions: tuple[Inference, ...] = ()
    if f"{name}/estimate0" in here:
        regressions = tuple(
            infer(_own(here, name, number), _own(here, ORIGINAL, number).every(every), truth)
            for number, truth in enumerate(truths)
        )
    return Card(means, spread, regressions)


@dataclass(frozen=True)
class Intervals:
    """Estimates with their 95 % intervals, repeats by parameters."""

    estimate: Floats
    low: Floats
    high: Floats

    def every(self, step: int) -> "Intervals":
        """Those of every few repeats, of each block of a hundred."""
        return Intervals(self.estimate[::step], self.low[::step], self.high[::step])

    def side(self, known: Stack) -> tuple[Floats, Stack]:
        """Estimates, and whether their intervals exclude 0, of the parameters that are known."""
        significant = (self.low > 0) | (self.high < 0)
        return self.estimate[known], significant[known]


def _own(here: Arrays, name: str, number: int | str) -> Intervals:
    """The t-intervals of a method's combined inference."""
    return t_intervals([here[f"{name}/{key}{number}"] for key in ESTIMATES])


def t_intervals(combined: Sequence[Floats]) -> Intervals:
    """From estimates, variances and degrees of freedom."""
    estimate, variance, dof = combined
    half = t_quantile(0.95, dof) * np.sqrt(variance)
    return Intervals(estimate, estimate - half, estimate + half)


def _modelled(here: Arrays, number: int) -> Intervals:
    return Intervals(*(here[f"{models.NAME}/{key}{number}"] for key in models.BOUNDS))


def infer(own: Intervals, original: Intervals, truth: Floats | None) -> Inference:
    """Scores of estimates and their intervals; without a truth, the original's estimate is it."""
    known = ~np.isnan(own.estimate) & ~np.isnan(original.estimate)
    aim = original.estimate if truth is None else truth
    error = np.where(known, own.estimate - aim, np.nan)
    categories = np.full(known.shape, "", dtype="<U8")
    categories[known] = sss(original.side(known), own.side(known)).categories
    counted = replicated_sum(known.sum(axis=1))
    with np.errstate(invalid="ignore"):
        shares = {name: replicated_sum((categories == name).sum(axis=1)) / counted for name in CATEGORIES}
    covered = (own.low <= aim) & (aim <= own.high)
    return Inference(
        replicated_mean(error),
        np.sqrt(replicated_mean(error**2)),
        replicated_mean(np.where(known, covered, np.nan)),
        replicated_mean(np.where(known, own.high - own.low, np.nan)),
        shares,
        float(1 - known.mean()),
    )


def _random(
    arrays: Mapping[str, Arrays], gathered: Mapping[tuple[int, int, int], Sequence[SimulatedBlock]]
) -> dict[tuple[int, str], Floats]:
    """The mean TVD of every random population, populations by orders."""
    means: dict[tuple[int, str], list[Floats]] = {}
    for (population, _, power), here in gathered.items():
        if population:
            both = joined([arrays[block.name] for block in here])
            for name in _names(both):
                means.setdefault((power, name), []).append(both[f"{name}/tvd"].mean(axis=0))
    return {key: np.stack(values) for key, values in means.items()}


def summarise_bankruptcy(
    folder: Path, repeats: int, readings: Sequence[str], data: Path | None
) -> BankruptcySummary:
    """Read every block of a finished run."""
    todo = bankruptcy.tasks(repeats, readings)
    arrays = bankruptcy.blocks(folder, load(data)).load({block.name for block in todo})
    cards: dict[tuple[int, int, str], Card] = {}
    plain: dict[str, list[Floats]] = {"accuracy": [], "majority": []}
    for sets in bankruptcy.SETS:
        for power in POWERS:
            parts = [arrays[block.name] for block in todo if (block.sets, block.power) == (sets, power)]
            # The regression of the original rows is the same in every block.
            original = t_intervals(
                [
                    next(part[f"{ORIGINAL}/{key}"] for part in parts if f"{ORIGINAL}/{key}" in part)
                    for key in ESTIMATES
                ]
            )
            here = joined(
                [
                    {
                        k: v
                        for k, v in part.items()
                        if k.split("/")[1] not in ESTIMATES or not k.startswith(ORIGINAL)
                    }
                    for part in parts
                ]
            )
            for name in (key.removesuffix("/accuracy") for key in here if key.endswith("/accuracy")):
                if name != ORIGINAL:
                    cards[sets, power, name] = _bankruptcy_card(here, name, original)
            for key, values in plain.items():
                values.append(here[f"{ORIGINAL}/{key}"])
    right, majority = (float(np.concatenate(values).mean()) for values in plain.values())
    return BankruptcySummary(repeats, tuple(readings), cards, right, majority)


def _bankruptcy_card(here: Arrays, name: str, original: Intervals) -> Card:
    own = _own(here, name, "")
    wide = Intervals(*(np.broadcast_to(part, own.estimate.shape) for part in vars(original).values()))
    means = {
        key: replicated_mean(here[f"{name}/{key}"])[:, 0]
        for key in ("accuracy", "vote", "seconds")
        if f"{name}/{key}" in here
    }
    spread = {"accuracy": here[f"{name}/accuracy"].std(axis=0)}
    return Card(means, spread, (infer(own, wide, None),))
