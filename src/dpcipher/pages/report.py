"""The publishable report: one self-contained page made from a release and synthetic rows, and from nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dpcipher.drawing.bars import Series
from dpcipher.drawing.figures import MOST_LEVELS, charts, column_figure, legend, pair_figure
from dpcipher.drawing.html import bullets, facts, folded, page, paragraphs, rows, share, table
from dpcipher.errors import NotPrivate, ReleaseError, warn
from dpcipher.files import write_text
from dpcipher.marginals.arrays import Codes, Floats
from dpcipher.marginals.tables import count_rows
from dpcipher.pages import words
from dpcipher.pages.columns import dictionary
from dpcipher.pages.grouped import EXPLAINED, grouped
from dpcipher.privacy.ledger import Ledger
from dpcipher.release.curator_only import MARKED_CURATOR, PUBLISHABLE
from dpcipher.release.gls import zero_cells
from dpcipher.release.release import Release
from dpcipher.release.sign import Key, Standing, pinned_keys, verify
from dpcipher.tables.read import coded_rows

MOST_COLUMNS, MOST_PAIRS, MOST_MATCHES = 60, 12, 40


def report(
    release: Release | str | Path,
    synthetic: Any,
    path: str | Path,
    *,
    key: Key | Iterable[Key] = (),
    ledger: Ledger | str | Path | None = None,
) -> Path:
    """Write a page about a release and the synthetic rows made from it, for everybody to read.

    It sees no private row, so it may be published with the release. The page says "certified" only where a public `key` that you trust signed the
    release's file, or a `ledger` at hand paid for it; else "as stated by the file". A release that either refutes is refused, and so are one that
    is stamped NOT PRIVATE and a folder that holds a curator's files.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"smokes": 2, "ill": 2})
    >>> release = dc.Release.from_tables({("smokes", "ill"): [[480, 20], [260, 240]]}, schema, scale=5.0)
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> page = dc.report(release, dc.solve(release).sample(500, seed=1), f"{folder.name}/report.html")
    >>> page.name
    'report.html'
    >>> folder.cleanup()
    """
    standing = _standing(release, key, ledger)
    shown, target = standing.release, Path(path)
    check_target(shown, target)
    text = render(shown, coded_rows(synthetic, shown.schema, "synthetic", ours=True), standing)
    try:
        return write_text(target, text)
    except OSError as error:
        raise ReleaseError(
            f"report ({target}) cannot be written: {error.strerror}; choose another place"
        ) from None


def _standing(
    release: Release | str | Path, key: Key | Iterable[Key], ledger: Ledger | str | Path | None
) -> Standing:
    """Who answers for the release. One that was altered is refused; one that nobody confirms is shown, and said to be so."""
    keys = pinned_keys(key)
    if not keys and ledger is None:
        return Standing(release if isinstance(release, Release) else Release.load(release))
    standing = verify(release, keys=keys, ledger=ledger)
    reasons = "; ".join(f"{check.word}: {check.meaning}" for check in standing.checks if not check.passed)
    if standing.refuted:
        raise ReleaseError(f"release cannot be what it states, so no page is written ({reasons})")
    if not standing.confirmed:
        warn(f"the page does not say certified: nothing confirms the release ({reasons})")
    return standing


def render(release: Release, synthetic: Codes, standing: Standing | None = None) -> str:
    """The text of the page."""
    known = standing or Standing(release)
    matches = match_tables(release, synthetic)
    may, may_not = words.conclusions(release)
    sections = {
        "In short": cards(release, len(synthetic), known)
        + paragraphs(words.summary(release, len(synthetic))),
        "How people are protected": paragraphs(words.protection(release)),
        "How large the noise is": paragraphs(words.noise(release)),
        "Every column": columns(release, synthetic),
        "Columns two by two": pairs(release, synthetic),
        "Do the synthetic rows match the release": _matching(matches),
        "What may be concluded": f'<div class="may"><div><h3>You may</h3>{bullets(may)}</div><div><h3>You may not</h3>{bullets(may_not)}</div></div>',
        **dictionary(release.schema),
        "Certificate" if known.confirmed else "What the file states": words.certificate(release, known),
    }
    return page("Privacy-protected data: what was released, and how far to trust it", PUBLISHABLE, sections)


def check_target(release: Release, target: Path) -> None:
    """Refuse to write a page to be published about noise that could be repeated, or among a curator's files."""
    if not release.statement.may_be_released:
        raise NotPrivate(
            f"release (status {release.statement.status}) was made with seeded noise, so a page about it must not be published; "
            "use dpcipher.measure, whose noise cannot be seeded"
        )
    if (target.parent / MARKED_CURATOR).exists():
        raise NotPrivate(
            f"folder ({target.parent}) is marked curator only; a publishable page must not lie there. Name another"
        )


def cards(release: Release, n_synthetic: int, standing: Standing) -> str:
    """The sizes and the status of a release at a glance."""
    counted = "estimate" if release.reconciled.total_variance else "public"
    numbers = {
        "Columns": str(len(release.schema.attrs)),
        "Measured tables": f"{len(release.workload):,}",
        f"Rows ({counted})": rows(release.reconciled.total),
        "Synthetic rows": f"{n_synthetic:,}",
        "Status": standing.status,
    }
    return facts(numbers, style="cards")


def columns(release: Release, synthetic: Codes) -> str:
    """Every column: the released counts with their intervals, and the synthetic rows beside them."""
    attrs = release.schema.attrs
    says = [
        "Bars are the released estimates; whiskers hold the true count in 19 cases out of 20; diamonds or ticks are the synthetic rows, scaled to the same total. An estimate can fall below zero: the noise is left as it is, so that sums stay right."
    ]
    if max(release.schema.shape) > MOST_LEVELS:
        says.append(EXPLAINED)
    drawn = charts(_column(release, synthetic, axis) for axis in range(len(attrs))[:MOST_COLUMNS])
    hidden = len(attrs) - MOST_COLUMNS
    more = f"{hidden} more columns are in the release and are left out here to keep the page small."
    key = legend(bar="released estimate", whisker="95 % margin", mark="synthetic rows")
    return paragraphs(says) + key + drawn + paragraphs([more] if hidden > 0 else [])


def _column(release: Release, synthetic: Codes, axis: int) -> str:
    name = release.schema.attrs[axis]
    labels, heading = release.schema.shown_labels(name), release.schema.heading(name)
    counts = release.reconciled.table((axis,))
    low, high = (np.asarray(bound, dtype=float) for bound in release.interval((name,)))
    drawn = _scaled(release, synthetic, (axis,))
    lines = [
        (label, rows(estimate), f"{rows(least)} to {rows(most)}", rows(count))
        for label, estimate, least, most, count in zip(
            labels, *(values.tolist() for values in (counts, low, high, drawn)), strict=True
        )
    ]
    heads = ["level", "estimate", "95 % interval", "synthetic, scaled"]
    largest = int(np.argmax(counts))
    says = (
        f"Bar chart of {len(labels)} levels. Largest: {labels[largest]}, {lines[largest][1]}, "
        f"95 % interval {lines[largest][2]}. All numbers are in the table below."
    )
    numbers = folded(f"Numbers of {name}", table(heads, lines[: 4 * MOST_LEVELS]))
    series = Series(heading, labels, counts, drawn, says, (low, high))
    return column_figure(grouped(release, axis, series, MOST_LEVELS), numbers)


def pairs(release: Release, synthetic: Codes, *, most: int = MOST_PAIRS) -> str:
    """The pairs of columns that depend most clearly on each other, released and synthetic."""
    ordered = strongest_pairs(release)
    if not ordered:
        return paragraphs(
            [
                "No two columns were measured together, so the release says nothing about how they depend on each other."
            ]
        )
    says = [
        "Darker means more rows. Light gray cells hold so few that the noise hides whether there are any; among the synthetic rows, they have none. The pairs come in the order of how "
        "clearly they depart from chance, judged on the noisy tables."
    ]
    if release.schema.zero_masks:
        says.append("Crossed-out cells are empty by the schema: it declares that no row can be there.")
    if len(ordered) > most:
        says.append(f"Shown are {most} of {len(ordered):,} pairs.")
    return paragraphs(says) + "".join(_pair(release, synthetic, axes) for axes in ordered[:most])


def strongest_pairs(release: Release) -> list[tuple[int, int]]:
    """The pairs inside measured tables, those whose interaction stands out most from the noise first."""
    inside = {pair for attrs in release.workload for pair in combinations(release.schema.axes(attrs), 2)}
    return sorted(inside, key=lambda axes: (-_clarity(release, axes), axes))


def _clarity(release: Release, axes: tuple[int, int]) -> float:
    """Mean squared departure from independence in units of the noise variance."""
    counts = release.reconciled.table(axes)
    total = max(float(counts.sum()), 1.0)
    gap = counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    return float((gap**2).mean() / max(float(release.reconciled.variance(axes).mean()), 1e-12))


def _pair(release: Release, synthetic: Codes, axes: tuple[int, int]) -> str:
    names = (release.schema.attrs[axes[0]], release.schema.attrs[axes[1]])
    labels = (release.schema.shown_labels(names[0]), release.schema.shown_labels(names[1]))
    tables = {
        "released": release.reconciled.table(axes),
        "synthetic rows": _scaled(release, synthetic, axes),
    }
    variance = np.asarray(release.reconciled.variance(axes), dtype=float)
    impossible = zero_cells(axes, release.schema.shape, release.reconciled.zeros)
    return pair_figure(" × ".join(names), names, labels, tables, variance, impossible)


def _scaled(release: Release, synthetic: Codes, axes: tuple[int, ...]) -> Floats:
    """The synthetic rows' counts, scaled to the release's total."""
    total = max(release.reconciled.total, 0.0)
    return count_rows(synthetic, axes, release.schema.shape).astype(float) * (total / len(synthetic))


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
    gap = _scaled(release, synthetic, axes) - release.reconciled.table(axes)
    sigmas = np.abs(gap[noisy] / spread[noisy])
    return Match(
        attrs,
        gap.size,
        float(np.sqrt((sigmas**2).mean())),
        float(sigmas.max()),
        float((sigmas <= 2).mean()),
        float(np.median(spread[noisy])),
    )


def _matching(matches: Sequence[Match]) -> str:
    if not matches:
        return paragraphs(["The release holds exact tables only, so there is no noise to compare with."])
    cells = sum(match.cells for match in matches)
    within = sum(match.within * match.cells for match in matches) / cells
    says = [
        f"{share(within)} of all {cells:,} measured cells agree with the synthetic rows to within 2 standard errors of the release. For rows "
        "that match the private table itself one would expect 95 %.",
        "RMS is the typical gap in standard errors. Near 1, the synthetic rows are as far from the noisy tables as the truth is; well below 1 they "
        "follow the noise; well above, they miss something that the release shows.",
    ]
    lines = [
        (
            " × ".join(match.attrs),
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
