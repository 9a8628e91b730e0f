"""Pairs of columns on the publishable page: the release, the synthetic rows, and the difference of the two in standard errors."""

from collections.abc import Sequence

import numpy as np

from dpcipher.drawing.figures import pair_figure
from dpcipher.drawing.groups import EXPLAINED, MOST_ACROSS
from dpcipher.drawing.html import folded, paragraphs, rows, table
from dpcipher.pages.matching import scaled
from dpcipher.pages.words import of_rows
from dpcipher.release.release import Release
from dpcipher.release.shown import pair_drawing
from dpcipher.release.trust import RANKED, trust
from dpcipher.tables.domain import Codes, Floats

MOST_PAIRS, MOST_CELLS = 12, 400
CHOSEN = "They were chosen by noisy counts, so that their differences may be a little larger than noise alone would make them."


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
        "The third map is the difference, in standard errors of the release: orange where the synthetic rows have more, blue where they have fewer.",
        RANKED,
    ]
    if len(ordered) > most:
        says.append(f"Shown are {most} of {len(ordered):,} pairs. {CHOSEN}")
    else:
        says.append(
            f"Rows that match the true counts{of_rows(release)} would be within 2 in about 19 cells of 20."
        )
    if release.schema.zero_masks:
        says.append("Hatched cells are empty by the schema: it declares that no row can be there.")
    if any(release.schema.shape[axis] > MOST_ACROSS for pair in ordered[:most] for axis in pair):
        says.append(EXPLAINED)
    return paragraphs(says) + "".join(_pair(release, synthetic, axes) for axes in ordered[:most])


def strongest_pairs(release: Release) -> list[tuple[int, int]]:
    """The pairs inside measured tables, those whose relation stands out most from the noise first."""
    axes = (release.schema.axes(pair.attrs) for pair in trust(release).pairs)
    return [(first, second) for first, second in axes]


def _pair(release: Release, synthetic: Codes, axes: tuple[int, int]) -> str:
    names = (release.schema.attrs[axes[0]], release.schema.attrs[axes[1]])
    query, counts = release.finest(axes), release.project(names)
    assert query is not None  # the pair is inside a measured table
    made = scaled(release, synthetic, query)
    maps, groups = pair_drawing(release, names, {"synthetic rows": made})
    title = " × ".join(map(release.schema.heading, names))
    added = [f"{name}: {group.words}." for name, group in zip(names, groups, strict=True) if group.words]
    return pair_figure(
        title,
        maps,
        paragraphs(added) + _numbers(title, names, counts.shown, np.asarray(counts, dtype=float), made),
    )


def _numbers(
    title: str,
    names: tuple[str, str],
    labels: Sequence[Sequence[str]],
    released: Floats,
    made: Floats,
) -> str:
    """The maps as a table, for who does not see them; large ones are in the release."""
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
