"""A joint distribution held as one dense table: every cell's probability.

Rows are drawn evenly by default: systematic sampling along a snake through the table. Neighbours on the snake differ by one level of one
attribute, so that what one cell rounds up a similar cell rounds down, and tables of small order match nearly to rounding.
Mean TVD between the rows' tables and the fitted ones, 1/2/3-way, 500 rows from a fitted 2×2×3×3 table: independent rows
.021/.036/.056, lexicographic order .0021/.0043/.0078, snake .0005/.0018/.0052; a Sobol sequence pushed through the conditionals,
.0039/.0093/.0196, also breaks the promise that no cell is off by a whole row. Where rows are few, `balance` improves on the snake.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, JointError
from dpcipher.joint.even_rows import balance
from dpcipher.marginals.arrays import Axes, Bools, Codes, Floats, Shape
from dpcipher.marginals.tables import dropped

CHUNK = 1 << 18
# Larger tables, and more rows than one chunk, are left as the snake drew them.
_BALANCED_CELLS = 1 << 22


@dataclass(frozen=True)
class DenseTable:
    """Probabilities of all cells, one dimension for each attribute; non-negative, summing to one.

    >>> table = DenseTable(np.array([[0.5, 0.0], [0.25, 0.25]]))
    >>> table.project((0,)).tolist()
    [0.5, 0.5]
    >>> np.concatenate(list(table.sample(4, np.random.default_rng(1)))).sum(axis=0).tolist()
    [2, 1]
    """

    probabilities: Floats

    def __post_init__(self) -> None:
        cells = self.probabilities
        if cells.ndim == 0 or cells.size == 0:
            raise JointError(
                f"probabilities (shape {cells.shape}) must have an attribute and a cell; solve the release again"
            )
        # One pass each, without a copy: the table may have ten million cells.
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(cells.sum())
        if not np.isfinite(total) or float(cells.min()) < 0 or abs(total - 1) > 1e-6:
            raise JointError(
                "probabilities must be finite, non-negative and sum to 1; solve the release again"
            )

    @property
    def shape(self) -> Shape:
        """The number of levels of each attribute."""
        return self.probabilities.shape

    def project(self, axes: Axes) -> Floats:
        """The table of some attributes, its dimensions in the order of `axes`."""
        kept = tuple(sorted(axes))
        summed = np.asarray(self.probabilities.sum(axis=dropped(tuple(range(len(self.shape))), kept)))
        return summed.transpose([kept.index(axis) for axis in axes])

    def log_prob(self, codes: NDArray[np.integer]) -> Floats:
        """The log-probability of each row of codes; minus infinity for a cell without probability."""
        cells = self.probabilities[tuple(np.asarray(codes).T)]
        logs = np.full(len(cells), -np.inf)
        np.log(cells, out=logs, where=cells > 0)
        return logs

    def sample(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        independent: bool = False,
        allowed: Mapping[int, Bools] | None = None,
        chunk: int = CHUNK,
    ) -> Iterator[Codes]:
        """Rows of codes in random order, at most `chunk` at a time.

        By default every cell's count is within one of `n_rows` times its probability, and so, nearly always, is every cell of
        every two-way table (`balance`); `independent` draws each row on its own.
        `allowed` masks the levels of some attributes: rows then follow the exact conditional distribution.
        """
        levels = _allowed_levels(self.shape, allowed or {})
        part = self.probabilities[np.ix_(*levels)] if allowed else self.probabilities
        heights = np.cumsum(_snake(part))
        if not heights[-1] > 0:
            raise ConditionError("given must describe rows of non-zero probability; loosen the condition")
        drawn = _draw(part, heights, n_rows, rng, independent, chunk)
        return (_relabel(rows, levels) for rows in drawn) if allowed else drawn

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays for the file."""
        return {"probabilities": self.probabilities}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "DenseTable":
        """The table that `to_arrays` described."""
        if set(arrays) != {"probabilities"}:
            raise JointError(
                f"arrays ({', '.join(sorted(arrays))}) must be 'probabilities' alone; save the joint again"
            )
        return cls(np.ascontiguousarray(arrays["probabilities"], dtype=np.float64))


def _allowed_levels(shape: Shape, allowed: Mapping[int, Bools]) -> list[NDArray[np.intp]]:
    """The levels each attribute may take."""
    every = [
        np.flatnonzero(allowed[axis]) if axis in allowed else np.arange(size)
        for axis, size in enumerate(shape)
    ]
    if not all(levels.size for levels in every):
        raise ConditionError("given must allow at least one level of every attribute; loosen the condition")
    return every


def _relabel(rows: Codes, levels: list[NDArray[np.intp]]) -> Codes:
    """From levels counted among the allowed ones to all levels."""
    return np.stack([level[rows[:, axis]] for axis, level in enumerate(levels)], axis=1).astype(np.int32)


def _snake(table: Floats) -> Floats:
    """The cells along a snake: an axis runs backwards wherever the number of the place so far, on the axes before it, is odd."""
    path = np.array(table, dtype=np.float64, order="C")
    places = 1
    for size in table.shape:
        view = path.reshape(places, size, -1)
        view[1::2] = view[1::2, ::-1].copy()
        places *= size
    return path.ravel()


def _levels(places: NDArray[np.intp], shape: Shape) -> Codes:
    """The levels of the cells at some places of the snake."""
    levels = np.empty((len(places), len(shape)), dtype=np.int32)
    behind = prod(shape)
    for axis, size in enumerate(shape):
        behind //= size
        before, digit = np.divmod(places // behind, size)
        levels[:, axis] = np.where(before % 2, size - 1 - digit, digit)
    return levels


def _draw(
    part: Floats, heights: Floats, n_rows: int, rng: np.random.Generator, independent: bool, chunk: int
) -> Iterator[Codes]:
    """Chunks of levels; an even draw takes every n-th step in each chunk, so that every chunk is spread over all cells."""
    start, n_chunks = rng.random(), -(-n_rows // chunk)
    below_top = np.nextafter(heights[-1], 0.0)
    for number in range(n_chunks):
        steps = np.arange(number, n_rows, n_chunks)
        uniforms = rng.random(len(steps)) if independent else rng.permutation((steps + start) / n_rows)
        places = np.searchsorted(heights, np.minimum(uniforms * heights[-1], below_top), side="right")
        levels = _levels(places, part.shape)
        if not independent and n_chunks == 1 and part.size <= _BALANCED_CELLS:
            balance(levels, part, rng)
        yield levels
