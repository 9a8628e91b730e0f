"""The counts of some rows on their way to a sum: pieces of all tables as bytes, each dense or sparse, whichever is shorter.

All tables stand one after another, behind the number of rows, and are cut into pieces of equal length. A piece in which most cells are empty lists
the places and counts of the others; any other piece is its counts. Both are written in the narrowest integers that hold them. Sums of
whole numbers are the same in any order.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.marginals.arrays import Axes, Counts

PIECE_CELLS = 2**18
_WIDTHS: Sequence[Any] = (np.uint8, np.uint16, np.uint32, np.int64)
_HEAD = 8  # bytes: how the counts are written, and how many they are
_SPARSE = len(_WIDTHS)  # added to the number of the width


def pieces(n_rows: int, tables: Sequence[Counts]) -> Iterator[tuple[int, bytes]]:
    """The number of each piece that is not empty, and its bytes; the first has the number of rows."""
    flat = np.concatenate([[n_rows], *(table.reshape(-1) for table in tables)])
    for number, start in enumerate(range(0, len(flat), PIECE_CELLS)):
        piece = flat[start : start + PIECE_CELLS]
        if number == 0 or piece.any():
            yield number, packed(piece)


def assembled(
    parts: dict[int, Counts], shape: Sequence[int], tables: Sequence[Axes]
) -> tuple[int, tuple[Counts, ...]]:
    """The number of rows and the counts of every table, from the sums of pieces; what is absent is empty."""
    sizes = [[shape[axis] for axis in axes] for axes in tables]
    stops = np.cumsum([1, *(int(np.prod(size)) for size in sizes)])
    flat = np.zeros(int(stops[-1]), dtype=np.int64)
    for number, counts in parts.items():
        flat[number * PIECE_CELLS : (number + 1) * PIECE_CELLS] = counts
    filled = (
        flat[start:stop].reshape(size) for start, stop, size in zip(stops, stops[1:], sizes, strict=False)
    )
    return int(flat[0]), tuple(filled)


def packed(counts: Counts) -> bytes:
    """Counts of a piece as bytes.

    >>> len(packed(np.array([1, 2, 3]))), len(packed(np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 70_000])))
    (11, 16)
    """
    places = np.flatnonzero(counts)
    width = _width(counts)
    size = np.dtype(_WIDTHS[width]).itemsize
    if len(places) * (4 + size) < len(counts) * size:
        body = places.astype(np.uint32).tobytes() + counts[places].astype(_WIDTHS[width]).tobytes()
        width += _SPARSE
    else:
        body = counts.astype(_WIDTHS[width]).tobytes()
    return np.array([width, len(counts)], dtype=np.uint32).tobytes() + body


def add_packed(total: Counts | None, packed_counts: bytes) -> Counts:
    """Counts of a piece added to others of the same piece; the result may be `total` itself."""
    kind, length = np.frombuffer(packed_counts, np.uint32, 2).tolist()
    width: Any = _WIDTHS[kind % _SPARSE]
    counts = np.zeros(length, dtype=np.int64) if total is None else total
    if kind < _SPARSE:
        counts += np.frombuffer(packed_counts, width, length, offset=_HEAD)
        return counts
    n_places = (len(packed_counts) - _HEAD) // (4 + np.dtype(width).itemsize)
    places: NDArray[np.uint32] = np.frombuffer(packed_counts, np.uint32, n_places, offset=_HEAD)
    counts[places] += np.frombuffer(packed_counts, width, n_places, offset=_HEAD + 4 * n_places)
    return counts


def _width(counts: Counts) -> int:
    """The number of the narrowest integer that holds all counts."""
    most = int(counts.max(initial=0))
    return next(width for width, kind in enumerate(_WIDTHS) if most <= np.iinfo(kind).max)
