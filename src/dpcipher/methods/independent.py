"""Independence: the product of noisy one-way tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcipher.joint.joint import Joint
from dpcipher.methods.base import Synthesizer
from dpcipher.methods.outcome import drowned, normalised, product_joint
from dpcipher.release.release import Release
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.selection.edges import PlannedTables
from dpcipher.tables.query import Query


@dataclass(frozen=True)
class Independent(Synthesizer):
    """One-way tables, an equal share each, as if the columns knew nothing of one another.

    >>> import pandas as pd
    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> people = pd.DataFrame({"smokes": [0, 0, 1, 1] * 250, "ill": [0, 0, 0, 1] * 250})
    >>> fitted = dc.Independent(epsilon=1.0, unit="add-remove").fit(people, schema)
    >>> fitted.sample(100, seed=1).shape
    (100, 2)
    """

    title: ClassVar[str] = "independent"

    def _finest(self, schema: Schema) -> Fraction:
        return Fraction(1, len(schema.attrs))

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        return PlannedTables(1, len(schema.attrs))

    def _learn(self, session: Session) -> Sequence[Joint]:
        share = Fraction(1, len(session.schema.attrs))
        tables = tuple(session.measure(Query((axis,)), share) for axis in range(len(session.schema.attrs)))
        release = Release(session.schema, tables, session.statement(), kind=session.kind)
        one_way = [normalised(np.maximum(table.values.astype(float), 0.0)) for table in tables]
        return [
            product_joint(
                session,
                one_way,
                n_rows=release.n_rows,
                engine="independent",
                warnings=drowned(session.schema, tables),
            )
        ]
