"""The counts of storage against a listing of all subsets, and against what the paper prints."""

from itertools import combinations
from math import prod

import pytest

from experiments.paper.judge import FAILS, load_claims
from experiments.paper.quantities import Condition, Results
from experiments.paper.storage import (
    BANKRUPTCY,
    LARGEST,
    ORDERS,
    PANELS,
    SIMULATED,
    TEN,
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
    """20, 32, 36, 149, 1,458, 62,200, 8,440 and 9,765,625 are all found, the last but one at order three; the costs are swapped."""
    found = [parameters(SIMULATED, 2), parameters(SIMULATED, 3), prod(SIMULATED)]
    found += [parameters(BANKRUPTCY, 2, constant=False), prod(BANKRUPTCY)]
    found += [parameters(TEN, order, constant=False) for order in (4, 3)]
    assert [*found, prod(TEN)] == [20, 32, 36, 149, 1458, 62_200, 8_440, 9_765_625]


def test_the_notes_beside_the_counts_are_right() -> None:
    """Percentages and folds, by cells and by parameters."""
    whole = prod(TEN)
    four, two = parameters(TEN, 4, constant=False), parameters(TEN, 2, constant=False)
    shares = [f"{1 - n / whole:.2%}" for n in (four, stored_cells(TEN, 4), two)]
    assert [*shares, two] == ["99.36%", "98.66%", "99.99%", 760]
    pairs = parameters(BANKRUPTCY, 2, constant=False)
    assert (f"{pairs / 1458:.1%}", f"{1458 / pairs:.1f}") == ("10.2%", "9.8")


def test_no_claim_of_storage_holds() -> None:
    """37 and 60 cells are stored where the full table has 36; the counts of section 1.2 do not agree either."""
    claims = [c for part in ("storage", "arithmetic") for c in load_claims()[part] if c.rules]
    findings = {claim.key: claim.judge(Results(Condition())) for claim in claims}
    assert {finding.outcome for finding in findings.values()} == {FAILS}
    assert findings["count-1"].found.startswith("37–60; in 0 of 2")
    assert findings["count-8"].found.startswith("6.75; in 0 of 1")


def test_figure_1_is_judged_in_all_its_panels() -> None:
    """At twelve attributes all is drastic but 4-way tables of binary ones; at four or five, pairs can have more cells than the full table."""
    (claim,) = [claim for claim in load_claims()["storage"] if claim.key == "storage"]
    found = claim.judge(Results(Condition())).found
    points = [(name, k, p) for name in PANELS for k in ORDERS for p in range(k + 1, LARGEST + 1)]
    few = sum(stored_cells(PANELS[n][:p], k) * 10 <= prod(PANELS[n][:p]) for n, k, p in points)
    assert f"in {few} of {len(points)}" in found
    assert stored_cells((2,) * 4, 2) > 2**4
