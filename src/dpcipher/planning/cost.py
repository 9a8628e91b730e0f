"""Memory and time of a release and of its solution, judged on the schema and on a short probe of this machine.

Memory is arithmetic. Time is the amount of work, in passes over numbers, times what a pass took here a moment ago. `benchmarks/results/plan.md`
has what was foreseen and what was then measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import prod
from typing import Any

from dpcipher.curator.request import MeasurementRequest
from dpcipher.engines.raking import maximal
from dpcipher.engines.rows import POPULATION
from dpcipher.engines.rows_step import UNKNOWNS
from dpcipher.engines.solve import pick
from dpcipher.planning import probe, rehearsal

Axes = tuple[int, ...]
Shape = tuple[int, ...]

USUAL_ROWS = 10_000  # where no number of rows was given
BATCH_ROWS = 2**18
# Bytes for each: cell being measured (counts, Python's copy while noise is drawn, columns of the file), cell being denoised, table,
# cell of the full table in the table engine, row and group of the rows engine, row and level of the rows engine.
MEASURED, DENOISED, TABLE, DENSE, GROUP, LEVEL = 70, 140, 3_000, 20, 38, 9
# Calling numpy costs as much as passing over this many numbers, and raking a table in blocks starts here (`solve.blocks`).
CALL, BLOCKS = 4_000, 1 << 15
INNER = 12
DRAW = 60
# Raking takes from one sweep to the engine's limit, as the data have it; this many is in the middle.
SWEEPS = 3
SMALL_SWEEPS, SMALL_POPULATION = 4, 8_192


@dataclass(frozen=True)
class Cost:
    """Seconds, and bytes beyond those of Python and its libraries.

    `measure_seconds` is for a CSV file; where no number of rows was given, without its rows. Loading Python's libraries, some seconds,
    is not included.
    """

    engine: str
    measure_seconds: float
    measure_bytes: int
    solve_seconds: float
    solve_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The cost for people."""
        return [
            f"Measure  {_seconds(self.measure_seconds)}, {_bytes(self.measure_bytes)}",
            f"Solve    {_seconds(self.solve_seconds)}, {_bytes(self.solve_bytes)}, {self.engine} engine",
        ]


def foresee(order: MeasurementRequest, n_rows: int | None) -> Cost:
    """The cost of measuring the order and of solving its release."""
    engine, _ = pick("auto", order.schema.shape)
    usual = n_rows or USUAL_ROWS
    return Cost(
        engine,
        _measure_seconds(order, n_rows),
        _measure_bytes(order, n_rows),
        order.sets * (_denoise_seconds(order, usual) + _engine_seconds(order, engine, usual)),
        _solve_bytes(order, engine, usual),
    )


def _measure_seconds(order: MeasurementRequest, n_rows: int | None) -> float:
    tables = [order.schema.axes(attrs) for attrs in order.workload.tables]
    start, row = probe.counting(order.schema, tables)
    call, cell = probe.noise(order.mechanisms[0])
    return start + row * (n_rows or 0) + order.sets * (call * len(tables) + cell * order.workload.n_cells)


def _measure_bytes(order: MeasurementRequest, n_rows: int | None) -> int:
    """The larger of what a batch of rows takes (codes, 64-bit copies of them, the cells themselves) and what the tables take."""
    columns = len(order.schema.attrs)
    rows = min(n_rows or BATCH_ROWS, BATCH_ROWS) * (12 * columns + 24)
    counts = 24 * order.workload.n_cells
    return max(rows + counts, MEASURED * order.workload.n_cells * order.sets)


def _denoise_seconds(order: MeasurementRequest, n_rows: int) -> float:
    scene = rehearsal.whole(order)
    return rehearsal.denoise_seconds(scene, n_rows) * max(1.0, order.workload.n_cells / scene.n_cells)


def _engine_seconds(order: MeasurementRequest, engine: str, n_rows: int) -> float:
    """The work of the engine, at the speed that a small piece of the same kind had."""
    shape, axes = order.schema.shape, [order.schema.axes(attrs) for attrs in order.workload.tables]
    if engine == "rows":
        small = tuple(combinations(range(5), 2))
        spent = rehearsal.rows_seconds((8,) * 5, small, SMALL_POPULATION)
        return (
            spent / rows_work((8,) * 5, small, SMALL_POPULATION) * rows_work(shape, axes, _population(n_rows))
        )
    piece, tables = rehearsal.reduced(shape, axes)
    spent = rehearsal.table_seconds(piece, tables, SMALL_SWEEPS)
    return spent / table_work(piece, tables, SMALL_SWEEPS) * table_work(shape, axes, SWEEPS)


def rows_work(shape: Shape, tables: Iterable[Axes], population: int) -> float:
    """Passes of the rows engine: to draw each column, and for each table to visit every row and the levels of the column drawn."""
    visits = sum(16 + sum(shape[axis] for axis in axes) / len(axes) for axes in tables)
    return population * (visits + DRAW * len(shape))


def table_work(shape: Shape, tables: Sequence[Axes], sweeps: int) -> float:
    """Passes of the table engine: at each step, the equations of the new attribute, then so many sweeps of raking to all goals."""
    work = 0.0
    for new in range(1, len(shape)):
        cells = prod(shape[: new + 1])
        goals = maximal(tuple(axis for axis in axes if axis <= new) for axes in tables)
        links = sum(new in axes for axes in goals)
        work += 2 * links**2 * (CALL + cells / shape[new]) + sweeps * _sweep_work(shape, cells, goals)
    return work


def _sweep_work(shape: Shape, cells: int, goals: Sequence[Axes]) -> float:
    """One sweep: goal by goal in a small table; in a large one, blocks of goals whose attributes make a small table."""
    if cells <= BLOCKS:
        return 2.0 * len(goals) * (CALL + cells)
    limit, unions, members = max(BLOCKS, cells // 64), list[set[int]](), list[int]()
    for axes in goals:
        for number, union in enumerate(unions):
            if prod(shape[axis] for axis in union | set(axes)) <= limit:
                union |= set(axes)
                members[number] += 1
                break
        else:
            unions.append(set(axes))
            members.append(1)
    sizes = [prod(shape[axis] for axis in union) for union in unions]
    inner = sum(INNER * 2 * count * (CALL + size) for count, size in zip(members, sizes, strict=True))
    return 3.0 * len(unions) * (CALL + cells) + inner


def _solve_bytes(order: MeasurementRequest, engine: str, n_rows: int) -> int:
    shape, tables = order.schema.shape, order.workload
    targets = DENOISED * tables.n_cells + TABLE * len(tables.tables)
    if engine == "table":
        return targets + DENSE * prod(shape)
    axes = [order.schema.axes(attrs) for attrs in tables.tables]
    groups, unknowns = 0, 0
    for last in range(len(shape)):
        own = [prod(shape[axis] for axis in table if axis != last) for table in axes if last in table]
        groups, unknowns = max(groups, len(own)), max(unknowns, min(UNKNOWNS, sum(own)))
    return targets + _population(n_rows) * (GROUP * groups + LEVEL * max(shape)) + 8 * unknowns**2


def _population(n_rows: int) -> int:
    low, high = POPULATION
    return min(max(n_rows, low), high)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 100 else f"{value / 60:.0f} min"


def _bytes(value: int) -> str:
    return f"{max(1, round(value / 1e6)):,} MB"
