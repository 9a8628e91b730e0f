"""The small plot beside a verdict: what the rule looked at, by epsilon, and the level that is needed."""

from collections.abc import Sequence
from pathlib import Path

from dpcipher.files import write_text
from experiments.paper.claims import Verdict
from experiments.paper.plotting import FAMILIES

WIDTH, HEIGHT, EDGE = 150, 56, 6
_DASHES = ("", "4 2", "1 2", "6 2 1 2")


def draw_spark(verdict: Verdict, folder: Path) -> str | None:
    """Write the small plot of a verdict and return its name; None where there is nothing to draw.

    Red: the literal reading, one line for each column, each on a band from the lowest to the highest of all readings. Blue: our engine. Dashed
    grey: the level.
    """
    lines = [finding.line for finding in verdict.literal.values() if finding.line]
    if not lines:
        return None
    every = [finding.line for finding in verdict.findings.values() if finding.line]
    ours = [finding.line for finding in verdict.ours.values() if finding.line]
    levels = [finding.level for finding in verdict.literal.values() if finding.level is not None]
    scale = _Scale([*every, *ours, *([(level,) for level in levels[:1]])])
    parts = [_band(scale, column) for column in _columns(verdict) if len(column) > 1]
    if levels:
        y = scale.y(levels[0])
        parts.append(
            f'<line x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#888" stroke-dasharray="3 2"/>'
        )
    parts += [
        _polyline(scale, line, FAMILIES["ours"], dash) for line, dash in zip(ours, _DASHES, strict=False)
    ]
    colour = FAMILIES["CIPHER"] if "reading" in verdict.claim.over else FAMILIES["MWEM"]
    if not verdict.claim.over:
        colour = FAMILIES["FDH"]
    parts += [_polyline(scale, line, colour, dash) for line, dash in zip(lines, _DASHES, strict=False)]
    parts += scale.labels()
    name = f"claim-{verdict.claim.key}.svg"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 34}" height="{HEIGHT}" viewBox="0 0 {WIDTH + 34} {HEIGHT}">'
    write_text(folder / name, head + "".join(parts) + "</svg>\n", force=True)
    return name


def _columns(verdict: Verdict) -> list[list[tuple[float, ...]]]:
    """The lines of all readings, for each column."""
    columns: dict[object, list[tuple[float, ...]]] = {}
    for where, finding in verdict.findings.items():
        if finding.line:
            columns.setdefault(where.choices, []).append(finding.line)
    return list(columns.values())


def _band(scale: "_Scale", lines: Sequence[Sequence[float]]) -> str:
    """From the lowest to the highest of several lines."""
    low = [min(values) for values in zip(*lines, strict=True)]
    high = [max(values) for values in zip(*lines, strict=True)]
    outline = [*scale.points(high), *reversed(scale.points(low))]
    return f'<polygon points="{_joined(outline)}" fill="{FAMILIES["CIPHER"]}" opacity=".12"/>'


class _Scale:
    """From values to places in the picture."""

    def __init__(self, lines: Sequence[Sequence[float]]) -> None:
        values = [value for line in lines for value in line if value == value]
        self.low, self.high = min(values), max(values)

    def y(self, value: float) -> float:
        """The height of a value."""
        span = (self.high - self.low) or 1.0
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - self.low) / span

    def points(self, line: Sequence[float]) -> list[tuple[float, float]]:
        """The corners of a line over epsilon."""
        step = (WIDTH - 2 * EDGE) / max(len(line) - 1, 1)
        return [(EDGE + step * place, self.y(value)) for place, value in enumerate(line)]

    def labels(self) -> list[str]:
        """The largest and the smallest value, on the right."""
        style = f'x="{WIDTH + 2}" font-family="sans-serif" font-size="9" fill="#555"'
        return [
            f'<text {style} y="{EDGE + 4}">{self.high:.2f}</text>',
            f'<text {style} y="{HEIGHT - EDGE + 2}">{self.low:.2f}</text>',
        ]


def _polyline(scale: _Scale, line: Sequence[float], colour: str, dash: str) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{_joined(scale.points(line))}" fill="none" stroke="{colour}" stroke-width="1.6"{dashed}/>'


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
