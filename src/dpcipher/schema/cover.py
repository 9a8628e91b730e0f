"""Tables asked for by column name, when a column may be part of a compound attribute."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import WorkloadError, did_you_mean

if TYPE_CHECKING:
    from dpcipher.schema.schema import Schema


@dataclass(frozen=True)
class Cover:
    """The attributes that cover some names, and how to get from their table to the table of the names.

    `attrs` and `axes` are in schema order; `fold` takes a table over `axes` and gives the table over `names`, in their order.
    """

    names: tuple[str, ...]
    attrs: tuple[str, ...]
    axes: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]
    opened: tuple[tuple[str, int], ...]  # the dimensions once compounds are taken apart: name and size

    def fold(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum out what was not asked for, and put the axes in the order of the names."""
        inner = [name for name, _ in self.opened]
        cube = np.asarray(table).reshape([size for _, size in self.opened])
        kept = [name for name in inner if name in self.names]
        summed = cube.sum(axis=tuple(i for i, name in enumerate(inner) if name not in self.names))
        return np.asarray(summed).transpose([kept.index(name) for name in self.names])


def cover(schema: "Schema", names: str | Sequence[str]) -> Cover:
    """The attributes that cover `names`, each a column, a part of a compound, or a compound."""
    wanted = (names,) if isinstance(names, str) else tuple(names)
    homes = {name: _home(schema, name) for name in wanted}
    attrs = tuple(attr for attr in schema.attrs if attr in homes.values())
    opened = tuple(chain.from_iterable(_dimensions(schema, attr, wanted) for attr in attrs))
    reachable = [name for name, _ in opened]
    if len(homes) < len(wanted) or any(name not in reachable for name in wanted):
        raise WorkloadError(f"attrs ({', '.join(wanted)}) must name each column once; remove the repeats")
    labels = tuple(schema.labels(name) for name in wanted)
    return Cover(wanted, attrs, tuple(schema.attrs.index(attr) for attr in attrs), labels, opened)


def _home(schema: "Schema", name: str) -> str:
    for attr in schema.attrs:
        if name == attr or any(part.name == name for part in schema.parts(attr)):
            return attr
    raise WorkloadError(
        f"column {name!r} is not in the schema{did_you_mean(str(name), (*schema.names, *schema.attrs))}"
    )


def _dimensions(schema: "Schema", attr: str, wanted: tuple[str, ...]) -> list[tuple[str, int]]:
    if attr in wanted:
        return [(attr, schema.n_cells([attr]))]
    return [(part.name, part.size) for part in schema.parts(attr)]
