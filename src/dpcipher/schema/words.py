"""The words of a column for people: its title, unit and description, and a label for each value. Public facts, shown on pages and never written to rows."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpcipher.errors import SchemaError
from dpcipher.schema.binned import Binned
from dpcipher.schema.listed import Listed

if TYPE_CHECKING:
    from dpcipher.schema.column import Column

MAX_BIN_LABELS = 1_000
LONGEST = {"title": 200, "person": 300, "unit": 60, "description": 2_000, "label": 300}

Labels = tuple[tuple[str, str], ...]


def check_text(name: str, text: object) -> None:
    """Refuse what is no short text on one line: it is to stand in a heading, a table or a plot."""
    most = LONGEST[name]
    if text is None:
        return
    if not isinstance(text, str) or not 0 < len(text) <= most or not text.isprintable():
        raise SchemaError(
            f"{name} ({text!r:.60}) must be a text of 1 to {most} characters on one line; shorten it"
        )


def check_words(column: "Column") -> None:
    """The words of a column are short texts, and its labels are of levels that it has."""
    for name in ("title", "description", "unit"):
        check_text(name, getattr(column, name))
    labelled(column)


def labelled(column: "Column") -> dict[int, str]:
    """What each level that has a label is shown as, by its code: the label, with the value behind it where another level would look alike.

    Of a cut column, a value needs a bin of its own to be labelled: 0 in 0..9 has none. No list of all levels is made: there may be a billion.
    """
    codes: dict[int, tuple[str, str]] = {}
    pairs = read_labels(column.value_labels or ())
    if isinstance(column.domain, Binned) and len(pairs) > MAX_BIN_LABELS:
        raise SchemaError(
            f"labels ({len(pairs)} of them) must be at most {MAX_BIN_LABELS} in a column with bins"
        )
    for value, label in pairs:
        code = _level_of(column, value)
        if code is None and isinstance(column.domain, Binned):
            continue
        if code is None or code in codes:
            raise SchemaError(f"labels ({value!r:.60}) must name levels of the column, each once")
        codes[code] = value, label
    times = Counter(label for _, label in codes.values())
    return {
        code: f"{label} ({value})"
        if times[label] > 1 or _level_of(column, label) not in (None, code)
        else label
        for code, (value, label) in codes.items()
    }


def _level_of(column: "Column", value: str) -> int | None:
    """The code of the level that is this value, or is called so, and of no level that merely holds it."""
    if isinstance(column.domain, Listed) and value in column.places:
        return column.places[value]
    code = column.find_value(value)
    if code is None or code >= column.domain.size or isinstance(column.domain, Listed):
        return code
    if isinstance(column.domain.edges, range):  # one level for each value
        return code
    return code if value == column.labels[code] else None


def read_labels(labels: object) -> Labels:
    """The labels of a declaration, as pairs of a value and its label.

    >>> read_labels({1: "Male", "2": "Female"})
    (('1', 'Male'), ('2', 'Female'))
    """
    if isinstance(labels, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in labels):
        labels = dict(labels)
    if not isinstance(labels, Mapping):
        raise SchemaError(f"labels ({labels!r:.60}) must be a mapping; try labels: {{1: Male, 2: Female}}")
    for label in labels.values():
        check_text("label", label)
    return tuple((str(value), str(label)) for value, label in labels.items())


def heading(name: str, title: str | None, unit: str | None) -> str:
    """A column by its name, and what it is: the name is what commands and formulas take.

    >>> heading("PINCP", "Total income", "dollars"), heading("age", None, None)
    ('PINCP: Total income [dollars]', 'age')
    """
    named = name if not title or title == name else f"{name}: {title}"
    return f"{named} [{unit}]" if unit else named


def one_line(text: object, name: str) -> str | None:
    """Somebody else's text on one line, cut to what a schema takes; None where nothing is left.

    >>> one_line("  Two\\n lines ", "title")
    'Two lines'
    """
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        return None
    plain = "".join(letter if letter.isprintable() else " " for letter in str(text))
    joined = " ".join(plain.split())
    most = LONGEST[name]
    return (joined if len(joined) <= most else joined[: most - 1] + "…") or None
