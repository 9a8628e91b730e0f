"""Models by formula, from one release or from m synthetic sets: one class for what comes out."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import UNKNOWN
from dpcipher.drawing.plot import Drawable, Plot
from dpcipher.inference.combine import Combined
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.regression import Family
from dpcipher.posteriors.sampler import SamplerReport
from dpcipher.tables.domain import Bools, Floats

# Above this share of a variance, the privacy noise and not the rows decides how wide an interval is.
MOSTLY = 0.5


@dataclass(frozen=True)
class ReleaseFit:
    """The facts about each parameter that only a model from a release has.

    `noise_share` is the share of the variance that comes from the privacy noise and from what was not
    measured; the rest is sampling. `measured` marks the parameters about columns that some measured table
    holds together with the outcome, `dominated` those whose intervals the prior shapes more than the release.
    `closed` are draws when the interactions that no table shows, those of the formula aside, are taken for
    none; None where there are none, or where the draws themselves take them so. `bins` is the effect of other
    values for the bins of numbers, in standard errors. `sampler` is how the draws were accepted.
    """

    noise_share: Floats
    measured: Bools
    dominated: Bools
    closed: DrawSummary | None
    bins: pd.DataFrame
    columns: tuple[str, ...]
    sampler: SamplerReport


@dataclass(frozen=True, repr=False)
class Models(Shown, Drawable):
    """A fitted model: one row per parameter, and what to keep in mind.

    `print` shows what matters first on one screen; `details` and `frame` have everything. `notes` are in
    full, `brief` on one line each, the most important first.

    `estimates` and `variances` keep the fits: sets by parameters, NaN where a set does not identify a
    parameter. From a release, `estimates` holds the fit to every draw of the joint, which is a whole
    population: its variance is 0.
    """

    terms: tuple[str, ...]
    family: Family
    estimates: Floats
    variances: Floats
    combined: Combined | DrawSummary
    firth: bool
    notes: tuple[str, ...]
    formula: str = ""
    release: ReleaseFit | None = None
    brief: tuple[str, ...] = ()
    stamp: str = UNKNOWN

    def with_stamp(self, stamp: str) -> "Models":
        """The same model and its combined fits, with a stamp that says who may see them."""
        combined = self.combined
        if isinstance(combined, Combined):
            combined = replace(combined, stamp=stamp)
        return replace(self, combined=combined, stamp=stamp)

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Estimate, standard error, degrees of freedom, interval and significance, by term."""
        low, high = self.combined.interval(level)
        columns = {
            "estimate": self.combined.estimate,
            "std_error": self.combined.std_error,
            "dof": self.combined.dof,
            "low": low,
            "high": high,
            "significant": self.combined.significant(level),
        }
        return self._stamped_frame(pd.DataFrame(columns, index=pd.Index(self.terms, name="term")))

    @property
    def frame(self) -> pd.DataFrame:
        """One row per parameter, the intercept first, with 95 % intervals: see `to_frame`."""
        return self.to_frame()

    @property
    def trust(self) -> tuple[str, ...]:
        """A word on each parameter of a model from a release; empty for one from sets of rows.

        "unknown" is not identified, "unmeasured" shown by no table, "weak" shaped by the prior, "noisy" one
        more than half of whose variance is privacy noise; the others are "good".
        """
        fit = self.release
        if fit is None:
            return ()
        lost, noisy = np.isnan(self.combined.estimate), fit.noise_share > MOSTLY
        conditions = [lost, ~fit.measured, fit.dominated, noisy]
        words = np.select(conditions, ["unknown", "unmeasured", "weak", "noisy"], "good")
        return tuple(map(str, words))

    @property
    def details(self) -> str:
        """All columns of the frame and all notes, as text."""
        from dpcipher.inference.shown import in_full

        return f"{self.stamp}\n{in_full(self)}" if self.stamp else in_full(self)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Columns `term`, `estimate`, `std_error`, `low`, `high` and `p`.

        From a release also `noise_share`, `measured`, `trust` and the closed bounds.
        """
        table = self.table(level).reset_index()
        frame = table[["term", "estimate", "std_error", "low", "high"]].assign(p=self.p)
        if self.release is None:
            return frame
        frame = frame.assign(
            noise_share=self.release.noise_share, measured=self.release.measured, trust=self.trust
        )
        if self.release.closed is None:
            return frame
        low, high = self.release.closed.interval(level)
        return frame.assign(closed_low=low, closed_high=high)

    @property
    def p(self) -> Floats:
        """Two-sided p-values against 0: from the share of draws beyond 0, or Student's t over m sets."""
        if isinstance(self.combined, DrawSummary):
            return self.combined.p
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.combined.estimate) / self.combined.std_error
        # Beyond 1e9 degrees of freedom Student's t is normal to rounding.
        return np.asarray(2 * stdtr(np.minimum(self.combined.dof, 1e9), -t))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values, fit for JSON; unknown numbers are None."""
        frame = self.to_frame(level)
        rows = [{key: _plain(value) for key, value in row.items()} for row in frame.to_dict(orient="records")]
        return self._stamped(
            {
                "formula": self.formula,
                "family": self.family,
                "level": level,
                "parameters": rows,
                "notes": list(self.notes),
            }
        )

    def _text(self) -> str:
        from dpcipher.inference.shown import as_text

        return as_text(self)

    def _card(self) -> Card:
        from dpcipher.inference.shown import card

        return card(self)

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        from dpcipher.inference.shown import draw

        return draw(self, columns)


def _plain(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
