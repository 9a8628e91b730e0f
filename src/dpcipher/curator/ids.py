"""How many ids a column has, and how many rows each: estimated from a sample of the ids, for the curator alone.

Whether an id is in the sample, its own hash decides (Gibbons 2001): where its hash is small, all its rows are counted, wherever they stand. The
sample is halved whenever it has grown too large, so that memory is bounded whatever the table.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pandas.util import hash_array

from dpcipher.schema.cells import as_id, as_text, by_type

MOST = 2**12  # ids in the sample
BANDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)  # of rows, as they are told
MOSTLY = 0.8  # of the persons are "most"
ROUND = "1, 2, 5, 10, 20, 50, …"


@dataclass
class IdSample:
    """The rows of each id whose hash is below a limit; rows that name nobody are left out."""

    halvings: int = 0
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, cells: pa.Array) -> None:
        """Take in one batch."""
        counted = pc.value_counts(by_type(cells, as_text)).flatten()
        ids, rows = as_id(counted[0]), counted[1].to_numpy(zero_copy_only=False)
        named = np.asarray(pc.is_valid(ids))
        hashes = hash_array(np.asarray(ids.drop_null().to_pylist(), dtype=object), categorize=False)
        self._keep(
            np.concatenate([self.hashes, hashes.astype(np.uint64)]), np.concatenate([self.rows, rows[named]])
        )
        while len(self.hashes) > MOST:
            self.halvings += 1
            self._keep(self.hashes, self.rows)

    def _keep(self, hashes: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        inside = hashes >> np.uint64(64 - self.halvings) == 0 if self.halvings else np.ones(len(hashes), bool)
        self.hashes, places = np.unique(hashes[inside], return_inverse=True)
        self.rows = np.bincount(places, rows[inside], len(self.hashes)).astype(np.int64)

    @property
    def number(self) -> int:
        """How many ids there are: exactly where the sample holds them all, else about."""
        return len(self.hashes) << self.halvings

    @property
    def repeats(self) -> bool:
        """Whether some id in the sample has more than one row."""
        return bool((self.rows > 1).any())

    def describe(self, column: str) -> str:
        """Who would be protected if the column says whose row each is, in bands; private."""
        most = next((band for band in BANDS if np.mean(self.rows <= band) >= MOSTLY), BANDS[-1])
        more = [band for band in BANDS if band > most and (self.rows > band).any()]
        some = f", some with more than {more[-1]:,}" if more else ""
        return (
            f"CURATOR ONLY: if {column!r} says whose row each is, there are about {_two_digits(self.number):,} persons, most with at most "
            f"{most:,} row{'s' if most > 1 else ''}{some}: protect the person with --person {column} (person={column!r}), and write person: "
            f"{column} into the schema. Let --max-rows be a round number that anybody could have said ({ROUND}): one that is copied from the "
            "rows is a private fact, and so are these figures."
        )


def _two_digits(number: int) -> int:
    """A number as one says it.

    >>> _two_digits(27_341), _two_digits(98)
    (27000, 98)
    """
    places = max(0, len(str(number)) - 2)
    return round(number, -places)
