"""Models straight from a release: a regression for every draw of the joint of their columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcipher.inference.bin_effects import bin_effects, bin_notes
from dpcipher.inference.cells import Missing
from dpcipher.inference.design import Task, make_task
from dpcipher.inference.estimate import DrawSummary, explained_share
from dpcipher.inference.fitted import Models, ReleaseFit
from dpcipher.inference.notes import (
    Note,
    assumption_notes,
    coding_notes,
    fit_notes,
    in_short,
    intercept_notes,
    missing_notes,
    prior_notes,
    row_notes,
)
from dpcipher.inference.regression import Family
from dpcipher.inference.unmeasured import (
    Unmeasured,
    check_unmeasured,
    leave_open,
    measured_axes,
    measured_terms,
    prior_share,
    sets_asked_for,
    smallest_unmeasured,
)
from dpcipher.posteriors.posterior import Posterior, posterior, selection_notes, unseen_notes
from dpcipher.release.release import Release
from dpcipher.tables.domain import Axes, Bools, Floats

# Draws of a posterior: fewer of a large table, which would take a lot of memory.
DRAWS, FEWER_DRAWS, LARGE = 1_000, 400, 4_000
# Draws that are enough to tell noise from sampling.
NOISE_DRAWS = 400
# A posterior more than half as wide as the prior is mostly the prior's.
PRIOR_DOMINATED = 0.5


def fit_release(
    release: Release,
    formula: str,
    family: Family | None,
    *,
    levels: Mapping[str, Sequence[Any]],
    draws: int | None,
    seed: int | None,
    missing: Missing,
    values: Mapping[str, Sequence[float]],
    unmeasured: Unmeasured,
) -> Models:
    """Fit a model to draws of the joint distribution of its columns, given a release."""
    check_unmeasured(unmeasured)
    task = make_task(release.schema, formula, family, levels=levels, missing=missing, values=values)
    if draws is None:
        draws = DRAWS if len(task.cells.keep) <= LARGE else FEWER_DRAWS
    fit = draw_coefficients(release, task, draws=draws, seed=seed, unmeasured=unmeasured)
    joint, beta, drawn, closed = fit.joint, fit.beta, DrawSummary(fit.beta), fit.closed
    shown = measured_terms(task, fit.measured)
    noise = noise_share(fit.of_table(task), beta[:NOISE_DRAWS])
    bins = bin_effects(task, task.weights(fit.opened).mean(axis=0), drawn.std_error)
    dominated = (prior_share(release, task, beta, fit.sets) > PRIOR_DOMINATED) & ~drawn.zero
    chosen = selection_notes(release, joint.assumed, opened=unmeasured == "open")
    notes = [
        *assumption_notes(task, shown, drawn, closed, fit.others),
        *bin_notes(bins, task.cells, frozenset(values)),
        *coding_notes(task.formula, task.regression.family, release.schema, task.cells.bins, levels),
        *intercept_notes(task.formula, task.regression.family),
        *missing_notes(task, joint),
        *prior_notes(task, dominated, shown, noise),
        *fit_notes(task, drawn, fit.converged),
        *row_notes(release),
        *(Note(note) for note in chosen),
        *(Note(note) for note in joint.notes if note not in unseen_notes(release, joint.assumed)),
        Note(f"the sampler passed its checks: {joint.report.facts}"),
    ]
    details = ReleaseFit(noise, shown, dominated, closed, bins, task.formula.columns, joint.report)
    return Models(
        task.regression.terms,
        task.regression.family,
        beta,
        np.where(np.isnan(beta), np.nan, 0.0),
        drawn,
        False,
        tuple(note.text for note in notes),
        formula,
        details,
        in_short(notes),
        stamp="",
    )


@dataclass(frozen=True)
class CoefficientDraws:
    """The coefficients of every draw of a joint distribution, and what was left open for them.

    `sets` are the sets of columns whose interaction was left open, `others` those among the unmeasured ones
    that the formula does not ask for.
    """

    joint: Posterior
    opened: Floats
    beta: Floats
    converged: Bools
    closed: DrawSummary | None
    measured: list[Axes]
    sets: list[Axes]
    others: list[Axes]
    opening: int

    def of_table(self, task: Task) -> Floats:
        """The coefficients of the private table's own proportions, in the first draws."""
        own = leave_open(
            self.joint.table_draws[:NOISE_DRAWS], self.joint.levels, self.measured, self.sets, self.opening
        )
        return task.fit(own).coefficients


def draw_coefficients(
    release: Release, task: Task, *, draws: int, seed: int | None, unmeasured: Unmeasured = "open"
) -> CoefficientDraws:
    """The coefficients of draws of the joint, with and without the interactions that no table shows."""
    opening = int(np.random.default_rng(seed).integers(2**32))  # the same for a table and its population
    joint = posterior(release, task.formula.columns, draws=draws, seed=seed)
    measured = measured_axes(release, task.formula.columns)
    asked = sets_asked_for(task, measured)
    others = smallest_unmeasured(len(task.formula.columns), measured, asked)
    sets = [*asked, *others] if unmeasured == "open" else asked
    opened = leave_open(joint.draws, joint.levels, measured, sets, opening)
    fits = task.fit(opened)
    closed = None
    if len(sets) > len(asked):
        without = leave_open(joint.draws, joint.levels, measured, asked, opening)
        closed = DrawSummary(task.fit(without).coefficients)
    return CoefficientDraws(
        joint, opened, fits.coefficients, fits.converged, closed, measured, sets, others, opening
    )


def noise_share(table: Floats, population: Floats) -> Floats:
    """The share of each coefficient's variance that is not sampling; NaN where it is not identified or 0."""
    drawn = DrawSummary(population)
    return np.where(drawn.zero | np.isnan(drawn.estimate), np.nan, explained_share(table, population))
