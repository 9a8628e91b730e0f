"""Balancing of even rows: single levels are redrawn until no cell of a two-way table is off by more than a row.

Rows drawn along the snake have every cell of the full table right to within one row. Where there are more cells than rows that says
little about small tables. So some rows are offered another level of one attribute, drawn from the exact conditional given the rest of
the row, and take it when that brings two-way tables closer to their expectations and leaves both cells of the full table within
one row of theirs. Deviations of up to one row are left alone: they are the rounding, and without it a handful of rows would be no
sample but the mode. Mean TVD to the fitted table, 1/2/3-way: 6×9×3×3×3, 250 rows (25 draws) .0102/.0306/.0805 before, .0053/.0193/.0711
after; eight attributes of five levels, 10,000 rows (3 draws) .0023/.0081/.0226 before, .0002/.0008/.0188 after.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Codes, Floats

Places = NDArray[np.intp]

BATCHES = 1000
_BATCH_ROWS = 512
# A table that should hold whole numbers holds them up to the solver's tolerance only: one row and a bit.
_ONE_ROW = 1.01
# Give up after this many batches in a row without a move.
_PATIENCE = 60


def balance(codes: Codes, table: Floats, rng: np.random.Generator, *, batches: int = BATCHES) -> None:
    """Balance rows drawn from `table`, in place."""
    movable = [axis for axis, size in enumerate(table.shape) if size > 1]
    if len(movable) < 2:
        return
    walk, idle = _Walk(codes, table), 0
    for _ in range(batches):
        if idle > _PATIENCE or not _beyond(walk.excess).any():
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
    def of(cls, shape: tuple[int, ...]) -> "_Layout":
        start, mine, theirs = (np.zeros((len(shape), len(shape)), dtype=np.intp) for _ in range(3))
        size = 0
        for a, b in combinations(range(len(shape)), 2):
            start[a, b] = start[b, a] = size
            mine[a, b] = theirs[b, a] = shape[b]
            mine[b, a] = theirs[a, b] = 1
            size += shape[a] * shape[b]
        return cls(start, mine, theirs, size)


class _Walk:
    """The rows, and by how many rows each cell of the full table and of every two-way table is too full."""

    def __init__(self, codes: Codes, table: Floats) -> None:
        self.codes, self.cells, self.shape = codes, table.ravel(), table.shape
        self.strides = np.array([int(np.prod(table.shape[axis + 1 :])) for axis in range(table.ndim)])
        self.layout = _Layout.of(table.shape)
        total = len(codes) / float(table.sum())
        self.full = np.bincount(codes @ self.strides, minlength=table.size) - total * self.cells
        self.excess = np.empty(self.layout.size)
        for a, b in combinations(range(table.ndim), 2):
            others = tuple(axis for axis in range(table.ndim) if axis not in (a, b))
            counts = np.bincount(
                codes[:, a] * table.shape[b] + codes[:, b], minlength=table.shape[a] * table.shape[b]
            )
            wanted = total * table.sum(axis=others).ravel()
            self.excess[self.layout.start[a, b] :][: counts.size] = counts - wanted

    def step(self, axis: int, rng: np.random.Generator) -> bool:
        """Offer a new level of one attribute to a batch of rows, carry out the moves that pay, and say if there were any."""
        rows = rng.integers(len(self.codes), size=min(len(self.codes), _BATCH_ROWS))
        old = self.codes[rows, axis].astype(np.intp)
        base = self.codes[rows] @ self.strides - old * self.strides[axis]
        new = self._redraw(base, axis, rng)
        origin, aim = self._places(rows, axis, old), self._places(rows, axis, new)
        gain = self._gain(origin, aim)
        leave, enter = base + old * self.strides[axis], base + new * self.strides[axis]
        pays = (gain > 1e-9) & (new != old) & (self.full[leave] > 0) & (self.full[enter] < 0)
        chosen = _apart(np.flatnonzero(pays), gain, old, new)
        self.codes[rows[chosen], axis] = new[chosen]
        # Moves apart from one another leave distinct cells and enter distinct cells, so that plain indexing counts each once.
        self.full[leave[chosen]] -= 1
        self.full[enter[chosen]] += 1
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
        others = [other for other in range(len(self.shape)) if other != axis]
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
