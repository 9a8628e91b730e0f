"""What a declaration of a column may say: each kind in its own way, and in one way only."""

from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa

from dpcipher.errors import SchemaError, SizeError, did_you_mean
from dpcipher.schema import text_column
from dpcipher.schema.binned import Binned
from dpcipher.schema.listed import Listed
from dpcipher.schema.missing import MISSING_LABEL
from dpcipher.schema.open_column import AUTO, check_open
from dpcipher.schema.words import check_words

if TYPE_CHECKING:
    from dpcipher.schema.column import Column

Kind = Literal["categorical", "ordinal", "integer", "number", "boolean", "date", "time"]
KINDS: tuple[str, ...] = get_args(Kind)
_LIMIT = 2**31  # codes are 32-bit integers


def check_column(column: "Column") -> None:
    """Refuse a declaration that means nothing; the domain is checked as it is built."""
    if column.kind not in KINDS:
        hint = did_you_mean(str(column.kind), KINDS)
        raise SchemaError(f"kind ({column.kind!r:.60}) must be one of {', '.join(KINDS)}{hint}")
    if column.missing not in ("level", "refuse"):
        raise SchemaError(f"missing ({column.missing!r:.60}) must be level or refuse")
    if not isinstance(column.other, str | int | float):
        raise SchemaError(f"other ({column.other!r:.60}) must be refuse, nearest or one level")
    if column.size >= _LIMIT:
        raise SizeError(f"it has {column.size} levels; at most {_LIMIT - 1} can be counted: use bins")
    _check_missing(column)
    check_words(column)
    if column.other != "refuse" and column.other != "nearest":
        _ = column.other_code
    if column.other == "nearest" and not isinstance(column.domain, Binned):
        raise SchemaError(
            "other (nearest) must be a level here; nearest is for integer, number, date and time columns"
        )


def _check_missing(column: "Column") -> None:
    """The levels for what is missing must not be levels already."""
    if not isinstance(column.domain, Listed):
        return
    if column.missing == "level" and MISSING_LABEL in column.domain.labels:
        raise SchemaError(f"levels must not hold {MISSING_LABEL!r} beside missing: level; rename that level")
    for text, label in zip(column.missing_codes.texts, column.missing_codes.labels, strict=True):
        declared = column.domain.codes(pa.array([text]))[0] >= 0
        if declared or label in column.domain.labels:
            raise SchemaError(
                f"missing_values ({text!r:.60}) must not be a level too; leave it out of one of them"
            )


def check_declaration(column: "Column") -> None:
    """Each kind is declared in its own way, and in one way only."""
    if column.discovers:
        text_column.check_discover(column)
        return
    text_column.check_declared(column)
    _check_auto(column)
    for name in ("levels", "edges"):
        if not isinstance(getattr(column, name), tuple | None):
            raise SchemaError(f"{name} ({getattr(column, name)!r:.60}) must be a list; try {name}: [1, 2]")
    given = {name for name in ("levels", "edges", "min", "max", "bins") if getattr(column, name) is not None}
    allowed: tuple[set[str], ...] = ({"edges"}, {"min", "max"}, {"min", "max", "bins"})
    if column.is_open:
        check_open(column)
        return
    if column.max_bins is not None:
        raise SchemaError(
            f"max_bins ({column.max_bins!r:.60}) is for bins: auto; leave it out, or say bins: auto"
        )
    if column.kind == "boolean":
        allowed = (set(),)
    if column.kind in ("categorical", "ordinal"):
        allowed = ({"levels"},)
    if given not in allowed:
        forms = " or ".join("/".join(sorted(form)) or "nothing more" for form in allowed)
        raise SchemaError(
            f"a column of kind {column.kind} must declare {forms}, not {'/'.join(sorted(given)) or 'nothing'}"
        )
    for name in ("step", "decimals", "special"):
        if column.kind in ("categorical", "ordinal", "boolean") and getattr(column, name) is not None:
            raise SchemaError(f"{name} is for integer, number, date and time columns; leave it out")


def _check_auto(column: "Column") -> None:
    """Refuse `auto` where something else is meant, and say what."""
    if column.levels == AUTO:
        raise SchemaError(
            "levels (auto) must be a list, or discover, which finds levels privately; try {kind: categorical, levels: discover, pattern: '[A-Z]+', max_length: 10}"
        )
    if column.edges == AUTO:
        raise SchemaError(
            "edges (auto) must be a list; bins: auto finds edges privately, between min and max"
        )
    if AUTO in (column.min, column.max) and column.bins != AUTO:
        raise SchemaError(
            "a min or max that is auto needs bins: auto; try {min: auto, max: auto, bins: auto}"
        )


def checked_spec(name: object, spec: object, known: Sequence[str], kinds: Sequence[str]) -> Mapping[str, Any]:
    """The declaration of a column in a file, once its keys are known ones and its kind is there."""
    if not isinstance(spec, Mapping):
        raise SchemaError(f"column {name!r:.60} must be a mapping; try {{kind: categorical, levels: [a, b]}}")
    if "searched" in spec:
        raise SchemaError(
            f"column {name!r:.60}: searched is no longer needed; leave it out, rows are judged by their bins"
        )
    for key in spec:
        if key not in known:
            raise SchemaError(f"column {name!r:.60}: unknown key {key!r:.60}{did_you_mean(str(key), known)}")
    if "kind" not in spec:
        raise SchemaError(f"column {name!r:.60}: kind is missing; it must be one of {', '.join(kinds)}")
    return spec


def plain_value(value: object) -> object:
    """A declared value without numpy or date types, sequences as tuples."""
    if isinstance(value, np.ndarray | list | tuple | range):
        return tuple(plain_value(item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, date | time) else value
