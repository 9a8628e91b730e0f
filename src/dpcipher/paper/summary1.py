"""What the blocks of the first experiment say: one score card for each n, epsilon and method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import numpy as np

from dpcipher.inference.combine import t_quantile
from dpcipher.inference.sss import CATEGORIES, sss
from dpcipher.paper.contenders import CONTENDERS, RIDGES, Contender
from dpcipher.paper.experiment1 import (
    POWERS,
    RIDGE_EVERY,
    ROUNDS,
    SIZES,
    Block,
    blocks,
    tasks,
)
from dpcipher.paper.simulate import POPULATION, REGRESSIONS, SHAPE
from dpcipher.paper.stacks import Floats, Stack
from dpcipher.paper.storage import full_cells, parameters

ORIGINAL = "original"


@dataclass(frozen=True)
class Inference:
    """A regression over all repeats: by parameter, and the shares of the SSS categories over all of them.

    `unknown` is the share of parameters that fewer than two of a repeat's sets identify; they are left out of everything else.
    """

    bias: Floats
    rmse: Floats
    coverage: Floats
    width: Floats
    shares: Mapping[str, float]
    unknown: float

    @property
    def log_odds(self) -> float:
        """The log-odds of the category Best."""
        best = min(max(self.shares["Best"], 1e-4), 1 - 1e-4)
        return log(best / (1 - best))


@dataclass(frozen=True)
class Card:
    """The scores of one method at one n and epsilon."""

    tvd: Floats
    tvd_sd: Floats
    linf: Floats
    linf_sd: Floats
    joint_tvd: Floats
    separated: float
    inference: tuple[Inference, ...]


Cards = Mapping[tuple[int, int, str], Card]


@dataclass(frozen=True)
class Summary:
    """Everything the first experiment found.

    `cards` by n, power and method; `originals` the regressions of the original tables; `oracle` the best TVD of MWEM in hindsight, with its
    rounds; `random` the mean TVD of each random population, by power and method.
    """

    repeats: int
    cards: Cards
    originals: Mapping[int, tuple[Inference, ...]]
    oracle: Mapping[tuple[int, int, str], tuple[int, Floats]]
    random: Mapping[tuple[int, str], Floats]


def cost(contender: Contender) -> float:
    """The paper's cost of a method as a share of the full table: parameters over cells."""
    cells = full_cells(SHAPE)
    return 1.0 if contender.kind == "FDH" else parameters(SHAPE, contender.order) / cells


def summarise(folder: Path, repeats: int) -> Summary:
    """Read every block of a finished run."""
    store = blocks(folder)
    todo = [one for one in tasks(repeats) if not one.ours]

    def load(one: Block) -> dict[str, Stack]:
        return store.load(one) | store.load(replace(one, ours=True))

    cards: dict[tuple[int, int, str], Card] = {}
    oracle: dict[tuple[int, int, str], tuple[int, Floats]] = {}
    originals: dict[int, tuple[Inference, ...]] = {}
    for n in SIZES:
        for power in POWERS:
            here = [load(one) for one in todo if (one.n_rows, one.power, one.population) == (n, power, 0)]
            for contender in (*CONTENDERS, *RIDGES):
                cards[n, power, contender.name] = _card(here, contender)
            for contender in (one for one in CONTENDERS if one.uses_rounds):
                oracle[n, power, contender.name] = _oracle(here, contender)
            originals.setdefault(n, _inferences(here, ORIGINAL, 1))
    return Summary(repeats, cards, originals, oracle, _random(load, todo))


def _card(here: Sequence[Mapping[str, Stack]], contender: Contender) -> Card:
    def joined(key: str) -> Floats:
        return np.concatenate([one[f"{contender.name}/{key}"] for one in here])

    every = RIDGE_EVERY if contender in RIDGES else 1
    tvd, linf = joined("tvd"), joined("linf")
    return Card(
        tvd.mean(axis=0),
        tvd.std(axis=0),
        linf.mean(axis=0),
        linf.std(axis=0),
        joined("joint_tvd").mean(axis=0),
        float(joined("separated").mean()),
        _inferences(here, contender.name, every),
    )


def _inferences(here: Sequence[Mapping[str, Stack]], name: str, every: int) -> tuple[Inference, ...]:
    return tuple(_inference(here, name, number, every) for number in range(len(REGRESSIONS)))


def _inference(here: Sequence[Mapping[str, Stack]], name: str, number: int, every: int) -> Inference:
    """One regression of one method against the truth, and against the originals it was made from."""
    own = [
        np.concatenate([one[f"{name}/{key}{number}"] for one in here])
        for key in ("estimate", "variance", "dof")
    ]
    original = [
        np.concatenate([one[f"{ORIGINAL}/{key}{number}"][::every] for one in here])
        for key in ("estimate", "variance", "dof")
    ]
    return infer(own, original, REGRESSIONS[number].truth(POPULATION))


def infer(own: Sequence[Floats], original: Sequence[Floats], truth: Floats | None) -> Inference:
    """Scores of estimates, variances and degrees of freedom (repeats by parameters); without a truth, of the SSS alone."""
    estimate, half = own[0], _half(own)
    known = ~np.isnan(estimate) & ~np.isnan(original[0])
    error = estimate - (original[0] if truth is None else truth)
    inside = np.where(known, np.abs(error) <= half, np.nan)
    categories = sss(_side(original, known), _side(own, known))
    return Inference(
        np.nanmean(error, axis=0),
        np.sqrt(np.nanmean(error**2, axis=0)),
        np.nanmean(inside, axis=0),
        np.nanmean(2 * half, axis=0),
        {name: categories.shares[name] for name in CATEGORIES},
        float(1 - known.mean()),
    )


def _half(own: Sequence[Floats]) -> Floats:
    """Half the width of the 95 % interval."""
    return np.asarray(t_quantile(0.95, own[2]) * np.sqrt(own[1]))


def _side(own: Sequence[Floats], known: Stack) -> tuple[Floats, Stack]:
    significant = np.abs(own[0]) > _half(own)
    return own[0][known], significant[known]


def _oracle(here: Sequence[Mapping[str, Stack]], contender: Contender) -> tuple[int, Floats]:
    """The rounds with the least TVD of the method's own tables, and the TVD of all orders with them."""
    means = {
        rounds: np.concatenate([one[f"{contender.name}/tvd after {rounds} rounds"] for one in here]).mean(
            axis=0
        )
        for rounds in ROUNDS
    }
    best = min(ROUNDS, key=lambda rounds: float(means[rounds][contender.order - 1]))
    return best, means[best]


def _random(
    load: Callable[[Block], dict[str, Stack]], todo: Sequence[Block]
) -> dict[tuple[int, str], Floats]:
    """The mean TVD of every random population."""
    found: dict[tuple[int, str], Floats] = {}
    for power in POWERS:
        here = [load(one) for one in todo if one.population and one.power == power]
        for contender in CONTENDERS:
            found[power, contender.name] = np.stack(
                [one[f"{contender.name}/tvd"].mean(axis=0) for one in here]
            )
    return found
