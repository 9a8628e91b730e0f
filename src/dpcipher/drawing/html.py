"""Every page and its pieces: one file, no script, nothing fetched; and numbers as people read them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape

from dpcipher.drawing.colours import page_style

_NUMBER = re.compile(r"[+\-−±<]?\d[\d,.]*(e[+-]?\d+)?([\s\u00a0]?[%sk]|( (of|to|/|again) .*)|, again .*)?|–")

# The browser itself is told to fetch nothing; the page then cannot, whatever a level's name contains.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


def page(title: str, kind: str, sections: Mapping[str, str], *, lead: str = "", watermark: str = "") -> str:
    """A whole page: heading, a first sentence, contents, and sections by heading.

    `kind` tells people and programs what the file is; a watermark stays in view and is printed on every sheet.
    """
    links = "".join(f'<li><a href="#{_key(name)}">{escape(name)}</a></li>' for name in sections)
    body = "".join(
        f'<section id="{_key(name)}" aria-labelledby="{_key(name)}-h"><h2 id="{_key(name)}-h">{escape(name)}</h2>{content}</section>\n'
        for name, content in sections.items()
    )
    first = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    banner = f'<p class="watermark" role="note">{escape(watermark)}</p>\n' if watermark else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="dpcipher: {escape(kind)}">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>\n{page_style()}</style>\n</head>\n<body>\n'
        f'<a class="skip" href="#main">Skip to the text</a>\n{banner}<header><p class="kind">{escape(kind[:1].upper() + kind[1:])}</p><h1>{escape(title)}</h1>{first}'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>\n<main id="main">\n{body}</main>\n</body>\n</html>\n'
    )


def paragraphs(texts: Iterable[str]) -> str:
    """Texts as paragraphs."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def bullets(texts: Iterable[str]) -> str:
    """Texts as a list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def table(
    heads: Sequence[str],
    body: Iterable[Sequence[str]],
    *,
    caption: str = "",
    best: Collection[tuple[int, int]] = (),
) -> str:
    """A table whose first column names the row; every other column is set as numbers, and the `best` cells (row, column) in bold."""
    # Wide tables scroll inside their box, which must be reachable with the keyboard; what they are stays in view above it.
    title = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    box = f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption or heads[0])}">'
    return f"{title}{box}{plain_table(heads, body, caption=caption, best=best)}</div>"


def plain_table(
    heads: Sequence[str],
    body: Iterable[Sequence[str]],
    *,
    caption: str = "",
    best: Collection[tuple[int, int]] = (),
) -> str:
    """The table alone; columns of words are set to the left."""
    body = [list(line) for line in body]
    words = [_is_words([line[place] for line in body]) for place in range(len(heads))]
    title = f' aria-label="{escape(caption)}"' if caption else ""
    top = "".join(
        f'<th scope="col"{_side(left)}>{escape(head)}</th>' for head, left in zip(heads, words, strict=True)
    )
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(_cell(cell, words[column], (row, column) in best) for column, cell in enumerate(rest, 1))
        + "</tr>"
        for row, (first, *rest) in enumerate(body)
    )
    return f"<table{title}><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"


def _is_words(cells: Sequence[str]) -> bool:
    """Whether most cells are no numbers.

    >>> _is_words(["12 %", "3 of 4", "not run"]), _is_words(["0..9, 10..19", "yes"])
    (False, True)
    """
    told = [cell for cell in cells if cell]
    return 2 * sum(not _NUMBER.fullmatch(cell) for cell in told) > len(told)


def _side(left: bool) -> str:
    return ' class="w"' if left else ""


def _cell(cell: str, left: bool, best: bool) -> str:
    shown = f"<strong>{escape(cell)}</strong>" if best else escape(cell)
    return f"<td{_side(left)}>{shown}</td>"


def facts(pairs: Mapping[str, str], *, style: str = "facts") -> str:
    """Names and values: a list of facts, or, in the style `cards`, a row of boxes."""
    return (
        f'<dl class="{style}">'
        + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs.items())
        + "</dl>"
    )


def figure(svg: str, caption: str, below: str = "") -> str:
    """An image with its caption."""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{words}{svg}{below}</figure>"


def key_list(signs: Mapping[str, str]) -> str:
    """What the signs of an image stand for: drawings of 22 by 14 by their meaning."""
    items = "".join(
        f'<li><svg class="dpc" viewBox="0 0 22 14" aria-hidden="true">{sign}</svg>{escape(name)}</li>'
        for name, sign in signs.items()
    )
    return f'<ul class="key">{items}</ul>' if items else ""


def folded(summary: str, content: str) -> str:
    """Detail that opens on demand, without a script; print shows it."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def rows(value: float) -> str:
    """A count with thousands separated; small noise keeps one decimal.

    >>> rows(12345.6), rows(-0.02), rows(3.26)
    ('12,346', '0', '3.3')
    """
    digits = 1 if 0 < abs(value) < 10 and abs(value - round(value)) > 0.05 else 0
    text = f"{value:,.{digits}f}"
    return "0" if text in ("-0", "-0.0", "0.0") else text


def share(value: float) -> str:
    """A percentage: whole, or with one decimal below 10 %.

    >>> share(0.5), share(0.0123)
    ('50\\xa0%', '1.2\\xa0%')
    """
    digits = 0 if value >= 0.1 or value == 0 else 1
    return f"{100 * value:.{digits}f}\u00a0%"


def _key(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
