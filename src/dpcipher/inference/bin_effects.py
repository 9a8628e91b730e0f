"""The effect of the values that stand for bins: the same model with other values inside the bins."""

import numpy as np
import pandas as pd

from dpcipher.errors import ParameterError
from dpcipher.inference.cells import Bins, Cells
from dpcipher.inference.design import Task, make_regressions
from dpcipher.inference.notes import Note, Rank
from dpcipher.tables.domain import Floats

# Points of a bin over which its rows are spread, and the largest table for which that is done.
POINTS = 5
MOST_CELLS = 50_000
MOVED = 0.5  # standard errors by which a choice inside bins moves a coefficient that the first view names

PLACES = {
    "low": "rows at the low ends of their bins,",
    "high": "at the high ends,",
    "spread": "spread evenly over them with no relation to other columns,",
}
HEADS = ["column", "term", "low", "high", "spread"]


def bin_effects(task: Task, weights: Floats, std_error: Floats) -> pd.DataFrame:
    """The move of each coefficient, in standard errors, when other values stand for the bins.

    `low` and `high` put every row at the first and last value of its bin. `spread` puts the rows of a bin
    evenly over it, the other columns unrelated to where in the bin a row is. All fits are to one table, the
    mean of the draws; NaN where a fit has no such values.
    """
    cells = task.cells
    if not any(bins.wide for bins in cells.bins.values()):
        return pd.DataFrame([], columns=HEADS)
    base = task.regression.fit_draws(weights[None]).coefficients[0]
    rows = []
    for name, bins in cells.bins.items():
        if not bins.wide:
            continue
        others = [
            (cells.with_values(name, bins.low), weights),
            (cells.with_values(name, bins.high), weights),
            _spread(cells, weights, bins),
        ]
        fits = [_refit(task, *other) for other in others]
        shifts = [(beta - base) / std_error for beta in fits]
        rows += [
            (name, term, *(float(shift[place]) for shift in shifts)) for place, term in enumerate(task.terms)
        ]
    return pd.DataFrame(rows, columns=HEADS)


def _refit(task: Task, frame: pd.DataFrame, weights: Floats) -> Floats:
    """The coefficients with other values; NaN where these have no such model, as the logarithm of 0."""
    unknown = np.full(len(task.terms), np.nan)
    if not len(frame):
        return unknown
    try:
        regression = make_regressions(task.formula, [frame], task.regression.family)[0]
    except ParameterError:
        return unknown
    fits = regression.fit_draws(weights[None])
    return fits.coefficients[0] if len(regression.terms) == len(task.terms) else unknown


def _spread(cells: Cells, weights: Floats, bins: Bins) -> tuple[pd.DataFrame, Floats]:
    """Every cell as several rows with values evenly over its bin; no rows where that would be too many."""
    if len(weights) > MOST_CELLS:
        return cells.frame.iloc[:0], weights[:0]
    parts = (np.arange(POINTS) + 0.5) / POINTS
    frames = [cells.with_values(bins.column, bins.low + part * (bins.high - bins.low)) for part in parts]
    return pd.concat(frames, ignore_index=True), np.tile(weights / POINTS, POINTS)


def bin_notes(effects: pd.DataFrame, cells: Cells, declared: frozenset[str]) -> list[Note]:
    """A sentence for each column: the value that stands for a bin, and the effect of others."""
    notes = []
    for name, bins in cells.bins.items():
        if bins.wide:
            own = _slopes(effects[effects["column"] == name])
            text = f"{coding_of_bins(bins, given=name in declared)}. {_moves(own)}"
            notes.append(Note(text, _moves_in_short(name, own), Rank.SENSITIVE))
    return notes


def coding_of_bins(bins: Bins, *, given: bool) -> str:
    """Which value stands for a bin."""
    value = "the value given" if given else "its middle"
    start = f"{bins.column}: {value} stands for each of its {len(bins.low)} bins"
    return f"{start}, and the coefficients are those of that coding"


def _slopes(effects: pd.DataFrame) -> pd.DataFrame:
    """The effects on slopes, by term; intercepts and cut points move with any shift."""
    return effects[~effects["term"].str.contains(r"(?:^|: )Intercept$|\|", regex=True)].set_index("term")


def _moves_in_short(name: str, slopes: pd.DataFrame) -> str:
    """The largest move on one line; empty where it is small."""
    sizes = slopes[list(PLACES)].abs().max(axis=1).dropna()
    if not len(sizes) or sizes.max() < MOVED:
        return ""
    return f"bins of {name}: other values in them move {sizes.idxmax()} by up to {sizes.max():.1f} s.e."


def _moves(slopes: pd.DataFrame) -> str:
    """How far the most affected coefficient moves, for each choice of values inside the bins."""
    parts = [
        f"{how} {_largest(slopes[column].dropna())}"
        for column, how in PLACES.items()
        if slopes[column].notna().any()
    ]
    if not parts:
        return "The effect of other values is unknown"
    return "How far the most affected coefficient would move, in standard errors: " + "; ".join(parts)


def _largest(shifts: pd.Series) -> str:
    place = int(np.argmax(np.abs(shifts.to_numpy())))
    most = float(shifts.iloc[place])
    return "by less than 0.05" if abs(most) < 0.05 else f"{shifts.index[place]} by {most:+.2f}"
