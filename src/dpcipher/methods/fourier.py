"""Barak et al. (2007): noisy Fourier coefficients, then the nearest non-negative table by a linear program.

Beyond binary columns the basis is of whole-number contrasts: a column of K levels has K−1 Helmert contrasts (1, −1, 0, …), (1, 1, −2, 0, …), …; for
K = 2 that is (1, −1), the parity. The absolute values in every column of the matrix add up to K−1, so one row moves the coefficients of a set S of
columns by Π(K_i−1) in L1: exactly as much as there are coefficients, which is the source's count |F| for parities.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from dpcipher.errors import ParameterError, SizeError, shown_count
from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer, tables_of
from dpcipher.methods.outcome import dense_joint
from dpcipher.privacy.events import Sensitivity
from dpcipher.privacy.terms import Unit
from dpcipher.request.session import Expected, Question, Session, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Counts, Floats, Shape, closure


@lru_cache(maxsize=64)
def helmert(levels: int) -> Counts:
    """The K−1 contrasts of a column of K levels, as rows.

    >>> helmert(3).tolist()
    [[1, -1, 0], [1, 1, -2]]
    """
    matrix = np.tril(np.ones((levels - 1, levels), dtype=np.int64))
    matrix[np.arange(levels - 1), np.arange(1, levels)] = -np.arange(1, levels)
    return matrix


def coefficients(table: Counts) -> Counts:
    """The coefficients of a table on its own columns, each contrasted; of no column, the total."""
    result = table
    for axis, size in enumerate(table.shape):
        result = np.moveaxis(np.tensordot(helmert(size), result, axes=(1, axis)), 0, axis)
    return result.reshape(-1)


def design(shape: Sequence[int], sets: Sequence[Axes]) -> NDArray[np.float64]:
    """The matrix that takes the full table's cells to all coefficients of `sets`."""
    blocks = []
    for axes in sets:
        factors = [
            helmert(size) if axis in axes else np.ones((1, size), dtype=np.int64)
            for axis, size in enumerate(shape)
        ]
        blocks.append(reduce(np.kron, factors))
    return np.concatenate(blocks).astype(np.float64)


def n_coefficients(shape: Sequence[int], sets: Sequence[Axes]) -> int:
    """How many coefficients the sets have together: also how far one row moves them in L1."""
    return sum(math.prod(shape[axis] - 1 for axis in axes) for axes in sets)


def l2_squared(shape: Sequence[int], sets: Sequence[Axes]) -> int:
    """An upper bound on the squared L2 norm of what one row adds to the coefficients."""
    most = [int((helmert(size) ** 2).sum(axis=0).max()) if size > 1 else 0 for size in shape]
    return sum(math.prod(most[axis] for axis in axes) for axes in sets)


# The linear program holds a dense matrix of coefficients by cells; beyond this it takes minutes.
MAX_CELLS = 2**13
MAX_ENTRIES = 2**21


@dataclass(frozen=True)
class Fourier(Synthesizer):
    """All coefficients below the workload, with equal noise; the non-negative table closest to them in the worst coefficient.

    `rounded` takes the table to whole numbers, as the source does. The linear program needs every cell: at most 8,192 cells, and
    2,097,152 entries of coefficients times cells, judged on the schema.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.Fourier(epsilon=1.0, unit="add-remove").fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "Fourier"

    workload: int | Sequence[Sequence[str]] = 2
    rounded: bool = True

    def _check(self) -> None:
        if not isinstance(self.rounded, bool):
            raise ParameterError(f"rounded ({self.rounded!r}) must be True or False; try rounded=True")

    def check_schema(self, schema: Schema) -> None:
        """The linear program must be of a size that can be solved."""
        cells = math.prod(schema.shape)
        entries = (
            cells * n_coefficients(schema.shape, downward(schema, self.workload)) if cells <= MAX_CELLS else 0
        )
        if cells > MAX_CELLS or entries > MAX_ENTRIES:
            raise SizeError(
                f"Fourier solves a linear program over all {shown_count(cells)} cells; at most {MAX_CELLS:,} cells and {MAX_ENTRIES:,} entries "
                "(coefficients × cells) can be solved. Use Cipher, a lower order, or fewer levels"
            )

    def _finest(self, schema: Schema) -> Fraction:
        shape, sets = schema.shape, downward(schema, self.workload)
        return Fraction(1, max(n_coefficients(shape, sets), 2 * l2_squared(shape, sets)))

    def _learn(self, session: Session) -> Sequence[Joint]:
        shape = session.schema.shape
        # The empty set's coefficient is the number of rows: public under replacement, one more noisy number otherwise.
        asked = [axes for axes in downward(session.schema, self.workload) if axes or session.n_rows is None]
        noisy = np.zeros(0)
        if n_coefficients(shape, asked):
            noisy = session.ask(Coefficients(asked), Fraction(1))[0].astype(np.float64)
        table = nearest_table(shape, asked, noisy, session.n_rows)
        if self.rounded:
            table = np.rint(table)
        return [dense_joint(session, table, n_rows=float(table.sum()), engine="fourier")]


@dataclass(frozen=True, eq=False)
class Coefficients(Question):
    """All coefficients of some sets of columns.

    One row moves them by as many in L1 as there are. Two rows that differ move the coefficients by at most twice one row's L2, which is four times in squares.
    """

    sets: Sequence[Axes]

    def words(self, schema: Schema) -> str:
        """What they are."""
        return "Fourier coefficients"

    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """All of a person's rows may be alike."""
        twice = 4 if unit.relation == "replace" else 1
        return Sensitivity(
            n_coefficients(shape, self.sets) * unit.l1,
            l2_squared(shape, self.sets) * unit.max_rows**2 * twice,
        )

    def of(self, counts: TrueCounts) -> Counts:
        """Contrasts of the tables."""
        return np.concatenate([coefficients(counts.counts(axes)) for axes in self.sets])

    def expected(self, rows: Expected) -> Floats:
        """Of rows that are spread evenly the total alone is not 0."""
        sizes = [math.prod(rows.shape[axis] - 1 for axis in axes) for axes in self.sets]
        return np.concatenate(
            [np.full(n, 0.0 if axes else rows.n_rows) for axes, n in zip(self.sets, sizes, strict=True)]
        )


def downward(schema: Schema, workload: int | Sequence[Sequence[str]]) -> list[Axes]:
    """Every set of columns inside a table of the workload, the empty one included, small ones first."""
    return closure(schema.axes(attrs) for attrs in tables_of(schema, workload).tables)


def nearest_table(shape: tuple[int, ...], sets: Sequence[Axes], noisy: Floats, n_rows: int | None) -> Floats:
    """The non-negative table whose worst coefficient is closest to the noisy ones: min b, |noisy − coefficients(x)| ≤ b, x ≥ 0."""
    cells = math.prod(shape)
    if not len(noisy):
        return np.full(shape, (n_rows or 0) / cells)
    matrix = design(shape, sets)
    within = -np.ones((len(noisy), 1))
    answer = linprog(
        np.r_[np.zeros(cells), 1.0],
        A_ub=np.block([[matrix, within], [-matrix, within]]),
        b_ub=np.r_[noisy, -noisy],
        A_eq=None if n_rows is None else np.r_[np.ones(cells), 0.0][None, :],
        b_eq=None if n_rows is None else [float(n_rows)],
        method="highs",
    )
    # Feasible by construction (x = anything with the right total, b large), so only the solver itself can fail.
    solution = np.zeros(cells) if answer.x is None else answer.x[:cells]
    return np.asarray(solution).reshape(shape)
