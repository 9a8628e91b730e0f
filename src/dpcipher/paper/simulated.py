"""The first experiment: simulated 2×2×3×3 tables, nine methods, m = 5 sets of epsilon/5 each.

Every repeat draws a new original table. For each method it keeps the total variation distance of 1-, 2- and 3-way tables and the
largest error of the pairs and triples (of the synthetic rows, averaged over the sets), and the combined inference of two regressions.
"""

from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from math import exp
from pathlib import Path

import numpy as np

from dpcipher.inference.combine import combine
from dpcipher.inference.logit import fit_logit
from dpcipher.marginals.arrays import Counts, Floats
from dpcipher.paper.blocks import Arrays, Blocks, Say, split
from dpcipher.paper.contenders import (
    CONTENDERS,
    MWEMS,
    RIDGES,
    ROUNDS,
    Contender,
    Stack,
    linf,
    margins,
    tune_rounds,
    tvd,
)
from dpcipher.paper.population import (
    COEFFICIENTS,
    POPULATION,
    REGRESSIONS,
    Population,
    random_coefficients,
)

SIZES = (200, 500)
# Epsilon is a power of e, written like this.
NAMES = {-2: "e⁻²", -1: "e⁻¹", 0: "1", 1: "e", 2: "e²"}
POWERS = tuple(NAMES)
SETS = 5
BLOCK = 100
TUNING_DRAWS = 40
# The random populations of the sensitivity run, and how many repeats each gets of every thousand.
POPULATIONS = 20
POPULATION_SHARE = 25
RIDGE_EVERY = 5
_RUN, _TUNE, _RANDOM = 1, 2, 3


@dataclass(frozen=True)
class SimulatedBlock:
    """Some repeats of one scenario: n, the power of e that epsilon is, and the population (0 is the published one).

    The fits of our own engine are blocks of their own, on the same original tables: they change with the engine, the rest does not.
    """

    n_rows: int
    power: int
    number: int
    repeats: int
    population: int = 0
    ours: bool = False

    @property
    def name(self) -> str:
        """Its name in the journal of finished blocks."""
        where = f"random{self.population:02d}" if self.population else f"n{self.n_rows}"
        who = "-ours" if self.ours else ""
        return f"{where}-e{self.power:+d}-block{self.number:03d}x{self.repeats}{who}"

    @property
    def seed(self) -> np.random.SeedSequence:
        """A seed for this block alone."""
        kind = _RANDOM if self.population else _RUN
        return np.random.SeedSequence([kind, self.n_rows, self.power + 2, self.number, self.population])

    @property
    def epsilon(self) -> float:
        """The budget of one set."""
        return exp(self.power) / SETS

    @property
    def source(self) -> Population:
        """Where the original tables come from."""
        return Population(random_coefficients(self.population)) if self.population else POPULATION


def blocks(folder: Path) -> Blocks[SimulatedBlock]:
    """The finished blocks in a folder, and how to compute the others."""
    settings = {
        "coefficients": COEFFICIENTS,
        "sets": SETS,
        "block": BLOCK,
        "rounds": ROUNDS,
        "version": version("dpcipher"),
    }
    return Blocks(folder / "experiment1.jsonl", run_block, settings)


def tasks(repeats: int) -> list[SimulatedBlock]:
    """Every block of a run; the sensitivity run comes last."""
    published = [
        SimulatedBlock(n, power, number, size)
        for number, size in split(repeats, BLOCK)
        for n in SIZES
        for power in POWERS
    ]
    each = max(1, repeats * POPULATION_SHARE // 1000)
    random = [
        SimulatedBlock(SIZES[0], power, 0, each, seed)
        for seed in range(1, POPULATIONS + 1)
        for power in POWERS
    ]
    others = published + random
    return others + [replace(block, ours=True) for block in others]


def run(folder: Path, *, repeats: int, workers: int, say: Say) -> None:
    """Compute every block that is not in the journal yet."""
    blocks(folder).run(tasks(repeats), workers=workers, say=say)


def run_block(block: SimulatedBlock) -> Arrays:
    """All methods on the repeats of one block, or ours alone."""
    data, oracle, ridge, *seeds = block.seed.spawn(3 + len(CONTENDERS))
    originals = block.source.draw(block.n_rows, block.repeats, np.random.default_rng(data))
    scores: dict[str, Stack] = {}
    for contender, seed in zip(CONTENDERS, seeds, strict=True):
        if block.ours == (contender.kind == "ours"):
            scores |= contender.label(_synthetic(contender, originals, block, seed))
    if not block.ours and not block.population:
        scores |= _original(originals) | _oracle(originals, block, oracle)
        for contender in RIDGES:
            scores |= contender.label(_synthetic(contender, originals[::RIDGE_EVERY], block, ridge))
    return scores


def _original(originals: Counts) -> dict[str, Stack]:
    """The regressions of the original tables."""
    return {
        f"original/{key}{number}": value
        for number, regression in enumerate(REGRESSIONS)
        for key, value in combine_identified(
            *fit_sets(regression.x, regression.grouped(originals), 1)
        ).items()
    }


def _synthetic(
    contender: Contender, originals: Counts, block: SimulatedBlock, seed: np.random.SeedSequence
) -> dict[str, Stack]:
    """Distances and inference of one method, m sets for every original table."""
    rounds = best_rounds(contender, block.n_rows, block.power) if contender.uses_rounds else 1
    stack = np.repeat(originals, SETS, axis=0)
    chances, rows = contender.draw(stack, epsilon=block.epsilon, seed=seed, rounds=rounds)
    distances = {"tvd": tvd(stack, rows), "linf": linf(stack, rows), "joint_tvd": tvd(stack, chances)}
    scores: dict[str, Stack] = {
        key: value.reshape(len(originals), SETS, -1).mean(axis=1) for key, value in distances.items()
    }
    return scores if block.population else scores | _regressions(rows)


def _regressions(rows: Counts) -> dict[str, Stack]:
    """The combined inference of both regressions, and which sets have an empty pair of a level and an outcome."""
    scores: dict[str, Stack] = {}
    for number, regression in enumerate(REGRESSIONS):
        sets = fit_sets(regression.x, regression.grouped(rows), SETS)
        scores |= {f"{key}{number}": value for key, value in combine_identified(*sets).items()}
    pairs = [margins(rows, (axis, 3)).reshape(len(rows), -1) for axis in range(3)]
    scores["separated"] = (np.concatenate(pairs, axis=1) == 0).any(axis=1)
    return scores


def fit_sets(x: Floats, counts: Floats, sets: int) -> tuple[Floats, Floats]:
    """Firth estimates and variances of tables of counts, as sets by repeats by parameters.

    Every fit is penalised: at small epsilon most synthetic tables are separated, and a method must not change with the table.
    """
    fit = fit_logit(x, counts, firth=True)
    estimates, variances = (
        part.reshape(len(counts) // sets, sets, -1).swapaxes(0, 1)
        for part in (fit.coefficients, fit.variances)
    )
    return estimates, variances


def combine_identified(estimates: Floats, variances: Floats) -> dict[str, Floats]:
    """The combined inference over the sets that identify a parameter; NaN where only one of several does, or none."""
    order = np.argsort(np.isnan(estimates), axis=0, kind="stable")
    first = [np.take_along_axis(part, order, axis=0) for part in (estimates, variances)]
    known = (~np.isnan(estimates)).sum(axis=0)
    result = np.full((3, *known.shape), np.nan)
    for sets in range(min(2, len(estimates)), len(estimates) + 1):
        here = known == sets
        both = combine(*(part[:sets, here] for part in first))
        result[:, here] = both.estimate, both.variance, both.dof
    return dict(zip(("estimate", "variance", "dof"), result, strict=True))


@cache
def best_rounds(contender: Contender, n_rows: int, power: int) -> int:
    """MWEM's number of rounds, tuned on one independent simulated data set."""
    data, *seeds = np.random.SeedSequence([_TUNE, n_rows, power + 2]).spawn(1 + len(ROUNDS))
    table = POPULATION.draw(n_rows, 1, np.random.default_rng(data))[0]
    return tune_rounds(contender, table, TUNING_DRAWS, epsilon=exp(power) / SETS, seeds=seeds)


def _oracle(originals: Counts, block: SimulatedBlock, seed: np.random.SeedSequence) -> dict[str, Stack]:
    """MWEM with every number of rounds, one set for each original, so that the best can be told in hindsight."""
    scores: dict[str, Stack] = {}
    for contender in MWEMS:
        for rounds in ROUNDS:
            _, rows = contender.draw(originals, epsilon=block.epsilon, seed=seed, rounds=rounds)
            scores[f"{contender.name}/tvd after {rounds} rounds"] = tvd(originals, rows)
            scores[f"{contender.name}/linf after {rounds} rounds"] = linf(originals, rows)
    return scores
