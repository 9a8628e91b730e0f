"""A comparison for people: who wins at each epsilon, in words, as sorted dots, as curves and as a table. Curator only."""

from typing import TYPE_CHECKING

import pandas as pd

from dpcipher.drawing.card import Card
from dpcipher.drawing.curves import draw_curves
from dpcipher.drawing.dots import Dot, Line, dot_plot, fit_scale
from dpcipher.drawing.figures import charts
from dpcipher.drawing.html import bullets, figure, page, paragraphs, table

if TYPE_CHECKING:
    from dpcipher.comparison.comparison import Comparison

SPREAD = (
    "Dots are means over the repeats, lines reach from the 10 % to the 90 % quantile; the best comes first."
)
WIDE = 20.0  # from this ratio of the largest to the least error on, the axis is logarithmic


def card(comparison: "Comparison") -> Card:
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


def page_text(comparison: "Comparison") -> str:
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


def dot_plots(comparison: "Comparison", score: str) -> dict[str, str]:
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


def _section(comparison: "Comparison", score: str) -> str:
    heads, lines, best = _means(comparison, score)
    lines += [(name, *["not run"] * (len(heads) - 1)) for name in comparison.skipped]
    drawn = charts(figure(svg, caption) for caption, svg in dot_plots(comparison, score).items())
    numbers = table(heads, lines, caption=f"{describe(score)}; the best of each column in bold", best=best)
    if len(heads) == 2:
        return drawn + numbers
    curves = draw_curves(comparison.curves(score), title=describe(score))
    return f'{drawn}<div class="beside">{figure(curves, "Error against epsilon")}<div>{numbers}</div></div>'


def _means(
    comparison: "Comparison", score: str
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


def describe(score: str) -> str:
    """A score in words.

    >>> describe("tvd_2")
    'Mean TVD of the 2-way tables'
    """
    kind, _, order = score.partition("_")
    return _NAMES[kind].format(order)


_NAMES = {"tvd": "Mean TVD of the {}-way tables", "linf": "Largest error of a share in the {}-way tables"}
