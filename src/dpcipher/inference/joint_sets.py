"""Sets of rows drawn from joints, as a model sees them: coded as the cells of a release are."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.errors import ParameterError
from dpcipher.inference.bin_effects import coding_of_bins
from dpcipher.inference.cells import Cells, Missing, coded_cells
from dpcipher.inference.coding_notes import coding_notes
from dpcipher.inference.family import Family
from dpcipher.inference.formula import read_formula
from dpcipher.inference.missing_rows import dropped_note
from dpcipher.inference.notes import Note
from dpcipher.inference.outcome import with_family
from dpcipher.joint.imputed import Imputed
from dpcipher.joint.joint import Joint
from dpcipher.tables.domain import CodeColumn


def joints_among(sets: Any) -> list[Joint]:
    """The joints that were given in the place of sets of rows; none where they are rows. Some of each are refused."""
    listed = list(sets) if isinstance(sets, list | tuple) else [sets]
    joints = [item for item in listed if isinstance(item, Joint)]
    if joints and len(joints) < len(listed):
        raise ParameterError(
            f"sets ({len(joints)} joints among {len(listed)}) must be all joints or all rows; sample the joints, or leave the rows out"
        )
    return joints


def joint_frames(
    joints: Sequence[Joint],
    text: str,
    family: Family | None,
    *,
    seed: int | None,
    levels: Mapping[str, Sequence[Any]],
    values: Mapping[str, Sequence[float]],
    missing: Missing,
) -> tuple[list[pd.DataFrame], Family | None, list[Note]]:
    """A set of rows of every joint in the columns of a formula, the family of its model if that is known by now, and notes on how these were coded.

    A set has as many rows as its joint draws by default, evenly spread; those of draws say that they are imputations.
    """
    schema = joints[0].schema
    if any(joint.schema != schema for joint in joints):
        raise ParameterError("sets (joints) must have the same columns; give the joints of one release")
    formula, family = with_family(read_formula(text, schema, "joints"), family, schema)
    seeds = np.random.SeedSequence(seed).spawn(len(joints))
    rows = [
        coded_cells(
            schema,
            formula,
            _codes(joint, np.random.default_rng(own)),
            levels=levels,
            values=values,
            missing=missing,
        )
        for joint, own in zip(joints, seeds, strict=True)
    ]
    notes = [
        *(
            Note(coding_of_bins(bins, given=bins.column in values))
            for bins in rows[0].bins.values()
            if bins.wide
        ),
        *coding_notes(formula, family, schema, rows[0].bins, levels),
        *_dropped(rows),
    ]
    return [_marked(part.frame, joint) for part, joint in zip(rows, joints, strict=True)], family, notes


def _codes(joint: Joint, rng: np.random.Generator) -> dict[str, CodeColumn]:
    """The codes of a set of rows by column, and by attribute where one is made of several columns."""
    if joint.n_rows < 1:
        raise ParameterError(
            "sets hold a joint of no rows: the noise drowned the number of rows; there is nothing to fit"
        )
    codes = joint.coded(joint.n_rows, rng)
    return dict(zip(joint.schema.attrs, codes.T, strict=True)) | joint.schema.by_column(codes)


def _dropped(rows: Sequence[Cells]) -> list[Note]:
    """A note on the rows that were left out for a missing value."""
    shares = [1 - float(part.keep.mean()) for part in rows]
    return [dropped_note(rows[0].dropped, shares)] if any(shares) else []


def _marked(frame: pd.DataFrame, joint: Joint) -> pd.DataFrame:
    if joint.health.is_draw:
        frame.attrs.update(Imputed().attrs)
    return frame
