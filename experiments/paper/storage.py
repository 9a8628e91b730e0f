"""Storage (the paper's figure 1): how many numbers low-order tables hold, against the full table.

Two counts are used in the paper without being told apart. What must be stored is the *cells* of the measured tables. What the paper
counts are *parameters*: the free numbers of a log-linear model with all interactions up to an order, Σ_{|S| ≤ k} Π_{i ∈ S} (K_i − 1), sometimes
with the constant (S empty), sometimes without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from dpcipher.tables.domain import Shape
from experiments.paper.claims import FAILS, HOLDS, Claim, Finding

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


# A "drastic" reduction leaves at most a tenth.
DRASTIC = 0.1


def _outcome(holds: bool) -> str:
    return HOLDS if holds else FAILS


def drastic_reduction(view: object) -> Finding:
    """In every panel of figure 1, at every order and number of attributes above it, at most a tenth of the full table's cells."""
    shares = {
        (panel, order, p): stored_cells(levels[:p], order) / full_cells(levels[:p])
        for panel, levels in PANELS.items()
        for order in ORDERS
        for p in range(order + 1, LARGEST + 1)
    }
    few = sum(share <= DRASTIC for share in shares.values())
    more = sum(share >= 1 for share in shares.values())
    last = max(stored_cells(levels, 4) / full_cells(levels) for levels in PANELS.values())
    found = f"at most a tenth in {few} of {len(shares)} points, no saving at all in {more}; at p = {LARGEST} at most {last:.0%}; needed: all"
    binary = [min(shares["every attribute binary", 2, p], 2.0) for p in (4, 6, 8, 10, 12)]
    return Finding(_outcome(few == len(shares)), found, tuple(binary), DRASTIC)


def memory(view: object) -> Finding:
    """Algorithm 1 never holds more cells at once than a tenth of the full table."""
    return Finding(
        FAILS, "Algorithm 1 ends with the joint of all attributes: 100 % of the full table; needed: a tenth"
    )


def four_way_count(view: object) -> Finding:
    """62,200 cells and 95.4 %."""
    count, whole = parameters(TEN, 4, constant=False), full_cells(TEN)
    cells = stored_cells(TEN, 4)
    return Finding(
        FAILS,
        f"{cells:,} cells: {1 - cells / whole:.2%} less; {count:,} are parameters: {1 - count / whole:.2%} less; printed: 95.4 %",
    )


def two_way_count(view: object) -> Finding:
    """8,440 cells and 99.99 %."""
    count, cells = parameters(TEN, 2, constant=False), stored_cells(TEN, 2)
    return Finding(
        FAILS,
        f"{cells:,} cells, {count} parameters: {1 - count / full_cells(TEN):.2%} less; 8,440 are the parameters of the 120 three-way tables",
    )


def simulated_count(view: object) -> Finding:
    """32 and 20 cells instead of 36."""
    two, three = stored_cells(SIMULATED, 2), stored_cells(SIMULATED, 3)
    return Finding(
        _outcome(two < 36), f"{two} and {three} cells must be stored, more than 36 (20 and 32 are parameters)"
    )


def _bankruptcy_sizes() -> tuple[int, int, int]:
    """Parameters and cells of all pairs, and the cells of the full table."""
    return (
        parameters(BANKRUPTCY, 2, constant=False),
        stored_cells(BANKRUPTCY, 2),
        full_cells(BANKRUPTCY),
    )


def bankruptcy_count(view: object) -> Finding:
    """149, about a tenth of 1,458."""
    pairs, cells, whole = _bankruptcy_sizes()
    return Finding(
        _outcome(abs(cells / whole - 0.1) < 0.025),
        f"{cells} cells: {cells / whole:.1%} ({pairs} are parameters: {pairs / whole:.1%}); needed: 10 ± 2.5 %",
    )


def eight_fold(view: object) -> Finding:
    """About eight times the storage."""
    pairs, cells, whole = _bankruptcy_sizes()
    return Finding(
        _outcome(abs(whole / cells - 8) < 1),
        f"{whole / cells:.2f}-fold by cells, {whole / pairs:.1f}-fold by parameters; needed: 7–9",
    )


STORAGE_CLAIMS = (
    Claim(
        "storage",
        "CIPHER has drastically lower requirements on computational storage",
        "abstract, 1.2, figure 1",
        "1- to 4-way tables hold at most a tenth of the full table's cells at every point of all panels of figure 1",
        drastic_reduction,
    ),
    Claim(
        "memory",
        "… and memory",
        "abstract, 1.2",
        "the largest table that Algorithm 1 holds has at most a tenth of the full table's cells",
        memory,
    ),
    Claim(
        "count-4",
        "There is a 95.4% reduction in the number of cells – 62,200 – if CIPHER uses the set of four-way histograms (210)",
        "1.2",
        "count and percentage computed again",
        four_way_count,
    ),
    Claim(
        "count-2",
        "… 99.99% … 8,440 … the set of two-way histograms (45)",
        "1.2",
        "count and percentage computed again",
        two_way_count,
    ),
    Claim(
        "count-1",
        "Q₃ contains all 3-way marginals, leading to 32 cells (88.9%); Q₂ … 20 cells (55.6%)",
        "3.1",
        "cells that must be stored, against 36",
        simulated_count,
    ),
    Claim(
        "count-149",
        "The size of Q (the number of cell counts) is 149, which is about 10% of … 1,458 cells",
        "3.2",
        "cells that must be stored, 10 ± 2.5 % of 1,458",
        bankruptcy_count,
    ),
    Claim(
        "count-8",
        "… at a much higher storage cost (∼8 folds higher) than CIPHER and MWEM",
        "3.2",
        "1,458 over the cells that must be stored, 7 to 9",
        eight_fold,
    ),
)
