"""Frictionless Table Schema, versions 1 and 2: from one, alone or inside a data package, and to one.

The key `dpcipher` of a field holds the whole column as a schema file declares it, and is then all that is read of the field; other programs leave it alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import SchemaError
from dpcipher.files.codec import is_whole
from dpcipher.schema.cells import quoted_text
from dpcipher.schema.codebooks.variable import (
    AUTO,
    Codebook,
    Variable,
    VariableKind,
    as_bound,
    choose_table,
)
from dpcipher.schema.format import FileFormat
from dpcipher.schema.levels import Level

OURS = "dpcipher"
_LONGEST_PATTERN = 1000
_KINDS: dict[str, VariableKind] = {
    "string": "text",
    "any": "text",
    "yearmonth": "text",
    "integer": "integer",
    "year": "integer",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    "datetime": "date",
    "time": "time",
}
_TRUE, _FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
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


def is_frictionless(plain: object) -> bool:
    """Whether it is a table schema, a resource with one, or a package of such resources."""
    return isinstance(plain, Mapping) and any(
        isinstance(plain.get(key), kind)
        for key, kind in (("fields", list), ("resources", list), ("schema", Mapping))
    )


def read_frictionless(plain: Mapping[str, Any], table: str | None) -> Codebook:
    """The variables of the table schema, or of the resource asked for."""
    about = plain
    if isinstance(resources := plain.get("resources"), list):
        named = {
            str(one.get("name", place)): one
            for place, one in enumerate(resources)
            if isinstance(one, Mapping) and isinstance(one.get("schema"), Mapping)
        }
        about = choose_table(named, table)
    schema = about.get("schema", about)
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    if not isinstance(fields, list) or not all(isinstance(one, Mapping) and "name" in one for one in fields):
        raise SchemaError("a Frictionless table schema must have fields, each with a name")
    keys = schema.get("primaryKey", [])
    keys = keys if isinstance(keys, list) else [keys]
    variables = [
        _variable(one, schema.get("missingValues"), len(keys) == 1 and one["name"] in keys) for one in fields
    ]
    form, notes = _read_dialect(about, fields)
    return Codebook(
        "frictionless", variables, about.get("title"), about.get("description"), format=form, notes=notes
    )


def _variable(one: Mapping[str, Any], shared: object, is_key: bool) -> Variable:
    name, form = str(one["name"]), str(one.get("type", "string"))
    rules = one.get("constraints")
    rules = rules if isinstance(rules, Mapping) else {}
    if is_key or rules.get("unique") is True:
        return Variable(name, left_out="is an id: every value is different")
    if OURS in one:
        return _declared(name, one[OURS])
    if form not in _KINDS:
        return Variable(name, left_out=f"is of the type {form!r:.40}, which has no levels")
    if form in ("date", "datetime") and not _is_iso(str(one.get("format", "default"))):
        return Variable(name, left_out="has dates that are not written like 2024-01-31; convert them first")
    kind, (values, labels, ordered) = _KINDS[form], _values(one, rules)
    codes = _pairs(one.get("missingValues", [""] if shared is None else shared))
    low, high = (_bound(kind, rules, side) for side in ("minimum", "maximum"))
    return Variable(
        name,
        kind,
        values=values,
        ordered=ordered,
        low=low,
        high=high,
        missing=tuple(code for code, _ in codes if str(code).strip() and str(code).lower() != "nan"),
        blank=rules.get("required") is not True and any(str(code).strip() == "" for code, _ in codes),
        labels={**labels, **{str(code): label for code, label in codes if label}},
        title=one.get("title"),
        description=one.get("description"),
        unit=one.get("unit"),
        pattern=_pattern(rules.get("pattern")),
        longest=_longest(rules.get("maxLength")),
        source="its constraints",
        notes=_notes(one),
    )


def _declared(name: str, column: object) -> Variable:
    """A column as a schema file declares it."""
    if not isinstance(column, Mapping) or "kind" not in column:
        raise SchemaError(
            f"field {name!r:.60}: {OURS} must hold the whole column, its kind and all, as `dpcipher schema export` writes it; "
            "take the key out to have the words of the standard read"
        )
    return Variable(name, declared={key: value for key, value in column.items() if key != "name"})


def _values(
    one: Mapping[str, Any], rules: Mapping[str, Any]
) -> tuple[list[Level] | None, dict[str, Any], bool]:
    """The listed levels with their labels, and whether they are in order."""
    pairs = _pairs(one.get("categories")) or _pairs(rules.get("enum"))
    if not pairs and one.get("type") == "boolean":
        true, false = _pairs(one.get("trueValues", _TRUE)), _pairs(one.get("falseValues", _FALSE))
        usual = {value for value, _ in true} <= set(_TRUE) and {value for value, _ in false} <= set(_FALSE)
        pairs = [] if usual else [*false, *true]
    if not pairs:
        return None, {}, False
    labels = {str(value): label for value, label in pairs if label is not None}
    return [value for value, _ in pairs], labels, one.get("categoriesOrdered") is True


def _pairs(listed: object) -> list[tuple[Level, Any]]:
    """Values with their labels: each a value, or an object with `value` and `label`."""
    if not isinstance(listed, list | tuple):
        return []
    pairs = [
        (one.get("value"), one.get("label")) if isinstance(one, Mapping) else (one, None) for one in listed
    ]
    return [(value, label) for value, label in pairs if isinstance(value, str | int | float)]


def _bound(kind: VariableKind, rules: Mapping[str, Any], side: str) -> Any:
    """The bound, also from its exclusive form: of whole numbers, one further in."""
    if side in rules:
        return as_bound(kind, rules[side])
    bound = as_bound(kind, rules.get(f"exclusive{side.capitalize()}"))
    if kind == "integer" and bound is not None:
        return bound + (1 if side == "minimum" else -1)
    return bound


def _pattern(pattern: object) -> str:
    """The pattern of the standard, which is that of XML Schema, where it is one of RE2 too."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= _LONGEST_PATTERN:
        return ""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return ""
    return pattern


def _longest(characters: object) -> int | None:
    return characters if is_whole(characters) and characters > 0 else None


def _notes(one: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person should know of the cells."""
    if one.get("type") == "datetime":
        return ("the time of day is dropped",)
    if one.get("bareNumber") is False:
        return ("its numbers have other signs beside them (bareNumber), and must be converted first",)
    return ()


def _is_iso(form: str) -> bool:
    return form in ("default", "any") or form.startswith("%Y-%m-%d")


def write_frictionless(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema, as plain values, as a Frictionless table schema of the files that dpcipher writes."""
    words = {key: schema[key] for key in ("title", "description") if key in schema}
    return {**words, "fields": [_field(column) for column in schema["columns"]], "missingValues": [""]}


def _field(column: Mapping[str, Any]) -> dict[str, Any]:
    """What the standard can say of a column, and the whole of it under our own key."""
    labels, levels = column.get("labels") or {}, column.get("levels")
    codes = [text for code in column.get("missing_values") or () for text in _spellings(str(code))]
    rules: dict[str, Any] = {}
    field: dict[str, Any] = {"name": column["name"], "type": _type(column)}
    field |= {key: column[key] for key in ("title", "description", "unit") if key in column}
    if isinstance(levels, list):
        field["categories"] = [
            {"value": level, "label": labels[str(level)]} if str(level) in labels else level
            for level in levels
        ]
        field |= {"categoriesOrdered": True} if column["kind"] == "ordinal" else {}
        rules["enum"] = [text for level in levels for text in _spellings(level)]
    ends = _ends(column)
    rules |= {key: end for key, end in zip(("minimum", "maximum"), ends, strict=True) if end is not None}
    if column.get("missing") == "level":
        field |= {"missingValues": ["", *codes]} if codes else {}
    elif codes or (isinstance(levels, list) and "" in levels):
        field["missingValues"] = codes
    else:
        rules["required"] = True  # a code for a missing value is a missing value to the standard
    field |= {"constraints": rules} if rules else {}
    return field | {OURS: {key: value for key, value in column.items() if key != "name"}}


def _spellings(value: Level) -> list[Any]:
    """A value, and how a CSV file of ours holds it where it would begin a formula."""
    written = quoted_text(value) if isinstance(value, str) else value
    return [value] if written == value else [value, written]


def _type(column: Mapping[str, Any]) -> str:
    if column["kind"] in ("boolean", "integer", "number", "date", "time"):
        return str(column["kind"])
    levels = column["levels"]
    kinds = {type(level) for level in levels} if isinstance(levels, list) else {str}
    if kinds == {bool}:
        return "boolean"
    return "string" if str in kinds else "integer" if kinds == {int} else "number"


def _ends(column: Mapping[str, Any]) -> tuple[Any, Any]:
    """The first and last value of a cut column, where it states them; special values may lie outside its range."""
    edges, special = column.get("edges"), column.get("special") or []
    ends: list[Any] = (
        [edges[0], edges[-1]] if edges and "min" not in column else [column.get("min"), column.get("max")]
    )
    if None in ends or (special and AUTO in ends):
        return None, None
    if column["kind"] == "time":  # the standard writes seconds
        ends, special = (
            [f"{time}:00" if len(time) < len("08:30:00") else time for time in times]
            for times in (ends, special)
        )
    low, high = (which([end, *special]) for end, which in zip(ends, (min, max), strict=True))
    return None if low == AUTO else low, None if high == AUTO else high


def _read_dialect(
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
