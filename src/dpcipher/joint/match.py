"""Match a column to its goals: redraw levels of its rows until its tables with earlier columns have the counts that are wanted."""

from math import ceil

import numpy as np

from dpcipher.joint.blocks import Blocks, Cells
from dpcipher.joint.even_rows import Ladder, Places
from dpcipher.marginals.arrays import Codes, Floats

PASSES = 6  # over a column, each in so many batches; where there are many groups, half as many in few batches
_BATCHES, _FEW_BATCHES = 32, 4
_MANY_GROUPS = 20
_TAKEN = 0.6  # of what the best step along all moves of a batch would take
MATCHED = 0.2  # mean square distance from the goals, in rows, that counts as rounding


def match_goals(
    drawn: Codes,
    blocks: Blocks,
    cells: Cells,
    goals: Floats,
    ladder: Ladder,
    rng: np.random.Generator,
    *,
    passes: int = PASSES,
) -> Codes:
    """Redraw levels from the rows' own probabilities wherever that brings the column's tables nearer to `goals`.

    `cells` are those of the rows in the blocks of the column's groups; `goals` are the counts wanted, levels of the groups by levels of the column.
    Every pass proposes a new level, drawn from the row's own probabilities, to each row, and carries out moves that lower the squared distance: a Metropolis
    walk at temperature zero, so that a row never takes a level it could not have had. A move of one row changes all tables of the column. So two rows whose
    proposals are opposite move together first, which leaves the column's own table alone.
    """
    walk, many = _GoalWalk(drawn.copy(), blocks, cells, goals), blocks.n_groups > _MANY_GROUPS
    for _ in range(passes // 2 if many else passes):
        if np.vdot(walk.excess, walk.excess) <= MATCHED * walk.excess.size:
            break
        proposed = ladder.draw(np.arange(len(drawn)), rng.random(len(drawn)))
        rows = rng.permutation(np.flatnonzero(proposed != walk.levels))
        if many:
            pairs = _opposite(rows, walk.levels, proposed, walk.gains(rows[None], proposed))
            walk.move(pairs, proposed, _FEW_BATCHES)
            rows = rows[proposed[rows] != walk.levels[rows]]
        walk.move(rows[None], proposed, _FEW_BATCHES if many else _BATCHES)
    return walk.levels


class _GoalWalk:
    """The levels of a column, and by how many rows each cell of its tables is too full. A move is a column of row numbers that take their proposals together."""

    def __init__(self, levels: Codes, blocks: Blocks, cells: Cells, goals: Floats) -> None:
        self.levels, self.blocks = levels, blocks
        self.excess = blocks.counts(cells, levels) - goals
        self._places = (cells + blocks.starts[:, None]) * blocks.n_levels

    def gains(self, moves: Places, proposed: Codes) -> Floats:
        """By how much each move would change half the squared distance, were it alone and its rows far apart.

        For a row it is the sum over its tables of (excess at aim + 1/2) - (excess at origin - 1/2).
        """
        flat, rows = self.blocks.crossed(self.excess).ravel(), moves.ravel()
        gain = np.full(len(rows), float(self.blocks.n_groups))
        for block in self._places:
            place = block.take(rows)
            gain += flat.take(place + proposed[rows])
            gain -= flat.take(place + self.levels[rows])
        return np.asarray(gain.reshape(moves.shape).sum(axis=0))

    def move(self, moves: Places, proposed: Codes, batches: int) -> None:
        """Carry out those that pay, some at a time."""
        paying = moves[:, self.gains(moves, proposed) < 0]
        for batch in np.array_split(paying, batches, axis=1):
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
        own = self._places.take(rows, axis=1)
        aim, origin = ((own + levels[rows]).ravel() for levels in (proposed, self.levels))
        change = np.bincount(aim, minlength=size) - np.bincount(origin, minlength=size)
        return self.blocks.margins(change.reshape(-1, self.blocks.n_levels).astype(np.float64))


def _opposite(rows: Places, levels: Codes, proposed: Codes, gains: Floats) -> Places:
    """Pairs of rows of which one proposes to go where the other is, and the other way round: best with best, second with second, and so on."""
    ranked = rows[np.argsort(gains)]
    here, there = levels[ranked].astype(np.int64), proposed[ranked].astype(np.int64)
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
