"""Scores, comparisons and audits for people: pages, cards and plots. Results from private rows are watermarked."""

import json
from dataclasses import replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcipher.drawing.card import Card
from dpcipher.drawing.curator_only import private_folder, write
from dpcipher.drawing.curves import draw_curves
from dpcipher.drawing.dots import Dot, Line, Scale, dot_plot, fit_scale
from dpcipher.drawing.figures import charts, column_figure, group_series, legend, pair_figure, pair_maps
from dpcipher.drawing.groups import MOST_ACROSS, MOST_BARS
from dpcipher.drawing.html import bullets, facts, figure, page, paragraphs, rows, share, table
from dpcipher.evaluation.audit import Audit
from dpcipher.evaluation.check import Check
from dpcipher.evaluation.compare import Comparison, describe
from dpcipher.evaluation.scores import ModelScore, Scores
from dpcipher.files import check_output
from dpcipher.inference.sss import CATEGORIES, MEANING, draw
from dpcipher.io.source import coded_rows
from dpcipher.pages.columns import dictionary
from dpcipher.schema.schema import Schema
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


# Comparisons.

SPREAD = (
    "Dots are means over the repeats, lines reach from the 10 % to the 90 % quantile; the best comes first."
)
WIDE = 20.0  # from this ratio of the largest to the least error on, the axis is logarithmic


def comparison_card(comparison: Comparison) -> Card:
    """The methods, and the means of the first score."""
    frame = comparison.frame
    name = "tvd_2" if "tvd_2" in comparison.scores else comparison.scores[0]
    heads, lines, _ = _means(comparison, name)
    return Card(
        "Comparison",
        {
            "Methods": f"{frame['method'].nunique()}",
            "Budgets": ", ".join(f"{epsilon:g}" for epsilon in sorted(frame["epsilon"].unique())),
            "Repeats": f"{frame['repeat'].nunique()}",
            "Best": "; ".join(winners(comparison.table(name))),
        },
        heads,
        lines,
        notes=[
            f"{describe(name)}, means over the repeats. print(comparison) has all scores; dc.plot(comparison) draws them."
        ],
    )


def comparison_page(comparison: Comparison) -> str:
    """The text of the page."""
    repeats = comparison.frame["repeat"].nunique()
    wins = [
        f"{describe(score)}: best is {'; '.join(winners(comparison.table(score)))}."
        for score in comparison.scores
    ]
    sections = {
        "In short": paragraphs([f"{SPREAD} {repeats} repeats. Noise was seeded; nothing was charged."])
        + bullets(wins)
    }
    sections |= {describe(score): _section(comparison, score) for score in comparison.scores}
    if comparison.skipped:
        sections["Methods that could not run"] = bullets(
            [f"{method}: {reason}" for method, reason in comparison.skipped.items()]
        )
    return page("Methods compared", "curator's comparison", sections, watermark=comparison.stamp)


def winners(means: pd.DataFrame) -> list[str]:
    """Who is best at each epsilon.

    >>> winners(pd.DataFrame({1.0: [0.2, 0.1], 2.0: [0.05, 0.06]}, index=["a", "b"]))
    ['b at ε = 1 (0.1000)', 'a at ε = 2 (0.0500)']
    """
    best = set(means.idxmin())
    if len(best) == 1 and len(means.columns) > 1:
        return [f"{best.pop()} at every ε ({means.min().max():.4f} to {means.min().min():.4f})"]
    return [
        f"{means[epsilon].idxmin()} at ε = {epsilon:g} ({means[epsilon].min():.4f})"
        for epsilon in means.columns
    ]


def dot_plots(comparison: Comparison, score: str) -> dict[str, str]:
    """One sorted dot plot for each epsilon, on one axis, by a caption that names the winner."""
    points = {
        (curve.name, point[0]): point[1:] for curve in comparison.curves(score) for point in curve.points
    }
    values = [value for point in points.values() for value in point]
    positive = [value for value in values if value > 0] or [1.0]
    scale = fit_scale(values, log=min(values) > 0 and max(positive) / min(positive) > WIDE)
    plots = {}
    for epsilon in sorted({epsilon for _, epsilon in points}):
        ordered = sorted((point, name) for (name, at), point in points.items() if at == epsilon)
        lines = [
            Line(
                name,
                (
                    Dot(
                        mean,
                        f"{name}: {mean:.4f} ({low:.4f} to {high:.4f})",
                        "bar" if place else "mark",
                        low,
                        high,
                    ),
                ),
                f"{mean:.4f}",
                strong=not place,
            )
            for place, ((mean, low, high), name) in enumerate(ordered)
        ]
        caption = f"ε = {epsilon:g}: {ordered[0][1]} is best"
        told = "; ".join(f"{line.name} {line.numbers}" for line in lines)
        plots[caption] = dot_plot(
            lines,
            title=f"{describe(score)}, {caption}",
            description=f"{told}.",
            axis=describe(score),
            scale=scale,
        )
    return plots


def _section(comparison: Comparison, score: str) -> str:
    heads, lines, best = _means(comparison, score)
    lines += [(name, *["not run"] * (len(heads) - 1)) for name in comparison.skipped]
    drawn = charts(figure(svg, caption) for caption, svg in dot_plots(comparison, score).items())
    numbers = table(heads, lines, caption=f"{describe(score)}; the best of each column in bold", best=best)
    if len(heads) == 2:
        return drawn + numbers
    curves = draw_curves(comparison.curves(score), title=describe(score))
    return f'{drawn}<div class="beside">{figure(curves, "Error against epsilon")}<div>{numbers}</div></div>'


def _means(
    comparison: Comparison, score: str
) -> tuple[list[str], list[tuple[str, ...]], set[tuple[int, int]]]:
    """Heads, lines, and the cells that are best in their column."""
    means = comparison.table(score)
    heads = ["method", *(f"ε = {epsilon:g}" for epsilon in means.columns)]
    lines = [
        (str(name), *(f"{value:.4f}" for value in line))
        for name, line in zip(means.index, means.to_numpy(), strict=True)
    ]
    best = {
        (list(means.index).index(means[epsilon].idxmin()), column)
        for column, epsilon in enumerate(means.columns, 1)
    }
    return heads, lines, best


# Audits.

PARTS = {
    "samplers": "The installed noise against its exact law: the test of each scale that came nearest to rejecting it. Claimed is the critical value.",
    "mechanisms": "Installed noise, choices and draws on neighbouring tables: what they prove of epsilon or mu, against what is claimed.",
    "questions": "Every synthesizer recorded on one table and replayed on all its neighbours: the question that one person changes most, against what it declares.",
    "releases": "Everything that measure offers, recorded and replayed likewise: tables, sets, chosen tables, found bins and levels, persons.",
    "levels": "Levels found in the rows: the lone texts of one person on neighbouring tables, by the law of the noise and by draws, against delta.",
    "methods": "Every synthesizer on its worst neighbour: what fresh answers to all its questions prove, against its whole budget.",
    "independence": "Every synthesizer run often: the largest correlation between the noise of two cells, against its critical value.",
    "runs": "Whole runs with installed noise on both tables, each replayed on the other.",
}
COVERS = (
    "A pass says: on the tables, budgets and units that were tried here, this installation's noise follows its law, no question of a synthesizer or of measure moved further "
    "with one person than it declares, and what answers, warnings, progress and files tell of a neighbour is within the budget.",
    "It does not say that other tables, options or readers would pass; that no bug is left (of bugs planted in the source the audit finds a part, the tests find all that are known); that "
    "the schema is public, or that unit and max_rows are true of the people in the table; or that the machine is safe, its clock and memory included.",
)
MOST = 1.25  # the end of the axis, past the claim


def audit_page(audit: Audit) -> str:
    """The text of the page."""
    verdict = (
        "Every check passed: nothing was found beyond what is claimed."
        if audit.passed
        else "Some checks FAILED: do not release with this installation."
    )
    about = (
        f"{len(audit.checks)} checks, {audit.seconds:.0f} seconds of processor time. A ratio above 1 is a violation; if everything is right, the "
        "chance of one anywhere on this page is at most one in a million. A ratio near 1 means that the claim is tight: no less noise would do."
    )
    numbers = {
        "Verdict": "passed" if audit.passed else "FAILED",
        "Checks": f"{len(audit.checks):,}",
        "Beyond the claim": f"{sum(not check.passed for check in audit.checks):,}",
        "Processor time": f"{audit.seconds:,.0f} s",
    }
    sections = {
        "Verdict": facts(numbers, style="cards") + paragraphs([about]),
        "What a pass covers": paragraphs(COVERS),
    }
    for part, group in groupby(audit.checks, key=lambda check: check.part):
        checks = list(group)
        drawn = figure(ratio_plot(checks), f"Found over claimed, {part}.")
        sections[part.capitalize()] = paragraphs([PARTS[part]]) + drawn + _table(checks)
    return page("Audit of this installation", "audit", sections, lead=verdict)


def _table(checks: list[Check]) -> str:
    lines = [
        (
            check.what,
            check.unit,
            f"{check.claimed:.4g}",
            f"{check.estimate:.4g}",
            _ratio(check),
            f"{check.trials:,}",
        )
        for check in checks
    ]
    said = paragraphs(
        f"{check.what} ({check.unit}): {check.violation}" for check in checks if check.violation
    )
    return said + table(("What", "Unit", "Claimed", "Found", "Ratio", "Trials"), lines)


def _ratio(check: Check) -> str:
    return "violated" if check.violation else f"{check.ratio:.3f}"


def ratio_plot(checks: list[Check]) -> str:
    """A dot for every check on the axis from nothing to the claim, and beyond."""
    lines = [
        Line(
            f"{check.what} ({check.unit})",
            (
                Dot(
                    MOST if check.violation else min(check.ratio, MOST),
                    f"{check.what} ({check.unit}): {_ratio(check)}",
                    "good" if check.passed else "bad",
                ),
            ),
            _ratio(check),
            strong=not check.passed,
        )
        for check in checks
    ]
    failed = sum(not check.passed for check in checks)
    description = f"{len(checks)} checks, {failed} beyond the claim."
    return dot_plot(
        lines,
        title="Found over claimed",
        description=description,
        axis="found over claimed; the red line is the claim",
        scale=Scale(0.0, MOST),
        limit=1.0,
    )
