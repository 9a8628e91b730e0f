"""What a model from a release rests on that the release cannot show: interactions of columns that no table holds together, and the prior."""

from collections.abc import Sequence
from math import prod

import numpy as np

from dpcipher.inference.drawn import Drawn
from dpcipher.inference.task import Task
from dpcipher.marginals.arrays import Bools, Floats
from dpcipher.posteriors.evidence import gather
from dpcipher.posteriors.log_linear import LogLinear
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

# Draws of the prior, to see how wide it is; their quartiles are all that is used.
PRIOR_DRAWS = 200


def measured_together(release: Release, columns: Sequence[str]) -> bool:
    """Whether one measured table holds all these columns."""
    attrs = set(release.schema.cover(tuple(columns)).attrs)
    return any(attrs <= set(table.attrs) for table in release.tables)


def assumed_terms(release: Release, outcome: Sequence[str], about: Sequence[tuple[str, ...]]) -> Bools:
    """The parameters about columns that no measured table holds together with the outcome."""
    together = {
        columns: measured_together(release, tuple(dict.fromkeys((*outcome, *columns))))
        for columns in set(about)
    }
    return np.array([not together[columns] for columns in about])


def sets_to_relax(
    assumed: Sequence[tuple[str, ...]], outcome: Sequence[str], schema: Schema
) -> list[tuple[str, ...]]:
    """The interactions that a relaxed model allows: those with the outcome in them, which is where a regression looks."""
    attrs = set(schema.cover(tuple(outcome)).attrs)
    return [columns for columns in assumed if attrs & set(columns)]


def n_coefficients(sets: Sequence[tuple[str, ...]], schema: Schema) -> int:
    """How many coefficients the interactions of these sets have."""
    return sum(prod(schema.shape[axis] - 1 for axis in schema.axes(columns)) for columns in sets)


def prior_share(release: Release, task: Task, drawn: Drawn) -> Floats:
    """How wide the draws of each parameter are beside draws of the prior, by their quartiles: near 1 the release says nothing."""
    cover = release.schema.cover(task.formula.columns)
    evidence = gather(release, cover.axes)
    model = LogLinear(evidence.shape, tuple(evidence.measured), evidence.possible)
    chances = model.probabilities(np.random.default_rng(0).normal(size=(PRIOR_DRAWS, model.size)))
    joints = np.stack([cover.fold(one) for one in chances.reshape(PRIOR_DRAWS, *evidence.shape)])
    prior, _ = task.fit(joints)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(drawn.zero, np.nan, _width(drawn.draws) / _width(prior))


def _width(draws: Floats) -> Floats:
    low, high = np.nanquantile(draws, [0.25, 0.75], axis=0)
    return np.asarray(high - low)
