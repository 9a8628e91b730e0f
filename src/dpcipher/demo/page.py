"""The demo's page: what was released and what the synthetic rows look like, side by side.

Publishable by construction: it is given the release and the synthetic rows, and nothing else.
"""

from collections.abc import Sequence
from html import escape
from itertools import combinations

import numpy as np
import pyarrow as pa

from dpcipher.drawing.pictures import Floats, bars, heat
from dpcipher.privacy.budget import Budget
from dpcipher.release.release import Release

PAIRS = 6
LEVEL = 0.95

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem 1rem 3rem; max-width: 76rem; font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); gap: 1rem; align-items: start; }
figure { margin: 0; padding: .8rem; border: 1px solid #dfe3e8; border-radius: .5rem; max-width: 30rem; }
svg { width: 100%; height: auto; display: block; }
.promise { border-left: .3rem solid #2f6f4f; background: #f1f8f4; padding: .6rem 1rem; border-radius: .25rem; max-width: 48rem; }
.key { font-size: .9rem; color: #4a525c; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #dfe3e8; text-align: left; white-space: nowrap; }
.mark { color: #b3261e; } .bar { color: #4a86bd; }
"""


def render(release: Release, rows: pa.Table, files: Sequence[tuple[str, str]]) -> str:
    """The page as one HTML text that needs nothing from elsewhere."""
    tables = _Tables(release, rows)
    body = [
        "<h1>Synthetic people: a release and what it says</h1>",
        _promise(release),
        f"<p>{rows.num_rows:,} synthetic rows were drawn from {len(release.workload)} noisy tables. This page compares the two. It was made "
        "from the release and the synthetic rows alone, so it can be published with them.</p>",
        "<h2>Each column</h2>",
        '<p class="key"><span class="bar">■</span> synthetic rows &nbsp; <span class="mark">●</span> released count, with the '
        f"{LEVEL:.0%} interval that the privacy noise leaves.</p>",
        _grid(tables.one_way(attr) for attr in release.schema.attrs),
        "<h2>Pairs that go together</h2>",
        '<p class="key">The pairs with the strongest dependence in the release. Darker is more; pointing at a cell shows its share.</p>',
        _grid(tables.pair(*pair) for pair in tables.strongest(PAIRS)),
        "<h2>A few synthetic rows</h2>",
        f'<div class="scroll">{_sample(rows)}</div>',
        "<p>No row belongs to anybody: each was drawn from a distribution that only ever saw noisy counts.</p>",
        "<h2>The files</h2>",
        f'<div class="scroll"><table>{"".join(_file(*file) for file in files)}</table></div>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>dpcipher demo</title><style>{STYLE}</style></head>\n<body>\n{chr(10).join(body)}\n</body></html>\n"
    )


class _Tables:
    """The tables of the release and those of the synthetic rows, ready to draw."""

    def __init__(self, release: Release, rows: pa.Table) -> None:
        self.release, self.schema = release, release.schema
        self.codes = self.schema.encode(rows)

    def synthetic(self, attrs: tuple[str, ...]) -> Floats:
        """Counts of the synthetic rows."""
        axes = self.schema.axes(attrs)
        shape = [self.schema.shape[axis] for axis in axes]
        index = np.ravel_multi_index([self.codes[:, axis] for axis in axes], shape)
        return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)

    def one_way(self, attr: str) -> str:
        """A column: synthetic rows against the released counts."""
        low, high = self.release.interval((attr,), level=LEVEL)
        picture = bars(
            self.schema.labels(attr),
            self.synthetic((attr,)),
            np.asarray(self.release.project((attr,))),
            low,
            high,
            about=f"{attr}: synthetic rows and released counts",
        )
        return f"<figure><h3>{escape(attr)}</h3>{picture}</figure>"

    def pair(self, first: str, second: str) -> str:
        """Two columns: the released table and the synthetic one, as shares."""
        released = np.maximum(np.asarray(self.release.project((first, second))), 0)
        panels = [("release", _shares(released)), ("synthetic", _shares(self.synthetic((first, second))))]
        picture = heat(
            self.schema.labels(first),
            self.schema.labels(second),
            panels,
            about=f"{first} by {second}: release and synthetic rows",
        )
        return f"<figure><h3>{escape(first)} × {escape(second)}</h3>{picture}</figure>"

    def strongest(self, most: int) -> list[tuple[str, str]]:
        """The measured pairs that are furthest from independence, judged on the release."""
        pairs = [
            p
            for p in combinations(self.schema.attrs, 2)
            if any(set(p) <= set(t) for t in self.release.workload)
        ]
        return sorted(pairs, key=self._dependence, reverse=True)[:most]

    def _dependence(self, pair: tuple[str, str]) -> float:
        """Half the sum of |share - product of margins|."""
        shares = _shares(np.maximum(np.asarray(self.release.project(pair)), 0))
        return 0.5 * float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / max(float(counts.sum()), 1.0))


def _promise(release: Release) -> str:
    """The privacy statement in words."""
    statement = release.statement
    budget = Budget.from_dict(dict(statement.budget))
    noise = release.tables[0].mechanism.describe()
    return (
        f'<div class="promise"><p><strong>{escape(statement.protection)}</strong> Whatever anyone concludes from this release, they would have '
        f"concluded almost as well without that row; “almost” is measured by {escape(budget.describe())}.</p>"
        f"<p>{escape(noise[0].upper() + noise[1:])} was added to every cell of every table. "
        f"Status: {escape(statement.status)} ({escape(statement.meaning)}).</p></div>"
    )


def _grid(figures: object) -> str:
    return f'<div class="grid">{"".join(figures)}</div>'  # type: ignore[arg-type]


def _sample(rows: pa.Table, most: int = 8) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows.column_names)
    lines = [
        "".join(f"<td>{escape(_value(v))}</td>" for v in row.values())
        for row in rows.slice(0, most).to_pylist()
    ]
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _file(name: str, what: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(what)}</td></tr>"
