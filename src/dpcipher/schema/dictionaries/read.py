"""A dictionary file as the plain values of a schema: which format it is, what it says, and what the person who signs must check."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from dpcipher.errors import ParameterError, SchemaError, did_you_mean
from dpcipher.files.json import read_json
from dpcipher.schema.dictionaries.age_rules import age_rules
from dpcipher.schema.dictionaries.ddi import read_ddi
from dpcipher.schema.dictionaries.frictionless import is_frictionless, read_frictionless
from dpcipher.schema.dictionaries.nist import is_nist, read_nist
from dpcipher.schema.dictionaries.sdv import is_sdv, read_sdv
from dpcipher.schema.dictionaries.variable import Dictionary, Variable
from dpcipher.schema.words import one_line

MAX_BYTES = 2**26
_RANGE_KEYS = ("kind", "min", "max", "bins", "edges", "max_bins", "special")
Form = Literal["auto", "frictionless", "ddi", "nist", "sdv"]


def read_dictionary(
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
    dictionary = read_ddi(text, table) if is_xml else _read_plain(_read_json(text), form, table)
    return _schema(dictionary, path.name, open_ranges)


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


def _read_plain(plain: object, form: Form, table: str | None) -> Dictionary:
    """The dictionary in a JSON file, by the format asked for or the one it looks like."""
    if not isinstance(plain, Mapping):
        raise SchemaError("a dictionary must be a JSON object; this file holds something else")
    if form == "sdv" or (form == "auto" and is_sdv(plain)):
        return read_sdv(plain, table)
    if form == "frictionless" or (form == "auto" and is_frictionless(plain)):
        return read_frictionless(plain, table)
    if is_nist(plain):
        return read_nist(plain)
    raise SchemaError(
        "is no dictionary that can be read: a Frictionless table schema has fields, SDV metadata has columns with an sdtype, "
        "a NIST dictionary has a description for each column, and a DDI codebook is XML"
    )


def _schema(dictionary: Dictionary, name: str, open_ranges: bool) -> dict[str, object]:
    variables = [_opened(variable) if open_ranges else variable for variable in dictionary.variables]
    kept = [variable for variable in variables if not variable.left_out]
    if not kept:
        raise SchemaError(
            "no variable of the dictionary can become a column: each is an id or of another type"
        )
    words = {key: one_line(getattr(dictionary, key), key) for key in ("title", "description")}
    plain: dict[str, object] = {key: text for key, text in words.items() if text}
    plain["columns"] = [{"name": variable.name, **variable.spec()} for variable in kept]
    rules, origins = age_rules(kept)
    plain |= {"rules": rules} if rules else {}
    plain |= {"format": dict(dictionary.format)} if dictionary.format else {}
    plain["notes"] = [*dictionary.notes, *(variable.origin() for variable in variables), *origins]
    if any(variable.needs_signature for variable in kept):
        plain["imported_from"] = " ".join(part for part in (name[:200], f"({dictionary.form})") if part)
    return plain


def _opened(variable: Variable) -> Variable:
    """The variable without its range, which is then found privately."""
    declared: dict[str, Any] = {
        key: value for key, value in variable.declared.items() if key not in _RANGE_KEYS
    }
    return replace(variable, low=None, high=None, declared=declared)
