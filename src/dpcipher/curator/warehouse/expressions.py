"""ibis, where it is installed, and the few expressions that everything here is built of."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import ibis as _ibis
except ImportError:  # nobody without ibis has an ibis table
    _ibis = None

ibis: Any = _ibis
Expr = Any  # an ibis value


def double(value: float) -> Expr:
    """A float exactly: engines read the digits of a text better than those of a literal."""
    return ibis.literal(repr(float(value))).cast("float64")


def first_of(*codes: Expr | None) -> Expr | None:
    """The first that is not null; None where there is none to ask."""
    some = [code for code in codes if code is not None]
    return ibis.coalesce(*some) if len(some) > 1 else some[0] if some else None


def looked_up(value: Expr, codes: Mapping[Any, int]) -> Expr | None:
    """The code of a value in a public list; null for any other."""
    return value.cases(*codes.items(), else_=None) if codes else None


def number_looked_up(number: Expr | None, codes: Mapping[float, int]) -> Expr | None:
    """The same for numbers, which are compared as floats."""
    if number is None or not codes:
        return None
    return number.cast("float64").cases(*((double(value), code) for value, code in codes.items()), else_=None)


def among(code: Expr, chosen: NDArray[np.bool_]) -> Expr:
    """Whether a code is one of those chosen, by the runs that they form."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    runs = [(int(start), int(stop) - 1) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
    single = [start for start, last in runs if start == last]
    tests = [code.between(start, last) for start, last in runs if start < last]
    tests += [code.isin(single)] if single else []
    return ibis.or_(*tests) if tests else ibis.literal(False)


def n_runs(chosen: NDArray[np.bool_]) -> int:
    """How many runs the chosen codes form."""
    return int((np.diff(np.concatenate([[False], chosen]).astype(np.int8)) == 1).sum())


def is_local(table: Any) -> bool:
    """Whether all rows of an ibis table are in this process (memtables): no engine has them yet."""
    return has_memtable(table) and not _found(table, "DatabaseTable", "UnboundTable", "SQLQueryResult")


def has_memtable(table: Any) -> bool:
    """Whether an ibis table has rows of this process among its own."""
    return _found(table, "InMemoryTable")


def _found(table: Any, *names: str) -> bool:
    from ibis.expr import operations

    return bool(table.op().find(tuple(getattr(operations, name) for name in names)))
