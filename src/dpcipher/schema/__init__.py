"""Public facts about a table: its columns and levels, what may be asked of it, and the code of every row."""

from dpcipher.schema.columns import Column
from dpcipher.schema.conditions import Cover
from dpcipher.schema.declared import column
from dpcipher.schema.document import Provenance, SignOff
from dpcipher.schema.levels import MISSING_LABEL
from dpcipher.schema.rules.rule import Rule, Zero
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload, crossed
from dpcipher.tables.domain import Attrs, Axes
from dpcipher.tables.labelled import Marginal

__all__ = [
    "MISSING_LABEL",
    "Attrs",
    "Axes",
    "Column",
    "Cover",
    "Marginal",
    "Provenance",
    "Rule",
    "Schema",
    "SignOff",
    "Workload",
    "Zero",
    "column",
    "crossed",
]
