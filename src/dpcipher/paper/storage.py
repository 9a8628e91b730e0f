"""Storage (the paper's figure 1): how many numbers low-order tables hold, against the full table.

Two counts are used in the paper without being told apart. What must be stored is the *cells* of the measured tables. What the paper
counts are *parameters*: the free numbers of a log-linear model with all interactions up to an order, Σ_{|S| ≤ k} Π_{i ∈ S} (K_i − 1), sometimes
with the constant (S empty), sometimes without.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from dpcipher.marginals.arrays import Shape
from dpcipher.paper.claims import CONFIRMED, REFUTED, Claim, judge

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


def full_cells(shape: Shape) -> int:
    """The cells of the full table."""
    return prod(shape)


def _elementary(values: Sequence[int], order: int) -> list[int]:
    """The elementary symmetric polynomials e_0…e_order: sums of products over all subsets of a size, without listing them."""
    sums = [1] + [0] * order
    for value in values:
        for k in range(order, 0, -1):
            sums[k] += value * sums[k - 1]
    return sums


@dataclass(frozen=True)
class Check:
    """A number that the paper prints, what it says it is, what it is, and whether the two agree."""

    printed: str
    says: str
    computed: str
    agrees: bool


def checks() -> tuple[Check, ...]:
    """Every count of the paper, computed again: of 2×2×3×3, of the bankruptcy data, and of ten attributes with 5 levels."""
    return (*_simulated_checks(), *_bankruptcy_checks(), *_ten_checks())


def _simulated_checks() -> tuple[Check, ...]:
    two, three, full = parameters(SIMULATED, 2), parameters(SIMULATED, 3), full_cells(SIMULATED)
    return (
        Check(
            "20",
            "cells of the 2-way tables of 2×2×3×3",
            f"{two} parameters with the constant; {stored_cells(SIMULATED, 2)} cells",
            two == 20,
        ),
        Check(
            "32",
            "cells of the 3-way tables of 2×2×3×3",
            f"{three} parameters with the constant; {stored_cells(SIMULATED, 3)} cells",
            three == 32,
        ),
        Check("36", "cells of the full table of 2×2×3×3", f"{full} cells", full == 36),
        Check(
            "cost 32 for 2-way and 20 for 3-way",
            "the costs that metrics are normalised by",
            f"{two} for 2-way, {three} for 3-way: swapped",
            False,
        ),
    )


def _bankruptcy_checks() -> tuple[Check, ...]:
    pairs, pair_cells = parameters(BANKRUPTCY, 2, constant=False), stored_cells(BANKRUPTCY, 2)
    full = full_cells(BANKRUPTCY)
    return (
        Check(
            "149",
            "cells of the ten pairs of 6×9×3×3×3",
            f"{pairs} parameters without the constant; {pair_cells} cells",
            pairs == 149,
        ),
        Check("1,458", "cells of the full bankruptcy table", f"{full:,} cells", full == 1458),
        Check(
            "~8-fold",
            "full bankruptcy table against the pairs",
            f"{full / pairs:.1f}-fold by parameters, {full / pair_cells:.2f}-fold by cells",
            False,
        ),
    )


def _ten_checks() -> tuple[Check, ...]:
    two, three, four = (parameters(TEN, order, constant=False) for order in (2, 3, 4))
    full = full_cells(TEN)
    return (
        Check("9,765,625", "cells of ten attributes with 5 levels", f"{full:,} cells", full == 9_765_625),
        Check(
            "62,200",
            "cells of the 210 four-way tables of the ten",
            f"{four:,} parameters without the constant; {stored_cells(TEN, 4):,} cells",
            four == 62_200,
        ),
        Check(
            "95.4 %",
            "reduction by the four-way tables",
            f"{1 - four / full:.2%} by parameters, {1 - stored_cells(TEN, 4) / full:.2%} by cells",
            False,
        ),
        Check(
            "8,440",
            "cells of the 45 two-way tables of the ten",
            f"{three:,} parameters of the *three*-way tables; two-way: {two:,} parameters, {stored_cells(TEN, 2):,} cells",
            False,
        ),
        Check(
            "99.99 %",
            "reduction by the two-way tables",
            f"{1 - two / full:.2%} by two-way parameters, {1 - three / full:.2%} by the printed 8,440",
            f"{1 - two / full:.2%}" == "99.99%",
        ),
    )


ERRATA = (
    'The "number of cells" is the number of log-linear parameters, with the constant for 20 and 32, without it for 149, 62,200 and 8,440.',
    "The costs of the 2-way and 3-way tables are swapped in the text of experiment 1 (32 and 20 instead of 20 and 32).",
    "8,440 belongs to the 120 three-way tables, not to the 45 two-way tables, whose count is 760; the printed 99.99 % belongs to 760.",
    "62,200 of 9,765,625 is a reduction of 99.36 %, not 95.4 %.",
    "What must be stored are cells: 37 (2-way) and 60 (3-way) of 2×2×3×3, more than the 36 of the full table. Experiment 1 has no storage saving.",
)


def storage_claims() -> Iterator[Claim]:
    """The paper's claims about storage (figure 1 and section 1.2), which need no run."""
    share = stored_cells(TEN, 2) / full_cells(TEN)
    yield Claim(
        "low-order tables need drastically fewer cells than the full table",
        "figure 1",
        f"ten attributes of 5 levels: {stored_cells(TEN, 2):,} cells in pairs, {stored_cells(TEN, 4):,} in 4-way tables, {full_cells(TEN):,} in all",
        judge(share < 0.01),
        "the same tables are stored; the table engine also needs the full table in memory, the rows engine does not",
    )
    count, whole = parameters(TEN, 4, constant=False), full_cells(TEN)
    yield Claim(
        "62,200 cells for the 210 four-way tables, a reduction of 95.4 %",
        "section 1.2",
        f"{count:,} are parameters: {1 - count / whole:.2%}; the cells are {stored_cells(TEN, 4):,}: {1 - stored_cells(TEN, 4) / whole:.2%}",
        REFUTED,
        but="(the count is right as parameters, the percentage is not)",
    )
    yield Claim(
        "8,440 cells for the 45 two-way tables, a reduction of 99.99 %",
        "section 1.2",
        f"8,440 are the parameters of the 120 three-way tables; two-way: {parameters(TEN, 2, constant=False)} parameters, {stored_cells(TEN, 2):,} cells",
        REFUTED,
        but="(99.99 % is right, for 760)",
    )
    two, three = stored_cells(SIMULATED, 2), stored_cells(SIMULATED, 3)
    yield Claim(
        "20 and 32 cells instead of 36 in experiment 1",
        "section 3.1",
        f"{two} and {three} cells must be stored (20 and 32 are parameters): no saving; the text also swaps the two costs",
        judge(two < 36),
    )
    pairs, cells = parameters(BANKRUPTCY, 2, constant=False), stored_cells(BANKRUPTCY, 2)
    whole = full_cells(BANKRUPTCY)
    yield Claim(
        "149 cells, about 10 % of the 1,458 of the full table (or ~8-fold)",
        "section 3.2",
        f"{pairs} parameters: {pairs / whole:.1%}, {whole / pairs:.1f}-fold; {cells} cells: {cells / whole:.1%}, {whole / cells:.2f}-fold",
        CONFIRMED,
        but="(10 % as parameters; 8-fold is neither)",
    )
