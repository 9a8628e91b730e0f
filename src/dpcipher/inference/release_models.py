"""Models straight from a release: the regression of every draw of the joint distribution of the model's own columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcipher.inference.assumptions import (
    measured_axes,
    measured_terms,
    prior_share,
    sets_asked_for,
    smallest_unmeasured,
)
from dpcipher.inference.bin_effects import bin_effects, bin_notes
from dpcipher.inference.cells import Missing, make_cells
from dpcipher.inference.coding_notes import coding_notes, intercept_notes
from dpcipher.inference.drawn import Drawn
from dpcipher.inference.estimate import explained_share
from dpcipher.inference.family import Family, family_of_expression
from dpcipher.inference.fitted import Models, ReleaseFit
from dpcipher.inference.formula import parse_formula
from dpcipher.inference.notes import Note, Rank, in_short
from dpcipher.inference.outcome import make_design, make_regression, with_family
from dpcipher.inference.task import (
    PRIOR_DOMINATED,
    Task,
    assumption_notes,
    fit_notes,
    missing_notes,
    prior_notes,
)
from dpcipher.inference.unmeasured import Unmeasured, check_unmeasured, leave_open
from dpcipher.posteriors.posterior import Posterior, posterior, selection_notes, unseen_notes
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Bools, Floats

# Draws of a posterior: fewer of a large table, which would take a lot of memory.
DRAWS, FEWER_DRAWS, LARGE = 1_000, 400, 4_000
# Draws that are enough to tell noise from sampling.
NOISE_DRAWS = 400


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
    joint, beta, drawn, closed = fit.joint, fit.beta, Drawn(fit.beta), fit.closed
    shown = measured_terms(task, fit.measured)
    noise = noise_share(fit.of_table(task), beta[:NOISE_DRAWS])
    bins = bin_effects(
        task.formula, task.cells, task.family, task.weights(fit.opened).mean(axis=0), drawn.std_error
    )
    dominated = prior_share(release, task, drawn, fit.sets) > PRIOR_DOMINATED
    chosen = selection_notes(release, joint.assumed, opened=unmeasured == "open")
    notes = [
        *assumption_notes(task, shown, drawn, closed, fit.others),
        *bin_notes(bins, task.cells, frozenset(values)),
        *coding_notes(task.formula, task.family, release.schema, task.cells.bins, levels),
        *intercept_notes(task.formula.right, formula, task.family),
        *missing_notes(task, joint),
        *prior_notes(task, dominated, shown, noise),
        *fit_notes(task, drawn, fit.converged),
        *_row_notes(release),
        *(Note(note) for note in chosen),
        *(Note(note) for note in joint.notes if note not in unseen_notes(release, joint.assumed)),
        Note(f"the sampler passed its checks: {joint.report.facts}"),
    ]
    details = ReleaseFit(noise, shown, dominated, closed, bins, task.formula.columns, joint.report)
    return Models(
        task.regression.terms,
        task.family,
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


def _row_notes(release: Release) -> list[Note]:
    """Which rows are counted, and how those of one person are taken."""
    scope, notes = release.statement.scope, list[Note]()
    if scope:
        notes.append(Note(scope, f"counts are {release.statement.counted}", Rank.ABOUT))
    if release.statement.unit and release.statement.unit["max_rows"] > 1:
        text = "rows of one person count as independent rows: where they are alike, the sampling part of the intervals is too short"
        notes.append(
            Note(text, "rows of one person count as independent: intervals may be too short", Rank.ABOUT)
        )
    return notes


@dataclass(frozen=True)
class CoefficientDraws:
    """The coefficients of every draw of a joint distribution, and what was left open for them.

    `sets` are the sets of columns whose interaction was left open, `others` those among the unmeasured ones that the formula does not ask for.
    """

    joint: Posterior
    opened: Floats
    beta: Floats
    converged: Bools
    closed: Drawn | None
    measured: list[Axes]
    sets: list[Axes]
    others: list[Axes]
    opening: int

    def of_table(self, task: Task) -> Floats:
        """The coefficients of the private table's own proportions, for as many draws as tell noise from sampling."""
        own = leave_open(
            self.joint.table_draws[:NOISE_DRAWS], self.joint.levels, self.measured, self.sets, self.opening
        )
        return task.fit(own)[0]


def draw_coefficients(
    release: Release, task: Task, *, draws: int, seed: int | None, unmeasured: Unmeasured = "open"
) -> CoefficientDraws:
    """The coefficients of draws of the joint of a model's columns, with and without the interactions that no table shows."""
    opening = int(np.random.default_rng(seed).integers(2**32))  # the same for a table and its population
    joint = posterior(release, task.formula.columns, draws=draws, seed=seed)
    measured = measured_axes(release, task.formula.columns)
    asked = sets_asked_for(task, measured)
    others = smallest_unmeasured(len(task.formula.columns), measured, asked)
    sets = [*asked, *others] if unmeasured == "open" else asked
    opened = leave_open(joint.draws, joint.levels, measured, sets, opening)
    beta, converged = task.fit(opened)
    closed = None
    if len(sets) > len(asked):
        closed = Drawn(task.fit(leave_open(joint.draws, joint.levels, measured, asked, opening))[0])
    return CoefficientDraws(joint, opened, beta, converged, closed, measured, sets, others, opening)


def make_task(
    schema: Schema,
    text: str,
    family: Family | None,
    *,
    levels: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    missing: Missing = "drop",
    values: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Task:
    """The regression of a formula over the cells of its columns, of the family that is asked for or that its outcome has."""
    formula, family = with_family(parse_formula(text, schema), family, schema)
    cells = make_cells(schema, formula, levels=levels, values=values, missing=missing)
    if family is None:
        family = family_of_expression(make_design(formula.left, formula, cells.frame).without_intercept().x)
    regression, about = make_regression(formula, cells.frame, family)
    return Task(formula, family, cells, regression, about)


def noise_share(table: Floats, population: Floats) -> Floats:
    """The share of each coefficient's variance that is not sampling; not a number where a coefficient is not identified."""
    drawn = Drawn(population)
    return np.where(drawn.zero | np.isnan(drawn.estimate), np.nan, explained_share(table, population))
