"""Where a range begins and ends, from noisy counts of bands that cover all numbers; public numbers only.

Rows beyond the ends of a range are lost to it, while an end too far out costs one bin that is nearly empty. So bands are judged by runs: the rows of a skewed
column stand out of the noise together where no band of them does by itself. Each band of a run must make up for some of its noise, so that a run
ends where nothing seems to follow. Where noise could as well be rows, numbers near one are likelier than very large and very small ones.
"""

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from dpcipher.selection.binning import clear_of_noise
from dpcipher.tables.domain import Floats

BAND_CHANCE = (
    10_000  # one in so many: the chance that noise alone is taken for the rows of a band, wherever it lies
)
RUN_CHANCE = 100  # and for those of a run of them, beside the fullest one
# In standard deviations, what a band must hold to lengthen a run, and what it must hold more for every power of two from one: settled in benchmarks/ranges.py.
BAND_NOISE, POWER_NOISE = 1.0, 0.05
SPREAD = 10  # bands over which rows are taken to lie where it is said how many make a range stand out
MARGIN = 1.0  # of the width of the rows that are clearly there: the noise hides the tails beyond them


def inhabited_bands(
    counts: Floats, powers: Floats, sides: Sequence[slice], sd: float, *, laplace: bool
) -> tuple[int, int]:
    """The first band with rows, and one past the last: the fullest run, and all other runs and bands that clearly hold rows.

    `powers` says how many powers of two from one a band lies, and `sides` are the bands below, at and above zero: a run lies on one of them, since what is
    empty between two sides tells nothing of either. The noise on the counts has the standard deviation `sd`.
    """
    runs, sums = _runs(counts, powers, sides, sd)
    clear_run, clear_band = _clear(len(counts), sd, laplace=laplace)
    kept = [run for run, value in zip(runs, sums, strict=True) if value >= min(clear_run, sums.max())]
    places = [
        *np.flatnonzero(counts > clear_band),
        *(place for run in kept for place in (run.start, run.stop - 1)),
    ]
    return int(min(places)), int(max(places)) + 1


def stand_out(counts: Floats, powers: Floats, sides: Sequence[slice], sd: float, *, laplace: bool) -> bool:
    """Whether a run or a band clearly holds rows; where none does, the fullest run may be noise alone, and a range around it is a guess."""
    clear_run, clear_band = _clear(len(counts), sd, laplace=laplace)
    return bool(_runs(counts, powers, sides, sd)[1].max() >= clear_run or counts.max() > clear_band)


def rows_to_find(bands: int, sd: float, *, laplace: bool) -> int:
    """How many rows stand out of the noise 19 times out of 20, be they spread over a thousandfold range: `SPREAD` bands, up to so many powers of two from one."""
    clear_run, _ = _clear(bands, sd, laplace=laplace)
    hidden = sum(BAND_NOISE + POWER_NOISE * power for power in range(1, SPREAD + 1))
    return math.ceil(clear_run + sd * (hidden + NormalDist().inv_cdf(0.95) * math.sqrt(SPREAD)))


def _runs(counts: Floats, powers: Floats, sides: Sequence[slice], sd: float) -> tuple[list[slice], Floats]:
    """The fullest run of each side, and what it holds beyond the noise of its bands."""
    values = counts - (BAND_NOISE + POWER_NOISE * powers) * sd
    runs = [fullest_run(values[side], side.start) for side in sides]
    return runs, np.array([values[run].sum() for run in runs])


def _clear(bands: int, sd: float, *, laplace: bool) -> tuple[float, float]:
    """What a run, and a band, must hold to be clear of the noise."""
    run, band = (
        sd * clear_of_noise(bands, laplace=laplace, chance=chance) for chance in (RUN_CHANCE, BAND_CHANCE)
    )
    return run, band


def fullest_run(values: Floats, start: int = 0) -> slice:
    """The run of neighbours with the largest sum, at least one of them; the first has the number `start`.

    >>> fullest_run(np.array([-2.0, 3.0, -1.0, 4.0, -5.0, 5.0]))
    slice(1, 4, None)
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    stop = int(np.argmax(sums[1:] - np.minimum.accumulate(sums[:-1]))) + 1
    return slice(start + int(np.argmin(sums[:stop])), start + stop)


def sides_of_zero(starts: Floats) -> list[slice]:
    """The bands below, at and above zero, where there are any.

    >>> sides_of_zero(np.array([-2.0, -1.0, 0.0, 1.0]))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    cuts = [0, *(np.flatnonzero(np.diff(np.sign(starts))) + 1).tolist(), len(starts)]
    return [slice(first, last) for first, last in itertools.pairwise(cuts)]


def powers_from_one(lows: Floats, highs: Floats) -> Floats:
    """How many powers of two from one the far end of each band lies."""
    return np.asarray(np.abs(np.log2(np.maximum(np.abs(lows), np.abs(highs)))))


def with_margin(low: float, high: float, *, signed: bool = True) -> tuple[float, float]:
    """A range that goes on beyond the rows that are clearly there by as much as they reach themselves; of `signed` numbers not to the other side of zero.

    >>> with_margin(10.0, 40.0), with_margin(-5.0, 3.0)
    ((0.0, 70.0), (-13.0, 11.0))
    """
    reach = MARGIN * (high - low)
    least, most = low - reach, high + reach
    return max(least, 0.0) if signed and low >= 0 else least, min(most, 0.0) if signed and high <= 0 else most
