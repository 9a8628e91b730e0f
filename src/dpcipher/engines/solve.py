"""The entry point of the solvers: reconcile, denoise, pick an engine, and say how it went."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.draws import draw_joints
from dpcipher.engines.paper import solve_paper
from dpcipher.engines.rows import RowsFit, solve_rows
from dpcipher.engines.table import TableFit, solve_table
from dpcipher.engines.targets import Targets
from dpcipher.engines.unknown import unknown
from dpcipher.errors import ParameterError, SizeError, SolveError, did_you_mean
from dpcipher.joint.chain import Chain
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.health import SolveReport
from dpcipher.joint.joint import Joint
from dpcipher.marginals.arrays import Axes, Floats
from dpcipher.release.components import merge_repeats
from dpcipher.release.gls import zero_cells
from dpcipher.release.reconcile import Reconciled
from dpcipher.release.release import Release

ENGINES = ("auto", "paper", "table", "rows")
TABLE_CELLS = 2_000_000  # between this and ten million cells the rows engine becomes the faster one (benchmarks/results/cost.md)
MAX_TABLE_CELLS = 2**27
LEAST_ROWS = 1e-6  # a number of rows that can be divided by; less is none
TOO_FAR = 5.0  # sigmas: denoising moves a table by about one; among many tables some by three


@overload
def solve(
    release: Release, *, engine: str = "auto", lam: float = 0.01, seed: int = 0, draws: None = None
) -> Joint | list[Joint]: ...


@overload
def solve(
    release: Release, *, engine: str = "auto", lam: float = 0.01, seed: int = 0, draws: int
) -> list[Joint]: ...


def solve(
    release: Release, *, engine: str = "auto", lam: float = 0.01, seed: int = 0, draws: int | None = None
) -> Joint | list[Joint]:
    """The joint distribution behind a release; of a release with m sets, m joints.

    `engine="auto"` takes the table engine while the full table is small and the rows engine beyond; `"paper"` is the literal
    algorithm with its ridge `lam`. `seed` fixes the arbitrary choices (the paper's targets, the rows engine's population); it is
    not a privacy matter, since everything here is post-processing.

    `draws=m` gives m joints instead that differ as much as the noise leaves open: draws of the private table given the release, for
    multiple imputation from one release (`combine` with rule="imputations"). They need a full table of at most 20,000 cells.

    Where the noisy number of rows is not above zero nothing is known: the joint is then uniform over the rows that the schema allows,
    draws none by default, says so in its `health`, and a `DpcipherWarning` says it too.
    """
    if draws is not None:
        if engine != "auto":
            raise ParameterError(
                f"engine ({engine!r}) must be left out with draws: they come from the posterior, not from an engine"
            )
        return draw_joints(release, draws, seed)
    joints = [solve_set(release, number, engine=engine, lam=lam, seed=seed) for number in range(release.sets)]
    for joint in joints:
        joint.health.warn()
    return joints[0] if len(joints) == 1 else joints


def solve_set(
    release: Release, number: int, *, engine: str = "auto", lam: float = 0.01, seed: int = 0
) -> Joint:
    """The joint distribution behind one set of a release; its health holds the warnings, for the caller to give."""
    name, why = pick(engine, release.schema.shape)
    started = time.perf_counter()
    reconciled = release.reconcile(number)
    if reconciled.total < LEAST_ROWS:
        return _drowned(release, reconciled)
    solved = _paper(reconciled, lam, seed) if name == "paper" else _ours(name, reconciled, seed)
    health = SolveReport(
        name,
        why=why,
        residuals={_names(release, axes): value for axes, value in solved.residuals.items()},
        negative_mass=solved.negative_mass,
        sweeps=solved.sweeps,
        seconds=time.perf_counter() - started,
        converged=solved.converged,
        notes=solved.notes,
    )
    n_rows = release.statement.n_rows or max(1, round(reconciled.total))
    return Joint(release.schema, solved.core, n_rows, health, kind=release.kind)


def pick(engine: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """Which engine runs, and why, judged on the schema alone."""
    if engine not in ENGINES:
        raise ParameterError(
            f"engine ({engine!r}) must be one of {', '.join(ENGINES)}{did_you_mean(str(engine), ENGINES)}"
        )
    cells = math.prod(shape)
    if engine == "auto":
        small = cells <= TABLE_CELLS
        side = "at most" if small else "above"
        return ("table" if small else "rows"), f"the full table has {cells:,} cells, {side} {TABLE_CELLS:,}"
    if engine == "table" and cells > MAX_TABLE_CELLS:
        raise SizeError(
            f"engine ('table') needs the full table of {cells:,} cells; at most {MAX_TABLE_CELLS:,} fit. Use engine='rows'"
        )
    return engine, "as asked"


def _drowned(release: Release, reconciled: Reconciled) -> Joint:
    """The answer to tables that add up to nothing."""
    why = f"the release's number of rows ({reconciled.total:.0f}) is not above 0"
    cause = (
        "the noise has drowned the data. A larger epsilon, fewer or smaller tables, or mechanism='gaussian' with a delta would help"
        if reconciled.total_variance > 0
        else "it is about no rows"
    )
    warning = f"nothing is known, because {why}: {cause}. All rows are equally likely here, and sample() draws none unless told how many"
    return unknown(release, n_rows=0, why=why, warning=warning)


@dataclass(frozen=True)
class Solved:
    """What an engine found, and how it ended."""

    core: DenseTable | Chain
    negative_mass: float
    converged: bool
    residuals: Mapping[Axes, float] = field(default_factory=dict)
    sweeps: int = 0
    notes: tuple[str, ...] = ()


def _ours(name: str, reconciled: Reconciled, seed: int) -> Solved:
    """Our engines: denoise the reconciled tables, then fit."""
    targets = denoise(reconciled)
    core: DenseTable | Chain
    fit: TableFit | RowsFit
    if name == "table":
        probabilities, fit = solve_table(targets)
        core = DenseTable(probabilities)
    else:
        core, fit = solve_rows(targets, seed=seed)
    residuals = _in_sigmas(fit.residuals, targets, reconciled)
    exact = not all(targets.sigma.values())
    met = not _beyond(residuals, targets) and (fit.converged or not exact)
    return Solved(
        core, fit.negative_mass, met, residuals, fit.sweeps, () if met else (_advice(residuals, targets),)
    )


def _beyond(residuals: Mapping[Axes, float], targets: Targets) -> int:
    """How many noisy tables are further from the answer than their noise explains."""
    return sum(value > TOO_FAR and targets.sigma[axes] > 0 for axes, value in residuals.items())


def _advice(residuals: Mapping[Axes, float], targets: Targets) -> str:
    """What to tell a person about tables that no one distribution has."""
    return (
        f"not all tables could be met: {_beyond(residuals, targets)} of {len(residuals)} are more than {TOO_FAR:g} sigmas away. They "
        "contradict one another: check the scale of published tables and that they are about the same rows, or try another engine"
    )


def _paper(reconciled: Reconciled, lam: float, seed: int) -> Solved:
    """The literal algorithm goes from the noisy tables straight to solve; only repeats of one table become one."""
    tables = [(one.axes, one.counts, one.variance) for one in merge_repeats(reconciled.measured).values()]
    probabilities, fit = solve_paper(reconciled.shape, tables, lam=lam, seed=seed)
    notes = (f"{fit.skipped} equations had no usable denominator and were left out",) if fit.skipped else ()
    core = DenseTable(_cleared(probabilities, reconciled) if reconciled.zeros else probabilities)
    return Solved(core, fit.negative_mass, fit.converged, notes=notes)


def _cleared(probabilities: Floats, reconciled: Reconciled) -> Floats:
    """Without the structural zeros, which the literal algorithm does not know."""
    axes = tuple(range(len(reconciled.shape)))
    kept = np.where(zero_cells(axes, reconciled.shape, reconciled.zeros), 0.0, probabilities)
    if not kept.sum() > 0:
        raise SolveError(
            "the tables leave no cell with probability but structural zeros; engine='table' keeps to the zeros"
        )
    return np.asarray(kept / kept.sum())


def _in_sigmas(
    residuals: Mapping[Axes, float], targets: Targets, reconciled: Reconciled
) -> dict[Axes, float]:
    """How far the answer is from each reconciled table: root mean square over its cells, in units of its noise.

    Two parts add up in squares: what denoising moved, about one sigma or less where it removed noise, and what the engine missed. A
    table that is exact is measured in counts.
    """
    found = {}
    for axes, missed in residuals.items():
        moved = targets.tables[axes] - reconciled.table(axes) / reconciled.total
        unit = targets.sigma[axes] or 1 / targets.total
        found[axes] = math.sqrt(float((moved**2).sum()) / moved.size + missed**2) / unit
    return found


def _names(release: Release, axes: Axes) -> tuple[str, ...]:
    return tuple(release.schema.attrs[axis] for axis in axes)
