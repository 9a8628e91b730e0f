"""Interactions that no measured table shows: drawn from the prior, every measured table kept."""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.inference.design import Task
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.log_linear import LogLinear, coarse_forms
from dpcipher.posteriors.prior import Levels, levels_of
from dpcipher.posteriors.raking import open_interactions
from dpcipher.release.release import Release
from dpcipher.tables.domain import Axes, Bools, Floats, closure, maximal
from dpcipher.tables.query import Query

Unmeasured = Literal["open", "none"]


# Draws of the prior, to see how wide it is; their quartiles are all that is used.
PRIOR_DRAWS = 200


def check_unmeasured(unmeasured: str) -> None:
    """Refuse an unknown treatment of interactions that no table shows."""
    if unmeasured not in get_args(Unmeasured):
        raise ParameterError(f"unmeasured ({unmeasured!r}) must be 'open' or 'none'")


def leave_open(
    joints: Floats, levels: Sequence[Levels], measured: Sequence[Axes], sets: Sequence[Axes], seed: int
) -> Floats:
    """Joints with the tables of `joints` on `measured`, and prior draws of the interactions of `sets` beyond.

    `levels` are those of every column. Draw i of an interaction is the same for the same seed, however many
    draws there are.

    >>> even = np.full((1, 2, 2), 0.25)
    >>> opened = leave_open(even, [Levels(2), Levels(2)], [(0,), (1,)], [(0, 1)], seed=1)
    >>> opened.sum(axis=1).round(4).tolist(), bool(abs(opened[0, 0, 0] - 0.25) > 0.01)
    ([[0.5, 0.5]], True)
    """
    known = set(closure(measured))
    parts = [part for part in closure(sets) if part and part not in known]
    if not parts:
        return joints
    return open_interactions(joints, levels, parts, [Query(axes) for axes in measured], seed)


def measured_axes(release: Release, columns: Sequence[str]) -> list[Axes]:
    """The largest sets of these columns, by their place among them, that one measured table holds."""
    sets = [tuple(place for place, name in enumerate(columns) if name in attrs) for attrs in release.workload]
    return maximal([axes for axes in sets if axes])


def measured_terms(task: Task, measured: Sequence[Axes]) -> Bools:
    """The parameters whose columns some measured table holds together with the outcome.

    A part of an interaction in the formula is the effect at the interaction's reference levels (or at 0), so
    it is shown only where the interaction is.
    """
    sets = task.sets()
    return np.array(
        [all(_inside(other, measured) for other in sets if set(axes) <= set(other)) for axes in sets]
    )


def sets_asked_for(task: Task, measured: Sequence[Axes]) -> list[Axes]:
    """The interactions with the outcome that a formula has terms for and no measured table shows.

    A formula with such a term does not take it for 0, so the model of the joint must not either.
    """
    return [axes for axes in dict.fromkeys(task.sets()) if not _inside(axes, measured)]


def smallest_unmeasured(columns: int, measured: Sequence[Axes], asked: Sequence[Axes] = ()) -> list[Axes]:
    """The smallest sets of columns that no measured table holds, without those that are `asked` for.

    >>> smallest_unmeasured(3, [(0, 1), (0, 2), (1, 2)]), smallest_unmeasured(3, [(0, 1), (2,)])
    ([(0, 1, 2)], [(0, 2), (1, 2)])
    """
    missing: list[Axes] = []
    for order in range(2, max(map(len, measured)) + 2):
        for axes in combinations(range(columns), order):
            if not _inside(axes, measured) and not any(set(less) < set(axes) for less in missing):
                missing.append(axes)
    return [axes for axes in missing if not _inside(axes, asked)]


def _inside(axes: Axes, sets: Sequence[Axes]) -> bool:
    return any(set(axes) <= set(other) for other in sets)


def prior_share(release: Release, task: Task, coefficients: Floats, asked: Sequence[Axes]) -> Floats:
    """The width of the draws of each parameter beside draws of the prior: near 1, the release adds nothing."""
    cover = release.schema.cover(task.formula.columns)
    evidence = gather(release, cover.axes)
    forms = coarse_forms(evidence.measured, evidence.queries)
    model = LogLinear(evidence.levels, tuple(evidence.measured), evidence.possible, forms)
    probabilities = model.probabilities(np.random.default_rng(0).normal(size=(PRIOR_DRAWS, model.size)))
    tables = probabilities.reshape(PRIOR_DRAWS, *evidence.shape)
    tables = open_interactions(tables, model.levels, tuple(forms), evidence.queries, 0) if forms else tables
    joints = np.ascontiguousarray(cover.fold_stack(tables))
    levels = [levels_of(release.schema, name) for name in task.formula.columns]
    opened = leave_open(joints, levels, measured_axes(release, task.formula.columns), asked, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _width(coefficients) / _width(task.fit(opened).coefficients)


def _width(draws: Floats) -> Floats:
    width, known = np.full(draws.shape[1], np.nan), ~np.isnan(draws).all(axis=0)
    if not known.any():
        return width
    width[known] = np.diff(np.nanquantile(draws[:, known], [0.25, 0.75], axis=0), axis=0)[0]
    return width
