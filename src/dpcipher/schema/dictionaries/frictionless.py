"""Frictionless Table Schema, versions 1 and 2: from one, alone or inside a data package, and to one.

What the standard has no word for (bins, edges, where other values go) is written under the key `dpcipher` of a field, which other programs leave alone.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dpcipher.errors import SchemaError
from dpcipher.schema.columns import Categorical, Column
from dpcipher.schema.cut import Cut
from dpcipher.schema.dictionaries.dialect import read_dialect
from dpcipher.schema.dictionaries.tables import choose_table
from dpcipher.schema.dictionaries.variable import (
    AUTO,
    Dictionary,
    Variable,
    VariableKind,
    as_bound,
)
from dpcipher.schema.levels import Level

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema

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
# What a field says in words of the standard; the rest of a column, and the whole of its bins, goes under our own key.
_STANDARD = ("name", "levels", "missing", "missing_values", "labels", "title", "description", "unit")


def is_frictionless(plain: object) -> bool:
    """Whether it is a table schema, a resource with one, or a package of such resources."""
    return isinstance(plain, Mapping) and any(
        isinstance(plain.get(key), kind)
        for key, kind in (("fields", list), ("resources", list), ("schema", Mapping))
    )


def read_frictionless(plain: Mapping[str, Any], table: str | None) -> Dictionary:
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
    form, notes = read_dialect(about, fields)
    return Dictionary(
        "frictionless", variables, about.get("title"), about.get("description"), format=form, notes=notes
    )


def _variable(one: Mapping[str, Any], shared: object, is_key: bool) -> Variable:
    name, form = str(one["name"]), str(one.get("type", "string"))
    rules = one.get("constraints")
    rules = rules if isinstance(rules, Mapping) else {}
    if is_key or rules.get("unique") is True:
        return Variable(name, left_out="is an id: every value is different")
    if form not in _KINDS:
        return Variable(name, left_out=f"is of the type {form!r:.40}, which has no levels")
    if form in ("date", "datetime") and not _is_iso(str(one.get("format", "default"))):
        return Variable(name, left_out="has dates that are not written like 2024-01-31; convert them first")
    kind, (values, labels, ordered) = _KINDS[form], _values(one, rules)
    codes = _pairs(one.get("missingValues", [""] if shared is None else shared))
    low, high = (_bound(kind, rules, side) for side in ("minimum", "maximum"))
    declared = one.get(OURS)
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
        declared=declared if isinstance(declared, Mapping) else {},
        source="its constraints",
        notes=_notes(one),
    )


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
    whole = isinstance(characters, int) and not isinstance(characters, bool)
    return characters if isinstance(characters, int) and whole and characters > 0 else None


def _notes(one: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person should know of the cells."""
    if one.get("type") == "datetime":
        return ("the time of day is dropped",)
    if one.get("bareNumber") is False:
        return ("its numbers have other signs beside them (bareNumber), and must be converted first",)
    return ()


def _is_iso(form: str) -> bool:
    return form in ("default", "any") or form.startswith("%Y-%m-%d")


def write_frictionless(schema: "Schema") -> dict[str, Any]:
    """The schema as a Frictionless table schema."""
    words = {"title": schema.title, "description": schema.description}
    fields = [_field(column) for column in schema.columns]
    return {**{name: text for name, text in words.items() if text}, "fields": fields, "missingValues": [""]}


def _field(column: Column) -> dict[str, Any]:
    spec = column.to_spec()
    labels: Mapping[str, str] = spec.get("labels") or {}  # type: ignore[assignment]
    field: dict[str, Any] = {"name": column.name, "type": _type(column)}
    field |= {name: spec[name] for name in ("title", "description", "unit") if name in spec}
    rules: dict[str, Any] = {} if column.missing == "level" else {"required": True}
    levels = spec.get("levels")
    if isinstance(levels, list):
        field["categories"] = [_labelled(level, labels) for level in levels]
        field |= {"categoriesOrdered": True} if column.kind == "ordinal" else {}
        rules["enum"] = levels
    low, high = _ends(column)
    rules |= {key: end for key, end in (("minimum", low), ("maximum", high)) if end is not None}
    codes = [_labelled(str(code), labels) for code in column.missing_codes.texts]
    blank = [""] if column.missing == "level" or not codes else []
    field |= {"missingValues": [*blank, *codes]} if codes else {}
    field |= {"constraints": rules} if rules else {}
    ours = {key: value for key, value in spec.items() if key not in _STANDARD}
    ours |= {"levels": levels} if isinstance(levels, str) else {}
    return field | {OURS: ours}


def _labelled(value: Any, labels: Mapping[str, str]) -> Any:
    return {"value": value, "label": labels[str(value)]} if str(value) in labels else value


def _type(column: Column) -> str:
    if column.kind in ("boolean", "integer", "number", "date", "time"):
        return column.kind
    levels: Sequence[Any] = column.levels if isinstance(column, Categorical) else ()
    kinds = {type(level) for level in levels}
    if kinds <= {bool} and kinds:
        return "boolean"
    return {frozenset({int}): "integer", frozenset({float}): "number", frozenset({int, float}): "number"}.get(
        frozenset(kinds), "string"
    )


def _ends(column: Column) -> tuple[Any, Any]:
    """The first and last value of a cut column, where it says them."""
    if not isinstance(column, Cut):
        return None, None
    ends = (
        (column.edges[0], column.edges[-1])
        if column.edges and column.min is None
        else (column.min, column.max)
    )
    low, high = (None if end == AUTO else end for end in ends)
    return low, high
