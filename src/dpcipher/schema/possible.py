"""The values that rows of a cut column can have: inside its range, and on the grid that it declares, or special.

Where `other: nearest` puts a private value from outside into an end bin, it comes back from inside that bin: no row is ever written with it.
"""

import numpy as np
import pyarrow as pa

from dpcipher.schema.binned import Binned
from dpcipher.schema.cells import flat
from dpcipher.schema.column import Column

_NOUNS = {"integer": "whole numbers", "number": "numbers", "date": "dates", "time": "times of day"}


def named_number(domain: Binned, value: object) -> float:
    """The number, day or second that a condition names; NaN where it names a bin by its label, or what is missing."""
    cell = flat(pa.array([value]))
    return float("nan") if pa.types.is_null(cell.type) else float(domain.numbers(cell)[0])


def is_possible(column: Column, number: float) -> bool:
    """Whether some row can have this number, day or second. A grid that the column does not declare, but its edges suggest, rules nothing out."""
    domain = column.domain
    assert isinstance(domain, Binned)  # others have levels, and no range
    if number in domain.special:
        return True
    if not domain.edges[0] <= number <= domain.edges[-1] - domain.whole:
        return False
    grid = None if column.step is None and column.decimals is None else domain.grid
    return grid is None or bool(grid.values(grid.places(np.array([number])))[0] == number)


def said_values(column: Column) -> str:
    """All of them in words.

    >>> said_values(column("pay", "number", edges=[0, 10, 50], decimals=2, special=[-1], missing_values=["N"]))
    'numbers from 0 to 50 of at most 2 decimals, -1, and for what is missing N'
    """
    domain = column.domain
    assert isinstance(domain, Binned)
    noun = _NOUNS[domain.kind] if column.step is None else f"multiples of {column.step:.12g}"
    ends = (domain.text(end) for end in (domain.edges[0], domain.edges[-1] - domain.whole))
    decimals = "" if column.decimals is None else f" of at most {column.decimals} decimals"
    codes = ", ".join(column.missing_codes.texts)
    parts = [f"{noun} from {' to '.join(ends)}{decimals}", *map(domain.text, domain.special)]
    return ", ".join([*parts, *([f"and for what is missing {codes}"] if codes else [])])
