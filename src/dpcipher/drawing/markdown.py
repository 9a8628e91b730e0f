"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with its heads.

    >>> print(markdown_table(["n", "error"], [["200", ".1"]]), end="")
    | n | error |
    |---|---|
    | 200 | .1 |
    """
    rows = ["| " + " | ".join(cells) + " |\n" for cells in (heads, *lines)]
    return rows[0] + "|" + "---|" * len(heads) + "\n" + "".join(rows[1:])
