"""Error against epsilon: one curve for each method, on logarithmic axes, with bars for the spread over repeats."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpcipher.drawing.bars import short
from dpcipher.drawing.colours import PALETTE, SERIES
from dpcipher.drawing.dots import MARKS, Scale
from dpcipher.drawing.svg import clip, element, hover, image, text

COLOURS = tuple(PALETTE[f"s{number}"][0] for number in range(SERIES))
FAINT = PALETTE["line"][0]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, KEY = 360, 290, 52, 10, 10, 44, 20


@dataclass(frozen=True)
class Curve:
    """The error of a method: (epsilon, mean, low, high) in order of epsilon."""

    name: str
    points: tuple[tuple[float, ...], ...]


def draw_curves(curves: Sequence[Curve], *, title: str) -> str:
    """The curves as an image with a legend below."""
    across, up = _axes(curves)
    drawn = [
        _grid(across, up),
        *(_curve(curve, number, len(curves), across, up) for number, curve in enumerate(curves)),
        *(_key(curve, number) for number, curve in enumerate(curves)),
    ]
    errors = ", ".join(f"{curve.name} {curve.points[-1][1]:.4f}" for curve in curves)
    height = HEIGHT + KEY * ((len(curves) + 1) // 2)
    return image(WIDTH, height, "".join(drawn), title=title, description=f"At the largest epsilon: {errors}.")


def _axes(curves: Sequence[Curve]) -> tuple[Scale, Scale]:
    epsilons = [point[0] for curve in curves for point in curve.points]
    errors = [value for curve in curves for point in curve.points for value in point[1:] if value > 0] or [
        0.1
    ]
    across = Scale(min(epsilons) / 1.15, max(epsilons) * 1.15, LEFT, WIDTH - RIGHT, log=True)
    low = max(min(errors) / 1.2, 1e-6)
    return across, Scale(low, max(max(errors) * 1.2, 2 * low), HEIGHT - BOTTOM, TOP, log=True)


def _grid(across: Scale, up: Scale) -> str:
    lines = [
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up.at(tick), y2=up.at(tick), class_="l-line")
        + text(LEFT - 6, up.at(tick) + 4, f"{tick:g}", anchor="end", class_="n")
        for tick in up.ticks()
    ]
    lines += [
        element("line", y1=TOP, y2=HEIGHT - BOTTOM, x1=across.at(tick), x2=across.at(tick), class_="l-line")
        + text(across.at(tick), HEIGHT - BOTTOM + 16, short(tick), anchor="middle", class_="n")
        for tick in across.ticks()
    ]
    return "".join(lines) + text(
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "epsilon", anchor="middle", class_="m"
    )


def _curve(curve: Curve, number: int, many: int, across: Scale, up: Scale) -> str:
    colour, mark = f"s{number % SERIES}", MARKS[number % len(MARKS)]
    path = "M" + "L".join(f"{across.at(point[0]):.1f} {up.at(point[1]):.1f}" for point in curve.points)
    out = [element("path", d=path, fill="none", class_=f"l-{colour}", stroke_width=2)]
    for epsilon, mean, low, high in curve.points:
        # Bars of different methods stand side by side.
        x = across.at(epsilon) + 2.5 * (number - (many - 1) / 2)
        told = hover(f"{curve.name}, epsilon {epsilon:g}: {mean:.4f} ({low:.4f} to {high:.4f})")
        out.append(element("line", x1=x, x2=x, y1=up.at(low), y2=up.at(high), class_=f"l-{colour}"))
        at = f"translate({across.at(epsilon):.1f} {up.at(mean):.1f})"
        out.append(element("path", told, d=mark, class_=f"f-{colour}", transform=at))
    return "".join(out)


def _key(curve: Curve, number: int) -> str:
    """The mark and the name of a curve, two to a line."""
    x, y = 12 + (number % 2) * WIDTH / 2, HEIGHT + 12 + KEY * (number // 2)
    mark = element(
        "path",
        d=MARKS[number % len(MARKS)],
        class_=f"f-s{number % SERIES}",
        transform=f"translate({x:.1f} {y - 4})",
    )
    return mark + text(x + 12, y, clip(curve.name, 21))
