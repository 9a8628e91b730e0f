"""The entry point of the solvers: reconcile, denoise, pick an engine, and say how it went."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal, overload

import numpy as np

from dpcipher.engines.denoise.denoise import denoise, undenoised
from dpcipher.engines.denoise.shrink import Ordered
from dpcipher.engines.draws import NO_ENGINE, draw_joints
from dpcipher.engines.paper import solve_paper
from dpcipher.engines.reading import READINGS, Reading
from dpcipher.engines.rows import solve_rows
from dpcipher.engines.table import MAX_CELLS, solve_table
from dpcipher.engines.targets import Fit, Targets
from dpcipher.errors import ParameterError, Progress, SizeError, SolveError, did_you_mean, shown_count, silent
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Core, Joint, with_rule_cost
from dpcipher.joint.network import Network, Node
from dpcipher.joint.report import SolveReport
from dpcipher.release.reconcile import Reconciled
from dpcipher.release.release import Release
from dpcipher.schema.grouped import said, table_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Floats, Shape, Zero, zero_cells
from dpcipher.tables.query import Query

ENGINES = ("auto", "paper", "table", "rows")
# Between this and ten million cells the rows engine becomes the faster one (benchmarks/results/cost.md). It is much faster on many binary columns before that, but
# 3- and 4-way tables, which nothing measured, come out 1.4 to 1.7 times as wrong where noise is small: 20 columns from two causes, all pairs, epsilon = e².
TABLE_CELLS = 2_000_000
LEAST_ROWS = 1e-6  # a number of rows that can be divided by; less is none
# Up to so many cells independent columns are written out as one table, which also samples more evenly and knows structural zeros.
DENSE_CELLS = 2**16
LITERAL = READINGS["literal"]
LEAST_ORDERED, MOST_ORDERED = 5, 512  # ordered levels: fewer have little to smooth, more take too long
TOO_FAR = 5.0  # sigmas: denoising moves a table by about one; among many tables some by three


@overload
def solve(
    release: Release,
    *,
    set: int,
    engine: str = "auto",
    reading: str | Reading = "literal",
    lam: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joint: ...
@overload
def solve(
    release: Release,
    *,
    set: Literal["all"],
    engine: str = "auto",
    reading: str | Reading = "literal",
    lam: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Joint]: ...
@overload
def solve(
    release: Release,
    *,
    draws: int,
    columns: str | Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Joint]: ...
@overload
def solve(
    release: Release,
    *,
    set: None = None,
    engine: str = "auto",
    reading: str | Reading = "literal",
    lam: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joint | list[Joint]: ...
def solve(
    release: Release,
    *,
    set: int | Literal["all"] | None = None,
    draws: int | None = None,
    columns: str | Sequence[str] | None = None,
    engine: str = "auto",
    reading: str | Reading = "literal",
    lam: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joint | list[Joint]:
    """The joint distribution behind a release.

    Of a release with m sets `set="all"` gives a list of m joints, and `set=0` the joint of the first, whatever m is. Without `set` it
    is the joint of a release with one set, and a list of joints otherwise.

    `engine="auto"` takes the table engine while the full table is small and the rows engine beyond; `"paper"` is the
    paper's algorithm: as it is printed, or by another `reading` of it (a name, or a `dc.Reading`), with `lam` in the place of its ridge.
    `seed` fixes the arbitrary choices (the paper's targets, which differ from set to set and from release to release, and the rows
    engine's population); it is not a privacy matter, since everything here is post-processing.

    `draws=m` gives m joints instead that differ as much as the noise leaves open: draws of the private table given the release, for
    multiple imputation from one release (`fit_models` of these joints, or `combine` with rule="imputations"). They need a full table of at most 20,000
    cells; where it is larger, `columns` names those of one analysis, and the joints are of them alone.

    Where the noisy number of rows is not above zero nothing is known: the joint is then uniform over the rows that the schema allows,
    draws none by default, says so in its `health`, and a `DpcipherWarning` says it too. `progress` is told what is going on, column by column.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> joint = dc.solve(release)
    >>> joint.health.engine, joint.n_rows
    ('table', 1000)
    """
    if not isinstance(release, Release):
        raise ParameterError(
            f"release ({release!r:.60}) must be a release; load a file with dc.Release.load(path)"
        )
    say = progress or silent
    if draws is not None:
        _check_no_engine(
            engine=engine != "auto", reading=reading != "literal", lam=lam is not None, set=set is not None
        )
        say("drawing from the posterior")
        return draw_joints(release, draws, seed, columns=columns)
    if columns is not None:
        raise ParameterError(
            f"columns ({columns!r:.80}) must be left out without draws: a fit is of all columns, and project(columns) of the joint gives the table of some"
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(f"seed ({seed!r:.60}) must be a whole number of 0 or more; try seed=0")
    if not (set in (None, "all") or isinstance(set, int)):
        raise ParameterError(f"set ({set!r}) must be 'all' or the number of a set; try set=0")
    read = Reading.of_engine(pick(engine, release.schema.shape)[0], reading, lam)
    numbers = [set] if isinstance(set, int) else range(release.sets)
    joints = [
        solve_set(
            release,
            number,
            engine=engine,
            reading=read,
            seed=seed,
            say=say if len(numbers) == 1 else _of_set(say, number, len(numbers)),
        )
        for number in numbers
    ]
    for joint in joints:
        joint.health.warn()
    return joints if set == "all" or len(joints) > 1 else joints[0]


def _check_no_engine(**given: bool) -> None:
    """Refuse options of an engine beside draws."""
    for name, is_given in given.items():
        if is_given:
            raise ParameterError(f"{name} must be left out with draws: {NO_ENGINE}")


def _of_set(say: Progress, number: int, of: int) -> Progress:
    return lambda text: say(f"set {number + 1} of {of}: {text}")


def solve_set(
    release: Release,
    number: int,
    *,
    engine: str = "auto",
    reading: Reading = LITERAL,
    seed: int = 0,
    say: Progress = silent,
) -> Joint:
    """The joint distribution behind one set of a release; its health holds the warnings, for the caller to give."""
    name, why = pick(engine, release.schema.shape)
    started = time.perf_counter()
    say("reconciling the tables")
    reconciled = release.reconcile(number)
    if reconciled.total < LEAST_ROWS:
        return _drowned(release, reconciled)
    if name == "paper":
        targets = np.random.default_rng([seed, number, int(release.checksum[:16], 16)])
        core, fit = _paper(release.schema, reconciled, reading, targets)
    else:
        core, fit = _ours(name, reconciled, release, seed, say)
    health = SolveReport(
        name,
        why=why,
        residuals={release.schema.attrs_on(axes): value for axes, value in fit.residuals.items()},
        negative_mass=fit.negative_mass,
        sweeps=fit.sweeps,
        seconds=time.perf_counter() - started,
        converged=fit.converged,
        notes=fit.notes,
    )
    n_rows = release.statement.n_rows or max(1, round(reconciled.total))
    return with_rule_cost(
        Joint(release.schema, core, n_rows, health, kind=release.kind, release=release.origin)
    )


def pick(engine: str, shape: Shape) -> tuple[str, str]:
    """Which engine runs, and why, judged on the schema alone."""
    if engine not in ENGINES:
        raise ParameterError(
            f"engine ({engine!r}) must be one of {', '.join(ENGINES)}{did_you_mean(str(engine), ENGINES)}"
        )
    cells = math.prod(shape)
    if engine == "auto":
        small = cells <= TABLE_CELLS
        side = "at most" if small else "above"
        return (
            "table" if small else "rows"
        ), f"the full table has {shown_count(cells)} cells, {side} {TABLE_CELLS:,}"
    if engine == "table" and cells > MAX_CELLS:
        raise SizeError(
            f"engine ('table') needs the full table of {shown_count(cells)} cells; at most {MAX_CELLS:,} fit. Use engine='rows'"
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


def unknown(release: Release, *, n_rows: int, why: str, warning: str) -> Joint:
    """The uniform joint over a release's schema, with a warning: its tables gave no other."""
    core = independent(uniform(release.schema.shape), release.schema.zero_masks)
    health = SolveReport("uniform", why=why, converged=False, warnings=(warning,))
    return with_rule_cost(
        Joint(release.schema, core, n_rows, health, kind=release.kind, release=release.origin)
    )


def uniform(shape: Sequence[int]) -> list[Floats]:
    """One-way tables that say nothing."""
    return [np.full(size, 1.0 / size) for size in shape]


def independent(one_way: Sequence[Floats], zeros: tuple[Zero, ...]) -> Core:
    """Independent columns with these probabilities, but for the structural zeros: a large table with zeros becomes a chain."""
    shape = tuple(map(len, one_way))
    if math.prod(shape) <= DENSE_CELLS:
        possible = ~_impossible(shape, zeros)
        kept = np.where(possible, reduce(np.multiply.outer, one_way), 0.0)
        # Even over the possible cells where the product leaves none.
        kept = kept if kept.sum() > 0 else possible.astype(float)
        return DenseTable(np.asarray(kept / kept.sum()))
    if zeros:
        tables: dict[Axes, Floats] = {(axis,): table for axis, table in enumerate(one_way)}
        return solve_rows(Targets(shape, 1.0, tables, dict.fromkeys(tables, 0.0), zeros))[0]
    return Network(shape, tuple(Node((axis,), (), table) for axis, table in enumerate(one_way)))


def _impossible(shape: Shape, zeros: Sequence[Zero]) -> Bools:
    """Which cells of the full table are structural zeros."""
    return zero_cells(tuple(range(len(shape))), shape, zeros)


def orders_of(schema: Schema) -> dict[int, Ordered]:
    """The attributes whose levels follow one another, and those levels."""
    return {
        axis: np.arange(column.ordered_levels)
        for axis, column in enumerate(schema.columns)
        if LEAST_ORDERED <= column.ordered_levels <= MOST_ORDERED
    }


def predicted(release: Release) -> int | None:
    """The attribute that the tables were chosen to predict, if any."""
    name = (release.statement.certificate.get("selection") or {}).get("predict")
    return release.schema.attrs.index(name) if name in release.schema.attrs else None


def _ours(name: str, reconciled: Reconciled, release: Release, seed: int, say: Progress) -> tuple[Core, Fit]:
    """Our engines: denoise the reconciled tables, then fit."""
    say("denoising the tables")
    targets = denoise(reconciled, orders_of(release.schema))
    core: Core
    if name == "table":
        probabilities, fit = solve_table(targets, say=say)
        core = DenseTable(probabilities)
    else:
        core, fit = solve_rows(targets, last=predicted(release), seed=seed, say=say)
    residuals = _in_sigmas(fit.residuals, targets, reconciled)
    exact = not all(targets.sigma.values())
    met = not _beyond(residuals, targets) and (fit.converged or not exact)
    notes = (*_divided(release.schema, targets), *(() if met else (_advice(residuals, targets),)))
    return core, replace(fit, residuals=residuals, converged=met, notes=notes)


def _divided(schema: Schema, targets: Targets) -> tuple[str, ...]:
    """That tables in groups of levels were refined, and how."""
    if not targets.refined:
        return ()
    names = [said(table_of(schema, query)) for query in targets.refined.values()]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return (
        f"levels in groups: {', '.join(names[:3])}{more}. Inside a group rows are divided among its levels as the column's own table says, evenly where no table has its levels; "
        "how levels of a group differ in other columns is not known",
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


def _paper(
    schema: Schema, reconciled: Reconciled, reading: Reading, rng: np.random.Generator
) -> tuple[Core, Fit]:
    """The paper's algorithm goes from the noisy tables straight to solve; only repeats of one table become one."""
    known = [table for table in reconciled.in_counts() if not table.query.groups]
    tables = [(table.query.axes, table.counts, table.variance) for table in known]
    notes: tuple[str, ...] = (f"reading: {reading}",)
    if reconciled.merged:
        targets = undenoised(reconciled)
        notes += _divided(schema, targets)
        tables += [
            (axes, targets.tables[axes] * targets.total, (targets.sigma[axes] * targets.total) ** 2)
            for axes in targets.refined
        ]
    probabilities, fit = solve_paper(reconciled.shape, tables, reading, rng=rng)
    skipped = f"{fit.skipped} equations had no usable denominator and were left out"
    notes += (skipped,) if fit.skipped else ()
    core = DenseTable(_cleared(probabilities, reconciled) if reconciled.domain.zeros else probabilities)
    return core, Fit(fit.negative_mass, fit.converged, notes=notes)


def _cleared(probabilities: Floats, reconciled: Reconciled) -> Floats:
    """Without the structural zeros, which the literal algorithm does not know."""
    kept = np.where(_impossible(reconciled.shape, reconciled.domain.zeros), 0.0, probabilities)
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
    distances = {}
    for axes, missed in residuals.items():
        query, table, sigma = (
            targets.refined.get(axes, Query(axes)),
            targets.tables[axes],
            targets.sigma[axes],
        )
        seen = query.apply(table, axes)
        merged = table.size / seen.size  # cells of each group, missed by so much each
        moved = (seen - reconciled.table(query) / reconciled.total).ravel()
        unit = sigma * merged or 1 / targets.total
        distances[axes] = math.sqrt(float(moved @ moved) / moved.size + merged * missed**2) / unit
    return distances
