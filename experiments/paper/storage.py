"""Storage (the paper's figure 1): how many numbers low-order tables hold, against the full table.

Two counts are used in the paper without being told apart. What must be stored is the *cells* of the measured tables. What the paper
counts are *parameters*: the free numbers of a log-linear model with all interactions up to an order, Σ_{|S| ≤ k} Π_{i ∈ S} (K_i − 1), sometimes
with the constant (S empty), sometimes without.
"""

from collections.abc import Sequence
from math import prod

from dpcipher.tables.domain import Shape

ORDERS = (1, 2, 3, 4)
LARGEST = 12
PANELS: dict[str, Shape] = {
    "every attribute binary": (2,) * LARGEST,
    "every attribute with 3 levels": (3,) * LARGEST,
    "2 to 5 levels": tuple(2 + number % 4 for number in range(LARGEST)),
}
SIMULATED: Shape = (2, 2, 3, 3)
BANKRUPTCY: Shape = (6, 9, 3, 3, 3)
TEN: Shape = (5,) * 10


def stored_cells(shape: Shape, order: int) -> int:
    """The cells of all tables of one order: what a release of them holds.

    >>> stored_cells((2, 2, 3, 3), 2)
    37
    """
    return _elementary(shape, order)[order]


def parameters(shape: Shape, order: int, *, constant: bool = True) -> int:
    """The free numbers of a model with all interactions up to an order.

    >>> parameters((2, 2, 3, 3), 2), parameters((2, 2, 3, 3), 3)
    (20, 32)
    """
    return sum(_elementary([size - 1 for size in shape], order)) - (0 if constant else 1)


def _elementary(values: Sequence[int], order: int) -> list[int]:
    """The elementary symmetric polynomials e_0…e_order: sums of products over all subsets of a size, without listing them."""
    sums = [1] + [0] * order
    for value in values:
        for k in range(order, 0, -1):
            sums[k] += value * sums[k - 1]
    return sums


def share_stored(shape: Shape, order: int) -> float:
    """The cells of all tables of one order over those of the full table."""
    return stored_cells(shape, order) / prod(shape)


def share_of_parameters(shape: Shape, order: int) -> float:
    """The parameters up to one order over the cells of the full table: the paper's cost; order 0 is the full table.

    >>> share_of_parameters((2, 2, 3, 3), 2) == 20 / 36
    True
    """
    return parameters(shape, order or len(shape)) / prod(shape)
