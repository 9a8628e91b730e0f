"""How many bins a search may find: the search itself, rehearsed with made-up rows of a few shapes and made-up noise of the size that it will have.

Nothing is read. The rows are even, bell-shaped, skewed or of few values, between the declared ends of each column; an open end is taken to lie a public distance from
the other, or from zero. The noise comes from a generator with a seed, so that the same plan says the same. The steps are those of `measure`.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import ndtr

from dpcipher.schema.open_column import AUTO
from dpcipher.selection.binning import BinRisk
from dpcipher.selection.find import Intervals
from dpcipher.selection.search import Search, run_searches
from dpcipher.tables.domain import Counts, Floats
from dpcipher.tables.measurement import Noise

WIDTH, DAYS = (
    1_000.0,
    40 * 365.0,
)  # of the rows where an end is open: the floating-point grid is alike at every size
_VALUES = np.array([0.0, 0.05, 0.1, 0.15, 0.25, 0.5, 0.9])  # few values, and the rows up to each
_UP_TO = np.array([0.0, 0.5, 0.7, 0.8, 0.88, 0.94, 0.98, 1.0])

Shape = Callable[[Floats], Floats]  # the fraction of the rows below each place from 0 to 1
SHAPES: Mapping[str, Shape] = {
    "even": lambda places: places,
    "bell-shaped": lambda places: ndtr(8 * places - 4),
    "skewed": lambda places: ndtr(np.log(np.maximum(places, 1e-12)) + 3.5),  # as incomes: the median at 3 %
    "of few values": lambda places: _UP_TO[np.searchsorted(_VALUES, places)],
}


def rehearse(
    searches: Callable[[], Sequence[Search]],
    noise: Callable[[Fraction], Noise],
    risk: Callable[[int, float], BinRisk],
    *,
    n_rows: int,
    told: bool,
) -> dict[str, dict[str, int]]:
    """The bins that are found of every column, by the shape of its rows: all columns have the same shape at a time.

    `told` says whether the number of rows is public. `searches` begins them anew, `noise` is that of a number of shares, and `risk` that of the bins of an axis
    of so many rows.
    """
    rng = np.random.default_rng(1)
    found: dict[str, dict[str, int]] = {}
    for name, shape in SHAPES.items():
        begun = searches()
        cells = {search.axis: _made_up(search, shape, n_rows) for search in begun}
        answer = partial(_answer, cells, noise, rng)
        risks = run_searches(begun, answer, risk, n_rows=n_rows if told else None)
        for search in begun:
            edges = search.edges(risks[search.axis])
            found.setdefault(search.column.name, {})[name] = len(edges) - 1
    return found


def _answer(
    cells: Mapping[int, Counts],
    noise: Callable[[Fraction], Noise],
    rng: np.random.Generator,
    searches: Sequence[Search],
    shares: int,
) -> None:
    """What a session would answer: columns that are asked together share what all of them pay."""
    mechanism = noise(Fraction(shares, len(searches)))
    for search in searches:
        question = Intervals(search.axis, len(search.points) - 1, tuple(search.splits))
        asked = question._asked(cells[search.axis]).astype(float)
        search.update(asked + _drawn(mechanism, len(asked), rng), mechanism.variance)


def _drawn(mechanism: Noise, number: int, rng: np.random.Generator) -> Floats:
    if mechanism.kind == "laplace":
        return rng.laplace(scale=mechanism.scale, size=number)
    return rng.normal(scale=mechanism.scale, size=number)


def _made_up(search: Search, shape: Shape, n_rows: int) -> Counts:
    """Rows of a shape in the cells of the grid."""
    points = search.points.astype(float)
    low, high = _ends(search, points)
    below = shape(np.clip((points - low) / (high - low), 0.0, 1.0))
    below[0], below[-1] = 0.0, 1.0
    return np.diff(np.rint(n_rows * below)).astype(np.int64)


def _ends(search: Search, points: Floats) -> tuple[float, float]:
    """Between which ends the rows lie: declared ones, and in place of an open one a distance from the other or from zero."""
    first, last = float(points[0]), float(points[-1])
    if not search.is_unbounded:
        return first, last
    width = DAYS if search.column.kind == "date" else WIDTH
    if search.column.min != AUTO:
        return first, min(first + width, last)
    return (0.0, width) if search.column.max == AUTO else (max(last - width, first), last)
