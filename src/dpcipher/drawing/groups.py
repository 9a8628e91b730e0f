"""Levels that are drawn together, where a column has more of them than a picture can show.

Which levels are added up follows from the schema alone. Drawing the largest ones instead would choose those whose noise is largest
too (the winner's curse): they would be too high, their intervals would miss the truth, and rows that follow the truth would seem to disagree.
"""

import re
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

MOST_BARS, MOST_ACROSS = 120, 20  # of a bar chart, and of a side of a heat map
EXPLAINED = (
    "Where a column has too many levels to draw, levels are added up, and margins are those of the sums: neighbours where levels have an order; else the first in the order of "
    "the schema are drawn one by one, and all others as one sum. The largest ones would be those whose noise happens to be large."
)
_RANGE = re.compile(r"(\[?[-+\d.:eT]*\d)(\.\.|, )([-+\d.:eT]*\d[)\]]?)")


@dataclass(frozen=True)
class Groups:
    """Runs of levels of one column: their labels, where each begins, how many levels there are, and what was added up in a few words."""

    labels: tuple[str, ...]
    starts: NDArray[np.intp]
    n_levels: int
    words: str = ""
    others: bool = False  # the last group is the sum of all that are not drawn

    @property
    def sizes(self) -> list[int]:
        """How many levels each group has."""
        return np.diff([*self.starts.tolist(), self.n_levels]).tolist()  # type: ignore[no-any-return]

    def add_up(self, table: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
        """The sums of each group along one dimension of a table."""
        return np.add.reduceat(table, self.starts, axis=axis) if self.words else table


def group_levels(labels: tuple[str, ...], ordered: int, most: int) -> Groups:
    """At most `most` groups: neighbours among the first `ordered` levels, which follow one another; of the others the first ones, and all the rest as one.

    >>> group_levels(tuple("abcdefg"), 6, 4).labels
    ('a – b', 'c – d', 'e – f', 'g')
    >>> group_levels(tuple("abcdefg"), 0, 4).labels
    ('a', 'b', 'c', 'all 4 others')
    """
    n_levels = len(labels)
    if n_levels <= most:
        return Groups(labels, np.arange(n_levels), n_levels)
    alone = min(n_levels - ordered, max(most - ordered, most // 4))
    each = ceil(ordered / max(most - alone, 1))
    kept = alone if n_levels - ordered == alone else alone - 1
    starts = [*range(0, ordered, max(each, 1)), *range(ordered, ordered + kept)]
    ends = [*starts[1:], ordered + kept]
    shown = [span(labels[start], labels[end - 1]) for start, end in zip(starts, ends, strict=True)]
    left = n_levels - ordered - kept
    words = [f"{n_levels:,} levels, {each} to a group"] if each > 1 else []
    if left:
        words.append(
            f"{left:,} of {n_levels:,} levels as one"
            if ordered
            else f"the first {kept} of {n_levels:,} levels"
        )
        starts, shown = [*starts, ordered + kept], [*shown, f"all {left:,} others"]
    return Groups(tuple(shown), np.array(starts), n_levels, "; ".join(words), left > 0)


def span(first: str, last: str) -> str:
    """The levels from one to another; of two ranges the ends.

    >>> span("0..9", "40..49"), span("[0, 0.5)", "[2, 2.5]"), span("a", "c"), span("a", "a")
    ('0..49', '[0, 2.5]', 'a – c', 'a')
    """
    if first == last:
        return first
    ends = _RANGE.fullmatch(first), _RANGE.fullmatch(last)
    return f"{ends[0][1]}{ends[0][2]}{ends[1][3]}" if ends[0] and ends[1] else f"{first} – {last}"
