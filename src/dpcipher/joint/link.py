"""One link of a chain: the probabilities of one attribute given the attributes before it; its quick draws; and links as a few plain arrays, and back.

A `FastLink` draws rows of a link that bars nothing, many at a time, from the same law in single precision. Groups are crossed as far as a table stays small, so that a row
looks up five rows of levels instead of thirteen. Of the levels, about √L blocks are summed first; a height between 0 and their sum is in one block, and what is
left of it at one level there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, islice, pairwise
from math import ceil, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.joint.blocks import Blocks, Cells, Chances
from dpcipher.joint.even import PASSES, Draw, Ladder, Places, match_goals, row_sums, spread
from dpcipher.tables.domain import Axes, Codes, Floats, Shape
from dpcipher.tables.table import cell_numbers

KEYS = 3  # attributes that rows are sorted by before a spread draw
LEAST = 1e-30  # a sum of chances that is scaled in two steps
LARGEST = 1e30  # of the numbers in a file: chances are computed in 32 bits


@dataclass(frozen=True)
class Link:
    """The conditional distribution of `attribute`, from earlier attributes taken in `groups` (strongest first).

    With g the level of group k, P(level | row) ∝ base · exp Σ_k factors[k, g], and 0 where `barred`. The rows of factors and goals are the
    levels of all groups, one group after another; `goals` are the conditional probabilities that the tables of even rows are made to match.
    """

    attribute: int
    groups: tuple[Axes, ...]
    sizes: tuple[int, ...]
    base: Floats
    factors: Floats
    goals: Floats
    barred: tuple[tuple[Axes, NDArray[np.bool_]], ...] = ()

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each group in factors and goals."""
        return np.cumsum([0, *self.sizes[:-1]])[: len(self.sizes)]

    @cached_property
    def blocks(self) -> Blocks:
        """The groups, crossed where they are small."""
        return Blocks(self.groups, self.sizes, len(self.base))

    def probabilities(self, codes: Codes, shape: Shape, *, dtype: Any = np.float32) -> Chances:
        """The probability of every level for every coded row; all zero for a row that no level may follow."""
        return self.chances(codes, self.blocks.cells(codes, shape), shape, dtype)

    def chances(self, codes: Codes, cells: Cells, shape: Shape, dtype: Any = np.float32) -> Chances:
        """The probability of every level, for rows whose cells in the blocks are known."""
        values = self.raw_probabilities(cells, dtype)
        self.bar(values, codes, shape)
        return scaled(values)

    def raw_probabilities(self, cells: Cells, dtype: Any = np.float32) -> Chances:
        """The probabilities before structural zeros and scaling, for rows in these cells of the blocks."""
        if not self.factors.any():
            return np.tile(self.base.astype(dtype), (cells.shape[1], 1))
        exponent = self.blocks.looked_up(cells, self.factors, dtype)
        with np.errstate(divide="ignore"):
            exponent += np.log(self.base).astype(dtype)
        exponent -= exponent.max(axis=1, keepdims=True)  # so that no row of small numbers is lost
        return np.exp(exponent, out=exponent)

    def bar(self, values: NDArray[np.floating], codes: Codes, shape: Shape) -> None:
        """Set to zero, in place, the levels that structural zeros forbid."""
        for group, mask in self.barred:
            values[mask[cell_numbers(codes, group, shape)]] = 0.0


def scaled(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Divide each row by its sum, in place; a row of zeros stays."""
    total = row_sums(values)
    lost = (total < LEAST) & (total > 0)  # whose inverse single precision may not hold
    if lost.any():
        values[lost] /= values[lost].max(axis=1, keepdims=True)
        total[lost] = row_sums(values[lost])
    values *= np.divide(1, total, out=np.zeros_like(total), where=total > 0)[:, None]
    return values


def draw_column(
    link: Link,
    chances: NDArray[np.floating],
    codes: Codes,
    cells: Cells,
    rng: np.random.Generator,
    *,
    independent: bool,
    to_goals: bool,
    first: Axes,
    passes: int = PASSES,
) -> Codes:
    """One level per row, drawn from `chances`: independently, or evenly spread and matched to goals.

    These are the link's own goals, or (`to_goals=False`, when a condition has changed what to expect) what the chances
    themselves add up to. `cells` are those of the rows in the link's blocks. `first` are the attributes to spread over when the link has no group of its own.
    """
    ladder = Ladder(chances)
    if independent:
        return ladder.draw(np.arange(len(codes)), rng.random(len(codes)))
    goals = link.goals * link.blocks.counts(cells) if to_goals else link.blocks.sums(cells, chances)
    return even_column(link, ladder.draw, codes, cells, goals, rng, first=first, passes=passes)


def even_column(
    link: Link,
    draw: Draw,
    codes: Codes,
    cells: Cells,
    goals: Floats,
    rng: np.random.Generator,
    *,
    first: Axes,
    passes: int = PASSES,
) -> Codes:
    """One level per row, evenly spread and matched to goals; `draw` gives levels of rows from the heights in their own distributions."""
    leading = (tuple(axis for group in link.groups for axis in group) or first)[:KEYS]
    drawn = draw(np.arange(len(codes)), spread([codes[:, axis] for axis in leading], len(codes), rng))
    return match_goals(drawn, link.blocks, cells, goals, draw, rng, passes=passes) if link.groups else drawn


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
        "factors": _joined([link.factors for link in links], np.float64),
        "goals": _joined([link.goals for link in links], np.float64),
    }


def unpack_links(arrays: Mapping[str, NDArray[Any]], shape: Shape) -> tuple[Link, ...]:
    """The links that `pack_links` laid out; a ValueError where the lengths do not fit."""
    order: list[int] = arrays["order"].tolist()
    if min(order, default=0) < 0:
        raise ValueError("attributes must be numbered from 0 up")
    groups, bars = (groups_by_link(arrays, name, order, shape) for name in ("group", "bar"))
    levels = [shape[attribute] for attribute in order]
    sizes = [tuple(prod(shape[axis] for axis in group) for group in own) for own in groups]
    crossed = [(sum(own), level) for own, level in zip(sizes, levels, strict=True)]
    base = _cut(arrays["base"], [(level,) for level in levels])
    if any(rates.min() < 0 for rates in base):
        raise ValueError("base rates must be 0 or above")
    factors, goals = (_cut(arrays[name], crossed) for name in ("factors", "goals"))
    every_bar = [(group, level) for own, level in zip(bars, levels, strict=True) for group in own]
    shapes = [(prod(shape[axis] for axis in group), level) for group, level in every_bar]
    masks = iter(_cut(arrays["bar_masks"], shapes))
    barred = [tuple((group, next(masks)) for group in own) for own in bars]
    return tuple(map(Link, order, groups, sizes, base, factors, goals, barred))


def groups_by_link(
    arrays: Mapping[str, NDArray[Any]], name: str, order: Sequence[int], shape: Shape
) -> list[tuple[Axes, ...]]:
    """The groups (or bars) of each link, cut out of flat arrays; all of their attributes are drawn before."""
    many, lengths, axes = (arrays[f"{name}{part}"].tolist() for part in ("s", "_sizes", "_axes"))
    if sum(lengths) != len(axes) or min([*lengths, *axes], default=0) < 0:
        raise ValueError(f"{len(axes)} axes where {sum(lengths)} are needed, from 0 up")
    if max(axes, default=0) >= len(shape):
        raise ValueError("axes must be attributes of the schema")
    if sum(many) != len(lengths) or len(many) != len(order):
        raise ValueError("groups are left over, or missing")
    each = (tuple(axes[stop - size : stop]) for stop, size in zip(accumulate(lengths), lengths, strict=True))
    by_link = [tuple(islice(each, count)) for count in many]
    for place, groups in enumerate(by_link):
        if not set(order[:place]).issuperset(axis for group in groups for axis in group):
            raise ValueError("a link must follow from attributes before it")
    return by_link


def _cut(values: NDArray[Any], shapes: Sequence[Shape]) -> list[NDArray[Any]]:
    """Blocks of these shapes, which lie end to end in a flat array."""
    stops = [0, *accumulate(map(prod, shapes))]
    if len(values) != stops[-1]:
        raise ValueError(f"{len(values)} numbers where {stops[-1]} are needed")
    if values.dtype.kind == "f" and not (np.abs(values) < LARGEST).all():
        raise ValueError(f"numbers must be finite, and below {LARGEST:g} in size")
    places = zip(pairwise(stops), shapes, strict=True)
    return [values[start:stop].reshape(shape) for (start, stop), shape in places]


def _integers(values: Any) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([array.ravel() for array in arrays]).astype(dtype) if arrays else np.zeros(0, dtype)


Singles = NDArray[np.float32]

_TABLE = 2**18  # numbers in a table of several groups
ROOM = 2**26  # numbers that the tables of all links would have, did each have as many tables as groups
_BLOCK = 2**17  # numbers of the rows that are worked on at once: they stay in the processor's cache
_BELOW_ONE = 1.0 - 2.0**-20


@dataclass(frozen=True, eq=False)
class _Crossed:
    """Groups crossed: their attributes, and the factor of each combination of levels."""

    axes: Axes
    factor: Singles

    def rows(self, codes: Codes, shape: Shape) -> NDArray[np.intp]:
        """Which row of the tables each coded row uses."""
        row = np.zeros(len(codes), np.intp)
        for axis in self.axes:
            row *= shape[axis]
            row += codes[:, axis]
        return row


class FastLink:
    """One link, laid out for drawing, in tables that fit in some room; it must bar nothing."""

    def __init__(self, link: Link, shape: Shape, room: int = ROOM) -> None:
        self.link, self.shape = link, shape
        self._most = min(_TABLE, room // max(1, len(link.groups)))
        self._width = ceil(sqrt(len(link.base)))
        self._blocks = ceil(len(link.base) / self._width)
        self._crossed = [self._cross(groups) for groups in self._packed()]
        self._base = self._padded(link.base[None])[0]
        self._multiplies = bool(link.factors.any())
        # Levels by blocks: a product with it sums the levels of each block.
        self._sums = np.repeat(np.eye(self._blocks, dtype=np.float32), self._width, axis=0)

    def _packed(self) -> list[list[int]]:
        """Groups, largest first, each with the first others beside which it fits."""
        sizes, padded = self.link.sizes, self._width * self._blocks
        packs: list[tuple[int, list[int]]] = []
        for group in sorted(range(len(sizes)), key=lambda group: -sizes[group]):
            for place, (size, members) in enumerate(packs):
                if size * sizes[group] * padded <= self._most:
                    packs[place] = (size * sizes[group], [*members, group])
                    break
            else:
                packs.append((sizes[group], [group]))
        return [members for _, members in packs]

    def _cross(self, groups: list[int]) -> _Crossed:
        link = self.link
        parts = [slice(link.starts[group], link.starts[group] + link.sizes[group]) for group in groups]
        exponents = reduce(_outer_sum, [link.factors[part] for part in parts])
        # A factor for all levels alike changes no probability; without it none is above one, and no product overflows.
        factor = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        axes = tuple(axis for group in groups for axis in link.groups[group])
        return _Crossed(axes, self._padded(factor))

    def _padded(self, table: Floats) -> Singles:
        """As many levels as the blocks have; those that there are not have no probability."""
        spare = self._width * self._blocks - table.shape[1]
        return np.ascontiguousarray(np.pad(table, ((0, 0), (0, spare))), dtype=np.float32)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """A level for each coded row, independently."""
        return self._drawer(codes)(np.arange(len(codes)), rng.random(len(codes)))

    def draw_even(self, codes: Codes, rng: np.random.Generator, *, first: Axes) -> Codes:
        """Levels that are evenly spread and matched to the link's goals; `first` is as for `draw_column`."""
        link, cells = self.link, self.link.blocks.cells(codes, self.shape)
        goals = link.goals * link.blocks.counts(cells)
        return even_column(link, self._drawer(codes), codes, cells, goals, rng, first=first)

    def _drawer(self, codes: Codes) -> Draw:
        """Levels of some of these coded rows, each at a height between 0 and 1 in its distribution."""
        tables = [crossed.rows(codes, self.shape) for crossed in self._crossed]

        def draw(chosen: Places, heights: Floats) -> Codes:
            levels = np.empty(len(chosen), np.int32)
            step = max(1, _BLOCK // len(self._base))
            for start in range(0, len(chosen), step):
                part = slice(start, min(start + step, len(chosen)))
                rows = [table[chosen[part]] for table in tables]
                levels[part], total = self._search(self._chances(rows, part.stop - start), heights[part])
                if total.min() < LEAST:
                    lost = start + np.flatnonzero(total < LEAST)
                    levels[lost] = self._draw_slowly(codes[chosen[lost]], heights[lost])
            return levels

        return draw

    def _chances(self, rows: list[NDArray[np.intp]], n_rows: int) -> Singles:
        """The probabilities of the levels of each row, up to a factor of that row."""
        chances = np.empty((n_rows, len(self._base)), np.float32)
        chances[:] = self._base
        if self._multiplies:
            other = np.empty_like(chances)
            for crossed, row in zip(self._crossed, rows, strict=True):
                chances *= np.take(crossed.factor, row, axis=0, out=other, mode="clip")
        return chances

    def _search(self, chances: Singles, heights: Floats) -> tuple[Codes, Singles]:
        """The level at a height of each row of chances, and their sum."""
        sums = _cumulative(chances @ self._sums)
        total = sums[-1]
        left = np.minimum(heights, _BELOW_ONE).astype(np.float32) * total
        block = _passed(sums, left)
        if self._width == 1:
            return block, total
        place = np.arange(len(chances)) * self._blocks + block
        inside = _cumulative(chances.reshape(-1, self._width).take(place, axis=0))
        left = np.minimum(left, inside[-1] * np.float32(_BELOW_ONE))
        return block * np.int32(self._width) + _passed(inside, left), total

    def _draw_slowly(self, codes: Codes, heights: Floats) -> Codes:
        """The level at a height, for rows whose chances are too small for products of single precision."""
        chances = self.link.probabilities(codes, self.shape, dtype=np.float64)
        rungs = np.cumsum(chances, axis=1)
        height = np.minimum(heights, _BELOW_ONE) * rungs[:, -1]
        return np.asarray((rungs <= height[:, None]).sum(axis=1), dtype=np.int32)


def _cumulative(parts: Singles) -> Singles:
    """The sums of each row's first numbers, as columns."""
    sums = np.ascontiguousarray(parts.T)
    for place in range(1, len(sums)):
        sums[place] += sums[place - 1]
    return sums


def _passed(sums: Singles, heights: Singles) -> Codes:
    """How many parts, but for the last, lie wholly below each height, which is lowered, in place, by what they sum to."""
    passed, below = np.zeros(len(heights), np.int32), np.zeros(len(heights), np.float32)
    for part in sums[:-1]:
        whole = part <= heights
        passed += whole
        np.copyto(below, part, where=whole)
    heights -= below
    return passed


def _outer_sum(left: Floats, right: Floats) -> Floats:
    """Every row of one table plus every row of the other."""
    return np.asarray((left[:, None] + right[None]).reshape(-1, left.shape[1]))
