"""What is held of the rows until a release is done: nothing, or their codes, in memory or in a file without a name."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpcipher.request.limits import FULL_TABLE_CELLS, MEMORY_BYTES
from dpcipher.request.request import Request
from dpcipher.schema.narrow import code_type
from dpcipher.selection.foreseen import foreseen_tables
from dpcipher.selection.target import SelectionTarget


@dataclass(frozen=True)
class Held:
    """The bytes of a row's codes and, where a number of rows was given, of all of them, and whether they go to a file.

    `until` says why they are held. Where rows are limited for each person, the names of persons are held beside the codes, and not counted.
    """

    until: str
    row_bytes: int
    n_bytes: int | None
    in_file: bool | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return asdict(self)

    def line(self) -> str:
        """For people."""
        memory = f"{MEMORY_BYTES / 1e6:,.0f} MB"
        where = (
            f"in memory up to {memory}, beyond in a temporary file without a name, in the folder of TMPDIR"
        )
        if self.n_bytes is not None:
            where = f"{max(1, round(self.n_bytes / 1e6)):,} MB in memory"
            if self.in_file:
                where = where.replace(
                    "in memory", "in a temporary file without a name, in the folder of TMPDIR"
                )
        return f"Rows     codes are held until {self.until}: {self.row_bytes} bytes a row, {where}"


def held_rows(request: Request, n_rows: int | None) -> Held | None:
    """What a release holds of the rows; None where they are counted as they are read."""
    schema, auto, person = request.schema, request.auto, request.privacy.cap is not None
    asks_later = schema.is_open or (
        auto is not None and foreseen_tables(SelectionTarget.of(auto, schema)) is None
    )
    schema = schema.on_grid()
    asks_rows = asks_later and math.prod(schema.shape) > FULL_TABLE_CELLS  # else the full table answers
    if not person and not asks_rows:
        return None
    until = "the tables are chosen and measured" if asks_rows else "the rows of each person are known"
    row_bytes = sum(code_type(size)().itemsize for size in schema.shape)
    n_bytes = None if n_rows is None else n_rows * row_bytes
    return Held(until, row_bytes, n_bytes, None if n_bytes is None else n_bytes > MEMORY_BYTES)
