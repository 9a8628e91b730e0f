"""From what a method estimated to a joint: clip, normalise, respect structural zeros.

The budget is spent by then, so there is always an answer. Where the noise has left nothing to tell, the answer is uniform; the joint's
health says so, and `fit` warns of it once all is recorded.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcipher.engines.independent import DENSE_CELLS, independent
from dpcipher.errors import SchemaError, SizeError, shown_count
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.network import Network
from dpcipher.joint.report import SolveReport
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats, zero_cells
from dpcipher.tables.measurement import Measurement

# The most cells a method may hold as one table of floats; judged on the schema.
MAX_CELLS = 2**26
HELP = "A larger epsilon, or fewer columns or levels, would help"


def require_table(schema: Schema, method: str, limit: int = MAX_CELLS) -> None:
    """Refuse a schema whose full table is too large for a method that needs all of it."""
    cells = math.prod(schema.shape)
    if cells > limit:
        raise SizeError(
            f"{method} needs the full table of {shown_count(cells)} cells; at most {limit:,} fit. Use Cipher or PrivBayes, or fewer levels"
        )


def require_possible(schema: Schema) -> None:
    """Refuse structural zeros that together leave no row possible, as far as their own columns are few enough to look at."""
    touched = sorted({axis for axes, _ in schema.zero_masks for axis in axes})
    few = math.prod(schema.shape[axis] for axis in touched) <= MAX_CELLS
    if touched and few and zero_cells(tuple(touched), schema.shape, schema.zero_masks).all():
        raise SchemaError("zeros leave no row possible; take one of them out of the schema")


def dense_joint(session: Session, estimate: Floats, *, n_rows: float, engine: str) -> Joint:
    """The joint behind an estimate of the full table: negative cells to zero, structural zeros to zero, total one."""
    kept, allowed = np.maximum(estimate, 0.0), possible(session.schema)
    below = float(np.minimum(estimate, 0.0).sum())
    negative = -below / max(1.0, float(kept.sum()))
    health = SolveReport(engine, negative_mass=negative)
    if not has_weight(kept, allowed):
        why = f"{engine} left no cell above 0"
        warning = f"nothing is known, because {why}: the noise has drowned the data. All rows are equally likely here. {HELP}"
        health = SolveReport("uniform", why=why, negative_mass=negative, converged=False, warnings=(warning,))
    return finished(session, DenseTable(normalised(kept, allowed)), n_rows=n_rows, health=health)


def finished(session: Session, core: Core, *, n_rows: float, health: SolveReport) -> Joint:
    """The joint that a method returns, with a warning where it would draw no rows."""
    rows = rows_to_draw(session, n_rows)
    if rows == 0:
        kind = "noisy" if session.n_rows is None else "public"
        none = f"the {kind} number of rows is not above 0, so sample() draws none unless told how many"
        health = replace(health, warnings=(*health.warnings, none))
    return with_rule_cost(Joint(session.schema, core, rows, health, kind=session.kind))


def drowned(schema: Schema, tables: Iterable[Measurement]) -> tuple[str, ...]:
    """What to say of measured tables in which the noise left no count above zero: they tell nothing."""
    lost = [
        schema.domain.named(table.query.axes)
        for table in tables
        if table.values.size > 1 and not (table.values > 0).any()
    ]
    if not lost:
        return ()
    names = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    return (f"nothing is known of {names}, because the noise left no count above 0: uniform here. {HELP}",)


def rows_to_draw(session: Session, n_rows: float) -> int:
    """The public number of rows, else the method's noisy one."""
    return max(0, round(n_rows)) if session.n_rows is None else session.n_rows


def has_weight(table: Floats, allowed: NDArray[np.bool_] | None = None) -> bool:
    """Whether non-negative weights leave anything on the allowed cells to be normalised."""
    total = float(table.sum() if allowed is None else table.sum(where=allowed))
    return total > 0 and math.isfinite(total)


def normalised(table: Floats, allowed: NDArray[np.bool_] | None = None) -> Floats:
    """Non-negative weights as probabilities over the allowed cells; uniform where nothing is left."""
    if has_weight(table, allowed):
        weights = table if allowed is None else np.where(allowed, table, 0.0)
        return np.asarray(weights / weights.sum())
    blank = np.ones(table.shape) if allowed is None else allowed.astype(float)
    return np.asarray(blank / blank.sum())


def possible(schema: Schema) -> NDArray[np.bool_] | None:
    """Which cells of the full table may hold rows; None where all may."""
    if not schema.zero_masks:
        return None
    allowed = np.ones(schema.shape, dtype=bool)
    for axes, mask in schema.zero_masks:
        allowed &= ~mask.reshape([size if axis in axes else 1 for axis, size in enumerate(schema.shape)])
    return allowed


# Nothing is known yet: any table that is measured outweighs it, without dividing infinities.
_UNKNOWN = 1e300
# The share of the budget that buys the number of rows where it is private.
ROWS_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class Total:
    """An estimate of the number of rows with its variance; 0 means public."""

    estimate: float
    variance: float

    @property
    def rows(self) -> float:
        """A number of rows that can be divided by."""
        return max(1.0, self.estimate)

    def with_table(self, counts: NDArray[np.int64] | NDArray[np.float64], cell_variance: float) -> "Total":
        """Improve the estimate by the sum of a noisy table, weighting both by their precision."""
        if self.variance == 0:
            return self
        theirs = counts.size * cell_variance
        weight = self.variance / (self.variance + theirs)
        return Total(self.estimate + weight * (float(counts.sum()) - self.estimate), weight * theirs)


def first_total(session: Session, share: Fraction = ROWS_SHARE) -> Total:
    """The public number of rows, or one bought with a share of the budget."""
    if session.n_rows is not None:
        return Total(float(session.n_rows), 0.0)
    counted = session.count_rows(share)
    return Total(float(counted.values), counted.noise.variance)


def no_total(session: Session) -> Total:
    """The public number of rows, or an estimate that the first measured table replaces."""
    return Total(0.0, _UNKNOWN) if session.n_rows is None else Total(float(session.n_rows), 0.0)


def network_joint(
    session: Session, network: Network, *, n_rows: float, engine: str, warnings: tuple[str, ...] = ()
) -> Joint:
    """The joint of a network: written out where it is small, as it stands where it is not; then rows are what keeps structural zeros."""
    health = SolveReport(engine, warnings=warnings)
    if math.prod(network.shape) > DENSE_CELLS:
        return finished(session, network, n_rows=n_rows, health=health)
    whole = normalised(network.project(range(len(network.shape))), possible(session.schema))
    return finished(session, DenseTable(whole), n_rows=n_rows, health=health)


def product_joint(
    session: Session, one_way: Sequence[Floats], *, n_rows: float, engine: str, warnings: tuple[str, ...] = ()
) -> Joint:
    """Independent columns with these probabilities, but for the structural zeros."""
    core = independent(one_way, session.schema.zero_masks)
    return finished(session, core, n_rows=n_rows, health=SolveReport(engine, warnings=warnings))
