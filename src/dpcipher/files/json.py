"""JSON that anybody may have written: read within bounds, so that no text hangs the reader or fills its memory.

Plain JSON leaves much open that a file of ours never needs: keys that come twice, NaN, whole numbers of a million digits, lists
inside lists to any depth. All of it is refused with a `ValueError` that says why; whoever reads a file adds its name.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain

Container = dict[object, object] | list[object] | tuple[object, ...]

MAX_DEPTH = 32
# A list or an object of a few bytes takes up to 240 in memory. The largest legal release, all pairs of a thousand columns, has
# 1.0 million of them.
MAX_CONTAINERS = 3 * 2**19
MAX_DIGITS = 308  # so that every whole number is a finite float too

# Possessive, and never failing half-way: it takes time in proportion to the text, whatever that is.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(raw: bytes | str) -> object:
    """The values in a JSON text.

    >>> read_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    text = raw if isinstance(raw, str) else raw.decode("utf-8")
    _check_containers(text)
    try:
        plain = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_int=_whole_number,
            parse_float=_real_number,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise ValueError(f"lists are nested more than {MAX_DEPTH} deep") from None
    check_plain(plain)
    return plain


def check_plain(value: object) -> None:
    """Refuse values that are nested too deep, and texts that no file can hold; layer by layer, so that depth costs nothing."""
    layer: list[Container] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        keys = chain.from_iterable(container for container in layer if isinstance(container, dict))
        items = chain.from_iterable(
            container.values() if isinstance(container, dict) else container for container in layer
        )
        layer = list(_checked(chain(keys, items)))
    if layer:
        raise ValueError(f"lists are nested more than {MAX_DEPTH} deep")


def product_within(sizes: Iterable[int], most: int) -> int | None:
    """The product of sizes from 1 up, or None as soon as it is beyond `most`: a million factors make an endless number.

    >>> product_within([2, 3, 4], 24), product_within([2, 3, 4], 23)
    (24, None)
    """
    product = 1
    for size in sizes:
        product *= size
        if product > most:
            return None
    return product


def _checked(items: Iterable[object]) -> Iterator[Container]:
    """The lists and objects among the items, once the texts are seen to be texts.

    A lone half of a surrogate pair, which only an escape can write, is no character and fits no UTF-8 file.
    """
    for item in items:
        if isinstance(item, str):
            if not item.isascii() and _LONE_SURROGATE.search(item):
                raise ValueError("a text holds half of a surrogate pair")
        elif isinstance(item, dict | list | tuple):
            yield item


def _check_containers(text: str) -> None:
    """Brackets are counted before anything is built; only where there are many is it worth telling those in texts apart."""
    if _brackets(text) > MAX_CONTAINERS and _brackets(_STRING.sub("", text)) > MAX_CONTAINERS:
        raise ValueError(f"it has more than {MAX_CONTAINERS:,} lists and objects")


def _brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _whole_number(text: str) -> int:
    """A whole number of bounded length: reading one takes time that grows with the square of its digits."""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number has more than {MAX_DIGITS} digits")
    return int(text)


def _real_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON knows")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys appear once; plain JSON would keep the last and forget the others."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("a key appears twice in one object")
    return plain
