"""What `--given` says, as the library's `given` takes it: a value, values of which each will do, or a range."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

import dpcipher as dc

if TYPE_CHECKING:
    from dpcipher.schema.columns import Column

_DOTS = ".."


def read_conditions(schema: "dc.Schema", pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """The conditions of all `--given COLUMN=VALUE`; a column that is named several times may have any of the values."""
    texts: dict[str, list[str]] = {}
    for name, text in pairs:
        texts.setdefault(name, []).append(text)
    return {name: _condition(schema, name, asked) for name, asked in texts.items()}


def _condition(schema: "dc.Schema", name: str, texts: list[str]) -> object:
    column = schema.column(name) if name in schema.names else None
    ranges = [text for text in texts if column is not None and _is_range(column, text)]
    if not ranges:
        return texts[0] if len(texts) == 1 else texts
    if column is None or len(texts) > 1:
        raise click.UsageError(
            f"--given {name}={ranges[0]} is a range and must stand alone; give one range of {name}, or values and bins by their labels"
        )
    low, _, high = ranges[0].partition(_DOTS)
    ends = {"min": low.strip(), "max": high.strip()}
    return {end: _point(column, text) for end, text in ends.items() if text}


def _is_range(column: "Column", text: str) -> bool:
    """LOW..HIGH, LOW.. or ..HIGH of a cut column, unless a level is called so."""
    from dpcipher.schema.bins import Bins

    return (
        isinstance(column.domain, Bins)
        and _DOTS in text
        and text.strip() != _DOTS
        and column.find(text) is None
    )


def _point(column: "Column", text: str) -> object:
    """An end of a range: dates and times stay texts, and so does what is no number, for the library to refuse."""
    if column.kind in ("date", "time"):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
