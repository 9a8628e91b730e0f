"""How well synthetic rows match a release, in units of the release's own noise."""

from dataclasses import dataclass

import numpy as np

from dpcipher.marginals.arrays import Codes, Floats
from dpcipher.marginals.tables import count_rows
from dpcipher.release.release import Release


@dataclass(frozen=True)
class Match:
    """One measured table: the gaps between synthetic and released counts, in standard errors of the released ones."""

    attrs: tuple[str, ...]
    cells: int
    rms: float
    largest: float
    within: float
    std_error: float


def match_tables(release: Release, synthetic: Codes) -> list[Match]:
    """Every measured table that has noise, worst first. Synthetic counts are scaled to the release's total.

    The true counts would have an RMS of 1 and lie within 2 standard errors in 95 % of cells. Less than 1 means that the rows
    overfit the noise; much more means that they miss structure the release shows.
    """
    matches = [_match(release, synthetic, attrs) for attrs in release.workload]
    return sorted((match for match in matches if match is not None), key=lambda match: -match.rms)


def _match(release: Release, synthetic: Codes, attrs: tuple[str, ...]) -> Match | None:
    axes = release.schema.axes(attrs)
    spread = np.sqrt(release.reconciled.variance(axes))
    noisy = spread > 0
    if not noisy.any():
        return None
    gap = scaled(release, synthetic, axes) - release.reconciled.table(axes)
    sigmas = np.abs(gap[noisy] / spread[noisy])
    return Match(
        attrs,
        gap.size,
        float(np.sqrt((sigmas**2).mean())),
        float(sigmas.max()),
        float((sigmas <= 2).mean()),
        float(np.median(spread[noisy])),
    )


def scaled(release: Release, synthetic: Codes, axes: tuple[int, ...]) -> Floats:
    """The synthetic rows' counts, scaled to the release's total."""
    total = max(release.reconciled.total, 0.0)
    return count_rows(synthetic, axes, release.schema.shape).astype(float) * (total / len(synthetic))
