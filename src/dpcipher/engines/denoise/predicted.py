"""Tables of one order as the smaller ones predict them, and rebuilt from what shrinkage keeps: many of one shape at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcipher.engines.denoise.interactions import Deviations, Shrinker
from dpcipher.engines.denoise.resolutions import Resolutions
from dpcipher.release.reconcile import Reconciled
from dpcipher.tables.domain import Axes, Floats, zero_cells
from dpcipher.tables.raking import Goal, rake_stack
from dpcipher.tables.table import alike, cells, centre, freedom

ROUNDS = 20

Tables = Mapping[Axes, Floats]
Known = Reconciled | Resolutions


@dataclass(frozen=True)
class Predicted:
    """Tables of one shape as the smaller ones predict them, and what their own counts show beyond that."""

    tables: Floats
    beyond: Deviations


def parts(sets: Iterable[Axes], reconciled: Known) -> Iterator[list[Axes]]:
    """Sets whose tables have one shape, and are exact or noisy together; few enough that the bases of their tables are small."""
    shape = reconciled.shape
    return alike(
        sets,
        lambda axes: (*(shape[axis] for axis in axes), reconciled.interaction_variance(axes) > 0),
        lambda axes: max(cells(axes, shape), sum(shape[axis] ** 2 for axis in axes)),
    )


def predict(
    sets: Sequence[Axes], built: Tables, reconciled: Known, seen: Callable[[Axes], Floats]
) -> Predicted:
    """The tables of one part as the smaller ones, `built`, predict them; `seen` gives the counts to compare them with."""
    tables = _of_largest_entropy(sets, built, reconciled)
    return Predicted(tables, deviations(sets, tables, reconciled, seen))


def deviations(
    sets: Sequence[Axes], start: Floats, reconciled: Known, seen: Callable[[Axes], Floats]
) -> Deviations:
    """What the counts show beyond the prediction, seen by no smaller table, and its noise."""
    counts = np.stack([seen(axes) for axes in sets])
    variance = np.array([reconciled.interaction_variance(axes) for axes in sets])
    return Deviations(sets, centre(counts - start, first=1), variance)


def _of_largest_entropy(sets: Sequence[Axes], built: Tables, reconciled: Known) -> Floats:
    """The tables of largest entropy that have the denoised margins and the structural zeros."""
    tables = np.full(len(sets), reconciled.total)
    for column in zip(*sets, strict=True):
        shares = np.stack([built[(axis,)] for axis in column]) / reconciled.total
        tables = tables[..., None] * shares.reshape(len(sets), *[1] * (tables.ndim - 1), -1)
    if reconciled.domain.zeros:
        tables *= ~np.stack([zero_cells(axes, reconciled.shape, reconciled.domain.zeros) for axes in sets])
    elif len(sets[0]) == 2:
        return tables
    rake_stack(tables, _faces(sets, built))
    return tables


def _faces(sets: Sequence[Axes], built: Tables) -> list[Goal]:
    """The margins of the tables that leave out one attribute."""
    places = combinations(range(len(sets[0])), len(sets[0]) - 1)
    return [
        Goal(kept, np.stack([built[tuple(axes[place] for place in kept)] for axes in sets]))
        for kept in places
    ]


def rebuild(
    predicted: Sequence[Predicted], built: Tables, reconciled: Known, rule: Shrinker
) -> dict[Axes, Floats]:
    """Tables of one order, each between its prediction and its counts; `built` are the smaller ones."""
    one_way = {axis: built[(axis,)] / reconciled.total for axis in range(len(reconciled.shape))}
    kept = rule([part.beyond for part in predicted], one_way, reconciled.total)
    tables: dict[Axes, Floats] = {}
    for part, means in zip(predicted, kept, strict=True):
        sets = part.beyond.sets
        exact = _is_exact(part, reconciled)
        rebuilt = map(reconciled.table, sets) if exact else _rebuilt(part, means, built)
        tables.update(zip(sets, rebuilt, strict=True))
    return tables


def _is_exact(part: Predicted, reconciled: Known) -> bool:
    """Without noise; with a column of one level there is no interaction to be exact: the table is its prediction."""
    return part.beyond.exact and freedom(part.beyond.sets[0], reconciled.shape) > 0


def _rebuilt(part: Predicted, kept: Floats, built: Tables) -> Floats:
    """Prediction plus what is kept, made non-negative, with the denoised margins.

    A cell that is still below zero becomes a trace of its prediction, or a sweep could not restore an emptied row.
    """
    start = part.tables
    noise = np.sqrt(part.beyond.variance).reshape(-1, *[1] * (start.ndim - 1))
    least = np.minimum(1e-2 * start, 1e-3 * noise)
    tables = np.where(start > 0, np.maximum(_lifted(start, start + kept), least), 0.0)
    rake_stack(tables, _faces(part.beyond.sets, built))
    return tables


def _lifted(start: Floats, tables: Floats) -> Floats:
    """Alternating projections take negative cells to zero at the least squared change that leaves the margins alone, which are those of `start`."""
    below = (tables < 0).any(axis=tuple(range(1, tables.ndim)))
    own, lifted = start[below], tables[below]
    held = np.zeros_like(own)
    for _ in range(ROUNDS if below.any() else 0):
        clipped = np.maximum(lifted + held, 0.0)
        held = lifted + held - clipped
        lifted = own + centre(clipped - own, first=1)
    tables[below] = lifted
    return tables
