from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from written_equations import equations

from dpcipher.errors import ParameterError
from dpcipher.tables.domain import Axes
from dpcipher.tables.table import margin

# The worked systems of the paper's supplement, one equation a line, in its order: "30|10,21" is P(V3=0 | V1=0, V2=1).
TWO_TWO_TWO = """
30|10 = 30|10,20*20|10 + 30|10,21*21|10
30|11 = 30|11,20*20|11 + 30|11,21*21|11
30|20 = 30|10,20*10|20 + 30|11,20*11|20
30|21 = 30|10,21*10|21 + 30|11,21*11|21
"""
TWO_THREE_THREE = """
30|10 = 30|10,20*20|10 + 30|10,21*21|10 + 30|10,22*22|10
30|11 = 30|11,20*20|11 + 30|11,21*21|11 + 30|11,22*22|11
30|20 = 30|10,20*10|20 + 30|11,20*11|20
30|21 = 30|10,21*10|21 + 30|11,21*11|21
30|22 = 30|10,22*10|22 + 30|11,22*11|22
31|10 = 31|10,20*20|10 + 31|10,21*21|10 + 31|10,22*22|10
31|11 = 31|11,20*20|11 + 31|11,21*21|11 + 31|11,22*22|11
31|20 = 31|10,20*10|20 + 31|11,20*11|20
31|21 = 31|10,21*10|21 + 31|11,21*11|21
31|22 = 31|10,22*10|22 + 31|11,22*11|22
"""
FOUR = """
40|10,20 = 40|10,20,30*30|10,20 + 40|10,20,31*31|10,20 + 40|10,20,32*32|10,20
40|11,20 = 40|11,20,30*30|11,20 + 40|11,20,31*31|11,20 + 40|11,20,32*32|11,20
40|10,21 = 40|10,21,30*30|10,21 + 40|10,21,31*31|10,21 + 40|10,21,32*32|10,21
40|11,21 = 40|11,21,30*30|11,21 + 40|11,21,31*31|11,21 + 40|11,21,32*32|11,21
40|10,30 = 40|10,20,30*20|10,30 + 40|10,21,30*21|10,30
40|11,30 = 40|11,20,30*20|11,30 + 40|11,21,30*21|11,30
40|10,31 = 40|10,20,31*20|10,31 + 40|10,21,31*21|10,31
40|11,31 = 40|11,20,31*20|11,31 + 40|11,21,31*21|11,31
40|10,32 = 40|10,20,32*20|10,32 + 40|10,21,32*21|10,32
40|11,32 = 40|11,20,32*20|11,32 + 40|11,21,32*21|11,32
40|20,30 = 40|10,20,30*10|20,30 + 40|11,20,30*11|20,30
40|21,30 = 40|10,21,30*10|21,30 + 40|11,21,30*11|21,30
40|20,31 = 40|10,20,31*10|20,31 + 40|11,20,31*11|20,31
40|21,31 = 40|10,21,31*10|21,31 + 40|11,21,31*11|21,31
40|20,32 = 40|10,20,32*10|20,32 + 40|11,20,32*11|20,32
40|21,32 = 40|10,21,32*10|21,32 + 40|11,21,32*11|21,32
41|10,20 = 41|10,20,30*30|10,20 + 41|10,20,31*31|10,20 + 41|10,20,32*32|10,20
41|11,20 = 41|11,20,30*30|11,20 + 41|11,20,31*31|11,20 + 41|11,20,32*32|11,20
41|10,21 = 41|10,21,30*30|10,21 + 41|10,21,31*31|10,21 + 41|10,21,32*32|10,21
41|11,21 = 41|11,21,30*30|11,21 + 41|11,21,31*31|11,21 + 41|11,21,32*32|11,21
41|10,30 = 41|10,20,30*20|10,30 + 41|10,21,30*21|10,30
41|11,30 = 41|11,20,30*20|11,30 + 41|11,21,30*21|11,30
41|10,31 = 41|10,20,31*20|10,31 + 41|10,21,31*21|10,31
41|11,31 = 41|11,20,31*20|11,31 + 41|11,21,31*21|11,31
41|10,32 = 41|10,20,32*20|10,32 + 41|10,21,32*21|10,32
41|11,32 = 41|11,20,32*20|11,32 + 41|11,21,32*21|11,32
41|20,30 = 41|10,20,30*10|20,30 + 41|11,20,30*11|20,30
41|21,30 = 41|10,21,30*10|21,30 + 41|11,21,30*11|21,30
41|20,31 = 41|10,20,31*10|20,31 + 41|11,20,31*11|20,31
41|21,31 = 41|10,21,31*10|21,31 + 41|11,21,31*11|21,31
41|20,32 = 41|10,20,32*10|20,32 + 41|11,20,32*11|20,32
41|21,32 = 41|10,21,32*10|21,32 + 41|11,21,32*11|21,32
"""


def random_joint(shape: tuple[int, ...], seed: int, weight: float = 1.0) -> np.ndarray:
    """A joint drawn from a symmetric Dirichlet distribution."""
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), weight)).reshape(shape)


def smaller_tables(joint: np.ndarray) -> dict[Axes, np.ndarray]:
    """Every table with one attribute less."""
    every = tuple(range(joint.ndim))
    return {axes: margin(joint, every, axes) for axes in combinations(every, joint.ndim - 1)}


def unpack(name: str) -> str:
    """From "30|10,21" to "P(V3=0|V1=0,V2=1)"."""
    parts = (",".join(f"V{word[0]}={word[1]}" for word in part.split(",")) for part in name.split("|"))
    return f"P({'|'.join(parts)})"


WORKED = pytest.mark.parametrize(
    ("shape", "printed", "size", "rank"),
    [
        ((2, 2, 2), TWO_TWO_TWO, (4, 4), 3),
        ((2, 3, 3), TWO_THREE_THREE, (10, 12), 8),
        ((2, 2, 3, 3), FOUR, (32, 24), 20),
    ],
)


@WORKED
def test_the_equations_are_the_printed_ones(
    shape: tuple[int, ...], printed: str, size: tuple[int, int], rank: int
) -> None:
    """Names of right-hand sides, unknowns and coefficients, their order, and the rank, are those of the supplement."""
    system = equations(shape, len(shape) - 1, smaller_tables(random_joint(shape, 1)))
    lines = [line.split(" = ") for line in printed.split("\n") if line]
    terms = [[term.split("*") for term in right.split(" + ")] for _, right in lines]
    assert system.right_names == tuple(unpack(left) for left, _ in lines)
    assert [dict(row) for row in system.coefficients] == [
        {unpack(z): unpack(c) for z, c in row} for row in terms
    ]
    assert system.matrix.shape == size
    assert np.linalg.matrix_rank(system.matrix) == rank
    levels = shape[-1] - 1
    assert rank == levels * (
        np.prod(shape[:-1]) - np.prod([k - 1 for k in shape[:-1]])
    )  # per level: all cells less the free ones


@WORKED
def test_the_numbers_are_those_the_names_say(
    shape: tuple[int, ...], printed: str, size: tuple[int, int], rank: int
) -> None:
    """Every coefficient and right-hand side is the conditional probability it is named after, taken from the full joint."""
    joint = random_joint(shape, 2)
    system = equations(shape, len(shape) - 1, smaller_tables(joint))
    chance = conditional_of(joint)
    for number, row in enumerate(system.coefficients):
        assert system.right[number] == pytest.approx(chance(system.right_names[number]))
        expected = [chance(row[unknown]) if unknown in row else 0.0 for unknown in system.unknowns]
        assert system.matrix[number] == pytest.approx(expected)
    # The true conditionals solve the system: it is consistent, only not unique.
    assert system.matrix @ [chance(name) for name in system.unknowns] == pytest.approx(system.right)


def conditional_of(joint: np.ndarray) -> Callable[[str], float]:
    """Reads "P(V3=0|V1=0)" and sums the joint."""

    def chance(name: str) -> float:
        event, condition = name[2:-1].split("|")
        fixed = {int(word[1]) - 1: int(word[3]) for word in condition.split(",")}
        axis, level = int(event[1]) - 1, int(event[3])
        pick = tuple(fixed.get(a, slice(None)) for a in range(joint.ndim))
        full = tuple({**fixed, axis: level}.get(a, slice(None)) for a in range(joint.ndim))
        return float(joint[full].sum() / joint[pick].sum())

    return chance


def test_equations_refuse_what_they_cannot_write() -> None:
    """A missing table, or a target that does not exist, is named."""
    tables = smaller_tables(random_joint((2, 2, 2), 1))
    with pytest.raises(ParameterError, match=r"target \(3\)"):
        equations((2, 2, 2), 3, tables)
    del tables[(0, 2)]
    with pytest.raises(ParameterError, match=r"\(0, 2\) is missing"):
        equations((2, 2, 2), 2, tables)
