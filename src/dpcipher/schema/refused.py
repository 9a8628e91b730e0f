"""What is said of rows that cannot be: the public condition that they break, and never a value or a count."""

from collections.abc import Iterable

_WHERE = "`dpcipher schema check SCHEMA --data DATA` lists them, for the curator alone"


def broken_rule(number: int, rule: str, columns: Iterable[str]) -> str:
    """The refusal of rows that break a rule.

    >>> broken_rule(1, "age >= 18", ["age"])[:64]
    "column 'age': rows that break rule 1 (age >= 18) are refused; sa"
    """
    return (
        f"{_named(columns)}: rows that break rule {number} ({rule:.60}) are refused; say where they go with becomes or breaking: follow, "
        f"or correct them; {_WHERE}"
    )


def inside_zero(columns: Iterable[str]) -> str:
    """The refusal of rows in a structural zero."""
    return (
        f"{_named(columns)}: rows in a structural zero are refused; say where they go with becomes, or correct them; "
        f"{_WHERE}"
    )


def _named(columns: Iterable[str]) -> str:
    names = [repr(name) for name in columns]
    return f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"
