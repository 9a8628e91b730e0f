"""A data dictionary as the plain values of a schema: which format it is, what it says, and what the person who signs must check.

Two formats are short enough to be read here. That of NIST's Diverse Communities Data Excerpts describes each column and its values, by code or by `min`
and `max`: "NOC": {"description": "Number of own children", "values": {"N": "N/A (GQ/vacant)", "0": "No own children", "min": 1, "max": 19}}. The metadata
of the Synthetic Data Vault, `SINGLE_TABLE_V1` and `V1`, have the type of each column, and nothing about its values, so that all of them are found privately.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from dpcipher.errors import ParameterError, SchemaError, did_you_mean
from dpcipher.files.json import read_json
from dpcipher.schema.codebooks.ddi import read_ddi
from dpcipher.schema.codebooks.frictionless import is_frictionless, read_frictionless
from dpcipher.schema.codebooks.variable import (
    Codebook,
    Variable,
    VariableKind,
    as_number,
    choose_table,
    whole_levels,
)
from dpcipher.schema.words import one_line

MAX_BYTES = 2**26
_SDV_KINDS: dict[str, VariableKind] = {"boolean": "boolean", "categorical": "text", "numerical": "number"}
Form = Literal["auto", "frictionless", "ddi", "nist", "sdv"]


def read_codebook(
    source: str | PathLike[str] | Mapping[str, object],
    *,
    form: Form = "auto",
    table: str | None = None,
    open_ranges: bool = False,
) -> dict[str, object]:
    """The plain values of the schema that a dictionary describes."""
    if form not in get_args(Form):
        raise ParameterError(
            f"form ({form!r:.40}) must be one of {', '.join(get_args(Form))}{did_you_mean(str(form), get_args(Form))}"
        )
    if isinstance(source, Mapping):
        return _schema(_read_plain(source, form, table), "", open_ranges)
    path = Path(source)
    text = _read_bytes(path)
    is_xml = form == "ddi" or (form == "auto" and text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"))
    codebook = read_ddi(text, table) if is_xml else _read_plain(_read_json(text), form, table)
    return _schema(codebook, path.name, open_ranges)


def _read_bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SchemaError(f"a dictionary must be smaller than {MAX_BYTES} bytes")
        return path.read_bytes()
    except OSError as wrong:
        raise SchemaError(f"cannot be read ({wrong.strerror})") from None


def _read_json(text: bytes) -> object:
    try:
        return read_json(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as wrong:
        raise SchemaError(
            f"is not readable as JSON ({wrong!s:.100}); a dictionary is JSON, or XML for DDI"
        ) from None


def _read_plain(plain: object, form: Form, table: str | None) -> Codebook:
    """The dictionary in a JSON file, by the format asked for or the one it looks like."""
    if not isinstance(plain, Mapping):
        raise SchemaError("a dictionary must be a JSON object; this file holds something else")
    if form == "sdv" or (form == "auto" and _is_sdv(plain)):
        return _read_sdv(plain, table)
    if form == "frictionless" or (form == "auto" and is_frictionless(plain)):
        return read_frictionless(plain, table)
    if _is_nist(plain):
        return _read_nist(plain)
    raise SchemaError(
        "is no dictionary that can be read: a Frictionless table schema has fields, SDV metadata has columns with an sdtype, "
        "a NIST dictionary has a description for each column, and a DDI codebook is XML"
    )


def _schema(codebook: Codebook, name: str, open_ranges: bool) -> dict[str, object]:
    variables = [variable.opened() if open_ranges else variable for variable in codebook.variables]
    kept = [variable for variable in variables if not variable.left_out]
    if not kept:
        raise SchemaError(
            "no variable of the dictionary can become a column: each is an id or of another type"
        )
    words = {key: one_line(getattr(codebook, key), key) for key in ("title", "description")}
    plain: dict[str, object] = {key: text for key, text in words.items() if text}
    plain["columns"] = [{"name": variable.name, **variable.spec()} for variable in kept]
    plain |= {"format": dict(codebook.format)} if codebook.format else {}
    plain["notes"] = [*codebook.notes, *(variable.origin() for variable in variables)]
    if any(variable.needs_signature for variable in kept):
        plain["imported_from"] = " ".join(part for part in (name[:200], f"({codebook.form})") if part)
    return plain


def _is_nist(plain: object) -> bool:
    """Whether every entry is a column with a description."""
    return (
        isinstance(plain, Mapping)
        and bool(plain)
        and all(isinstance(entry, Mapping) and "description" in entry for entry in plain.values())
    )


def _read_nist(plain: Mapping[str, Mapping[str, object]]) -> Codebook:
    """The variables of the dictionary."""
    return Codebook("nist", [_nist_variable(name, entry) for name, entry in plain.items()])


def _nist_variable(name: str, entry: Mapping[str, object]) -> Variable:
    values = entry.get("values")
    words: dict[str, Any] = {"title": entry["description"], "description": entry.get("details")}
    if not isinstance(values, Mapping) or not values:
        return Variable(name, **words)
    labels = {str(code): label for code, label in values.items() if code not in ("min", "max")}
    missing = tuple(code for code, label in labels.items() if _says_missing(code, label))
    if "min" not in values and "max" not in values:
        levels = tuple(code for code in labels if code not in missing)
        return Variable(name, values=whole_levels(levels) or None, missing=missing, labels=labels, **words)
    low, high = as_number(values.get("min")), as_number(values.get("max"))
    numbers = {code: as_number(code) for code in labels if code not in missing}
    texts = tuple(code for code, number in numbers.items() if number is None)
    singles = tuple(number for number in numbers.values() if number is not None)
    whole = all(isinstance(number, int) for number in (low, high, *singles) if number is not None)
    return Variable(
        name,
        "integer" if whole else "number",
        low=low,
        high=high,
        singles=singles,
        bounds_show_decimals=True,
        missing=(*missing, *texts),
        labels=labels,
        **words,
    )


def _says_missing(code: str, label: object) -> bool:
    """N stands for "not applicable" in these files, and its label says so."""
    return code == "N" and str(label).lower().startswith("n/a")


def _is_sdv(plain: object) -> bool:
    """Whether it says so itself, or has columns with an `sdtype`."""
    if not isinstance(plain, Mapping):
        return False
    columns = plain.get("columns")
    typed = isinstance(columns, Mapping) and all(
        isinstance(column, Mapping) and "sdtype" in column for column in columns.values()
    )
    return "METADATA_SPEC_VERSION" in plain or bool(columns and typed)


def _read_sdv(plain: Mapping[str, object], table: str | None) -> Codebook:
    """The variables of the one table, or of the table asked for."""
    if isinstance(tables := plain.get("tables"), Mapping):
        plain = choose_table(tables, table)
    columns = plain.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError("an SDV metadata file must have columns; save it with metadata.save_to_json")
    keys = {plain.get("primary_key"), plain.get("sequence_key")}
    return Codebook(
        "sdv", [_sdv_variable(str(name), column, name in keys) for name, column in columns.items()]
    )


def _sdv_variable(name: str, column: object, is_key: bool) -> Variable:
    facts = column if isinstance(column, Mapping) else {}
    sdtype = str(facts.get("sdtype"))
    if is_key or sdtype == "id":
        return Variable(name, left_out="is an id: every value would be somebody's")
    if sdtype == "datetime":
        return _datetime(name, str(facts.get("datetime_format") or ""))
    if sdtype not in _SDV_KINDS:
        return Variable(name, left_out=f"is of the type {sdtype!r:.40}, whose texts name people or places")
    kind = _SDV_KINDS[sdtype]
    if kind == "number" and "int" in str(facts.get("computer_representation", "")).lower():
        kind = "integer"
    return Variable(name, kind, blank=True)


def _datetime(name: str, form: str) -> Variable:
    if form and not form.startswith("%Y-%m-%d"):
        return Variable(name, left_out="has dates that are not written like 2024-01-31; convert them first")
    return Variable(name, "date", blank=True, notes=("the time of day is dropped",) if "%H" in form else ())
