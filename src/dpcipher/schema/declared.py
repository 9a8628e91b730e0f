"""A column by its kind and the facts of its declaration, as files have them: which class it is, and whether its keys belong there."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from dpcipher.errors import SchemaError, did_you_mean
from dpcipher.files.codec import as_plain
from dpcipher.schema.columns import (
    ATTRIBUTES,
    FORM_KEYS,
    KEYS,
    Boolean,
    Categorical,
    Column,
    Kind,
    Ordinal,
    check_form,
)
from dpcipher.schema.cut import AUTO
from dpcipher.schema.open_bins import CUTS, OpenBins
from dpcipher.schema.open_levels import DISCOVER, NEEDS, OpenLevels

KINDS: tuple[str, ...] = get_args(Kind)
_CLASSES: Mapping[str, type[Column]] = {
    "categorical": Categorical,
    "ordinal": Ordinal,
    "boolean": Boolean,
    **CUTS,
}
_CUT = "integer, number, date and time columns"
# Where a fact belongs, in the words of the error.
_HOMES = {
    **dict.fromkeys(("step", "decimals", "special"), _CUT),
    "max_bins": "bins: auto",
    **dict.fromkeys(("keep", "pattern", "max_length", "max_levels"), "levels: discover"),
}


def column(name: str, kind: str, **facts: Any) -> Column:
    """The column of a kind with the facts of its declaration, each by its key in a file.

    >>> column("age", "integer", min=0, max=99, bins=10).labels[:2]
    ('0..9', '10..19')
    """
    given = {key: as_plain(value) for key, value in facts.items() if value is not None}
    try:
        made, own = _class_of(kind, given)
    except SchemaError as wrong:
        raise SchemaError(f"column {name!r:.100}: {wrong}") from None
    return made(name, **{ATTRIBUTES.get(key, key): value for key, value in own.items()})


def column_of(name: object, plain: object) -> Column:
    """The column that a schema file declares."""
    if not isinstance(plain, Mapping):
        raise SchemaError(f"column {name!r:.60} must be a mapping; try {{kind: categorical, levels: [a, b]}}")
    if "kind" not in plain:
        raise SchemaError(f"column {name!r:.60}: kind is missing; it must be one of {', '.join(KINDS)}")
    for key in plain:
        if key not in ("kind", *KEYS):
            raise SchemaError(f"column {name!r:.60}: {_unknown(key)}")
    return column(name, **plain)  # type: ignore[arg-type]


def _unknown(key: object) -> str:
    if key == "searched":
        return "searched is no longer needed; leave it out, rows are judged by their bins"
    return f"unknown key {key!r:.60}{did_you_mean(str(key), KEYS)}"


def _class_of(kind: str, given: Mapping[str, Any]) -> tuple[type[Column], dict[str, Any]]:
    """The class of a column, and the facts that it is made from."""
    if kind not in KINDS:
        raise SchemaError(
            f"kind ({kind!r:.60}) must be one of {', '.join(KINDS)}{did_you_mean(str(kind), KINDS)}"
        )
    for key in given:
        if key not in KEYS:
            raise SchemaError(_unknown(key))
    if given.get("levels") == DISCOVER:
        return OpenLevels, _found_levels(kind, given)
    if given.get("bins") == AUTO:
        return OpenBins, _found_bins(kind, given)
    _check_auto(given)
    made = _CLASSES[kind]
    _check_homes(given, made)
    check_form(kind, made.forms, [key for key in FORM_KEYS if key in given])
    return made, dict(given)


def _found_levels(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a column whose levels are to be found."""
    if kind != "categorical":
        raise SchemaError(f"levels (discover) is for categorical columns, not for {kind} ones{NEEDS}")
    beside = [key for key in FORM_KEYS[1:] if key in given]
    if beside:
        raise SchemaError(f"levels (discover) must not stand beside {beside[0]}; leave it out")
    _check_homes(given, OpenLevels)
    return {key: value for key, value in given.items() if key != "levels"}


def _found_bins(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a column whose bins are to be found."""
    if kind not in CUTS:
        raise SchemaError(f"bins (auto) is for {', '.join(CUTS)} columns; a {kind} column lists its levels")
    if "levels" in given or not {"min", "max"} <= set(given):
        raise SchemaError(
            "bins (auto) needs min and max, each a value or auto; try {min: 0, max: 1000000, bins: auto}"
        )
    _check_homes(given, OpenBins)
    return {"cut": kind, **{key: value for key, value in given.items() if key != "bins"}}


def _check_homes(given: Mapping[str, Any], made: type[Column]) -> None:
    """Refuse facts that a column of another sort has."""
    known = {one.name for one in fields(made)}
    for key, home in _HOMES.items():
        if key in given and key not in known:
            raise SchemaError(f"{key} is for {home}; leave it out")


def _check_auto(given: Mapping[str, Any]) -> None:
    """Refuse `auto` where something else is meant, and say what."""
    if given.get("levels") == AUTO:
        raise SchemaError(
            "levels (auto) must be a list, or discover, which finds levels privately; try {kind: categorical, levels: discover, pattern: '[A-Z]+', max_length: 10}"
        )
    if given.get("edges") == AUTO:
        raise SchemaError(
            "edges (auto) must be a list; bins: auto finds edges privately, between min and max"
        )
