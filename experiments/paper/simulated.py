"""The first experiment: simulated 2×2×3×3 tables, many methods, m = 5 sets of epsilon/5 each.

Every repeat draws a new original table. For each method it keeps the total variation distance of 1-, 2- and 3-way tables and the
largest error of the pairs and triples (of the synthetic rows, averaged over the sets), and the combined inference of two regressions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from math import exp
from pathlib import Path

import numpy as np

from dpcipher.inference.combine import combine
from dpcipher.inference.glm import fit_logit
from dpcipher.tables.domain import Counts, Floats
from experiments.paper import models
from experiments.paper.blocks import Arrays, Blocks, Say, split
from experiments.paper.contenders import (
    CIPHER,
    FDH,
    LIMITS,
    MWEM,
    MWEMS,
    OURS,
    ROUNDS,
    Contender,
    Drawn,
    Stack,
    linf,
    margins,
    tune_rounds,
    tvd,
)
from experiments.paper.population import (
    COEFFICIENTS,
    POPULATION,
    REGRESSIONS,
    Population,
    random_coefficients,
)
from experiments.paper.readings import LITERAL
from experiments.paper.rivals import RIVALS, SIMULATED_SCHEMA, Rival

SIZES = (200, 500)
# Epsilon is a power of e, written like this.
NAMES = {-2: "e⁻²", -1: "e⁻¹", 0: "1", 1: "e", 2: "e²"}
POWERS = tuple(NAMES)
SETS = 5
# Fewer sets for the same budget, for the claim about m.
FEWER_SETS = (1, 2, 3)
BLOCK = 100
TUNING_DRAWS = 40
# The random populations of the sensitivity run, and how many repeats each gets of every thousand.
POPULATIONS = 20
POPULATION_SHARE = 25
# The methods of later papers, and MWEM with every T, are run on every few repeats.
RIVAL_EVERY = 5
ORACLE_EVERY = 2
_RUN, _TUNE, _RANDOM = 1, 2, 3
# What a block may hold, beside one reading of CIPHER: each changes with other parts of the code.
METHODS, OURS_GROUP, SETS_GROUP, LIMIT, RIVAL, MODELS = "methods", "ours", "sets", "limit", "rivals", "models"
GROUPS = (METHODS, OURS_GROUP, SETS_GROUP, LIMIT, RIVAL, MODELS)


@dataclass(frozen=True)
class SimulatedBlock:
    """Some repeats of one scenario: n, the power of e that epsilon is, and the population (0 is the published one).

    `group` says which methods: one of `GROUPS`, or a reading of CIPHER. All groups see the same original tables.
    """

    n_rows: int
    power: int
    number: int
    repeats: int
    population: int = 0
    group: str = METHODS

    @property
    def name(self) -> str:
        """Its name in the journal of finished blocks."""
        where = f"random{self.population:02d}" if self.population else f"n{self.n_rows}"
        return f"{where}-e{self.power:+d}-block{self.number:03d}x{self.repeats}-{self.group}"

    @property
    def entropy(self) -> tuple[int, ...]:
        """What the seeds of this block are made of, whatever its group."""
        kind = _RANDOM if self.population else _RUN
        return (kind, self.n_rows, self.power + 2, self.number, self.population)

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """The methods of the group that make m sets each."""
        if self.group in GROUPS:
            return {METHODS: (FDH, *MWEMS), OURS_GROUP: tuple(OURS.values())}.get(self.group, ())
        orders = (1, 2, 3) if self.group == LITERAL else (2, 3)
        return tuple(CIPHER[order].read(self.group) for order in orders)

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


def tasks(repeats: int, readings: Sequence[str] = (LITERAL,)) -> list[SimulatedBlock]:
    """Every block of a run: what the headline needs first, other readings last."""
    each = max(1, repeats * POPULATION_SHARE // 1000)

    def group_blocks(group: str) -> list[SimulatedBlock]:
        published = [
            SimulatedBlock(n, power, number, size, group=group)
            for number, size in split(repeats, BLOCK)
            for n in SIZES
            for power in POWERS
        ]
        random = [
            SimulatedBlock(SIZES[0], power, 0, each, seed, group)
            for seed in range(1, POPULATIONS + 1)
            for power in POWERS
        ]
        return published if group in (SETS_GROUP, LIMIT, RIVAL, MODELS) else published + random

    order = (METHODS, LITERAL, OURS_GROUP, SETS_GROUP, LIMIT, RIVAL, MODELS, *readings)
    return [block for group in dict.fromkeys(order) for block in group_blocks(group)]


def run(folder: Path, *, repeats: int, readings: Sequence[str], workers: int, say: Say) -> None:
    """Compute every block that is not in the journal yet."""
    blocks(folder).run(tasks(repeats, readings), workers=workers, say=say)


def run_block(block: SimulatedBlock) -> Arrays:
    """The methods of one group on the repeats of one block."""
    data = np.random.default_rng(np.random.SeedSequence(block.entropy))
    originals = block.source.draw(block.n_rows, block.repeats, data)
    scores: dict[str, Stack] = {}
    for contender in block.contenders:
        scores |= contender.label(_synthetic(contender, originals, block))
    if block.group == METHODS and not block.population:
        scores |= _original(originals) | _oracle(originals[::ORACLE_EVERY], block)
    if block.group == SETS_GROUP:
        scores |= _fewer_sets(originals, block)
    if block.group == LIMIT:
        for limit in LIMITS.values():
            drawn = limit.draw(originals, epsilon=block.epsilon, seed=limit.seed(*block.entropy))
            scores |= limit.label({"tvd": tvd(originals, drawn.rows)})
    if block.group == RIVAL:
        for rival in RIVALS.values():
            scores |= rival.label(_rival(rival, originals[::RIVAL_EVERY], block))
    if block.group == MODELS:
        scores |= models.fit_originals(
            originals[:: models.EVERY], epsilon=exp(block.power), entropy=block.entropy
        )
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


def _synthetic(contender: Contender, originals: Counts, block: SimulatedBlock) -> dict[str, Stack]:
    """Distances and inference of one method, m sets for every original table."""
    rounds = best_rounds(contender, block.n_rows, block.power) if contender.uses_rounds else 1
    stack = np.repeat(originals, SETS, axis=0)
    seed = contender.seed(*block.entropy)
    drawn = contender.draw(stack, epsilon=block.epsilon, seed=seed, rounds=rounds)
    scores = _distances(originals, drawn, SETS)
    if contender.uses_rounds:
        scores["rounds"] = np.full((len(originals), 1), rounds)
    if contender.kind == "paper" and drawn.noisy:
        scores["averaging"] = _over_sets(drawn.noisy.averaging(drawn.chances), SETS)
    return scores if block.population else scores | _regressions(drawn.rows, SETS)


def _distances(originals: Counts, drawn: Drawn, sets: int) -> dict[str, Stack]:
    """Distances from the originals, averaged over the sets; and of the average of the sets' distributions."""
    stack = np.repeat(originals, sets, axis=0)
    each = {
        "tvd": tvd(stack, drawn.rows),
        "linf": linf(stack, drawn.rows),
        "joint_tvd": tvd(stack, drawn.chances),
    }
    pooled = drawn.chances.reshape(len(originals), sets, *originals.shape[1:]).mean(axis=1)
    scores: dict[str, Stack] = {key: _over_sets(value, sets) for key, value in each.items()}
    return scores | {"pooled_tvd": tvd(originals, pooled)}


def _over_sets(values: Floats, sets: int) -> Floats:
    return np.asarray(values.reshape(len(values) // sets, sets, -1).mean(axis=1))


def _fewer_sets(originals: Counts, block: SimulatedBlock) -> dict[str, Stack]:
    """FDH and CIPHER 2-way with the same budget for fewer sets."""
    scores: dict[str, Stack] = {}
    for contender in (FDH, CIPHER[2]):
        for sets in FEWER_SETS:
            stack = np.repeat(originals, sets, axis=0)
            seed = contender.seed(*block.entropy, sets)
            drawn = contender.draw(stack, epsilon=exp(block.power) / sets, seed=seed)
            named = _distances(originals, drawn, sets) | _regressions(drawn.rows, sets)
            scores |= {f"{contender.name}, m = {sets}/{key}": value for key, value in named.items()}
    return scores


def _rival(rival: Rival, originals: Counts, block: SimulatedBlock) -> dict[str, Stack]:
    """A method of another paper: distances, inference, and the processor seconds of a fit."""
    stack = np.repeat(originals, SETS, axis=0)
    drawn, seconds = rival.draw(
        stack, SIMULATED_SCHEMA, epsilon=block.epsilon, seed=rival.seed(*block.entropy)
    )
    return (
        _distances(originals, drawn, SETS)
        | _regressions(drawn.rows, SETS)
        | {"seconds": _over_sets(seconds, SETS)}
    )


def _regressions(rows: Counts, sets: int) -> dict[str, Stack]:
    """The combined inference of both regressions, and which sets have an empty pair of a level and an outcome."""
    scores: dict[str, Stack] = {}
    for number, regression in enumerate(REGRESSIONS):
        fits = fit_sets(regression.x, regression.grouped(rows), sets)
        scores |= {f"{key}{number}": value for key, value in combine_identified(*fits).items()}
    pairs = [margins(rows, (axis, 3)).reshape(len(rows), -1) for axis in range(3)]
    separated = (np.concatenate(pairs, axis=1) == 0).any(axis=1)
    return scores | {"separated": _over_sets(separated.astype(float), sets)}


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


def _oracle(originals: Counts, block: SimulatedBlock) -> dict[str, Stack]:
    """MWEM with every number of rounds, one set for each original, so that the best can be told in hindsight."""
    scores: dict[str, Stack] = {}
    for contender in (method for orders in MWEM.values() for method in orders.values() if method.order > 1):
        for rounds in ROUNDS:
            seed = contender.seed(*block.entropy, 1)
            rows = contender.draw(originals, epsilon=block.epsilon, seed=seed, rounds=rounds).rows
            scores[f"{contender.name}/tvd after {rounds} rounds"] = tvd(originals, rows)
            scores[f"{contender.name}/linf after {rounds} rounds"] = linf(originals, rows)
    return scores
