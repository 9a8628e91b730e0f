"""Rows of sets with a missing value in a column of the model: left out where that is asked for, refused otherwise."""

from collections.abc import Sequence

import pandas as pd

from dpcipher.errors import ParameterError
from dpcipher.inference.notes import Note, Rank, listed

DROPPED = (
    "rows with a missing value in {names} were left out, {share} of a set: the estimates are about the others"
)


def without_missing(
    frames: list[pd.DataFrame], columns: list[str], *, drop: bool
) -> tuple[list[pd.DataFrame], list[Note]]:
    """The rows of every set that have a value in all of these columns, and a note on how many have not."""
    absent = [frame[columns].isna() for frame in frames]
    names = [name for name in columns if any(empty[name].any() for empty in absent)]
    if not names:
        return frames, []
    if not drop:
        raise ParameterError(
            f"columns ({', '.join(names)}) must have a value in every row (one of levels, where these are given). missing='drop' leaves the other rows out of "
            f"every set, as [frame.dropna(subset={names}) for frame in sets] does"
        )
    kept = [frame[~empty.any(axis=1)] for frame, empty in zip(frames, absent, strict=True)]
    if not all(map(len, kept)):
        raise ParameterError(
            f"columns ({', '.join(names)}) have no row with a value in all of them in some set"
        )
    shares = [1 - len(few) / len(frame) for few, frame in zip(kept, frames, strict=True)]
    return kept, [dropped_note(names, shares)]


def dropped_note(names: Sequence[str], shares: Sequence[float]) -> Note:
    """Which share of each set was left out for a missing value in these columns."""
    share = _range(shares)
    short = f"without {share} of the rows: {listed(names)} is missing there"
    return Note(DROPPED.format(names=", ".join(names), share=share), short, Rank.ABOUT)


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * share:.1f}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"
