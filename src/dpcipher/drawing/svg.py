"""SVG elements as text; every image has a title and a description for screen readers."""

from html import escape


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


def image(width: float, height: float, content: str, *, title: str, description: str) -> str:
    """An image for an HTML page: it scales with the page, and screen readers announce what it shows."""
    head = element("title", escape(title)) + element("desc", escape(description))
    return element(
        "svg",
        head + content,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}. {description}",
    )


def standalone(svg: str) -> str:
    """An image as a file of its own, with the name space and the font that a page would give it."""
    return svg.replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" ', 1
    )


def clip(words: str, length: int) -> str:
    """Words cut to a length that fits, with a mark where they were cut.

    >>> clip("Bachelor's degree", 8)
    'Bachelo…'
    """
    return words if len(words) <= length else words[: length - 1] + "…"


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(str(value), quote=True)
