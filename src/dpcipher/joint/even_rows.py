"""Even rows: draws whose tables match their probabilities nearly to rounding, instead of to the square root of the number of rows.

Steps that are each of use alone: `spread` and `systematic` hand out evenly spaced uniforms, and `balance` redraws single levels of rows drawn from a
dense table until no cell of a two-way table is off by more than a row. `match` does something alike for a column of a chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Codes, Floats, Shape
from dpcipher.tables.table import cell_numbers, count_rows, pair_margins

Places = NDArray[np.int64]

GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1.0 - 2.0**-20  # still below one after rounding to single precision

BALANCE_BATCHES = 1000
_BATCH_ROWS = 512
# A table that should hold whole numbers holds them up to the solver's tolerance only: one row and a bit.
_ONE_ROW = 1.01
# Balancing gives up after this many batches in a row without a move.
_PATIENCE = 60
# Or when so many batches have taken less than this share of what was beyond a row at first: it falls fast, and then a few cells take long.
_JUDGED, _WORTHWHILE = 50, 0.005


def spread(keys: Sequence[Codes], n_rows: int, rng: np.random.Generator) -> Floats:
    """Uniforms that are evenly spread among all rows, and among the rows that share any leading part of `keys`.

    The rows are sorted by the keys, most important first, and receive golden-ratio steps from a random start: any run of the
    sorted rows then holds nearly equally spaced numbers (the three-gap theorem), so that stratum by stratum a draw differs from
    its expectation by a few rows, instead of by the square root of their number.
    """
    order, uniforms = rng.permutation(n_rows), np.empty(n_rows)
    for key in reversed(keys):
        # Small integers are sorted by counting.
        narrow = key.astype(np.min_scalar_type(int(key.max(initial=0))))
        order = order[np.argsort(narrow[order], kind="stable")]
    uniforms[order] = (rng.random() + np.arange(n_rows) * GOLDEN) % 1.0
    return uniforms


def systematic(weights: Floats, n_rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """`n_rows` row numbers, each row chosen as often as its weight says, up to one; a weight of zero is never chosen."""
    cumulative = np.cumsum(weights)
    height = (np.arange(n_rows) + rng.random()) / n_rows * _BELOW_ONE * cumulative[-1]
    return np.asarray(np.searchsorted(cumulative, height, side="right"))


def row_sums(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The sum of each row, as a product: many times faster than a reduction over a short axis."""
    return np.asarray(values @ np.ones(values.shape[1], values.dtype))


class Ladder:
    """The cumulative probabilities of every row, from which any number of levels can be drawn.

    A level of probability zero has no height, and is never drawn.
    """

    def __init__(self, probabilities: NDArray[np.floating]) -> None:
        self._rungs = probabilities.copy()
        # Column by column: a cumulative sum over a short axis is slow.
        for level in range(1, probabilities.shape[1]):
            self._rungs[:, level] += self._rungs[:, level - 1]

    def draw(self, rows: NDArray[np.intp], uniforms: Floats) -> Codes:
        """One level for each of the chosen rows: how many rungs are not above a height, found by halving."""
        flat, last = self._rungs.ravel(), self._rungs.shape[1] - 1
        first = np.asarray(rows * (last + 1))
        height = flat.take(first + last) * np.minimum(uniforms, _BELOW_ONE).astype(flat.dtype)
        levels = np.zeros(len(rows), np.intp)
        step = 1 << (last.bit_length() - 1) if last else 0
        while step:
            probe = np.minimum(levels + step, last)
            np.copyto(levels, probe, where=flat.take(first + probe - 1) <= height)
            step //= 2
        return levels.astype(np.int32)


def balance(
    codes: Codes,
    table: Floats,
    rng: np.random.Generator,
    *,
    batches: int = BALANCE_BATCHES,
    pairs: Floats | None = None,
) -> None:
    """Balance rows drawn from `table`, in place; `pairs` are its `flat_pairs`, where they are known.

    Rows drawn along the snake (`dense`) have every cell of the full table right to within one row. Where there are more cells than rows
    that says little about small tables. So some rows are offered another level of one attribute, drawn from the exact conditional given
    the rest of the row, and take it when that brings two-way tables closer to their expectations and leaves both cells of the full table
    within one row of theirs. Deviations of up to one row are left alone: they are the rounding, and without it a handful of rows would
    be no sample but the mode. Mean TVD to the fitted table, 1/2/3-way: 6×9×3×3×3, 250 rows (25 draws) .0102/.0306/.0805 before,
    .0053/.0193/.0711 after; eight attributes of five levels, 10,000 rows (3 draws) .0023/.0081/.0226 before, .0002/.0008/.0188 after.
    """
    movable = [axis for axis, size in enumerate(table.shape) if size > 1]
    if len(movable) < 2:
        return
    walk, idle = _Walk(codes, table, flat_pairs(table) if pairs is None else pairs), 0
    first = last = float(_beyond(walk.excess).sum())
    for number in range(1, batches + 1):
        if idle > _PATIENCE or not _beyond(walk.excess).any():
            return
        if number % _JUDGED == 0:
            before, last = last, float(_beyond(walk.excess).sum())
            if before - last < _WORTHWHILE * first:
                return
        moved = walk.step(movable[int(rng.integers(len(movable)))], rng)
        idle = 0 if moved else idle + 1


def _beyond(excess: Floats) -> Floats:
    """By how much a deviation exceeds one row, squared."""
    return np.asarray(np.maximum(np.abs(excess) - _ONE_ROW, 0.0) ** 2)


@dataclass(frozen=True)
class _Layout:
    """Where the cells of all two-way tables are in one flat array: start + level · mine + other level · theirs, for each two axes."""

    start: Places
    mine: Places
    theirs: Places
    size: int

    @classmethod
    def of(cls, shape: Shape) -> "_Layout":
        start, mine, theirs = (np.zeros((len(shape), len(shape)), dtype=np.int64) for _ in range(3))
        size = 0
        for a, b in combinations(range(len(shape)), 2):
            start[a, b] = start[b, a] = size
            mine[a, b] = theirs[b, a] = shape[b]
            mine[b, a] = theirs[a, b] = 1
            size += shape[a] * shape[b]
        return cls(start, mine, theirs, size)


def flat_pairs(table: Floats) -> Floats:
    """The margins of every two axes of a table, one after another."""
    return np.concatenate([np.zeros(0), *(margin.ravel() for margin in pair_margins(table).values())])


class _Walk:
    """The rows, and by how many rows each cell of the full table and of every two-way table is too full."""

    def __init__(self, codes: Codes, table: Floats, pairs: Floats) -> None:
        self.codes, self.cells, self.shape = codes, table.ravel(), table.shape
        self.axes, self.layout = tuple(range(table.ndim)), _Layout.of(table.shape)
        self.strides = np.array([int(np.prod(table.shape[axis + 1 :])) for axis in self.axes])
        self.total = len(codes) / float(pairs[: table.shape[0] * table.shape[1]].sum())
        # Of the full table only the counts of cells that rows are in, or may come to, are ever looked at: the memory of others is not touched.
        self.counts = np.zeros(table.size, dtype=np.int32)
        np.add.at(self.counts, cell_numbers(codes, self.axes, self.shape), 1)
        self.excess = -self.total * pairs
        for pair in combinations(self.axes, 2):
            counted = count_rows(codes, pair, table.shape).ravel()
            self.excess[self.layout.start[pair] :][: counted.size] += counted

    def full(self, cells: Places) -> Floats:
        """By how many rows some cells of the full table are too full."""
        return np.asarray(self.counts[cells] - self.total * self.cells[cells])

    def step(self, axis: int, rng: np.random.Generator) -> bool:
        """Offer a new level of one attribute to a batch of rows, carry out the moves that pay, and say if there were any."""
        rows = rng.integers(len(self.codes), size=min(len(self.codes), _BATCH_ROWS))
        old = self.codes[rows, axis].astype(np.int64)
        leave = cell_numbers(self.codes[rows], self.axes, self.shape)
        base = leave - old * self.strides[axis]
        new = self._redraw(base, axis, rng)
        enter = base + new * self.strides[axis]
        origin, aim = self._places(rows, axis, old), self._places(rows, axis, new)
        gain = self._gain(origin, aim)
        pays = (gain > 1e-9) & (new != old) & (self.full(leave) > 0) & (self.full(enter) < 0)
        chosen = _apart(np.flatnonzero(pays), gain, old, new)
        self.codes[rows[chosen], axis] = new[chosen]
        # Moves apart from one another leave distinct cells and enter distinct cells, so that plain indexing counts each once.
        self.counts[leave[chosen]] -= 1
        self.counts[enter[chosen]] += 1
        self.excess[origin[chosen]] -= 1
        self.excess[aim[chosen]] += 1
        return bool(chosen)

    def _redraw(self, base: Places, axis: int, rng: np.random.Generator) -> Places:
        """A level from the conditional given all other attributes; never one of probability zero."""
        sums = np.cumsum(self.cells[base[:, None] + np.arange(self.shape[axis]) * self.strides[axis]], axis=1)
        heights = np.minimum(rng.random(len(base)) * sums[:, -1], np.nextafter(sums[:, -1], 0.0))
        return np.asarray((sums <= heights[:, None]).sum(axis=1))

    def _places(self, rows: Places, axis: int, levels: Places) -> Places:
        """For each row, its cells in the two-way tables of one attribute, were it to have the given level."""
        others = [other for other in self.axes if other != axis]
        layout, codes = self.layout, self.codes[rows][:, others]
        ahead = layout.start[axis, others] + levels[:, None] * layout.mine[axis, others]
        return np.asarray(ahead + codes * layout.theirs[axis, others])

    def _gain(self, origin: Places, aim: Places) -> Floats:
        leaving, entering = self.excess[origin], self.excess[aim]
        before = _beyond(leaving) + _beyond(entering)
        return np.asarray((before - _beyond(leaving - 1) - _beyond(entering + 1)).sum(axis=1))


def _apart(pays: Places, gain: Floats, old: Places, new: Places) -> list[int]:
    """The best moves that do not interfere: no level is left twice or entered twice."""
    chosen: list[int] = []
    for move in pays[np.argsort(-gain[pays], kind="stable")].tolist():
        if not any(old[move] == old[other] or new[move] == new[other] for other in chosen):
            chosen.append(move)
    return chosen
