"""A rehearsal of the solve on invented tables, to time this machine: denoising as it will be, the engines on something small."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dpcipher.curator.request import MeasurementRequest
from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.table import solve_table
from dpcipher.engines.targets import Targets
from dpcipher.planning.probe import timed
from dpcipher.release.reconcile import Noisy, reconcile

Axes = tuple[int, ...]
Shape = tuple[int, ...]

CELLS = 8_192
TABLE_CELLS = 20_000
ROWS = 4_000


@dataclass(frozen=True)
class Scene:
    """Tables to rehearse with: the levels of each attribute, and the axes and noise variance of each table."""

    shape: Shape
    tables: tuple[tuple[Axes, float], ...]

    @property
    def n_cells(self) -> int:
        """The cells of all tables."""
        return sum(prod(self.shape[axis] for axis in axes) for axes, _ in self.tables)

    def targets(self, n_rows: int) -> Targets:
        """What the engine is asked for, after invented counts have been reconciled and denoised."""
        rng = np.random.default_rng(0)
        codes = _invent(self.shape, rng)
        noisy = [_noisy(codes, self.shape, axes, variance, n_rows, rng) for axes, variance in self.tables]
        return denoise(reconcile(self.shape, noisy, total=n_rows))


def whole(order: MeasurementRequest) -> Scene:
    """The order as it is, or as many of its tables as have few cells together."""
    axes = [order.schema.axes(attrs) for attrs in order.workload.tables]
    tables, cells = [], 0
    for table, mechanism, size in zip(axes, order.mechanisms, order.workload.cells, strict=True):
        if cells and cells + size > TABLE_CELLS:
            continue
        tables.append((table, mechanism.variance))
        cells += size
    return _renumbered(Scene(order.schema.shape, tuple(tables)))


def reduced(shape: Shape, tables: Sequence[Axes]) -> tuple[Shape, list[Axes]]:
    """Fewer levels, then fewer attributes, until the full table is small; the tables that remain."""
    while prod(shape) > CELLS and max(shape) > 2:
        most = max(shape)
        shape = tuple(size - 1 if size == most else size for size in shape)
    while prod(shape) > CELLS:
        shape = shape[:-1]
    kept = {tuple(axis for axis in axes if axis < len(shape)) for axes in tables} - {()}
    return shape, sorted(kept)


def table_seconds(shape: Shape, tables: Sequence[Axes], sweeps: int) -> float:
    """Seconds of the table engine for so many sweeps a step; a tolerance that nothing meets makes it do them all."""
    targets = _even(shape, tables)
    return timed(lambda: solve_table(targets, sweeps=sweeps, tolerance=-1.0), repeat=2)


def denoise_seconds(scene: Scene, n_rows: int) -> float:
    """Seconds to reconcile and denoise a scene."""
    with np.errstate(all="ignore"):  # invented tables may be drowned in noise; only the time matters here
        return timed(lambda: scene.targets(n_rows))


def rows_seconds(shape: Shape, tables: Sequence[Axes], population: int) -> float:
    """Seconds of the rows engine over a small population."""
    targets = _even(shape, tables)
    return timed(lambda: solve_rows(targets, population=population), repeat=2)


def _even(shape: Shape, tables: Sequence[Axes]) -> Targets:
    """Targets with all cells of a table alike."""
    sizes = {axes: [shape[axis] for axis in axes] for axes in tables}
    even = {axes: np.full(size, 1 / prod(size)) for axes, size in sizes.items()}
    return Targets(shape, float(ROWS), even, dict.fromkeys(even, 0.0))


def _invent(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Rows whose columns all go with one hidden quantity, so that there is dependence to estimate."""
    hidden = rng.standard_normal(ROWS)
    columns = []
    for size in shape:
        ranks = np.argsort(np.argsort(hidden + rng.standard_normal(ROWS)))
        columns.append((ranks / ROWS) ** 1.5 * size)
    return np.stack(columns, axis=1).astype(np.int64)


def _noisy(
    codes: np.ndarray, shape: Shape, axes: Axes, variance: float, n_rows: int, rng: np.random.Generator
) -> Noisy:
    sizes = [shape[axis] for axis in axes]
    flat = np.ravel_multi_index([codes[:, axis] for axis in axes], sizes)
    counts = np.bincount(flat, minlength=prod(sizes)).reshape(sizes) * (n_rows / len(codes))
    return Noisy(axes, counts + np.sqrt(variance) * rng.standard_normal(sizes), variance)


def _renumbered(scene: Scene) -> Scene:
    """The same scene without attributes that no table holds."""
    used: Sequence[int] = sorted({axis for axes, _ in scene.tables for axis in axes})
    place = {axis: number for number, axis in enumerate(used)}
    tables = tuple((tuple(place[axis] for axis in axes), variance) for axes, variance in scene.tables)
    return Scene(tuple(scene.shape[axis] for axis in used), tables)
