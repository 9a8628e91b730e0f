"""The steps of a selection: their shares of the budget, how many tables each is about, and when the second round is held.

    one-way tables ─▶ round of pairs ─▶ tables ─▶ round of triples, where it pays ─▶ tables

A round reads the distances of its candidates from their prediction, or of a shortlist of them. Everything here is decided from the schema,
the budget, the unit and a number of rows that is public or noisy, so that a plan and a run follow the same steps.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpcipher.marginals.arrays import Axes
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.target import SelectionTarget

# Shares of the budget.
ONE_WAY = Fraction(1, 20)  # the first measurement of every column
CHOICE = Fraction(1, 20)  # a round; twice as much for pairs that need a shortlist
LIST = Fraction(
    3, 4
)  # of a round with a shortlist: the shortlist; the rest pays for the distances of its tables
SECOND = Fraction(1, 5)  # kept for the second round, its own choice included
# Standard deviation of a distance or score, as a fraction of the rows: small enough for any list, and the largest for a short one.
GOOD_NOISE, MAX_NOISE = 0.1, 0.4
FEW = 2  # tables per column on a shortlist whose noise is between the two
# Mean TVD from noise alone, if all pairs shared the budget, from which on a shortlist is taken. A rough line: in single runs on eight
# tables, reading all was better below about .1 and a shortlist above about .3; between them it went either way.
MAX_TVD = 0.2
MAX_TRIPLES = 2_000  # candidates of the second round
TRIPLES_PER_COLUMN = 3  # whose distances are read
WORTHWHILE = (
    0.1  # noise of a triple over the mean distance of the pairs, up to which the second round is held
)


@dataclass(frozen=True)
class Round:
    """How many of the candidates have their distances read, and the shares of the two steps; a shortlist that holds all costs nothing."""

    candidates: int
    n_read: int
    list_share: Fraction
    distance_share: Fraction

    @property
    def share(self) -> Fraction:
        """What the round costs."""
        return self.list_share + self.distance_share


def pair_round(noise: NoiseModel, sizes: Sequence[int], columns: int, rows: float) -> Round:
    """The round of pairs, of so many cells each.

    All distances are read where noise alone would leave pairs that share the budget equally within MAX_TVD, or where they are read with
    GOOD_NOISE; otherwise those of a shortlist, unless that would hold most pairs.
    """
    pairs = len(sizes)
    if not pairs or noise.mean_tvd(sizes, rows) < MAX_TVD:
        return _round(pairs, pairs, CHOICE)
    n_read = shortlist_size(noise, pairs, pairs, columns, rows, 2 * CHOICE)
    return _round(pairs, n_read, CHOICE if n_read == pairs else 2 * CHOICE)


def triple_round(noise: NoiseModel, candidates: int, columns: int, rows: float) -> Round:
    """The round of triples: only a few per column, since each improves others too and more would share the budget."""
    wanted = min(TRIPLES_PER_COLUMN * columns, candidates)
    return _round(candidates, shortlist_size(noise, wanted, candidates, columns, rows, CHOICE), CHOICE)


def shortlist_size(
    noise: NoiseModel, wanted: int, candidates: int, columns: int, rows: float, share: Fraction
) -> int:
    """How many of the `wanted` tables have their distances read: all, where that has GOOD_NOISE.

    Otherwise the longest list whose selection noise is below GOOD_NOISE, but at least FEW per column while it stays below MAX_NOISE.
    """
    if noise.distance(wanted, float(CHOICE)) <= GOOD_NOISE * rows:
        return wanted
    single = noise.choice(1, float(LIST * share))
    good, most = ((level * rows / single) ** (2 if noise.is_zcdp else 1) for level in (GOOD_NOISE, MAX_NOISE))
    length = max(int(good), min(FEW * columns, int(most)), 1)
    return wanted if 2 * length > candidates else min(length, wanted)


def _round(candidates: int, n_read: int, share: Fraction) -> Round:
    listing = LIST * share if n_read < candidates else Fraction(0)
    return Round(candidates, n_read, listing, share - listing)


def allows_triples(target: SelectionTarget, *, sets: int, zeros: bool) -> bool:
    """Whether a second round is possible: one set, no structural zeros, and a target of three columns."""
    return sets == 1 and not zeros and target.max_order >= 3


def worthwhile_distance(noise: NoiseModel, shape: Sequence[int], share: float) -> float:
    """The mean distance of pairs, as a TVD in rows, from which the second round is held; `share` is what a pair would get.

    There the noise of a triple of columns of median size is the fraction WORTHWHILE of what the pairs show.
    """
    levels = float(np.median([size for size in shape if size > 1]))
    return noise.triple_error(levels, share) / WORTHWHILE


def candidate_triples(
    target: SelectionTarget, pairs: Sequence[Axes], distance: Mapping[Axes, float]
) -> list[Axes]:
    """Triples of the target whose three pairs are among `pairs`, those with the largest distances first."""
    known, after = set(pairs), dict[int, list[int]]()
    for left, right in pairs:
        after.setdefault(left, []).append(right)
    triples: Iterator[Axes] = ((a, b, c) for a, b in pairs for c in after.get(b, []) if (a, c) in known)
    ranked = sorted(
        (axes for axes in triples if target.is_candidate(axes)),
        key=lambda axes: (-sum(distance[pair] for pair in combinations(axes, 2)), axes),
    )
    return ranked[:MAX_TRIPLES]


def n_cells(shape: Sequence[int], tables: Sequence[Axes]) -> list[int]:
    """The cells of each table."""
    return [math.prod(shape[axis] for axis in axes) for axes in tables]
