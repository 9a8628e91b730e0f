"""The session: all questions about one private table, each perhaps after the answer to the last, under one charge.

open (check the terms, read the rows, charge) ─▶ measure, measure_many, query, choose, … ─▶ release, close.

The whole budget is charged once, durably, before the first answer. Every question then takes an exact share of that charge, and
what would take more than is left is refused. True counts never leave: a method hands in what it wants counted or scored, and
gets noisy counts or a choice.
"""

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.count import open_counts, receive
from dpcipher.curator.event import (
    CandidatesChosen,
    CentredMeasured,
    Event,
    LevelsFound,
    QueryAnswered,
    RowsDrawn,
    RowsProbablyDrawn,
    Sensitivity,
    TablesMeasured,
)
from dpcipher.curator.spending import Spending
from dpcipher.curator.truth import CountedTables, CountSource, Recoding, Tally
from dpcipher.errors import BudgetError
from dpcipher.privacy.accounting import float_up
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.choose import Chooser, Draws, check_k, choice_scale, polya_urn
from dpcipher.privacy.ledger import Account
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.records import Charge
from dpcipher.privacy.terms import Privacy
from dpcipher.privacy.together import CELLS_AT_ONCE
from dpcipher.privacy.unit import Unit
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement, Status, software
from dpcipher.request.request import Request, check_person
from dpcipher.schema.grouped import query_of
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Attrs, Axes, Counts
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

Candidate = TypeVar("Candidate")
Picker = Callable[[Chooser, NDArray[np.int64], float, int], list[int]]


class Session:
    """Answers about one private table, under one budget that was charged when the session opened."""

    def __init__(
        self,
        truth: CountSource,
        schema: Schema,
        privacy: Privacy,
        *,
        draws: Draws,
        may_fail: bool = False,
        charge: Charge | None = None,
        account: Account = Account(),  # noqa: B008 - a frozen value
        kind: str = "pandas",
    ) -> None:
        self.schema, self.privacy, self.kind, self.rng = schema.without_notes(), privacy, kind, draws.rng
        self._truth, self._draws, self._charge, self._account = truth, draws, charge, account
        self._spending = Spending(privacy.charge(may_fail or schema.discovers), privacy.unit)
        self._remarks: dict[str, Any] = {}
        self.centred, self.kept = False, list[Measurement]()
        self.released: Release | None = None

    @classmethod
    def open(
        cls,
        data: Any,
        schema: Schema,
        privacy: Privacy,
        account: Account = Account(),  # noqa: B008 - a frozen value
        *,
        what: Mapping[str, Any],
        may_fail: bool = False,
        needs_n_rows: bool = False,
        tables: Sequence[Axes] | None = None,
        foreseen: Sequence[Axes] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> "Session":
        """Check the terms and the ledger, read the private rows, and charge the ledger with the whole budget, in that order.

        Where all `tables` that will be asked for are known, or few are `foreseen` among which they will be, their counts are taken in one pass and
        no row is kept, unless the schema is open: then rows are coded on its grid, and kept. `what` says publicly what the charge is for.
        `may_fail` and `needs_n_rows` say what a method will ask: something that fails with a small probability, or that no noise can hide while
        the number of rows is private.
        """
        schema.require_signed()
        cost = privacy.charge(may_fail or schema.discovers)
        check_person(schema, privacy.cap)
        account.check(privacy, cost)
        incoming = receive(data, schema, privacy, say=say)
        if incoming.drops_blank_rows:
            privacy = replace(privacy, every_row_counts=False)
        if needs_n_rows:
            privacy.require_n_rows()
        if incoming.extra:
            say(incoming.extra)
        say("counting" if tables is not None else "reading")
        if schema.is_open:
            tables = foreseen = None
        truth = open_counts(incoming, schema, tables, foreseen=foreseen)
        say("charging the ledger and drawing noise")
        asked = {**what, "asked": privacy.budget.describe(), "schema": schema.fingerprint()}
        charge = account.charge(privacy, cost, asked)
        return cls(
            truth,
            schema,
            privacy,
            draws=Draws.secure(),
            may_fail=may_fail,
            charge=charge,
            account=account,
            kind=incoming.kind,
        )

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.privacy.unit

    @property
    def n_rows(self) -> int | None:
        """The number of rows, only where the unit makes it public or the curator declared it so."""
        return self._truth.n_rows if self.privacy.tells_n_rows else None

    @property
    def failure(self) -> Fraction:
        """The probability that the charge has for failures."""
        return self._spending.failure

    @property
    def is_zcdp(self) -> bool:
        """Whether the budget is counted in rho; pure epsilon otherwise."""
        return self._spending.is_zcdp

    @property
    def left(self) -> Fraction:
        """The share that no question has taken yet: of the charge or, once the schema was closed, of what was left of it then."""
        return self._spending.left

    def of_charge(self, share: Fraction) -> Fraction:
        """Such a share as one of the whole charge."""
        return self._spending.of_charge(share)

    def part(self, share: Fraction) -> Budget:
        """What such a share is worth."""
        return self._spending.part(share)

    def go_on(self, schema: Schema, codes: Recoding) -> None:
        """Go on with a closed schema: rows get new codes by a public look-up, and shares are those of what is left of the charge.

        The schema and the look-up must follow from public facts and noisy answers alone. Texts of columns whose levels were found get the
        code of their level here.
        """
        texts = {
            axis: dictionary.recoding(schema.column(schema.attrs[axis]))
            for axis, dictionary in self._truth.texts.items()
        }
        self._truth = self._truth.recoded({**codes, **texts}, schema.on_grid().shape)
        self.schema = schema
        self._spending.begin_anew()

    def mechanism(self, share: Fraction, sensitivity: Sensitivity = Sensitivity()) -> Noise:  # noqa: B008 - a frozen value
        """The noise that a share pays for; never less than can be called noise, so that a generous budget is not all spent."""
        return self._spending.mechanism(share, sensitivity)

    def measure_many(
        self, request: Request, *, say: Callable[[str], None] = lambda _: None
    ) -> tuple[Measurement, ...]:
        """Independent noise on every cell of every table of a request, in every set; `say` is told how far a large one has come."""
        share = sum(request.shares, Fraction(0)) * request.sets
        self._spending.debit(share)
        costs = {noise: self._draws.noise.certificate(noise, self.unit) for noise in set(request.mechanisms)}
        cost = math.fsum(costs[noise] for noise in request.mechanisms) * request.sets
        n_tables = len(request.given.tables)
        what = f"{n_tables} table{'s' if n_tables > 1 else ''}"
        self._spending.record(TablesMeasured(what, share, cost, n_tables, request.sets))
        queries = request.queries
        counted = [query.apply(self._truth.counts(query.axes), query.axes) for query in queries]
        cells = request.sets * sum(counts.size for counts in counted)
        noisy = self._draws.noise.add_many(
            counted * request.sets,
            request.mechanisms * request.sets,
            progress=lambda done: (
                say(f"drawing noise: {done / cells:.0%} of {cells:,} cells")
                if cells > CELLS_AT_ONCE
                else None
            ),
        )
        return tuple(
            Measurement(
                queries[place % n_tables],
                answer,
                request.mechanisms[place % n_tables],
                place // n_tables,
            )
            for place, answer in enumerate(noisy)
        )

    def measure(self, attrs: Attrs, share: Fraction, *, set: int = 0) -> Measurement:
        """The counts of a table with noise on every cell, observed or not; centred where the number of rows was measured by itself."""
        query = replace(query_of(self.schema, attrs), centred=self.centred)
        what = " × ".join(self.schema.attrs_on(query.axes))
        far = Sensitivity(*map(Fraction, query.moved(self.schema.shape, "add-remove")))
        counts, mechanism = self._answer(
            lambda truth: query.apply(truth.counts(query.axes), query.axes),
            share,
            far,
            lambda cost: (
                CentredMeasured(what, share, cost, far.l1, far.l2_squared)
                if query.centred
                else TablesMeasured(what, share, cost)
            ),
        )
        return Measurement(query, counts, mechanism, set)

    def expect(self, tables: Iterable[Attrs]) -> None:
        """Say which tables will be measured next, one by one: where rows must be counted for them, that is done together."""
        self._truth.expect([self.schema.axes(attrs) for attrs in tables])

    def total(self, share: Fraction, what: str = "number of rows") -> tuple[int, Noise]:
        """The number of rows with noise."""
        noisy, mechanism = self.query(what, lambda truth: truth.counts(()), share)
        return int(noisy), mechanism

    def measure_centred(self, share: Fraction, *, sets: int = 1) -> None:
        """Measure the number of rows by itself, where it is not public, once for each set; tables are centred from here on, and a release says so.

        A table of K cells is then asked for K·count less the number of rows, so that rows are counted once and not by every table: the same noise on counts
        less their mean costs 1 - 1/K of what it costs on counts, half in two cells, two thirds in three.

        Only where one row more or less is protected, by Gaussian noise: a row that is replaced moves a centred table as far as its counts.
        """
        if self.unit.relation != "add-remove" or not self.is_zcdp:
            raise BudgetError(
                "centred tables need a budget of rho, or epsilon and delta, and unit='add-remove'"
            )
        for number in range(sets):
            exact = (self._truth.n_rows, Noise("none", 0.0))
            asked = "rows, counted once"
            count, mechanism = exact if self.privacy.tells_n_rows else self.total(share / sets, asked)
            self.keep(Measurement(Query(()), np.asarray(count), mechanism, number))
        self.centred = True

    def measure_cell(self, attrs: Attrs, cell: tuple[int, ...], share: Fraction) -> tuple[int, Noise]:
        """One count with noise: any one count changes by at most `max_rows`, under replacement too."""
        axes = self.schema.axes(attrs)
        half = Fraction(1, 2) if self.unit.relation == "replace" else Fraction(1)
        noisy, mechanism = self.query(
            f"a cell of {' × '.join(attrs)}",
            lambda truth: truth.counts(axes)[cell],
            share,
            sensitivity=Sensitivity(half, half),
        )
        return int(noisy), mechanism

    def query(
        self,
        what: str,
        ask: Callable[[CountSource], Any],
        share: Fraction,
        *,
        sensitivity: Sensitivity = Sensitivity(),  # noqa: B008 - a frozen value
    ) -> tuple[Counts, Noise]:
        """Any vector of whole numbers with noise; `sensitivity` says how far one person moves it, in tables of counts."""
        return self._answer(
            ask,
            share,
            sensitivity,
            lambda cost: QueryAnswered(what, share, cost, sensitivity.l1, sensitivity.l2_squared),
        )

    def name_texts(self, axis: int, share: Fraction, delta: Fraction, most: int) -> tuple[str, ...]:
        """The texts of a column that are frequent enough to be named: noise on the count of each, and a threshold that hides lone ones but for `delta`."""
        self._spending.debit(share)
        self._spending.debit_failure(delta)
        chosen = PartitionSelection.calibrated(self.mechanism(share), delta, self.unit)
        cost = self._draws.noise.certificate(chosen.mechanism, self.unit)
        what = f"levels of {self.schema.attrs[axis]}"
        self._spending.record(LevelsFound(what, share, cost, delta, chosen.threshold))
        return chosen.named(self._truth.text_counts(axis), self._draws.noise, most)

    def _answer(
        self,
        ask: Callable[[CountSource], Any],
        share: Fraction,
        sensitivity: Sensitivity,
        event: Callable[[float], Event],
    ) -> tuple[Counts, Noise]:
        """The one place where a single question meets the noise: the share is taken and the event recorded before anything is drawn."""
        self._spending.debit(share)
        mechanism = self.mechanism(share, sensitivity)
        cost = self._draws.noise.certificate(mechanism, self.unit)
        self._spending.record(event(cost * float(sensitivity.factor(zcdp=self.is_zcdp))))
        return self._draws.noise.add(np.asarray(ask(self._truth), dtype=np.int64), mechanism), mechanism

    def choose(
        self,
        what: str,
        candidates: Sequence[Candidate],
        scores: Callable[[CountSource], NDArray[np.int64]],
        share: Fraction,
        *,
        sensitivity: int,
    ) -> Candidate:
        """One candidate by the exponential mechanism; one person changes every score by at most `sensitivity`."""
        return self.choose_many(what, candidates, scores, 1, share, sensitivity=sensitivity)[0]

    def choose_many(
        self,
        what: str,
        candidates: Sequence[Candidate],
        scores: Callable[[CountSource], NDArray[np.int64]],
        k: int,
        share: Fraction,
        *,
        sensitivity: int,
        by: Picker = Chooser.choose_many,
    ) -> list[Candidate]:
        """`k` candidates in the order chosen: rounds of the exponential mechanism, each at a k-th of the share.

        `by` runs the rounds; it may leave candidates out of a round because of what earlier rounds chose, and for no other reason.
        """
        check_k(k, len(candidates))
        self._spending.debit(share)
        scale, chooser = choice_scale(self.part(share / k), sensitivity), self._draws.chooser
        cost = chooser.certificate(scale, sensitivity, zcdp=self.is_zcdp, k=k)
        self._spending.record(CandidatesChosen(what, share, cost, len(candidates), k, sensitivity))
        return [candidates[place] for place in by(chooser, scores(self._truth), scale, k)]

    def urn(
        self,
        prior: Fraction,
        n_rows: int,
        share: Fraction,
        possible: NDArray[np.bool_] | None = None,
        *,
        delta: Fraction = Fraction(0),
    ) -> Counts:
        """Rows drawn from the Dirichlet posterior of the full table, as counts; the caller's `prior` must make the share true, but for `delta`.

        Cells that are not `possible`, by the schema, have no prior and are never drawn.
        """
        if self.is_zcdp and not delta:
            raise BudgetError(
                "delta must not be given here: the draw itself costs pure epsilon; leave delta out"
            )
        self._spending.debit(share)
        what, cost = f"{n_rows} rows from the posterior", float_up(self.part(share).amount)
        if delta:
            self._spending.debit_failure(delta)
            self._spending.record(RowsProbablyDrawn(what, share, cost, n_rows, delta))
        else:
            self._spending.record(RowsDrawn(what, share, cost, n_rows))
        counts = self._truth.counts(tuple(range(len(self.schema.attrs))))
        weights = counts * prior.denominator + prior.numerator
        if possible is not None:
            weights = np.where(possible, weights, 0)
        return polya_urn(weights.reshape(-1), prior.denominator, n_rows, self._draws.below).reshape(
            counts.shape
        )

    def remark(self, name: str, value: Any) -> None:
        """Add something public to the certificate."""
        self._remarks[name] = value

    def keep(self, beside: Measurement) -> None:
        """Add what was measured here beside tables to every release that follows."""
        self.kept.append(beside)

    def release(self, tables: Sequence[Measurement]) -> Release:
        """What was measured so far, with its statement; the last one is kept as `released`."""
        self.released = Release(
            self.schema,
            (*tables, *self.kept),
            self.statement(),
            kind=self.kind,
        )
        return self.released

    def close(self, checksum: str, *, file: str = "") -> None:
        """Record in the ledger that the charge has led to a result, and the name of its file; nothing more can be asked."""
        self._spending.end()
        self._account.mark_released(self._charge, checksum, file=file)

    def statement(self) -> Statement:
        """What was done so far, under which promise."""
        return Statement(
            status=self._status(),
            n_rows=self.n_rows,
            **self.privacy.stated(),
            certificate=self._spending.certificate(
                "privacy map of opendp" if self._draws.is_private else "none: seeded noise", self._remarks
            ),
            ledger={} if self._charge is None else self._charge.as_dict(),
            software=software(),
            created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        )

    def _status(self) -> Status:
        if not self._draws.is_private:
            return "NOT PRIVATE"
        return "unrecorded" if self._charge is None else "certified"


def release_of(tally: Tally, request: Request, draws: Draws) -> Release:
    """The release of counts that are at hand: the seam for experiments and rehearsals, no ledger involved."""
    opened = Session(CountedTables(tally, request.axes), request.schema, request.privacy, draws=draws)
    return opened.release(opened.measure_many(request))
