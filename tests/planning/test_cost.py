"""Memory is foreseen within a factor of two of what is then allocated; the amount of work grows as the engines' loops do."""

import gc
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from dpcipher.curator.count import count_codes
from dpcipher.curator.count_source import receive
from dpcipher.curator.request import MeasurementRequest, make_request
from dpcipher.curator.session import release_of
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.table import solve_table
from dpcipher.planning.cost import Cost, foresee, rows_work, table_work
from dpcipher.planning.rehearsal import reduced, whole
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.unit import Unit
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema


def order(shape: tuple[int, ...], workload: int = 2) -> MeasurementRequest:
    """All tables of an order over columns of these sizes, at epsilon 1."""
    schema = Schema.from_domain({f"c{number}": size for number, size in enumerate(shape)})
    return make_request(schema, workload=workload, budget=Budget.parse(epsilon=1), unit=Unit("add-remove"))


def invented(request: MeasurementRequest, n_rows: int) -> np.ndarray:
    """Coded rows, every level equally likely."""
    rng = np.random.default_rng(3)
    return np.stack([rng.integers(0, size, n_rows) for size in request.schema.shape], axis=1).astype(np.int32)


def release(request: MeasurementRequest, n_rows: int) -> Release:
    """A release of invented rows with seeded noise."""
    tally = count_codes(invented(request, n_rows), request.schema.shape, request.axes)
    return release_of(tally, request, Draws.seeded(1))


def peak(work: Callable[[], object]) -> int:
    """The most bytes that were allocated at once."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def within_a_factor_of_two(foreseen: int, measured: int) -> bool:
    """The promise of a plan."""
    return measured / 2 <= foreseen <= 2 * measured


@pytest.mark.parametrize("shape", [(5,) * 8, (10,) * 6, (60, 60, 20)])
def test_memory_of_the_table_engine(shape: tuple[int, ...]) -> None:
    """The full table dominates."""
    request = order(shape)
    noisy = release(request, 5000)
    foreseen = foresee(request, 5000)
    measured = peak(lambda: solve_table(denoise(noisy.reconcile(0)), sweeps=1))
    assert foreseen.engine == "table"
    assert within_a_factor_of_two(foreseen.solve_bytes, measured), (foreseen.solve_bytes, measured)


@pytest.mark.parametrize(
    ("shape", "workload"), [((10,) * 10, 2), ((5,) * 16, 2), ((30,) * 6, 2), ((6,) * 9, 3)]
)
def test_memory_of_the_rows_engine(shape: tuple[int, ...], workload: int) -> None:
    """The population and its groups dominate."""
    request = order(shape, workload)
    noisy = release(request, 20_000)
    foreseen = foresee(request, 20_000)
    measured = peak(lambda: solve_rows(denoise(noisy.reconcile(0))))
    assert foreseen.engine == "rows"
    assert within_a_factor_of_two(foreseen.solve_bytes, measured), (foreseen.solve_bytes, measured)


@pytest.mark.parametrize(
    ("shape", "n_rows"), [((4, 8, 5, 2, 7, 5, 3), 60_000), ((40, 40, 40, 5), 5_000), ((2,) * 25, 30_000)]
)
def test_memory_of_measuring(shape: tuple[int, ...], n_rows: int) -> None:
    """A batch of rows, or the cells while noise is drawn on them."""
    request = order(shape)
    rows = request.schema.decode(invented(request, n_rows), np.random.default_rng(0))
    draws = Draws.secure()
    draws.noise.add(np.zeros(1, np.int64), request.mechanisms[0])
    foreseen = foresee(request, n_rows).measure_bytes
    measured = peak(lambda: release_of(receive(rows, request.schema).tally(request.axes), request, draws))
    assert within_a_factor_of_two(foreseen, measured), (foreseen, measured)


def test_work_of_the_table_engine_follows_its_loops() -> None:
    """Ten times the levels of the last column is about ten times the passes; sweeps add up."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    small, large = table_work((20, 20, 10), pairs, 5), table_work((20, 20, 80), pairs, 5)
    once, twice = table_work((20, 20, 10), pairs, 1), table_work((20, 20, 10), pairs, 2)
    assert 2 < large / small < 8
    assert twice - once == pytest.approx((small - once) / 4)


def test_work_of_the_rows_engine_is_linear_in_rows_and_tables() -> None:
    """Whatever the number of cells."""
    pairs = [(i, j) for j in range(30) for i in range(j)]
    assert rows_work((5,) * 30, pairs, 2000) == 2 * rows_work((5,) * 30, pairs, 1000)
    assert rows_work((5,) * 30, pairs, 1000) > 15 * rows_work((5,) * 6, pairs[:15], 1000)


def test_a_rehearsal_is_small_and_keeps_to_the_workload() -> None:
    """Large schemas are cut down; small ones are rehearsed as they are."""
    request = order((74, 7, 16, 7, 14, 6, 5, 2, 99, 85, 42, 2, 9, 28))
    shape, tables = reduced(
        request.schema.shape, [request.schema.axes(attrs) for attrs in request.workload.tables]
    )
    assert np.prod(shape) <= 8192
    assert {axis for axes in tables for axis in axes} == set(range(len(shape)))
    assert whole(request).n_cells <= 20_000 + max(request.workload.cells)
    few = order((3, 4, 5))
    assert whole(few).n_cells == few.workload.n_cells


def test_costs_are_shown_for_people() -> None:
    """Seconds, then minutes; megabytes."""
    lines = Cost("rows", 0.04, 3_000_000, 400.0, 1_234_000_000).lines()
    assert lines == ["Measure  0.0 s, 3 MB", "Solve    7 min, 1,234 MB, rows engine"]
