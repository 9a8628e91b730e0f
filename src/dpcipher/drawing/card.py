"""How an object shows itself: one line of plain text, and a short card in a notebook, in light and in dark."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from typing import final

from dpcipher.drawing import html
from dpcipher.drawing.colours import own_style
from dpcipher.drawing.curator_only import Stamped, private_folder, write

MOST_LINES = 12


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "table"), counted(1200, "table")
    ('1 table', '1,200 tables')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Card:
    """What a person wants to know first: what it is, a few facts, a short table, what to do next.

    >>> Card("Release", {"Rows": "5,000", "Budget": "epsilon = 1"}).line
    '<Release: rows 5,000, budget epsilon = 1>'
    """

    title: str
    facts: Mapping[str, str]
    heads: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    of_lines: int = 0  # how many there are, if not all are shown
    notes: Sequence[str] = ()
    stamp: str = ""  # who alone may see it
    below: str = field(default="", repr=False)  # more HTML, such as an image
    most: int = MOST_LINES

    @property
    def line(self) -> str:
        """The facts on one line."""
        said = ", ".join(
            f"{name[:1].lower()}{name[1:]} {value}" for name, value in self.facts.items() if value
        )
        marked = f"; {self.stamp}" if self.stamp else ""
        return f"<{self.title}: {said}{marked}>"

    @property
    def markup(self) -> str:
        """The card for a notebook; its style comes with it."""
        parts = [f'<p class="stamp">{escape(self.stamp)}</p>'] if self.stamp else []
        parts += [
            f'<div class="h">{escape(self.title)}</div>',
            html.facts({name: value for name, value in self.facts.items() if value}, style="f"),
        ]
        shown = self.lines[: self.most]
        if shown:
            parts.append(html.plain_table(self.heads, shown))
        hidden = max(self.of_lines, len(self.lines)) - len(shown)
        notes = [f"… and {hidden:,} more."] if hidden > 0 else []
        parts += [html.paragraphs([*notes, *self.notes]), self.below]
        return carded("".join(parts))


def carded(content: str) -> str:
    """Content on paper of its own, with its style."""
    card = f'<div class="dpc">{content}</div>'
    return card.replace('<div class="dpc">', f'<div class="dpc"><style>{own_style(card)}</style>', 1)


class Shown(Stamped, ABC):
    """An object that shows itself by a card: shortly as text, and in a notebook; each with its stamp."""

    @abstractmethod
    def _card(self) -> Card:
        """What is shown."""

    def _text(self) -> str:
        """What `print` shows below the stamp; empty where that is the line."""
        return ""

    @final
    def __repr__(self) -> str:
        return replace(self._card(), stamp=self.stamp).line

    @final
    def __str__(self) -> str:
        text = self._text()
        if not text:
            return repr(self)
        return f"{self.stamp}\n{text}" if self.stamp else text

    @final
    def _repr_html_(self) -> str:
        return replace(self._card(), stamp=self.stamp).markup


class CuratorOnly(Shown):
    """A result that was computed from private rows; its file nobody else can read. Its card has the fields, unless it says more."""

    def _card(self) -> Card:
        facts = {
            item.name.replace("_", " ").capitalize(): _short(getattr(self, item.name))
            for item in fields(self)  # type: ignore[arg-type]
        }
        return Card(type(self).__name__, facts)

    @final
    def save(self, folder: str | Path, name: str = "scores.txt", *, force: bool = False) -> Path:
        """Write the text into a folder that only its owner can open; `force` replaces a file that is there already."""
        return write(private_folder(folder) / name, f"{self}\n", force=force)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"
