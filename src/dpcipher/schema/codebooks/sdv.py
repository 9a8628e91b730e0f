"""Metadata of the Synthetic Data Vault, `SINGLE_TABLE_V1` and `V1`: the type of each column, and nothing about its values, so that all of them are found privately."""

from collections.abc import Mapping

from dpcipher.errors import SchemaError
from dpcipher.schema.codebooks.tables import choose_table
from dpcipher.schema.codebooks.variable import Dictionary, Variable, VariableKind

_KINDS: dict[str, VariableKind] = {"boolean": "boolean", "categorical": "text", "numerical": "number"}


def is_sdv(plain: object) -> bool:
    """Whether it says so itself, or has columns with an `sdtype`."""
    if not isinstance(plain, Mapping):
        return False
    columns = plain.get("columns")
    typed = isinstance(columns, Mapping) and all(
        isinstance(column, Mapping) and "sdtype" in column for column in columns.values()
    )
    return "METADATA_SPEC_VERSION" in plain or bool(columns and typed)


def read_sdv(plain: Mapping[str, object], table: str | None) -> Dictionary:
    """The variables of the one table, or of the table asked for."""
    if isinstance(tables := plain.get("tables"), Mapping):
        plain = choose_table(tables, table)
    columns = plain.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError("an SDV metadata file must have columns; save it with metadata.save_to_json")
    keys = {plain.get("primary_key"), plain.get("sequence_key")}
    return Dictionary("sdv", [_variable(str(name), column, name in keys) for name, column in columns.items()])


def _variable(name: str, column: object, is_key: bool) -> Variable:
    facts = column if isinstance(column, Mapping) else {}
    sdtype = str(facts.get("sdtype"))
    if is_key or sdtype == "id":
        return Variable(name, left_out="is an id: every value would be somebody's")
    if sdtype == "datetime":
        return _datetime(name, str(facts.get("datetime_format") or ""))
    if sdtype not in _KINDS:
        return Variable(name, left_out=f"is of the type {sdtype!r:.40}, whose texts name people or places")
    kind = _KINDS[sdtype]
    if kind == "number" and "int" in str(facts.get("computer_representation", "")).lower():
        kind = "integer"
    return Variable(name, kind, blank=True)


def _datetime(name: str, form: str) -> Variable:
    if form and not form.startswith("%Y-%m-%d"):
        return Variable(name, left_out="has dates that are not written like 2024-01-31; convert them first")
    return Variable(name, "date", blank=True, notes=("the time of day is dropped",) if "%H" in form else ())
