"""Memory and time of a release and of its solution, judged on the schema and on a short probe of this machine."""

from dataclasses import dataclass
from typing import Any

from dpcipher.plan import probe
from dpcipher.private.sanitize import Order


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes beyond those of Python and its libraries.

    `measure_seconds` assumes a CSV file of `n_rows` rows, or none where no number of rows was given.
    """

    measure_seconds: float
    measure_bytes: int
    n_rows: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for programs."""
        return {"measure_seconds": self.measure_seconds, "measure_bytes": self.measure_bytes}

    def lines(self) -> list[str]:
        """The cost for people."""
        return [f"Measure  {self.measure_seconds:.2g} s, {self.measure_bytes / 1e6:.0f} MB"]


def foresee(order: Order, n_rows: int | None) -> Cost:
    """The cost of measuring the order and of solving its release."""
    tables = [order.schema.axes(attrs) for attrs in order.workload.tables]
    start, row = probe.counting(order.schema, tables)
    call, cell = probe.noise(order.mechanisms[0])
    drawn = order.sets * (call * len(tables) + cell * order.workload.n_cells)
    return Cost(start + row * (n_rows or 0) + drawn, 0, n_rows)
