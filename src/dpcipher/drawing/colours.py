"""The colours of every page and plot, each for light and for dark paper, by the name of what it paints.

A drawing names its colours by class: `f-bar` fills with `bar`, `l-bar` draws lines with it. A page states the variables once; an image of its own carries
them, and plain attributes beside them for programs that do not read style sheets.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# Okabe and Ito's palette, which most colour-blind readers can tell apart; on dark paper its dark members are lightened.
_SERIES = (
    ("#0072b2", "#56a8e0"),
    ("#d55e00", "#f0864a"),
    ("#00795a", "#2fbf96"),
    ("#b0568a", "#e39ac4"),
    ("#2b88b8", "#8fd0f5"),
    ("#9a6a00", "#e6b04a"),
    ("#1b2026", "#e8ecf0"),
    ("#6b6b6b", "#a8a8a8"),
    ("#8c564b", "#c99386"),
    ("#7d7000", "#d6c64a"),
)
# One hue from few to many, so that a map also reads without colour; on dark paper many is light.
_HEAT = (
    ("#deebf7", "#1c2f42"),
    ("#c9def1", "#224263"),
    ("#abcfe6", "#28547f"),
    ("#83b8da", "#33699c"),
    ("#5ba0cf", "#4780b5"),
    ("#3a85c0", "#629acb"),
    ("#1f69ad", "#86b6de"),
    ("#0d4d94", "#aed0ee"),
    ("#08306b", "#dcecfb"),
)
# From too few (blue) over agreement to too many (orange).
_GAP = (
    ("#1f5f9f", "#8fcbff"),
    ("#6aa3d5", "#4a8cc7"),
    ("#bcd7ee", "#28486a"),
    ("#eceff2", "#252c33"),
    ("#fbd9b5", "#5a3d24"),
    ("#ee9a55", "#bb6f30"),
    ("#a84300", "#ffb877"),
)


def _luminance(colour: str) -> float:
    """Relative luminance, as the web content accessibility guidelines define it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, from 1 to 21; text needs 4.5.

    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _over(colour: str) -> str:
    """Black or white, whichever is read better on a colour: one of them always has a contrast of 4.5."""
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, colour))


PALETTE: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#12161b"),
    "ink": ("#1b2026", "#e8ecf0"),
    "soft": ("#4d565f", "#aab4be"),
    "line": ("#d3d9df", "#343c45"),
    "box": ("#f4f6f9", "#1b2128"),
    "link": ("#0a4f9e", "#8cc0ff"),
    "bar": ("#4a87c0", "#5f9fd9"),
    "mark": ("#b34700", "#ffa35c"),
    "faint": ("#e4e7ea", "#2a3138"),
    "hatch": ("#8b949e", "#77818c"),
    "pale": ("#ecc7a2", "#6b4a2b"),
    "good": ("#0b5f6b", "#55c4d1"),
    "bad": ("#b3261e", "#ff8f86"),
    "alarm": ("#fdecea", "#3b1a18"),
    **{f"s{number}": pair for number, pair in enumerate(_SERIES)},
    **{f"h{number}": pair for number, pair in enumerate(_HEAT)},
    **{f"d{number}": pair for number, pair in enumerate(_GAP)},
    # Numbers inside the cells of a map.
    **{f"th{number}": (_over(light), _over(dark)) for number, (light, dark) in enumerate(_HEAT)},
    **{f"td{number}": (_over(light), _over(dark)) for number, (light, dark) in enumerate(_GAP)},
}
_BASE = ("paper", "ink", "soft", "line", "bad")  # of text and paper
SERIES, HEAT, GAP = len(_SERIES), len(_HEAT), len(_GAP)
# Where a notebook is dark whatever the reader's system prefers.
_DARK_NOTEBOOKS = ('body[data-jp-theme-light="false"]', "body.vscode-dark")
_LIGHT_NOTEBOOKS = ('body[data-jp-theme-light="true"]', "body.vscode-light")


@cache
def page_style() -> str:
    """The style of a page: its colours in both schemes, its layout, and its drawings."""
    dark = f"@media (prefers-color-scheme: dark) {{ @media not print {{ :root {{ {_values(1)} }} }} }}"
    return f":root {{ {_values(0)} }}\n{dark}\n{_sheet('page.css')}{_drawings()}\n"


def own_style(content: str) -> str:
    """The style of a drawing or a card that stands alone, in a file or in a notebook: its colours are its own, whatever is around it.

    It holds the colours that `content` paints with, and those of text and paper.
    """
    names = tuple(name for name in PALETTE if name in _BASE or re.search(f'class="[fl]-{name}"', content))
    light, dark = (_values(scheme, names) for scheme in (0, 1))
    told = ",".join(f"{body} .dpc" for body in _DARK_NOTEBOOKS) + f"{{{dark}}}"
    told += ",".join(f"{body} .dpc" for body in _LIGHT_NOTEBOOKS) + f"{{{light}}}"
    system = f"@media (prefers-color-scheme:dark){{.dpc{{{dark}}}}}"
    layout = _sheet("card.css") if "<div" in content else ""
    return f".dpc{{{light}}}{system}{told}{layout}{_drawings(names)}"


def with_attributes(svg: str) -> str:
    """The image with the light colours as attributes too, for programs that read no style sheets."""

    def painted(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        return f'{found[0]} {"fill" if kind == "f" else "stroke"}="{PALETTE[name][0]}"'

    return re.sub(r'class="([fl])-(\w+)"', painted, svg)


def _values(scheme: int, names: Iterable[str] = PALETTE) -> str:
    return " ".join(f"--{name}: {PALETTE[name][scheme]};" for name in names)


def _drawings(names: Iterable[str] = PALETTE) -> str:
    painted = (
        f".dpc .f-{name}{{fill:var(--{name})}}.dpc .l-{name}{{stroke:var(--{name})}}" for name in names
    )
    return _sheet("drawing.css") + "".join(painted)


@cache
def _sheet(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
