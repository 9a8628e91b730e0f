"""Even rows: draws whose tables match their probabilities nearly to rounding, instead of to the square root of the number of rows.

`spread` and `systematic` hand out evenly spaced uniforms; `match_goals` then redraws levels of a column until its tables with others have the counts that are wanted.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.blocks import Blocks, Cells
from dpcipher.tables.domain import Codes, Floats

Places = NDArray[np.int64]

GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1.0 - 2.0**-20  # still below one after rounding to single precision


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


Draw = Callable[[Places, Floats], Codes]  # levels of rows, each at a height in the row's own distribution

PASSES = 16  # each over some rows, in so many batches; where there are many groups, a fifth of them over all rows, in few batches
_OFFERED, _BATCHES, _FEW_BATCHES = 8_192, 8, 4
MANY_GROUPS = 20
_WORKSPACE = 2**15  # cells of the rows that are looked up at once: they stay in the processor's cache
_TAKEN = 0.6  # of what the best step along all moves of a batch would take
MATCHED = 0.2  # mean square distance from the goals, in rows, that counts as rounding


def match_goals(
    drawn: Codes,
    blocks: Blocks,
    cells: Cells,
    goals: Floats,
    draw: Draw,
    rng: np.random.Generator,
    *,
    passes: int = PASSES,
) -> Codes:
    """Redraw levels from the rows' own probabilities wherever that brings the column's tables nearer to `goals`.

    `cells` are those of the rows in the blocks of the column's groups; `goals` are the counts wanted, levels of the groups by levels of the column.
    Every pass proposes a new level, drawn from the row's own probabilities, to some rows, and carries out moves that lower the squared distance: a Metropolis
    walk at temperature zero, so that a row never takes a level it could not have had. A move of one row changes all tables of the column. So two rows whose
    proposals are opposite move together first, which leaves the column's own table alone.
    """
    walk, many = _GoalWalk(drawn.copy(), blocks, cells, goals), blocks.n_groups > MANY_GROUPS
    offered = _in_turn(len(drawn), len(drawn) if many else _OFFERED, rng)
    for chosen in islice(offered, max(2, passes // 5) if many else passes):
        if np.vdot(walk.excess, walk.excess) <= MATCHED * walk.excess.size:
            break
        proposed = walk.levels.copy()
        proposed[chosen] = draw(chosen, rng.random(len(chosen)))
        rows = chosen[proposed[chosen] != walk.levels[chosen]]
        gains = walk.gains(rows[None], proposed)
        if many:
            pairs = _opposite(rows, walk.levels, proposed, gains)
            walk.move(rows[pairs], gains[pairs].sum(axis=0), proposed, _FEW_BATCHES)
            rows = rows[proposed[rows] != walk.levels[rows]]
            gains = walk.gains(rows[None], proposed)
        walk.move(rows[None], gains, proposed, _FEW_BATCHES if many else _BATCHES)
    return walk.levels


def _in_turn(n_rows: int, size: int, rng: np.random.Generator) -> Iterator[Places]:
    """Rows in random order, about `size` at a time, round after round."""
    while True:
        yield from np.array_split(rng.permutation(n_rows), ceil(n_rows / size))


class _GoalWalk:
    """The levels of a column, and by how many rows each cell of its tables is too full. A move is a column of row numbers that take their proposals together."""

    def __init__(self, levels: Codes, blocks: Blocks, cells: Cells, goals: Floats) -> None:
        self.levels, self.blocks = levels, blocks
        self.excess = blocks.counts(cells, levels) - goals
        # The cells of a row lie side by side, because rows are looked at in any order.
        self._cells = np.ascontiguousarray((cells + blocks.starts[:, None]).T)

    def gains(self, moves: Places, proposed: Codes) -> Floats:
        """By how much each move would change half the squared distance, were it alone and its rows far apart.

        For a row it is the sum over its tables of (excess at aim + 1/2) - (excess at origin - 1/2).
        """
        excess, rows = self.blocks.crossed(self.excess), moves.ravel()
        step = max(1, _WORKSPACE // self._cells.shape[1])
        parts = (rows[start : start + step] for start in range(0, len(rows), step))
        change = [np.zeros(0), *(self._rise(excess, part, proposed) for part in parts)]
        gain = self.blocks.n_groups + np.concatenate(change)
        return np.asarray(gain.reshape(moves.shape).sum(axis=0))

    def _rise(self, excess: Floats, rows: Places, proposed: Codes) -> Floats:
        """The excess of the cells that each row would go to, less that of the cells it is in."""
        own, each = self._cells.take(rows, axis=0), np.ones(self._cells.shape[1])
        here, there = self.levels[rows], proposed[rows]
        if self.blocks.n_levels == 2:  # one difference for both ways
            return np.asarray((there - here) * ((excess[:, 1] - excess[:, 0]).take(own) @ each))
        own *= self.blocks.n_levels
        flat = excess.ravel()
        return np.asarray((flat.take(own + there[:, None]) - flat.take(own + here[:, None])) @ each)

    def move(self, moves: Places, gains: Floats, proposed: Codes, batches: int) -> None:
        """Carry out those that pay, some at a time."""
        for batch in np.array_split(moves[:, gains < 0], batches, axis=1):
            if batch.size:
                self._move(batch, proposed)

    def _move(self, moves: Places, proposed: Codes) -> None:
        """Carry out the best moves of a batch: they interfere, and `_TAKEN` times the share that all together would take is enough of them."""
        gains = self.gains(moves, proposed)
        best = moves[:, np.argsort(gains)[: np.count_nonzero(gains < 0)]]
        change = self._change(best, proposed)
        length, slope = float(np.vdot(change, change)), float(np.vdot(self.excess, change))
        if length > -slope:
            best = best[:, : ceil(_TAKEN * max(-slope, 0.0) / length * best.shape[1])]
            change = self._change(best, proposed)
        self.excess += change
        self.levels[best] = proposed[best]

    def _change(self, moves: Places, proposed: Codes) -> Floats:
        """What moves change in the counts: one up where their rows go, one down where they are."""
        rows, size = moves.ravel(), self.blocks.n_cells * self.blocks.n_levels
        own = self._cells.take(rows, axis=0) * self.blocks.n_levels
        aim, origin = ((own + levels[rows, None]).ravel() for levels in (proposed, self.levels))
        change = np.bincount(aim, minlength=size) - np.bincount(origin, minlength=size)
        return self.blocks.margins(change.reshape(-1, self.blocks.n_levels).astype(np.float64))


def _opposite(rows: Places, levels: Codes, proposed: Codes, gains: Floats) -> Places:
    """Pairs of places in `rows` of which one row proposes to go where the other is, and the other way round: best with best, second with second, and so on."""
    ranked = np.argsort(gains)
    here, there = (codes[rows[ranked]].astype(np.int64) for codes in (levels, proposed))
    way = np.minimum(here, there) * (int(max(here.max(initial=0), there.max(initial=0))) + 1) + np.maximum(
        here, there
    )
    up, down = (_numbered(way[side], len(rows)) for side in (here < there, here > there))
    _, left, right = np.intersect1d(up, down, assume_unique=True, return_indices=True)
    return np.stack([ranked[here < there][left], ranked[here > there][right]])


def _numbered(kinds: Places, most: int) -> Places:
    """Each kind times `most`, plus how many of that kind came before."""
    order = np.argsort(kinds, kind="stable")
    ranked = kinds[order]
    number = np.empty_like(kinds)
    number[order] = np.arange(len(kinds)) - np.searchsorted(ranked, ranked)
    return np.asarray(kinds * most + number)
