"""The data dictionary of NIST's Diverse Communities Data Excerpts: for each column a description and its values, by code or by `min` and `max`.

"NOC": {"description": "Number of own children", "values": {"N": "N/A (GQ/vacant)", "0": "No own children", "min": 1, "max": 19}}
"""

from collections.abc import Mapping
from typing import Any

from dpcipher.schema.codebooks.variable import (
    Dictionary,
    Variable,
    as_number,
    whole_levels,
)


def is_nist(plain: object) -> bool:
    """Whether every entry is a column with a description."""
    return (
        isinstance(plain, Mapping)
        and bool(plain)
        and all(isinstance(entry, Mapping) and "description" in entry for entry in plain.values())
    )


def read_nist(plain: Mapping[str, Mapping[str, object]]) -> Dictionary:
    """The variables of the dictionary."""
    return Dictionary("nist", [_variable(name, entry) for name, entry in plain.items()])


def _variable(name: str, entry: Mapping[str, object]) -> Variable:
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
