"""The session: all questions about one private table, each perhaps after the answer to the last, under one charge. It holds no rows.

A `Question` knows how far one person moves its answer, how it is counted, and what may be expected of it. The session takes an exact share of the
charge for it, records the event and then asks its source: private rows, which count and add noise, or a plan, which simulates. What would take more
than is left is refused. Proofs of how far a person moves an answer stand with the question they are about.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcipher.errors import BudgetError, Progress, silent
from dpcipher.privacy.budget import Moved, choice_scale, float_up, noise_within
from dpcipher.privacy.draws import Chooser, check_k
from dpcipher.privacy.events import Event, Sensitivity, Spending
from dpcipher.privacy.partitions import PartitionSelection
from dpcipher.privacy.terms import Privacy, Unit
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.request.request import Request
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Axes, Codes, Counts, Floats, Shape
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Combination, Query

Recoding = Mapping[int, Codes]  # for some axes, the new code of each old one
Answer = Counts | Floats  # whole numbers, or what is expected of them


class TrueCounts(Protocol):
    """What a question is counted from: the counts of any table, and the number of rows. Private."""

    n_rows: int

    def counts(self, axes: Axes) -> Counts:
        """The true counts over `axes`; over none, the number of rows."""

    def many(self, tables: Sequence[Axes]) -> Iterator[Counts]:
        """The true counts of many tables, in their order, counted when they are asked for."""


class Expected(Protocol):
    """What an expectation is made from: a public number of rows, and made-up rows on the grids of open columns."""

    @property
    def n_rows(self) -> int:
        """How many there are thought to be."""

    @property
    def shape(self) -> Shape:
        """The number of levels of every column."""

    def cells(self, axis: int) -> Floats:
        """The made-up rows in the cells of a column's grid."""


class Question(ABC):
    """Something asked of rows: a vector of whole numbers, which gets noise."""

    @property
    def type(self) -> Literal["query", "tables", "centred"]:
        """What the certificate calls it."""
        return "query"

    @abstractmethod
    def words(self, schema: Schema) -> str:
        """What is asked, for the certificate."""

    @abstractmethod
    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """How far one person moves the answer, at most; `shape` has the number of levels of every column."""

    @abstractmethod
    def of(self, counts: TrueCounts) -> Counts:
        """The true answer. Private: only for a source to add noise to."""

    @abstractmethod
    def expected(self, rows: Expected) -> Floats:
        """What a plan takes the answer to be. Public."""


@dataclass(frozen=True, eq=False)
class Counted(Question):
    """The exact answer to a query: the one question that becomes a measurement of a release.

    Each of a person's rows moves it as far as `Query.moved` says, and in squared L2 all of them together as far as if they lay in one cell.
    """

    query: Query | Combination

    @property
    def type(self) -> Literal["tables", "centred"]:
        """A table; of a centred one the certificate says how far it moves, too."""
        return "centred" if self.query.centred else "tables"

    def words(self, schema: Schema) -> str:
        """The columns of the table, and how many groups there are of each that has some."""
        named = zip(
            schema.attrs_on(self.query.axes), self.query.groups or (None,) * len(self.query.axes), strict=True
        )
        columns = [name if groups is None else f"{name} in {groups.size} groups" for name, groups in named]
        return " × ".join(columns) or "number of rows"

    def sensitivity(self, unit: Unit, shape: Shape) -> Sensitivity:
        """That of a table of counts, or what contrasts make of it."""
        if isinstance(self.query, Query) and not (self.query.centred or self.query.contrasts):
            return Sensitivity.of_tables(unit)
        l1, l2_squared = self.query.moved(shape, unit.relation)
        return Sensitivity(unit.max_rows * l1, unit.max_rows**2 * l2_squared)

    def of(self, counts: TrueCounts) -> Counts:
        """Counted from the table on the query's columns."""
        return np.asarray(self.query.apply(counts.counts(self.query.axes), self.query.axes))

    def expected(self, rows: Expected) -> Floats:
        """Rows that are spread evenly over the cells: a table of one number."""
        shape = self.query.shape(rows.shape)
        if isinstance(self.query, Query) and not (
            self.query.centred or self.query.contrasts or self.query.groups
        ):
            return np.broadcast_to(rows.n_rows / np.prod(shape, dtype=float), shape)
        sizes = [rows.shape[axis] for axis in self.query.axes]
        return np.asarray(self.query.apply(np.full(sizes, rows.n_rows / np.prod(sizes)), self.query.axes))


class Choice(ABC):
    """Candidates of which the exponential mechanism chooses some, by scores that are whole numbers."""

    @abstractmethod
    def words(self, schema: Schema) -> str:
        """What is chosen, for the certificate."""

    @property
    @abstractmethod
    def n_candidates(self) -> int:
        """How many there are."""

    @abstractmethod
    def sensitivity(self, unit: Unit) -> int:
        """How far one person moves any score, at most."""

    @abstractmethod
    def of(self, counts: TrueCounts) -> NDArray[np.int64]:
        """The true score of every candidate. Private."""

    def rounds(self, chooser: Chooser, scores: NDArray[np.int64], scale: float, k: int) -> list[int]:
        """The rounds; they may leave candidates out because of what earlier rounds chose, and for no other reason."""
        return chooser.choose_many(scores, scale, k)


class Source(ABC):
    """What a session asks once a share is taken and the event recorded: nobody else may."""

    kind: str = "pandas"  # the library that held the rows, which rows of a release's joint come back in
    rng: np.random.Generator  # for post-processing, which needs no secrecy
    n_rows: int
    by: str  # by whose word the certificate is

    @abstractmethod
    def cost(self, noise: Noise, moved: Moved) -> float:
        """What an answer with this noise costs, rounded up."""

    @abstractmethod
    def choice_cost(self, scale: float, sensitivity: int, *, zcdp: bool, k: int) -> float:
        """What choosing `k` candidates costs, rounded up."""

    @abstractmethod
    def answer(self, question: Question, noise: Noise) -> Answer:
        """The answer, with noise on every number."""

    @abstractmethod
    def answers(
        self, questions: Sequence[Question], noises: Sequence[Noise], progress: Progress
    ) -> Sequence[Answer]:
        """The answers to many questions; `progress` is told how far the noise of many cells has come."""

    @abstractmethod
    def choose(self, choice: Choice, scale: float, k: int) -> list[int]:
        """The places of `k` candidates, in the order chosen."""

    @abstractmethod
    def named_texts(self, axis: int, chosen: PartitionSelection, most: int) -> tuple[str, ...]:
        """The texts of a column that reach the threshold."""

    @abstractmethod
    def draw_rows(
        self, axes: Axes, prior: Fraction, n_rows: int, possible: NDArray[np.bool_] | None
    ) -> Counts:
        """Rows drawn from the Dirichlet posterior of a table, as counts."""

    @abstractmethod
    def recode(self, old: Schema, new: Schema, codes: Recoding) -> None:
        """Give rows their codes in another schema, by a public look-up for some columns."""

    @abstractmethod
    def statement(self, privacy: Privacy, n_rows: int | None, certificate: Mapping[str, Any]) -> Statement:
        """What was done so far, under which promise; refused where nothing was."""

    def expect(self, tables: Sequence[Axes]) -> None:  # noqa: B027 - most have their counts at hand
        """Tables that will be measured next, one by one: where rows must be counted for them, that is done together."""

    def decide(self, decision: "Decision") -> None:  # noqa: B027 - a run goes on
        """From here on answers decide what is asked: a plan ends here."""

    def close(self, checksum: str, file: str) -> None:  # noqa: B027 - only a ledger keeps it
        """Record that the charge has led to a result."""


@dataclass(frozen=True)
class Decision:
    """That answers decide which of so many tables are measured next; and the distance in rows, public, from which a second round is held."""

    candidates: int
    second: float | None = None


class Session(Spending):
    """Answers about one private table, under one budget that was charged when the session opened: what is left of it, and what took shares of it.

    `kept` is what was measured beside tables, and goes with every release; `remarks` are public, and stand in the certificate.
    """

    def __init__(self, schema: Schema, privacy: Privacy, source: Source, *, may_fail: bool = False) -> None:
        super().__init__(privacy.charge(may_fail or schema.discovers))
        self.schema, self.privacy, self.unit = schema.without_notes(), privacy, privacy.unit
        self.kind, self.rng, self._source = source.kind, source.rng, source
        self.kept, self.remarks = list[Measurement](), dict[str, Any]()
        self.released: Release | None = None

    @property
    def n_rows(self) -> int | None:
        """The number of rows, only where the unit makes it public or the curator declared it so."""
        return self._source.n_rows if self.privacy.tells_n_rows else None

    def noise(self, share: Fraction, moved: Moved | None = None) -> Noise:
        """The noise that a share pays for, on a table of counts unless `moved` says how far an answer moves."""
        return noise_within(self.part(Fraction(1)), share, moved or self.unit)

    # Questions. The order is the contract: take the share, record the event, then ask.

    def ask(self, question: Question, share: Fraction) -> tuple[Answer, Noise]:
        """The answer with noise, and the law of that noise."""
        self.debit(share)
        moved = question.sensitivity(self.unit, self.schema.on_grid().shape)
        noise = self.noise(share, moved)
        words, cost = question.words(self.schema), self._source.cost(noise, moved)
        if question.type == "tables":
            self.record(Event("tables", words, share, cost, tables=1, sets=1))
        else:
            l1, l2_squared = Fraction(moved.l1), Fraction(moved.l2_squared)
            self.record(Event(question.type, words, share, cost, l1=l1, l2_squared=l2_squared))
        return self._source.answer(question, noise), noise

    def measure(self, query: Query, share: Fraction, *, set: int = 0) -> Measurement:
        """The answer to a query with noise on every cell, observed or not."""
        return Measurement(query, *self.ask(Counted(query), share), set)

    def measure_all(self, request: Request, *, progress: Progress = silent) -> tuple[Measurement, ...]:
        """Independent noise on every cell of every table of a request, in every set, as the request has priced it."""
        share = sum(request.shares, Fraction(0)) * request.sets
        self.debit(share)
        questions, shape = [Counted(query) for query in request.queries], self.schema.shape
        priced = [
            (noise, question.sensitivity(self.unit, shape))
            for question, noise in zip(questions, request.noises, strict=True)
        ]
        costs = {pair: self._source.cost(*pair) for pair in set(priced)}
        cost, tables = fsum(costs[pair] for pair in priced) * request.sets, len(questions)
        words = f"{tables} table{'s' if tables > 1 else ''}"
        self.record(Event("tables", words, share, cost, tables=tables, sets=request.sets))
        noises = request.noises * request.sets
        answers = self._source.answers(questions * request.sets, noises, progress)
        return tuple(
            Measurement(questions[place % tables].query, answer, noises[place], place // tables)
            for place, answer in enumerate(answers)
        )

    def count_rows(self, share: Fraction, *, set: int = 0) -> Measurement:
        """The number of rows with noise."""
        return self.measure(Query(()), share, set=set)

    def choose(self, choice: Choice, k: int, share: Fraction) -> list[int]:
        """The places of `k` candidates in the order chosen: rounds of the exponential mechanism, each at a k-th of the share."""
        check_k(k, choice.n_candidates)
        self.debit(share)
        moved = choice.sensitivity(self.unit)
        scale = choice_scale(self.part(share / k), moved)
        cost = self._source.choice_cost(scale, moved, zcdp=self.is_zcdp, k=k)
        words, n = choice.words(self.schema), choice.n_candidates
        self.record(Event("choice", words, share, cost, candidates=n, rounds=k, sensitivity=moved))
        return self._source.choose(choice, scale, k)

    def find_texts(self, axis: int, share: Fraction, delta: Fraction, most: int) -> tuple[str, ...]:
        """The texts of a column that are frequent enough to be named: noise on the count of each, and a threshold that hides lone ones but for `delta`."""
        self.debit(share)
        self.debit_failure(delta)
        chosen = PartitionSelection.calibrated(self.noise(share), delta, self.unit)
        words, cost = f"levels of {self.schema.attrs[axis]}", self._source.cost(chosen.noise, self.unit)
        self.record(Event("levels", words, share, cost, delta=delta, threshold=chosen.threshold))
        return self._source.named_texts(axis, chosen, most)

    def draw_rows(
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
        self.debit(share)
        if delta:
            self.debit_failure(delta)
        words, cost = f"{n_rows} rows from the posterior", float_up(self.part(share).amount)
        self.record(Event("posterior", words, share, cost, n_rows=n_rows, delta=delta or None))
        return self._source.draw_rows(tuple(range(len(self.schema.attrs))), prior, n_rows, possible)

    # What is not asked.

    def expect(self, queries: Sequence[Query]) -> None:
        """Announce what will be measured next, one by one."""
        self._source.expect([query.axes for query in queries])

    def decide(self, decision: Decision) -> None:
        """Announce that from here on answers decide what is asked."""
        self._source.decide(decision)

    def close_schema(self, schema: Schema, codes: Recoding) -> None:
        """Go on with a closed schema: rows get new codes by a public look-up.

        The schema and the look-up must follow from public facts and noisy answers alone. Texts of columns whose levels were found get the
        code of their level here.
        """
        self._source.recode(self.schema, schema, codes)
        self.schema = schema

    def set_aside(self, share: Fraction) -> None:
        """Take a share for what is planned by itself, and rescale."""
        self.debit(share)
        self.rescale()

    # What comes of it.

    def release(self, tables: Sequence[Measurement]) -> Release:
        """What was measured so far, with its statement; the last one is kept as `released`."""
        self.released = Release(self.schema, (*tables, *self.kept), self.statement(), kind=self.kind)
        return self.released

    def statement(self) -> Statement:
        """What was done so far, under which promise."""
        certificate = self.certificate(self._source.by, self.remarks)
        return self._source.statement(self.privacy, self.n_rows, certificate)

    def close(self, checksum: str, *, file: str = "") -> None:
        """Record in the ledger that the charge has led to a result, and the name of its file; nothing more can be asked."""
        self.end()
        self._source.close(checksum, file)
