"""What an engine fits: a distribution over coded rows, which are drawn in batches, each without the others."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpcipher.tables.domain import Axes, Bools, Codes, Floats, Shape


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


class InBatches(Protocol):
    """Whatever draws coded rows in batches draws them one batch after another too."""

    def in_batches(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        independent: bool = False,
        allowed: Mapping[int, Bools] | None = None,
        chunk: int | None = None,
    ) -> CodeBatches:
        """Rows in batches of at most `chunk`, by default as many as suit the core, that can be drawn in any order, each with a generator of its own.

        What they share is drawn now. Rows are even as far as the core promises it, or `independent`; `allowed` masks the levels of some attributes: rows
        then follow the conditional distribution.
        """
        ...

    def sample(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        independent: bool = False,
        allowed: Mapping[int, Bools] | None = None,
        chunk: int | None = None,
    ) -> Iterator[Codes]:
        """The rows of `in_batches`, batch after batch, from one generator."""
        return self.in_batches(n_rows, rng, independent=independent, allowed=allowed, chunk=chunk).all(rng)


def batch_size(n_rows: int, n_batches: int, number: int) -> int:
    """How many rows a batch has, where all have the same number up to one.

    >>> [batch_size(10, 3, number) for number in range(3)]
    [4, 3, 3]
    """
    return n_rows // n_batches + (number < n_rows % n_batches)


class Core(InBatches, Protocol):
    """What an engine fits: a distribution over the numbers of attributes and of their levels, which knows nothing of the schema."""

    @property
    def shape(self) -> Shape:
        """The number of levels of each attribute."""

    def project(self, axes: Axes) -> Floats:
        """The probabilities of the table on some attributes, its dimensions in the order of `axes`."""

    def log_prob(self, codes: Codes) -> Floats:
        """The log-probability of each row of codes."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays for the file."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `to_arrays` described."""
