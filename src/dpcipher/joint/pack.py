"""The links of a chain as a few plain arrays, and back."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.link import Link
from dpcipher.marginals.arrays import Axes

Arrays = Mapping[str, NDArray[Any]]

LARGEST = 1e30  # chances are computed in 32 bits


def pack_links(links: Sequence[Link]) -> dict[str, NDArray[Any]]:
    """Numbers laid end to end, link after link, and the lengths needed to cut them apart again."""
    groups = [group for link in links for group in link.groups]
    bars = [bar for link in links for bar in link.barred]
    return {
        "order": _integers(link.attribute for link in links),
        "groups": _integers(len(link.groups) for link in links),
        "group_sizes": _integers(len(group) for group in groups),
        "group_axes": _integers(axis for group in groups for axis in group),
        "bars": _integers(len(link.barred) for link in links),
        "bar_sizes": _integers(len(group) for group, _ in bars),
        "bar_axes": _integers(axis for group, _ in bars for axis in group),
        "bar_masks": _joined([mask for _, mask in bars], np.bool_),
        "base": _joined([link.base for link in links], np.float64),
        "weights": _joined([link.weights for link in links], np.float64),
        "factors": _joined([link.factors for link in links], np.float64),
        "goals": _joined([link.goals for link in links], np.float64),
    }


def unpack_links(arrays: Arrays, shape: tuple[int, ...]) -> tuple[Link, ...]:
    """The links that `pack_links` laid out; a ValueError where the lengths do not fit."""
    groups = _axes(arrays["group_sizes"], arrays["group_axes"], shape)
    bars = _axes(arrays["bar_sizes"], arrays["bar_axes"], shape)
    numbers = {name: _Reader(arrays[name]) for name in ("base", "weights", "factors", "goals", "bar_masks")}
    order = [int(attribute) for attribute in arrays["order"]]
    links = []
    for place, n_groups, n_bars in zip(range(len(order)), arrays["groups"], arrays["bars"], strict=True):
        own, barring = (
            _next(many, axes, order[:place]) for many, axes in ((n_groups, groups), (n_bars, bars))
        )
        links.append(_link(order[place], own, barring, shape, numbers))
    for reader in numbers.values():
        reader.finish()
    if next(groups, None) is not None or next(bars, None) is not None:
        raise ValueError("groups are left over")
    return tuple(links)


def _next(many: int, axes: Iterator[Axes], earlier: Sequence[int]) -> tuple[Axes, ...]:
    """The next groups of attributes, all of them drawn before."""
    found, known = tuple(islice(axes, int(many))), set(earlier)
    if len(found) != many or not all(known.issuperset(group) for group in found):
        raise ValueError("a link must follow from attributes before it")
    return found


class _Reader:
    """Takes blocks off a flat array, in turn."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values, self._at = values, 0

    def take(self, *shape: int) -> NDArray[Any]:
        """The next block, of the given shape."""
        start, self._at = self._at, self._at + prod(shape)
        taken = self._values[start : self._at].reshape(shape)
        if taken.dtype.kind == "f" and not (np.abs(taken) < LARGEST).all():
            raise ValueError(f"numbers must be finite, and below {LARGEST:g} in size")
        return taken

    def finish(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._values):
            raise ValueError(f"{len(self._values)} numbers where {self._at} are needed")


def _link(
    attribute: int,
    groups: tuple[Axes, ...],
    bars: tuple[Axes, ...],
    shape: tuple[int, ...],
    numbers: dict[str, _Reader],
) -> Link:
    levels = shape[attribute]
    if attribute < 0:
        raise ValueError("attributes must be numbered from 0 up")
    sizes = tuple(prod(shape[axis] for axis in group) for group in groups)
    base = numbers["base"].take(levels)
    if base.min() < 0:
        raise ValueError("base rates must be 0 or above")
    weights, factors, goals = (
        numbers[name].take(sum(sizes), levels) for name in ("weights", "factors", "goals")
    )
    barred = tuple(
        (group, numbers["bar_masks"].take(prod(shape[axis] for axis in group), levels)) for group in bars
    )
    return Link(attribute, groups, sizes, base, weights, factors, goals, barred)


def _axes(sizes: NDArray[Any], flat: NDArray[Any], shape: tuple[int, ...]) -> Iterator[Axes]:
    """The groups of attributes, cut out of a flat array."""
    lengths, axes = [int(size) for size in sizes], [int(axis) for axis in flat]
    if sum(lengths) != len(axes) or min([*lengths, *axes], default=0) < 0:
        raise ValueError(f"{len(axes)} axes where {sum(lengths)} are needed, from 0 up")
    if max(axes, default=0) >= len(shape):
        raise ValueError("axes must be attributes of the schema")
    stops = accumulate(lengths)
    return iter([tuple(axes[stop - size : stop]) for stop, size in zip(stops, lengths, strict=True)])


def _integers(values: Any) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([array.ravel() for array in arrays]).astype(dtype) if arrays else np.zeros(0, dtype)
