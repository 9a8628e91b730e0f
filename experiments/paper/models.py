"""Both regressions from one release of all pairs, at the whole epsilon: intervals that hold the noise, beside those of the paper's m sets.

They are what `fit_models` gives for such a release. The noise is seeded: NOT PRIVATE.
"""

from functools import cache
from zlib import crc32

import numpy as np

from dpcipher.curator.answers import release_of
from dpcipher.curator.counts import Tally
from dpcipher.inference.design import Task, make_task
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.regression import Family
from dpcipher.inference.release_models import draw_coefficients
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.terms import Privacy
from dpcipher.release.release import Release
from dpcipher.request.request import Request
from dpcipher.tables.domain import Counts
from dpcipher.tables.table import margin
from experiments.paper.contenders import Stack
from experiments.paper.rivals import SIMULATED_SCHEMA

NAME = "models of one release"
BOUNDS = ("estimate", "low", "high")
# A fit takes a second or less, and so it is made on every few repeats only.
EVERY = 10
DRAWS = 400
# The regressions of `population.REGRESSIONS`; their parameters stand in the same order.
FORMULAS: tuple[tuple[str, Family], ...] = (
    ("V4 ~ C(V1) + C(V2) + C(V3)", "multinomial"),
    ("V1 ~ C(V2) + C(V3) + C(V4)", "logistic"),
)


def fit_originals(originals: Counts, *, epsilon: float, entropy: tuple[int, ...]) -> dict[str, Stack]:
    """Estimates and 95 % intervals of both regressions, one release for each original table."""
    seeds = np.random.SeedSequence([*entropy, crc32(NAME.encode())]).generate_state(2 * len(originals))
    fits = [
        _fit(release_pairs(counts, epsilon, int(noise)), int(draws))
        for counts, noise, draws in zip(originals, seeds[::2], seeds[1::2], strict=True)
    ]
    return {key: np.array([fit[key] for fit in fits]) for key in fits[0]}


def release_pairs(counts: Counts, epsilon: float, seed: int) -> Release:
    """All pairs of one table; n is public, as it is for every method here."""
    privacy = Privacy.parse(epsilon=epsilon, unit="add-remove", n_rows_public=True)
    request = Request.parse(SIMULATED_SCHEMA, privacy, workload=2)
    axes = tuple(range(counts.ndim))
    tally = Tally(int(counts.sum()), tuple(margin(counts, axes, keep) for keep in request.axes))
    return release_of(tally, request, Draws.seeded(seed))


def _fit(release: Release, seed: int) -> dict[str, Stack]:
    """Estimate, lower and upper bounds of every parameter, for each regression."""
    found: dict[str, Stack] = {}
    for number in range(len(FORMULAS)):
        drawn = DrawSummary(draw_coefficients(release, _task(number), draws=DRAWS, seed=seed).beta)
        values = (drawn.estimate, *drawn.interval())
        found |= {f"{NAME}/{key}{number}": value for key, value in zip(BOUNDS, values, strict=True)}
    return found


@cache
def _task(number: int) -> Task:
    """The regression as `fit_models` makes it of its formula."""
    text, family = FORMULAS[number]
    return make_task(SIMULATED_SCHEMA, text, family)
