"""Choose the tables to measure with part of the budget, and measure them with the rest.

The steps, each an exact share of one charge (`selection.rounds`):

    small table: number of rows ─▶ design ─▶ tables
    else: number of rows, where tables are centred ─▶ one-way tables ─▶ look at pairs ─▶ at larger tables ─▶ allocation ─▶ tables ─▶ once more for triples, where that pays

A look reads distances: of all candidates, or of a shortlist that the exponential mechanism chooses. The distance of a table is
Σ|count − prediction|, from a prediction made without it. It is read with noise, and everything after that is post-processing: the allocation
(`selection.allocation`) decides which tables are measured, and with which share.

Sensitivity. The prediction is public, a fixed table of whole sixteenths, and so is the candidate list. One row more or less changes
one count of a table by one, so 16·Σ|count − prediction| by at most 16, and its floored sixteenth by at most 1. One person changes
the distance of every table by at most `unit.l1`: max_rows rows under add-remove, twice that under replacement. A list of k distances
moves by at most k·l1 in L1 and √k·l1 in L2 (`_sensitivity`), whatever the order of the tables. A score is a distance less a public number, what
smaller tables explain among it, times a public weight of at most 1, floored: it moves no more. The number of rows moves like a table of one cell.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.event import Sensitivity
from dpcipher.curator.session import Picker, Session
from dpcipher.curator.truth import CountSource
from dpcipher.privacy.choose import Chooser
from dpcipher.privacy.unit import Unit
from dpcipher.release.reconcile import Reconciled, reconcile
from dpcipher.request.auto import Auto
from dpcipher.request.request import most_pairs
from dpcipher.request.shares import PARTS
from dpcipher.selection import rounds
from dpcipher.selection.allocation import Risk, allocate_shares
from dpcipher.selection.design import design_tables, is_small, unlooked
from dpcipher.selection.distances import posterior_distances
from dpcipher.selection.limits import fitting, fitting_orders, one_way_tables
from dpcipher.selection.noise_model import NoiseModel
from dpcipher.selection.prediction import GRAIN, Prediction, fitted, independent
from dpcipher.selection.risk import one_way_risk
from dpcipher.selection.scores import explained, penalties, weights_256
from dpcipher.selection.spanning import SpanningFirst
from dpcipher.selection.target import SelectionTarget
from dpcipher.tables.domain import Axes
from dpcipher.tables.measurement import Measurement


@dataclass(frozen=True)
class Chosen:
    """The measured tables, and what the release says about how they were chosen."""

    tables: tuple[Measurement, ...]
    note: dict[str, Any]


def measure_chosen(
    session: Session, auto: Auto, *, sets: int = 1, say: Callable[[str], None] = lambda _: None
) -> Chosen:
    """Choose tables and measure them, spending the whole charge of `session`.

    With several `sets` the choice is made once, and every set measures the same tables, with an equal share.
    """
    return _Selection(session, SelectionTarget.of(auto, session.schema), sets, say).run()


def distances(
    truth: CountSource, tables: Sequence[Axes], goals: Iterable[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """The L1 distance of every table from its goal (in sixteenths), in whole rows. Private: only for a session to add noise to."""
    exact = [
        int(np.abs(GRAIN * counts - goal).sum()) // GRAIN
        for counts, goal in zip(truth.many(tables), goals, strict=True)
    ]
    return np.array(exact, dtype=np.int64)


class _Selection:
    """One run: the noisy answers so far, and the risk of every table whose distance was read."""

    def __init__(
        self, session: Session, target: SelectionTarget, sets: int, say: Callable[[str], None]
    ) -> None:
        self.session, self.target, self.sets, self.say = session, target, sets, say
        self.shape, self.zeros = session.schema.shape, session.schema.zero_masks
        self.noise = NoiseModel(session.part(Fraction(1)), session.unit, sets)
        self.tables: list[Measurement] = []
        self.precision: dict[Axes, float] = {}
        self.distance: dict[Axes, float] = {}
        self.risks: dict[Axes, Risk] = {}
        self.rows: float | None = None
        self.spent = Fraction(0)
        self.note: dict[str, Any] = {"rounds": 0, "candidates": 0, "shortlist": 0}

    def run(self) -> Chosen:
        """All steps."""
        if not self._small():
            self._large()
        self.note["share"] = str(self.session.of_charge(self.spent))
        self.note["tables"] = len({table.query.axes for table in self.tables})
        if self.target.predict is not None:
            self.note["predict"] = self.session.schema.attrs[self.target.predict]
        self.session.remark("selection", self.note)
        return Chosen(tuple(self.tables), self.note)

    def _small(self) -> bool:
        """Measure a small table by a design that follows from the number of rows, public or noisy; False where looking first promises more."""
        if not is_small(self.target):
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
            self.say("asking for the number of rows")
            self.spent += rounds.TOTAL
            noisy, mechanism = self.session.total(rounds.TOTAL)
            self.rows = max(float(noisy), math.sqrt(mechanism.variance) / 2, 1.0)
        return self.rows

    def _large(self) -> None:
        """One-way tables first, and from them what the others are worth. Under pure epsilon they come only where something is looked at then."""
        one_way, pairs = one_way_tables(self.shape), list(self.target.tables(2))
        if not pairs:
            self._spend_on(dict.fromkeys(one_way, 1.0))
            return
        if not self.noise.is_zcdp and self._without_a_look(pairs, self._rows()):
            return
        if rounds.centres(self.noise, zeros=bool(self.zeros)):
            self.say("measuring the number of rows")
            self.session.measure_centred(rounds.ROWS, sets=self.sets)
        self.say("measuring one-way tables")
        share = rounds.ONE_WAY if self.noise.is_zcdp else self._column_share(pairs, self._rows())
        prediction = self._measure_columns(one_way, share)
        if prediction is None:
            self._spend_on(dict.fromkeys(one_way, 1.0))
        elif not self._without_a_look(pairs, prediction.total):
            if self.noise.is_zcdp and (more := self._column_share(pairs, prediction.total) - share) > 0:
                prediction = self._measure_columns(one_way, more) or prediction
            self._rounds(prediction, one_way, pairs)

    def _measure_columns(self, one_way: list[Axes], share: Fraction) -> Prediction | None:
        """Spend a share on the columns, and predict all tables from them; None where the noise has drowned the rows."""
        self._spend_on(dict.fromkeys(one_way, 1.0), keep=self.session.left - share)
        return independent(self._reconciled())

    def _column_share(self, pairs: list[Axes], rows: float) -> Fraction:
        return rounds.column_share(self.noise, self.shape, rows, self._first_round(pairs, rows))

    def _first_round(self, pairs: list[Axes], rows: float) -> rounds.Round:
        sizes, most = rounds.n_cells(self.shape, pairs), most_pairs(self.session.schema, self.sets)
        return rounds.pair_round(self.noise, sizes, len(self.shape), rows, most)

    def _without_a_look(self, pairs: list[Axes], rows: float) -> bool:
        """Measure columns, or all pairs, with all that is left, where nothing can be told apart; False where something can."""
        shares = unlooked(self.target, self.noise, rows, self._first_round(pairs, rows))
        if shares is None:
            return False
        self.note["candidates"] += len(pairs)
        self._spend_on(shares)
        return True

    def _rounds(self, prediction: Prediction, one_way: list[Axes], pairs: list[Axes]) -> None:
        step = self._first_round(pairs, prediction.total)
        for axes in one_way:
            self.risks[axes] = partial(one_way_risk, prediction.predict(axes))
        chosen = self._unseen(prediction, pairs) if step.blind else self._read(prediction, pairs, step)
        screened = self._screen(prediction) if step.takes_all else []
        screened = fitting(self.session.schema.domain, [*one_way, *chosen], screened)
        kept = rounds.SECOND if self._second_round_pays(chosen) else Fraction(0)
        shares = self._allocate([*one_way, *chosen, *screened], self.session.left - kept)
        self._spend_on(shares, keep=kept)
        if kept:
            self._second(one_way, [axes for axes in [*chosen, *screened] if shares[axes]])

    def _unseen(self, prediction: Prediction, tables: list[Axes]) -> list[Axes]:
        """Tables whose distances are not read: all alike."""
        self.note["candidates"] += len(tables)
        for axes in tables:
            self.risks[axes] = prediction.risk(axes, rounds.TYPICAL * prediction.total)
        return tables

    def _screen(self, prediction: Prediction) -> list[Axes]:
        """Tables of three and more columns that show more than the smaller tables inside them: chosen by that, then read."""
        found: list[Axes] = []
        for tables, step in rounds.screens(self.noise, self.target, prediction.total):
            found += self._read(prediction, tables, step, partial(explained, self.distance))
        return [axes for axes in found if self.distance[axes] >= rounds.SHOWN * prediction.total]

    def _second_round_pays(self, pairs: list[Axes]) -> bool:
        """Whether the pairs are far enough from their predictions for triples to be measured well."""
        if self.target.max_order < 3 or any(axes not in self.distance for axes in pairs):
            return False
        wanted = [axes for axes in pairs if self.target.predict in (None, *axes)]
        if not wanted:
            return False
        needed = rounds.worthwhile_distance(self.noise, self.target, float(self.session.left) / len(wanted))
        mean = float(np.mean([self.distance[axes] for axes in wanted])) / 2
        return needed <= mean and bool(rounds.candidate_triples(self.target, pairs, self.distance))

    def _second(self, one_way: list[Axes], measured: list[Axes]) -> None:
        """Read the distances of triples from a fit of all measured tables; the allocation covers triples and earlier tables together."""
        self.say("fitting what was measured so far")
        prediction, chosen = fitted(self._reconciled(), self.target.predict), list[Axes]()
        pairs = [axes for axes in measured if len(axes) == 2]
        triples = rounds.candidate_triples(self.target, pairs, self.distance)
        triples = [axes for axes in triples if axes not in self.precision]
        triples = fitting(self.session.schema.domain, [*one_way, *measured], triples)
        if prediction is not None and triples:
            step = rounds.triple_round(self.noise, self.target, len(triples), prediction.total)
            chosen = self._read(prediction, triples, step)
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
            self.say(f"choosing {step.n_read} of {len(tables)} tables to look at")
            tables = self._shortlist(prediction, tables, step, known)
        self.spent += step.share
        self.note["rounds"] += 1
        self.note["candidates"] += step.candidates
        self.note["shortlist"] += step.n_read
        self.say(f"reading the distances of {len(tables)} tables")
        noisy, mechanism = self.session.query(
            f"distances of {len(tables)} tables",
            lambda truth: distances(truth, tables, map(prediction.goal, tables)),
            step.distance_share,
            sensitivity=_sensitivity(len(tables), self.session.unit),
        )
        means = posterior_distances(noisy, mechanism, 2 * prediction.total)
        for axes, mean in zip(tables, map(float, means), strict=True):
            self.distance[axes] = max(mean - known(axes), 0.0)
            self.risks[axes] = prediction.risk(axes, self.distance[axes])
        return tables

    def _shortlist(
        self,
        prediction: Prediction,
        tables: list[Axes],
        step: rounds.Round,
        known: Callable[[Axes], float],
    ) -> list[Axes]:
        """The exponential mechanism, once for each table to read; pairs that join two components of columns go first.

        A score is the distance less public numbers, times a public weight of at most 1.
        """
        weight = weights_256(self.target, tables)
        precision = self.noise.precision(float(self.session.left) / step.n_read)
        penalty = penalties(prediction, tables, precision, known)

        def scores(truth: CountSource) -> NDArray[np.int64]:
            net = distances(truth, tables, map(prediction.goal, tables)) - penalty
            return np.asarray(net * weight // 256)

        by: Picker = SpanningFirst(tables) if len(tables[0]) == 2 else Chooser.choose_many
        picked = self.session.choose_many(
            f"{step.n_read} of {len(tables)} tables to look at",
            tables,
            scores,
            step.n_read,
            step.list_share,
            sensitivity=self.session.unit.l1,
            by=by,
        )
        return sorted(picked)

    def _allocate(self, tables: list[Axes], budget: Fraction) -> dict[Axes, float]:
        return allocate_shares(self.target, self.noise, self.risks, self.precision, tables, float(budget))

    def _spend_on(self, shares: Mapping[Axes, float], keep: Fraction = Fraction(0)) -> None:
        """Measure tables with what is left, except for `keep`, exactly in these proportions, as whole parts of their sum."""
        budget, whole = self.session.left - keep, math.fsum(shares.values())
        parts = {axes: int(share / whole * PARTS) for axes, share in shares.items() if share > 0}
        total = sum(parts.values()) * self.sets
        self.say(f"measuring {len(parts)} tables")
        self.session.expect(self.session.schema.attrs_on(axes) for axes, part in parts.items() if part)
        for axes, part in parts.items():
            if part:
                for number in range(self.sets):
                    self._measure(axes, budget * Fraction(part, total), number)

    def _measure(self, axes: Axes, share: Fraction, number: int) -> None:
        table = self.session.measure(self.session.schema.attrs_on(axes), share, set=number)
        if number == 0:
            self.precision[axes] = self.precision.get(axes, 0.0) + 1 / table.in_rows()[1]
        self.tables.append(table)

    def _reconciled(self) -> Reconciled:
        """All that was measured so far, over all sets, but for coarse counts."""
        totals = [one for one in self.session.kept if not one.query.axes]
        return reconcile(self.session.schema.domain, [*self.tables, *totals], total=self.session.n_rows)


def _sensitivity(tables: int, unit: Unit) -> Sensitivity:
    """How far one person moves a list of distances, in units of a table of counts: see the proof at the top."""
    return Sensitivity(Fraction(tables), Fraction(tables * unit.l1**2, unit.l2_squared))
