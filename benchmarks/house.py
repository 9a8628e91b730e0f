"""The picture of docs/house.md: the rooms in their order, and the way of the data through them. Drawn by rooms.py."""

from collections.abc import Sequence
from itertools import pairwise

from dpcipher.drawing.svg import element, image, standalone, text

WIDTH, HEIGHT = 872, 440
COLUMNS, BOX, STEP_Y, TOP = 8, (100, 46), 54, 44
INK, MUTED, LINE = "#1b1f24", "#57606a", "#8c959f"
PUBLIC, PRIVATE, CURATOR = ("#f6f8fa", LINE), ("#ffdfb6", "#9a5b00"), ("#fff3df", "#9a5b00")

JOBS = {
    "errors": "one tree",
    "files": "whole or absent",
    "drawing": "SVG and HTML",
    "tables": "sets, margins",
    "schema": "public facts",
    "io": "any table, rows",
    "privacy": "budget, noise",
    "release": "noisy tables",
    "joint": "distribution",
    "posteriors": "draws of joints",
    "engines": "release → joint",
    "request": "what is asked",
    "selection": "which tables",
    "curator": "private side",
    "planning": "cost and worth",
    "methods": "synthesizers",
    "inference": "models, SSS",
    "pages": "reports",
    "scoring": "against the truth",
    "comparison": "side by side",
    "audits": "claims, checked",
    "paper": "its experiments",
    "demo": "the whole story",
    "cli": "commands",
}
COLOURS = {"curator": PRIVATE, "scoring": CURATOR, "comparison": CURATOR}

# The way of the data: what happens, in which room.
STEPS = (
    ("schema", "schema/"),
    ("encode", "io/ schema/"),
    ("count", "curator/"),
    ("session", "curator/ privacy/"),
    ("release", "release/"),
    ("solve", "engines/"),
    ("joint", "joint/"),
    ("rows", "io/"),
)
SEES_ROWS = ("encode", "count", "session")
FLOW_Y, STEP, GAP, DOOR = 312, (76, 62), 15, 40


def draw_house(rooms: Sequence[str]) -> str:
    """The picture as an SVG file."""
    content = (
        element("rect", x=0, y=0, width=WIDTH, height=HEIGHT, fill="#ffffff")
        + text(
            6,
            22,
            "The rooms, in their order: each imports only itself and earlier ones",
            font_weight="bold",
            fill=INK,
        )
        + "".join(_room(number, name) for number, name in enumerate(rooms))
        + _legend(TOP + -(-len(rooms) // COLUMNS) * STEP_Y + 14)
        + _way()
    )
    return standalone(
        image(
            WIDTH,
            HEIGHT,
            content,
            title="The house",
            description=f"The rooms in order: {', '.join(rooms)}. The data pass through {', '.join(name for name, _ in STEPS)}; "
            "private rows enter at encode, and the session is their only way out, into the release",
        )
    )


def _room(number: int, name: str) -> str:
    x, y = 6 + number % COLUMNS * 108, TOP - 8 + number // COLUMNS * STEP_Y
    fill, stroke = COLOURS.get(name, PUBLIC)
    return (
        element("rect", x=x, y=y, width=BOX[0], height=BOX[1], rx=5, fill=fill, stroke=stroke)
        + text(x + 8, y + 19, f"{number + 1}  {name}", font_weight="bold", font_size=12, fill=INK)
        + text(x + 8, y + 36, JOBS[name], font_size=11, fill=MUTED)
    )


def _legend(y: float) -> str:
    marks = (
        (6, PRIVATE, "sees private rows before a release"),
        (270, CURATOR, "compares with private rows: curator only, never published"),
    )
    return "".join(
        element("rect", x=x, y=y - 11, width=14, height=14, rx=3, fill=colour[0], stroke=colour[1])
        + text(x + 20, y, words, font_size=12, fill=INK)
        for x, colour, words in marks
    )


def _way() -> str:
    """The steps in a row, the private ones on a ground of their own, and what leaves them by the session alone."""
    names = [name for name, _ in STEPS]
    released = names.index(SEES_ROWS[-1]) + 1
    places = {
        name: 6 + number * (STEP[0] + GAP) + (DOOR - GAP) * (number >= released)
        for number, name in enumerate(names)
    }
    left, right = places[SEES_ROWS[0]] - 8, places[SEES_ROWS[-1]] + STEP[0] + 8
    return (
        text(6, FLOW_Y - 56, "The way of the data", font_weight="bold", fill=INK)
        + _ground(left, right)
        + "".join(_step(places[name], name, room) for name, room in STEPS)
        + "".join(
            _arrow(places[name] + STEP[0], places[after], wide=name == SEES_ROWS[-1])
            for name, after in pairwise(names)
        )
        + _rising(places["encode"] + STEP[0] / 2, "private rows", "")
        + _rising(places["session"] + STEP[0] / 2, "ledger", "(charged first)")
        + text(right + 14, FLOW_Y - 18, "from here on nothing costs privacy", fill=INK, font_size=12)
        + text(right + 14, FLOW_Y + 92, "═▶  with noise on every answer:", fill=INK, font_size=12)
        + text(right + 14, FLOW_Y + 109, "the only way out of the private side", fill=INK, font_size=12)
    )


def _ground(left: float, right: float) -> str:
    return element(
        "rect",
        x=left,
        y=FLOW_Y - 38,
        width=right - left,
        height=STEP[1] + 100,
        rx=6,
        fill=CURATOR[0],
        stroke=CURATOR[1],
        stroke_dasharray="4 3",
    ) + text(
        (left + right) / 2, FLOW_Y - 16, "private side", anchor="middle", font_weight="bold", fill=PRIVATE[1]
    )


def _step(x: float, name: str, rooms: str) -> str:
    fill, stroke = ("#ffffff", PRIVATE[1]) if name in SEES_ROWS else PUBLIC
    middle = x + STEP[0] / 2
    return (
        element("rect", x=x, y=FLOW_Y, width=STEP[0], height=STEP[1], rx=5, fill=fill, stroke=stroke)
        + text(middle, FLOW_Y + 21, name, anchor="middle", font_weight="bold", fill=INK)
        + "".join(
            text(middle, FLOW_Y + 38 + 14 * line, room, anchor="middle", font_size=11, fill=MUTED)
            for line, room in enumerate(rooms.split())
        )
    )


def _arrow(start: float, end: float, *, wide: bool) -> str:
    y, tip = FLOW_Y + STEP[1] / 2, end - 2
    head, lines = (8, (y - 3, y + 3)) if wide else (5, (y,))
    return "".join(
        element("line", x1=start + 2, y1=at, x2=tip - head, y2=at, stroke=INK, stroke_width=1.5)
        for at in lines
    ) + element("path", d=f"M{tip - head - 1},{y - head} L{tip},{y} L{tip - head - 1},{y + head} Z", fill=INK)


def _rising(x: float, *words: str) -> str:
    """What enters a step from below."""
    low = FLOW_Y + STEP[1]
    return (
        element("line", x1=x, y1=low + 22, x2=x, y2=low + 8, stroke=INK, stroke_width=1.5)
        + element("path", d=f"M{x - 5},{low + 9} L{x},{low + 2} L{x + 5},{low + 9} Z", fill=INK)
        + "".join(
            text(x, low + 37 + 15 * line, word, anchor="middle", font_size=12, fill=INK)
            for line, word in enumerate(words)
        )
    )
