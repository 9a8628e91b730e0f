"""The links of a chain as a few plain arrays, and back."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.link import Axes, Link

Arrays = Mapping[str, NDArray[Any]]


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
    groups = _axes(arrays["group_sizes"], arrays["group_axes"])
    bars = _axes(arrays["bar_sizes"], arrays["bar_axes"])
    numbers = {name: _Reader(arrays[name]) for name in ("base", "weights", "factors", "goals", "bar_masks")}
    links = []
    for attribute, n_groups, n_bars in zip(arrays["order"], arrays["groups"], arrays["bars"], strict=True):
        own = tuple(next(groups) for _ in range(n_groups))
        barring = tuple(next(bars) for _ in range(n_bars))
        links.append(_link(int(attribute), own, barring, shape, numbers))
    for reader in numbers.values():
        reader.finish()
    return tuple(links)


class _Reader:
    """Takes blocks off a flat array, in turn."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values, self._at = values, 0

    def take(self, *shape: int) -> NDArray[Any]:
        """The next block, of the given shape."""
        start, self._at = self._at, self._at + prod(shape)
        return self._values[start : self._at].reshape(shape)

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
    sizes = tuple(prod(shape[axis] for axis in group) for group in groups)
    base = numbers["base"].take(levels)
    weights, factors, goals = (
        numbers[name].take(sum(sizes), levels) for name in ("weights", "factors", "goals")
    )
    barred = tuple(
        (group, numbers["bar_masks"].take(prod(shape[axis] for axis in group), levels)) for group in bars
    )
    return Link(attribute, groups, sizes, base, weights, factors, goals, barred)


def _axes(sizes: NDArray[Any], flat: NDArray[Any]) -> Iterator[Axes]:
    if sizes.sum() != len(flat):
        raise ValueError(f"{len(flat)} axes where {sizes.sum()} are needed")
    stops = np.cumsum(sizes)
    return iter(
        [
            tuple(int(axis) for axis in flat[stop - size : stop])
            for stop, size in zip(stops, sizes, strict=True)
        ]
    )


def _integers(values: Any) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([array.ravel() for array in arrays]).astype(dtype) if arrays else np.zeros(0, dtype)
