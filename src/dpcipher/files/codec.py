"""Typed facts from plain values that anybody may have written: the annotations of a class are the rules, for its constructor and for files alike.

A dataclass refuses keys that it does not know; a TypedDict lets them pass as remarks. `Annotated[kind, Rule(words, holds)]` says more than a type can.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date, time
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

from dpcipher.errors import did_you_mean

_NAMES: Mapping[object, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", tuple: "a list", dict: "a mapping",
    NoneType: "left out",
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """What a value must be, in words that follow "must", and as a test of values of the right type."""

    words: str
    holds: Callable[[Any], bool] = lambda value: True


def decode(kind: Any, plain: object, name: str) -> Any:
    """The typed value of plain values; a ValueError that names the place, the value and the rule.

    >>> decode(list[int], [1, 2], "sizes")
    [1, 2]
    >>> decode(list[int], [1, "2"], "sizes")
    Traceback (most recent call last):
    ValueError: sizes[1] ('2') must be a whole number
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return plain
    if origin is NotRequired:
        return decode(inner[0], plain, name)
    if is_dataclass(kind) and isinstance(plain, cast(type, kind)):
        return plain
    if is_dataclass(kind) or is_typeddict(kind):
        return _decode_facts(kind, plain, name)
    if origin is Annotated:
        try:
            value = decode(inner[0], plain, name)
        except ValueError:
            raise _wrong(name, plain, inner[1].words) from None
        if not inner[1].holds(value):
            raise _wrong(name, plain, inner[1].words)
        return value
    if origin in (Union, UnionType):
        fits = [one for one in inner if _is_plain(one, plain)]
        if not fits:
            raise _wrong(name, plain, "must be " + " or ".join(map(_named, inner)))
        return decode(fits[0], plain, name)
    if not _is_plain(kind, plain):
        raise _wrong(name, plain, f"must be {_named(kind)}")
    if origin in (list, tuple):
        return origin(decode(inner[0], value, f"{name}[{place}]") for place, value in enumerate(plain))  # type: ignore[arg-type,var-annotated]
    if origin is dict:
        keys = [decode(inner[0], key, f"a key of {name}") for key in plain]  # type: ignore[attr-defined]
        return {key: decode(inner[1], plain[key], f"{name}.{key!s:.60}") for key in keys}  # type: ignore[index]
    return float(plain) if kind is float else plain  # type: ignore[arg-type]


def check_fields(facts: Any) -> None:
    """Check the fields of a frozen dataclass that is being made by their annotations; lists become tuples, and numpy's values Python's."""
    for name, kind in _form(cast(Any, type(facts)))[0].items():
        object.__setattr__(facts, name, decode(kind, as_plain(getattr(facts, name)), name))


def as_plain(value: object) -> object:
    """A value as files have it: without numpy's or date types, sequences as tuples."""
    if isinstance(value, np.ndarray | list | tuple | range):
        return tuple(as_plain(item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, date | time) else value


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number by its type."""
    return isinstance(value, int) and is_number(value)


def _decode_facts(kind: Any, plain: object, name: str) -> Any:
    """A dataclass, or a mapping of the form of a TypedDict."""
    if not isinstance(plain, Mapping) or not all(isinstance(key, str) for key in plain):
        raise _wrong(name, plain, "must be a mapping of names")
    hints, needed = _form(kind)
    for key in needed - set(plain):
        raise ValueError(f"{name} must hold {key}; it must hold at least {', '.join(sorted(needed))}")
    for key in plain if is_dataclass(kind) else ():
        if key not in hints:
            raise ValueError(f"{name}: unknown key {key!r:.60}{did_you_mean(str(key), hints)}")
    known = {
        key: decode(hints[key], plain[key], f"{name}.{key}" if name else key) for key in hints if key in plain
    }
    return {**plain, **known} if is_typeddict(kind) else kind(**known)


@cache
def _form(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """What each key must be, and which keys must be there."""
    hints = get_type_hints(kind, include_extras=True)
    if not is_dataclass(kind):
        return hints, kind.__required_keys__
    has_none = [one for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
    return {one.name: hints[one.name] for one in fields(kind)}, frozenset(one.name for one in has_none)


def _bare(kind: Any) -> Any:
    """A kind without its rule, and without what is inside it."""
    inner = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(inner) or inner


def _named(kind: Any) -> str:
    """A kind in words."""
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return _NAMES.get(_bare(kind), "a mapping")


def _is_plain(kind: Any, value: object) -> bool:
    """Whether a value is of a kind; a truth value is no number, a whole number is a number."""
    kind, inner = _bare(kind), get_args(kind)
    if kind is Any:
        return True
    if kind is Literal:
        return type(value) in map(type, inner) and value in inner
    if is_dataclass(kind) or is_typeddict(kind) or kind is dict:
        return isinstance(value, Mapping) or (is_dataclass(kind) and isinstance(value, cast(type, kind)))
    if kind in (int, float):
        return is_number(value) if kind is float else is_whole(value)
    return isinstance(value, list | tuple if kind in (list, tuple) else kind)


def _wrong(name: str, value: object, rule: str) -> ValueError:
    return ValueError(f"{name} ({value!r:.60}) {rule}")
