"""The public grid of an open column: the fine cells on which its rows are coded until its bins are found.

The grid follows from the declaration alone. Where every whole number, day or second can have a cell, it has one; longer ranges are cut at the
multiples of a round step, so that the edges that are found among them are numbers that people write. A range that is open itself has
a floating-point grid: bands between powers of two, each of both signs cut alike.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpcipher.schema.points import BinnedKind, parse_day

Points = NDArray[np.int64] | NDArray[np.float64]

MAX_GRID = 2**17
DAY_SECONDS = 24 * 60 * 60
# A range that is open: powers of two of the bands, and the cells of each band.
BAND_CELLS = 256
_POWERS = {"integer": range(52), "number": range(-20, 60)}
_DATES = ("1900-01-01", "2078-12-31")


def grid_points(
    kind: BinnedKind,
    low: float | None,
    high: float | None,
    forced: Iterable[float] = (),
    most: int = MAX_GRID,
) -> Points:
    """The edges of the grid's cells from `low` to `high`, with the `forced` edges among them; `high` is an edge, None an open end."""
    points = _bands(kind, low, high) if low is None or high is None else _steps(kind, low, high, most)
    inside = [edge for edge in forced if points[0] < edge < points[-1]]
    return np.union1d(points, np.asarray(inside, dtype=points.dtype))


def band_edges(kind: BinnedKind, points: Points) -> list[int]:
    """The places among the points of an open range at which its bands begin: the powers of two, zero, or for dates the decades."""
    if kind == "date":
        starts: list[float] = [parse_day(f"{year}-01-01", "min") for year in range(1910, 2078, 10)]
    else:
        powers = [2.0**power for power in _POWERS[kind]]
        starts = [*(-power for power in powers), 0, *powers]
    places = np.flatnonzero(np.isin(points[:-1], starts))
    return [0, *(int(place) for place in places if place > 0)]


def _steps(kind: BinnedKind, low: float, high: float, most: int) -> Points:
    """Every whole number where they are few enough, else the multiples of the finest round step that leaves at most `most` cells."""
    width = high - low
    if kind != "number" and width <= most:
        return np.arange(int(low), int(high) + 1)
    inner = _multiples(low, high, width / (most - 1), whole=kind != "number")
    inner = inner[(inner > low) & (inner < high)]
    ends = np.asarray([low, high], dtype=inner.dtype)
    return np.union1d(inner, ends)


def _multiples(low: float, high: float, least: float, *, whole: bool) -> Points:
    """The multiples, between two numbers, of the first of 1, 2, 5, 10 … (or of their inverses) that is at least `least`."""
    power = math.floor(math.log10(least))
    digit, power = next(
        (digit, power + up) for up in (0, 1) for digit in (1, 2, 5) if digit * 10.0 ** (power + up) >= least
    )
    if power >= 0:
        step = digit * 10**power
        numbers = np.arange(math.ceil(low / step), math.floor(high / step) + 1)
        return np.asarray(numbers * (np.int64(step) if whole else float(step)))
    inverse = 10**-power // digit  # dividing by a whole number rounds once: 3 tenths is 0.3
    return np.asarray(np.arange(math.ceil(low * inverse), math.floor(high * inverse) + 1) / inverse)


def _bands(kind: BinnedKind, low: float | None, high: float | None) -> Points:
    """A floating-point grid, cut at the end that is declared."""
    if kind == "time":
        points: Points = np.arange(DAY_SECONDS + 1)
    elif kind == "date":
        first, last = (parse_day(day, "min") for day in _DATES)
        points = np.arange(first, last + 2)
    else:
        points = _floating(kind)
    if low is not None:
        points = np.union1d(points[points > low], np.asarray([low], dtype=points.dtype))
    if high is not None:
        points = np.union1d(points[points < high], np.asarray([high], dtype=points.dtype))
    return points


def _floating(kind: BinnedKind) -> Points:
    powers = _POWERS[kind]
    parts = np.arange(BAND_CELLS, 2 * BAND_CELLS) / BAND_CELLS
    above = np.concatenate([[0.0], *(parts * 2.0**power for power in powers), [2.0**powers.stop]])
    if kind == "integer":
        above = np.unique(np.floor(above)).astype(np.int64)
    return np.union1d(-above, above)
