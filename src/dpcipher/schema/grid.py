"""The values that a cut column can take: whole numbers, days, minutes, or numbers of so many decimals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import SchemaError
from dpcipher.files.codec import is_number
from dpcipher.schema.scale import EXACT, Scale, parse_second

Places = NDArray[np.int64]

# Without `decimals` or `step`, a number has as many decimals as the declared edges, and enough for so many values in the narrowest bin.
VALUES_PER_BIN = 100
WRITTEN_DECIMALS = 6  # edges with more were computed, such as thirds, and say nothing about the values
MAX_DECIMALS = 15


@dataclass(frozen=True)
class Grid:
    """The values k · numerator / denominator for whole k, called places; each is the float nearest to it, so that 0.15 is written 0.15.

    >>> Grid(5, 100).values(np.array([3])).tolist()
    [0.15]
    """

    numerator: int = 1
    denominator: int = 1

    def values(self, places: Places) -> NDArray[Any]:
        """The value at each place: whole numbers where the grid has only such."""
        counted = places * self.numerator
        return counted if self.denominator == 1 else counted / self.denominator

    def places(self, points: NDArray[Any]) -> Places:
        """The first place whose value is at or above each point."""
        guess = np.ceil(np.asarray(points) * (self.denominator / self.numerator)).astype(np.int64)
        guess -= self.values(guess - 1) >= points  # rounding may have gone one too far, either way
        return np.asarray(guess + (self.values(guess) < points))

    def holds(self, points: Sequence[float]) -> bool:
        """Whether the grid is coarse enough, at the size of these points, for each of its values to be a float of its own."""
        return max(map(abs, points)) * self.denominator < EXACT


def declared_grid(scale: Scale, step: object, decimals: int | None, points: Sequence[float]) -> Grid | None:
    """The grid that `step` or `decimals` of a column asks for; None where neither is given."""
    if step is None and decimals is None:
        return None
    if step is not None and decimals is not None:
        raise SchemaError(f"step ({step!r:.40}) and decimals ({decimals!r:.40}) say the same twice; keep one")
    grid = _of_step(scale, step) if decimals is None else _of_decimals(scale, decimals)
    if not grid.holds(points):
        raise SchemaError("step or decimals is too fine for numbers of this size; make it coarser")
    return grid


def _of_decimals(scale: Scale, decimals: int) -> Grid:
    if scale.whole:
        raise SchemaError("decimals is for number columns; integers have none")
    return _decimal_grid(decimals)


def _decimal_grid(decimals: int) -> Grid:
    return Grid(1, 10**decimals)


def _of_step(scale: Scale, step: object) -> Grid:
    if scale.kind == "time":
        return _of_clock(step)
    if scale.kind == "date":
        raise SchemaError("step is for integer, number and time columns; leave it out")
    if not is_number(step) or not 0 < step < EXACT:
        raise SchemaError(f"step ({step!r:.60}) must be a number above 0, such as 10 or 0.25")
    places = decimals_of([step])
    numerator = int(Decimal(repr(step)).scaleb(places))
    if places > MAX_DECIMALS or (scale.whole and places):
        raise SchemaError(f"step ({step!r}) must be whole in an integer column, and not finer than 1e-15")
    return Grid(numerator, 10**places)


def _of_clock(step: object) -> Grid:
    """The times that are so many minutes apart, from midnight on."""
    if not isinstance(step, str) or not parse_second(step, "step"):
        raise SchemaError(
            f"step ({step!r:.60}) must be a time above 00:00 in a time column, such as '00:01' for whole minutes"
        )
    return Grid(parse_second(step, "step"))


def default_grid(declared: Iterable[float], edges: Sequence[float]) -> Grid | None:
    """The grid of a number column that states none, from its public edges; None where floats are too coarse for one.

    >>> default_grid([0, 1000000], [0.0, 50000.0, 1000000.0]), default_grid([0, 1], [0.0, 0.5, 1.0])
    (Grid(numerator=1, denominator=1), Grid(numerator=1, denominator=1000))
    """
    narrowest = min(high - low for low, high in pairwise(edges))
    written = decimals_of(declared)
    decimals = max(0, ceil(log10(VALUES_PER_BIN) - log10(narrowest)))
    if written <= WRITTEN_DECIMALS:
        decimals = max(decimals, written)
    while decimals and (decimals > MAX_DECIMALS or not _decimal_grid(decimals).holds((edges[0], edges[-1]))):
        decimals -= 1
    grid = _decimal_grid(decimals)
    if not grid.holds((edges[0], edges[-1])) or narrowest * grid.denominator < 2:
        return None
    return grid


def decimals_of(numbers: Iterable[float]) -> int:
    """The most digits after the point that any of these numbers is written with."""
    exponents = (Decimal(repr(number)).normalize().as_tuple().exponent for number in numbers)
    return max([0, *(-exponent for exponent in exponents if isinstance(exponent, int))])
