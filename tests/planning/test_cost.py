"""Memory is foreseen within a factor of two of what is then allocated; the work that engines state grows as their loops do."""

import gc
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from dpcipher.curator.answers import release_of
from dpcipher.curator.counts import count_codes, receive
from dpcipher.engines import paper, rows, table
from dpcipher.engines.denoise import denoise as denoise_module
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.paper import solve_paper
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.solve import solve
from dpcipher.engines.table import solve_table
from dpcipher.planning.cost import Cost, estimate_cost, seconds_per_operation
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy
from dpcipher.release.release import Release
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema


def order(shape: tuple[int, ...], workload: int = 2) -> Request:
    """All tables of an order over columns of these sizes, at epsilon 1."""
    schema = Schema.from_domain({f"c{number}": size for number, size in enumerate(shape)})
    return Request.parse(schema, Privacy.parse(epsilon=1, unit="add-remove"), workload=workload)


def invented(request: Request, n_rows: int) -> np.ndarray:
    """Coded rows, every level equally likely."""
    rng = np.random.default_rng(3)
    return np.stack([rng.integers(0, size, n_rows) for size in request.schema.shape], axis=1).astype(np.int32)


def release(request: Request, n_rows: int) -> Release:
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
    foreseen = estimate_cost(request, 5000)
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
    foreseen = estimate_cost(request, 20_000)
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
    draws.noise.add(np.zeros(1, np.int64), request.noises[0])
    foreseen = estimate_cost(request, n_rows).measure_bytes
    measured = peak(lambda: release_of(receive(rows, request.schema).tally(request.axes), request, draws))
    assert within_a_factor_of_two(foreseen, measured), (foreseen, measured)


@pytest.mark.parametrize("shape", [(3,) * 6, (4,) * 5, (4, 8, 9)])
def test_memory_where_the_joint_itself_is_fitted(shape: tuple[int, ...]) -> None:
    """Small tables: the equations of all cells dominate."""
    noisy = release(order(shape), 5000)
    denoise_module.joint_fit._design.cache_clear()
    measured = peak(lambda: denoise_module.denoise(noisy.reconcile(0)))
    foreseen = denoise_module.work(shape, order(shape).axes)[1]
    assert within_a_factor_of_two(foreseen, measured), (foreseen, measured)


def test_memory_of_the_paper_engine() -> None:
    """The tables of one order, while the next are built."""
    noisy = release(order((5,) * 7), 5000)
    tables = [(t.query.axes, t.values.astype(float), t.noise.variance) for t in noisy.measurements]
    measured = peak(lambda: solve_paper(noisy.schema.shape, tables))
    assert within_a_factor_of_two(paper.work(noisy.schema.shape)[1], measured)


def test_work_of_the_table_engine_follows_its_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight times the levels of the last column is up to eight times the operations; sweeps add up."""
    pairs = [(0, 1), (0, 2), (1, 2)]

    def operations(shape: tuple[int, ...], sweeps: int) -> float:
        monkeypatch.setattr("dpcipher.engines.table.USUAL_SWEEPS", sweeps)
        return table.work(shape, pairs)[0]

    small, large = operations((20, 20, 10), 5), operations((20, 20, 80), 5)
    once, twice = operations((20, 20, 10), 1), operations((20, 20, 10), 2)
    assert 2 < large / small < 8
    assert twice - once == pytest.approx((small - once) / 4)


def test_work_of_the_rows_engine_is_linear_in_rows_and_tables() -> None:
    """Whatever the number of cells."""
    pairs = [(i, j) for j in range(30) for i in range(j)]
    few, many = (rows.work((5,) * 30, pairs, size)[0] for size in rows.POPULATION)
    assert many == 2 * few
    assert few > 15 * rows.work((5,) * 6, pairs[:15], rows.POPULATION[0])[0]


@pytest.mark.parametrize("shape", [(5,) * 8, (10,) * 10, (2,) * 25])
def test_time_of_a_solve(shape: tuple[int, ...]) -> None:
    """Columns that go with one another, in processor time of this thread (those of BLAS wait busily): within a factor of three."""
    request, rng = order(shape), np.random.default_rng(3)
    codes = invented(request, 20_000)
    for column in range(1, len(shape)):
        codes[:, column] = np.where(rng.random(20_000) < 0.5, codes[:, column - 1], codes[:, column])
    noisy = release_of(count_codes(codes, shape, request.axes), request, Draws.seeded(1))
    started = time.thread_time()
    solve(noisy)
    measured = time.thread_time() - started
    foreseen = estimate_cost(request, 20_000).solve_seconds
    assert measured / 3 < foreseen < 3 * measured, (foreseen, measured)


def test_waiting_is_not_taken_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with something else delays the calibration, and the foreseen time stays what it is."""
    alone = seconds_per_operation.__wrapped__()
    solve_table = table.solve_table

    def delayed(*arguments: object, **options: object) -> object:
        time.sleep(0.02)
        return solve_table(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("dpcipher.engines.table.solve_table", delayed)
    assert seconds_per_operation.__wrapped__() < 2 * alone


def test_costs_are_shown_for_people() -> None:
    """Seconds, then minutes; megabytes."""
    lines = Cost("rows", 0.04, 3_000_000, 400.0, 1_234_000_000).lines()
    assert lines == ["Measure  0.0 s, 3 MB", "Solve    7 min, 1,234 MB, rows engine"]
