"""A joint as a network: groups of columns in order, each given some earlier ones. What PrivBayes and the junction tree fit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import ConditionError, JointError, SizeError
from dpcipher.joint.core import CodeBatches, InBatches
from dpcipher.joint.even import Ladder, spread
from dpcipher.tables.domain import Axes, Bools, Codes, Floats, Shape
from dpcipher.tables.table import cell_numbers

CHUNK = 65_536
MAX_FACTOR_CELLS = 2**25


@dataclass(frozen=True)
class Node:
    """The probabilities of the columns `axes` given the columns `given`; the table's dimensions are `given`, then `axes`."""

    axes: Axes
    given: Axes
    table: Floats

    @property
    def sizes(self) -> Shape:
        """How many levels each of `axes` has."""
        return self.table.shape[len(self.given) :]

    @property
    def flat(self) -> Floats:
        """One row for each combination of `given`, one column for each of `axes`."""
        return self.table.reshape(math.prod(self.table.shape[: len(self.given)]), -1)


@dataclass(frozen=True)
class Network(InBatches):
    """A product of conditional tables; every node's `given` are columns of earlier nodes."""

    shape: Shape
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        drawn: list[int] = []
        for node in self.nodes:
            sizes = [self.shape[axis] for axis in (*node.given, *node.axes) if 0 <= axis < len(self.shape)]
            if (
                list(node.table.shape) != sizes
                or not set(node.given) <= set(drawn)
                or not _is_conditional(node)
            ):
                raise JointError(
                    "every node must hold probabilities given columns of earlier nodes; fit the joint again"
                )
            drawn += node.axes
        if sorted(drawn) != list(range(len(self.shape))):
            raise JointError("the nodes must hold every column once; fit the joint again")

    def project(self, axes: Sequence[int]) -> Floats:
        """The table of some columns: multiply the nodes they depend on, and sum out what is no longer needed."""
        needed = self._ancestors(set(axes))
        factor: Floats = np.ones(())
        live: Axes = ()
        for place, node in enumerate(needed):
            later = {axis for other in needed[place + 1 :] for axis in (*other.given, *other.axes)}
            factor, live = _multiply(factor, live, node)
            keep = tuple(axis for axis in live if axis in later or axis in axes)
            factor, live = factor.sum(axis=tuple(i for i, a in enumerate(live) if a not in keep)), keep
        return np.asarray(factor.transpose([live.index(axis) for axis in axes]))

    def in_batches(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        independent: bool = False,
        allowed: Mapping[int, Bools] | None = None,
        chunk: int | None = None,
    ) -> CodeBatches:
        """Rows drawn node by node; evenly spread within what each node is given, or independent."""
        if allowed:
            raise ConditionError(
                "given is not available for a network this large; sample without it, then filter the rows"
            )

        most = chunk or CHUNK

        def draw(number: int, rng: np.random.Generator) -> Codes:
            return self._chunk(min(most, n_rows - number * most), rng, independent)

        return CodeBatches(math.ceil(n_rows / most), draw)

    def log_prob(self, codes: Codes) -> Floats:
        """The log-probability of each row of codes."""
        logs = np.zeros(len(codes))
        with np.errstate(divide="ignore"):
            for node in self.nodes:
                logs += np.log(node.table[tuple(codes[:, axis] for axis in (*node.given, *node.axes))])
        return logs

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays for a file."""
        arrays: dict[str, NDArray[Any]] = {"shape": np.array(self.shape)}
        for number, node in enumerate(self.nodes):
            arrays |= {
                f"axes{number}": np.array(node.axes, dtype=np.int64),
                f"given{number}": np.array(node.given, dtype=np.int64),
                f"table{number}": node.table,
            }
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Network":
        """The network that `to_arrays` described."""
        try:
            shape = tuple(int(size) for size in arrays["shape"])
            many = sum(name.startswith("table") for name in arrays)
            nodes = tuple(
                Node(
                    tuple(int(axis) for axis in arrays[f"axes{number}"]),
                    tuple(int(axis) for axis in arrays[f"given{number}"]),
                    np.ascontiguousarray(arrays[f"table{number}"], dtype=np.float64),
                )
                for number in range(many)
            )
        except (KeyError, TypeError, ValueError):
            raise JointError("the arrays of the network do not fit together; save the joint again") from None
        return cls(shape, nodes)

    def _ancestors(self, axes: set[int]) -> list[Node]:
        """The nodes that some columns depend on, in order."""
        needed, nodes = set(axes), []
        for node in reversed(self.nodes):
            if needed & set(node.axes):
                nodes.append(node)
                needed |= set(node.given)
        return nodes[::-1]

    def _chunk(self, n_rows: int, rng: np.random.Generator, independent: bool) -> Codes:
        codes = np.zeros((n_rows, len(self.shape)), dtype=np.int32)
        for node in self.nodes:
            place = cell_numbers(codes, node.given, self.shape)
            uniforms = rng.random(n_rows) if independent else spread([place.astype(np.int32)], n_rows, rng)
            drawn = Ladder(node.flat).draw(place, uniforms)
            codes[:, node.axes] = np.stack(np.unravel_index(drawn, node.sizes), axis=1)
        return codes


def conditional(table: Floats, given: int) -> Floats:
    """Noisy counts, the first `given` dimensions first, as probabilities given those; uniform where nothing is left."""
    sizes = table.shape
    flat = np.maximum(table, 0.0).reshape(math.prod(sizes[:given]), -1)
    totals = flat.sum(axis=1, keepdims=True)
    even = np.full_like(flat, 1.0 / flat.shape[1])
    return np.where(totals > 0, flat / np.where(totals > 0, totals, 1.0), even).reshape(sizes)


def _is_conditional(node: Node) -> bool:
    """Whether the probabilities are non-negative and sum to one for every combination of what is given."""
    flat = node.flat
    with np.errstate(over="ignore"):
        return bool(np.isfinite(flat).all() and flat.min() >= 0 and np.abs(flat.sum(axis=1) - 1).max() < 1e-6)


def _multiply(factor: Floats, live: Axes, node: Node) -> tuple[Floats, Axes]:
    """The product of a factor and a node, over the columns of both."""
    every = tuple(dict.fromkeys((*live, *node.given, *node.axes)))
    order = (*node.given, *node.axes)
    sizes = dict(zip(order, node.table.shape, strict=True)) | dict(zip(live, factor.shape, strict=True))
    if math.prod(sizes[axis] for axis in every) > MAX_FACTOR_CELLS:
        raise SizeError(
            "this table needs too large a part of the network; sample rows and count them instead"
        )
    return np.asarray(_spread(factor, live, every, sizes) * _spread(node.table, order, every, sizes)), every


def _spread(table: Floats, axes: Axes, every: Axes, sizes: Mapping[int, int]) -> Floats:
    """A table with its dimensions in the order of `every`, and length one where it has none."""
    order = [axes.index(axis) for axis in every if axis in axes]
    return table.transpose(order).reshape([sizes[axis] if axis in axes else 1 for axis in every])
