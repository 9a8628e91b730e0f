"""The groups of a link crossed into blocks: a row looks up one cell of each block, instead of one level of each group.

Numbers of a link come in two forms: a row for every level of every group, as the link keeps them, or a row for every cell of every block, where they are
looked up. Cells hold the sum over the levels that they stand for (`crossed`), and levels the sum over the cells that stand for them (`margins`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Codes, Floats, Shape

Cells = NDArray[np.intp]  # blocks by rows: the cell of each coded row in each block
Chances = NDArray[np.floating[Any]]

NUMBERS = (
    64  # of a block of several groups, cells by levels: more make fewer blocks, but longer tables to cross
)
FEW = 8  # levels, which are summed one after another


@dataclass(frozen=True, eq=False)
class Block:
    """Neighbouring groups with their sizes, and where their levels and the cells of the block lie among all."""

    groups: tuple[Axes, ...]
    sizes: tuple[int, ...]
    levels: slice
    cells: slice

    @property
    def size(self) -> int:
        """How many cells the block has."""
        return prod(self.sizes)

    def margins(self, table: Floats, part: slice = slice(None)) -> Floats:
        """The sums of a table of cells over those that stand for each level, or each of a part of the levels."""
        return table if len(self.sizes) == 1 else _members(self.sizes)[part] @ table

    def parts(self) -> Iterator[tuple[slice, tuple[int, int]]]:
        """For each group its levels within the block, and the shape of the block as cells before, levels (and cells behind)."""
        start, before = 0, 1
        for size in self.sizes:
            yield slice(start, start + size), (before, size)
            start, before = start + size, before * size


class Blocks:
    """The groups of a link, one after another: as many to a block as have few cells for the `n_levels` that are drawn, a larger group by itself."""

    def __init__(self, groups: Sequence[Axes], sizes: Sequence[int], n_levels: int) -> None:
        self.blocks = tuple(_packed(groups, sizes, NUMBERS // n_levels))
        self.starts = np.array([block.cells.start for block in self.blocks], np.intp)
        self.n_groups, self.n_levels = len(groups), n_levels
        self.n_cells = self.blocks[-1].cells.stop if self.blocks else 0
        self._crossing = None if len(self.blocks) == len(groups) else self._incidence(sum(sizes))
        self._summing = None if self._crossing is None else self._crossing.T.tocsr()

    def _incidence(self, n_places: int) -> Any:
        """The sparse matrix from places, levels of the groups by those drawn, to cells, with a one wherever a cell stands for a level."""
        levels = [_levels(block.sizes) + block.levels.start for block in self.blocks]
        each = np.repeat(list(map(len, (block.sizes for block in self.blocks))), list(map(len, levels)))
        drawn = np.arange(self.n_levels)
        places = [(part[:, None] * self.n_levels + drawn[:, None]).ravel() for part in levels]
        starts = np.concatenate([[0], np.cumsum(np.repeat(each, self.n_levels))]).astype(np.int32)
        indices = np.concatenate(places).astype(np.int32)
        shape = (self.n_cells * self.n_levels, n_places * self.n_levels)
        return sp.csr_matrix((np.ones(len(indices)), indices, starts), shape=shape)

    def cells(self, codes: Codes, shape: Shape) -> Cells:
        """The cell of each coded row in every block."""
        cells = np.empty((len(self.blocks), len(codes)), np.intp)
        for number, block in enumerate(self.blocks):
            axes = [axis for group in block.groups for axis in group]
            cell = codes[:, axes[0]]
            for axis in axes[1:]:
                cell = cell * np.int32(shape[axis]) + codes[:, axis]
            cells[number] = cell
        return cells

    def crossed(self, values: Floats) -> Floats:
        """For every cell the sum of its levels' values."""
        return _product(self._crossing, values)

    def margins(self, table: Floats) -> Floats:
        """For every level the sum over its cells."""
        return _product(self._summing, table)

    def counts(self, cells: Cells, levels: Codes | None = None) -> Floats:
        """How many rows have each level of each group and each of the drawn `levels`; without these, whatever is drawn."""
        table = np.empty((self.n_cells, self.n_levels))
        for block, own in zip(self.blocks, cells, strict=True):
            if levels is None:
                table[block.cells] = np.bincount(own, minlength=block.size)[:, None]
            else:
                counted = np.bincount(own * self.n_levels + levels, minlength=block.size * self.n_levels)
                table[block.cells] = counted.reshape(block.size, -1)
        return self.margins(table)

    def sums(self, cells: Cells, values: Chances) -> Floats:
        """The sums of the rows' values over those that have each level of each group."""
        table, each = np.empty((self.n_cells, self.n_levels)), np.ones(len(values), values.dtype)
        for block, own in zip(self.blocks, cells, strict=True):
            table[block.cells] = grouped(own, block.size, values, each)
        return self.margins(table)

    def looked_up(self, cells: Cells, values: Floats, dtype: Any) -> Chances:
        """For every row the sum of the values, given for levels, of the levels that it has."""
        table = self.crossed(values).astype(dtype)
        found = np.zeros((cells.shape[1], self.n_levels), dtype)
        other = np.empty_like(found)
        for block, own in zip(self.blocks, cells, strict=True):
            found += np.take(table[block.cells], own, axis=0, out=other, mode="clip")
        return found


def grouped(own: NDArray[np.intp], size: int, values: Chances, scale: Chances) -> Floats:
    """The sums over the rows of each cell of their values, each row times its scale."""
    if values.shape[1] <= FEW:
        return np.stack([np.bincount(own, column * scale, size) for column in values.T], axis=1)
    starts = np.arange(len(own) + 1, dtype=np.int32)
    matrix = sp.csc_matrix((scale, own.astype(np.int32), starts), shape=(size, len(own)))
    return np.asarray(matrix @ values, dtype=np.float64)


def _packed(groups: Sequence[Axes], sizes: Sequence[int], most: int) -> Iterator[Block]:
    """Groups taken together as long as they have few cells."""
    first, levels, cells = 0, 0, 0
    while first < len(groups):
        stop, many = first + 1, sizes[first]
        while stop < len(groups) and many * sizes[stop] <= most:
            many *= sizes[stop]
            stop += 1
        own = tuple(sizes[first:stop])
        yield Block(
            tuple(groups[first:stop]), own, slice(levels, levels + sum(own)), slice(cells, cells + many)
        )
        first, levels, cells = stop, levels + sum(own), cells + many


@lru_cache(maxsize=1024)
def _levels(sizes: tuple[int, ...]) -> NDArray[np.intp]:
    """For every cell of a block the levels it stands for, all groups laid end to end."""
    levels = np.indices(sizes).reshape(len(sizes), -1).T
    return np.asarray(levels + np.cumsum((0, *sizes[:-1])))


@lru_cache(maxsize=1024)
def _members(sizes: tuple[int, ...]) -> Floats:
    """Levels by cells: one where a cell stands for a level."""
    cells = _levels(sizes)
    members = np.zeros((sum(sizes), len(cells)))
    members[cells, np.arange(len(cells))[:, None]] = 1.0
    members.setflags(write=False)  # everybody gets the same array
    return members


def _product(matrix: Any, values: Floats) -> Floats:
    """The product with the values laid end to end, which is much faster than one with many short rows; the values themselves without a matrix."""
    return values if matrix is None else (matrix @ values.ravel()).reshape(-1, values.shape[1])
