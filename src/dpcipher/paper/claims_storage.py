"""The paper's claims about storage (figure 1 and section 1.2)."""

from dpcipher.paper.claims import CONFIRMED, REFUTED, Claim, judge
from dpcipher.paper.storage import BANKRUPTCY, SIMULATED, TEN, full_cells, parameters, stored_cells


def storage_claims() -> list[Claim]:
    """Counts that need no run."""
    return [_drastic(), _four_way(), _two_way(), _simulated(), _bankruptcy()]


def _drastic() -> Claim:
    share = stored_cells(TEN, 2) / full_cells(TEN)
    return Claim(
        "low-order tables need drastically fewer cells than the full table",
        "figure 1",
        f"ten attributes of 5 levels: {stored_cells(TEN, 2):,} cells in pairs, {stored_cells(TEN, 4):,} in 4-way tables, {full_cells(TEN):,} in all",
        judge(share < 0.01),
        "the same tables are stored; the table engine also needs the full table in memory, the rows engine does not",
    )


def _four_way() -> Claim:
    count, whole = parameters(TEN, 4, constant=False), full_cells(TEN)
    return Claim(
        "62,200 cells for the 210 four-way tables, a reduction of 95.4 %",
        "section 1.2",
        f"{count:,} are parameters: {1 - count / whole:.2%}; the cells are {stored_cells(TEN, 4):,}: {1 - stored_cells(TEN, 4) / whole:.2%}",
        REFUTED,
        but="(the count is right as parameters, the percentage is not)",
    )


def _two_way() -> Claim:
    return Claim(
        "8,440 cells for the 45 two-way tables, a reduction of 99.99 %",
        "section 1.2",
        f"8,440 are the parameters of the 120 three-way tables; two-way: {parameters(TEN, 2, constant=False)} parameters, {stored_cells(TEN, 2):,} cells",
        REFUTED,
        but="(99.99 % is right, for 760)",
    )


def _simulated() -> Claim:
    two, three = stored_cells(SIMULATED, 2), stored_cells(SIMULATED, 3)
    return Claim(
        "20 and 32 cells instead of 36 in experiment 1",
        "section 3.1",
        f"{two} and {three} cells must be stored (20 and 32 are parameters): no saving; the text also swaps the two costs",
        judge(two < 36),
    )


def _bankruptcy() -> Claim:
    pairs, cells, whole = (
        parameters(BANKRUPTCY, 2, constant=False),
        stored_cells(BANKRUPTCY, 2),
        full_cells(BANKRUPTCY),
    )
    return Claim(
        "149 cells, about 10 % of the 1,458 of the full table (or ~8-fold)",
        "section 3.2",
        f"{pairs} parameters: {pairs / whole:.1%}, {whole / pairs:.1f}-fold; {cells} cells: {cells / whole:.1%}, {whole / cells:.2f}-fold",
        CONFIRMED,
        but="(10 % as parameters; 8-fold is neither)",
    )
