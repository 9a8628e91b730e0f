"""Models straight from a release: the regression of every draw of the joint distribution of the model's own columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from dpcipher.errors import ParameterError
from dpcipher.inference.assumptions import (
    measured_axes,
    measured_terms,
    prior_share,
    sets_asked_for,
    smallest_unmeasured,
)
from dpcipher.inference.bin_effects import bin_effects, bin_notes
from dpcipher.inference.cells import Missing, make_cells
from dpcipher.inference.drawn import Drawn
from dpcipher.inference.estimate import explained_share
from dpcipher.inference.fitted import Family, Models, ReleaseFit
from dpcipher.inference.formula import parse_formula
from dpcipher.inference.outcome import NUMERIC, make_regression
from dpcipher.inference.task import (
    PRIOR_DOMINATED,
    Task,
    assumption_notes,
    fit_notes,
    missing_notes,
    prior_notes,
)
from dpcipher.inference.unmeasured import leave_open
from dpcipher.marginals.arrays import Floats
from dpcipher.posteriors.posterior import posterior
from dpcipher.release.release import Release

# Draws of a posterior: fewer of a large table, which would take a lot of memory.
DRAWS, FEWER_DRAWS, LARGE = 1_000, 400, 4_000
# Draws that are enough to tell noise from sampling.
NOISE_DRAWS = 400

Unmeasured = Literal["open", "none"]


def fit_release(
    release: Release,
    formula: str,
    family: Family,
    *,
    levels: Mapping[str, Sequence[Any]],
    draws: int | None,
    seed: int | None,
    missing: Missing,
    values: Mapping[str, Sequence[float]],
    unmeasured: Unmeasured,
) -> Models:
    """Fit a model to draws of the joint distribution of its columns, given a release."""
    if unmeasured not in get_args(Unmeasured):
        raise ParameterError(f"unmeasured ({unmeasured!r}) must be 'open' or 'none'")
    task = _task(release, formula, family, levels, missing, values)
    if draws is None:
        draws = DRAWS if len(task.cells.keep) <= LARGE else FEWER_DRAWS
    opening = int(np.random.default_rng(seed).integers(2**32))  # the same for a table and its population
    joint = posterior(release, task.formula.columns, draws=draws, seed=seed)
    measured = measured_axes(release, task.formula.columns)
    asked = sets_asked_for(task, measured)
    others = smallest_unmeasured(len(task.formula.columns), measured, asked)
    opened = [*asked, *others] if unmeasured == "open" else asked
    whole = leave_open(joint.draws, measured, opened, opening)
    beta, converged = task.fit(whole)
    drawn, shown = Drawn(beta), measured_terms(task, measured)
    own = leave_open(joint.table_draws[:NOISE_DRAWS], measured, opened, opening)
    noise = noise_share(task.fit(own)[0], beta[:NOISE_DRAWS])
    closed = None
    if len(opened) > len(asked):
        closed = Drawn(task.fit(leave_open(joint.draws, measured, asked, opening))[0])
    bins = bin_effects(task.formula, task.cells, family, task.weights(whole).mean(axis=0), drawn.std_error)
    notes = [
        *assumption_notes(task, shown, drawn, closed, others),
        *bin_notes(bins, task.cells, frozenset(values)),
        *missing_notes(task, joint),
        *prior_notes(task, prior_share(release, task, drawn, opened) > PRIOR_DOMINATED, shown),
        *fit_notes(task, drawn, converged),
        *(note for note in joint.notes if not note.startswith("no table shows")),
    ]
    details = ReleaseFit(noise, shown, closed, bins, task.formula.columns)
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
    """The share of each coefficient's variance that is not sampling; not a number where a coefficient is not identified."""
    drawn = Drawn(population)
    return np.where(drawn.zero | np.isnan(drawn.estimate), np.nan, explained_share(table, population))
