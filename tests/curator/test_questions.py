"""Every question and every choice against random neighbours: none moves further than it says, and what it says is needed."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest

import dpcipher
from dpcipher.curator.counts import TableCounts
from dpcipher.methods.fourier import Coefficients
from dpcipher.methods.growth import Growth
from dpcipher.methods.junction_tree import Dependence, TreeScores
from dpcipher.methods.mwem import Cell, CellScores, TableScores
from dpcipher.methods.scores import GRID, PairScores
from dpcipher.privacy.terms import Unit
from dpcipher.request.session import Choice, Counted, Question
from dpcipher.selection.find import Intervals
from dpcipher.selection.prediction import GRAIN
from dpcipher.selection.search import Split
from dpcipher.selection.select import Distances, Scores
from dpcipher.tables.query import Groups, Query

SHAPE = (3, 2, 8)
UNITS = [Unit(relation, rows) for relation in ("add-remove", "replace") for rows in (1, 3)]
TABLES = [axes for order in (1, 2, 3) for axes in combinations(range(3), order)]


def goal(axes: tuple[int, ...]) -> np.ndarray:
    """Many rows are predicted in the first cell, none elsewhere."""
    predicted = np.zeros([SHAPE[axis] for axis in axes], dtype=np.int64)
    predicted[(0,) * len(axes)] = 1000 * GRAIN
    return predicted


MODELS = [(axes, goal(axes) * GRID // GRAIN) for axes in TABLES]
DISTANCES = Distances(TABLES, goal, len(TABLES))
HALVES = Split((0, 8), ((0, 4), (4, 8)), by_difference=True)
PARTS = Split(None, ((0, 3), (3, 4), (4, 8)), by_difference=False)
PAIRS = [(0, (2,)), (2, (0, 1)), (1, ())]

# Each with the part of what it says that some neighbours must reach, in L1 and in squared L2: all of it, but for bounds that are known to be loose under
# replacement.
QUESTIONS: list[tuple[Question, float, float]] = [
    (Counted(Query((0, 2))), 1, 1),
    (Counted(Query(())), 0, 0),  # under replacement it does not move at all
    (Counted(Query((0, 2), (None, Groups.runs([0, 1, 5], 8)))), 1, 1),
    (Counted(Query((0, 1), centred=True)), 1, 1),
    (Counted(Query((0, 1), contrasts=(0,))), 1, 1),
    (Intervals(2, 8, (PARTS,)), 1, 1),
    (Intervals(2, 8, (HALVES,)), 1, 1),
    (DISTANCES, 1, 1),
    (Cell((0, 2), (1, 4)), 1, 1),
    (Coefficients([(), (0,), (1,), (0, 1)]), 0.5, 0.45),
    (Dependence([(0, 1), (0, 2), (1, 2)]), 0.3, 0.15),
]
CHOICES: list[tuple[Choice, float]] = [
    (Scores(DISTANCES, lambda: np.arange(len(TABLES)), np.full(len(TABLES), 256), 2), 1),
    (TableScores(MODELS), 1),
    (CellScores(MODELS), 1),
    (PairScores("parents", PAIRS, "R", None), 0.45),
    (TreeScores("tree", PAIRS, "R", None, growth=Growth(SHAPE, 100.0)), 0.45),
]


def neighbours(unit: Unit, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tables, and the same with one person's rows there or not, or elsewhere: all in one cell, or anywhere."""
    for number in range(400):
        here = rng.multinomial(int(rng.integers(0, 200)), rng.dirichlet(np.full(48, 0.1)))
        if number % 2:  # most rows in two far corners, where a dependence moves furthest
            here[[0, 47]] += rng.integers(0, 300, 2)
        rows = unit.max_rows if number % 4 else int(rng.integers(1, unit.max_rows + 1))
        into, out = (rng.integers(0, 48, 1 if rng.random() < 0.7 else rows).repeat(rows)[:rows] for _ in "ab")
        there = here.copy()
        np.add.at(there, into, 1)
        if unit.relation == "replace":
            np.add.at(here, out, 1)
        pair = here.reshape(SHAPE), there.reshape(SHAPE)
        yield pair if rng.random() < 0.5 else pair[::-1]


def gaps(of: Callable[[TableCounts], np.ndarray], unit: Unit) -> Iterator[np.ndarray]:
    """How far each number moves on each pair of neighbours."""
    for here, there in neighbours(unit, np.random.default_rng(1)):
        yield np.abs(np.asarray(of(TableCounts(here)) - of(TableCounts(there)), dtype=float)).ravel()


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    ("question", "l1", "l2"),
    QUESTIONS,
    ids=lambda value: type(value).__name__ if isinstance(value, Question) else "",
)
def test_no_neighbours_move_an_answer_further_than_it_says(
    question: Question, l1: float, l2: float, unit: Unit
) -> None:
    """In L1 and in squared L2; and some move it as far, where nothing is said to the contrary."""
    if question is QUESTIONS[6][0] and unit.relation == "replace":
        with pytest.raises(AssertionError):
            question.sensitivity(unit, SHAPE)
        return
    said = question.sensitivity(unit, SHAPE)
    moved = [(gap.sum(), (gap**2).sum()) for gap in gaps(question.of, unit)]
    furthest, squared = np.max(moved, axis=0)
    assert l1 * said.l1 <= furthest <= said.l1
    assert l2 * said.l2_squared <= squared <= said.l2_squared


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("choice", "part"), CHOICES, ids=lambda value: type(value).__name__)
def test_no_neighbours_move_a_score_further_than_it_says(choice: Choice, part: float, unit: Unit) -> None:
    """Any one score."""
    said = choice.sensitivity(unit)
    assert part * said <= max(gap.max() for gap in gaps(choice.of, unit)) <= said


def test_every_question_is_tried() -> None:
    """All classes of the package that ask rows anything, wherever they are."""
    found = set()
    for module in pkgutil.walk_packages(dpcipher.__path__, "dpcipher."):
        if not module.name.endswith("__main__"):
            named = inspect.getmembers(import_module(module.name), inspect.isclass)
            found |= {one for _, one in named if issubclass(one, Question | Choice)}
    assert found - {Question, Choice} == {type(case[0]) for case in (*QUESTIONS, *CHOICES)}
