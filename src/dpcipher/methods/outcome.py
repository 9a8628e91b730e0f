"""From what a method estimated to a joint: clip, normalise, respect structural zeros."""

import math

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.session import Session
from dpcipher.errors import SizeError
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.health import SolveReport
from dpcipher.joint.joint import Joint
from dpcipher.schema.schema import Schema

Floats = NDArray[np.float64]

# The most cells a method may hold as one table of floats; judged on the schema.
MAX_CELLS = 2**26


def require_table(schema: Schema, method: str, limit: int = MAX_CELLS) -> None:
    """Refuse a schema whose full table is too large for a method that needs all of it."""
    cells = math.prod(schema.shape)
    if cells > limit:
        raise SizeError(
            f"{method} needs the full table of {cells:,} cells; at most {limit:,} fit. Use Cipher or PrivBayes, or fewer levels"
        )


def dense_joint(session: Session, estimate: Floats, *, n_rows: float, engine: str) -> Joint:
    """The joint behind an estimate of the full table: negative cells to zero, structural zeros to zero, total one."""
    kept = np.maximum(estimate, 0.0)
    below = float(np.minimum(estimate, 0.0).sum())
    probabilities = normalised(kept, possible(session.schema))
    negative = -below / max(1.0, float(kept.sum()))
    return Joint(
        session.schema,
        DenseTable(probabilities),
        rows_to_draw(session, n_rows),
        SolveReport(engine, negative_mass=negative),
        kind=session.kind,
    )


def rows_to_draw(session: Session, n_rows: float) -> int:
    """The public number of rows, else the method's noisy one."""
    return max(0, round(n_rows)) if session.n_rows is None else session.n_rows


def normalised(table: Floats, allowed: NDArray[np.bool_] | None = None) -> Floats:
    """Non-negative weights as probabilities over the allowed cells; uniform where nothing is left."""
    weights = table if allowed is None else np.where(allowed, table, 0.0)
    total = float(weights.sum())
    if total > 0 and math.isfinite(total):
        return np.asarray(weights / total)
    blank = np.ones(table.shape) if allowed is None else allowed.astype(float)
    return np.asarray(blank / blank.sum())


def possible(schema: Schema) -> NDArray[np.bool_] | None:
    """Which cells of the full table may hold rows; None where all may."""
    if not schema.zeros:
        return None
    allowed = np.ones(schema.shape, dtype=bool)
    for axes, mask in schema.zero_masks:
        allowed &= ~mask.reshape([size if axis in axes else 1 for axis, size in enumerate(schema.shape)])
    return allowed
