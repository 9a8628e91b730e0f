"""The words of a schema for people: titles, units, descriptions and the labels of values. Public facts, shown on pages and never written to rows."""

from collections.abc import Mapping

from dpcipher.errors import SchemaError
from dpcipher.files.codec import Rule, is_number

LONGEST = {"title": 200, "person": 300, "unit": 60, "description": 2_000, "label": 300}

Labels = tuple[tuple[str, str], ...]


def _is_line(text: object, most: int) -> bool:
    return isinstance(text, str) and 0 < len(text) <= most and text.isprintable()


def line_rule(name: str) -> Rule:
    """What a short text on one line must be: it is to stand in a heading, a table or a plot."""
    most = LONGEST[name]
    return Rule(
        f"must be a text of 1 to {most} characters on one line; shorten it",
        lambda text: _is_line(text, most),
    )


def check_line(name: str, text: object) -> None:
    """Refuse what is no short text on one line."""
    rule = line_rule(name)
    if not rule.holds(text):
        raise SchemaError(f"{name} ({text!r:.60}) {rule.words}")


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
        check_line("label", label)
    return tuple((str(value), str(label)) for value, label in labels.items())


def one_line(text: object, name: str) -> str | None:
    """Somebody else's text on one line, cut to what a schema takes; None where nothing is left.

    >>> one_line("  Two\\n lines ", "title")
    'Two lines'
    """
    if not isinstance(text, str) and not is_number(text):
        return None
    plain = "".join(letter if letter.isprintable() else " " for letter in str(text))
    joined = " ".join(plain.split())
    most = LONGEST[name]
    return (joined if len(joined) <= most else joined[: most - 1] + "…") or None
