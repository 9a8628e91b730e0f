"""Barak et al. (2007): noisy Fourier coefficients, then the nearest non-negative table by a linear program."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.optimize import linprog

from dpcipher.curator.event import Sensitivity
from dpcipher.curator.session import Session
from dpcipher.errors import ParameterError, SizeError
from dpcipher.joint.joint import Joint
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.marginals.tables import closure
from dpcipher.methods.base import Synthesizer, tables_of
from dpcipher.methods.contrasts import coefficients, design, l2_squared, n_coefficients
from dpcipher.methods.outcome import dense_joint
from dpcipher.schema.schema import Schema

# The linear program holds a dense matrix of coefficients by cells; beyond this it takes minutes.
MAX_CELLS = 2**13
MAX_ENTRIES = 2**21


@dataclass(frozen=True)
class Fourier(Synthesizer):
    """All coefficients below the workload, with equal noise; the non-negative table closest to them in the worst coefficient.

    `rounded` takes the table to whole numbers, as the source does. The linear program needs every cell: at most 8,192 cells, and
    2,097,152 entries of coefficients times cells, judged on the schema.
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
                f"Fourier solves a linear program over all {cells:,} cells; at most {MAX_CELLS:,} cells and {MAX_ENTRIES:,} entries "
                "(coefficients × cells) can be solved. Use Cipher, a lower order, or fewer levels"
            )

    def _finest(self, schema: Schema) -> Fraction:
        shape, sets = schema.shape, downward(schema, self.workload)
        return Fraction(1, max(n_coefficients(shape, sets), 2 * l2_squared(shape, sets)))

    def _learn(self, session: Session) -> Sequence[Joint]:
        shape = session.schema.shape
        # The empty set's coefficient is the number of rows: public under replacement, one more noisy number otherwise.
        asked = [axes for axes in downward(session.schema, self.workload) if axes or session.n_rows is None]
        noisy = _noisy_coefficients(session, asked) if n_coefficients(shape, asked) else np.zeros(0)
        table = nearest_table(shape, asked, noisy, session.n_rows)
        if self.rounded:
            table = np.rint(table)
        return [dense_joint(session, table, n_rows=float(table.sum()), engine="fourier")]


def _noisy_coefficients(session: Session, sets: Sequence[Axes]) -> Floats:
    shape = session.schema.shape
    # Two rows that differ move the coefficients by at most twice one row's L2; one table of counts moves by √2.
    squared = Fraction(l2_squared(shape, sets)) * (2 if session.unit.relation == "replace" else 1)
    sensitivity = Sensitivity(Fraction(n_coefficients(shape, sets)), squared)
    noisy, _ = session.query(
        "Fourier coefficients",
        lambda truth: np.concatenate([coefficients(truth.counts(axes)) for axes in sets]),
        Fraction(1),
        sensitivity=sensitivity,
    )
    return noisy.astype(np.float64)


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
