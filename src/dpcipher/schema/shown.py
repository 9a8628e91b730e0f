"""A schema as people first see it: its columns with their kinds, levels and meaning."""

from collections.abc import Mapping, Sequence

from dpcipher.drawing.card import MOST_LINES, Card, counted
from dpcipher.drawing.svg import clip
from dpcipher.schema.columns import Column

MOST_NAMED = 4


def card(title: str | None, columns: Sequence[Column], conditions: Mapping[str, int], *, waits: bool) -> Card:
    """How many columns, which they are, and what must be done before the schema is used: sign it, if it `waits` for that."""
    notes = (
        ["It must be signed before it is used: somebody says that it holds nothing private."] if waits else []
    )
    return Card(
        f"Schema of {title}" if title else "Schema",
        {
            "Columns": f"{len(columns):,}",
            "With": ", ".join(counted(number, noun) for noun, number in conditions.items() if number),
            "Signature": "missing" if waits else "",
        },
        ("column", "kind", "levels", "which"),
        [_line(column) for column in columns[:MOST_LINES]],
        len(columns),
        notes,
    )


def _line(column: Column) -> tuple[str, str, str, str]:
    if column.is_open:
        return column.heading, column.kind, f"up to {column.size:,}", "found privately by measure"
    return column.heading, column.kind, f"{column.size:,}", _levels(column)


def _levels(column: Column) -> str:
    """The first levels, or the ends of what is cut."""
    if column.size > 10_000:
        return ""
    labels = column.shown_labels
    if len(labels) <= MOST_NAMED:
        return clip(", ".join(labels), 70)
    return clip(f"{labels[0]}, {labels[1]}, … {labels[-1]}", 70)
