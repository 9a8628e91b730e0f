"""Rules made at random, with a second opinion: an evaluator that knows nothing of codes, bins or masks, only of single values."""

from dataclasses import dataclass
from itertools import product
from operator import eq, ge, gt, le, lt, ne

import numpy as np

from dpcipher.schema import MISSING_LABEL, Schema, column

SIGNS = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
COLUMNS = (
    column("age", "integer", min=0, max=11, bins=4, missing="level"),
    column("end", "integer", edges=[0, 2, 5, 11]),
    column("status", "categorical", levels=["N", "single", "in", "or"]),
    column("school", "ordinal", levels=["none", "low", "high"], missing="level"),
    column("day", "integer", min=1, max=3),
)
# The values of every level, written out by hand.
VALUES = {
    "age": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [None]],
    "end": [[0, 1], [2, 3, 4], [5, 6, 7, 8, 9, 10, 11]],
    "status": [["N"], ["single"], ["in"], ["or"]],
    "school": [["none"], ["low"], ["high"], [None]],
    "day": [[1], [2], [3]],
}
CUTS = {"age": [0, 3, 6, 9], "end": [0, 2, 5], "day": [1, 2, 3]}
RANK = {"none": 0, "low": 1, "high": 2}


@dataclass(frozen=True)
class Made:
    """A rule as a text, and as a nested tuple for the evaluator."""

    text: str
    tree: tuple


def random_rule(rng: np.random.Generator) -> Made:
    """An implication, or a claim alone."""
    claim = _part(rng, 2)
    if rng.random() < 0.3:
        return claim
    condition = _part(rng, 2)
    return Made(f"{condition.text} -> {claim.text}", ("or", ("not", condition.tree), claim.tree))


def _part(rng: np.random.Generator, depth: int) -> Made:
    kind = rng.choice(["not", "and", "or"]) if depth and rng.random() < 0.5 else "atom"
    if kind == "atom":
        return _atom(rng)
    if kind == "not":
        inner = _part(rng, depth - 1)
        return Made(f"not ({inner.text})", ("not", inner.tree))
    parts = [_part(rng, depth - 1) for _ in range(int(rng.integers(2, 4)))]
    return Made(
        "(" + f" {kind} ".join(part.text for part in parts) + ")", (kind, *(part.tree for part in parts))
    )


def _atom(rng: np.random.Generator) -> Made:
    kind = rng.integers(6)
    if kind == 0:  # two columns
        left, right = rng.permutation(["age", "end", "day"])[:2]
        sign = str(rng.choice(list(SIGNS)))
        return Made(f"{left} {sign} {right}", ("pair", left, sign, right))
    if kind == 1:
        sign = str(rng.choice(["<", "<=", ">", ">="]))
        column = str(rng.choice(list(CUTS)))
        cut = int(rng.choice(CUTS[column])) - (sign in ("<=", ">"))
        if rng.random() < 0.3:
            mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
            return Made(f"{cut} {mirrored} {column}", ("order", column, sign, cut))
        return Made(f"{column} {sign} {cut}", ("order", column, sign, cut))
    if kind == 2:
        level, sign = str(rng.choice(["none", "low", "high"])), str(rng.choice(["<", "<=", ">", ">="]))
        return Made(f"school {sign} {level}", ("rank", sign, level))
    if kind == 3:
        column = str(rng.choice(["age", "school"]))
        return Made(f"{column} is missing", ("in", column, (None,)))
    if kind == 4:
        day, negated = int(rng.integers(1, 4)), rng.random() < 0.5
        tree = ("in", "day", (day,))
        return Made(f"day {'!=' if negated else '=='} {day}", ("not", tree) if negated else tree)
    levels = tuple(str(level) for level in rng.permutation(["N", "single", "in", "or"])[: rng.integers(1, 4)])
    negated = rng.random() < 0.5
    tree = ("in", "status", levels)
    return Made(f"status {'not ' * negated}in [{', '.join(levels)}]", ("not", tree) if negated else tree)


def holds(tree: tuple, row: dict) -> bool | None:
    """True, False, or None for unknown."""
    match tree:
        case ("not", part):
            inner = holds(part, row)
            return None if inner is None else not inner
        case ("and", *parts):
            seen = [holds(part, row) for part in parts]
            return False if False in seen else None if None in seen else True
        case ("or", *parts):
            seen = [holds(part, row) for part in parts]
            return True if True in seen else None if None in seen else False
        case ("pair", left, sign, right):
            missing = row[left] is None or row[right] is None
            return None if missing else SIGNS[sign](row[left], row[right])
        case ("order", column, sign, value):
            return None if row[column] is None else SIGNS[sign](row[column], value)
        case ("rank", sign, level):
            return None if row["school"] is None else SIGNS[sign](RANK[row["school"]], RANK[level])
        case ("in", column, levels):
            return row[column] in levels
    raise AssertionError(tree)


def columns_in(tree: tuple) -> set[str]:
    """The columns that a rule reads."""
    match tree:
        case ("not", part):
            return columns_in(part)
        case ("and" | "or", *parts):
            return set().union(*map(columns_in, parts))
        case ("pair", left, _, right):
            return {left, right}
        case ("rank", *_):
            return {"school"}
        case _:
            return {tree[1]}


def pairs_in(tree: tuple) -> list[tuple]:
    """The comparisons of two columns in a rule."""
    match tree:
        case ("not", part):
            return pairs_in(part)
        case ("and" | "or", *parts):
            return [pair for part in parts for pair in pairs_in(part)]
        case ("pair", *_):
            return [tree]
        case _:
            return []


def broken_cells(tree: tuple) -> np.ndarray:
    """The cells of the full table in which every row breaks the rule, one row at a time."""
    names, used = [column.name for column in COLUMNS], columns_in(tree)
    grid = np.zeros([len(VALUES[name]) if name in used else 1 for name in names], dtype=bool)
    for cell in np.ndindex(grid.shape):
        values = [
            VALUES[name][level] if name in used else [None] for name, level in zip(names, cell, strict=True)
        ]
        grid[cell] = all(holds(tree, dict(zip(names, row, strict=True))) is False for row in product(*values))
    return np.broadcast_to(grid, [column.size for column in COLUMNS])


def compiled_cells(schema: Schema) -> np.ndarray:
    """The structural zeros of a schema in its full table."""
    empty = np.zeros(schema.shape, dtype=bool)
    for axes, mask in schema.zero_masks:
        empty |= mask.reshape([size if axis in axes else 1 for axis, size in enumerate(schema.shape)])
    return empty


def plain_row(row: dict) -> dict:
    """A row as the evaluator reads it: None for missing."""
    return {
        name: None if value is None or value != value or value == MISSING_LABEL else value
        for name, value in row.items()
    }
