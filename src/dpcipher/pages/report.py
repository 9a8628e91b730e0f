"""The publishable report: one self-contained page made from a release and synthetic rows, and from nothing else."""

from collections.abc import Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import BAR, MARK, WHISKER, Series, bar_chart
from dpcipher.drawing.heat import Grid, fold, heat_map
from dpcipher.drawing.html import bullets, figure, folded, page, paragraphs, table
from dpcipher.drawing.numbers import rows, share
from dpcipher.drawing.svg import element
from dpcipher.errors import NotPrivate, ReleaseError
from dpcipher.files import write_text
from dpcipher.pages import words
from dpcipher.pages.certificate import certificate
from dpcipher.pages.match import Match, match_tables, scaled
from dpcipher.release.curator_only import MARKED_CURATOR, PUBLISHABLE
from dpcipher.release.release import Release
from dpcipher.tables.coded import coded_rows

MOST_COLUMNS, MOST_LEVELS, MOST_PAIRS, MOST_MATCHES = 60, 120, 12, 40

Codes = NDArray[np.int32]


def report(release: Release | str | Path, synthetic: Any, path: str | Path) -> Path:
    """Write a page about a release and the synthetic rows made from it, for everybody to read.

    It sees no private row, so it may be published with the release. A release that is stamped NOT PRIVATE is refused, and so is a
    folder that holds a curator's files.
    """
    shown = release if isinstance(release, Release) else Release.load(release)
    target = Path(path)
    _check_target(shown, target)
    text = render(shown, coded_rows(synthetic, shown.schema, "synthetic"))
    try:
        return write_text(target, text)
    except OSError as error:
        raise ReleaseError(
            f"report ({target}) cannot be written: {error.strerror}; choose another place"
        ) from None


def render(release: Release, synthetic: Codes) -> str:
    """The text of the page."""
    matches = match_tables(release, synthetic)
    may, may_not = words.conclusions(release)
    sections = {
        "In short": _cards(release, len(synthetic)) + paragraphs(words.summary(release, len(synthetic))),
        "How people are protected": paragraphs(words.protection(release)),
        "How large the noise is": paragraphs(words.noise(release)),
        "Every column": _columns(release, synthetic),
        "Columns two by two": _pairs(release, synthetic),
        "Do the synthetic rows match the release": _matching(matches),
        "What may be concluded": f'<div class="may"><div><h3>You may</h3>{bullets(may)}</div><div><h3>You may not</h3>{bullets(may_not)}</div></div>',
        "Certificate": certificate(release),
    }
    return page("Privacy-protected data: what was released, and how far to trust it", PUBLISHABLE, sections)


def _check_target(release: Release, target: Path) -> None:
    if not release.statement.may_be_released:
        raise NotPrivate(
            f"release (status {release.statement.status}) was made with seeded noise, so a page about it must not be published; "
            "use dpcipher.measure, whose noise cannot be seeded"
        )
    if (target.parent / MARKED_CURATOR).exists():
        raise NotPrivate(
            f"folder ({target.parent}) is marked curator only; a publishable page must not lie there. Name another"
        )


def _cards(release: Release, n_synthetic: int) -> str:
    said = {
        "Columns": str(len(release.schema.attrs)),
        "Measured tables": f"{len(release.workload):,}",
        "Rows (estimate)" if release.reconciled.total_variance else "Rows (public)": rows(
            release.reconciled.total
        ),
        "Synthetic rows": f"{n_synthetic:,}",
        "Status": release.statement.status,
    }
    return (
        '<dl class="cards">'
        + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in said.items())
        + "</dl>"
    )


def _columns(release: Release, synthetic: Codes) -> str:
    attrs = release.schema.attrs
    charts = "".join(_column(release, synthetic, axis) for axis in range(min(len(attrs), MOST_COLUMNS)))
    hidden = len(attrs) - MOST_COLUMNS
    more = (
        [f"{hidden} more columns are in the release and are left out here to keep the page small."]
        if hidden > 0
        else []
    )
    says = [
        "Bars are the released estimates; whiskers hold the true count in 19 cases out of 20; diamonds or ticks are the synthetic rows, scaled to the same total. An estimate can fall below zero: the noise is left as it is, so that sums stay right."
    ]
    return paragraphs(says) + _legend() + f'<div class="charts">{charts}</div>' + paragraphs(more)


def _legend() -> str:
    def sample(drawn: str) -> str:
        return f'<svg viewBox="0 0 22 14" aria-hidden="true">{drawn}</svg>'

    keys = {
        "released estimate": element("rect", x=0, y=2, width=22, height=10, fill=BAR),
        "95 % margin": element("path", d="M2 3v8M2 7H20M20 3v8", stroke=WHISKER, fill="none"),
        "synthetic rows": element("path", d="M11 2l4 5-4 5-4-5z", fill=MARK),
    }
    return (
        '<ul class="key">'
        + "".join(f"<li>{sample(drawn)}{name}</li>" for name, drawn in keys.items())
        + "</ul>"
    )


def _column(release: Release, synthetic: Codes, axis: int) -> str:
    name, labels = release.schema.attrs[axis], release.schema.labels(release.schema.attrs[axis])
    counts, (low, high) = release.reconciled.table((axis,)), release.interval((name,))
    made = scaled(release, synthetic, (axis,))
    lines = [
        (label, rows(float(c)), f"{rows(float(a))} to {rows(float(b))}", rows(float(m)))
        for label, c, a, b, m in zip(labels, counts, low, high, made, strict=True)
    ]
    numbers = folded(
        f"Numbers of {name}",
        table(["level", "estimate", "95 % interval", "synthetic, scaled"], lines[: 4 * MOST_LEVELS]),
    )
    chosen = np.sort(np.argsort(counts)[::-1][:MOST_LEVELS])
    cut = "" if len(labels) <= MOST_LEVELS else f" (the {MOST_LEVELS} largest of {len(labels):,} levels)"
    largest = int(np.argmax(counts))
    series = Series(
        f"{name}{cut}",
        tuple(labels[k] for k in chosen),
        counts[chosen],
        (low[chosen], high[chosen]),
        made[chosen],
        f"Bar chart of {len(chosen)} levels. Largest: {labels[largest]}, {rows(float(counts[largest]))}, "
        f"95 % interval {rows(float(low[largest]))} to {rows(float(high[largest]))}. All numbers are in the table below.",
    )
    return figure(bar_chart(series), f"{name}{cut}", numbers)


def _pairs(release: Release, synthetic: Codes) -> str:
    pairs = strongest_pairs(release)
    if not pairs:
        return paragraphs(
            [
                "No two columns were measured together, so the release says nothing about how they depend on each other."
            ]
        )
    maps = "".join(_pair(release, synthetic, axes) for axes in pairs[:MOST_PAIRS])
    says = [
        "Darker means more rows. Light gray cells hold so few that the noise hides whether there are any; among the synthetic rows, they have none. The pairs come in the order of how "
        "clearly they depart from chance, judged on the noisy tables."
    ]
    if len(pairs) > MOST_PAIRS:
        says.append(f"Shown are {MOST_PAIRS} of {len(pairs):,} pairs.")
    return paragraphs(says) + maps


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
    counts, made = release.reconciled.table(axes), scaled(release, synthetic, axes)
    variance = np.asarray(release.reconciled.variance(axes), dtype=float)
    down, folded_down = fold(release.schema.labels(names[0]), 0, counts, made, variance)
    across, (counts, made, variance) = fold(release.schema.labels(names[1]), 1, *folded_down)
    # Sums of reconciled cells are correlated; the sum of variances is only used to choose which cells are gray.
    faint = counts < 2 * np.sqrt(variance)
    most = float(max(counts.max(), made.max(), 1e-9))
    drawn = [
        figure(
            heat_map(Grid(names, (down, across), shown, gray, most, f"{names[0]} by {names[1]}, {kind}")),
            kind.capitalize(),
        )
        for shown, gray, kind in ((counts, faint, "released"), (made, made == 0, "synthetic rows"))
    ]
    return f'<div class="pair"><h3>{escape(names[0])} × {escape(names[1])}</h3><div class="charts">{"".join(drawn)}</div></div>'


def _matching(matches: Sequence[Match]) -> str:
    if not matches:
        return paragraphs(["The release holds exact tables only, so there is no noise to compare with."])
    cells = sum(one.cells for one in matches)
    within = sum(one.within * one.cells for one in matches) / cells
    says = [
        f"{share(within)} of all {cells:,} measured cells agree with the synthetic rows to within 2 standard errors of the release. For rows "
        "that match the private table itself one would expect 95 %.",
        "RMS is the typical gap in standard errors. Near 1, the synthetic rows are as far from the noisy tables as the truth is; well below 1 they "
        "follow the noise; well above, they miss something that the release shows.",
    ]
    lines = [
        (
            " × ".join(one.attrs),
            f"{one.cells:,}",
            f"{one.rms:.2f}",
            f"{one.largest:.1f}",
            share(one.within),
            rows(one.std_error),
        )
        for one in matches[:MOST_MATCHES]
    ]
    heads = [
        "table",
        "cells",
        "RMS gap (sigmas)",
        "largest gap (sigmas)",
        "within 2 sigmas",
        "one sigma (rows)",
    ]
    title = (
        "Worst tables first"
        if len(matches) <= MOST_MATCHES
        else f"The {MOST_MATCHES} worst of {len(matches):,} tables"
    )
    return paragraphs(says) + table(heads, lines, caption=title)
