"""The counts of storage against a listing of all subsets, and against what the paper prints."""

from itertools import combinations
from math import prod

import pytest

from experiments.paper.claims import FAILS, HOLDS
from experiments.paper.storage import (
    BANKRUPTCY,
    LARGEST,
    ORDERS,
    PANELS,
    STORAGE_CLAIMS,
    TEN,
    checks,
    full_cells,
    parameters,
    stored_cells,
)

SHAPES = [(2, 2, 3, 3), (6, 9, 3, 3, 3), (5,) * 6, (2, 5, 3, 4, 2, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_counts_equal_a_listing_of_all_subsets(shape: tuple[int, ...], order: int) -> None:
    """Cells of all tables of an order; parameters of all orders up to it."""
    cells = sum(prod(sizes) for sizes in combinations(shape, order))
    free = sum(prod(size - 1 for size in sizes) for k in range(order + 1) for sizes in combinations(shape, k))
    assert (cells, free, free - 1) == (
        stored_cells(shape, order),
        parameters(shape, order),
        parameters(shape, order, constant=False),
    )


def test_the_printed_counts_are_parameters() -> None:
    """20, 32, 36, 149, 1,458, 62,200, 8,440 and 9,765,625 are all found, the last but one at order three."""
    small = (2, 2, 3, 3)
    found = [
        parameters(small, 2),
        parameters(small, 3),
        full_cells(small),
        parameters(BANKRUPTCY, 2, constant=False),
    ]
    large = [
        full_cells(BANKRUPTCY),
        parameters(TEN, 4, constant=False),
        parameters(TEN, 3, constant=False),
        full_cells(TEN),
    ]
    assert found + large == [20, 32, 36, 149, 1458, 62_200, 8_440, 9_765_625]


def test_what_does_not_agree_is_said() -> None:
    """The swapped costs, the two percentages' owners and the eight-fold are marked; nothing else is."""
    wrong = {check.printed for check in checks() if not check.agrees}
    assert wrong == {"cost 32 for 2-way and 20 for 3-way", "~8-fold", "95.4 %", "8,440"}


def test_experiment_1_saves_no_storage() -> None:
    """37 and 60 cells are stored where the full table has 36; the counts of section 1.2 do not agree either."""
    outcomes = {claim.key: claim.judge(None).outcome for claim in STORAGE_CLAIMS}
    assert outcomes["count-1"] == FAILS
    assert outcomes["count-4"] == outcomes["count-2"] == FAILS
    assert HOLDS not in outcomes.values()


def test_figure_1_is_judged_in_all_its_panels() -> None:
    """At twelve attributes all is drastic but 4-way tables of binary ones; at four or five, pairs can have more cells than the full table."""
    (claim,) = [claim for claim in STORAGE_CLAIMS if claim.key == "storage"]
    found = claim.judge(None).found
    points = [(name, k, p) for name in PANELS for k in ORDERS for p in range(k + 1, LARGEST + 1)]
    few = sum(stored_cells(PANELS[n][:p], k) * 10 <= full_cells(PANELS[n][:p]) for n, k, p in points)
    assert f"in {few} of {len(points)} points" in found
    assert stored_cells((2,) * 4, 2) > full_cells((2,) * 4)
