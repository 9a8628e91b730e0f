"""Centred tables: what a table says beside its number of rows, in whole numbers.

A table of K cells and n rows is measured as K·count - n in every cell. A row more or less moves its own cell by K - 1 and every other by 1, which is K(K - 1)
in squared L2. So noise of variance K²·v on it, which is noise of variance v on counts less their mean, costs what noise of variance v/(1 - 1/K) costs on the
counts themselves: half of it in two cells, two thirds in three. The rows are then counted once, and not by every table.
"""

import numpy as np

from dpcipher.tables.domain import Counts, Floats


def centred(counts: Counts) -> Counts:
    """A table of counts, times its number of cells, less its sum.

    >>> centred(np.array([3, 1])).tolist()
    [2, -2]
    """
    return np.asarray(counts.size * counts - counts.sum())


def moved(cells: int) -> tuple[int, int]:
    """How far one row moves a centred table of so many cells: in L1, and in squared L2. One cell is not moved, and asked as if it were.

    >>> moved(2), moved(3)
    ((2, 2), (4, 6))
    """
    return max(2 * (cells - 1), 1), max(cells * (cells - 1), 1)


def in_rows(counts: Counts | Floats) -> Floats:
    """A noisy centred table in rows: counts less their mean. Noise on the sum of all cells, which says nothing, is taken out.

    >>> in_rows(np.array([3, -2])).tolist()
    [1.25, -1.25]
    """
    return np.asarray((counts - counts.mean()) / counts.size)
