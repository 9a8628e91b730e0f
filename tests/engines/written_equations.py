"""The paper's equations A z = b, written out with the names of everything in them.

For attributes V1…Vj and a target among them, the unknowns are the conditional probabilities z = P(target | all others), the last level of
the target left out. For every other attribute k,

    P(target | rest) = sum over the levels of k of P(k | rest) · P(target | rest, k),        rest = all but the target and k.

These are the systems of the paper's supplement, in its order: levels of the target, then sets of conditions, then their levels,
the first attribute fastest. The engine (`paper`) solves the same equations without writing them out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.tables.domain import Axes, Floats

Levels = dict[int, int]


@dataclass(frozen=True)
class Equations:
    """A linear system with names: `matrix` @ unknowns = `right`.

    `coefficients` holds, for each row, the name of the coefficient of each unknown that occurs in it.
    """

    matrix: Floats
    right: Floats
    unknowns: tuple[str, ...]
    right_names: tuple[str, ...]
    coefficients: tuple[Mapping[str, str], ...]

    def __str__(self) -> str:
        lines = (
            f"{name} = " + " + ".join(f"{unknown} {factor}" for unknown, factor in terms.items())
            for name, terms in zip(self.right_names, self.coefficients, strict=True)
        )
        return "\n".join(lines)


def equations(shape: Sequence[int], target: int, tables: Mapping[Axes, Floats]) -> Equations:
    """The system for one set of attributes, from the tables that lack one of them.

    `tables` maps the axes of each table with one attribute less to its probabilities (or counts).

    >>> pairs = {axes: np.full((2, 2), 0.25) for axes in [(0, 1), (0, 2), (1, 2)]}
    >>> print(str(equations((2, 2, 2), 2, pairs)).splitlines()[0])
    P(V3=0|V1=0) = P(V3=0|V1=0,V2=0) P(V2=0|V1=0) + P(V3=0|V1=0,V2=1) P(V2=1|V1=0)
    """
    others = _others(shape, target, tables)
    cells = [(level, cell) for level in range(shape[target] - 1) for cell in _cells(shape, others)]
    unknowns = [_name({target: level}, cell) for level, cell in cells]
    column = {name: number for number, name in enumerate(unknowns)}
    rows = [
        (level, k, rest)
        for level in range(shape[target] - 1)
        for given in combinations(others, len(others) - 1)
        for k in set(others).difference(given)
        for rest in _cells(shape, given)
    ]
    matrix, right, terms = np.zeros((len(rows), len(unknowns))), np.zeros(len(rows)), []
    for number, (level, k, rest) in enumerate(rows):
        right[number] = _probability(tables, {target: level}, rest)
        row = {_name({target: level}, {**rest, k: value}): {k: value} for value in range(shape[k])}
        terms.append({unknown: _name(event, rest) for unknown, event in row.items()})
        for unknown, event in row.items():
            matrix[number, column[unknown]] = _probability(tables, event, rest)
    names = tuple(_name({target: level}, rest) for level, _, rest in rows)
    return Equations(matrix, right, tuple(unknowns), names, tuple(terms))


def _others(shape: Sequence[int], target: int, tables: Mapping[Axes, Floats]) -> Axes:
    every = tuple(range(len(shape)))
    if target not in every:
        raise ParameterError(
            f"target ({target}) must be one of the {len(shape)} attributes; try target={len(shape) - 1}"
        )
    for axes in combinations(every, len(shape) - 1):
        if axes not in tables:
            raise ParameterError(
                f"tables ({len(tables)}) must hold every table with one attribute less; {axes} is missing"
            )
    return tuple(axis for axis in every if axis != target)


def _cells(shape: Sequence[int], axes: Axes) -> Iterator[Levels]:
    """Every combination of levels, the first axis fastest."""
    for index in np.ndindex(*[shape[axis] for axis in reversed(axes)]):
        yield dict(zip(axes, reversed(index), strict=True))


def _name(event: Levels, given: Levels) -> str:
    left, right = (
        ",".join(f"V{axis + 1}={level}" for axis, level in sorted(part.items())) for part in (event, given)
    )
    return f"P({left}|{right})" if right else f"P({left})"


def _probability(tables: Mapping[Axes, Floats], event: Levels, given: Levels) -> float:
    """P(event | given) from the table that holds both."""
    together = {**event, **given}
    axes = tuple(sorted(together))
    table = tables[axes]
    joint = table[tuple(together[axis] for axis in axes)]
    return float(joint / table[tuple(given.get(axis, slice(None)) for axis in axes)].sum())
