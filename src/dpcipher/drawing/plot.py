"""`plot`: an object as a picture, shown in a notebook and saved as SVG, without a plotting library."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape, unescape
from pathlib import Path
from re import compile as pattern
from textwrap import wrap

from dpcipher.drawing import html
from dpcipher.drawing.card import carded
from dpcipher.drawing.curator_only import UNKNOWN, Stamped, save_plot
from dpcipher.drawing.svg import clip, element, image, standalone, text
from dpcipher.errors import ParameterError, TableFileError
from dpcipher.files import write_text

SPACE, CAPTION, KEY, LINE = 28, 20, 24, 17
_SIZE = pattern(r'width="([\d.]+)" height="([\d.]+)"')


@dataclass(frozen=True, repr=False)
class Plot:
    """A picture: in a notebook it shows itself, `save("plot.svg")` writes it.

    `panels` are images by caption, `key` what their signs stand for, `note` a sentence below. A picture with a `stamp` is kept in a folder that only its owner can open.
    """

    title: str
    panels: Mapping[str, str]
    key: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    stamp: str = UNKNOWN  # `plot` knows
    columns: int = 3

    @property
    def svg(self) -> str:
        """The picture as the text of an SVG file, in light and dark."""
        return standalone(self._image())

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the picture as an SVG file, which browsers, text programs and drawing programs open; `force` replaces one that is there already."""
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise ParameterError(f"path ({target}) must end in .svg: that is what a plot is saved as")
        try:
            if self.stamp:
                return save_plot(target, self.svg, self.stamp, force=force)
            return write_text(target, self.svg, force=force)
        except OSError as error:
            raise TableFileError(
                f"plot ({target}) cannot be written: {error.strerror}; choose another place"
            ) from None

    def __repr__(self) -> str:
        marked = f"; {self.stamp}" if self.stamp else ""
        return f"<Plot: {self.title}; save('plot.svg') writes it{marked}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # Inside the notebook's own page the pointer is told the numbers, which a picture in a frame would not do, and panels find room.
        stamp = f'<p class="stamp">{escape(self.stamp)}</p>' if self.stamp else ""
        panels = "".join(
            html.figure(svg, caption if caption != self.title else "") for caption, svg in self.panels.items()
        )
        style = "panels many" if len(self.panels) > self.columns else "panels"
        head = f'{stamp}<div class="h">{escape(self.title)}</div>{html.key_list(self.key)}'
        return carded(
            f'{head}<div class="{style}">{panels}</div>{html.paragraphs([self.note] if self.note else [])}'
        )

    def _image(self) -> str:
        sizes = {caption: tuple(map(float, _SIZE.findall(svg)[0])) for caption, svg in self.panels.items()}
        wide, many = max(size[0] for size in sizes.values()), min(self.columns, len(sizes))
        width = wide * many + SPACE * (many - 1)
        top, parts = self._head(width)
        ends = [top] * many
        for caption, svg in self.panels.items():
            place = ends.index(min(ends))  # the next picture goes where there is room
            x = (wide + SPACE) * place
            if caption != self.title:  # a single picture has its caption as title already
                parts.append(text(x, ends[place] + 12, clip(caption, int(wide / 7.4)), class_="b"))
                ends[place] += CAPTION
            parts.append(svg.replace("<svg ", f'<svg x="{x:g}" y="{ends[place]:g}" ', 1))
            ends[place] += sizes[caption][1] + (SPACE if len(sizes) > 1 else 6)
        note, height = _lines(self.note, width, max(ends))
        described = next(iter(self.panels.values())).partition("<desc>")[2].partition("</desc>")[0]
        content = "".join(parts) + note
        return image(width, max(ends) + height, content, title=self.title, description=unescape(described))

    def _head(self, width: float) -> tuple[float, list[str]]:
        """Title, stamp and key, and where they end."""
        parts, top = [], 0.0
        for words, style in ((self.stamp, "f-bad"), (self.title, "t")):
            for line in wrap(words, int(width / (9.2 if style == "t" else 7.0))):
                parts.append(text(0, top + 14, line, class_=style))
                top += 20
        top += 6
        if self.key:
            signs, height = _key(self.key, width, top)
            parts.append(signs)
            top += height + 6
        return top, parts


class Drawable(Stamped, ABC):
    """An object that `plot` draws."""

    @abstractmethod
    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        """The picture of the whole, or of some columns."""


def plot(drawable: Drawable, columns: str | Sequence[str] | None = None) -> Plot:
    """Draw a plan, a release, a joint, a ledger, a fitted model, scores, a comparison, or what `trust` says.

    Of a release or a joint, `columns` names one column (bars; those of a release with 95 % whiskers) or two (a heat map). The picture shows itself in a notebook,
    in light and dark; `plot(...).save("age.svg")` writes it. Names, labels and units are those of the schema.

    >>> import dpcipher as dc
    >>> schema = dc.Schema.from_domain({"sex": 2, "job": 3})
    >>> release = dc.Release.from_tables({("sex", "job"): [[30, 20, 9], [8, 25, 31]]}, schema, scale=2.0)
    >>> dc.plot(release, "job")
    <Plot: job; save('plot.svg') writes it>
    >>> dc.plot(release, ("sex", "job")).svg[:4]
    '<svg'
    """
    if not isinstance(drawable, Drawable):
        raise ParameterError(
            f"what to plot ({type(drawable).__name__}) must be a plan, a release, a joint, a ledger, a fitted model, scores, a comparison or what trust says"
        )
    named = (columns,) if isinstance(columns, str) else columns
    return replace(drawable._draw(None if named is None else tuple(named)), stamp=drawable.stamp)


def no_columns(columns: tuple[str, ...] | None, what: str) -> None:
    """Refuse columns for what is drawn as a whole."""
    if columns is not None:
        raise ParameterError(f"columns ({', '.join(columns)}) must be left out: {what} is drawn as a whole")


def _key(key: Mapping[str, str], width: float, top: float) -> tuple[str, float]:
    """Signs and what they stand for, in as many lines as they take."""
    out, x, y = [], 0.0, top
    for name, sign in key.items():
        need = 50 + 7.0 * len(name)
        if x and x + need > width:
            x, y = 0.0, y + KEY
        out.append(element("g", sign, transform=f"translate({x:.1f} {y:.1f})") + text(x + 28, y + 11, name))
        x += need
    return "".join(out), y - top + KEY


def _lines(words: str, width: float, top: float) -> tuple[str, float]:
    lines = wrap(words, int(width / 6.8))
    drawn = [text(0, top + 12 + LINE * row, line, class_="m") for row, line in enumerate(lines)]
    return "".join(drawn), LINE * len(lines) + (4 if lines else 0)
