"""The paper's second experiment: the bankruptcy data, pairs of five attributes (two of them crossed), m = 1 and m = 5.

Two questions for every method. Regression: is the logistic regression of Class (all 250 rows, 13 parameters) the same in sign and
significance? Class is a function of the six qualities here, so that maximum likelihood has no finite answer; Firth's penalty has.
Prediction: how often is an SVM right about 50 held-out businesses, when the synthesizer saw only the other 200?
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import MissingExtra
from dpcipher.inference.design import one_hot
from dpcipher.tables.domain import Counts, Floats
from experiments.paper.bankruptcy_data import DIGEST, OUTCOME, SCHEMA, Bankruptcy, columns_of_cells, load
from experiments.paper.blocks import Arrays, Blocks, Say, split
from experiments.paper.contenders import ROUNDS, Contender, Stack, tune_rounds
from experiments.paper.readings import LITERAL
from experiments.paper.rivals import RIVALS, Rival
from experiments.paper.simulated import (
    GROUPS,
    METHODS,
    OURS_GROUP,
    POWERS,
    RIVAL,
    RIVAL_EVERY,
    combine_identified,
    fit_sets,
)

SETS = (1, 5)
BLOCK = 10
HELD_OUT = 50
TUNING_DRAWS = 10
FDH = Contender("FDH", "FDH", 5)
CIPHER = Contender("CIPHER", "paper", 2)
OURS = Contender("ours", "ours", 2)
MWEM = {
    "cells": Contender("MWEM, cells", "MWEM cells", 2),
    "tables": Contender("MWEM, tables", "MWEM", 2),
}
CONTENDERS = (FDH, CIPHER, OURS, *MWEM.values())
_RUN, _TUNE = 4, 5


@dataclass(frozen=True)
class BankruptcyBlock:
    """Some repeats with one budget and one number of sets; `group` says which methods, as in the first experiment."""

    power: int
    sets: int
    number: int
    repeats: int
    group: str = METHODS

    @property
    def name(self) -> str:
        """Its name in the journal of finished blocks."""
        return f"m{self.sets}-e{self.power:+d}-block{self.number:03d}x{self.repeats}-{self.group}"

    @property
    def entropy(self) -> tuple[int, ...]:
        """What the seeds of this block are made of, whatever its group."""
        return (_RUN, self.sets, self.power + 2, self.number)

    @property
    def contenders(self) -> tuple[Contender | Rival, ...]:
        """The methods of the group."""
        if self.group == RIVAL:
            return tuple(RIVALS.values())
        if self.group in GROUPS:
            return (FDH, *MWEM.values()) if self.group == METHODS else (OURS,)
        return (CIPHER.read(self.group),)


def blocks(folder: Path, data: Bankruptcy) -> Blocks[BankruptcyBlock]:
    """The finished blocks in a folder, and how to compute the others."""
    settings = {
        "data": DIGEST,
        "block": BLOCK,
        "held out": HELD_OUT,
        "rounds": ROUNDS,
        "version": version("dpcipher"),
    }
    return Blocks(folder / "experiment2.jsonl", partial(run_block, data=data), settings)


def tasks(repeats: int, readings: Sequence[str] = (LITERAL,)) -> list[BankruptcyBlock]:
    """Every block of a run: what the headline needs first, other readings last."""
    order = (METHODS, LITERAL, OURS_GROUP, RIVAL, *readings)
    return [
        BankruptcyBlock(power, sets, number, size, group)
        for group in dict.fromkeys(order)
        for number, size in split(repeats, BLOCK)
        for sets in SETS
        for power in POWERS
    ]


def run(
    folder: Path, *, data: Path | None, repeats: int, readings: Sequence[str], workers: int, say: Say
) -> None:
    """Compute every block that is not in the journal yet."""
    svm()  # a missing part is said before an hour's work, not after it
    blocks(folder, load(data)).run(tasks(repeats, readings), workers=workers, say=say)


def run_block(block: BankruptcyBlock, data: Bankruptcy) -> Arrays:
    """The methods of one group on the repeats of one block, regression and prediction."""
    splits = np.random.default_rng(np.random.SeedSequence(block.entropy))
    held = _held_out(len(data.codes), block.repeats, splits)
    if block.group == RIVAL:
        held = held[::RIVAL_EVERY]
    whole = np.repeat(data.table()[None], len(held), axis=0)
    train = np.stack([data.table(np.flatnonzero(~out)) for out in held])
    arrays: dict[str, Stack] = dict(_originals(data, held)) if block.group == METHODS else {}
    for contender in block.contenders:
        first, second = contender.seed(*block.entropy).spawn(2)
        synthetic = _synthetic(contender, whole, block, first)
        estimates = combine_identified(*fit_class(synthetic.pop("rows"), block.sets))
        rows = _synthetic(contender, train, block, second)["rows"]
        arrays |= contender.label(estimates | synthetic | _prediction(rows, held, data, block))
    return arrays


def _held_out(n_rows: int, repeats: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """For each repeat, which rows are held out."""
    return np.argsort(rng.random((repeats, n_rows)), axis=1) < HELD_OUT


def _synthetic(
    contender: Contender | Rival, originals: Counts, block: BankruptcyBlock, seed: np.random.SeedSequence
) -> dict[str, Stack]:
    """The synthetic rows of every set, as tables of counts; of a rival also the processor seconds of a fit, by repeats."""
    stack, epsilon = np.repeat(originals, block.sets, axis=0), exp(block.power) / block.sets
    if isinstance(contender, Rival):
        drawn, seconds = contender.draw(stack, SCHEMA, epsilon=epsilon, seed=seed)
        return {"rows": drawn.rows, "seconds": seconds.reshape(len(originals), -1).mean(axis=1)[:, None]}
    rounds = best_rounds(contender, block.power, block.sets) if contender.uses_rounds else 1
    return {"rows": contender.draw(stack, epsilon=epsilon, seed=seed, rounds=rounds).rows}


@cache
def best_rounds(contender: Contender, power: int, sets: int) -> int:
    """MWEM's number of rounds, tuned on an invented table of the same shape."""
    invented, *seeds = np.random.SeedSequence([_TUNE, power + 2, sets]).spawn(1 + len(ROUNDS))
    table = _invented(np.random.default_rng(invented))
    return tune_rounds(contender, table, TUNING_DRAWS, epsilon=exp(power) / sets, seeds=seeds)


def _invented(rng: np.random.Generator) -> Counts:
    """250 rows from a mixture of two independence models with random margins: its columns depend on each other, and not on the real data."""
    mixture = np.zeros(SCHEMA.shape)
    for weight in (0.5, 0.5):
        part = np.array(weight)
        for size in SCHEMA.shape:
            part = np.multiply.outer(part, rng.dirichlet(np.ones(size)))
        mixture += part
    return rng.multinomial(250, mixture.ravel()).reshape(SCHEMA.shape)


def _originals(data: Bankruptcy, held: NDArray[np.bool_]) -> dict[str, Stack]:
    """Scores of the original rows: the regression, and the accuracy of an SVM and of the majority class on the held-out rows."""
    regression = combine_identified(*fit_class(data.table()[None], 1))
    tables = [data.table(np.flatnonzero(~out)) for out in held]
    right = np.array([[_right(table, data, out).mean()] for table, out in zip(tables, held, strict=True)])
    classes = columns_of_cells()[data.cells, OUTCOME]
    return {
        **{f"original/{key}": value[0] for key, value in regression.items()},
        "original/accuracy": right,
        "original/majority": np.array(
            [[(classes[out] == np.bincount(classes[~out]).argmax()).mean()] for out in held]
        ),
    }


def fit_class(tables: Counts, sets: int) -> tuple[Floats, Floats]:
    """The Firth-penalised regression of Class on the six qualities: sets by repeats by 13 estimates and variances."""
    x, cells = _design()
    return fit_sets(x, tables.reshape(len(tables), -1)[:, cells].astype(float), sets)


@cache
def _design() -> tuple[Floats, NDArray[np.intp]]:
    """A row for every combination of the qualities, and the cells of the full table that hold it: rows by classes."""
    qualities = np.delete(columns_of_cells(), OUTCOME, axis=1)
    levels, row = np.unique(qualities, axis=0, return_inverse=True)
    cells = np.lexsort((columns_of_cells()[:, OUTCOME], row.ravel())).reshape(len(levels), 2)
    return np.asarray(one_hot(levels, (3,) * levels.shape[1]).toarray()), cells


def _prediction(
    rows: Counts, held: NDArray[np.bool_], data: Bankruptcy, block: BankruptcyBlock
) -> dict[str, Stack]:
    """The mean accuracy of the sets' SVMs, and the accuracy of their majority vote."""
    right = np.array([_right(table, data, held[number // block.sets]) for number, table in enumerate(rows)])
    right = right.reshape(len(held), block.sets, -1)
    return {
        "accuracy": right.mean(axis=(1, 2))[:, None],
        "vote": (right.mean(axis=1) > 0.5).mean(axis=1)[:, None],
    }


def _right(table: Counts, data: Bankruptcy, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which held-out rows are predicted rightly by an SVM trained on a table; a table with a single class predicts that class."""
    cells = np.repeat(np.arange(table.size), table.ravel())
    x, classes = _levels()[cells], columns_of_cells()[cells, OUTCOME]
    test = data.cells[held]
    truth = columns_of_cells()[test, OUTCOME]
    if len(np.unique(classes)) == 1:
        return np.asarray(truth == classes[0])
    return np.asarray(svm().fit(x, classes).predict(_levels()[test]) == truth)


@cache
def _levels() -> Floats:
    """Every level of the six qualities as a 0/1 column, for every cell."""
    qualities = np.delete(columns_of_cells(), OUTCOME, axis=1)
    return np.concatenate([np.eye(3)[column] for column in qualities.T], axis=1)


def svm() -> Any:
    """A support vector machine, not yet trained, with the customary defaults: radial kernel, C = 1, gamma = 1 / columns."""
    try:
        from sklearn.svm import SVC
    except ImportError:
        raise MissingExtra("experiments", "scikit-learn") from None
    return SVC(C=1.0, kernel="rbf", gamma="auto")
