"""SVG elements as text; every image has a title and a description for screen readers."""

import re
from html import escape

from dpcipher.drawing.colours import own_style, with_attributes

MARGIN = 14
FONT = 'font-family="system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" font-size="12"'
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)" width="[\d.]+" height="[\d.]+"')
_DAYS = re.compile(r"((\d{4})-\d\d-\d\d)\.\.(\d{4})-(\d\d-\d\d)")


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """One element; underscores in attribute names become dashes, numbers are rounded to what a screen can show.

    >>> element("rect", x=1.0, stroke_width=0.25)
    '<rect x="1" stroke-width="0.2"/>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def text(x: float, y: float, words: str, *, anchor: str | None = None, **attributes: object) -> str:
    """A text element; nothing for an empty text."""
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, **attributes) if words else ""


def hover(words: str) -> str:
    """What a shape says when the pointer rests on it; it is the content of the shape.

    >>> element("rect", hover("F: 12"), x=1)
    '<rect x="1"><title>F: 12</title></rect>'
    """
    return element("title", escape(words)) if words else ""


def image(width: float, height: float, content: str, *, title: str, description: str) -> str:
    """An image for an HTML page: it scales with the page, and screen readers announce what it shows."""
    head = element("title", escape(title)) + element("desc", escape(description))
    return element(
        "svg",
        head + content,
        class_="dpc",
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}. {description}",
    )


def standalone(svg: str) -> str:
    """An image as a file of its own: on paper with a margin, with the name space, the font and the colours that a page would give it."""
    head, _, rest = svg.partition(">")
    width, height = (float(size) + 2 * MARGIN for size in _SIZE.findall(head)[0])
    sized = _SIZE.sub(
        f'viewBox="{-MARGIN} {-MARGIN} {_value(width)} {_value(height)}" width="{_value(width)}" height="{_value(height)}"',
        head,
    )
    named = sized.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" {FONT} ', 1)
    paper = element("rect", x=-MARGIN, y=-MARGIN, width=width, height=height, rx=6, class_="f-paper")
    # Readers of titles look for the title first.
    told, end, drawn = rest.partition("</desc>")
    return with_attributes(f"{named}>{told}{end}<style>{own_style(paper + drawn)}</style>{paper}{drawn}")


def clip(words: str, length: int) -> str:
    """Words cut to a length that fits, with a mark where they were cut; of days from one to another what is left says when they begin.

    >>> clip("Bachelor's degree", 8)
    'Bachelo…'
    >>> clip("2020-02-27..2020-04-23", 21), clip("2020-02-27..2021-04-23", 21), clip("2020-02-27..2021-04-23", 13)
    ('2020-02-27..04-23', '2020-02-27–2021-04-23', '2020-02-27..')
    """
    shorter = next((form for form in [words, *_narrower(words)] if len(form) <= length), None)
    return words[: length - 1] + "…" if shorter is None else shorter


def _narrower(words: str) -> list[str]:
    """Shorter forms of days from one to another, the longest first: the year once, or with a dash; then the first day alone."""
    days = _DAYS.fullmatch(words)
    if days is None:
        return []
    first, year, last_year, last = days.groups()
    return [f"{first}..{last}" if year == last_year else f"{first}–{last_year}-{last}", f"{first}.."]


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(str(value), quote=True)
