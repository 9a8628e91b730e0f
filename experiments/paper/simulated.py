"""The first experiment: simulated 2×2×3×3 tables, many methods, m = 5 sets of epsilon/5 each.

Every repeat draws a new original table. For each method it keeps the total variation distance of 1-, 2- and 3-way tables and the
largest error of the pairs and triples (of the synthetic rows, averaged over the sets), and the combined inference of two regressions.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import exp
from pathlib import Path

import numpy as np

from dpcipher.inference.combine import combine
from dpcipher.inference.glm import fit_logit
from dpcipher.methods import Cipher, Fourier, JunctionTree, Modips, MultinomialDirichlet, PrivBayes
from dpcipher.tables.domain import Counts, Floats
from experiments.paper.blocks import ORIGINAL, Arrays, Block, Blocks, split
from experiments.paper.population import (
    COEFFICIENTS,
    POPULATION,
    REGRESSIONS,
    Population,
    random_coefficients,
)
from experiments.paper.stacks import (
    LITERAL,
    MWEM_FITS,
    ROUNDS,
    SWEPT,
    Drawn,
    Fit,
    Method,
    Stack,
    fit_histogram,
    fit_library,
    fit_ours,
    in_run,
    linf,
    margins,
    over_sets,
    paper,
    read,
    tune_rounds,
    tvd,
)

SIZES = (200, 500)
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

FDH = "FDH"
CIPHER = {order: f"CIPHER {order}-way" for order in (1, 2, 3)}
OURS = {order: f"ours {order}-way" for order in (1, 2, 3)}
# The two readings of MWEM: a query is one cell, used once (as first published); or a whole table, all of them replayed (its authors' advice).
MWEM = {form: {order: f"MWEM {order}-way, {form}" for order in (1, 2, 3)} for form in MWEM_FITS}
# MWEM's only table is the full one: what the paper calls its limit.
LIMITS = {form: f"MWEM full table, {form}" for form in MWEM_FITS}
# The methods that the paper names beside MWEM and FDH, as this package has them; the last is CIPHER, too, for the processor time alone.
TIMED = "CIPHER by the library"
RIVALS: Mapping[str, Fit] = {
    "PrivBayes": partial(fit_library, method=PrivBayes),
    "Fourier 2-way": partial(fit_library, method=Fourier, workload=2),
    "junction tree": partial(fit_library, method=JunctionTree),
    "modips": partial(fit_library, method=Modips),
    "Multinomial–Dirichlet": partial(fit_library, method=MultinomialDirichlet),
    TIMED: partial(fit_library, method=Cipher, engine="paper", workload=2),
}
RIVAL_NAMES = tuple(name for name in RIVALS if name != TIMED)


def after(method: str, rounds: int) -> str:
    """The name of MWEM with a T that was not tuned, so that the best can be told in hindsight."""
    return f"{method}, T = {rounds}"


def fewer(method: str, sets: int) -> str:
    """The name of a method with fewer sets for the same budget."""
    return method if sets == SETS else f"{method}, m = {sets}"


def _methods() -> list[Method]:
    """Every method: what the headline needs first, other readings last."""
    orders, forms = (1, 2, 3), MWEM_FITS.items()
    literal = paper(LITERAL)
    single = {"sets": 1, "regressions": False}
    return [
        Method(FDH, fit_histogram, 0, random=True),
        *(Method(MWEM[form][k], fit, k, rounds=None, random=True) for form, fit in forms for k in orders),
        *(Method(CIPHER[k], literal, k, random=True) for k in orders),
        *(Method(OURS[k], fit_ours, k, random=True) for k in orders),
        *(
            Method(after(name, t), fit, k, name, every=ORACLE_EVERY, rounds=t, entropy=(1,), **single)  # type: ignore[arg-type]
            for form, fit in forms
            for k, name in MWEM[form].items()
            for t in ROUNDS
            if k > 1
        ),
        *(
            Method(fewer(name, m), fit, k, name, sets=m, share=m, entropy=(m,))
            for name, fit, k in ((FDH, fit_histogram, 0), (CIPHER[2], literal, 2))
            for m in FEWER_SETS
        ),
        *(Method(LIMITS[form], fit, 0, **single) for form, fit in forms),  # type: ignore[arg-type]
        *(Method(name, fit, 2, every=RIVAL_EVERY) for name, fit in RIVALS.items()),
        *(
            Method(read(CIPHER[k], reading), paper(reading), k, CIPHER[k], random=True, reading=reading)
            for reading in SWEPT
            for k in (2, 3)
            if reading != LITERAL
        ),
    ]


METHODS = {method.name: method for method in _methods()}


def blocks(folder: Path) -> Blocks:
    """The finished blocks in a folder, and how to compute the others."""
    settings = {"coefficients": COEFFICIENTS, "sets": SETS, "block": BLOCK, "rounds": ROUNDS}
    return Blocks(folder / "experiment1.jsonl", run_block, settings)


def tasks(repeats: int, readings: Sequence[str] = (LITERAL,)) -> list[Block]:
    """Every block of a run, the original tables first."""
    every, each = in_run(METHODS, readings), max(1, repeats * POPULATION_SHARE // 1000)
    random = [name for name in every if METHODS[name].random]
    return split(SIZES, [ORIGINAL, *every], repeats, BLOCK) + [
        block
        for number in range(1, POPULATIONS + 1)
        for block in split(SIZES[:1], random, each, each, number)
    ]


def entropy(block: Block) -> tuple[int, ...]:
    """What the seeds of a block are made of, whatever its method: all methods see the same original tables."""
    kind = _RANDOM if block.population else _RUN
    return (kind, block.scenario, block.power + 2, block.number, block.population)


def run_block(block: Block) -> Arrays:
    """One method on the repeats of one block."""
    source = Population(random_coefficients(block.population)) if block.population else POPULATION
    data = np.random.default_rng(np.random.SeedSequence(entropy(block)))
    originals = source.draw(block.scenario, block.repeats, data)
    if block.method == ORIGINAL:
        return regressions(originals, 1)
    method = METHODS[block.method]
    originals = originals[:: method.every]
    rounds = best_rounds(method.name, block.scenario, block.power) if method.rounds is None else method.rounds
    drawn = method.draw(
        np.repeat(originals, method.sets, axis=0),
        epsilon=exp(block.power) / method.share,
        seed=method.seed(*entropy(block)),
        rounds=rounds,
    )
    scores = distances(originals, drawn, method.sets)
    if method.rounds is None:
        scores["rounds"] = np.full((len(originals), 1), rounds)
    if method.regressions and not block.population:
        scores |= regressions(drawn.rows, method.sets)
    return scores


def distances(originals: Counts, drawn: Drawn, sets: int) -> dict[str, Stack]:
    """Distances from the originals, of rows and of distributions, and the scores of the fits, averaged over the sets."""
    stack = np.repeat(originals, sets, axis=0)
    each = {
        "tvd": tvd(stack, drawn.rows),
        "linf": linf(stack, drawn.rows),
        "joint_tvd": tvd(stack, drawn.chances),
        **drawn.scores,
    }
    return {key: over_sets(values, sets) for key, values in each.items()}


def regressions(rows: Counts, sets: int) -> dict[str, Stack]:
    """The combined inference of both regressions, and which sets have an empty pair of a level and an outcome."""
    scores: dict[str, Stack] = {}
    for number, regression in enumerate(REGRESSIONS):
        fits = fit_sets(regression.x, regression.grouped(rows), sets)
        scores |= {f"{key}{number}": value for key, value in combine_identified(*fits).items()}
    pairs = [margins(rows, (axis, 3)).reshape(len(rows), -1) for axis in range(3)]
    separated = (np.concatenate(pairs, axis=1) == 0).any(axis=1)
    return scores | {"separated": over_sets(separated.astype(float), sets)}


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
def best_rounds(name: str, n_rows: int, power: int) -> int:
    """MWEM's number of rounds, tuned on one independent simulated data set."""
    data, *seeds = np.random.SeedSequence([_TUNE, n_rows, power + 2]).spawn(1 + len(ROUNDS))
    table = POPULATION.draw(n_rows, 1, np.random.default_rng(data))[0]
    return tune_rounds(METHODS[name], table, TUNING_DRAWS, epsilon=exp(power) / SETS, seeds=seeds)
