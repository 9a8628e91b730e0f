"""What an engine is, a frozen value that solves one set of a release, and what our own engines have in common: they fit denoised tables."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from dpcipher.engines.denoise.denoise import denoise
from dpcipher.engines.denoise.interactions import Ordered
from dpcipher.engines.targets import Fit, Targets
from dpcipher.errors import Progress, silent
from dpcipher.joint.core import Core
from dpcipher.release.reconcile import Reconciled
from dpcipher.schema.grouped import said, table_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes
from dpcipher.tables.query import Query

TOO_FAR = 5.0  # sigmas: denoising moves a table by about one; among many tables some by three


@dataclass(frozen=True)
class Problem:
    """One set of a release, reconciled, as an engine gets it.

    `orders` are the attributes whose levels follow one another, with those levels; `predicted` is the attribute that the tables were chosen to
    predict. `key` differs from release to release and from set to set, and with `seed` fixes arbitrary choices.
    """

    schema: Schema
    reconciled: Reconciled
    orders: Mapping[int, Ordered]
    predicted: int | None = None
    seed: int = 0
    key: tuple[int, ...] = ()
    say: Progress = silent

    def denoised(self) -> Targets:
        """The tables that agree, without what is only noise."""
        self.say("denoising the tables")
        return denoise(self.reconciled, self.orders)


class Engine(Protocol):
    """A way to solve: its options are its fields."""

    name: ClassVar[str]

    def check(self, schema: Schema) -> None:
        """Refuse, before any work, a schema whose joint would not fit, and options that do not fit it."""

    def solve(self, problem: Problem) -> tuple[Core, Fit]:
        """The joint, and how well it meets the tables."""


def solve_denoised(problem: Problem, fit: Callable[[Targets], tuple[Core, Fit]]) -> tuple[Core, Fit]:
    """Denoise the tables and fit them; residuals are then in units of the noise, and notes say what to do."""
    targets = problem.denoised()
    core, ended = fit(targets)
    residuals = _in_sigmas(ended.residuals, targets, problem.reconciled)
    exact = not all(targets.sigma.values())
    beyond = sum(value > TOO_FAR and targets.sigma[axes] > 0 for axes, value in residuals.items())
    met = not beyond and (ended.converged or not exact)
    notes = groups_note(problem.schema, targets)
    if not met:
        notes += (
            f"not all tables could be met: {beyond} of {len(residuals)} are more than {TOO_FAR:g} sigmas away. They contradict one another: check the "
            "scale of published tables and that they are about the same rows, or try another engine",
        )
    return core, replace(ended, residuals=residuals, converged=met, notes=notes)


def groups_note(schema: Schema, targets: Targets) -> tuple[str, ...]:
    """That tables in groups of levels were refined, and how."""
    if not targets.refined:
        return ()
    names = [said(table_of(schema, query)) for query in targets.refined.values()]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return (
        f"levels in groups: {', '.join(names[:3])}{more}. Inside a group rows are divided among its levels as the column's own table says, evenly where no table has its levels; "
        "how levels of a group differ in other columns is not known",
    )


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
