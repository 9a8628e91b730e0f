"""Choose the tables to measure with part of the budget, and measure them with the rest.

The steps, each an exact share of one charge:

    one-way tables ─▶ shortlist (where needed) ─▶ distances ─▶ water level ─▶ tables ─▶ the same for triples, where that pays

A distance says how far a table of the data is from what is predicted without it. It is read with noise, and from then on everything is
post-processing: the water level (`select.level`) decides which tables are worth measuring and with how much.

Sensitivity. The prediction is public, a fixed table of whole sixteenths, and so is the candidate list. One row more or less changes
one count of a table by one, so 16·Σ|count − prediction| by at most 16, and its floored sixteenth by at most 1. One person changes
the distance of every table by at most `unit.l1`: max_rows rows under add-remove, twice that under replacement. A list of k distances
moves by at most k·l1 in L1 and √k·l1 in L2 (`_sensitivity`). Multiplied by a weight of at most 1 and floored, a score moves no more.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.count_source import CountSource
from dpcipher.curator.event import Sensitivity
from dpcipher.curator.session import Picker, Session
from dpcipher.curator.terms import Terms
from dpcipher.privacy.choose import Chooser
from dpcipher.privacy.mechanism import mechanism_for
from dpcipher.privacy.unit import Unit
from dpcipher.release.reconcile import Noisy, Reconciled, check_zeros, reconcile
from dpcipher.release.release import NoisyTable
from dpcipher.schema.schema import Schema
from dpcipher.selection.allocation import parts, water_level
from dpcipher.selection.noise_model import CHOICE, LIST, ONE_WAY, SECOND, Prices
from dpcipher.selection.posterior import believed
from dpcipher.selection.prediction import GRAIN, View, fitted, independent
from dpcipher.selection.risk import one_way_risk
from dpcipher.selection.spanning import SpanningFirst
from dpcipher.selection.target import Aim, Auto, Axes

Floats = NDArray[np.float64]

PARTS = 2**24  # shares are whole numbers of about so many parts of what is left
STRONG = 0.25  # L1 distance over rows of a dependence that a shortlist should not miss
TRIPLES = 2_000  # of those that the measured pairs suggest
TRIPLES_PER_COLUMN = 3  # looked at
WORTHWHILE = 0.1  # noise of a triple, in mean pair distances, below which the second round is held
ROUNDS = 4  # of settling how much the pairs tell about the one-way tables


@dataclass(frozen=True)
class Chosen:
    """The measured tables, and what the release says about how they were chosen."""

    tables: tuple[NoisyTable, ...]
    note: dict[str, Any]


def check_auto(auto: Auto, schema: Schema, terms: Terms | None = None) -> None:
    """Refuse what cannot be chosen from, judged on the schema, and a budget that cannot be divided; nothing private is opened."""
    if terms is not None:
        mechanism_for(terms.budget.split([1, 2**16 - 1])[0], terms.unit)
    aim = auto.on(schema)
    if schema.zeros:
        check_zeros(schema.shape, [*_one_way(schema.shape), *aim.tables(2)], schema.zero_masks)


def measure_chosen(
    session: Session, auto: Auto, *, sets: int = 1, say: Callable[[str], None] = lambda _: None
) -> Chosen:
    """Choose tables and measure them, spending the whole charge of `session`.

    With several `sets` the choice is made once, and every set measures the same tables, with an equal share.
    """
    return _Selection(session, auto.on(session.schema), sets, say).run()


def distances(
    truth: CountSource, tables: Sequence[Axes], goals: Iterable[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """The L1 distance of every table from its goal (in sixteenths), in whole rows. Private: for the session's eyes only."""
    found = [
        int(np.abs(GRAIN * counts - goal).sum()) // GRAIN
        for counts, goal in zip(truth.many(tables), goals, strict=True)
    ]
    return np.array(found, dtype=np.int64)


class _Selection:
    """One run: what has been measured so far, and how sure it is."""

    def __init__(self, session: Session, aim: Aim, sets: int, say: Callable[[str], None]) -> None:
        self.session, self.aim, self.sets, self.say = session, aim, sets, say
        self.shape, self.zeros = session.schema.shape, session.schema.zero_masks
        self.prices = Prices(session.part(Fraction(1)), session.unit, sets)
        self.tables: list[NoisyTable] = []
        self.precision: dict[Axes, float] = {}
        self.distance: dict[Axes, float] = {}
        self.risk_of: dict[Axes, Callable[[Floats], Floats]] = {}
        self.spent = Fraction(0)
        self.note: dict[str, Any] = {"rounds": 0, "candidates": 0, "shortlist": 0}

    def run(self) -> Chosen:
        """All steps."""
        self.say("measuring one-way tables")
        one_way = _one_way(self.shape)
        self._spend_on(dict.fromkeys(one_way, 1.0), keep=1 - ONE_WAY)
        pairs = list(self.aim.tables(2))
        view = independent(self._reconciled())
        if view is None or not pairs:
            self._spend_on(dict.fromkeys(one_way, 1.0))
        else:
            self._rounds(view, one_way, pairs)
        self.note["share"] = str(self.spent)
        self.note["tables"] = len({table.attrs for table in self.tables})
        self.session.remark("selection", self.note)
        return Chosen(tuple(self.tables), self.note)

    def _rounds(self, view: View, one_way: list[Axes], pairs: list[Axes]) -> None:
        for axes in one_way:
            self.risk_of[axes] = partial(one_way_risk, view.predict(axes))
        chosen = self._read(view, pairs)
        kept = SECOND if self._pays(chosen) else Fraction(0)
        shares = self._plan([*one_way, *chosen], self.session.left - kept)
        self._spend_on(shares, keep=kept)
        if kept:
            self._second(one_way, [axes for axes in chosen if shares[axes]])

    def _second(self, one_way: list[Axes], pairs: list[Axes]) -> None:
        """Fit what was measured, and see which triples it gets wrong; what they are not worth goes to the tables already chosen."""
        self.say("fitting what was measured so far")
        view = fitted(self._reconciled())
        triples = self._suggested(pairs)
        chosen = self._read(view, triples) if view is not None and triples else []
        self._spend_on(self._plan([*one_way, *pairs, *chosen], self.session.left))

    def _suggested(self, pairs: list[Axes]) -> list[Axes]:
        """Triples of measured pairs, those with the largest distances first."""
        ranked = sorted(
            (axes for axes in _triples(pairs) if self.aim.fits(axes) and self.aim.importance(axes) > 0),
            key=lambda axes: (-sum(self.distance[pair] for pair in combinations(axes, 2)), axes),
        )
        return ranked[:TRIPLES]

    def _read(self, view: View, tables: list[Axes]) -> list[Axes]:
        """The distances of tables from their prediction; of a shortlist, where so many could not be told apart."""
        self.note["rounds"] += 1
        self.note["candidates"] += len(tables)
        length, share = self._looked(view, tables), CHOICE
        if length < len(tables):
            share = 2 * CHOICE if len(tables[0]) == 2 else CHOICE
            self.spent += LIST * share
            self.say(f"choosing {length} of {len(tables)} tables to look at")
            tables = self._shortlist(view, tables, length, LIST * share)
            share -= LIST * share
        self.spent += share
        self.note["shortlist"] += len(tables)
        self.say(f"reading the distances of {len(tables)} tables")
        noisy, mechanism = self.session.query(
            f"distances of {len(tables)} tables",
            lambda truth: distances(truth, tables, map(view.goal, tables)),
            share,
            sensitivity=_sensitivity(len(tables), self.session.unit),
        )
        found = believed(noisy, mechanism, 2 * view.total)
        self.distance.update(zip(tables, map(float, found), strict=True))
        for axes in tables:
            self.risk_of[axes] = view.risk(axes, self.distance[axes])
        return tables

    def _looked(self, view: View, tables: list[Axes]) -> int:
        """How many tables to look at. Of triples only a few per column: each makes others better too, and more would share the budget."""
        columns = len(self.shape)
        if len(tables[0]) > 2:
            return self.prices.clear(
                min(TRIPLES_PER_COLUMN * columns, len(tables)), len(tables), columns, view.total, CHOICE
            )
        sizes = [math.prod(self.shape[axis] for axis in axes) for axes in tables]
        return self.prices.looked(sizes, columns, view.total)

    def _shortlist(self, view: View, tables: list[Axes], length: int, share: Fraction) -> list[Axes]:
        """The exponential mechanism, `length` times: distance net of the error that noise would leave, by importance.

        Pairs that connect columns go first.
        """
        weight = np.array([self.aim.importance(axes) for axes in tables])
        grain = np.round(weight / weight.max() * 256).astype(np.int64)  # weights of at most 1, in 256ths
        precision = np.array([self.prices.precision(float(self.session.left) / length)])
        penalty = [round(2 * float(view.risk(axes, STRONG * view.total)(precision)[0])) for axes in tables]

        def scores(truth: CountSource) -> NDArray[np.int64]:
            net = distances(truth, tables, map(view.goal, tables)) - np.array(penalty)
            return np.asarray(net * grain // 256)

        what = f"{length} of {len(tables)} tables to look at"
        by: Picker = SpanningFirst(tables) if len(tables[0]) == 2 else Chooser.choose_many
        picked = self.session.choose_many(
            what, tables, scores, length, share, sensitivity=self.session.unit.l1, by=by
        )
        return sorted(picked)

    def _pays(self, pairs: list[Axes]) -> bool:
        """Whether triples could be measured well enough: their noise, at what a pair would get, against what pairs show."""
        if self.sets > 1 or self.aim.max_order < 3 or self.zeros:
            return False
        levels = float(np.median([size for size in self.shape if size > 1]))
        noise = self.prices.triple_noise(levels, float(self.session.left) / len(pairs))
        shown = float(np.mean([self.distance[axes] for axes in pairs])) / 2
        return noise <= WORTHWHILE * shown and bool(self._suggested(pairs))

    def _plan(self, tables: list[Axes], budget: Fraction) -> dict[Axes, float]:
        """What share each table should get: the water level, repeated because pairs also tell about one-way tables."""
        grid = parts(1.0)
        gained = np.array([self.prices.precision(part * float(budget)) for part in grid])
        weight = [self.aim.importance(axes) for axes in tables]
        told = dict.fromkeys(tables, 0.0)
        shares = dict.fromkeys(tables, 0.0)
        for _ in range(ROUNDS):
            risks = [
                importance * self.risk_of[axes](gained + self.precision.get(axes, 0.0) + told[axes])
                for axes, importance in zip(tables, weight, strict=True)
            ]
            shares = dict(zip(tables, map(float, water_level(np.array(risks), grid)), strict=True))
            told = self._told(tables, shares, float(budget), told)
        return {axes: share * float(budget) for axes, share in shares.items()}

    def _told(
        self, tables: list[Axes], shares: Mapping[Axes, float], budget: float, before: Mapping[Axes, float]
    ) -> dict[Axes, float]:
        """The precision that larger tables, as planned and as measured, add to one-way tables; halfway from the last guess."""
        found = dict.fromkeys(tables, 0.0)
        for axes in tables:
            if len(axes) > 1:
                precision = self.prices.precision(shares[axes] * budget) + self.precision.get(axes, 0.0)
                for axis in axes:
                    found[(axis,)] += precision * self.shape[axis] / math.prod(self.shape[a] for a in axes)
        return {axes: (value + before[axes]) / 2 for axes, value in found.items()}

    def _spend_on(self, shares: Mapping[Axes, float], keep: Fraction = Fraction(0)) -> None:
        """Measure tables with what is left, but for `keep`, exactly in these proportions, as whole parts of their sum."""
        budget, whole = self.session.left - keep, math.fsum(shares.values())
        wanted = {axes: int(share / whole * PARTS) for axes, share in shares.items() if share > 0}
        pieces = sum(wanted.values()) * self.sets
        self.say(f"measuring {len(wanted)} tables")
        for axes, portion in wanted.items():
            if portion:
                for number in range(self.sets):
                    self._measure(axes, budget * Fraction(portion, pieces), number)

    def _measure(self, axes: Axes, share: Fraction, number: int) -> None:
        attrs = tuple(self.session.schema.attrs[axis] for axis in axes)
        table = self.session.measure(attrs, share, set=number)
        if number == 0:
            self.precision[axes] = self.precision.get(axes, 0.0) + 1 / table.mechanism.variance
        self.tables.append(table)

    def _reconciled(self) -> Reconciled:
        """All that was measured so far, over all sets."""
        axes_of = self.session.schema.axes
        measured = [
            Noisy(axes_of(table.attrs), np.asarray(table.counts, dtype=float), table.mechanism.variance)
            for table in self.tables
        ]
        total = None if self.session.n_rows is None else float(self.session.n_rows)
        return reconcile(self.shape, measured, total=total, zeros=self.zeros)


def _one_way(shape: tuple[int, ...]) -> list[Axes]:
    return [(axis,) for axis in range(len(shape))]


def _triples(pairs: Sequence[Axes]) -> list[Axes]:
    """Every three attributes whose pairs are all there."""
    known = set(pairs)
    after: dict[int, list[int]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    return [(a, b, c) for a, b in pairs for c in after.get(b, []) if (a, c) in known]


def _sensitivity(tables: int, unit: Unit) -> Sensitivity:
    """How far one person moves a list of distances, in tables of counts: see the proof at the top."""
    return Sensitivity(Fraction(tables), Fraction(tables * unit.l1**2, unit.l2_squared))
