"""The number of rows that a method may use: public under replacement, bought and then improved otherwise."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.session import Session

# Nothing is known yet: any table that is measured outweighs it, without dividing infinities.
_UNKNOWN = 1e300
# The share of the budget that buys the number of rows where it is private.
ROWS_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class Total:
    """An estimate of the number of rows with its variance; 0 means public."""

    estimate: float
    variance: float

    @property
    def rows(self) -> float:
        """A number of rows that can be divided by."""
        return max(1.0, self.estimate)

    def with_table(self, counts: NDArray[np.int64] | NDArray[np.float64], cell_variance: float) -> "Total":
        """Improve the estimate by the sum of a noisy table, weighting both by their precision."""
        if self.variance == 0:
            return self
        theirs = counts.size * cell_variance
        weight = self.variance / (self.variance + theirs)
        return Total(self.estimate + weight * (float(counts.sum()) - self.estimate), weight * theirs)


def first_total(session: Session, share: Fraction = ROWS_SHARE) -> Total:
    """The public number of rows, or one bought with a share of the budget."""
    if session.n_rows is not None:
        return Total(float(session.n_rows), 0.0)
    noisy, mechanism = session.total(share)
    return Total(float(noisy), mechanism.variance)


def no_total(session: Session) -> Total:
    """The public number of rows, or an estimate that the first measured table replaces."""
    return Total(0.0, _UNKNOWN) if session.n_rows is None else Total(float(session.n_rows), 0.0)
