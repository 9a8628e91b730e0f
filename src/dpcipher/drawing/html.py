"""The skeleton of every page: one file, no script, nothing fetched."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

# The browser itself is told to fetch nothing; the page then cannot, whatever a level's name contains.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


def page(
    title: str, kind: str, sections: Mapping[str, str], *, before: str = "", body_class: str = ""
) -> str:
    """A whole page: heading, contents, and sections by heading; `kind` says to programs what the file is."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{_key(name)}">{escape(name)}</a></li>' for name in sections)
    body = "".join(
        f'<section id="{_key(name)}" aria-labelledby="{_key(name)}-h"><h2 id="{_key(name)}-h">{escape(name)}</h2>{content}</section>\n'
        for name, content in sections.items()
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="dpcipher: {escape(kind)}">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body class="{body_class}">\n'
        f'<a class="skip" href="#main">Skip to the text</a>\n{before}<header><h1>{escape(title)}</h1>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>\n<main id="main">\n{body}</main>\n</body>\n</html>\n'
    )


def paragraphs(texts: Iterable[str]) -> str:
    """Texts as paragraphs."""
    return "".join(f"<p>{escape(one)}</p>" for one in texts)


def bullets(texts: Iterable[str]) -> str:
    """Texts as a list."""
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in texts) + "</ul>"


def table(heads: Sequence[str], body: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table whose first column names the row; every other column is set as numbers."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in body
    )
    # Wide tables scroll inside their box, which must be reachable with the keyboard.
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption or heads[0])}"><table>{title}<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def facts(pairs: Mapping[str, str]) -> str:
    """Names and values, as a list of facts."""
    return (
        "<dl>"
        + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs.items())
        + "</dl>"
    )


def figure(svg: str, caption: str, below: str = "") -> str:
    """An image with its caption."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}{below}</figure>"


def folded(summary: str, content: str) -> str:
    """Detail that opens on demand, without a script; print shows it."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def _key(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
