"""The paper's second experiment: the bankruptcy data, pairs of five attributes (two of which cross two columns each), m = 1 and m = 5.

Two questions for every method. Regression: is the logistic regression of Class (all 250 rows, 13 parameters) the same in sign and
significance? Class is a function of the six qualities here, so that maximum likelihood has no finite answer; Firth's penalty has.
Prediction: how often is an SVM right about 50 held-out businesses, when the synthesizer saw only the other 200?
"""

from collections.abc import Sequence
from functools import cache, partial
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import MissingExtra
from dpcipher.inference.design import one_hot
from dpcipher.tables.domain import Counts, Floats
from experiments.paper.bankruptcy_data import DIGEST, OUTCOME, SHAPE, Bankruptcy, columns_of_cells
from experiments.paper.blocks import ORIGINAL, Arrays, Block, Blocks, split
from experiments.paper.simulated import FDH, RIVAL_EVERY, RIVALS, combine_identified, fit_sets
from experiments.paper.stacks import (
    LITERAL,
    MWEM_FITS,
    ROUNDS,
    SWEPT,
    Drawn,
    Method,
    fit_histogram,
    fit_ours,
    in_run,
    over_sets,
    paper,
    read,
    tune_rounds,
)

SETS = (1, 5)
BLOCK = 10
HELD_OUT = 50
TUNING_DRAWS = 10
CIPHER, OURS = "CIPHER", "ours"
MWEM = {form: f"MWEM, {form}" for form in MWEM_FITS}
_RUN, _TUNE = 4, 5

METHODS = {
    method.name: method
    for method in (
        Method(FDH, fit_histogram, 0),
        *(Method(MWEM[form], fit, 2, rounds=None) for form, fit in MWEM_FITS.items()),
        Method(CIPHER, paper(LITERAL), 2),
        Method(OURS, fit_ours, 2),
        *(Method(name, fit, 2, every=RIVAL_EVERY) for name, fit in RIVALS.items()),
        *(
            Method(read(CIPHER, reading), paper(reading), 2, CIPHER, reading=reading)
            for reading in SWEPT
            if reading != LITERAL
        ),
    )
}


def blocks(folder: Path, data: Bankruptcy) -> Blocks:
    """The finished blocks in a folder, and how to compute the others."""
    settings = {"data": DIGEST, "block": BLOCK, "held out": HELD_OUT, "rounds": ROUNDS}
    return Blocks(folder / "experiment2.jsonl", partial(run_block, data=data), settings)


def tasks(repeats: int, readings: Sequence[str] = (LITERAL,)) -> list[Block]:
    """Every block of a run, the original rows first."""
    return split(SETS, [ORIGINAL, *in_run(METHODS, readings)], repeats, BLOCK)


def entropy(block: Block) -> tuple[int, ...]:
    """What the seeds of a block are made of, whatever its method."""
    return (_RUN, block.scenario, block.power + 2, block.number)


def run_block(block: Block, data: Bankruptcy) -> Arrays:
    """One method on the repeats of one block, regression and prediction."""
    splits = np.random.default_rng(np.random.SeedSequence(entropy(block)))
    held = _held_out(len(data.codes), block.repeats, splits)
    if block.method == ORIGINAL:
        return _originals(data, held)
    method = METHODS[block.method]
    held = held[:: method.every]
    whole = np.repeat(data.table()[None], len(held), axis=0)
    train = np.stack([data.table(np.flatnonzero(~out)) for out in held])
    first, second = method.seed(*entropy(block)).spawn(2)
    analysed = _draw(method, whole, block, first)
    predicting = _draw(method, train, block, second)
    scores = combine_identified(*fit_class(analysed.rows, block.scenario))
    if "seconds" in analysed.scores:
        scores["seconds"] = over_sets(analysed.scores["seconds"], block.scenario)
    right = [_right(table, data, held[k // block.scenario]).mean() for k, table in enumerate(predicting.rows)]
    return scores | {"accuracy": over_sets(np.array(right), block.scenario)}


def _held_out(n_rows: int, repeats: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """For each repeat, which rows are held out."""
    return np.argsort(rng.random((repeats, n_rows)), axis=1) < HELD_OUT


def _draw(method: Method, originals: Counts, block: Block, seed: np.random.SeedSequence) -> Drawn:
    """Every set of every original."""
    rounds = best_rounds(method.name, block.power, block.scenario) if method.rounds is None else 1
    stack = np.repeat(originals, block.scenario, axis=0)
    return method.draw(stack, epsilon=exp(block.power) / block.scenario, seed=seed, rounds=rounds)


@cache
def best_rounds(name: str, power: int, sets: int) -> int:
    """MWEM's number of rounds, tuned on an invented table of the same shape."""
    invented, *seeds = np.random.SeedSequence([_TUNE, power + 2, sets]).spawn(1 + len(ROUNDS))
    table = _invented(np.random.default_rng(invented))
    return tune_rounds(METHODS[name], table, TUNING_DRAWS, epsilon=exp(power) / sets, seeds=seeds)


def _invented(rng: np.random.Generator) -> Counts:
    """250 rows from a mixture of two independence models with random margins: its columns depend on each other, and not on the real data."""
    mixture = np.zeros(SHAPE)
    for weight in (0.5, 0.5):
        part = np.array(weight)
        for size in SHAPE:
            part = np.multiply.outer(part, rng.dirichlet(np.ones(size)))
        mixture += part
    return rng.multinomial(250, mixture.ravel()).reshape(SHAPE)


def _originals(data: Bankruptcy, held: NDArray[np.bool_]) -> Arrays:
    """Scores of the original rows: the regression, and the accuracy of an SVM and of the majority class on the held-out rows."""
    regression = combine_identified(*fit_class(data.table()[None], 1))
    classes = columns_of_cells()[data.cells, OUTCOME]
    right, majority = [], []
    for out in held:
        right.append([_right(data.table(np.flatnonzero(~out)), data, out).mean()])
        majority.append([(classes[out] == np.bincount(classes[~out]).argmax()).mean()])
    return {
        **{key: np.repeat(value, len(held), axis=0) for key, value in regression.items()},
        "accuracy": np.array(right),
        "majority": np.array(majority),
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
    """A support vector machine, not yet trained: radial kernel, C = 1, γ = 1 / columns. The paper names none of them; the page says what γ does."""
    try:
        from sklearn.svm import SVC
    except ImportError:
        raise MissingExtra("experiments", "scikit-learn") from None
    return SVC(C=1.0, kernel="rbf", gamma="auto")
