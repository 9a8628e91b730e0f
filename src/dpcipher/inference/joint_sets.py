"""Sets of rows as a model sees them, drawn from joints: bins by their middle, categories by their labels, nothing for what is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpcipher.errors import ParameterError
from dpcipher.joint.imputed import Imputed
from dpcipher.joint.joint import Joint
from dpcipher.marginals.arrays import Codes
from dpcipher.schema.binned import Binned
from dpcipher.schema.column import Column
from dpcipher.schema.rows import by_column


def joints_among(sets: Any) -> list[Joint]:
    """The joints that were given in the place of sets of rows; none where they are rows. Some of each are refused."""
    listed = list(sets) if isinstance(sets, list | tuple) else [sets]
    joints = [item for item in listed if isinstance(item, Joint)]
    if joints and len(joints) < len(listed):
        raise ParameterError(
            f"sets ({len(joints)} joints among {len(listed)}) must be all joints or all rows; sample the joints, or leave the rows out"
        )
    return joints


def joint_frames(joints: Sequence[Joint], seed: int | None) -> list[pd.DataFrame]:
    """A set of rows of every joint, as many as it draws by default, evenly spread; those of draws say that they are imputations."""
    seeds = np.random.SeedSequence(seed).spawn(len(joints))
    return [_rows(joint, np.random.default_rng(own)) for joint, own in zip(joints, seeds, strict=True)]


def text_levels(joints: Sequence[Joint], levels: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The levels that were asked for, as their labels where the frames have labels."""
    schema = joints[0].schema
    labelled = {column.name for column in schema.columns if not isinstance(column.domain, Binned)}
    return {
        name: [str(level) for level in order] if name in labelled else list(order)
        for name, order in levels.items()
    }


def _rows(joint: Joint, rng: np.random.Generator) -> pd.DataFrame:
    if joint.n_rows < 1:
        raise ParameterError(
            "sets hold a joint of no rows: the noise drowned the number of rows; there is nothing to fit"
        )
    apart = by_column(joint.schema, joint.coded(joint.n_rows, rng))
    frame = pd.DataFrame(
        {column.name: _values(column, apart[column.name]) for column in joint.schema.columns}
    )
    if joint.health.is_draw:
        frame.attrs.update(Imputed().attrs)
    return frame


def _values(column: Column, codes: Codes) -> Any:
    known = codes < column.domain.size
    if not isinstance(column.domain, Binned):
        return pd.Categorical.from_codes(np.where(known, codes, -1), categories=list(column.domain.labels))
    low, high = column.domain.ends
    middles = ((low + high) / 2)[np.where(known, codes, 0)]
    return np.where(known, middles, np.nan)
