"""Tables that a sampler is handed together: in runs of a bounded number of cells, and their answers cut apart again."""

from collections.abc import Iterator, Sequence

import numpy as np

from dpcipher.tables.domain import Counts

CELLS_AT_ONCE = 2**18  # that are handed to a sampler together, unless one table has more


def split_like(joined: Counts, tables: Sequence[Counts]) -> list[Counts]:
    """Cut what was concatenated apart again."""
    return np.split(joined, np.cumsum([counts.size for counts in tables])[:-1])


def runs_of_cells(members: Sequence[int], tables: Sequence[Counts]) -> Iterator[list[int]]:
    """The tables in runs of a bounded number of cells: a call takes seconds, and its answer is a list of Python's numbers."""
    some: list[int] = []
    cells = 0
    for place in members:
        if some and cells + tables[place].size > CELLS_AT_ONCE:
            yield some
            some, cells = [], 0
        some.append(place)
        cells += tables[place].size
    yield some
