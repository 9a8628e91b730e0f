"""What the columns mean, in the words of the schema: a section for every page that shows columns or levels."""

from dpcipher.drawing.card import counted
from dpcipher.drawing.html import facts, paragraphs
from dpcipher.schema.columns import Column
from dpcipher.schema.schema import Schema
from dpcipher.schema.words import read_labels

MOST_LABELS = 40


def dictionary(schema: Schema) -> dict[str, str]:
    """A section with every column that has words of its own, none where no column has; labels stand beside the values that files hold."""
    described = {column.heading: _meaning(column) for column in schema.columns if _has_words(column)}
    told = [text for text in (schema.title, schema.description) if text]
    if not described and not told:
        return {}
    return {"What the columns mean": paragraphs(told) + (facts(described) if described else "")}


def _has_words(column: Column) -> bool:
    return bool(column.title or column.description or column.unit or column.value_labels)


def _meaning(column: Column) -> str:
    parts = [column.description] if column.description else []
    labelled = [f"{value} = {label}" for value, label in read_labels(column.value_labels or ())]
    if len(labelled) > MOST_LABELS:
        labelled = [*labelled[:MOST_LABELS], f"and {len(labelled) - MOST_LABELS} more"]
    told = " ".join([*parts, "; ".join(labelled)]).strip()
    return told or f"{column.kind}, {counted(column.size, 'level')}"
