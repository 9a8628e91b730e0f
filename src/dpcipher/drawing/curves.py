"""Error against epsilon: one curve for each method, on logarithmic axes, with bars for the spread over repeats."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcipher.drawing.svg import element, image, text

# Okabe and Ito's palette, which most colour-blind readers can tell apart, and marks of different shapes.
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#1a1a1a",
    "#7f7f7f",
    "#8c564b",
    "#b3a000",
)
MARKS = ("M-4 -4h8v8h-8z", "M0 -5l5 5-5 5-5-5z", "M0 -5l5 9h-10z", "M0 5l5 -9h-10z")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 680, 360, 64, 180, 12, 44
FAINT = "#d5d9de"


@dataclass(frozen=True)
class Curve:
    """The error of a method: (epsilon, mean, low, high) in order of epsilon."""

    name: str
    points: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis between two positions on the screen."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, value: float) -> float:
        """The position of a value; one below the axis is put on its edge."""
        part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Powers of ten, with 2 and 5 between them where there are few."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 4 else (1,)
        ticks = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]


def draw_curves(curves: Sequence[Curve], *, title: str) -> str:
    """The curves as an image with a legend."""
    across, up = _axes(curves)
    drawn = [
        _grid(across, up),
        *(_curve(curve, number, len(curves), across, up) for number, curve in enumerate(curves)),
    ]
    errors = ", ".join(f"{curve.name} {curve.points[-1][1]:.4f}" for curve in curves)
    return image(WIDTH, HEIGHT, "".join(drawn), title=title, description=f"At the largest epsilon: {errors}.")


def _axes(curves: Sequence[Curve]) -> tuple[_Axis, _Axis]:
    epsilons = [point[0] for curve in curves for point in curve.points]
    errors = [value for curve in curves for point in curve.points for value in point[1:] if value > 0] or [
        0.1
    ]
    across = _Axis(min(epsilons) / 1.15, max(epsilons) * 1.15, LEFT, WIDTH - RIGHT)
    return across, _Axis(max(min(errors) / 1.2, 1e-6), max(max(errors) * 1.2, 2e-6), HEIGHT - BOTTOM, TOP)


def _grid(across: _Axis, up: _Axis) -> str:
    lines = [
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up.at(tick), y2=up.at(tick), stroke=FAINT)
        + text(LEFT - 6, up.at(tick) + 4, f"{tick:g}", anchor="end")
        for tick in up.ticks()
    ]
    lines += [
        element("line", y1=TOP, y2=HEIGHT - BOTTOM, x1=across.at(tick), x2=across.at(tick), stroke=FAINT)
        + text(across.at(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", anchor="middle")
        for tick in across.ticks()
    ]
    return "".join(lines) + text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "epsilon", anchor="middle")


def _curve(curve: Curve, number: int, many: int, across: _Axis, up: _Axis) -> str:
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    path = "M" + "L".join(f"{across.at(point[0]):.1f} {up.at(point[1]):.1f}" for point in curve.points)
    out = [element("path", d=path, fill="none", stroke=colour, stroke_width=2)]
    for epsilon, mean, low, high in curve.points:
        # Bars of different methods stand side by side.
        x = across.at(epsilon) + 2.5 * (number - (many - 1) / 2)
        out.append(element("line", x1=x, x2=x, y1=up.at(low), y2=up.at(high), stroke=colour))
        out.append(
            element(
                "path",
                d=mark,
                fill=colour,
                transform=f"translate({across.at(epsilon):.1f} {up.at(mean):.1f})",
            )
        )
    y = TOP + 16 + 20 * number
    out.append(element("path", d=mark, fill=colour, transform=f"translate({WIDTH - RIGHT + 20} {y - 4})"))
    return "".join(out) + text(WIDTH - RIGHT + 32, y, curve.name)
