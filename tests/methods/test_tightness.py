"""Sensitivities from both sides: on its worst neighbour every question costs what it declares, so that no wrong factor passes.

Replays alone show that no neighbour costs more than is declared; if none came near, half of the noise would pass as well. Here every
question of every method meets a neighbour that a factor of √2 too little noise would break.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from replaying import one_person, worst_ratios

from dpcipher.methods import (
    MWEM,
    Cipher,
    Fourier,
    FullHistogram,
    Independent,
    JunctionTree,
    Modips,
    PrivBayes,
    Synthesizer,
    Uniform,
)
from dpcipher.request.request import Auto
from dpcipher.schema.schema import Schema

UNITS = ("add-remove", "replace")
DELTAS = (None, 1e-5)
Cells = dict[tuple[int, ...], int]

pytestmark = [
    pytest.mark.parametrize("unit", UNITS),
    pytest.mark.parametrize("max_rows", [1, 3]),
    pytest.mark.parametrize("delta", DELTAS),
]


def frame(counts: Cells) -> pd.DataFrame:
    """Rows with so many in each cell."""
    codes = np.repeat(np.array(list(counts), dtype=np.int64), list(counts.values()), axis=0)
    return pd.DataFrame(codes, columns=[f"c{axis}" for axis in range(codes.shape[1])])


def schema_of(*shape: int) -> Schema:
    """Columns c0, c1, …"""
    return Schema.from_domain({f"c{axis}": size for axis, size in enumerate(shape)})


def worst(
    make: Callable[..., Synthesizer],
    shape: tuple[int, ...],
    counts: Cells,
    cells: Iterable[tuple[int, ...]],
    unit: str,
    max_rows: int,
    delta: float | None,
    *,
    epsilon: float = 1.0,
) -> dict[str, float]:
    """The worst ratio of every question over the neighbours that gain a person's rows in one of the cells."""
    method, rows = make(epsilon, unit=unit, max_rows=max_rows, delta=delta), frame(counts)
    return worst_ratios(method, rows, one_person(rows, unit, max_rows, cells), schema_of(*shape))


def far(delta: float | None) -> float:
    """A ratio of costs that √2 too little noise would take beyond 1: Gaussian costs go with the square of the scale."""
    return 0.7072 if delta is None else 0.5001


exactly = partial(pytest.approx, rel=1e-6)


def test_fourier_pays_for_opposite_rows(unit: str, max_rows: int, delta: float | None) -> None:
    """One-way parities of binary columns all change sign between opposite rows: twice what a row added moves them, in L1 and in L2."""
    counts = {(0, 0, 0): 7, (0, 1, 1): 5}
    found = worst(
        partial(Fourier, workload=1), (2, 2, 2), counts, [(1, 1, 1), (1, 0, 0)], unit, max_rows, delta
    )
    assert found == {"Fourier": exactly(1.0)}


def test_fourier_pays_for_the_last_levels(unit: str, max_rows: int, delta: float | None) -> None:
    """Added, a row of last levels moves the contrasts of 3 and 4 levels by all that is declared; replaced, by more than half of it."""
    counts = {(0, 0): 9, (2, 3): 5, (1, 1): 4}
    found = worst(Fourier, (3, 4), counts, product(range(3), range(4)), unit, max_rows, delta)
    assert found["Fourier"] <= 1 + 1e-9
    assert found["Fourier"] == exactly(1.0) if unit == "add-remove" else found["Fourier"] > 0.5


@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_fourier_pays_for_replaced_rows_of_pairs(
    shape: tuple[int, ...], unit: str, max_rows: int, delta: float | None
) -> None:
    """Of one column of three levels, and of all parities of two binary columns, a replaced row reaches well over half."""
    counts = dict.fromkeys(product(*map(range, shape)), 5)
    found = worst(Fourier, shape, counts, list(counts), unit, max_rows, delta)
    assert found["Fourier"] > (0.99 if unit == "add-remove" else 0.6)


@pytest.mark.parametrize(
    "make",
    [
        Cipher,
        partial(Cipher, workload=3, sets=2),
        partial(Cipher, workload=[("c0", "c1"), ("c2",)], weights={("c0", "c1"): 3.0, ("c2",): 1.0}),
        FullHistogram,
        Independent,
        partial(Modips, sets=2),
    ],
)
@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_tables_pay_for_rows_that_share_no_level(
    make: Callable[..., Synthesizer], unit: str, max_rows: int, delta: float | None
) -> None:
    """Every table loses a person's rows in one cell and gains them in another."""
    counts = {(0, 0, 0): 30, (1, 1, 1): 20}
    found = worst(make, (2, 3, 2), counts, [(1, 2, 1)], unit, max_rows, delta)
    assert found
    assert all(ratio == exactly(1.0) for ratio in found.values())


@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_the_number_of_rows_pays_for_a_person(unit: str, max_rows: int, delta: float | None) -> None:
    """It is asked where rows may come and go, and only there."""
    found = worst(Uniform, (2, 2), {(0, 0): 40}, [(1, 1)], unit, max_rows, delta)
    assert found == ({"number": exactly(1.0)} if unit == "add-remove" else {})


def test_mwem_pays_for_the_worst_table(unit: str, max_rows: int, delta: float | None) -> None:
    """From a cell that is emptier than the uniform table to one that is fuller, a replaced row adds two to the error."""
    counts = {(0, 0): 90, (0, 1): 5, (1, 0): 6, (1, 1): 30}
    found = worst(partial(MWEM, rounds=1), (2, 2), counts, list(counts), unit, max_rows, delta)
    assert found["choice"] == exactly(1.0)
    assert found["c0"] == exactly(1.0)


def test_mwem_pays_for_the_worst_cell(unit: str, max_rows: int, delta: float | None) -> None:
    """A single count changes by a person's rows, under replacement too: no more is paid, and no less."""
    counts = {(0, 0): 90, (0, 1): 5, (1, 0): 6, (1, 1): 30}
    make = partial(MWEM, rounds=1, queries="cells")
    found = worst(make, (2, 2), counts, list(counts), unit, max_rows, delta)
    assert found["choice"] == exactly(1.0)
    assert found["a"] == exactly(1.0)


def test_priv_bayes_pays_for_coverage(unit: str, max_rows: int, delta: float | None) -> None:
    """Copies of one another are fully covered; a person off the diagonal takes away all that F declares."""
    make = partial(PrivBayes, score="F", theta=1e-3)
    copies, constant = {(0, 0): 40, (1, 1): 40}, {(0, 0): 80}
    counts = copies if unit == "add-remove" else constant
    found = worst(make, (2, 2), counts, product(range(2), repeat=2), unit, max_rows, delta, epsilon=20.0)
    assert found["choice"] == exactly(1.0)


def crossing(levels: int, max_rows: int) -> Cells:
    """Two columns as unlike independence, in sign, as makes a replaced row count most.

    One cell is too full in a row and a column that are too empty elsewhere, another too empty where the rest is too full; all margins
    are equal. A person who moves from the second to the first moves the table, and both margins, each against the sign of the rest.
    """
    step = 4 * max_rows
    table = np.full((levels, levels), step * (levels - 2) + 2 * max_rows)
    table[0, 2:] -= step
    table[2:, 0] -= step
    table[1, 2:] += step
    table[2:, 1] += step
    table[0, 0] += step * (levels - 2)
    table[1, 1] -= step * (levels - 2)
    assert len({*table.sum(axis=0), *table.sum(axis=1)}) == 1
    return {cell: int(count) for cell, count in np.ndenumerate(table)}


def corner(n_rows: int) -> Cells:
    """All rows in one cell but one, in the opposite corner: another one there adds nearly two to the dependence."""
    return {(0, 0, 0): n_rows, (1, 1, 1): 1}


def moved_to(counts: Cells, cell: tuple[int, ...], origin: tuple[int, ...], max_rows: int) -> Cells:
    """The same with a person's rows in another cell."""
    return counts | {origin: counts[origin] - max_rows, cell: counts.get(cell, 0) + max_rows}


def ratios_between(
    method: Synthesizer, here: Cells, there: Cells, shape: tuple[int, ...], seed: int = 0
) -> dict[str, float]:
    """How near two tables bring every question to what it declares."""
    return worst_ratios(method, frame(here), [frame(there)], schema_of(*shape), seed=seed)


def dependence_ratio(method: Synthesizer, shape: tuple[int, ...]) -> float:
    """Of a choice by n·R: a row added in the far corner of a table of this shape moves it by nearly two, one that moves across by nearly three."""
    max_rows = method.protects.max_rows
    if method.unit == "add-remove":
        here = corner(2000)
        there = here | {(1, 1, 1): 1 + max_rows}
    else:
        here, shape = crossing(24, max_rows), (24, 24)
        there = moved_to(here, (0, 0), (1, 1), max_rows)
    return ratios_between(method, here, there, shape)["choice"]


def most_of(unit: str, delta: float | None) -> float:
    """What of a declared n·R such a person must use up; a choice costs its square under rho."""
    return (0.99 if unit == "add-remove" else 0.85) ** (1 if delta is None else 2)


def test_priv_bayes_pays_for_dependence(unit: str, max_rows: int, delta: float | None) -> None:
    """R: nearly two for a row added in the far corner, nearly three for one that moves across."""
    method = PrivBayes(20.0, unit=unit, max_rows=max_rows, delta=delta, score="R", theta=1e-3)
    assert dependence_ratio(method, (3, 3, 3)) > most_of(unit, delta)


def test_priv_bayes_pays_for_information(unit: str, max_rows: int, delta: float | None) -> None:
    """I: constant columns, and a person who moves to the far corner."""
    if unit == "add-remove":
        with pytest.raises(ValueError, match="score"):
            PrivBayes(20.0, unit=unit, score="I")
        return
    method = PrivBayes(20.0, unit=unit, max_rows=max_rows, delta=delta, score="I", theta=1e-3)
    here = {(0, 0): 3000}
    found = ratios_between(method, here, moved_to(here, (1, 1), (0, 0), max_rows), (2, 2))
    assert found["choice"] > (0.99 if max_rows == 1 else 0.85) ** (1 if delta is None else 2)


def test_the_junction_tree_pays_for_every_pair(unit: str, max_rows: int, delta: float | None) -> None:
    """Three columns alike, so that all pairs move together: by two whole rows for one added, by three of four for one that moves."""
    method = JunctionTree(20.0, unit=unit, max_rows=max_rows, delta=delta, selection="laplace")
    if unit == "add-remove":
        here, shape = corner(2000), (2, 2, 2)
        there = here | {(1, 1, 1): 1 + max_rows}
    else:
        # One row has crossed before, so that rounding down to whole rows does not hide how far the next ones go.
        here, shape = moved_to(crossing(48, max_rows), (0, 0), (1, 1), 1), (48, 48)
        there = moved_to(here, (0, 0), (1, 1), max_rows)
    found = ratios_between(method, here, there, shape)
    assert found["dependence"] >= (0.99 if unit == "add-remove" else far(delta))
    assert all(ratio == exactly(1.0) for what, ratio in found.items() if what.startswith("c"))


def test_the_junction_tree_pays_for_its_best_score(unit: str, max_rows: int, delta: float | None) -> None:
    """Every round on a person as bad for n·R as for PrivBayes: nearly two rows for one added, most of three for one that moves."""
    method = JunctionTree(20.0, unit=unit, max_rows=max_rows, delta=delta, theta=1e-3)
    assert dependence_ratio(method, (2, 2, 2)) > most_of(unit, delta)


def test_a_choice_of_tables_pays_for_every_distance(unit: str, max_rows: int, delta: float | None) -> None:
    """A person between cells that are emptier and fuller than independence in every pair at once."""
    method = Cipher(40.0, unit=unit, max_rows=max_rows, delta=delta, workload=Auto(max_order=2, max_cells=20))
    here = {(0, 0, 0): 100, (1, 1, 1): 100, (2, 2, 2): 100, (0, 1, 2): 9}
    there = (
        here | {(0, 0, 0): 100 + max_rows}
        if unit == "add-remove"
        else moved_to(here, (0, 0, 0), (0, 1, 2), max_rows)
    )
    found = ratios_between(method, here, there, (3, 3, 3))
    assert found["distances"] == exactly(1.0)


def test_a_shortlist_pays_for_its_best_score(
    unit: str, max_rows: int, delta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same move, where so many tables cannot be told apart that some of them are chosen unread."""
    for name, value in (("MAX_TVD", 0.0), ("GOOD_NOISE", 0.0), ("shortlist_length", lambda *_: 4)):
        monkeypatch.setattr(f"dpcipher.selection.rounds.{name}", value)
    epsilon = max_rows * (2 if unit == "replace" else 1) * (0.12 if delta is None else 0.03)
    method = Cipher(
        epsilon, unit=unit, max_rows=max_rows, delta=delta, workload=Auto(max_order=2, max_cells=100)
    )
    same = [(level,) * 6 for level in range(3)]
    here = dict.fromkeys(same, 1000) | {(0, 1, 2, 0, 1, 2): 9}
    there = (
        here | {same[0]: 1000 + max_rows}
        if unit == "add-remove"
        else moved_to(here, same[0], (0, 1, 2, 0, 1, 2), max_rows)
    )
    found = ratios_between(method, here, there, (3,) * 6, seed=2)
    (listed,) = [ratio for what, ratio in found.items() if what.isdigit()]
    assert listed == exactly(1.0)
