"""The subjects of the audit: every synthesizer at a fixed setting, on a small table and the neighbours that are worst for it.

The settings were fixed before the first audit was run. The tables are small, because the loss of privacy on the worst neighbours does not
shrink with the table while the time of a run grows with it; they are data frames, as a user would hand them in.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from dpcipher.methods import (
    MWEM,
    Cipher,
    Fourier,
    FullHistogram,
    Independent,
    JunctionTree,
    Modips,
    MultinomialDirichlet,
    PrivBayes,
    Synthesizer,
    Uniform,
)
from dpcipher.privacy.terms import Unit
from dpcipher.request.request import Auto
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

Cells = Mapping[tuple[int, ...], int]
PURE: tuple[float, float | None] = (3.0, None)
CONCENTRATED: tuple[float, float | None] = (
    8.0,
    1e-6,
)  # mu of 1.45: simulated Gaussian losses prove most of themselves there
BUDGETS = (PURE, CONCENTRATED)
UNITS = (Unit("add-remove"), Unit("replace"), Unit("add-remove", 3), Unit("replace", 3))

SKEWED: Cells = {(0, 0): 90, (0, 1): 5, (1, 0): 6, (1, 1): 30}
CORNER: Cells = {(0, 0): 300, (1, 1): 1}
WIDE_CORNER: Cells = {(0, 0): 300, (1, 1): 1, (2, 2): 2}
NEARLY_ALIKE: Cells = {(0, 0): 100, (1, 1): 100, (0, 1): 9}
THREE_ALIKE: Cells = {(0, 0, 0): 100, (1, 1, 1): 100, (2, 2, 2): 100, (0, 1, 2): 9}
ALIKE: Cells = {(0, 0, 0): 100, (1, 1, 1): 100, (0, 1, 1): 9}


@dataclass(frozen=True)
class Subject:
    """A synthesizer with its parameters, and the rows it is audited on; with `open_bins`, every column's bins are to be found."""

    name: str
    make: Callable[..., Synthesizer]
    cells: Cells
    open_bins: bool = False

    def method(self, unit: Unit, budget: tuple[float, float | None] = PURE) -> Synthesizer:
        """The synthesizer under a unit and a budget of epsilon and delta."""
        epsilon, delta = budget
        return self.make(epsilon, delta=delta, unit=unit.relation, max_rows=unit.max_rows)

    @property
    def schema(self) -> Schema:
        """As many levels as the cells show."""
        sizes = {f"c{axis}": size for axis, size in enumerate(self.shape)}
        if not self.open_bins:
            return Schema.from_domain(sizes)
        return Schema(
            tuple(column(name, "integer", min=0, max=size - 1, bins="auto") for name, size in sizes.items())
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of every column."""
        return tuple(int(top) + 1 for top in np.array(list(self.cells)).max(axis=0))

    @property
    def rows(self) -> pd.DataFrame:
        """The private rows."""
        return frame(self.cells)

    def neighbours(self, unit: Unit) -> Iterator[pd.DataFrame]:
        """Every table in which one person's rows are added to a cell, or moved there from another."""
        full = [cell for cell, count in self.cells.items() if count >= unit.max_rows]
        origins: list[tuple[int, ...] | None] = [None] if unit.relation == "add-remove" else [*full]
        for origin, place in product(origins, product(*map(range, self.shape))):
            if place != origin:
                yield frame(_moved(self.cells, origin, place, unit.max_rows))


def _moved(cells: Cells, origin: tuple[int, ...] | None, place: tuple[int, ...], times: int) -> Cells:
    other = {**cells, place: cells.get(place, 0) + times}
    return other if origin is None else {**other, origin: other[origin] - times}


def frame(cells: Cells) -> pd.DataFrame:
    """A data frame with so many rows in each cell."""
    codes = np.repeat(np.array(list(cells), dtype=np.int64), list(cells.values()), axis=0)
    return pd.DataFrame(codes, columns=[f"c{axis}" for axis in range(codes.shape[1])])


SUBJECTS = (
    Subject("CIPHER, all pairs", Cipher, ALIKE),
    Subject("CIPHER, designed tables", partial(Cipher, workload=Auto()), NEARLY_ALIKE),
    Subject("full histogram", FullHistogram, SKEWED),
    Subject("MWEM, tables", partial(MWEM, workload=1, rounds=1), SKEWED),
    Subject("MWEM, cells", partial(MWEM, workload=1, rounds=1, queries="cells"), SKEWED),
    Subject("PrivBayes, binary", partial(PrivBayes, theta=1e-3), CORNER),
    Subject("PrivBayes, three levels", partial(PrivBayes, theta=1e-3), WIDE_CORNER),
    Subject("Fourier", partial(Fourier, workload=1), ALIKE),
    Subject("modips, two sets", partial(Modips, sets=2), SKEWED),
    Subject("junction tree", partial(JunctionTree, theta=1e-3), CORNER),
    Subject("junction tree, pairs measured", partial(JunctionTree, selection="laplace"), CORNER),
    Subject("multinomial-Dirichlet", partial(MultinomialDirichlet, n_rows=8), SKEWED),
    Subject("independent", Independent, SKEWED),
    Subject("uniform", Uniform, SKEWED),
    Subject(
        "CIPHER, tables looked at", partial(Cipher, workload=Auto(max_order=2, max_cells=20)), THREE_ALIKE
    ),
    Subject("CIPHER, bins found", Cipher, WIDE_CORNER, open_bins=True),
)
