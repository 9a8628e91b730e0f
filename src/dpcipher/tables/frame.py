"""pandas frames as Arrow batches, whatever their columns hold."""

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa

FRAME_ROWS = 2**18


def frame_batches(frame: pd.DataFrame, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches, so that the frame is never copied whole."""
    places = [[str(name) for name in frame.columns].index(column) for column in columns]
    for start in range(0, max(len(frame), 1), FRAME_ROWS):
        part = frame.iloc[start : start + FRAME_ROWS]
        yield pa.RecordBatch.from_arrays(
            [_cells(part.iloc[:, place]) for place in places], names=list(columns)
        )


def _cells(series: pd.Series) -> pa.Array:
    """One column; where its cells are of mixed types, each as text."""
    try:
        cells = pa.Array.from_pandas(series)
    except (pa.ArrowException, OverflowError):  # Arrow's message quotes the cell that does not fit
        cells = pa.Array.from_pandas(series.map(str, na_action="ignore").astype(object))
    return cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
