"""Scores over the repeats of a run: a card for each scenario (n or m, and epsilon) and method."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.inference.combine import t_quantile
from dpcipher.inference.sss import CATEGORIES, sss
from dpcipher.marginals.arrays import Floats
from dpcipher.paper import bankruptcy
from dpcipher.paper.bankruptcy_data import load
from dpcipher.paper.contenders import CONTENDERS, RIDGES, ROUNDS, Contender, Stack
from dpcipher.paper.population import POPULATION, REGRESSIONS, SHAPE
from dpcipher.paper.simulated import (
    POWERS,
    RIDGE_EVERY,
    SIZES,
    SimulatedBlock,
    blocks,
    tasks,
)
from dpcipher.paper.storage import full_cells, parameters

ORIGINAL = "original"
ESTIMATES = ("estimate", "variance", "dof")
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


@dataclass(frozen=True)
class SimulatedSummary:
    """The scores of the first experiment.

    `cards` by n, power and method; `originals` the regressions of the original tables; `oracle` the best TVD of MWEM in hindsight, with its
    rounds; `random` the mean TVD of each random population, by power and method. The methods give scores as arrays, by n and epsilon; `normal`
    multiplies an error by the method's cost. Regressions are those with ten parameters.
    """

    repeats: int
    cards: Mapping[tuple[int, int, str], SimulatedCard]
    originals: Mapping[int, tuple[Inference, ...]]
    oracle: Mapping[tuple[int, int, str], tuple[int, Floats]]
    random: Mapping[tuple[int, str], Floats]

    def tvd(self, method: Contender, *, normal: bool = True) -> Floats:
        """The mean TVD by n, epsilon and order (1, 2, 3)."""
        return self._each(method, lambda card: card.tvd) * cost(method, normal=normal)

    def linf(self, method: Contender, *, normal: bool = True) -> Floats:
        """The largest error of a cell at n = 200, by order (2, 3) and epsilon."""
        return np.asarray(self._each(method, lambda card: card.linf)[0].T * cost(method, normal=normal))

    def parameters(self, method: Contender, metric: str) -> Floats:
        """A metric of the regression by n, epsilon and parameter."""
        return self._each(method, lambda card: getattr(card.inference[0], metric))

    def mean(self, method: Contender, metric: str, *, normal: bool = True) -> Floats:
        """The mean size of a metric over the ten parameters at n = 200, by epsilon."""
        return np.asarray(
            np.abs(self.parameters(method, metric)[0]).mean(axis=1) * cost(method, normal=normal)
        )

    def share(self, method: Contender, *categories: str) -> Floats:
        """The share of some SSS categories together, by n and epsilon."""
        return self._each(method, lambda card: sum(card.inference[0].shares[name] for name in categories))

    def log_odds(self, method: Contender) -> Floats:
        """The log-odds of Best at n = 200, by epsilon."""
        return np.asarray(self._each(method, lambda card: card.inference[0].log_odds)[0])

    def _each(self, method: Contender, score: Callable[[SimulatedCard], Any]) -> Floats:
        return np.array([[score(self.cards[n, power, method.name]) for power in POWERS] for n in SIZES])


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
    """The scores of the second experiment; `original` and `majority` are the accuracies without any synthesis."""

    repeats: int
    cards: Mapping[tuple[int, int, str], BankruptcyCard]
    original: float
    majority: float

    def accuracy(self, method: Contender) -> Floats:
        """The mean accuracy of the SVM, by m and epsilon."""
        return self._each(method, lambda card: card.accuracy)

    def share(self, method: Contender, *categories: str) -> Floats:
        """The share of some SSS categories together, by m and epsilon."""
        return self._each(method, lambda card: sum(card.shares[name] for name in categories))

    def _each(self, method: Contender, score: Callable[[BankruptcyCard], float]) -> Floats:
        cards = self.cards
        return np.array(
            [[score(cards[sets, power, method.name]) for power in POWERS] for sets in bankruptcy.SETS]
        )


def cost(method: Contender, *, normal: bool = True) -> float:
    """The paper's cost of a method as a share of the full table: parameters over cells; 1 where nothing is to be normalised."""
    if not normal or method.kind == "FDH":
        return 1.0
    return parameters(SHAPE, method.order) / full_cells(SHAPE)


def summarise_simulated(folder: Path, repeats: int) -> SimulatedSummary:
    """Read every block of a finished run."""
    arrays = blocks(folder).load()
    todo = [block for block in tasks(repeats) if not block.ours]

    def load_both(block: SimulatedBlock) -> dict[str, Stack]:
        return arrays[block.name] | arrays[replace(block, ours=True).name]

    cards: dict[tuple[int, int, str], SimulatedCard] = {}
    oracle: dict[tuple[int, int, str], tuple[int, Floats]] = {}
    originals: dict[int, tuple[Inference, ...]] = {}
    for n in SIZES:
        for power in POWERS:
            here = [
                load_both(block)
                for block in todo
                if (block.n_rows, block.power, block.population) == (n, power, 0)
            ]
            for contender in (*CONTENDERS, *RIDGES):
                cards[n, power, contender.name] = _simulated_card(here, contender)
                if contender.uses_rounds:
                    oracle[n, power, contender.name] = _oracle(here, contender)
            originals.setdefault(n, _inferences(here, ORIGINAL, 1))
    return SimulatedSummary(repeats, cards, originals, oracle, _random(load_both, todo))


def _simulated_card(here: Sequence[Mapping[str, Stack]], contender: Contender) -> SimulatedCard:
    tvd, linf, joint_tvd, separated = (
        _joined(here, f"{contender.name}/{key}") for key in ("tvd", "linf", "joint_tvd", "separated")
    )
    return SimulatedCard(
        tvd.mean(axis=0),
        tvd.std(axis=0),
        linf.mean(axis=0),
        linf.std(axis=0),
        joint_tvd.mean(axis=0),
        float(separated.mean()),
        _inferences(here, contender.name, RIDGE_EVERY if contender in RIDGES else 1),
    )


def _joined(blocks: Iterable[Mapping[str, Stack]], key: str, every: int = 1) -> Floats:
    """The repeats of several blocks in one array; of each block all of them, or every few."""
    return np.concatenate([arrays[key][::every] for arrays in blocks])


def _inferences(here: Sequence[Mapping[str, Stack]], name: str, every: int) -> tuple[Inference, ...]:
    return tuple(_inference(here, name, number, every) for number in range(len(REGRESSIONS)))


def _inference(here: Sequence[Mapping[str, Stack]], name: str, number: int, every: int) -> Inference:
    """One regression of one method against the truth, and against the originals it was made from."""
    own = [_joined(here, f"{name}/{key}{number}") for key in ESTIMATES]
    original = [_joined(here, f"{ORIGINAL}/{key}{number}", every) for key in ESTIMATES]
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
        rounds: _joined(here, f"{contender.name}/tvd after {rounds} rounds").mean(axis=0) for rounds in ROUNDS
    }
    best = min(ROUNDS, key=lambda rounds: float(means[rounds][contender.order - 1]))
    return best, means[best]


def _random(
    load: Callable[[SimulatedBlock], dict[str, Stack]], todo: Sequence[SimulatedBlock]
) -> dict[tuple[int, str], Floats]:
    """The mean TVD of every random population."""
    means: dict[tuple[int, str], Floats] = {}
    for power in POWERS:
        here = [load(block) for block in todo if block.population and block.power == power]
        for contender in CONTENDERS:
            means[power, contender.name] = np.stack(
                [arrays[f"{contender.name}/tvd"].mean(axis=0) for arrays in here]
            )
    return means


def summarise_bankruptcy(folder: Path, repeats: int, data: Path | None) -> BankruptcySummary:
    """Read every block of a finished run."""
    arrays, todo = bankruptcy.blocks(folder, load(data)).load(), bankruptcy.tasks(repeats)
    loaded = {block: arrays[block.name] for block in todo}
    cards = {
        (sets, power, contender.name): _bankruptcy_card(
            [loaded[block] for block in todo if (block.sets, block.power) == (sets, power)], contender.name
        )
        for sets in bankruptcy.SETS
        for power in POWERS
        for contender in bankruptcy.CONTENDERS
    }
    right, majority = (
        float(_joined(loaded.values(), f"{ORIGINAL}/{key}").mean()) for key in ("accuracy", "majority")
    )
    return BankruptcySummary(repeats, cards, right, majority)


def _bankruptcy_card(here: list[dict[str, Stack]], name: str) -> BankruptcyCard:
    own = [_joined(here, f"{name}/{key}") for key in ESTIMATES]
    original = [np.broadcast_to(here[0][f"{ORIGINAL}/{key}"], own[0].shape) for key in ESTIMATES]
    inference = infer(own, original, None)
    right, vote = _joined(here, f"{name}/accuracy"), _joined(here, f"{name}/vote")
    return BankruptcyCard(
        float(right.mean()), float(right.std()), float(vote.mean()), inference.shares, inference.unknown
    )
