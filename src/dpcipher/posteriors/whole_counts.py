"""What a noisy count says about the rate of a cell, with the true count, a whole number, summed out exactly.

A Poisson count s of rate λ = exp(η), seen as y with whole noise of law q, has the likelihood

    p(y | η) = exp(-λ) · Σ_s exp(s·η) q(y - s) / s!,

and the derivative of the logarithm of the sum is E[s | y, η]: both are tabulated along η, once for every count that occurs, and interpolated by
cubics that have them (Hermite). The sum is smooth however sharp q is, and little noise makes it no harder to follow.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Noise

# Log-rates of the table: from here to beyond the largest count, in steps of this.
LOWEST, STEP = -14.0, 0.05
# Noise with a chance below exp(-FAR) of the likeliest is left out.
FAR = 40.0
# A convolution by Fourier transform is right to about this part of its largest value; tails go on as they were there.
REACHED = 1e-12


@dataclass(frozen=True, eq=False)
class WholeCounts:
    """Noisy counts, whole numbers, of cells in a row; each has the noise of the sum of so many independent cells of a measured table."""

    seen: Floats
    noise: Noise
    summed: int

    @property
    def variance(self) -> float:
        """The exact variance of each."""
        return self.summed * self.noise.variance

    @cached_property
    def log_law(self) -> Floats:
        """The logarithm of the chance of 0, 1, 2, … up to where it is below exp(-FAR), but for a constant."""
        reach = 8
        while (law := self._log_law(reach))[-1] > -FAR:
            reach *= 2
        return law[: int(np.argmax(law <= -FAR)) + 1]

    def _log_law(self, reach: int) -> Floats:
        one = self._one(np.arange(reach + 1))
        if self.summed == 1:
            return one
        # The circle is wide enough for a sum that goes round it to be beyond what the transform can tell from 0.
        around = np.exp(np.concatenate([one, one[-2:0:-1]]))
        powers = (np.fft.rfft(around) / around.sum()) ** self.summed
        law = np.fft.irfft(powers, len(around))[: reach + 1]
        last = int(np.argmax(law < REACHED * law[0])) or reach + 1
        known = np.log(law[:last] / law[0])
        slope = known[-1] - known[-2] if last > 1 else one[1]
        return np.concatenate([known, known[-1] + slope * np.arange(1, reach + 2 - last)])

    def _one(self, size: Floats | NDArray[np.intp]) -> Floats:
        scale = self.noise.scale
        return np.asarray(-size / scale if self.noise.kind == "laplace" else -0.5 * (size / scale) ** 2)

    @cached_property
    def _distinct(self) -> tuple[Floats, NDArray[np.intp]]:
        """The counts that occur, and which of them every cell has."""
        values, which = np.unique(self.seen, return_inverse=True)
        return values, which.reshape(-1)

    @property
    def work(self) -> int:
        """Numbers that the table is made from."""
        return len(self._distinct[0]) * len(self._log_rates) * 2 * len(self.log_law)

    @cached_property
    def _log_rates(self) -> Floats:
        highest = np.log(max(self.seen.max(), 1.0) + len(self.log_law)) + 1
        return np.arange(LOWEST, highest + STEP, STEP)

    def _counts(self, value: float) -> tuple[Floats, Floats]:
        """The true counts that may be behind a noisy one, and the logarithm of their weights, noise and 1/s! together."""
        law = self.log_law
        reach = len(law) - 1
        counts = np.arange(max(0.0, value - reach), max(0.0, value) + reach + 1)
        gaps = np.abs(counts - value).astype(int)
        beyond = np.maximum(gaps - reach, 0) * (law[-1] - law[-2])  # only for counts far below 0
        return counts, law[np.minimum(gaps, reach)] + beyond - gammaln(counts + 1)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """The logarithm of the sum, and its rise over a step, for every count that occurs along the log-rates, one after the other."""
        values, means = [], []
        for value in self._distinct[0]:
            counts, weights = self._counts(value)
            terms = np.outer(self._log_rates, counts) + weights
            top = terms.max(axis=1, keepdims=True)
            shares = np.exp(terms - top)
            total = shares.sum(axis=1)
            values.append(top[:, 0] + np.log(total))
            means.append(STEP * (shares @ counts) / total)
        return np.concatenate(values), np.concatenate(means)

    def __call__(self, log_rates: Floats) -> tuple[Floats, Floats]:
        """For log-rates of all cells (chains by cells): the logarithm of the sum of every cell, and its derivative.

        Beyond the ends of the table the sum goes on as a straight line.
        """
        values, rises = self._table
        places = (log_rates - LOWEST) / STEP
        # Rates that are not finite look up entry 0; their value stays NaN.
        within = np.nan_to_num(np.clip(places, 0.0, len(self._log_rates) - 1.000001))
        step = within.astype(np.intp)
        part, start = within - step, self._distinct[1] * len(self._log_rates) + step
        low, up, last = values[start], rises[start], rises[start + 1]
        gain = values[start + 1] - low
        third = up + last - 2 * gain
        second = gain - up - third
        slope = up + part * (2 * second + 3 * part * third)
        value = low + part * (up + part * (second + part * third)) + slope * (places - within)
        return value, slope / STEP

    def draw(self, log_rates: Floats, rng: np.random.Generator) -> Floats:
        """True counts given the noisy ones and the rates (draws by cells)."""
        drawn = np.empty_like(log_rates)
        for number, value in enumerate(self._distinct[0]):
            cells = np.flatnonzero(self._distinct[1] == number)
            counts, weights = self._counts(value)
            terms = log_rates[:, cells, None] * counts + weights
            shares = np.cumsum(np.exp(terms - terms.max(axis=2, keepdims=True)), axis=2)
            chance = rng.random(shares.shape[:2])[..., None] * shares[..., -1:]
            drawn[:, cells] = counts[(shares < chance).sum(axis=2)]
        return drawn
