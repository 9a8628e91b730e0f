"""A source that simulates: a session with it takes the steps of a run, up to where answers decide what is asked. Nothing is read.

Tables that are planned are answered by what is expected of them, without noise. What finding levels and bins takes is planned by itself. Searches for bins are rehearsed with made-up noise, of the size that it will
have, on made-up rows that are even, bell-shaped, skewed or of few values, between the declared ends of each column; an open end is taken to lie a public
distance from the other, or from zero. That noise has a seed, so that the same plan says the same.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import fmean
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpcipher.errors import NotPrivate, Progress
from dpcipher.privacy.budget import Moved, noise_within
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Privacy
from dpcipher.release.reconcile import Reconciled
from dpcipher.request.request import (
    Request,
    after_levels,
    coarse_share,
    discovery_share,
    finding_share,
    selection_for,
)
from dpcipher.request.session import Answer, Choice, Decision, Question, Recoding, Session, Source
from dpcipher.schema.cut import AUTO
from dpcipher.schema.open_bins import OpenBins
from dpcipher.schema.open_levels import OpenLevels
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import GUMBEL, NoiseModel
from dpcipher.selection.edges import bin_risk, clear_of_noise, planned_tables
from dpcipher.selection.find import find
from dpcipher.selection.prediction import Prediction
from dpcipher.selection.search import Search, level_share, open_searches
from dpcipher.tables.domain import Axes, Floats, Shape
from dpcipher.tables.measurement import Noise

USUALLY = 0.95
TEXTS = 256  # that rows are taken to hold: the second is half as frequent as the first, the third a third, and so on
WIDTH, DAYS = (
    1_000.0,
    40 * 365.0,
)  # of the rows where an end is open: the floating-point grid is alike at every size
_VALUES = np.array([0.0, 0.05, 0.1, 0.15, 0.25, 0.5, 0.9])  # few values, and the rows up to each
_UP_TO = np.array([0.0, 0.5, 0.7, 0.8, 0.88, 0.94, 0.98, 1.0])

Spread = Callable[[Floats], Floats]  # the fraction of the rows below each place from 0 to 1
SHAPES: Mapping[str, Spread] = {
    "even": lambda places: places,
    "bell-shaped": lambda places: ndtr(8 * places - 4),
    "skewed": lambda places: ndtr(np.log(np.maximum(places, 1e-12)) + 3.5),  # as incomes: the median at 3 %
    "of few values": lambda places: _UP_TO[np.searchsorted(_VALUES, places)],
}


@dataclass(frozen=True)
class BinPlan:
    """The search for the bins of one open column.

    At most `share` of the budget is spent, over at most `levels` levels, each with noise of standard deviation `sd` on the count of an interval. At most
    `most` bins are found, and an interval is cut where its noisy count is above `rows_to_cut`. `found` has the bins that a rehearsal found of rows that are even,
    bell-shaped, skewed or of few values, and `expected` their mean: these need a number of rows. Coarse counts of the bins then take `coarse`. A range that is
    to be found stands out of the noise from `rows_to_find` rows on; None where it is declared.
    """

    column: str
    share: Fraction
    levels: int
    sd: float
    most: int
    expected: int | None
    rows_to_cut: int | None
    is_unbounded: bool
    coarse: Fraction = Fraction(0)
    found: Mapping[str, int] = field(default_factory=dict)
    rows_to_find: int | None = None


@dataclass(frozen=True)
class LevelPlan:
    """What finding levels takes of the budget, and what it finds: a text of `half` rows every other time, of `usually` rows 19 times out of 20.

    No more than `most` texts of a column can have so many rows, and `expected` of them do where the k-th text is a k-th as frequent as the first: these need a
    number of rows.
    """

    columns: tuple[str, ...]
    share: Fraction
    delta: Fraction
    threshold: int
    half: int
    usually: int
    most: int | None = None
    expected: int | None = None


class Undecided(Exception):
    """A plan ends here: answers decide what a run asks next."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


class SimulatedRows(Source):
    """What is expected of rows, instead of rows; and what was asked of them, in order, each with the standard deviation of its noise."""

    by = "nobody: simulated"

    def __init__(self, schema: Schema, n_rows: int, cells: Mapping[int, Floats] | None = None) -> None:
        self.shape: Shape = schema.shape
        self.n_rows = n_rows
        self.rng = np.random.default_rng(1)
        self.asked: list[tuple[Question | Choice, float]] = []
        self._schema, self._cells = schema, cells

    def cells(self, axis: int) -> Floats:
        """The made-up rows in the cells of a column's grid."""
        assert self._cells is not None
        return self._cells[axis]

    def cost(self, noise: Noise, moved: Moved) -> float:
        """Nobody is protected, and nothing is spent."""
        return math.inf

    def choice_cost(self, scale: float, sensitivity: int, *, zcdp: bool, k: int) -> float:
        """Nobody is protected, and nothing is spent."""
        return math.inf

    def answer(self, question: Question, noise: Noise) -> Answer:
        """What is expected; where a search is rehearsed with made-up noise."""
        self.asked.append((question, math.sqrt(noise.variance)))
        answer = question.expected(self)
        if self._cells is None:
            return answer
        draw = self.rng.laplace if noise.kind == "laplace" else self.rng.normal
        return np.asarray(answer + draw(scale=noise.scale, size=answer.shape))

    def answers(
        self, questions: Sequence[Question], noises: Sequence[Noise], progress: Progress
    ) -> Sequence[Answer]:
        """What is expected of each."""
        return list(map(self.answer, questions, noises))

    def choose(self, choice: Choice, scale: float, k: int) -> list[int]:
        """Candidates from all over the list."""
        self.asked.append((choice, GUMBEL * scale))
        return [int(place) for place in np.linspace(0, choice.n_candidates - 1, k)]

    def named_texts(self, axis: int, chosen: PartitionSelection, most: int) -> tuple[str, ...]:
        """Names for as many as there may be."""
        column = self._schema.columns[axis]
        assert isinstance(column, OpenLevels)
        return column.largest[:most]

    def draw_rows(
        self, axes: Axes, prior: Fraction, n_rows: int, possible: NDArray[np.bool_] | None
    ) -> NoReturn:
        """Never: nothing that draws rows is planned."""
        raise NotPrivate("rows are drawn from private rows, and not from a plan; call fit")

    def recode(self, old: Schema, new: Schema, codes: Recoding) -> None:
        """The columns of the new schema."""
        self._schema, self.shape = new, new.shape

    def decide(self, decision: Decision) -> NoReturn:
        """End the plan."""
        raise Undecided(decision)

    def statement(self, privacy: Privacy, n_rows: int | None, certificate: Mapping[str, Any]) -> NoReturn:
        """Never: what is simulated is no release."""
        raise NotPrivate("what a plan simulates cannot be released; call measure")


def evenly(reconciled: Reconciled) -> Prediction:
    """Every table of rows that are spread evenly, as simulated ones are."""
    shape, total = reconciled.shape, reconciled.total

    def predict(axes: Axes) -> Floats:
        sizes = [shape[axis] for axis in axes]
        return np.broadcast_to(total / math.prod(sizes), sizes)

    return Prediction(total, predict)


def rehearse_finding(request: Request, n_rows: int) -> dict[str, dict[str, int]]:
    """The bins that are found of every column, by the shape of its rows: all columns have the same shape at a time."""
    schema, found = request.schema, dict[str, dict[str, int]]()
    for name, spread in SHAPES.items():
        searches = open_searches(schema, request.privacy.unit, zcdp=True)
        cells = {search.axis: _made_up(search, spread, n_rows) for search in searches}
        session = Session(schema, request.privacy, SimulatedRows(schema, n_rows, cells))
        find(session, planned_tables(request), sets=request.sets)
        for column, bins in session.remarks["bins"]["found"].items():
            found.setdefault(column, {})[name] = bins
    return found


def plan_finding(
    request: Request, n_rows: int | None
) -> tuple[LevelPlan | None, tuple[BinPlan, ...], Request]:
    """What finding levels and bins takes, and the same request of a schema in which as many are found as are expected.

    They are the most there can be where no number of rows was given; bins are at least those between declared edges.
    """
    levels = _plan_levels(request.schema, request.privacy, n_rows)
    if levels is not None and levels.expected is not None:
        texts = [column for column in request.schema.columns if isinstance(column, OpenLevels)]
        most = {column.name: min(levels.expected, column.most) for column in texts}
        request = request.on(_with_limits(request.schema, "max_levels", most))
    bins, schema = _plan_bins(request, n_rows), request.schema
    forced = {column.name: column.forced for column in schema.columns if isinstance(column, OpenBins)}
    most = {bin.column: max(bin.expected, len(forced[bin.column]) + 1) for bin in bins if bin.expected}
    return levels, bins, request.on(_with_limits(schema, "max_bins", most))


def _with_limits(schema: Schema, name: str, limits: Mapping[str, int]) -> Schema:
    """A schema in which some columns have a limit of this name."""
    changed: dict[str, Any] = {column: {name: limit} for column, limit in limits.items()}
    columns = (replace(column, **changed.get(column.name, {})) for column in schema.columns)
    return replace(schema, columns=tuple(columns))


def _made_up(search: Search, spread: Spread, n_rows: int) -> Floats:
    """Rows of a shape in the cells of the grid."""
    points = search.points.astype(float)
    low, high = _ends(search, points)
    below = spread(np.clip((points - low) / (high - low), 0.0, 1.0))
    below[0], below[-1] = 0.0, 1.0
    return np.diff(np.rint(n_rows * below))


def _ends(search: Search, points: Floats) -> tuple[float, float]:
    """Between which ends the rows lie: declared ones, and in place of an open one a distance from the other or from zero."""
    first, last = float(points[0]), float(points[-1])
    if not search.is_unbounded:
        return first, last
    width = DAYS if search.column.kind == "date" else WIDTH
    if search.column.min != AUTO:
        return first, min(first + width, last)
    return (0.0, width) if search.column.max == AUTO else (max(last - width, first), last)


def _plan_bins(request: Request, n_rows: int | None) -> tuple[BinPlan, ...]:
    """The searches for all open columns; none of a closed schema."""
    schema, privacy = request.schema, request.privacy
    if not finding_share(schema):
        return ()
    tables = planned_tables(request)
    whole, rest = after_levels(privacy.budget, schema).composable(), 1 - discovery_share(schema)
    searches = open_searches(schema, privacy.unit, zcdp=whole.rho is not None)
    each, coarse = level_share(searches, schema), coarse_share(schema)
    noise = NoiseModel(whole.share(1 - finding_share(schema) - coarse), privacy.unit)
    found = {} if n_rows is None else rehearse_finding(request, n_rows)
    unbounded = [search.first_shares for search in searches if search.is_unbounded]
    # Ranges that are to be found begin together.
    begun = Fraction(sum(unbounded), len(unbounded)) if unbounded else Fraction(1)
    first, later = (noise_within(whole, share, privacy.unit) for share in (each * begun, each))
    plans = []
    for search in searches:
        sd, bins = math.sqrt(search.settled(later.variance)), found.get(search.column.name, {})
        clear = clear_of_noise(search.most, laplace=not noise.is_zcdp) * sd
        cut = None
        if n_rows is not None:
            risk = bin_risk(schema, search.axis, noise, float(n_rows), tables)
            cut = round(risk.price(search.most) + clear)
        plans.append(
            BinPlan(
                search.column.name,
                each * search.shares * rest,
                search.levels,
                sd,
                search.most,
                round(fmean(bins.values())) if bins else None,
                cut,
                search.is_unbounded,
                coarse / len(searches) * rest,
                bins,
                search.rows_to_find_at(first.variance) if search.is_unbounded else None,
            )
        )
    return tuple(plans)


def _plan_levels(schema: Schema, privacy: Privacy, n_rows: int | None) -> LevelPlan | None:
    """What a release with this budget would find; None where the schema leaves no levels open. Refused as `measure` would."""
    chosen = selection_for(schema, privacy)
    if chosen is None:
        return None
    names = tuple(column.name for column in schema.columns if column.discovers)
    return LevelPlan(
        columns=names,
        share=discovery_share(schema),
        delta=chosen.delta * len(names),
        threshold=chosen.threshold,
        half=chosen.found_at(0.5),
        usually=chosen.found_at(USUALLY),
        most=None if n_rows is None else max(1, n_rows // max(chosen.threshold, 1)),
        expected=None if n_rows is None else _expected(n_rows, chosen.threshold),
    )


def _expected(n_rows: int, threshold: int) -> int:
    """The texts that reach the threshold where the k-th of `TEXTS` is a k-th as frequent as the first; at least one is foreseen.

    >>> _expected(6_000, 100)  # the first has a sixth of the rows
    9
    """
    first = n_rows / math.fsum(1 / k for k in range(1, TEXTS + 1))
    return max(1, min(TEXTS, math.floor(first / max(threshold, 1))))
