"""How close synthetic rows are to the release they were made from, in units of its own noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpcipher.drawing.html import paragraphs, rows, share, table
from dpcipher.release.release import Release
from dpcipher.schema.grouped import query_of, said
from dpcipher.tables.domain import Codes, Floats
from dpcipher.tables.query import Query
from dpcipher.tables.table import count_rows

MOST_MATCHES = 40


def scaled(release: Release, synthetic: Codes, query: Query) -> Floats:
    """The synthetic rows' counts in a table, scaled to the release's total."""
    total = max(release.reconciled.total, 0.0)
    counts = query.apply(count_rows(synthetic, query.axes, release.schema.shape), query.axes)
    return np.asarray(counts * (total / len(synthetic)))


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
    query = query_of(release.schema, attrs)
    spread = np.sqrt(release.reconciled.variance(query))
    noisy = spread > 0
    if not noisy.any():
        return None
    gap = scaled(release, synthetic, query) - release.reconciled.table(query)
    sigmas = np.abs(gap[noisy] / spread[noisy])
    return Match(
        attrs,
        gap.size,
        float(np.sqrt((sigmas**2).mean())),
        float(sigmas.max()),
        float((sigmas <= 2).mean()),
        float(np.median(spread[noisy])),
    )


def closest(matches: Sequence[Match]) -> tuple[str, str]:
    """The largest gap between rows and release: in short, and with where it is."""
    if not matches:
        return (
            "none: exact tables",
            "The release holds exact tables only, so there is no noise to compare with.",
        )
    worst, cells = max(matches, key=lambda match: match.largest), sum(match.cells for match in matches)
    within = sum(match.within * match.cells for match in matches) / cells
    return (
        f"{worst.largest:.1f} standard errors",
        f"How close the rows are to the release: largest gap {worst.largest:.1f} standard errors, {said(worst.attrs)}; {share(within)} of {cells:,} cells are within 2, "
        f"where 95\u00a0% would be for the private rows themselves.",
    )


def matching(matches: Sequence[Match]) -> str:
    """Every measured table and its gaps, the worst first."""
    if not matches:
        return paragraphs([closest(matches)[1]])
    cells = sum(match.cells for match in matches)
    # The largest of many normal gaps is near the quantile that one of them is expected to pass.
    usual = float(-ndtri(0.5 / max(cells, 2)))
    says = [
        closest(matches)[1]
        + f" Of {cells:,} cells, noise alone would make the largest gap about {usual:.1f} standard errors.",
        "RMS is the typical gap in standard errors. Near 1, the synthetic rows are as far from the noisy tables as the truth is; well below 1 they "
        "follow the noise; well above, they miss something that the release shows. The worst of many tables are above 1 by chance alone.",
    ]
    lines = [
        (
            said(match.attrs),
            f"{match.cells:,}",
            f"{match.rms:.2f}",
            f"{match.largest:.1f}",
            share(match.within),
            rows(match.std_error),
        )
        for match in matches[:MOST_MATCHES]
    ]
    heads = [
        "table",
        "cells",
        "RMS gap (sigmas)",
        "largest gap (sigmas)",
        "within 2 sigmas",
        "one sigma (rows)",
    ]
    every = len(matches) <= MOST_MATCHES
    title = "Worst tables first" if every else f"The {MOST_MATCHES} worst of {len(matches):,} tables"
    return paragraphs(says) + table(heads, lines, caption=title)
