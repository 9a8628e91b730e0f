"""What every synthesizer is: parameters checked at birth, one session to the private rows, and a joint to sample from."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from dpcipher.curator.count_source import CountSource, RowCounts, TableCounts
from dpcipher.curator.session import Session
from dpcipher.curator.terms import Person, Terms
from dpcipher.errors import DpcipherError, ParameterError
from dpcipher.joint.joint import Joint
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.draws import Draws
from dpcipher.privacy.ledger import Ledger
from dpcipher.privacy.mechanism import mechanism_for
from dpcipher.privacy.unit import Unit
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.schema.workload import Workload

Attrs = tuple[str, ...]
_PARTS = 2**16


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves behind: one joint for each set, and the statement of what was spent."""

    joints: tuple[Joint, ...]
    statement: Statement


@dataclass(frozen=True)
class Synthesizer(ABC):
    """A whole method, from private rows to synthetic ones, under one budget.

    `epsilon` alone is pure differential privacy; with `delta` the noise is Gaussian. `unit` and `max_rows` say who is protected,
    `person` names the column that enforces `max_rows`, and `ledger` is charged with the whole budget before anything is drawn. It must exist,
    unless `create=True` makes one that is called `name` and whose limit is this budget.
    """

    title: ClassVar[str]

    epsilon: float
    _: KW_ONLY
    unit: str | Unit
    delta: float | None = None
    max_rows: int = 1
    person: str | None = None
    missing_person: Literal["refuse", "drop"] = "refuse"
    ledger: str | Path | Ledger | None = None
    name: str = ""
    create: bool = False

    def __post_init__(self) -> None:
        self.budget  # noqa: B018 - each is refused here or never
        self.protects  # noqa: B018
        self.terms  # noqa: B018
        # A method divides its budget; what cannot be divided is refused here, before anything is charged.
        mechanism_for(self.budget.split([1, _PARTS - 1])[0], self.protects)
        self._check()

    @cached_property
    def budget(self) -> Budget:
        """The whole budget, exactly."""
        return Budget.parse(epsilon=self.epsilon, delta=self.delta)

    @cached_property
    def protects(self) -> Unit:
        """Who is protected."""
        return Unit.parse(self.unit, self.max_rows)

    @cached_property
    def terms(self) -> Terms:
        """The promise, whom it protects, and which ledger pays."""
        unit, person = self.protects, None
        if self.person is not None:
            person = Person(self.person, unit.max_rows, self.missing_person)
        return Terms(self.budget, unit, person, ledger=self.ledger, name=self.name, create=self.create)

    @final
    def fit(self, data: Any, schema: Schema) -> Self:
        """Learn from private rows: charge the whole budget, then ask through the session. Noise cannot be seeded."""
        self.check_schema(schema)
        what = {"method": type(self).__name__}
        return self._through(Session.open(data, schema, self.terms, what=what))

    @final
    def fit_counts(
        self,
        counts: NDArray[np.integer[Any]] | CountSource,
        schema: Schema,
        *,
        draws: Draws,
        codes: bool = False,
    ) -> Self:
        """Learn from the full table of counts (or from coded rows, with `codes`): the seam for experiments, no ledger involved."""
        self.check_schema(schema)
        truth = counts if isinstance(counts, CountSource) else _truth(counts, schema, codes)
        return self._through(Session(truth, schema, Terms(self.budget, self.protects), draws=draws))

    def sample(self, n_rows: int | None = None, *, seed: int | None = None, independent: bool = False) -> Any:
        """Synthetic rows, as the kind of table that went in; of a method with m sets, a list of m tables.

        `n_rows` defaults to the noisy or public number of rows. `seed` repeats the draw, which costs no privacy.
        """
        seeds: Sequence[Any] = (
            [seed] if len(self._fitted.joints) == 1 else _spawn(seed, len(self._fitted.joints))
        )
        rows = [
            joint.sample(n_rows, seed=one, independent=independent)
            for joint, one in zip(self._fitted.joints, seeds, strict=True)
        ]
        return rows[0] if len(rows) == 1 else rows

    @property
    def joint(self) -> Joint | list[Joint]:
        """The fitted joint; of a method with m sets, a list of m."""
        joints = self._fitted.joints
        return joints[0] if len(joints) == 1 else list(joints)

    @property
    def statement(self) -> Statement:
        """What was spent, on what, under which promise."""
        return self._fitted.statement

    def sized(self, n_rows: int) -> "Synthesizer":
        """The same method for about so many synthetic rows; only a method that fixes their number at construction differs."""
        return self

    def check_schema(self, schema: Schema) -> None:  # noqa: B027 - most methods take any schema
        """Refuse a schema that is too large for the method, before anything is read."""

    def _check(self) -> None:  # noqa: B027 - most methods have no further parameters
        """Refuse bad parameters of the method itself."""

    @abstractmethod
    def _learn(self, session: Session) -> Sequence[Joint]:
        """The method: ask through the session, and return one joint for each set."""

    def _through(self, session: Session) -> Self:
        joints = tuple(self._learn(session))
        # The parameters are frozen; what was learned is not one of them.
        object.__setattr__(self, "_result", Fitted(joints, session.statement()))
        session.close(_checksum(joints))
        # Last, because a warning may be turned into an error: by now the result is there and recorded.
        for joint in joints:
            joint.health.warn()
        return self

    @property
    def _fitted(self) -> Fitted:
        result = self.__dict__.get("_result")
        if not isinstance(result, Fitted):
            raise DpcipherError(
                f"{type(self).__name__} has not learned anything yet; call fit(data, schema) first"
            )
        return result


def tables_of(schema: Schema, workload: int | Sequence[Sequence[str]]) -> Workload:
    """The workload of a method; an order beyond the number of columns means the full table."""
    if isinstance(workload, int) and not isinstance(workload, bool):
        return Workload.parse(schema, min(workload, len(schema.attrs)))
    return Workload.parse(schema, workload)


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


def _truth(counts: NDArray[np.integer[Any]], schema: Schema, codes: bool) -> CountSource:
    if codes:
        return RowCounts(np.asarray(counts, dtype=np.int32), schema.shape)
    if counts.shape != schema.shape:
        raise ParameterError(
            f"counts of shape {counts.shape} must be the full table, of shape {schema.shape}"
        )
    return TableCounts(np.asarray(counts, dtype=np.int64))


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
