"""Several joints from one release: draws of the private table itself given the noise, for multiple imputation."""

import math
from functools import partial

import numpy as np

from dpcipher.errors import ParameterError, SizeError
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.report import SolveReport
from dpcipher.posteriors.evidence import MOST_CELLS
from dpcipher.posteriors.posterior import posterior
from dpcipher.release.release import Release

RULE = (
    "each joint is a draw of the private table given the noise; analyse every set with as many rows as it draws by default, evenly spread, and "
    "combine the estimates with combine(..., rule='imputations')"
)


def draw_joints(release: Release, draws: int, seed: int) -> list[Joint]:
    """Joints that are draws of the private table's own proportions, each with its draw of the number of rows.

    The model is that of `posterior` over all columns. Where these have too many cells there is no honest way: a joint fitted to denoised tables
    has their shrinkage in it, which no spread between draws would show.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 2:
        raise ParameterError(f"draws ({draws!r}) must be a whole number of 2 or more; try draws=5")
    cells = math.prod(release.schema.shape)
    if cells > MOST_CELLS:
        raise SizeError(
            f"draws ({draws}) need the full table, which has {cells:,} cells; at most {MOST_CELLS:,} can be drawn. For an analysis of a few columns "
            "use posterior or estimate on them; for sets of all columns use measure(sets=m)"
        )
    drawn = posterior(release, release.schema.attrs, int(draws), seed, population=False)
    report = partial(
        SolveReport, "posterior", why=f"{draws} draws from one release", seconds=drawn.report.seconds
    )
    notes = (str(drawn.report), RULE, *drawn.notes)
    return [
        with_rule_cost(
            Joint(
                release.schema, DenseTable(table), max(1, round(rows)), report(notes=notes), kind=release.kind
            )
        )
        for table, rows in zip(drawn.draws, drawn.rows.tolist(), strict=True)
    ]
