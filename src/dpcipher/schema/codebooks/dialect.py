"""How the files of a Frictionless resource are written: its dialect, encoding and marks in numbers, as the `format` of a schema; what that cannot say is noted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpcipher.errors import SchemaError
from dpcipher.schema.format import FileFormat

# Keys of a dialect that change nothing where they have these values, or at all.
_USUAL = {"header": True, "doubleQuote": True, "skipInitialSpace": False, "escapeChar": None, "nullSequence": None, "commentChar": None, "headerRows": [1]}  # fmt: skip
_IDLE = ("lineTerminator", "caseSensitiveHeader", "csvddfVersion", "$schema", "type", "property")
_TAKEN = {"delimiter": "separator", "quoteChar": "quote", "decimalChar": "decimal", "groupChar": "thousands"}

_ORDER = (
    "separator",
    "quote",
    "encoding",
    "decimal",
    "thousands",
)  # the mark of thousands must differ from the others


def read_dialect(
    about: Mapping[str, Any], fields: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """The format that a resource and its fields state, and a note for whatever of it is left out."""
    dialect = about.get("dialect") or {}
    notes = []
    if not isinstance(dialect, Mapping):
        dialect, notes = {}, ["left out: the dialect, which stands in another file; write format by hand"]
    stated = {ours: dialect[theirs] for theirs, ours in _TAKEN.items() if theirs in dialect}
    if "encoding" in about:
        stated["encoding"] = about["encoding"]
    notes += [
        f"left out: {key!r:.40} of the dialect, which a format cannot say"
        for key, value in dialect.items()
        if key not in _TAKEN and key not in _IDLE and _USUAL.get(key, _USUAL) != value
    ]
    for theirs in ("decimalChar", "groupChar"):
        marks = _marks(theirs, fields, stated.get(_TAKEN[theirs], "." if theirs == "decimalChar" else None))
        if len(marks) == 1:
            stated[_TAKEN[theirs]] = marks[0]
        elif marks:
            stated.pop(_TAKEN[theirs], None)
            notes.append(f"left out: {theirs}, which is not the same for all numbers; convert them first")
    return _readable(stated, notes), notes


def _marks(key: str, fields: Iterable[Mapping[str, Any]], usual: object) -> list[object]:
    """The different marks that the fields of numbers have; a field that states none has the `usual` one, and no mark at all is none."""
    kinds = ("number",) if key == "decimalChar" else ("number", "integer")
    marks = [field.get(key, usual) for field in fields if field.get("type") in kinds]
    different: list[object] = []
    for mark in marks:
        if mark is not None and mark not in different:
            different.append(mark)
    return different


def _readable(stated: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """What a format takes of it, one fact after the other; the rest goes to the notes."""
    taken: dict[str, Any] = {}
    for key in (key for key in _ORDER if key in stated):
        value = stated[key]
        try:
            taken = FileFormat.from_spec(
                taken | {key: "none" if key == "quote" and value is None else value}
            ).to_spec()
        except (SchemaError, TypeError):
            notes.append(
                f"left out: the {key} of the files ({value!r:.40}), which cannot be read; convert them first"
            )
    return taken
