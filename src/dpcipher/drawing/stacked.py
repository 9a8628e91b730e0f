"""Stacked bars of shares, as an inline SVG image."""

from collections.abc import Mapping

from dpcipher.drawing.svg import element, image, text

WIDTH, ROW, BAR = 640, 34, 20


def stacked_bars(bars: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], *, title: str) -> str:
    """One bar per label, its segments the shares in the order of `colours`, with a legend."""
    left = 8 + 7 * max((len(label) for label in bars), default=0)
    parts = [
        _bar(label, shares, colours, left, 8 + ROW * row) for row, (label, shares) in enumerate(bars.items())
    ]
    top = 8 + ROW * len(bars)
    legend, height = _legend(colours, top + 8)
    says = "; ".join(
        f"{label or 'shares'}: "
        + ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share > 0)
        for label, shares in bars.items()
    )
    return image(WIDTH, height, "".join(parts) + legend, title=title, description=says)


def _bar(label: str, shares: Mapping[str, float], colours: Mapping[str, str], left: int, top: int) -> str:
    x, wide, out = float(left), WIDTH - left - 8, [text(left - 6, top + 14, label, anchor="end")]
    for name, colour in colours.items():
        width = shares.get(name, 0.0) * wide
        if width > 0:
            out.append(element("rect", x=x, y=top, width=width, height=BAR, fill=colour, stroke="#fff"))
        x += width
    return "".join(out)


def _legend(colours: Mapping[str, str], top: int) -> tuple[str, int]:
    out, x, y = [], 8, top
    for name, colour in colours.items():
        need = 26 + 8 * len(name)
        if x + need > WIDTH:
            x, y = 8, y + 22
        out.append(element("rect", x=x, y=y, width=12, height=12, fill=colour) + text(x + 17, y + 11, name))
        x += need
    return "".join(out), y + 22
