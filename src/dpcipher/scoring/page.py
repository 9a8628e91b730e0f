"""The curator's report: scores against the private rows, worst first, under a watermark. Never to be published."""

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.bars import BAR, MARK, Series, bar_chart
from dpcipher.drawing.heat import Grid, fold, heat_map
from dpcipher.drawing.html import bullets, figure, page, paragraphs, table
from dpcipher.drawing.numbers import rows, share
from dpcipher.drawing.svg import element
from dpcipher.inference.sss import CATEGORIES, MEANING, draw
from dpcipher.release.curator_only import WATERMARK, private_folder, write
from dpcipher.schema.schema import Schema
from dpcipher.scoring.scores import ModelScore, Scores
from dpcipher.tables.coded import coded_rows, count_table

PAGE, NUMBERS = "curator.html", "scores.json"
MOST_CHARTS, MOST_MAPS, MOST_TABLES, MOST_LEVELS = 24, 8, 20, 120

Codes = NDArray[np.int32]


def curator_report(scores: Scores, private: Any, synthetic: Any, schema: Schema, folder: str | Path) -> Path:
    """Write the curator's page and the scores as JSON into a folder of their own, mode 0700."""
    place = private_folder(folder)
    made = synthetic[0] if isinstance(synthetic, list | tuple) else synthetic
    text = render(
        scores, coded_rows(private, schema, "private"), coded_rows(made, schema, "synthetic"), schema
    )
    write(place / NUMBERS, json.dumps(scores.to_dict(), indent=2) + "\n")
    return write(place / PAGE, text)


def render(scores: Scores, private: Codes, synthetic: Codes, schema: Schema) -> str:
    """The text of the page."""
    sections = {
        "Scores": f'<p class="warning">{escape(WATERMARK)}.</p>' + _summary(scores),
        "Columns, the worst first": _columns(scores, private, synthetic, schema),
    }
    if 2 in scores.tables:
        sections["Pairs, the worst first"] = _pairs(scores, private, synthetic, schema)
    sections["Worst tables"] = _worst(scores)
    if scores.model is not None:
        sections["Sign and significance"] = _model(scores.model)
    banner = f'<p class="watermark" role="note">{escape(WATERMARK)}</p>\n'
    return page(
        "Synthetic rows against private rows",
        "curator's report",
        sections,
        before=banner,
        body_class="curator",
    )


def _summary(scores: Scores) -> str:
    lines = [
        (
            f"{order}-way",
            f"{len(tables):,} of {scores.of_tables[order]:,}",
            f"{scores.tvd[order]:.4f}",
            f"{scores.worst_tvd[order]:.4f}",
            f"{scores.linf[order]:.4f}",
            f"{scores.k_marginal[order]:.1f}",
        )
        for order, tables in scores.tables.items()
    ]
    heads = [
        "order",
        "tables",
        "mean TVD",
        "worst TVD",
        "largest difference of a share",
        "k-marginal score (0 to 1000)",
    ]
    said = [
        "TVD, the total variation distance, is the share of rows that would have to move for two tables to be equal.",
        f"Propensity score: pMSE {scores.propensity.pmse:.3g}, which is {scores.propensity.ratio:.2f} times what chance alone gives ({scores.propensity.words}).",
        f"The 95 % intervals of one-way shares overlap by {share(scores.overlap)} on average.",
    ]
    if scores.accuracy is not None:
        a = scores.accuracy
        said.append(
            f"Predicting {a.target} on held-out rows: {share(a.synthetic)} right after training on synthetic rows, {share(a.private)} after "
            f"training on private rows, {share(a.majority)} by always saying the most common level."
        )
    return table(heads, lines, caption="Distances between private and synthetic tables") + bullets(said)


def _legend() -> str:
    keys = {
        "private rows": element("rect", x=0, y=2, width=22, height=10, fill=BAR),
        "synthetic rows, scaled to as many": element("path", d="M11 2l4 5-4 5-4-5z", fill=MARK),
    }
    items = "".join(
        f'<li><svg viewBox="0 0 22 14" aria-hidden="true">{d}</svg>{name}</li>' for name, d in keys.items()
    )
    return f'<ul class="key">{items}</ul>'


def _columns(scores: Scores, private: Codes, synthetic: Codes, schema: Schema) -> str:
    ordered = [(one.attrs[0], one.tvd) for one in sorted(scores.tables.get(1, ()), key=lambda one: -one.tvd)]
    charts = "".join(_column(attr, tvd, private, synthetic, schema) for attr, tvd in ordered[:MOST_CHARTS])
    frame = scores.per_column()
    heads = ["column", *(f"mean TVD of its {name.removeprefix('tvd_')}-way tables" for name in frame.columns)]
    body = [
        (str(name), *(f"{value:.4f}" for value in line))
        for name, line in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return _legend() + f'<div class="charts">{charts}</div>' + table(heads, body, caption="Every column")


def _column(attr: str, tvd: float, private: Codes, synthetic: Codes, schema: Schema) -> str:
    axes, labels = schema.axes((attr,)), schema.labels(attr)
    true, made = _both(private, synthetic, schema, axes)
    chosen = np.sort(np.argsort(true)[::-1][:MOST_LEVELS])
    title = f"{attr}: TVD {tvd:.4f}"
    worst = int(np.argmax(np.abs(true - made)))
    says = f"Largest difference: {labels[worst]}, private {rows(float(true[worst]))}, synthetic {rows(float(made[worst]))}."
    series = Series(title, tuple(labels[k] for k in chosen), true[chosen], None, made[chosen], says)
    return figure(bar_chart(series), title)


def _pairs(scores: Scores, private: Codes, synthetic: Codes, schema: Schema) -> str:
    worst = sorted(scores.tables[2], key=lambda one: -one.tvd)[:MOST_MAPS]
    says = ["Darker means more rows; light gray cells are empty."]
    return paragraphs(says) + "".join(_pair(one.attrs, one.tvd, private, synthetic, schema) for one in worst)


def _pair(attrs: tuple[str, ...], tvd: float, private: Codes, synthetic: Codes, schema: Schema) -> str:
    names, axes = (attrs[0], attrs[1]), schema.axes(attrs)
    down, both = fold(schema.labels(names[0]), 0, *_both(private, synthetic, schema, axes))
    across, (true, made) = fold(schema.labels(names[1]), 1, *both)
    most = float(max(true.max(), made.max()))
    drawn = [
        figure(
            heat_map(
                Grid(names, (down, across), shown, shown == 0, most, f"{names[0]} by {names[1]}, {kind}")
            ),
            kind.capitalize(),
        )
        for shown, kind in ((true, "private rows"), (made, "synthetic rows"))
    ]
    head = f"{escape(names[0])} × {escape(names[1])}: TVD {tvd:.4f}"
    return f'<div class="pair"><h3>{head}</h3><div class="charts">{"".join(drawn)}</div></div>'


def _both(
    private: Codes, synthetic: Codes, schema: Schema, axes: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Private counts, and synthetic counts scaled to as many rows."""
    true, made = (count_table(part, schema.shape, axes).astype(float) for part in (private, synthetic))
    return true, made * (len(private) / len(synthetic))


def _worst(scores: Scores) -> str:
    parts = []
    for order in scores.tables:
        frame = scores.per_table(order).head(MOST_TABLES)
        body = [(str(name), f"{tvd:.4f}", f"{linf:.4f}") for name, tvd, linf in frame.itertuples(index=False)]
        parts.append(table(["table", "TVD", "largest difference"], body, caption=f"Worst {order}-way tables"))
    return "".join(parts)


def _model(model: ModelScore) -> str:
    ours, theirs = model.private.table(), model.synthetic.table()
    body = [
        (
            str(term),
            *(
                f"{side.loc[term, name]:.3g}"
                for side in (ours, theirs)
                for name in ("estimate", "low", "high")
            ),
        )
        for term in ours.index
    ]
    heads = ["term", "private", "from", "to", "synthetic", "from", "to"]
    counted = bullets(
        f"{name}: {model.sss.counts[name]} ({MEANING[name]})" for name in CATEGORIES if model.sss.counts[name]
    )
    said = [
        f"Model {model.formula}. The intervals overlap by {share(model.overlap)} on average.",
        *model.synthetic.notes,
    ]
    return (
        paragraphs(said)
        + draw({"": model.sss})
        + counted
        + table(heads, body, caption="Estimates and 95 % intervals")
    )
