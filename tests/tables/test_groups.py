"""Queries against brute force: answers by hand, adjoints, and how far one row moves them."""

from itertools import product

import numpy as np
import pytest

from dpcipher.errors import WorkloadError
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Combination, Groups, Query

SIZES = (4, 3, 2)
AXES = (0, 1, 2)


def _queries() -> list[Query]:
    """Queries of every form over three columns."""
    runs, crossed = Groups.runs([0, 1], 4), Groups.of_lists([[1, 3], [0, 2]], 4)
    forms = [None, runs, crossed]
    plain = [Query((0, 1), (form, None)) for form in forms]
    contrasts = [Query((0, 2), (form, None), contrasts) for form in forms for contrasts in ((0,), (0, 2))]
    centred = [Query((0, 1, 2), (form, None, None), (), centred=True) for form in forms]
    return [Query(()), Query((1,), (), (1,)), *plain, *contrasts, *centred, Query(AXES, (), AXES)]


def _row(cell: tuple[int, ...]) -> np.ndarray:
    """A table with one row."""
    table = np.zeros(SIZES, dtype=np.int64)
    table[cell] = 1
    return table


@pytest.mark.parametrize("query", _queries(), ids=str)
def test_an_answer_is_the_sum_over_groups_less_what_contrasts_leave_out(query: Query) -> None:
    """The answer equals one written with matrices, cell by cell."""
    table = np.random.default_rng(1).integers(0, 50, SIZES)
    matrix = np.eye(1)
    for axis, size in enumerate(SIZES):
        if axis not in query.axes:
            form = np.ones((1, size))
        else:
            groups = query.forms[query.axes.index(axis)]
            form = np.eye(size) if groups is None else groups.matrix
            if axis in query.contrasts:
                form = len(form) * form - form.sum(axis=0)
        matrix = np.kron(matrix, form)
    if query.centred:
        matrix = len(matrix) * matrix - matrix.sum(axis=0)
    expected = (matrix @ table.ravel()).reshape(query.shape(SIZES))
    assert np.array_equal(query.apply(table, AXES), expected)


@pytest.mark.parametrize("query", _queries(), ids=str)
def test_spread_is_the_adjoint_of_merge(query: Query) -> None:
    """⟨M x, y⟩ = ⟨x, Mᵀ y⟩ for any levels and any numbers, in stacks of tables too; taking means away is its own adjoint."""
    rng, shape = np.random.default_rng(2), query.shape(SIZES)
    levels, numbers = rng.normal(size=[SIZES[axis] for axis in query.axes]), rng.normal(size=shape)
    left = float((query.merge(levels) * numbers).sum())
    assert left == pytest.approx(float((levels * query.spread(numbers)).sum()))
    assert np.array_equal(query.merge(levels[None], 1)[0], query.merge(levels))
    assert np.array_equal(query.spread(numbers[None], 1)[0], query.spread(numbers))
    others = rng.normal(size=shape)
    assert (query.less_means(others) * numbers).sum() == pytest.approx(
        (others * query.less_means(numbers)).sum()
    )
    size = query.contrast(numbers) - query.contrast(numbers - query.less_means(numbers))
    assert query.contrast(numbers) == pytest.approx(size)
    assert np.array_equal(query.less_means(numbers[None], 1)[0], query.less_means(numbers))


@pytest.mark.parametrize("query", _queries(), ids=str)
def test_one_row_moves_an_answer_exactly_as_far_as_stated(query: Query) -> None:
    """Over all rows, and over all pairs of rows, the largest distances are those that the query states."""
    answers = [query.apply(_row(cell), AXES) for cell in product(*map(range, SIZES))]
    added = query.moved(SIZES, "add-remove")
    assert added[0] == max(1, *(int(np.abs(a).sum()) for a in answers))
    assert added[1] == max(1, *(int((a**2).sum()) for a in answers))
    gaps = [first - second for first in answers for second in answers]
    replaced = query.moved(SIZES, "replace")
    if query.axes:
        assert replaced == (
            max(int(np.abs(g).sum()) for g in gaps),
            max(int((g**2).sum()) for g in gaps),
        )


def test_pooled_slots_differences_and_weighted_counts_are_combinations() -> None:
    """Sums of cells of several tables answer as their matrices say, and never move further than stated."""
    pooled = Combination(((Query((0,)), np.eye(4)[:, :4]), (Query((1,)), np.eye(4)[:, :3])))
    weighted = Combination(((Query((0,)), np.array([[0.0, 1.0, 2.0, 3.0]])),))
    table = np.random.default_rng(3).integers(0, 9, SIZES)
    expected = table.sum(axis=(1, 2)) + np.append(table.sum(axis=(0, 2)), 0)
    assert np.array_equal(pooled.apply(table, AXES), expected)
    assert weighted.apply(table, AXES).tolist() == [float(table.sum(axis=(1, 2)) @ [0, 1, 2, 3])]
    for query in (pooled, weighted):
        answers = [query.apply(_row(cell), AXES) for cell in product(*map(range, SIZES))]
        l1, l2 = query.moved(SIZES, "add-remove")
        assert max(np.abs(a).sum() for a in answers) <= l1
        assert max((a**2).sum() for a in answers) <= l2
        far, far_squared = query.moved(SIZES, "replace")
        assert max(np.abs(a - b).sum() for a in answers for b in answers) <= far
        assert max(((a - b) ** 2).sum() for a in answers for b in answers) <= far_squared


def test_groups_that_do_not_cover_a_column_are_refused() -> None:
    """Every level is in one group, and groups are numbered by their first levels."""
    with pytest.raises(WorkloadError, match="each of the 4 levels once"):
        Groups.of_lists([[0, 1], [1, 2, 3]], 4)
    with pytest.raises(WorkloadError, match="ascend from level 0"):
        Groups.runs([1, 3], 5)
    with pytest.raises(WorkloadError, match="order of their first levels"):
        Groups((1, 0))
    assert Groups.of_lists([[2], [0, 1]], 3, ["late", "early"]).names == ("early", "late")
    assert Query((0, 1), (Groups((0, 0)), None)) == Query((1,))


def test_a_measurement_in_rows_is_its_counts_and_their_variance() -> None:
    """Contrasts are divided by the cells they were multiplied by, and their noise with them."""
    table = np.array([[8, 2], [4, 6]])
    query = Query((0, 1), (), (0, 1))
    measured = Measurement(query, query.apply(table, (0, 1)), Noise("gaussian", 8.0))
    counts, variance = measured.in_rows()
    assert counts.tolist() == [[2.0, -2.0], [-2.0, 2.0]]
    assert variance == 64.0 / 16


@pytest.mark.parametrize("query", [Query((0, 1), centred=True), Query((0, 1), contrasts=(0, 1))], ids=str)
def test_counts_of_any_size_stay_whole_numbers_of_64_bits(query: Query) -> None:
    """Where a product of rows and cells is beyond them the answer is limited, not another number; one row more moves it no further than stated."""
    counts = np.zeros((40, 50), dtype=np.int64)
    counts[3, 4] = 2**53
    exact = query.contrast(counts.astype(object))
    assert np.array_equal(query.contrast(counts // 2**20), query.contrast(counts.astype(object) // 2**20))
    answer = query.contrast(counts * 2**8)
    assert np.array_equal(np.sign(answer), np.sign(exact))
    for cell in ((3, 4), (0, 0)):
        more = counts * 2**8
        more[cell] += 1
        moved = query.contrast(more) - answer
        assert np.abs(moved).sum() <= query.moved((40, 50), "add-remove")[0]
