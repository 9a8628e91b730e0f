"""Choosing tables: the sensitivity of every question, exact shares, and what the choice finds."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from choosing import columns, run

from dpcipher.curator.answers import PrivateRows
from dpcipher.curator.counts import TableCounts
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.request.request import Auto
from dpcipher.request.session import Choice, Question, Session, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.selection.prediction import GRAIN
from dpcipher.selection.select import Distances, select
from dpcipher.tables.domain import Axes

SHAPE = (2, 3, 2, 4)
UNITS = [Unit(relation, rows) for relation in ("add-remove", "replace") for rows in (1, 3)]
Ask = Callable[[TrueCounts], np.ndarray]


@dataclass(frozen=True)
class Heard:
    """What was asked of the rows, and how far one person may move the answer: in all, in squares, in any one number."""

    what: str
    ask: Ask
    l1: float = math.inf
    l2_squared: float = math.inf
    each: float = math.inf

    def broken(self, here: np.ndarray, others: Sequence[np.ndarray]) -> int:
        """How many neighbours move the answer by more than was declared."""
        answer = self.ask(TableCounts(here))
        gaps = [np.abs(self.ask(TableCounts(there)) - answer).astype(float).ravel() for there in others]
        return sum(
            gap.sum() > self.l1 or (gap**2).sum() > self.l2_squared or gap.max() > self.each for gap in gaps
        )


class Watched(Session):
    """A session that remembers its questions."""

    asked: list[Heard]

    def ask(self, question: Question, share: Fraction) -> Any:
        """Note how far one person is said to move the answer."""
        moved = question.sensitivity(self.unit, self.schema.shape)
        words = question.words(self.schema)
        self.asked.append(Heard(words, question.of, moved.l1, moved.l2_squared))
        return super().ask(question, share)

    def choose(self, choice: Choice, k: int, share: Fraction) -> Any:
        """Note how far one person is said to move any score."""
        self.asked.append(Heard(choice.words(self.schema), choice.of, each=choice.sensitivity(self.unit)))
        return super().choose(choice, k, share)


def distances(counts: TrueCounts, tables: Sequence[Axes], goals: Sequence[np.ndarray]) -> np.ndarray:
    """The distances of tables from goals that are given one by one."""
    given = dict(zip(tables, goals, strict=True))
    return Distances(tables, given.__getitem__, len(tables)).of(counts)


def neighbours(counts: np.ndarray, unit: Unit, rng: np.random.Generator, times: int) -> Iterator[np.ndarray]:
    """Tables in which one person's rows are there or not, or have other values: all in one cell, or anywhere."""
    for _ in range(times):
        there, rows = counts.copy(), int(rng.integers(1, unit.max_rows + 1))
        taken, given = (
            rng.integers(0, counts.size, 1 if rng.random() < 0.5 else rows).repeat(rows)[:rows] for _ in "ab"
        )
        if unit.relation == "replace" or rng.random() < 0.5:
            full = np.flatnonzero(counts >= rows)
            np.subtract.at(there.reshape(-1), full[taken % len(full)], 1)
        if unit.relation == "replace" or there.sum() == counts.sum():
            np.add.at(there.reshape(-1), given, 1)
        assert there.min() >= 0
        assert (there.sum() == counts.sum()) == (unit.relation == "replace")
        yield there


def sparse(rng: np.random.Generator, n_rows: int = 300) -> np.ndarray:
    """Counts with many empty cells and a few large ones."""
    return rng.multinomial(n_rows, rng.dirichlet(np.full(math.prod(SHAPE), 0.2))).reshape(SHAPE)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbour_moves_a_distance_by_more_than_is_proved(unit: Unit) -> None:
    """Tables of one to four columns from arbitrary goals: each at most l1, and the bound is reached."""
    rng = np.random.default_rng(0)
    tables = [axes for k in (1, 2, 3, 4) for axes in combinations(range(4), k)]
    most = 0
    for _ in range(15):
        counts = sparse(rng)
        goals = [rng.integers(0, 60 * GRAIN, [SHAPE[axis] for axis in axes]) for axes in tables]
        here = distances(TableCounts(counts), tables, goals)
        for there in neighbours(counts, unit, rng, 20):
            most = max(most, int(np.abs(distances(TableCounts(there), tables, goals) - here).max()))
    assert most == unit.l1


def test_distances_are_those_of_the_definition() -> None:
    """In whole rows, rounded down, from goals in sixteenths."""
    rng = np.random.default_rng(1)
    counts, goal = sparse(rng), rng.uniform(0, 80, (3, 4))
    table = counts.sum(axis=(0, 2))
    found = distances(TableCounts(counts), [(1, 3)], [np.rint(goal * GRAIN).astype(np.int64)])
    assert found[0] == pytest.approx(np.abs(table - goal).sum(), abs=1 + goal.size / GRAIN)
    assert distances(TableCounts(counts), [(1, 3)], [table * GRAIN])[0] == 0


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    ("name", "value", "generous"),
    [("epsilon", 0.08, False), ("epsilon", 40.0, True), ("rho", 2.6e-5, False), ("rho", 100.0, True)],
)
def test_no_question_tells_neighbours_apart_by_more_than_it_declares(
    unit: Unit, name: str, value: float, generous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every question of a whole run, weighted scores or triples among them, asked again of sixty neighbours."""
    if not generous:  # a shortlist, however noisy
        for what, value_ in (("MAX_TVD", 0.0), ("GOOD_NOISE", 0.0), ("shortlist_length", lambda *_: 4)):
            monkeypatch.setattr(f"dpcipher.selection.rounds.{what}", value_)
    rng = np.random.default_rng(2)
    counts = sparse(rng, 3000)
    session = Watched(
        Schema.from_domain(dict(zip("abcd", SHAPE, strict=True))),
        Privacy(Budget.parse(**{name: value * unit.l1 ** (2 if name == "rho" else 1)}), unit),
        PrivateRows(TableCounts(counts), Draws.seeded(3)),
    )
    session.asked = []
    select(session, Auto(column_weights={"a": 2.5, "c": 0.7}))
    text = " ".join(question.what for question in session.asked)
    assert ("a × b × d" if generous else "tables to look at") in text
    others = list(neighbours(counts, unit, rng, 60))
    assert [question.what for question in session.asked if question.broken(counts, others)] == []


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("budget", [{"epsilon": 40.0}, {"rho": 2.0}], ids=str)
def test_looks_at_larger_tables_tell_neighbours_apart_by_no_more_than_they_declare(
    unit: Unit, budget: dict[str, float]
) -> None:
    """Fourteen columns with a parity of three and one of four: both are found by looking at 364 triples and 1,001 tables of four columns."""
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 2, (4000, 14))
    codes[:, 2] = codes[:, 0] ^ codes[:, 1]
    codes[:, 6] = codes[:, 3] ^ codes[:, 4] ^ codes[:, 5]
    counts = np.zeros((2,) * 14, np.int64)
    np.add.at(counts, tuple(codes.T), 1)
    session = Watched(
        Schema.from_domain({f"c{place}": 2 for place in range(14)}),
        Privacy(Budget.parse(**{name: value * unit.l1**2 for name, value in budget.items()}), unit),
        PrivateRows(TableCounts(counts), Draws.seeded(3)),
    )
    session.asked = []
    measured = {table.query.axes for table in select(session, Auto(max_cells=1000))}
    assert {(0, 1, 2), (3, 4, 5, 6)} <= measured
    looked = [question for question in session.asked if "to look at" in question.what]
    assert [question.what.split(" of ")[1] for question in looked[:2]] == [
        "364 tables to look at",
        "1001 tables to look at",
    ]
    others = list(neighbours(counts, unit, rng, 6))
    assert [question.what for question in session.asked if question.broken(counts, others)] == []


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_small_table_is_asked_for_its_rows_and_its_design(unit: Unit) -> None:
    """The number of rows only where it is not public; every answer within what it declares."""
    rng = np.random.default_rng(9)
    counts = sparse(rng, 3000)
    schema = Schema.from_domain(dict(zip("abcd", SHAPE, strict=True)))
    session = Watched(
        schema, Privacy(Budget.parse(epsilon=2.0), unit), PrivateRows(TableCounts(counts), Draws.seeded(3))
    )
    session.asked = []
    select(session, Auto())
    asked = [question.what for question in session.asked]
    assert ("number of rows" in asked) == (unit.relation == "add-remove")
    assert "a × b × c × d" in asked
    others = list(neighbours(counts, unit, rng, 60))
    assert [question.what for question in session.asked if question.broken(counts, others)] == []


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_score_that_moves_further_would_be_caught(unit: Unit) -> None:
    """The distance from the product of the table's own margins, declared as if that were public; and a score with a weight of 2."""
    rng = np.random.default_rng(4)
    corner = np.zeros(SHAPE, dtype=np.int64)
    corner[0, 0, 0, 0] = 1000

    def from_own_margins(truth: TrueCounts) -> np.ndarray:
        table = truth.counts((1, 3)).astype(float)
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
        return distances(truth, [(1, 3)], [np.rint(product * GRAIN).astype(np.int64)])

    def too_heavy(truth: TrueCounts) -> np.ndarray:
        return distances(truth, [(1, 3)], [GRAIN * corner.sum(axis=(0, 2))]) * 512 // 256

    others = list(neighbours(corner, unit, rng, 200))
    for wrong in (from_own_margins, too_heavy):
        assert Heard("wrong", wrong, each=unit.l1).broken(corner, others) > 0


# What a run spends


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("sets", [1, 3])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 0.01}, {"epsilon": 3.0}, {"rho": 0.02}, {"epsilon": 9.0, "delta": 1e-6}], ids=str
)
def test_shares_add_up_exactly_to_the_charge(unit: Unit, sets: int, budget: dict[str, float]) -> None:
    """Whatever was chosen in however many rounds: exactly one, at a cost within the budget; the note says what the choice took."""
    session, chosen = run(columns(6, 2000, 2, (0, 1), (2, 3)), (2,) * 6, unit=unit, sets=sets, **budget)
    certificate = session.statement().certificate
    spent = [Fraction(event["share"]) for event in certificate["events"]]
    assert sum(spent) == Fraction(certificate["share"]) == 1
    assert session.left == 0
    limit = Budget.parse(**budget).composable()
    assert certificate["total"] <= float(limit.rho or limit.epsilon)
    assert certificate["total"] == pytest.approx(float(limit.rho or limit.epsilon), rel=1e-9)
    looked = [e["share"] for e in certificate["events"] if e["what"].endswith(("tables", "to look at"))]
    counted = [e["share"] for e in certificate["events"] if e["what"] == "number of rows"]
    choosing = [*looked, *counted[: len(counted) - len(session.kept)]]  # those that are kept are released
    assert Fraction(certificate["selection"]["share"]) == sum(map(Fraction, choosing))
    assert certificate["selection"]["tables"] == len({table.query for table in chosen.tables})


def test_sets_have_the_same_tables_and_noise_of_their_own() -> None:
    """Three sets: equal attrs and scales, different counts, together no more than the charge."""
    _, chosen = run(columns(5, 3000, 3, (0, 1)), (3,) * 5, sets=3, epsilon=2.0, delta=1e-6)
    by_set = [[table for table in chosen.tables if table.set == number] for number in range(3)]
    said = [[(table.query.axes, table.noise) for table in tables] for tables in by_set]
    assert said[0] == said[1] == said[2]
    assert any({0, 1} <= set(axes) for axes, _ in said[0])
    for tables in zip(*by_set, strict=True):
        assert len({table.values.tobytes() for table in tables}) == 3
