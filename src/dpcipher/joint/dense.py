"""A joint distribution held as one dense table: every cell's probability.

Rows are drawn evenly by default: systematic sampling along a snake through the table. Neighbours on the snake differ by one level of one
attribute, so that what one cell rounds up a similar cell rounds down, and tables of small order match nearly to rounding.
Mean TVD between the rows' tables and the fitted ones, 1/2/3-way, 500 rows from a fitted 2×2×3×3 table: independent rows
.021/.036/.056, lexicographic order .0021/.0043/.0078, snake .0005/.0018/.0052; a Sobol sequence pushed through the conditionals,
.0039/.0093/.0196, also breaks the promise that no cell is off by a whole row. Where there are more cells than rows, that promise says little
about small tables: then levels are redrawn until two-way tables match (`match_goals`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, JointError
from dpcipher.joint.blocks import Blocks
from dpcipher.joint.core import CodeBatches, InBatches, batch_size
from dpcipher.joint.even import Places, match_goals
from dpcipher.tables.domain import Axes, Bools, Codes, Floats, Shape, dropped
from dpcipher.tables.table import pair_margins

CHUNK = 1 << 18
# Of larger tables the heights are not kept from draw to draw; they, and more rows than one chunk, are left as the snake drew them.
_KEPT_CELLS = 1 << 22
_SORTED_ROWS = 1 << 14
_PASSES = 8  # of `match_goals`: twice as many bring pairs nearer by a tenth, in twice the time
_FEWEST = 32  # rows that are matched: fewer would be no sample, but the rows that match best

Pairs = Mapping[tuple[int, int], Floats]


@dataclass(frozen=True)
class DenseTable(InBatches):
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

    def in_batches(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        independent: bool = False,
        allowed: Mapping[int, Bools] | None = None,
        chunk: int | None = None,
    ) -> CodeBatches:
        """Rows in random order; even ones are even over all batches, and each batch is by itself.

        Every cell's count is within one of `n_rows` times its probability; but where one batch has fewer rows than there are cells, two-way tables
        are nearly within one row instead.
        """
        levels = _allowed_levels(self.shape, allowed or {})
        part = self.probabilities[np.ix_(*levels)] if allowed else self.probabilities
        heights = self._heights if not allowed and part.size <= _KEPT_CELLS else np.cumsum(_snake(part))
        if not heights[-1] > 0:
            raise ConditionError("given must describe rows of non-zero probability; loosen the condition")
        steps = _Steps.of(n_rows, -(-n_rows // (chunk or CHUNK)), rng)

        def draw(number: int, rng: np.random.Generator) -> Codes:
            places = (
                _loose_places(heights, steps.size(number), rng)
                if independent
                else rng.permutation(_places(heights, steps.uniforms(number)))
            )
            rows = _levels(places, part.shape)
            if not independent and steps.n_batches == 1 and _FEWEST <= n_rows < part.size <= _KEPT_CELLS:
                _match_pairs(rows, part, pair_margins(part) if allowed else self._pairs, rng)
            return _relabel(rows, levels) if allowed else rows

        return CodeBatches(steps.n_batches, draw)

    @cached_property
    def _pairs(self) -> Pairs:
        """All two-way tables."""
        return pair_margins(self.probabilities)

    @cached_property
    def _heights(self) -> Floats:
        """The cumulative probabilities along the snake."""
        return np.cumsum(_snake(self.probabilities))

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


def _match_pairs(rows: Codes, table: Floats, pairs: Pairs, rng: np.random.Generator) -> None:
    """Redraw levels, in place, each from its distribution given the rest of its row, where that brings two-way tables nearer to those of `table`.

    Mean TVD to tables with pairwise effects of 6×9×3×3×3 cells, 1/2/3-way, 250 rows (25 draws): .0142/.0423/.1001 before, .0044/.0184/.0937 after.
    """
    movable = [axis for axis, size in enumerate(table.shape) if size > 1]
    strides = [prod(table.shape[axis + 1 :]) for axis in range(table.ndim)]
    flat, scale = table.ravel(), len(rows) / float(table.sum())
    for axis in movable if len(movable) > 1 else ():
        others = [other for other in movable if other != axis]
        blocks = Blocks([(o,) for o in others], [table.shape[o] for o in others], table.shape[axis])
        goals = [pairs[o, axis] if o < axis else pairs[axis, o].T for o in others]
        rest = sum(rows[:, o].astype(np.int64) * strides[o] for o in others)
        every = np.arange(table.shape[axis]) * strides[axis]

        def draw(chosen: Places, heights: Floats, rest: Any = rest, every: Any = every) -> Codes:
            sums = np.cumsum(flat[rest[chosen, None] + every], axis=1)
            reached = np.minimum(heights * sums[:, -1], np.nextafter(sums[:, -1], 0.0))
            return np.asarray((sums <= reached[:, None]).sum(axis=1), dtype=np.int32)

        cells = blocks.cells(rows, table.shape)
        wanted = scale * np.concatenate(goals)
        rows[:, axis] = match_goals(rows[:, axis], blocks, cells, wanted, draw, rng, passes=_PASSES)


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
    levels = np.empty((len(places), len(shape)), dtype=np.int32, order="F")
    behind = prod(shape)
    # Half as wide where that holds every place; what was divided by all axes before is what the next one is counted in.
    narrow = places.astype(np.int32) if behind < 2**31 else places
    before = np.zeros_like(narrow)
    for axis, size in enumerate(shape):
        behind //= size
        here = narrow // behind
        digit = here - before * size
        levels[:, axis] = np.where(before & 1, size - 1 - digit, digit)
        before = here
    return levels


@dataclass(frozen=True, eq=False)
class _Steps:
    """Evenly spaced uniforms, dealt out to batches: batch k takes every n-th uniform, from an offset of its own at random."""

    n_rows: int
    start: float
    first: NDArray[np.int64]

    @classmethod
    def of(cls, n_rows: int, n_batches: int, rng: np.random.Generator) -> "_Steps":
        start = rng.random()
        first = rng.permutation(n_batches) if n_batches > 1 else np.arange(n_batches)
        return cls(n_rows, start, first)

    @property
    def n_batches(self) -> int:
        return len(self.first)

    def size(self, number: int) -> int:
        """How many rows a batch has."""
        return batch_size(self.n_rows, self.n_batches, int(self.first[number]))

    def uniforms(self, number: int) -> Floats:
        """The uniforms of a batch, in order."""
        steps = np.arange(self.first[number], self.n_rows, self.n_batches)
        return np.asarray((steps + self.start) / self.n_rows)


def _places(heights: Floats, uniforms: Floats) -> NDArray[np.intp]:
    """The cells, by their place on the snake, in which shares of all probability end."""
    below_top = np.nextafter(heights[-1], 0.0)
    return np.asarray(np.searchsorted(heights, np.minimum(uniforms * heights[-1], below_top), side="right"))


def _loose_places(heights: Floats, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Independent cells. Many are found in order and then shuffled: the law is the same, and a long array is read once."""
    if n_rows < _SORTED_ROWS:
        return _places(heights, rng.random(n_rows))
    return np.asarray(rng.permutation(_places(heights, np.sort(rng.random(n_rows)))))
