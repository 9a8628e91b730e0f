"""What the blocks of the second experiment say: one score card for each m, epsilon and method."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpcipher.paper.bankruptcy import load
from dpcipher.paper.experiment1 import POWERS
from dpcipher.paper.experiment2 import CONTENDERS, SETS, Block, blocks, tasks
from dpcipher.paper.stacks import Stack
from dpcipher.paper.summary1 import infer

# Table 2 of the paper: per cent of 50 test cases, by power of e and method.
PRINTED: Mapping[str, tuple[float, ...]] = {
    "CIPHER": (67.8, 64.7, 68.5, 77.8, 90.3),
    "MWEM": (50.0, 51.3, 51.0, 47.2, 47.3),
    "FDH": (41.1, 55.5, 63.8, 85.7, 98.8),
}


@dataclass(frozen=True)
class Card:
    """One method at one m and epsilon: SVM accuracy (mean and standard deviation over repeats; majority vote) and SSS shares."""

    accuracy: float
    accuracy_sd: float
    vote: float
    shares: Mapping[str, float]
    unknown: float


@dataclass(frozen=True)
class Summary:
    """Everything the second experiment found; `original` and `majority` are the accuracies without any synthesis."""

    repeats: int
    cards: Mapping[tuple[int, int, str], Card]
    original: float
    majority: float


def summarise(folder: Path, repeats: int, data: Path | None) -> Summary:
    """Read every block of a finished run."""
    store, todo = blocks(folder, load(data)), tasks(repeats)
    loaded = {one: store.load(one) for one in todo}
    cards = {
        (sets, power, contender.name): _card(
            [loaded[one] for one in todo if (one.sets, one.power) == (sets, power)], contender.name
        )
        for sets in SETS
        for power in POWERS
        for contender in CONTENDERS
    }
    return Summary(repeats, cards, _mean(loaded, "accuracy"), _mean(loaded, "majority"))


def _mean(loaded: Mapping[Block, Mapping[str, Stack]], key: str) -> float:
    return float(np.concatenate([one[f"original/{key}"] for one in loaded.values()]).mean())


def _card(here: list[dict[str, Stack]], name: str) -> Card:
    def joined(key: str) -> Stack:
        return np.concatenate([one[f"{name}/{key}"] for one in here])

    own = [joined(key) for key in ("estimate", "variance", "dof")]
    original = [
        np.broadcast_to(here[0][f"original/{key}"], own[0].shape) for key in ("estimate", "variance", "dof")
    ]
    found = infer(own, original, None)
    right, vote = joined("accuracy"), joined("vote")
    return Card(float(right.mean()), float(right.std()), float(vote.mean()), found.shares, found.unknown)
