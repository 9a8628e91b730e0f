"""One query that counts many tables: coded rows, the joint tables that cover what is asked, and the margins of those. All inside the engine.

What comes back are cells of the tables that were asked for: their numbers and their counts, zeros left out. Rows never do, distinct or not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.kernel import few_joint_tables
from dpcipher.marginals.arrays import Axes, Counts

N_ROWS, REFUSAL = -1, -2  # in the place of the number of a table
MAX_TABLES = 256  # in one query


@dataclass(frozen=True)
class Query:
    """Steps that read one another, and the parts whose rows are the answer: three whole numbers each, a table, a cell and its count.

    Steps that are read more than once are `kept` by the engine for the length of the query.
    """

    steps: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]
    kept: frozenset[str] = frozenset()

    def sql(self, *, materialized: str = "", packed: bool = False) -> str:
        """The text. `packed`: one row for each table, with its cells and counts in one text, which is a third of the bytes of as many rows."""
        texts = (
            f"{name} AS {materialized if name in self.kept else ''}(\n{text}\n)" for name, text in self.steps
        )
        union = "\nUNION ALL ".join(self.parts)
        if packed:
            pairs = "STRING_AGG(COALESCE(cell, -1) || ' ' || n, ' ')"
            union = f"SELECT tab, {pairs} FROM (\n{union}\n) AS answers (tab, cell, n) GROUP BY tab"
        return (f"WITH {', '.join(texts)}\n" if self.steps else "") + union


Answer = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # table, cell, count


def counting_query(
    steps: Sequence[tuple[str, str]],
    rows: str,
    shape: tuple[int, ...],
    tables: Sequence[Axes],
    *,
    refuses: bool = False,
) -> Query:
    """Steps and parts; `rows` names the step, or table, that holds the coded rows."""
    asked = [(number, axes) for number, axes in enumerate(tables) if axes]
    joints = few_joint_tables(shape, [axes for _, axes in asked])
    names = {axes: f"joint{number}" for number, axes in enumerate(dict.fromkeys(joints.values()))}
    with_steps = [*steps, *((name, _joint(rows, axes)) for axes, name in names.items())]
    parts = [f"SELECT {N_ROWS} AS tab, CAST(0 AS BIGINT) AS cell, COUNT(*) AS n FROM {rows}"]
    if refuses:
        parts.append(f"SELECT {REFUSAL}, CAST(MIN(refusal) AS BIGINT), CAST(0 AS BIGINT) FROM {rows}")
    parts += [_margin(number, names[joints[axes]], axes, shape) for number, axes in asked]
    return Query(tuple(with_steps), tuple(parts), frozenset({rows, *names.values()}))


def _joint(rows: str, axes: Axes) -> str:
    names = ", ".join(f"a{axis}" for axis in axes)
    return f"SELECT {names}, COUNT(*) AS n FROM {rows} GROUP BY {names}"


def _margin(number: int, joint: str, axes: Axes, shape: tuple[int, ...]) -> str:
    cell = f"CAST(a{axes[0]} AS BIGINT)"
    for axis in axes[1:]:
        cell = f"({cell} * {shape[axis]} + a{axis})"
    return f"SELECT {number}, {cell}, CAST(SUM(n) AS BIGINT) FROM {joint} GROUP BY {cell}"


def counts_of(answer: Answer, shape: tuple[int, ...], tables: Sequence[Axes]) -> list[Counts]:
    """The tables, zeros filled in; that of no column is the number of rows."""
    table, cell, count = answer
    order = np.argsort(table, kind="stable")
    table, cell, count = table[order], cell[order], count[order]
    filled = []
    for number, axes in enumerate(tables):
        sizes = [shape[axis] for axis in axes]
        counts = np.zeros(math.prod(sizes), dtype=np.int64)
        start, stop = np.searchsorted(table, [number, number + 1] if axes else [N_ROWS, N_ROWS + 1])
        counts[cell[start:stop]] = count[start:stop]
        filled.append(counts.reshape(sizes))
    return filled


def n_rows_of(answer: Answer) -> int:
    """The number of rows that count."""
    return int(answer[2][answer[0] == N_ROWS][0])


def refusal_of(answer: Answer) -> int | None:
    """The first reason to refuse a row, by its number."""
    found = answer[1][answer[0] == REFUSAL]
    return int(found[0]) if len(found) and found[0] >= 0 else None
