"""The curator's report: scores against the private rows, worst first, under a watermark. Never to be published."""

import json
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.curator_only import private_folder, write
from dpcipher.drawing.figures import charts, column_figure, group_series, legend, pair_figure, pair_maps
from dpcipher.drawing.groups import MOST_ACROSS, MOST_BARS
from dpcipher.drawing.html import bullets, facts, page, paragraphs, rows, share, table
from dpcipher.files import check_output
from dpcipher.inference.sss import CATEGORIES, MEANING, draw
from dpcipher.io.source import coded_rows
from dpcipher.pages.columns import dictionary
from dpcipher.schema.schema import Schema
from dpcipher.scoring.scores import ModelScore, Scores
from dpcipher.tables.domain import Codes
from dpcipher.tables.table import count_rows

PAGE, NUMBERS = "curator.html", "scores.json"
MOST_CHARTS, MOST_MAPS, MOST_TABLES = 24, 8, 20


def curator_report(
    scores: Scores,
    private: Any,
    synthetic: Any,
    schema: Schema,
    folder: str | Path,
    *,
    force: bool = False,
) -> Path:
    """Write the curator's page and the scores as JSON into a folder of their own, mode 0700; `force` replaces those of an earlier run."""
    place = private_folder(folder)
    for name in (NUMBERS, PAGE):
        check_output(place / name, force=force)
    sets = synthetic if isinstance(synthetic, list | tuple) else [synthetic]
    drawn = [coded_rows(each, schema, "synthetic", ours=True) for each in sets]
    text = render(scores, coded_rows(private, schema, "private"), np.concatenate(drawn), schema)
    write(place / NUMBERS, json.dumps(scores.to_dict(), indent=2) + "\n", force=force)
    return write(place / PAGE, text, force=force)


def render(scores: Scores, private: Codes, synthetic: Codes, schema: Schema) -> str:
    """The text of the page."""
    sections = {
        "Scores": f'<p class="warning">{escape(scores.stamp)}.</p>' + _summary(scores),
        "Columns, the worst first": _columns(scores, private, synthetic, schema),
    }
    if 2 in scores.tables:
        sections["Pairs, the worst first"] = _pairs(scores, private, synthetic, schema)
    sections["Worst tables"] = _worst(scores)
    sections |= dictionary(schema)
    if scores.model is not None:
        sections["Sign and significance"] = _model(scores.model)
    title = (
        f"{schema.title}: synthetic against private rows"
        if schema.title
        else "Synthetic rows against private rows"
    )
    return page(title, "curator's report", sections, watermark=scores.stamp)


def _summary(scores: Scores) -> str:
    numbers = {
        **{f"Mean TVD, {order}-way tables": f"{value:.4f}" for order, value in scores.tvd.items()},
        "pMSE, times chance": f"{scores.propensity.ratio:.2f}",
        "Overlap of intervals": share(scores.overlap),
    }
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
    said += [f"{line[0].upper()}{line[1:]}." for line in scores.capped_lines]
    if scores.accuracy is not None:
        a = scores.accuracy
        said.append(
            f"Predicting {a.target} on held-out rows: {share(a.synthetic)} right after training on synthetic rows, {share(a.private)} after "
            f"training on private rows, {share(a.majority)} by always saying the most common level."
        )
    distances = table(heads, lines, caption="Distances between private and synthetic tables")
    return facts(numbers, style="cards") + distances + bullets(said)


def _columns(scores: Scores, private: Codes, synthetic: Codes, schema: Schema) -> str:
    worst = sorted(scores.tables.get(1, ()), key=lambda score: -score.tvd)[:MOST_CHARTS]
    figures = (_column(score.attrs[0], score.tvd, private, synthetic, schema) for score in worst)
    drawn = charts(figures, flowing=True)
    frame = scores.per_column()
    heads = ["column", *(f"mean TVD of its {name.removeprefix('tvd_')}-way tables" for name in frame.columns)]
    body = [
        (str(name), *(f"{value:.4f}" for value in line))
        for name, line in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    key = legend(bar="private rows", mark="synthetic rows, scaled to as many")
    return key + drawn + table(heads, body, caption="Every column")


def _column(attr: str, tvd: float, private: Codes, synthetic: Codes, schema: Schema) -> str:
    true, drawn = _both(private, synthetic, schema, schema.axes((attr,)))
    groups = schema.groups(attr, MOST_BARS)
    name = f"{schema.heading(attr)}: TVD {tvd:.4f}"
    series = group_series(name, groups, groups.add_up(true), drawn)
    worst = int(np.argmax(np.abs(series.counts - groups.add_up(drawn))))
    both = (rows(float(counts[worst])) for counts in (series.counts, groups.add_up(drawn)))
    says = "Largest difference: {}, private {}, synthetic {}.".format(groups.labels[worst], *both)
    return column_figure(replace(series, says=says, kinds=("private rows", "synthetic rows")))


def _pairs(scores: Scores, private: Codes, synthetic: Codes, schema: Schema) -> str:
    worst = sorted(scores.tables[2], key=lambda score: -score.tvd)[:MOST_MAPS]
    maps = [_pair(score.attrs, score.tvd, private, synthetic, schema) for score in worst]
    says = (
        "The first two maps of a pair share a scale of colour; gray cells are empty. The third is the difference, in standard errors of a private count as if it were drawn at random "
        "(its square root): orange where the synthetic rows have more, blue where they have fewer."
    )
    return paragraphs([says]) + "".join(maps)


def _pair(attrs: tuple[str, ...], tvd: float, private: Codes, synthetic: Codes, schema: Schema) -> str:
    names = (attrs[0], attrs[1])
    groups = (schema.groups(names[0], MOST_ACROSS), schema.groups(names[1], MOST_ACROSS))
    true, drawn = _both(private, synthetic, schema, schema.axes(attrs))
    tables = {"private rows": true, "synthetic rows": drawn}
    title = f"{' × '.join(map(schema.heading, names))}: TVD {tvd:.4f}"
    sums = groups[1].add_up(groups[0].add_up(true), 1)
    maps = pair_maps(names, groups, tables, np.zeros_like(sums), gaps=np.maximum(sums, 1.0))
    return pair_figure(title, maps)


def _both(
    private: Codes, synthetic: Codes, schema: Schema, axes: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Private counts, and synthetic counts scaled to as many rows."""
    true, drawn = (count_rows(part, axes, schema.shape).astype(float) for part in (private, synthetic))
    return true, drawn * (len(private) / len(synthetic))


def _worst(scores: Scores) -> str:
    parts = []
    for order in scores.tables:
        frame = scores.per_table(order).head(MOST_TABLES)
        body = [(str(name), f"{tvd:.4f}", f"{linf:.4f}") for name, tvd, linf in frame.itertuples(index=False)]
        parts.append(table(["table", "TVD", "largest difference"], body, caption=f"Worst {order}-way tables"))
    return "".join(parts)


def _model(model: ModelScore) -> str:
    ours = model.private.table()
    theirs = model.synthetic.table().reindex(
        ours.index
    )  # rows may lack a level, and then its terms are not there
    body = [
        (
            str(term),
            *(
                "none" if np.isnan(side.loc[term, name]) else f"{side.loc[term, name]:.3g}"
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
