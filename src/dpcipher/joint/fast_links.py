"""Rows of a chain that bars nothing, many at a time: the tables of several groups as one, and levels searched for in two steps.

The law is that of `Link.probabilities`, in single precision. A link multiplies numbers that it looks up, one row of levels for each group. Here
groups are crossed as far as a table stays small, so that a row looks up five rows of levels instead of thirteen. Of the levels, about √L blocks are summed
first; a height between 0 and their sum is in one block, and what is left of it at one level there.
"""

from dataclasses import dataclass
from functools import reduce
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.even_rows import Places
from dpcipher.joint.link import Link, even_column
from dpcipher.joint.match import Draw
from dpcipher.tables.domain import Axes, Codes, Floats, Shape

Singles = NDArray[np.float32]

_TABLE = 2**18  # numbers in a table of several groups
ROOM = 2**26  # numbers that the tables of all links would have, did each have as many tables as groups
_BLOCK = 2**17  # numbers of the rows that are worked on at once: they stay in the processor's cache
_BELOW_ONE = 1.0 - 2.0**-20
_LEAST = 1e-30  # a sum of chances below which single precision may have lost some


@dataclass(frozen=True, eq=False)
class _Crossed:
    """Groups crossed: their attributes, and the factor of each combination of levels."""

    axes: Axes
    factor: Singles

    def rows(self, codes: Codes, shape: Shape) -> NDArray[np.intp]:
        """Which row of the tables each coded row uses."""
        row = np.zeros(len(codes), np.intp)
        for axis in self.axes:
            row *= shape[axis]
            row += codes[:, axis]
        return row


class FastLink:
    """One link, laid out for drawing, in tables that fit in some room; it must bar nothing."""

    def __init__(self, link: Link, shape: Shape, room: int = ROOM) -> None:
        self.link, self.shape = link, shape
        self._most = min(_TABLE, room // max(1, len(link.groups)))
        self._width = ceil(sqrt(len(link.base)))
        self._blocks = ceil(len(link.base) / self._width)
        self._crossed = [self._cross(groups) for groups in self._packed()]
        self._base = self._padded(link.base[None])[0]
        self._multiplies = bool(link.factors.any())
        # Levels by blocks: a product with it sums the levels of each block.
        self._sums = np.repeat(np.eye(self._blocks, dtype=np.float32), self._width, axis=0)

    def _packed(self) -> list[list[int]]:
        """Groups, largest first, each with the first others beside which it fits."""
        sizes, padded = self.link.sizes, self._width * self._blocks
        packs: list[tuple[int, list[int]]] = []
        for group in sorted(range(len(sizes)), key=lambda group: -sizes[group]):
            for place, (size, members) in enumerate(packs):
                if size * sizes[group] * padded <= self._most:
                    packs[place] = (size * sizes[group], [*members, group])
                    break
            else:
                packs.append((sizes[group], [group]))
        return [members for _, members in packs]

    def _cross(self, groups: list[int]) -> _Crossed:
        link = self.link
        parts = [slice(link.starts[group], link.starts[group] + link.sizes[group]) for group in groups]
        exponents = reduce(_outer_sum, [link.factors[part] for part in parts])
        # A factor for all levels alike changes no probability; without it none is above one, and no product overflows.
        factor = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        axes = tuple(axis for group in groups for axis in link.groups[group])
        return _Crossed(axes, self._padded(factor))

    def _padded(self, table: Floats) -> Singles:
        """As many levels as the blocks have; those that there are not have no probability."""
        spare = self._width * self._blocks - table.shape[1]
        return np.ascontiguousarray(np.pad(table, ((0, 0), (0, spare))), dtype=np.float32)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """A level for each coded row, independently."""
        return self._drawer(codes)(np.arange(len(codes)), rng.random(len(codes)))

    def draw_even(self, codes: Codes, rng: np.random.Generator, *, first: Axes) -> Codes:
        """Levels that are evenly spread and matched to the link's goals; `first` is as for `draw_column`."""
        link, cells = self.link, self.link.blocks.cells(codes, self.shape)
        goals = link.goals * link.blocks.counts(cells)
        return even_column(link, self._drawer(codes), codes, cells, goals, rng, first=first)

    def _drawer(self, codes: Codes) -> Draw:
        """Levels of some of these coded rows, each at a height between 0 and 1 in its distribution."""
        tables = [crossed.rows(codes, self.shape) for crossed in self._crossed]

        def draw(chosen: Places, heights: Floats) -> Codes:
            levels = np.empty(len(chosen), np.int32)
            step = max(1, _BLOCK // len(self._base))
            for start in range(0, len(chosen), step):
                part = slice(start, min(start + step, len(chosen)))
                rows = [table[chosen[part]] for table in tables]
                levels[part], total = self._search(self._chances(rows, part.stop - start), heights[part])
                if total.min() < _LEAST:
                    lost = start + np.flatnonzero(total < _LEAST)
                    levels[lost] = self._draw_slowly(codes[chosen[lost]], heights[lost])
            return levels

        return draw

    def _chances(self, rows: list[NDArray[np.intp]], n_rows: int) -> Singles:
        """The probabilities of the levels of each row, up to a factor of that row."""
        chances = np.empty((n_rows, len(self._base)), np.float32)
        chances[:] = self._base
        if self._multiplies:
            other = np.empty_like(chances)
            for crossed, row in zip(self._crossed, rows, strict=True):
                chances *= np.take(crossed.factor, row, axis=0, out=other, mode="clip")
        return chances

    def _search(self, chances: Singles, heights: Floats) -> tuple[Codes, Singles]:
        """The level at a height of each row of chances, and their sum."""
        sums = _cumulative(chances @ self._sums)
        total = sums[-1]
        left = np.minimum(heights, _BELOW_ONE).astype(np.float32) * total
        block = _passed(sums, left)
        if self._width == 1:
            return block, total
        place = np.arange(len(chances)) * self._blocks + block
        inside = _cumulative(chances.reshape(-1, self._width).take(place, axis=0))
        left = np.minimum(left, inside[-1] * np.float32(_BELOW_ONE))
        return block * np.int32(self._width) + _passed(inside, left), total

    def _draw_slowly(self, codes: Codes, heights: Floats) -> Codes:
        """The same for rows whose chances are too small for products of single precision."""
        chances = self.link.probabilities(codes, self.shape, dtype=np.float64)
        rungs = np.cumsum(chances, axis=1)
        height = np.minimum(heights, _BELOW_ONE) * rungs[:, -1]
        return np.asarray((rungs <= height[:, None]).sum(axis=1), dtype=np.int32)


def _cumulative(parts: Singles) -> Singles:
    """The sums of each row's first numbers, as columns."""
    sums = np.ascontiguousarray(parts.T)
    for place in range(1, len(sums)):
        sums[place] += sums[place - 1]
    return sums


def _passed(sums: Singles, heights: Singles) -> Codes:
    """How many parts, but for the last, lie wholly below each height, which is lowered, in place, by what they sum to."""
    passed, below = np.zeros(len(heights), np.int32), np.zeros(len(heights), np.float32)
    for part in sums[:-1]:
        whole = part <= heights
        passed += whole
        np.copyto(below, part, where=whole)
    heights -= below
    return passed


def _outer_sum(left: Floats, right: Floats) -> Floats:
    """Every row of one table plus every row of the other."""
    return np.asarray((left[:, None] + right[None]).reshape(-1, left.shape[1]))
