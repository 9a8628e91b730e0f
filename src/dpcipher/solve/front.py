"""The front door of the solvers: reconcile, denoise, pick an engine, and say how it went."""

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpcipher.errors import ParameterError, SizeError, SolveError, did_you_mean
from dpcipher.joint.chain import Chain
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.health import Health
from dpcipher.joint.joint import Joint
from dpcipher.release.reconcile import Reconciled
from dpcipher.release.release import Release
from dpcipher.solve.denoise import denoise
from dpcipher.solve.paper import solve_paper
from dpcipher.solve.rows import solve_rows
from dpcipher.solve.table import solve_table
from dpcipher.solve.targets import Axes, Targets

ENGINES = ("auto", "paper", "table", "rows")
TABLE_CELLS = 2_000_000  # above this the rows engine is both faster and lighter (benchmarks/cost.md)
MAX_TABLE_CELLS = 2**27


def solve(release: Release, *, engine: str = "auto", lam: float = 0.01, seed: int = 0) -> Joint | list[Joint]:
    """The joint distribution behind a release; of a release with m sets, m joints.

    `engine="auto"` takes the table engine while the full table is small and the rows engine beyond; `"paper"` is the literal
    algorithm with its ridge `lam`. `seed` fixes the arbitrary choices (the paper's targets, the rows engine's population); it is
    not a privacy matter, since everything here is post-processing.
    """
    if release.sets == 1:
        return solve_set(release, 0, engine=engine, lam=lam, seed=seed)
    return [solve_set(release, number, engine=engine, lam=lam, seed=seed) for number in range(release.sets)]


def solve_set(
    release: Release, number: int, *, engine: str = "auto", lam: float = 0.01, seed: int = 0
) -> Joint:
    """The joint distribution behind one set of a release."""
    name, why = pick(engine, release.schema.shape)
    started = time.perf_counter()
    reconciled = release.reconcile(number)
    _require_rows(reconciled)
    core, health = _paper(release, number, lam, seed) if name == "paper" else _ours(name, reconciled, seed)
    named = {_names(release, axes): value for axes, value in health[1].items()}
    health_named = replace(health[0], why=why, residuals=named, seconds=time.perf_counter() - started)
    n_rows = release.statement.n_rows or max(1, round(reconciled.total))
    return Joint(release.schema, core, n_rows, health_named, kind=release.kind)


def pick(engine: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """Which engine runs, and why, judged on the schema alone."""
    if engine not in ENGINES:
        raise ParameterError(
            f"engine ({engine!r}) must be one of {', '.join(ENGINES)}{did_you_mean(str(engine), ENGINES)}"
        )
    cells = _cells(shape)
    if engine == "auto":
        small = cells <= TABLE_CELLS
        side = "at most" if small else "above"
        return ("table" if small else "rows"), f"the full table has {cells:,} cells, {side} {TABLE_CELLS:,}"
    if engine == "table" and cells > MAX_TABLE_CELLS:
        raise SizeError(
            f"engine ('table') needs the full table of {cells:,} cells; at most {MAX_TABLE_CELLS:,} fit. Use engine='rows'"
        )
    return engine, "as asked"


def _cells(shape: tuple[int, ...]) -> int:
    cells = 1
    for size in shape:
        cells *= size
    return cells


def _require_rows(reconciled: Reconciled) -> None:
    if reconciled.total <= 0:
        raise SolveError(
            f"the reconciled total ({reconciled.total:.0f} rows) must be above 0: the noise has drowned the data. "
            "A larger epsilon, fewer or smaller tables, or mechanism='gaussian' with a delta would help"
        )


Fitted = tuple[DenseTable | Chain, tuple[Health, Mapping[Axes, float]]]


def _ours(name: str, reconciled: Reconciled, seed: int) -> Fitted:
    """Our engines: denoise the reconciled tables, then fit."""
    targets = denoise(reconciled)
    if name == "table":
        probabilities, fit = solve_table(targets)
        core: DenseTable | Chain = DenseTable(probabilities)
        health = Health("table", negative_mass=fit.negative_mass, sweeps=fit.sweeps, converged=fit.converged)
        return core, (health, _in_sigmas(fit.residuals, targets))
    chain, rows_fit = solve_rows(targets, seed=seed)
    health = Health(
        "rows", negative_mass=rows_fit.negative_mass, sweeps=rows_fit.sweeps, converged=rows_fit.converged
    )
    return chain, (health, _in_sigmas(rows_fit.residuals, targets))


def _paper(release: Release, number: int, lam: float, seed: int) -> Fitted:
    """The literal algorithm goes from the noisy tables straight to solve."""
    tables = [
        (release.schema.axes(t.attrs), np.asarray(t.counts, dtype=np.float64), t.mechanism.variance)
        for t in release.tables
        if t.set == number
    ]
    probabilities, fit = solve_paper(release.schema.shape, tables, lam=lam, seed=seed)
    return DenseTable(probabilities), (Health("paper", negative_mass=fit.negative_mass), {})


def _in_sigmas(residuals: Mapping[Axes, float], targets: Targets) -> dict[Axes, float]:
    """Misfit in units of the table's noise; in counts where a table is exact."""
    return {axes: value / (targets.sigma[axes] or 1 / targets.total) for axes, value in residuals.items()}


def _names(release: Release, axes: Axes) -> tuple[str, ...]:
    return tuple(release.schema.attrs[axis] for axis in axes)
