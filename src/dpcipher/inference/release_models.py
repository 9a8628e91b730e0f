"""Models straight from a release: the regression of every draw of the joint distribution of the model's own columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpcipher.errors import SizeError, SolveError
from dpcipher.inference.assumptions import (
    assumed_terms,
    n_coefficients,
    prior_share,
    sets_to_relax,
)
from dpcipher.inference.bin_effects import bin_effects, bin_notes
from dpcipher.inference.cells import Missing, make_cells
from dpcipher.inference.drawn import Drawn
from dpcipher.inference.fitted import Family, Models, ReleaseFit
from dpcipher.inference.formula import parse_formula
from dpcipher.inference.outcome import NUMERIC, make_regression
from dpcipher.inference.task import Task, assumption_notes, fit_notes, missing_notes, prior_notes
from dpcipher.marginals.arrays import Floats
from dpcipher.posteriors.posterior import Posterior, posterior
from dpcipher.release.release import Release

DRAWS = 1_000
# A relaxed model with more coefficients than this takes longer than its answer, which is mostly the prior's, is worth.
MOST_RELAXED = 3_000
TOO_LARGE = "the interactions that no table shows have more than {most:,} coefficients, so how far the estimates depend on leaving them out was not computed"
NOT_RELAXED = "the model with the interactions that no table shows could not be computed: {reason}"


def fit_release(
    release: Release,
    formula: str,
    family: Family,
    *,
    levels: Mapping[str, Sequence[Any]],
    draws: int,
    seed: int | None,
    missing: Missing,
    values: Mapping[str, Sequence[float]],
    relax: bool,
) -> Models:
    """Fit a model to draws of the joint distribution of its columns, given a release."""
    task = _task(release, formula, family, levels, missing, values)
    joint = posterior(release, task.formula.columns, draws=draws, seed=seed)
    beta, converged = task.fit(joint.draws)
    drawn = Drawn(beta)
    noise = noise_share(task.fit(joint.table_draws)[0], beta)
    assumed = assumed_terms(release, task.formula.outcome, task.about)
    relaxed, why = _relax(release, task, joint, draws, seed) if relax else (None, [])
    mean = task.weights(joint.draws).mean(axis=0)
    bins = bin_effects(task.formula, task.cells, family, mean, drawn.std_error)
    notes = [
        *assumption_notes(task, assumed, drawn, relaxed, joint),
        *why,
        *bin_notes(bins, task.cells, frozenset(values)),
        *missing_notes(task, joint),
        *prior_notes(task, prior_share(release, task, drawn)),
        *fit_notes(task, drawn, converged),
        *(note for note in joint.notes if not note.startswith("no table shows")),
    ]
    details = ReleaseFit(noise, assumed, relaxed, bins, task.formula.columns)
    return Models(
        task.regression.terms,
        family,
        beta,
        np.where(np.isnan(beta), np.nan, 0.0),
        drawn,
        False,
        tuple(notes),
        formula,
        details,
    )


def _task(
    release: Release,
    text: str,
    family: Family,
    levels: Mapping[str, Sequence[Any]],
    missing: Missing,
    values: Mapping[str, Sequence[float]],
) -> Task:
    formula = parse_formula(text, release.schema)
    if family not in NUMERIC and formula.plain_outcome is not None:
        # A number whose bins are the classes is a category: its classes are called as its bins are.
        formula = replace(formula, categories=formula.categories | {formula.plain_outcome})
    cells = make_cells(release.schema, formula, levels=levels, values=values, missing=missing)
    regression, about = make_regression(formula, cells.frame, family)
    return Task(formula, family, cells, regression, about)


def noise_share(table: Floats, population: Floats) -> Floats:
    """The share of the variance that is there although the whole table is meant: the privacy noise's. The rest is sampling.

    By the law of total variance: a draw of the population is drawn given a draw of the table, around which it scatters as a sample's
    population does.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(table.var(axis=0) / population.var(axis=0), 0.0, 1.0)
    return np.where(Drawn(population).zero, np.nan, share)


def _relax(
    release: Release, task: Task, joint: Posterior, draws: int, seed: int | None
) -> tuple[Drawn | None, list[str]]:
    """Draws of the coefficients when the interactions that no table shows are allowed, or the reason why there are none."""
    sets = sets_to_relax(joint.assumed, task.formula.outcome, release.schema)
    if not sets:
        return None, []
    if n_coefficients(sets, release.schema) > MOST_RELAXED:
        return None, [TOO_LARGE.format(most=MOST_RELAXED)]
    try:
        richer = posterior(release, task.formula.columns, draws=draws, seed=seed, interactions=sets)
    except (SolveError, SizeError) as error:
        return None, [NOT_RELAXED.format(reason=error)]
    return Drawn(task.fit(richer.draws)[0]), []
