"""FDH: noise on every cell of the full table (the paper's "full-dimensional histogram")."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer
from dpcipher.methods.outcome import dense_joint, require_table
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import PlannedTables
from dpcipher.tables.query import Query


@dataclass(frozen=True)
class FullHistogram(Synthesizer):
    """Noisy counts of the full table, negative ones set to zero, normalised.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.FullHistogram(epsilon=1.0, unit="add-remove").fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "FDH"

    def check_schema(self, schema: Schema) -> None:
        """The full table must fit in memory."""
        require_table(schema, "FullHistogram")

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return PlannedTables(len(schema.attrs), 1)

    def _learn(self, session: Session) -> Sequence[Joint]:
        table = session.measure(Query(tuple(range(len(session.schema.attrs)))), Fraction(1))
        counts = table.values.astype(np.float64)
        # The sum of the noisy cells is unbiased before clipping, and biased upward after it.
        return [dense_joint(session, counts, n_rows=float(counts.sum()), engine="full histogram")]
