"""Several joints from one release: draws of the private table itself given the noise, for multiple imputation."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from dpcipher.errors import ParameterError, SizeError, shown_count
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.imputed import wide_bins
from dpcipher.joint.joint import Joint, with_rule_cost
from dpcipher.joint.report import DRAWS, SolveReport
from dpcipher.posteriors.evidence import MOST_CELLS
from dpcipher.posteriors.posterior import posterior
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema

RULE = (
    "each set is a draw of the private table given the noise; analyse every set with as many rows as it has by default, evenly spread, and combine the "
    "estimates by Rubin's rule: fit_models(sets, formula, rule='imputations'), combine(..., rule='imputations'), or pool in R's mice"
)
NO_ENGINE = "draws come from the posterior given all sets of the release, and no engine solves for them"
BINNED = (
    "{names}: known up to bins. With values='middle' (synth --values middle) rows have the middle of each bin, as models from a release take it; otherwise values drawn "
    "inside it, unrelated to the other columns: slopes on such numbers then come out too near 0, which no interval holds"
)
PART = "these sets are of {part} of {whole} columns; another draw has other rows, so that sets of other columns cannot be joined to them"


def draw_joints(
    release: Release, draws: int, seed: int, *, columns: str | Sequence[str] | None = None
) -> list[Joint]:
    """Joints that are draws of the private table's own proportions, each with its draw of the number of rows.

    The model is that of `posterior` over all columns, or over those that are named. Where these have too many cells there is no honest way: a joint
    fitted to denoised tables has their shrinkage in it, which no spread between draws would show.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 2:
        raise ParameterError(f"draws ({draws!r}) must be a whole number of 2 or more; try draws=5")
    names = release.schema.attrs if columns is None else columns
    _check_cells(release.schema, names, draws)
    drawn = posterior(release, names, int(draws), seed, population=False)
    schema = release.schema if columns is None else drawn.schema
    report = partial(SolveReport, DRAWS, why=f"{draws} draws from one release", seconds=drawn.report.seconds)
    notes = (str(drawn.report), RULE, *_notes(release.schema, schema), *drawn.notes)
    return [
        with_rule_cost(
            Joint(
                schema,
                DenseTable(table),
                max(1, round(rows)),
                report(notes=notes),
                kind=release.kind,
                release=release.origin,
            )
        )
        for table, rows in zip(drawn.draws, drawn.rows.tolist(), strict=True)
    ]


def _check_cells(schema: Schema, names: str | Sequence[str], draws: int) -> None:
    axes = schema.axes(names)
    cells = math.prod(schema.shape[axis] for axis in axes)
    if cells > MOST_CELLS:
        table = "the full table" if len(axes) == len(schema.attrs) else "the table of these columns"
        raise SizeError(
            f"draws ({draws}) need {table}, which has {shown_count(cells)} cells; at most {MOST_CELLS:,} can be drawn. Name the columns of one analysis: "
            "columns=('age', 'sex') or synth --columns age,sex; for sets of all columns use measure(sets=m)"
        )


def _notes(whole: Schema, schema: Schema) -> list[str]:
    """What follows from bins, and from leaving columns out."""
    binned, part = wide_bins(schema), len(schema.columns) < len(whole.columns)
    return [
        *([BINNED.format(names=", ".join(binned))] if binned else []),
        *([PART.format(part=len(schema.columns), whole=len(whole.columns))] if part else []),
    ]
