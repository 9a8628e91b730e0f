"""The entry point of the solvers: reconcile, pick an engine, and say how it went."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Literal, overload

import numpy as np

from dpcipher.engines.denoise.interactions import Ordered
from dpcipher.engines.draws import NO_ENGINE, draw_joints
from dpcipher.engines.engine import Engine, Problem
from dpcipher.engines.independent import uniform_when_noise_dominates
from dpcipher.engines.paper import Paper
from dpcipher.engines.rows import Rows
from dpcipher.engines.table import FullTable
from dpcipher.errors import ParameterError, Progress, did_you_mean, shown_count, silent
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.report import SolveReport
from dpcipher.posteriors.threads import one_thread
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

AUTO = "auto"
ENGINES: Mapping[str, Engine] = {"paper": Paper(), "table": FullTable(), "rows": Rows()}
# Between this and ten million cells the rows engine becomes the faster one (benchmarks/results/cost.md). It is much faster on many binary columns before that, but
# 3- and 4-way tables, which nothing measured, come out 1.4 to 1.7 times as wrong where noise is small: 20 columns from two causes, all pairs, epsilon = e².
TABLE_CELLS = 2_000_000
LEAST_ROWS = 1e-6  # a number of rows that can be divided by; less is none
LEAST_ORDERED, MOST_ORDERED = 5, 512  # ordered levels: fewer have little to smooth, more take too long


@overload
def solve(
    release: Release,
    *,
    set: int,
    engine: str | Engine = AUTO,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joint: ...
@overload
def solve(
    release: Release,
    *,
    set: Literal["all"],
    engine: str | Engine = AUTO,
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
    engine: str | Engine = AUTO,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joint | list[Joint]: ...
def solve(
    release: Release,
    *,
    set: int | Literal["all"] | None = None,
    draws: int | None = None,
    columns: str | Sequence[str] | None = None,
    engine: str | Engine = AUTO,
    seed: int = 0,
    progress: Progress | None = None,
) -> Joint | list[Joint]:
    """The joint distribution behind a release.

    Of a release with m sets `set="all"` gives a list of m joints, and `set=0` the joint of the first, whatever m is. Without `set` it
    is the joint of a release with one set, and a list of joints otherwise.

    An engine is a value with its options. `dc.Paper()` is the paper's algorithm, as it is printed or by another reading of it. `dc.FullTable()` and `dc.Rows()`
    denoise the tables and fit the joint of largest entropy that has them, over all cells or over a population of rows. `"paper"`, `"table"` and `"rows"` stand for
    these without options; `"auto"` takes the full table while it is small, and rows beyond. `seed` fixes the arbitrary choices (the paper's targets, which differ
    from set to set and from release to release, and the population of rows); it is not a privacy matter, since everything here is post-processing.

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
        if engine != AUTO or set is not None:
            raise ParameterError(
                f"{'set' if engine == AUTO else 'engine'} must be left out with draws: {NO_ENGINE}"
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
    pick(engine, release.schema)  # refused before any work
    numbers = [set] if isinstance(set, int) else range(release.sets)
    joints = [
        solve_set(
            release,
            number,
            engine=engine,
            seed=int(seed),
            say=say if len(numbers) == 1 else _of_set(say, number, len(numbers)),
        )
        for number in numbers
    ]
    for joint in joints:
        joint.health.warn()
    return joints if set == "all" or len(joints) > 1 else joints[0]


def _of_set(say: Progress, number: int, of: int) -> Progress:
    return lambda text: say(f"set {number + 1} of {of}: {text}")


def solve_set(
    release: Release,
    number: int,
    *,
    engine: str | Engine = AUTO,
    seed: int = 0,
    say: Progress = silent,
) -> Joint:
    """The joint distribution behind one set of a release; its health holds the warnings, for the caller to give."""
    chosen, why = pick(engine, release.schema)
    started = time.perf_counter()
    with one_thread():
        say("reconciling the tables")
        reconciled = release.reconcile(number)
        if reconciled.total < LEAST_ROWS:
            return uniform_when_noise_dominates(release, reconciled)
        key = (number, int(release.checksum[:16], 16))
        orders, last = orders_of(release.schema), predicted(release)
        core, fit = chosen.solve(Problem(release.schema, reconciled, orders, last, seed, key, say))
    health = SolveReport(
        chosen.name,
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


def pick(engine: str | Engine, schema: Schema) -> tuple[Engine, str]:
    """Which engine runs, and why, judged on the schema alone."""
    if engine == AUTO:
        cells = math.prod(schema.shape)
        small = cells <= TABLE_CELLS
        side = "at most" if small else "above"
        why = f"the full table has {shown_count(cells)} cells, {side} {TABLE_CELLS:,}"
        return ENGINES["table" if small else "rows"], why
    chosen = as_engine(engine)
    chosen.check(schema)
    return chosen, "as asked"


def as_engine(engine: str | Engine) -> Engine:
    """An engine by its name, or as it is."""
    if isinstance(engine, Paper | FullTable | Rows):
        return engine
    names = (AUTO, *ENGINES)
    if not isinstance(engine, str):
        raise ParameterError(
            f"engine ({engine!r:.60}) must be one of {', '.join(names)}, or a value: dc.Paper(…), dc.FullTable() or dc.Rows(…)"
        )
    if engine not in ENGINES:
        raise ParameterError(
            f"engine ({engine!r:.60}) must be one of {', '.join(names)}{did_you_mean(engine, names)}"
        )
    return ENGINES[engine]


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
