"""Bytes and plain values, changed at random: everything is drawn from a generator that the caller seeds."""

import random
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from typing import Any

# JSON texts, since no Python value stands for some of them.
NASTY = (
    "null", "true", "-1", "0", "0.5", "1e308", "NaN", "1e999", '""', '"1e99999999"', '"' + "9" * 3_000 + '"', '"\\ud800"', "9" * 5_000,
    "1" + "0" * 300, "[" * 50 + "]" * 50, "[" * 20_000, "[]", '[["age"], {"a": []}]', "{}", '{"a": 1}', '"\\u0000"', '"\\u202e"', "2147483648",
    "9223372036854775808", "-9223372036854775809", "1e-320", "[null]", '"(missing)"', '"refuse"', '"nearest"', '"level"', '"2024-02-30"',
)  # fmt: skip
TOKENS = (
    b"\0",
    b"\n",
    b'"',
    b"{",
    b"}",
    b"[",
    b",",
    b":",
    b"*a",
    b"&a",
    b"!!int",
    b"PAR1",
    b"PK\x03\x04",
    b"\xff\xfe",
    b"\xc3\x28",
    b"- ",
    b"~",
)
_MARK = "replace me"


def bend(data: bytes, rng: random.Random) -> bytes:
    """A few changes of bytes: flipped, cut, doubled, moved, replaced, or foreign ones put in."""
    bent = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        if not bent:
            break
        place, length = rng.randrange(len(bent)), rng.choice((1, 2, 4, 16, 200))
        kind = rng.randrange(7)
        if kind == 0:
            bent[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            bent[place] = rng.randrange(256)
        elif kind == 2:
            del bent[place : place + length]
        elif kind == 3:
            bent[place:place] = bent[place : place + length]
        elif kind == 4:
            bent[place:place] = rng.choice(TOKENS)
        elif kind == 5:
            bent[place : place + length] = rng.randbytes(length)
        else:
            del bent[place:]
    return bytes(bent)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside plain values, themselves included."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def twisted(plain: Any, rng: random.Random) -> tuple[Any, str]:
    """Plain values with one of them gone, doubled, moved to another place or marked, and the JSON to put where the mark is."""
    whole: list[Any] = [deepcopy(plain)]
    known = [(0, *path) for path in places(plain)]
    *before, last = rng.choice(known)
    holder = reduce(lambda inner, key: inner[key], before, whole)
    kind = rng.randrange(6)
    if kind == 0 and before:
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.append(deepcopy(holder[last]))
    elif kind == 2:
        holder[last] = deepcopy(reduce(lambda inner, key: inner[key], rng.choice(known), [plain]))
    else:
        holder[last] = _MARK
    return whole[0] if whole else None, rng.choice(NASTY)


def as_json(plain: Any, nasty: str) -> str:
    """The text of twisted values."""
    import json

    return json.dumps(plain).replace(f'"{_MARK}"', nasty, 1)
