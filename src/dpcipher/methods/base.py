"""What every synthesizer is: parameters checked at birth, one session to the private rows, and a joint to sample from."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from dpcipher.drawing.card import Card, Shown
from dpcipher.drawing.curator_only import SEEDED
from dpcipher.drawing.plot import Drawable, Plot, plot
from dpcipher.errors import DpcipherWarning, ParameterError, WorkloadError
from dpcipher.joint.joint import Joint
from dpcipher.methods import shown
from dpcipher.methods.outcome import require_possible
from dpcipher.privacy.budget import Budget, noise_for
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Account, Ledger
from dpcipher.privacy.terms import Cap, Privacy, Unit
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.request.request import after_finding
from dpcipher.request.session import Session
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload
from dpcipher.selection.edges import PlannedTables
from dpcipher.selection.find import check_finding, find
from dpcipher.tables.domain import Axes

if TYPE_CHECKING:
    from dpcipher.curator.counts import CountSource

_PARTS = 2**16


@dataclass(frozen=True, repr=False)
class Fitted(Shown, Drawable):
    """What a fit leaves behind: one joint for each set, what was spent, and the release where noisy tables were measured."""

    joints: tuple[Joint, ...]
    statement: Statement
    release: Release | None = None

    @property
    def stamp(self) -> str:
        """Empty, unless the noise protects nobody."""
        return "" if self.statement.may_be_released else SEEDED

    def _card(self) -> Card:
        return shown.card(self)

    def _draw(self, columns: tuple[str, ...] | None) -> Plot:
        return plot(self.joints[0], columns)

    @property
    def joint(self) -> Joint | list[Joint]:
        """The fitted joint; of a method with m sets, a list of m."""
        return self.joints[0] if len(self.joints) == 1 else list(self.joints)

    def sample(self, n_rows: int | None = None, *, seed: int | None = None, independent: bool = False) -> Any:
        """Synthetic rows, as the kind of table that went in; of a method with m sets, a list of m tables.

        `n_rows` defaults to the noisy or public number of rows. `seed` repeats the draw, which costs no privacy.
        """
        seeds: Sequence[Any] = [seed] if len(self.joints) == 1 else _spawn(seed, len(self.joints))
        tables = [
            joint.sample(n_rows, seed=part, independent=independent)
            for joint, part in zip(self.joints, seeds, strict=True)
        ]
        return tables[0] if len(tables) == 1 else tables


@dataclass(frozen=True)
class Synthesizer(ABC):
    """A whole method, from private rows to synthetic ones, under one budget.

    `epsilon` alone is pure differential privacy; with `delta` the noise is Gaussian. `unit` and `max_rows` say who is protected,
    `person` names the column that enforces `max_rows`, `n_rows_public` declares that the number of rows is no secret, and `ledger` is charged with
    the whole budget before anything is drawn. It must exist, unless `create=True` makes one that is called `name` and whose limit is this budget.
    """

    title: ClassVar[str]
    needs_budget: ClassVar[bool] = True

    epsilon: float | None = None
    _: KW_ONLY
    unit: str | Unit
    delta: float | None = None
    max_rows: int = 1
    person: str | None = None
    missing_person: Literal["refuse", "drop"] = "refuse"
    n_rows_public: bool = False
    ledger: str | Path | Ledger | None = None
    name: str = ""
    create: bool = False

    def __post_init__(self) -> None:
        self.protects, self._account  # noqa: B018 - each is refused here or never
        self._check()
        if self._asks_nothing:
            return
        if self._needs_n_rows:
            self.privacy.require_n_rows()
        # A method divides its budget; what cannot be divided is refused here, before anything is charged.
        noise_for(self.privacy.budget.share(Fraction(1, _PARTS)), self.protects)

    @cached_property
    def budget(self) -> Budget:
        """The whole budget, exactly."""
        return Budget.parse(epsilon=self.epsilon, delta=self.delta)

    @cached_property
    def protects(self) -> Unit:
        """Who is protected."""
        return Unit.parse(self.unit, self.max_rows)

    @cached_property
    def privacy(self) -> Privacy:
        """What is promised to whom."""
        cap = None if self.person is None else Cap(self.person, self.missing_person)
        return Privacy(self.budget, self.protects, cap, self.n_rows_public)

    @cached_property
    def _account(self) -> Account:
        return Account(self.ledger, self.name, self.create)

    @final
    def fit(self, data: Any, schema: Schema) -> Fitted:
        """Learn from private rows: charge the whole budget, then ask through the session. Noise cannot be seeded."""
        self._refuse(schema)
        schema.require_signed()
        if self._asks_nothing and schema.is_open:
            raise ParameterError(
                "epsilon (None) must be given where bins are open (bins: auto): finding them costs budget"
            )
        if self._asks_nothing:
            return Fitted((self._blind(schema),), _nothing_asked(self.protects))
        from dpcipher.curator.measure import open_session

        opened = open_session(
            data,
            schema,
            self.privacy,
            self._account,
            purpose={"method": type(self).__name__},
            may_fail=self._may_fail,
            needs_n_rows=self._needs_n_rows,
            foreseen=self._foreseen(schema),
        )
        return self._through(opened)

    @final
    def fit_counts(
        self,
        counts: "NDArray[np.integer[Any]] | CountSource",
        schema: Schema,
        *,
        draws: Draws,
        codes: bool = False,
    ) -> Fitted:
        """Learn from the full table of counts (or from coded rows, with `codes`): the seam for experiments, no ledger involved."""
        from dpcipher.curator.answers import PrivateRows
        from dpcipher.curator.counts import CountSource, RowCounts, TableCounts

        self._refuse(schema)
        shape = schema.on_grid().shape
        if codes:
            counts = RowCounts(np.asarray(counts, dtype=np.int32), shape)
        elif not isinstance(counts, CountSource):
            if counts.shape != shape:
                raise ParameterError(
                    f"counts of shape {counts.shape} must be the full table, of shape {shape}"
                )
            counts = TableCounts(np.asarray(counts, dtype=np.int64))
        privacy = self.privacy
        if privacy.cap is not None:  # rows that are counted were all let in; how many were not stays secret
            privacy = replace(privacy, cap=None, every_row_counts=False)
        return self._through(Session(schema, privacy, PrivateRows(counts, draws), may_fail=self._may_fail))

    def sized(self, n_rows: int) -> "Synthesizer":
        """The same method for about so many synthetic rows; only a method that fixes their number at construction differs."""
        return self

    def check_schema(self, schema: Schema) -> None:  # noqa: B027 - most methods take any schema
        """Refuse a schema that is too large for the method, before anything is read."""

    def _check(self) -> None:  # noqa: B027 - most methods have no further parameters
        """Refuse bad parameters of the method itself."""

    @property
    def _may_fail(self) -> bool:
        """Whether the method itself asks what fails with a small probability, for which its charge then has a delta."""
        return False

    @property
    def _needs_n_rows(self) -> bool:
        """Whether the method asks what has no bounded sensitivity while the number of rows is private."""
        return False

    @property
    def _asks_nothing(self) -> bool:
        """Whether no budget was given to a method that can do without: then no row is read."""
        return self.epsilon is None and not self.needs_budget

    def _blind(self, schema: Schema) -> Joint:
        """The joint of a method that asks nothing."""
        raise ParameterError(f"{type(self).__name__} needs a budget; try epsilon=1.0")

    def _finest(self, schema: Schema) -> Fraction:
        """The least share of the budget that a question may get, divided by how far one person moves its answer, in tables of counts."""
        return Fraction(1, _PARTS)

    def _refuse(self, schema: Schema) -> None:
        """Refuse whatever can be judged before anything is read: later the budget is spent."""
        require_possible(schema)
        self.check_schema(schema)
        if self._asks_nothing:
            if schema.discovers:
                raise ParameterError(
                    "epsilon (None) must be given where levels are found in the rows (levels: discover); give epsilon and delta, or declare them"
                )
            return
        if schema.is_open:
            check_finding(schema, self.privacy, self._coarse_sets)
        finest = min(Fraction(1, _PARTS), self._finest(schema))
        noise_for(after_finding(self.budget, schema).share(finest), self.protects)

    def _foreseen(self, schema: Schema) -> Sequence[Axes] | None:
        """All tables that the method may ask for, where they are known beforehand and few: then no row is kept."""
        return None

    def _planned_tables(self, schema: Schema) -> PlannedTables:
        """The tables that bins are found for: as many pairs as there are columns, unless the method knows better."""
        return PlannedTables(2, len(schema.attrs))

    @property
    def _coarse_sets(self) -> int:
        """How many sets of tables are made to agree with coarse counts of found bins: none, unless the method reconciles its tables."""
        return 0

    @abstractmethod
    def _learn(self, session: Session) -> Sequence[Joint]:
        """The method: ask through the session, and return one joint for each set."""

    def _through(self, session: Session) -> Fitted:
        find(session, self._planned_tables(session.schema), sets=self._coarse_sets)
        joints = tuple(self._learn(session))
        fitted = Fitted(joints, session.statement(), session.released)
        session.close(_checksum(joints))
        try:
            for joint in joints:
                joint.health.warn()
        except DpcipherWarning as warning:  # turned into an error: what was paid for must not be lost
            warning.fitted = fitted  # type: ignore[attr-defined]
            raise
        return fitted


def _nothing_asked(unit: Unit) -> Statement:
    """The statement of a fit that read no row and drew no noise: its certificate has no events and costs nothing."""
    certificate = {"measure": "epsilon", "events": [], "total": 0.0, "by": "nothing was asked of the rows"}
    return Statement(status="unrecorded", unit=unit.as_dict(), certificate=certificate)


def tables_of(schema: Schema, workload: int | Sequence[Sequence[str]]) -> Workload:
    """The workload of a method; an order beyond the number of columns means the full table. Few methods take tables with levels in groups."""
    if isinstance(workload, int) and not isinstance(workload, bool):
        return Workload.parse(schema, min(workload, len(schema.attrs)))
    parsed = Workload.parse(schema, workload)
    if any(query.groups for query in parsed.queries):
        raise WorkloadError(
            "workload must hold tables with every level here; Cipher and measure take dc.Grouped tables"
        )
    return parsed


def check_whole(name: str, value: object, least: int, example: int) -> None:
    """Refuse a parameter that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(
            f"{name} ({value!r}) must be a whole number of at least {least}; try {name}={example}"
        )


def check_between(name: str, value: object, low: float, high: float, example: float) -> None:
    """Refuse a parameter that is not a number strictly between two others."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not low < float(value) < high:  # type: ignore[arg-type]
        raise ParameterError(
            f"{name} ({value!r}) must be a number between {low} and {high}; try {name}={example}"
        )


def _checksum(joints: Sequence[Joint]) -> str:
    """SHA-256 over the fitted joints, for the ledger."""
    digest = hashlib.sha256()
    for joint in joints:
        for name, values in sorted(joint.core.to_arrays().items()):
            digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _spawn(seed: int | None, count: int) -> list[int | None]:
    """A seed for each set, from one."""
    if seed is None:
        return [None] * count
    return [int(number) for number in np.random.SeedSequence(seed).generate_state(count, np.uint64)]
