"""What the blocks of a run say: a score card for each scenario (n or m, and epsilon) and method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

import numpy as np

from dpcipher.inference.combine import t_quantile
from dpcipher.inference.sss import CATEGORIES, sss
from dpcipher.marginals.arrays import Floats
from dpcipher.paper import bankruptcy
from dpcipher.paper.bankruptcy_data import load
from dpcipher.paper.contenders import CONTENDERS, RIDGES, ROUNDS, Contender
from dpcipher.paper.population import POPULATION, REGRESSIONS, SHAPE
from dpcipher.paper.simulated import (
    POWERS,
    RIDGE_EVERY,
    SIZES,
    SimulatedBlock,
    blocks,
    tasks,
)
from dpcipher.paper.stacks import Stack
from dpcipher.paper.storage import full_cells, parameters

ORIGINAL = "original"
# Table 2 of the paper: per cent of 50 test cases, by power of e and method.
PRINTED: Mapping[str, tuple[float, ...]] = {
    "CIPHER": (67.8, 64.7, 68.5, 77.8, 90.3),
    "MWEM": (50.0, 51.3, 51.0, 47.2, 47.3),
    "FDH": (41.1, 55.5, 63.8, 85.7, 98.8),
}


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
class SimulatedCard:
    """The scores of one method at one n and epsilon."""

    tvd: Floats
    tvd_sd: Floats
    linf: Floats
    linf_sd: Floats
    joint_tvd: Floats
    separated: float
    inference: tuple[Inference, ...]


Cards = Mapping[tuple[int, int, str], SimulatedCard]


@dataclass(frozen=True)
class SimulatedSummary:
    """Everything the first experiment found.

    `cards` by n, power and method; `originals` the regressions of the original tables; `oracle` the best TVD of MWEM in hindsight, with its
    rounds; `random` the mean TVD of each random population, by power and method.
    """

    repeats: int
    cards: Cards
    originals: Mapping[int, tuple[Inference, ...]]
    oracle: Mapping[tuple[int, int, str], tuple[int, Floats]]
    random: Mapping[tuple[int, str], Floats]


@dataclass(frozen=True)
class BankruptcyCard:
    """One method at one m and epsilon: SVM accuracy (mean and standard deviation over repeats; majority vote) and SSS shares."""

    accuracy: float
    accuracy_sd: float
    vote: float
    shares: Mapping[str, float]
    unknown: float


@dataclass(frozen=True)
class BankruptcySummary:
    """Everything the second experiment found; `original` and `majority` are the accuracies without any synthesis."""

    repeats: int
    cards: Mapping[tuple[int, int, str], BankruptcyCard]
    original: float
    majority: float


def cost(contender: Contender) -> float:
    """The paper's cost of a method as a share of the full table: parameters over cells."""
    cells = full_cells(SHAPE)
    return 1.0 if contender.kind == "FDH" else parameters(SHAPE, contender.order) / cells


def summarise_simulated(folder: Path, repeats: int) -> SimulatedSummary:
    """Read every block of a finished run."""
    arrays = blocks(folder).load()
    todo = [one for one in tasks(repeats) if not one.ours]

    def load_both(block: SimulatedBlock) -> dict[str, Stack]:
        return arrays[block.name] | arrays[replace(block, ours=True).name]

    cards: dict[tuple[int, int, str], SimulatedCard] = {}
    oracle: dict[tuple[int, int, str], tuple[int, Floats]] = {}
    originals: dict[int, tuple[Inference, ...]] = {}
    for n in SIZES:
        for power in POWERS:
            here = [
                load_both(one) for one in todo if (one.n_rows, one.power, one.population) == (n, power, 0)
            ]
            for contender in (*CONTENDERS, *RIDGES):
                cards[n, power, contender.name] = _simulated_card(here, contender)
            for contender in (one for one in CONTENDERS if one.uses_rounds):
                oracle[n, power, contender.name] = _oracle(here, contender)
            originals.setdefault(n, _inferences(here, ORIGINAL, 1))
    return SimulatedSummary(repeats, cards, originals, oracle, _random(load_both, todo))


def _simulated_card(here: Sequence[Mapping[str, Stack]], contender: Contender) -> SimulatedCard:
    def joined(key: str) -> Floats:
        return np.concatenate([one[f"{contender.name}/{key}"] for one in here])

    every = RIDGE_EVERY if contender in RIDGES else 1
    tvd, linf = joined("tvd"), joined("linf")
    return SimulatedCard(
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
    load: Callable[[SimulatedBlock], dict[str, Stack]], todo: Sequence[SimulatedBlock]
) -> dict[tuple[int, str], Floats]:
    """The mean TVD of every random population."""
    means: dict[tuple[int, str], Floats] = {}
    for power in POWERS:
        here = [load(one) for one in todo if one.population and one.power == power]
        for contender in CONTENDERS:
            means[power, contender.name] = np.stack(
                [one[f"{contender.name}/tvd"].mean(axis=0) for one in here]
            )
    return means


def summarise_bankruptcy(folder: Path, repeats: int, data: Path | None) -> BankruptcySummary:
    """Read every block of a finished run."""
    arrays, todo = bankruptcy.blocks(folder, load(data)).load(), bankruptcy.tasks(repeats)
    loaded = {block: arrays[block.name] for block in todo}
    cards = {
        (sets, power, contender.name): _bankruptcy_card(
            [loaded[one] for one in todo if (one.sets, one.power) == (sets, power)], contender.name
        )
        for sets in bankruptcy.SETS
        for power in POWERS
        for contender in bankruptcy.CONTENDERS
    }
    return BankruptcySummary(repeats, cards, _mean_over(loaded, "accuracy"), _mean_over(loaded, "majority"))


def _mean_over(loaded: Mapping[bankruptcy.BankruptcyBlock, Mapping[str, Stack]], key: str) -> float:
    return float(np.concatenate([one[f"original/{key}"] for one in loaded.values()]).mean())


def _bankruptcy_card(here: list[dict[str, Stack]], name: str) -> BankruptcyCard:
    def joined(key: str) -> Stack:
        return np.concatenate([one[f"{name}/{key}"] for one in here])

    own = [joined(key) for key in ("estimate", "variance", "dof")]
    original = [
        np.broadcast_to(here[0][f"original/{key}"], own[0].shape) for key in ("estimate", "variance", "dof")
    ]
    inference = infer(own, original, None)
    right, vote = joined("accuracy"), joined("vote")
    return BankruptcyCard(
        float(right.mean()), float(right.std()), float(vote.mean()), inference.shares, inference.unknown
    )
