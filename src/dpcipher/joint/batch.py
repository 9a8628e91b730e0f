"""A draw of coded rows in batches, of which each can be drawn without the others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpcipher.marginals.arrays import Codes


@dataclass(frozen=True, eq=False)
class CodeBatches:
    """How many batches a draw has, and `draw(number, rng)`, the codes of one of them.

    What batches have in common was drawn when this was made, so that together they are one even draw, in whatever order and with whatever
    generators they are drawn.
    """

    n_batches: int
    draw: Callable[[int, np.random.Generator], Codes]

    def all(self, rng: np.random.Generator) -> Iterator[Codes]:
        """One batch after another, from one generator."""
        return (self.draw(number, rng) for number in range(self.n_batches))


def batch_size(n_rows: int, n_batches: int, number: int) -> int:
    """How many rows a batch has, where all have the same number up to one.

    >>> [batch_size(10, 3, number) for number in range(3)]
    [4, 3, 3]
    """
    return n_rows // n_batches + (number < n_rows % n_batches)
