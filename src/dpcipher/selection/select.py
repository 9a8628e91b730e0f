"""Choose the tables to measure with part of the budget, and measure them with the rest.

The steps, each an exact share of one charge (`selection.rounds`):

    small table: number of rows ─▶ design ─▶ tables
    else: number of rows, where tables are centred ─▶ one-way tables ─▶ look at pairs ─▶ at larger tables ─▶ allocation ─▶ tables ─▶ once more for triples, where that pays

A look reads distances: of all candidates, or of a shortlist that the exponential mechanism chooses. The distance of a table is
Σ|count − prediction|, from a prediction made without it. It is read with noise, and everything after that is post-processing: the allocation
(`selection.allocation`) decides which tables are measured, and with which share.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import Progress, silent
from dpcipher.privacy.draws import Chooser
from dpcipher.privacy.events import Sensitivity
from dpcipher.privacy.terms import Unit
from dpcipher.release.reconcile import Reconciled, reconcile
from dpcipher.request.request import PARTS, Auto, most_pairs
from dpcipher.request.session import Choice, Decision, Expected, Question, Session, TrueCounts
from dpcipher.schema.schema import Schema
from dpcipher.selection import rounds
from dpcipher.selection.allocation import NoiseModel, Risk, allocate_shares, one_way_risk
from dpcipher.selection.design import design_tables, tables_without_scoring
from dpcipher.selection.prediction import GRAIN, Prediction, fitted, independent, posterior_distances
from dpcipher.selection.target import SelectionTarget, fitting, fitting_orders, one_way_tables
from dpcipher.tables.domain import Axes, Counts, Floats, Shape
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

Goal = Callable[[Axes], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Distances(Question):
    """Σ|count − goal| of each table, in whole rows, from goals in sixteenths that are public; as are the tables.

    One row more or less changes one count of a table by one, so 16·Σ|count − goal| by at most 16, and its floored sixteenth by at most 1. One
    person changes the distance of every table by at most `unit.l1`: max_rows rows under add-remove, twice that under replacement. A list of k
    distances moves by at most k·l1 in L1 and √k·l1 in L2, whatever the order of the tables.
    """

    tables: Sequence[Axes]
    goal: Goal
    candidates: int  # of which these are all, or a shortlist

    def words(self, schema: Schema) -> str:
        """How many there are."""
        return f"distances of {len(self.tables)} tables"

    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """See the proof above: squares add up over the tables."""
        return Sensitivity(len(self.tables) * unit.l1, len(self.tables) * unit.l1**2)

    def of(self, counts: TrueCounts) -> Counts:
        """Goals are made one at a time: all of them at once may not fit into memory."""
        pairs = zip(self.tables, counts.many(self.tables), strict=True)
        exact = [int(np.abs(GRAIN * table - self.goal(axes)).sum()) // GRAIN for axes, table in pairs]
        return np.array(exact, dtype=np.int64)

    def expected(self, rows: Expected) -> Floats:
        """The distance that a pair is taken to have where nothing is read."""
        return np.full(len(self.tables), rounds.TYPICAL * rows.n_rows)


@dataclass(frozen=True, eq=False)
class Scores(Choice):
    """Distances less public penalties, times a public weight of at most 1, floored: no score moves further than a distance, which is `unit.l1`.

    Of pairs, those that join two components of columns go first.
    """

    distances: Distances
    penalty: Callable[[], NDArray[np.int64]]  # only what is asked of rows is worked out
    weight_256: NDArray[np.int64]
    n_chosen: int

    def words(self, schema: Schema) -> str:
        """How many are chosen of how many."""
        return f"{self.n_chosen} of {self.n_candidates} tables to look at"

    @property
    def n_candidates(self) -> int:
        """A table each."""
        return len(self.distances.tables)

    def sensitivity(self, unit: Unit) -> int:
        """That of one distance."""
        return unit.l1

    def of(self, counts: TrueCounts) -> NDArray[np.int64]:
        """In whole rows."""
        return np.asarray((self.distances.of(counts) - self.penalty()) * self.weight_256 // 256)

    def rounds(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """A spanning forest of pairs first, then the others."""
        if len(self.distances.tables[0]) == 2:
            return rounds.SpanningFirst(self.distances.tables)(chooser, scores, scale, k)
        return super().rounds(chooser, scores, scale, k)


def select(
    session: Session,
    auto: Auto,
    *,
    sets: int = 1,
    progress: Progress = silent,
    predict: Callable[[Reconciled], Prediction | None] = independent,
) -> list[Measurement]:
    """Choose tables and measure them, with all that is left of the charge of `session`; its remark "selection" says how they were chosen.

    With several `sets` the choice is made once, and every set measures the same tables, with an equal share. A plan, in which columns are even, can
    `predict` tables without denoising them.
    """
    return _Selection(session, SelectionTarget.of(auto, session.schema), sets, progress, predict).run()


@dataclass
class _Selection:
    """One run: the noisy answers so far, and the risk of every table whose distance was read."""

    session: Session
    target: SelectionTarget
    sets: int
    progress: Progress = silent
    predict: Callable[[Reconciled], Prediction | None] = independent
    tables: list[Measurement] = field(default_factory=list)
    precision: dict[Axes, float] = field(default_factory=dict)
    distance: dict[Axes, float] = field(default_factory=dict)
    risks: dict[Axes, Risk] = field(default_factory=dict)
    rows: float | None = None
    spent: Fraction = Fraction(0)
    centred: bool = False

    def __post_init__(self) -> None:
        self.shape, self.zeros = self.session.schema.shape, self.session.schema.zero_masks
        self.noise = NoiseModel(self.session.part(Fraction(1)), self.session.unit, self.sets)
        self.note: dict[str, Any] = {"rounds": 0, "candidates": 0, "shortlist": 0}

    def run(self) -> list[Measurement]:
        """All steps."""
        if not self._small():
            self._large()
        self.note["share"] = str(self.session.of_charge(self.spent))
        self.note["tables"] = len({table.query.axes for table in self.tables})
        if self.target.predict is not None:
            self.note["predict"] = self.session.schema.attrs[self.target.predict]
        self.session.remarks["selection"] = self.note
        return self.tables

    def _small(self) -> bool:
        """Measure a small table by a design that follows from the number of rows, public or noisy; False where looking first promises more."""
        if not self.target.is_small:
            return False
        orders = fitting_orders(self.target, self.session.schema.domain)
        shares = design_tables(self.target, self.noise, self._rows(), orders, mixed=not self.zeros)
        if shares is None:
            return False
        self.note["candidates"] = sum(math.comb(len(self.target.varying), k) for k in orders)
        self._spend_on(shares)
        return True

    def _rows(self) -> float:
        """The number of rows, asked for once; where it is noisy, at least what its noise could hide."""
        if self.rows is None and self.session.n_rows is not None:
            self.rows = max(float(self.session.n_rows), 1.0)
        if self.rows is None:
            self.progress("asking for the number of rows")
            self.spent += rounds.TOTAL
            counted = self.session.count_rows(rounds.TOTAL)
            self.rows = max(float(counted.values), math.sqrt(counted.noise.variance) / 2, 1.0)
        return self.rows

    def _large(self) -> None:
        """One-way tables first, and from them what the others are worth. Under pure epsilon they come only where something is looked at then."""
        one_way, pairs = one_way_tables(self.shape), list(self.target.tables(2))
        if not pairs:
            self._spend_on(dict.fromkeys(one_way, 1.0))
            return
        if not self.noise.is_zcdp and self._measured_without_scoring(pairs, self._rows()):
            return
        if rounds.centres(self.noise, zeros=bool(self.zeros)):
            self.progress("measuring the number of rows")
            self._count_rows()
        self.progress("measuring one-way tables")
        share = rounds.ONE_WAY if self.noise.is_zcdp else self._column_share(pairs, self._rows())
        prediction = self._measure_columns(one_way, share)
        if prediction is None:
            self._spend_on(dict.fromkeys(one_way, 1.0))
        elif not self._measured_without_scoring(pairs, prediction.total):
            if self.noise.is_zcdp and (more := self._column_share(pairs, prediction.total) - share) > 0:
                prediction = self._measure_columns(one_way, more) or prediction
            self._rounds(prediction, one_way, pairs)

    def _count_rows(self) -> None:
        """Measure the number of rows by itself, where it is not public, once for each set; tables are centred from here on, and a release says so.

        A table of K cells is then asked for K·count less the number of rows, so that rows are counted once and not by every table: the same noise on counts
        less their mean costs 1 - 1/K of what it costs on counts, half in two cells, two thirds in three. Only where one row more or less is protected, by
        Gaussian noise (`rounds.centres`): a row that is replaced moves a centred table as far as its counts.
        """
        for number in range(self.sets):
            if self.session.n_rows is None:
                self.session.kept.append(self.session.count_rows(rounds.ROWS / self.sets, set=number))
            else:
                exact = np.asarray(self.session.n_rows)
                self.session.kept.append(Measurement(Query(()), exact, Noise("none", 0.0), number))
        self.centred = True

    def _measure_columns(self, one_way: list[Axes], share: Fraction) -> Prediction | None:
        """Spend a share on the columns, and predict all tables from them; None where the noisy total is not positive."""
        self._spend_on(dict.fromkeys(one_way, 1.0), keep=self.session.left - share)
        return self.predict(self._reconciled())

    def _column_share(self, pairs: list[Axes], rows: float) -> Fraction:
        return rounds.column_share(self.noise, self.shape, rows, self._first_round(pairs, rows))

    def _first_round(self, pairs: list[Axes], rows: float) -> rounds.Round:
        sizes, most = rounds.n_cells(self.shape, pairs), most_pairs(self.session.schema, self.sets)
        return rounds.pair_round(self.noise, sizes, len(self.shape), rows, most)

    def _measured_without_scoring(self, pairs: list[Axes], rows: float) -> bool:
        """Measure columns, or all pairs, with all that is left, where nothing can be told apart; False where something can."""
        shares = tables_without_scoring(self.target, self.noise, rows, self._first_round(pairs, rows))
        if shares is None:
            return False
        self.note["candidates"] += len(pairs)
        self._spend_on(shares)
        return True

    def _rounds(self, prediction: Prediction, one_way: list[Axes], pairs: list[Axes]) -> None:
        step = self._first_round(pairs, prediction.total)
        if step.blind:  # distances are not read: all pairs are alike
            self.note["candidates"] += len(pairs)
        chosen = pairs if step.blind else self._read(prediction, pairs, step)
        screened = self._screen(prediction) if step.takes_all else []
        second = self._second_from(chosen)
        self.session.decide(Decision(self.note["candidates"], second))
        for axes in one_way:
            self.risks[axes] = partial(one_way_risk, prediction.predict(axes))
        self._judge(prediction, [*chosen, *screened])
        screened = fitting(self.session.schema.domain, [*one_way, *chosen], screened)
        kept = rounds.SECOND if second is not None and self._shows(chosen, second) else Fraction(0)
        shares = self._allocate([*one_way, *chosen, *screened], self.session.left - kept)
        self._spend_on(shares, keep=kept)
        if kept:
            self._second(one_way, [axes for axes in [*chosen, *screened] if shares[axes]])

    def _judge(self, prediction: Prediction, tables: list[Axes]) -> None:
        """What each table is worth, by its distance."""
        for axes in tables:
            distance = self.distance.get(axes, rounds.TYPICAL * prediction.total)
            self.risks[axes] = prediction.risk(axes, distance)

    def _screen(self, prediction: Prediction) -> list[Axes]:
        """Tables of three and more columns that show more than the smaller tables inside them: chosen by that, then read."""
        found: list[Axes] = []
        for tables, step in rounds.screens(self.noise, self.target, prediction.total):
            found += self._read(prediction, tables, step, partial(rounds.explained, self.distance))
        return [axes for axes in found if self.distance[axes] >= rounds.SHOWN * prediction.total]

    def _second_from(self, pairs: list[Axes]) -> float | None:
        """The mean distance of pairs, in rows, from which triples can be measured well, in a second round; None where there is none."""
        wanted = self._wanted(pairs)
        if self.target.max_order < 3 or not wanted or any(axes not in self.distance for axes in pairs):
            return None
        return rounds.worthwhile_distance(self.noise, self.target, float(self.session.left) / len(wanted))

    def _shows(self, pairs: list[Axes], needed: float) -> bool:
        """Whether the pairs are so far from their predictions, and have triples."""
        mean = float(np.mean([self.distance[axes] for axes in self._wanted(pairs)])) / 2
        return needed <= mean and bool(rounds.candidate_triples(self.target, pairs, self.distance))

    def _wanted(self, pairs: list[Axes]) -> list[Axes]:
        return [axes for axes in pairs if self.target.predict in (None, *axes)]

    def _second(self, one_way: list[Axes], measured: list[Axes]) -> None:
        """Read the distances of triples from a fit of all measured tables; the allocation covers triples and earlier tables together."""
        self.progress("fitting what was measured so far")
        prediction, chosen = fitted(self._reconciled(), self.target.predict), list[Axes]()
        pairs = [axes for axes in measured if len(axes) == 2]
        triples = rounds.candidate_triples(self.target, pairs, self.distance)
        triples = [axes for axes in triples if axes not in self.precision]
        triples = fitting(self.session.schema.domain, [*one_way, *measured], triples)
        if prediction is not None and triples:
            step = rounds.triple_round(self.noise, self.target, len(triples), prediction.total)
            chosen = self._read(prediction, triples, step)
            self._judge(prediction, chosen)
        self._spend_on(self._allocate([*one_way, *measured, *chosen], self.session.left))

    def _read(
        self,
        prediction: Prediction,
        tables: list[Axes],
        step: rounds.Round,
        known: Callable[[Axes], float] = lambda _: 0.0,
    ) -> list[Axes]:
        """The tables of a round whose distances were read: all, or those of a shortlist. What of them is `known` from smaller tables is public."""
        if step.n_read < len(tables):
            self.progress(f"choosing {step.n_read} of {len(tables)} tables to look at")
            tables = self._shortlist(prediction, tables, step, known)
        self.spent += step.share
        self.note["rounds"] += 1
        self.note["candidates"] += step.candidates
        self.note["shortlist"] += step.n_read
        self.progress(f"reading the distances of {len(tables)} tables")
        noisy, mechanism = self.session.ask(
            Distances(tables, prediction.goal, step.candidates), step.distance_share
        )
        means = posterior_distances(noisy, mechanism, 2 * prediction.total)
        for axes, mean in zip(tables, map(float, means), strict=True):
            self.distance[axes] = max(mean - known(axes), 0.0)
        return tables

    def _shortlist(
        self, prediction: Prediction, tables: list[Axes], step: rounds.Round, known: Callable[[Axes], float]
    ) -> list[Axes]:
        """The exponential mechanism, once for each table to read."""
        weight = rounds.weights_256(self.target, tables)
        precision = self.noise.precision(float(self.session.left) / step.n_read)
        penalty = partial(rounds.penalties, prediction, tables, precision, known)
        scores = Scores(Distances(tables, prediction.goal, step.candidates), penalty, weight, step.n_read)
        return sorted(tables[place] for place in self.session.choose(scores, step.n_read, step.list_share))

    def _allocate(self, tables: list[Axes], budget: Fraction) -> dict[Axes, float]:
        return allocate_shares(self.target, self.noise, self.risks, self.precision, tables, float(budget))

    def _spend_on(self, shares: Mapping[Axes, float], keep: Fraction = Fraction(0)) -> None:
        """Measure tables with what is left, except for `keep`, exactly in these proportions, as whole parts of their sum."""
        budget, whole = self.session.left - keep, math.fsum(shares.values())
        parts = {axes: int(share / whole * PARTS) for axes, share in shares.items() if share > 0}
        total = sum(parts.values()) * self.sets
        self.progress(f"measuring {len(parts)} tables")
        self.session.expect([Query(axes) for axes, part in parts.items() if part])
        for axes, part in parts.items():
            if part:
                for number in range(self.sets):
                    self._measure(axes, budget * Fraction(part, total), number)

    def _measure(self, axes: Axes, share: Fraction, number: int) -> None:
        table = self.session.measure(Query(axes, centred=self.centred), share, set=number)
        if number == 0:
            self.precision[axes] = self.precision.get(axes, 0.0) + 1 / table.in_rows()[1]
        self.tables.append(table)

    def _reconciled(self) -> Reconciled:
        """All that was measured so far, over all sets, but for coarse counts."""
        totals = [one for one in self.session.kept if not one.query.axes]
        return reconcile(self.session.schema.domain, [*self.tables, *totals], total=self.session.n_rows)
