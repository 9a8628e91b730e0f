"""SSS: do sign and statistical significance of an estimate agree between synthetic and original data?

The seven categories of Table 1 of Eugenio & Liu (arXiv 1812.05671):

    signs match?            Y     N        Y    Y    N    N    N
    original significant?   Y/N   N        Y    N    Y    N    Y
    synthetic significant?  Y/N   N        N    Y    N    Y    Y
    category                Best  Neutral  II+  I+   II-  I-   Worst

Best is both of "significant in both" and "in neither" with matching signs. II means lost significance, I
gained significance; minus means that the sign changed as well. The sign is sgn(estimate), and an estimate of
exactly 0 matches nothing. Significance is the caller's; `fit_models` uses "the 95 % t-interval excludes 0".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpcipher.drawing.bars import stacked_bars
from dpcipher.drawing.card import Card, CuratorOnly
from dpcipher.drawing.plot import Drawable, Plot, no_columns
from dpcipher.errors import ParameterError

TITLE = "Sign and statistical significance (SSS) of the estimates"
CATEGORIES = ("Best", "II+", "I+", "II-", "I-", "Neutral", "Worst")
# The paper's colours in the order of its bars. The paper's text gives green to "I-" by a slip; II- is meant.
COLOURS: Mapping[str, str] = {
    "Best": "#c62828",
    "II+": "#ef8a17",
    "I+": "#f4d03f",
    "II-": "#2e8b57",
    "I-": "#2b6cb0",
    "Neutral": "#9e9e9e",
    "Worst": "#6a1b9a",
}
MEANING: Mapping[str, str] = {
    "Best": "sign and significance as in the original",
    "II+": "significance lost, same sign",
    "I+": "significance gained, same sign",
    "II-": "significance lost, sign changed",
    "I-": "significance gained, sign changed",
    "Neutral": "sign changed, significant in neither",
    "Worst": "sign changed, significant in both",
}
# Indexed by [signs match, original significant, synthetic significant].
_LOOKUP = np.array([[["Neutral", "I-"], ["II-", "Worst"]], [["Best", "I+"], ["II+", "Best"]]])


@dataclass(frozen=True, repr=False)
class SSS(CuratorOnly, Drawable):
    """The category of every estimate, in the broadcast shape of the two inputs."""

    categories: NDArray[np.str_]

    @property
    def counts(self) -> dict[str, int]:
        """How many estimates fell into each category."""
        return {name: int((self.categories == name).sum()) for name in CATEGORIES}

    @property
    def shares(self) -> dict[str, float]:
        """The share of each category; they sum to 1."""
        return {name: count / self.categories.size for name, count in self.counts.items()}

    def _card(self) -> Card:
        return Card("SSS", {name: f"{count:,}" for name, count in self.counts.items() if count})

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        no_columns(columns, "an SSS assessment")
        return Plot(TITLE, {TITLE: draw({"": self})})

    def _text(self) -> str:
        return "\n".join(
            f"{name:8} {self.counts[name]:6d}  {share:6.1%}  {MEANING[name]}"
            for name, share in self.shares.items()
        )


def sss(
    original: tuple[ArrayLike, ArrayLike] | pd.DataFrame,
    synthetic: tuple[ArrayLike, ArrayLike] | pd.DataFrame,
) -> SSS:
    """Compare sign and significance; each side is `(estimates, significant)` or a table of `fit_models`.

    The two sides are broadcast, so one original can be compared with many repetitions at once.

    >>> sss(([1.0, -2.0], [True, False]), ([0.5, 2.0], [True, True])).categories.tolist()
    ['Best', 'I-']
    """
    first, first_sure = _side(original, "original")
    second, second_sure = _side(synthetic, "synthetic")
    try:
        match = (np.sign(first) * np.sign(second)) > 0
        index = np.broadcast_arrays(match, first_sure, second_sure)
    except ValueError:
        raise ParameterError(
            f"synthetic {second.shape} must broadcast with original {first.shape}; give the same parameters "
            "on both sides"
        ) from None
    return SSS(_LOOKUP[tuple(part.astype(int) for part in index)])


def draw(bars: Mapping[str, SSS]) -> str:
    """Stacked bars of the shares, one per label, as an inline SVG image in the paper's colours."""
    shares = {label: bar.shares for label, bar in bars.items()}
    return stacked_bars(shares, COLOURS, title=TITLE)


def _side(pairs: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    if isinstance(pairs, pd.DataFrame):
        pairs = (pairs["estimate"].to_numpy(), pairs["significant"].to_numpy())
    estimate, significant = np.asarray(pairs[0], dtype=float), np.asarray(pairs[1])
    if significant.dtype != bool:
        raise ParameterError(
            f"significance of {name} ({significant.dtype}) must be true or false; compare the interval with "
            "0 first"
        )
    if not np.isfinite(estimate).all() or not estimate.size:
        raise ParameterError(
            f"estimates of {name} must be finite numbers, at least one; fit with Firth's penalty where they "
            "are not"
        )
    if estimate.shape != significant.shape:
        raise ParameterError(
            f"significance of {name} {significant.shape} must have the shape of its estimates "
            f"{estimate.shape}"
        )
    return estimate, significant
