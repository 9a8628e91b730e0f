"""The counts of some rows on their way to a sum: pieces of all tables as compressed bytes.

All tables stand one after another, behind the number of rows, and are cut into pieces of equal length; the last may be shorter, and is filled up.
Sums of whole numbers are the same in any order.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from dpcipher.tables.domain import Axes, Counts

PIECE_CELLS = 2**18


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
        place = number * PIECE_CELLS
        flat[place : place + PIECE_CELLS] = counts[: len(flat) - place]
    filled = (
        flat[start:stop].reshape(size) for start, stop, size in zip(stops, stops[1:], sizes, strict=False)
    )
    return int(flat[0]), tuple(filled)


def packed(counts: Counts) -> bytes:
    """Counts of a piece as bytes."""
    whole = np.zeros(PIECE_CELLS, dtype=np.int64)
    whole[: len(counts)] = counts
    return bytes(pa.compress(whole, codec="zstd", asbytes=True))


def add_packed(total: Counts | None, packed_counts: bytes) -> Counts:
    """Counts of a piece added to others of the same piece; the result may be `total` itself."""
    piece = pa.decompress(packed_counts, decompressed_size=8 * PIECE_CELLS, codec="zstd")
    counts = np.frombuffer(piece, dtype=np.int64)
    return counts.copy() if total is None else np.add(total, counts, out=total)
