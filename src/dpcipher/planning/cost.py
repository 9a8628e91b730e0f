"""Memory and time of a release and of its solution, and what is held of its rows; from the work that each step states and the speed of this machine.

An operation is a pass over one number in numpy. The speed is measured once, in processor time, on a small task of the table engine;
`benchmarks/results/plan.md` compares plans with what was then measured. Expect the time of all tables of an order within a factor
of two; it is off by more where the number of raking sweeps, which depends on the data, is unusual, and by up to ten where few tables are measured.
"""

import math
import time
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from dpcipher.engines import rows, table
from dpcipher.engines.denoise import denoise
from dpcipher.engines.solve import pick
from dpcipher.engines.targets import Targets
from dpcipher.request.request import Request
from dpcipher.schema.cells import code_type
from dpcipher.selection.target import SelectionTarget, foreseen_tables
from dpcipher.tables.covering import (
    ALL_JOINT_CELLS,
    BLOCK_ROWS,
    FULL_TABLE_CELLS,
    JOINT_ROWS,
    MEMORY_BYTES,
    few_joint_tables,
)

USUAL_ROWS = 10_000  # where no number of rows was given
BATCH_ROWS = 2**18
MANY_TABLES = 5_000
# Operations of measuring: of any release, for each value read and encoded, to count a row in a table, for each noisy table and cell.
OPEN, READ, COUNT, NOISY_TABLE, NOISY_CELL = 5_000_000, 16, 0.3, 15_000, 3_000
MEASURED = (
    40  # bytes of a cell being measured: counts, Python's copy while noise is drawn, columns of the file
)
# The calibration: the uniform targets of so many columns, solved so many times, 0.1 to 0.2 seconds in all.
COLUMNS, LEVELS, REPEATS = 5, 6, 30


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time, and bytes beyond those of Python and its libraries.

    `measure_seconds` is for a CSV file; where no number of rows was given, without its rows. Loading Python's libraries, some seconds,
    is not included.
    """

    engine: str
    measure_seconds: float
    measure_bytes: int
    solve_seconds: float
    solve_bytes: int

    def lines(self) -> list[str]:
        """The cost for people."""
        return [
            f"Measure  {_seconds(self.measure_seconds)}, {_bytes(self.measure_bytes)}",
            f"Solve    {_seconds(self.solve_seconds)}, {_bytes(self.solve_bytes)}, {self.engine} engine",
        ]


def estimate_cost(request: Request, n_rows: int | None) -> Cost:
    """The cost of measuring the request and of solving its release."""
    shape, axes = request.schema.shape, request.axes
    engine = pick("auto", request.schema)[0].name
    solving = rows.work(shape, axes, n_rows or USUAL_ROWS) if engine == "rows" else table.work(shape, axes)
    operations, peak = (sum(parts) for parts in zip(denoise.work(shape, axes), solving, strict=True))
    measuring, measuring_peak = measure_work(request, n_rows)
    return Cost(
        engine,
        measuring * seconds_per_operation(),
        measuring_peak,
        request.sets * operations * seconds_per_operation(),
        int(peak),
    )


def measure_work(request: Request, n_rows: int | None) -> tuple[float, int]:
    """Operations and peak bytes of measuring a CSV file.

    Memory is the larger of what a batch of rows takes (its codes, the numbers of the cells of a block, the joint tables) and what noise takes.
    """
    columns, tables, cells = len(request.schema.attrs), len(request.axes), request.given.n_cells
    reading = OPEN + (n_rows or 0) * (READ * columns + COUNT * tables)
    noise = request.sets * (NOISY_TABLE * tables + NOISY_CELL * cells)
    rows, shape = min(n_rows or BATCH_ROWS, BATCH_ROWS), request.schema.shape
    codes = rows * sum(code_type(size)().itemsize for size in shape)
    counts = 8 * (2 * cells + _joint_cells(request)) if rows >= JOINT_ROWS else 16 * cells
    batch = codes + 10 * min(rows, BLOCK_ROWS) + counts + 500 * tables
    return float(reading + noise), max(batch, MEASURED * cells * request.sets)


def _joint_cells(request: Request) -> int:
    """The cells of the joint tables that are counted; a bound where there are too many tables to look for them now."""
    if len(request.axes) > MANY_TABLES:
        return ALL_JOINT_CELLS
    joints = set(few_joint_tables(request.schema.shape, request.axes).values())
    return sum(math.prod(request.schema.shape[axis] for axis in axes) for axes in joints)


@cache
def seconds_per_operation() -> float:
    """Processor time per operation on this machine, measured once. Other processes may delay it but do not count."""
    pairs: list[tuple[int, ...]] = list(combinations(range(COLUMNS), 2))
    uniform = dict.fromkeys(pairs, np.full((LEVELS, LEVELS), LEVELS**-2.0))
    targets = Targets((LEVELS,) * COLUMNS, 1.0, uniform, dict.fromkeys(pairs, 0.0))

    def solve() -> None:  # a tolerance that nothing meets makes every step take all of its sweeps
        table.solve_table(targets, sweeps=table.USUAL_SWEEPS, tolerance=-1.0)

    solve()
    started = time.process_time()
    for _ in range(REPEATS):
        solve()
    return (time.process_time() - started) / REPEATS / table.work(targets.shape, pairs)[0]


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 100 else f"{value / 60:.0f} min"


def _bytes(value: int) -> str:
    return f"{max(1, round(value / 1e6)):,} MB"


@dataclass(frozen=True)
class Held:
    """The bytes of a row's codes and, where a number of rows was given, of all of them, and whether they go to a file.

    `until` says why they are held. Where rows are limited for each person, the names of persons are held beside the codes, and not counted.
    """

    until: str
    row_bytes: int
    n_bytes: int | None
    in_file: bool | None

    def line(self) -> str:
        """For people."""
        memory = f"{MEMORY_BYTES / 1e6:,.0f} MB"
        where = (
            f"in memory up to {memory}, beyond in a temporary file without a name, in the folder of TMPDIR"
        )
        if self.n_bytes is not None:
            where = f"{max(1, round(self.n_bytes / 1e6)):,} MB in memory"
            if self.in_file:
                where = where.replace(
                    "in memory", "in a temporary file without a name, in the folder of TMPDIR"
                )
        return f"Rows     codes are held until {self.until}: {self.row_bytes} bytes a row, {where}"


def held_rows(request: Request, n_rows: int | None) -> Held | None:
    """What a release holds of the rows; None where they are counted as they are read."""
    schema, auto, person = request.schema, request.auto, request.privacy.cap is not None
    asks_later = schema.is_open or (
        auto is not None and foreseen_tables(SelectionTarget.of(auto, schema)) is None
    )
    schema = schema.on_grid()
    asks_rows = asks_later and math.prod(schema.shape) > FULL_TABLE_CELLS  # else the full table answers
    if not person and not asks_rows:
        return None
    until = "the tables are chosen and measured" if asks_rows else "the rows of each person are known"
    row_bytes = sum(code_type(size)().itemsize for size in schema.shape)
    n_bytes = None if n_rows is None else n_rows * row_bytes
    return Held(until, row_bytes, n_bytes, None if n_bytes is None else n_bytes > MEMORY_BYTES)
