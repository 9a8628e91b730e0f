"""What a posterior is asked for: a release, columns, a number of draws and a seed, checked before anything is computed."""

from collections.abc import Iterable
from os import PathLike

import numpy as np

from dpcipher.errors import ParameterError, WorkloadError
from dpcipher.release.release import Release

MOST_DRAWS = 100_000


def check_release(release: object) -> None:
    """Refuse what is no release, and say how to get one."""
    if isinstance(release, Release):
        return
    if isinstance(release, (str, PathLike)):
        raise ParameterError(
            f"release ({str(release)!r:.100}) must be a release and not a path; load it with dc.Release.load(path)"
        )
    raise ParameterError(
        f"release ({type(release).__name__}) must be a release; dc.measure makes one of rows, and dc.Release.load(path) reads one"
    )


def check_draws(draws: object) -> None:
    """Refuse a number of draws that is none, or too small or too large."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or not 2 <= draws <= MOST_DRAWS:
        raise ParameterError(
            f"draws ({draws!r}) must be a whole number from 2 to {MOST_DRAWS:,}; try draws=100"
        )


def checked_columns(columns: object) -> tuple[str, ...]:
    """The names of one or more columns, as a tuple; whether a schema knows them is another question."""
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, Iterable):
        shown = type(columns).__name__ if callable(columns) else f"{columns!r:.60}"
        raise WorkloadError(
            f"columns ({shown}) must be the name of a column or a list of names; try columns=('age', 'sex')"
        )
    names = tuple(columns)
    if not names:
        raise WorkloadError("columns (none) must name at least one column; try columns=('age', 'sex')")
    return names
