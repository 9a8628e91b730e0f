"""The log-linear model and its prior, against interactions written out one by one and walks simulated step by step."""

from itertools import product

import numpy as np
import pytest

from dpcipher.posteriors.halves import Halves
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.posteriors.prior import CONTRAST_SD, Levels, contrasts
from dpcipher.tables.domain import Axes, Floats, closure

ZOO = {
    "pairs": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
    "chain": [(0, 1), (1, 2), (2, 3)],
    "everything": [(0, 1, 2, 3)],
    "columns alone": [(0,), (1,), (2,), (3,)],
    "mixed": [(0, 1, 3), (2, 3)],
}


def model(levels: list[Levels], tables: list[Axes]) -> LogLinear:
    """The model without impossible cells."""
    return LogLinear(tuple(levels), tuple(tables), np.ones([size for size, _ in levels], dtype=bool))


def covariance(levels: list[Levels], tables: list[Axes]) -> Floats:
    """The prior covariance of the scores."""
    design, shape = model(levels, tables).design, [size for size, _ in levels]
    return np.asarray((design @ design.T).reshape(*shape, *shape))


def spread(table: Floats, contrast: Floats) -> float:
    """The prior standard deviation of a contrast of the cells."""
    flat = table.reshape(contrast.size, contrast.size)
    return float(contrast.ravel() @ flat @ contrast.ravel()) ** 0.5


def odds(size: int, first: int, second: int) -> Floats:
    """The log odds ratio of two levels of a column of so many levels, and the two of another."""
    contrast = np.zeros((size, 2))
    contrast[[first, second], [0, 1]] = 1
    contrast[[first, second], [1, 0]] = -1
    return contrast


def test_no_level_is_a_reference() -> None:
    """The prior covariance of the scores is unchanged by a permutation of unrelated levels, and contrasts have the stated spread."""
    found = covariance([Levels(3), Levels(4)], [(0, 1)])
    turned = found[[2, 0, 1]][:, [3, 1, 0, 2]][:, :, [2, 0, 1]][..., [3, 1, 0, 2]]
    assert turned == pytest.approx(found)
    contrast = np.zeros((3, 4))
    contrast[[0, 1], [0, 1]] = 1
    contrast[[0, 1], [1, 0]] = -1
    assert spread(found, contrast) == pytest.approx(CONTRAST_SD[2])


def test_ordered_levels_are_a_walk() -> None:
    """The log odds ratio of two levels has the spread of a simulated walk that is as far as unrelated levels after two steps."""
    found = covariance([Levels(7, ordered=7), Levels(2)], [(0, 1)])
    steps = np.random.default_rng(0).normal(size=(40_000, 6)) * CONTRAST_SD[2] / 2**0.5
    walk = np.concatenate([np.zeros((40_000, 1)), steps.cumsum(axis=1)], axis=1)
    for first, second in product(range(7), repeat=2):
        if first != second:
            expected = (walk[:, first] - walk[:, second]).std()
            assert spread(found, odds(7, first, second)) == pytest.approx(expected, rel=0.02)


def test_three_levels_and_columns_alone_are_as_without_an_order() -> None:
    """An order changes the prior of interactions with at least four levels that follow one another, and nothing else."""
    unordered, short = ([Levels(3, ordered), Levels(2)] for ordered in (0, 3))
    assert covariance(short, [(0, 1)]) == pytest.approx(covariance(unordered, [(0, 1)]))
    alone = [covariance([Levels(6, ordered)], [(0,)]) for ordered in (0, 6)]
    assert alone[1] == pytest.approx(alone[0])


def test_the_ends_of_an_order_are_unrelated_levels_in_larger_interactions() -> None:
    """The ratio of two odds ratios: between neighbours half the spread that it has between the first level and the fifth."""
    levels = [Levels(5, ordered=5), Levels(2), Levels(2)]
    larger = covariance(levels, [(0, 1, 2)]) - covariance(levels, [(0, 1), (0, 2), (1, 2)])

    def ratio(first: int, second: int) -> float:
        return spread(larger, np.stack([odds(5, first, second), -odds(5, first, second)], axis=2))

    assert ratio(0, 4) == pytest.approx(CONTRAST_SD[3])
    assert ratio(1, 2) == pytest.approx(CONTRAST_SD[3] / 2)


def test_levels_outside_the_order_leave_the_walk_alone() -> None:
    """A missing level is unrelated: no nearer to the first level than to the last, and those differ as they do without it."""
    plain = covariance([Levels(5, ordered=5), Levels(2)], [(0, 1)])
    found = covariance([Levels(6, ordered=5), Levels(2)], [(0, 1)])
    assert spread(found, odds(6, 0, 4)) == pytest.approx(spread(plain, odds(5, 0, 4)))
    assert spread(found, odds(6, 5, 0)) == pytest.approx(spread(found, odds(6, 5, 4)))
    assert spread(found, odds(6, 5, 2)) >= CONTRAST_SD[2]


@pytest.mark.parametrize("split", [1, 2, 3])
@pytest.mark.parametrize("tables", ZOO.values(), ids=ZOO)
def test_halves_are_the_interactions_written_out(tables: list[Axes], split: int) -> None:
    """Every coefficient times the product of its contrasts, summed cell by cell; and the transpose."""
    rng, shape = np.random.default_rng(0), (2, 3, 4, 2)
    of_axes = tuple(contrasts(Levels(size, size)) for size in shape)
    parts = tuple(closure(tables)[1:])
    halves = Halves(parts, tuple(enumerate(of_axes)), shape, split)
    coefficients, slopes = rng.normal(size=(3, halves.size)), rng.normal(size=(3, 48))
    expected, place = np.zeros((3, *shape)), 0
    for part in parts:
        for which in product(*(range(shape[axis] - 1) for axis in part)):
            function = np.ones(shape)
            for axis, contrast in zip(part, which, strict=True):
                function *= of_axes[axis][:, contrast].reshape([-1 if a == axis else 1 for a in range(4)])
            expected += coefficients[:, place].reshape(3, 1, 1, 1, 1) * function
            place += 1
    assert place == halves.size
    assert halves.scores(coefficients) == pytest.approx(expected.reshape(3, -1))
    assert (halves.pull(slopes) * coefficients).sum() == pytest.approx(
        (slopes * expected.reshape(3, -1)).sum()
    )


@pytest.mark.parametrize("tables", ZOO.values(), ids=ZOO)
def test_by_halves_equals_the_design_matrix(tables: list[Axes]) -> None:
    """The two ways to apply the design agree."""
    rng, levels = np.random.default_rng(0), [Levels(2), Levels(3), Levels(4, 4), Levels(2)]
    dense, lazy = model(levels, tables), model(levels, tables)
    lazy.__dict__["is_dense"] = False
    points, slopes = rng.normal(size=(5, dense.size)), rng.normal(size=(5, 48))
    assert dense.is_dense
    assert lazy.scores(points) == pytest.approx(dense.scores(points))
    assert lazy.pull(slopes) == pytest.approx(dense.pull(slopes))


def test_one_column_has_no_tail() -> None:
    """A table of one column is all head."""
    only = model([Levels(5, 5)], [(0,)])
    only.__dict__["is_dense"] = False
    assert only.scores(np.eye(4)) == pytest.approx(only.design.T)
    assert only.pull(np.eye(5)) == pytest.approx(only.design)
