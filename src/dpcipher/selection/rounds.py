"""The steps of a selection: their shares of the budget, how many tables each is about, and when the second round is held.

    one-way tables ─▶ round of pairs ─▶ tables ─▶ round of triples, where it pays ─▶ tables

A round reads the distances of its candidates from their prediction, or of a shortlist of them. Everything here is decided from the schema,
the budget, the unit and a number of rows that is public or noisy, so that a plan and a run follow the same steps.

Of a shortlist, the public part of its scores and the candidates of each draw are here, too. Two strong pairs of three columns often imply the third. So a
spanning forest of pairs comes first, as in Kruskal's algorithm: the candidates of a draw are the pairs whose columns are in different components of the
pairs chosen so far; once no such pair is left, all remaining pairs. The candidates depend on earlier choices alone, so that k draws cost what k draws
of the exponential mechanism cost (adaptive composition; McKenna, Miklau and Sheldon 2021 choose a spanning tree so).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpcipher.privacy.draws import Chooser
from dpcipher.selection.allocation import GUMBEL, MEAN_SIZE, NoiseModel, one_way_risk
from dpcipher.selection.prediction import Prediction
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes

# Shares of the budget.
TOTAL = Fraction(1, 50)  # the number of rows, where the steps follow from it and it is not public
ROWS = Fraction(3, 50)  # the same where tables are centred, and nothing else tells of it
ONE_WAY = Fraction(1, 20)  # the first measurement of every column, at least
# The same at most; settled on generated networks, as the share of the rows is (benchmarks/results/budget.md).
COLUMNS = Fraction(2, 5)
READING = Fraction(1, 30)  # the distances of all pairs, at most
CHOICE = Fraction(1, 20)  # a shortlist and its distances; twice as much for pairs
LIST = Fraction(3, 4)  # of a round: its shortlist; the rest pays for the distances of what is on it
SECOND = Fraction(1, 5)  # kept for the second round, its own choice included
# Standard deviation of a distance or score, as a fraction of the rows: the largest that is of use, and one below which more budget gains nothing.
GOOD_NOISE, FINE_NOISE = 0.15, 0.02
# The same of a choice: small enough for a list of any length, and the largest for FEW tables per column. At an epsilon of e⁻² such lists lowered the error of pairs by 2 %
# on generated rows of latent classes, where all columns depend on one another, and raised it by 1 % on generated networks.
LIST_NOISE, MAX_NOISE, FEW = 0.1, 0.4, 2
LEAST_PER_COLUMN = 0.125  # tables on a shortlist that is worth its cost
# Mean TVD from noise alone, if all pairs shared the budget, up to which all are measured where their distances cannot be read. On generated networks of 16 to 28 columns
# at an epsilon of e⁻² a shortlist lowered the error of pairs by 5 % and of triples by 6 % where it is between this and twice as much.
MAX_TVD = 0.1
TYPICAL = 0.2  # the distance over rows that a pair is taken to have where nothing is read
# Tables of higher orders, looked at directly: the most of an order, the most that it may cost, the distance over rows that is to be found, by how
# many scales of the choice it is to stand out beyond the logarithm of the candidates, and the share at which a table must be worth measuring.
MAX_SCREENED = 50_000
SCREEN = Fraction(1, 40)
FINDABLE = 0.2
SHOWN = 0.1  # the distance over rows, beyond what smaller tables explain, from which a table that was looked for is measured
MARGIN = 3.0
PAYS = Fraction(1, 10)
GRAIN_OF_SHARES = 2**16
MAX_TRIPLES = 2_000  # candidates of the second round
TRIPLES_PER_COLUMN = 3  # whose distances are read
TRIPLES_TO_PREDICT = 1  # the same where one column is to be predicted
# Noise of a triple over the mean distance of the pairs, up to which the second round is held.
WORTHWHILE = 0.1
STRONG = 0.25  # distance over rows at which the tables of a shortlist are compared


@dataclass(frozen=True)
class Round:
    """How many of the candidates have their distances read, and the shares of the two steps; a shortlist that holds all costs nothing.

    A `blind` round reads nothing and takes all candidates as they are.
    """

    candidates: int
    n_read: int
    list_share: Fraction
    distance_share: Fraction
    blind: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether no candidate is left out."""
        return self.blind or self.n_read == self.candidates

    @property
    def share(self) -> Fraction:
        """What the round costs."""
        return self.list_share + self.distance_share


def pair_round(
    noise: NoiseModel, sizes: Sequence[int], columns: int, rows: float, most: int = 2**31
) -> Round:
    """The round of pairs, of so many cells each.

    All distances are read where that is possible with GOOD_NOISE. Else all pairs are taken unseen where noise alone would leave pairs that share
    the budget equally within MAX_TVD. Else a shortlist is looked at: the longest whose selection noise is below LIST_NOISE, but at least FEW per
    column while it stays below MAX_NOISE. Where that holds too few tables to pay for itself, none: the columns alone are measured. A release can
    list `most` of them.
    """
    pairs = len(sizes)
    if not pairs:
        return Round(0, 0, Fraction(0), Fraction(0))
    if pairs <= most and noise.distance(pairs, float(READING)) <= GOOD_NOISE * rows:
        return Round(pairs, pairs, Fraction(0), reading_share(noise, pairs, rows))
    if pairs <= most and noise.mean_tvd(sizes, rows) < MAX_TVD:
        return Round(pairs, 0, Fraction(0), Fraction(0), blind=True)
    good, short = (shortlist_length(noise, rows, 2 * CHOICE, level) for level in (LIST_NOISE, MAX_NOISE))
    length = min(max(good, min(FEW * columns, short)), pairs, most)
    if length < max(2.0, LEAST_PER_COLUMN * columns):
        return Round(pairs, 0, Fraction(0), Fraction(0))
    return _round(pairs, length, 2 * CHOICE)


def column_share(noise: NoiseModel, shape: Sequence[int], rows: float, pairs: Round) -> Fraction:
    """What the one-way tables get before the round of pairs: ONE_WAY; more where a shortlist is chosen by the distances from what they predict.

    Columns that err by e and f move the distance of their pair by about √(e² + f²): half the noise of the choice is allowed. It costs nothing,
    within COLUMNS: with as much noise as that, the one-way tables would get such a share of the allocation anyway.
    """
    if pairs.takes_all or not pairs.n_read:
        return ONE_WAY
    even = [np.full(levels, rows / levels) for levels in shape]
    share = ONE_WAY
    while share < COLUMNS:
        precision = np.array([noise.precision(float(share) / len(shape))])
        error = 2 * float(np.mean([one_way_risk(counts, precision)[0] for counts in even]))
        if math.sqrt(2) * error <= LIST_NOISE / 2 * rows:
            break
        share += ONE_WAY
    return share


def centres(noise: NoiseModel, *, zeros: bool) -> bool:
    """Whether tables are measured centred, and the number of rows by itself: where that costs less, and no cell is impossible."""
    return noise.is_zcdp and noise.unit.relation == "add-remove" and not zeros


def reading_share(noise: NoiseModel, tables: int, rows: float) -> Fraction:
    """What so many distances are worth: the share at which their noise is FINE_NOISE, within READING."""
    needed = (noise.distance(tables, 1.0) / (FINE_NOISE * rows)) ** (2 if noise.is_zcdp else 1)
    return min(_upward(needed), READING)


def shortlist_length(noise: NoiseModel, rows: float, share: Fraction, level: float = LIST_NOISE) -> int:
    """The length of the longest list whose selection noise is below a level, as a fraction of the rows."""
    single = noise.choice(1, float(LIST * share))
    return int((level * rows / single) ** (2 if noise.is_zcdp else 1))


def screen_round(noise: NoiseModel, candidates: int, columns: int, rows: float) -> Round | None:
    """The round in which tables of a higher order are chosen by their distance, and the distances of the chosen ones are read.

    It costs what its noise asks for: the exponential mechanism should tell a distance of FINDABLE of the rows from candidates that show
    nothing, and the distances are read with an eighth of that. As many tables as SCREEN pays for, at most one per column; None where it
    does not pay for one.
    """
    findable, power = FINDABLE * rows, 2 if noise.is_zcdp else 1
    gap = findable / (math.log(candidates) + MARGIN)
    listing, reading = (
        _upward((single / level) ** power)
        for single, level in ((noise.choice(1, 1.0), GUMBEL * gap), (noise.distance(1, 1.0), findable / 8))
    )
    n_read = min(int(SCREEN / (listing + reading)), columns, candidates)
    listing = n_read * listing if n_read < candidates else Fraction(0)
    return Round(candidates, n_read, listing, n_read * reading) if n_read else None


def _upward(share: float) -> Fraction:
    return Fraction(math.ceil(min(share, 1.0) * GRAIN_OF_SHARES), GRAIN_OF_SHARES)


def screens(noise: NoiseModel, target: SelectionTarget, rows: float) -> list[tuple[list[Axes], Round]]:
    """The looks at larger tables, order by order: the candidates and the round of each that pays."""
    found = []
    for order in _screened_orders(target):
        tables = measurable(noise, target.shape, target.tables(order), rows)
        step = screen_round(noise, len(tables), len(target.shape), rows) if tables else None
        if step is not None:
            found.append((tables, step))
    return found


def _screened_orders(target: SelectionTarget) -> list[int]:
    """The orders of three and more columns with few enough tables to look at all of them."""
    width = len(target.varying)
    orders = range(3, min(target.max_order, width) + 1)
    return [order for order in orders if target.listed or math.comb(width, order) <= MAX_SCREENED]


def measurable(noise: NoiseModel, shape: Sequence[int], tables: Iterable[Axes], rows: float) -> list[Axes]:
    """The tables whose noise, at the share PAYS, leaves less than half of what is findable."""
    deviation = 1 / math.sqrt(noise.precision(float(PAYS)))
    most = FINDABLE * rows / (2 * MEAN_SIZE * deviation)
    return [axes for axes in tables if math.prod(shape[axis] for axis in axes) <= most]


def triple_round(noise: NoiseModel, target: SelectionTarget, candidates: int, rows: float) -> Round:
    """The round of triples: only a few per column, since each improves others too and more would share the budget."""
    per_column = TRIPLES_PER_COLUMN if target.predict is None else TRIPLES_TO_PREDICT
    wanted = min(per_column * len(target.shape), candidates)
    if noise.distance(wanted, float(CHOICE)) > GOOD_NOISE * rows:
        wanted = max(min(wanted, shortlist_length(noise, rows, CHOICE)), 1)
    return _round(candidates, wanted, CHOICE)


def _round(candidates: int, n_read: int, share: Fraction) -> Round:
    listing = LIST * share if n_read < candidates else Fraction(0)
    return Round(candidates, n_read, listing, share - listing)


def worthwhile_distance(noise: NoiseModel, target: SelectionTarget, share: float) -> float:
    """The mean distance of pairs, as a TVD in rows, from which the second round is held; `share` is what a pair would get.

    There the noise of a triple of columns of median size is the fraction WORTHWHILE of what the pairs show. It is always held where a
    column is to be predicted: how two others tell of it together does not show in how they tell of it apart.
    """
    if target.predict is not None:
        return 0.0
    levels = float(np.median([size for size in target.shape if size > 1]))
    return noise.triple_error(levels, share) / WORTHWHILE


def candidate_triples(
    target: SelectionTarget, pairs: Sequence[Axes], distance: Mapping[Axes, float]
) -> list[Axes]:
    """Triples of the target whose three pairs are among `pairs`, those with the largest distances first.

    Of triples with a column to predict, the two pairs that hold it are enough.
    """
    known, after = set(pairs), dict[int, list[int]]()
    for left, right in pairs:
        after.setdefault(left, []).append(right)
    triples: Iterable[Axes] = ((a, b, c) for a, b in pairs for c in after.get(b, []) if (a, c) in known)
    if target.predict is not None:
        others = sorted(
            {axis for pair in pairs if target.predict in pair for axis in pair} - {target.predict}
        )
        triples = {tuple(sorted((target.predict, *two))) for two in combinations(others, 2)}
    ranked = sorted(
        (axes for axes in triples if target.is_candidate(axes)),
        key=lambda axes: (-sum(distance.get(pair, 0.0) for pair in combinations(axes, 2)), axes),
    )
    return ranked[:MAX_TRIPLES]


def n_cells(shape: Sequence[int], tables: Sequence[Axes]) -> list[int]:
    """The cells of each table."""
    return [math.prod(shape[axis] for axis in axes) for axes in tables]


def weights_256(target: SelectionTarget, tables: Sequence[Axes]) -> NDArray[np.int64]:
    """The importance of each table relative to the largest, in 256ths: at most 1."""
    importance = np.array([target.importance(axes) for axes in tables])
    return np.asarray(np.round(importance / importance.max() * 256), dtype=np.int64)


def penalties(
    prediction: Prediction, tables: Sequence[Axes], precision: float, known: Callable[[Axes], float]
) -> NDArray[np.int64]:
    """What is taken off each distance: what is `known` without the table, and the error that noise would leave if it were measured."""
    strong, noise = STRONG * prediction.total, np.array([precision])
    left = (2 * float(prediction.risk(axes, strong)(noise)[0]) for axes in tables)
    return np.array(
        [round(error + known(axes)) for error, axes in zip(left, tables, strict=True)], dtype=np.int64
    )


def explained(distance: Mapping[Axes, float], axes: Axes) -> float:
    """The distances of the smaller tables inside a table, added up: without an interaction of its own it hardly shows more.

    >>> explained({(0, 1): 5.0, (1, 2): 3.0, (2, 3): 9.0}, (0, 1, 2))
    8.0
    """
    parts = (part for k in range(2, len(axes)) for part in combinations(axes, k))
    return math.fsum(distance.get(part, 0.0) for part in parts)


class SpanningFirst:
    """Chooses pairs: a spanning forest, then from the others."""

    def __init__(self, pairs: Sequence[Axes]) -> None:
        self.pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def __call__(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """The positions of `k` pairs, in the order chosen."""
        component = np.arange(int(self.pairs.max()) + 1)
        picked: list[int] = []
        while len(picked) < k:
            joining = np.flatnonzero(component[self.pairs[:, 0]] != component[self.pairs[:, 1]])
            if not joining.size:
                break
            place = int(joining[chooser.choose(scores[joining], scale)])
            picked.append(place)
            left, right = component[self.pairs[place]]
            component[component == right] = left
        others = np.setdiff1d(np.arange(len(self.pairs)), picked)
        rest = chooser.choose_many(scores[others], scale, k - len(picked)) if len(picked) < k else []
        return [*picked, *(int(others[place]) for place in rest)]
