"""Scores of dependence: their definitions, and their sensitivity over all small tables."""

import math
from fractions import Fraction
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest

from dpcipher.curator.counts import TableCounts
from dpcipher.errors import BudgetError
from dpcipher.methods.scores import (
    GRID,
    SCORES,
    coverage,
    dependence,
    information,
    pair_scores,
    sensitivity,
)
from dpcipher.privacy.terms import Unit


def all_tables(shape: tuple[int, int], n_rows: int):
    """Every table of that shape with so many rows."""
    cells = math.prod(shape)
    for bars in product(range(n_rows + 1), repeat=cells - 1):
        if sum(bars) <= n_rows:
            yield np.array([*bars, n_rows - sum(bars)], dtype=np.int64).reshape(shape)


def direct(table: np.ndarray, score: str) -> float:
    """n times the published score, from probabilities."""
    n = table.sum()
    if n == 0:
        return 0.0
    p = table / n
    outer = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    if score == "R":
        return float(n * np.abs(p - outer).sum() / 2)
    if score == "I":
        seen = p > 0
        return float(n * (p[seen] * np.log2(p[seen] / outer[seen])).sum())
    best = -math.inf
    for sides in product((0, 1), repeat=p.shape[1]):
        a = sum(p[0, column] for column, side in enumerate(sides) if side == 0)
        b = sum(p[1, column] for column, side in enumerate(sides) if side == 1)
        best = max(best, -(max(0, 0.5 - a) + max(0, 0.5 - b)))
    return float(n * best)


@pytest.mark.parametrize(("score", "function"), [("R", dependence), ("I", information), ("F", coverage)])
def test_scores_are_the_published_ones_times_the_rows(score: str, function) -> None:
    """Random tables, small and large, against the definition; rounded down to the grid."""
    rng = np.random.default_rng(4)
    for size in (0, 1, 7, 400, 30_000):
        table = rng.multinomial(size, rng.dirichlet(np.ones(8))).reshape(2, 4)
        assert function(table) / GRID == pytest.approx(direct(table, score), abs=2 / GRID)


def every_row(table: np.ndarray) -> int:
    """F by the published dynamic program: the largest b for every whole a, from 0 to all rows."""
    n_rows = int(table.sum())
    best = np.full(n_rows + 1, -1)
    best[0] = 0
    for zero, one in zip(*table.tolist(), strict=True):
        to_one = np.where(best >= 0, best + one, -1)
        to_zero = np.full_like(best, -1)
        to_zero[zero:] = best[: len(best) - zero]
        best = np.maximum(to_one, to_zero)
    reached = np.flatnonzero(best >= 0)
    short = np.maximum(n_rows - 2 * reached, 0) + np.maximum(n_rows - 2 * best[reached], 0)
    return -int(short.min()) * GRID // 2


def test_coverage_is_that_of_the_published_program() -> None:
    """Sixteen and more combinations of parents, where not every way to give them can be tried."""
    rng = np.random.default_rng(6)
    tables = [
        rng.multinomial(rows, rng.dirichlet(np.full(2 * parents, sharp))).reshape(2, parents)
        for parents in (16, 32, 64)
        for rows in (30, 3000)
        for sharp in (0.2, 1.0, 20.0)
    ]
    assert [int(coverage(table)) for table in tables] == [every_row(table) for table in tables]


@pytest.mark.parametrize("score", ["R", "I", "F"])
def test_many_scores_at_once_are_those_of_each_alone(score: str) -> None:
    """Mixed shapes, candidates that share a table, and stacks that are cut in pieces."""
    rng = np.random.default_rng(7)
    shape = (2, 2, 2, 2, 2) if score == "F" else (2, 3, 2, 4, 2)
    full = rng.multinomial(900, rng.dirichlet(np.full(math.prod(shape), 0.3))).reshape(shape)
    candidates = [
        (axis, parents)
        for size in range(4)
        for axis in range(5)
        for parents in combinations([other for other in range(5) if other != axis], size)
    ]

    def alone(axis: int, parents: tuple[int, ...]) -> int:
        summed = full.sum(axis=tuple(a for a in range(5) if a not in (axis, *parents)), keepdims=True)
        return int(SCORES[score](np.moveaxis(summed, axis, 0).reshape(shape[axis], -1)))

    expected = [alone(*candidate) for candidate in candidates]
    for cells in (1, 2**18):
        with patch("dpcipher.methods.scores._STACK_CELLS", cells):
            assert pair_scores(TableCounts(full), candidates, score).tolist() == expected


def test_the_dependence_of_very_many_rows_is_exact() -> None:
    """Beyond what 64-bit products hold, against fractions."""
    table = np.array([[2**40 + 3, 17, 2**33], [5, 2**41 - 1, 2**30 + 9]], dtype=np.int64)
    n = int(table.sum())
    rows, columns = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    gaps = [abs(Fraction(int(table[x, y])) - Fraction(rows[x] * columns[y], n)) for x, y in np.ndindex(2, 3)]
    assert int(dependence(table)) == math.floor(GRID * sum(gaps) / 2)


def moves(table: np.ndarray, relation: str):
    """All neighbours of a table for one row."""
    cells = list(np.ndindex(table.shape))
    for here in cells:
        if relation == "add-remove":
            more = table.copy()
            more[here] += 1
            yield more
        elif table[here]:
            for there in cells:
                other = table.copy()
                other[here] -= 1
                other[there] += 1
                yield other


@pytest.mark.parametrize(
    ("score", "function", "relation", "shape"),
    [
        ("R", dependence, "add-remove", (2, 3)),
        ("R", dependence, "replace", (2, 3)),
        ("F", coverage, "add-remove", (2, 3)),
        ("F", coverage, "replace", (2, 3)),
        ("I", information, "replace", (2, 3)),
        ("I", information, "replace", (3, 3)),
    ],
)
def test_no_neighbour_moves_a_score_by_more_than_declared(score: str, function, relation: str, shape) -> None:
    """Every table of up to five rows and every neighbour of it."""
    unit, most, declared_there = Unit(relation), 0.0, math.inf
    for n_rows in range(2, 6 if shape == (2, 3) else 5):
        binary = 2 in shape
        declared = sensitivity(score, unit, n_rows if relation == "replace" else None, binary=binary)
        for table in all_tables(shape, n_rows):
            mine = function(table)
            step = max(abs(mine - function(other)) for other in moves(table, relation))
            assert step <= declared
            if step / declared > most / declared_there:
                most, declared_there = step, declared
    assert most > 0.45 * declared_there  # the bound is not idle


def test_a_column_of_one_level_covers_half() -> None:
    """Its second level would be empty whatever its parents are, so F is −½ of the rows."""
    for rows in ([0, 0, 0], [3, 4, 0], [9, 1, 2]):
        table = np.array([rows], dtype=np.int64)
        assert coverage(table) == -GRID * sum(rows) // 2 == coverage(np.array([rows, [0, 0, 0]]))


def test_the_bound_on_dependence_is_reached_in_large_tables() -> None:
    """A thousand rows in one cell and one in the opposite corner: nearly 2."""
    table = np.array([[1000, 0], [0, 0]], dtype=np.int64)
    corner = table + np.array([[0, 0], [0, 1]])
    assert 1.9 < (dependence(corner) - dependence(table)) / GRID < 2


def test_sensitivities_are_the_published_ones_under_replacement() -> None:
    """n times 3/n + 2/n², 1/n, and the logarithms of PrivBayes' lemma."""
    unit, n = Unit("replace"), 500
    assert sensitivity("R", unit, n) == math.ceil(GRID * (3 + 2 / n))
    assert sensitivity("F", unit, n) == GRID
    binary = math.log2(n) + (n - 1) * math.log2(n / (n - 1))
    general = 2 * math.log2((n + 1) / 2) + (n - 1) * math.log2((n + 1) / (n - 1))
    assert sensitivity("I", unit, n, binary=True) == math.ceil(GRID * binary) + 1
    assert sensitivity("I", unit, n) == math.ceil(GRID * general) + 1
    assert sensitivity("R", Unit("add-remove", 3), None) == 6 * GRID


def test_information_needs_a_public_number_of_rows() -> None:
    """Its sensitivity grows with the logarithm of the rows."""
    with pytest.raises(BudgetError, match="score='R'"):
        sensitivity("I", Unit("add-remove"), None)


def test_large_counts_do_not_overflow() -> None:
    """Two thousand million rows on a diagonal are half dependent."""
    table = np.array([[2**30, 0], [0, 2**30]], dtype=np.int64)
    assert dependence(table) == GRID * 2**30
