"""How fast this machine is, found by doing a little of the real work on invented rows and tables; under a second in all."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.count import count_batches
from dpcipher.privacy.mechanism import Mechanism
from dpcipher.privacy.noise import OpenDPNoise
from dpcipher.schema.schema import Schema
from dpcipher.tables.read import open_table
from dpcipher.tables.write import write_table

ROWS = (500, 8_500)
CELLS = 1_500


def timed(work: Callable[[], object], *, repeat: int = 1) -> float:
    """The mean of a few runs, in seconds: what is foreseen will be disturbed as they were."""
    started = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - started) / repeat


def counting(schema: Schema, tables: list[tuple[int, ...]]) -> tuple[float, float]:
    """Seconds to open and count a CSV file, and seconds for each row of it: from two small files of invented rows."""
    rng = np.random.default_rng(0)
    few, many = (invented_codes(schema, size, rng) for size in ROWS)
    with tempfile.TemporaryDirectory() as folder:
        spent = [_count_file(schema, codes, tables, Path(folder) / "rows.csv", rng) for codes in (few, many)]
    slope = max(spent[1] - spent[0], spent[1] / 10) / max(1, len(many) - len(few))
    return max(0.0, spent[0] - slope * len(few)), slope


def noise(mechanism: Mechanism) -> tuple[float, float]:
    """Seconds for each table to be noised, and for each of its cells."""
    source = OpenDPNoise()
    one, many = np.zeros(1, np.int64), np.zeros(CELLS, np.int64)
    source.add(one, mechanism)  # the first draw loads the library
    call = timed(lambda: source.add(one, mechanism), repeat=5)
    return call, timed(lambda: source.add(many, mechanism), repeat=2) / CELLS


def invented_codes(schema: Schema, n_rows: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Rows with every level equally likely, without those that the schema says cannot be."""
    codes = np.stack([rng.integers(0, size, n_rows) for size in schema.shape], axis=1).astype(np.int32)
    for axes, mask in schema.zero_masks:
        codes = codes[~mask[tuple(codes[:, axis] for axis in axes)]]
    return codes


def _count_file(
    schema: Schema,
    codes: NDArray[np.int32],
    tables: list[tuple[int, ...]],
    path: Path,
    rng: np.random.Generator,
) -> float:
    write_table(path, schema.decode(codes, rng))
    return timed(lambda: count_batches(open_table(str(path)).batches(schema.names), schema, tables), repeat=3)
