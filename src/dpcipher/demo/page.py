"""The demo's page: what was released and what the synthetic rows look like, side by side.

Publishable by construction: it is given the release and the synthetic rows, and nothing else.
"""

from collections.abc import Mapping

import pyarrow as pa

from dpcipher.drawing.html import facts, page, paragraphs, table
from dpcipher.pages import words
from dpcipher.pages.report import cards, columns, pairs
from dpcipher.release.curator_only import PUBLISHABLE
from dpcipher.release.release import Release

MOST_PAIRS, MOST_ROWS = 6, 8


def render(release: Release, rows: pa.Table, files: Mapping[str, str]) -> str:
    """The text of the page."""
    synthetic = release.schema.encode(rows)
    made_from = (
        "This page was made from the release and the synthetic rows alone, so it can be published with them."
    )
    sections = {
        "In short": cards(release, rows.num_rows)
        + paragraphs([*words.summary(release, rows.num_rows), made_from]),
        "How people are protected": paragraphs([*words.protection(release), *words.noise(release)]),
        "Every column": columns(release, synthetic),
        "Pairs that go together": pairs(release, synthetic, most=MOST_PAIRS),
        "A few synthetic rows": _sample(rows),
        "The files": facts(files),
    }
    return page("Synthetic people: a release and what it says", PUBLISHABLE, sections)


def _sample(rows: pa.Table) -> str:
    first = rows.slice(0, MOST_ROWS).to_pylist()
    says = "No row belongs to anybody: each was drawn from a distribution that only ever saw noisy counts."
    return table(rows.column_names, [[_value(v) for v in row.values()] for row in first]) + paragraphs([says])


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
