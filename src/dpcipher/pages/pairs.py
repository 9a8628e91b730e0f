"""Pairs of columns on the publishable page: the release, the synthetic rows, and the difference of the two in standard errors."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpcipher.drawing.figures import pair_figure
from dpcipher.drawing.html import folded, paragraphs, rows, table
from dpcipher.marginals.arrays import Codes, Floats
from dpcipher.marginals.zero_cells import zero_cells
from dpcipher.pages.matching import scaled
from dpcipher.release.release import Release
from dpcipher.release.trust import trust

MOST_PAIRS, MOST_CELLS = 12, 400


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
        "The first two maps of a pair share a scale of colour. Gray cells hold so few rows that the noise hides whether there are any; among the synthetic rows, they have none. "
        "The third map is the difference, in standard errors of the release: orange where the synthetic rows have more, blue where they have fewer. Rows that match the private table "
        "itself would be within 2 in 19 cells of 20. The pairs come in the order of how clearly they go together, judged on the noisy tables."
    ]
    if release.schema.zero_masks:
        says.append("Hatched cells are empty by the schema: it declares that no row can be there.")
    if len(ordered) > most:
        says.append(f"Shown are {most} of {len(ordered):,} pairs.")
    return paragraphs(says) + "".join(_pair(release, synthetic, axes) for axes in ordered[:most])


def strongest_pairs(release: Release) -> list[tuple[int, int]]:
    """The pairs inside measured tables, those whose relation stands out most from the noise first."""
    axes = (release.schema.axes(pair.attrs) for pair in trust(release).pairs)
    return [(first, second) for first, second in axes]


def _pair(release: Release, synthetic: Codes, axes: tuple[int, int]) -> str:
    names = (release.schema.attrs[axes[0]], release.schema.attrs[axes[1]])
    labels = (release.schema.shown_labels(names[0]), release.schema.shown_labels(names[1]))
    tables = {
        "released": release.reconciled.table(axes),
        "synthetic rows": scaled(release, synthetic, axes),
    }
    variance = np.asarray(release.reconciled.variance(axes), dtype=float)
    impossible = zero_cells(axes, release.schema.shape, release.reconciled.zeros)
    title = " × ".join(map(release.schema.heading, names))
    return pair_figure(
        title, names, labels, tables, variance, impossible, below=_numbers(title, names, labels, tables)
    )


def _numbers(
    title: str,
    names: tuple[str, str],
    labels: tuple[Sequence[str], Sequence[str]],
    tables: Mapping[str, Floats],
) -> str:
    """The maps as a table, for who does not see them; large ones are in the release."""
    released, made = tables.values()
    if released.size > MOST_CELLS:
        return ""
    lines = [
        (label, *(f"{rows(float(count))} / {rows(float(drawn))}" for count, drawn in zip(*pair, strict=True)))
        for label, *pair in zip(labels[0], released, made, strict=True)
    ]
    heads = [f"{names[0]} ↓ {names[1]} →", *labels[1]]
    return folded(
        f"Numbers of {title}", table(heads, lines, caption="Released estimate / synthetic rows, scaled")
    )
