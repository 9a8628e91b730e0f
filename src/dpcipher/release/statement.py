"""How a release was made: privacy facts as data, for people and for programs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, Self

from dpcipher.errors import DpcipherError, ReleaseError, did_you_mean
from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit
from dpcipher.release.certificate import check_certificate
from dpcipher.schema.plain import check_plain

Status = Literal["certified", "unrecorded", "declared", "NOT PRIVATE"]

_MEANING: Mapping[Status, str] = {
    "certified": "noise by OpenDP, budget charged to a ledger before it was drawn",
    "unrecorded": "noise by OpenDP, but no ledger recorded the charge: the curator must keep count of the budget",
    "declared": "declared by their publisher, not certified",
    "NOT PRIVATE": "noise from a seeded generator, for experiments only: NOT PRIVATE, never to be published",
}

MOST_ROWS = 2**53  # below it every count is a float of its own
_MOST_MAX_ROWS = 2**63
_MOST_TEXTS, _LONGEST_TEXT = 64, 1_000


@dataclass(frozen=True)
class Statement:
    """What was done to the private rows, under which promise.

    `unit`, `budget` and `certificate` are plain values, as they stand in the file: `unit` has `relation` and `max_rows`; `budget` has
    the exact fractions charged; `certificate` what the sampler's own privacy map says of each table and of the whole. `n_rows` is the number of
    rows only where it is public. All of it is checked at birth, since a file may say anything.
    """

    status: Status
    n_rows: int | None = None
    unit: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    ledger: Mapping[str, Any] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    created: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.status, str) or self.status not in _MEANING:
            raise ReleaseError(f"status ({self.status!r:.60}) must be one of {', '.join(_MEANING)}")
        _check_rows(self.n_rows)
        for name in ("unit", "budget", "certificate", "ledger", "software"):
            if not isinstance(getattr(self, name), Mapping):
                raise ReleaseError(
                    f"{name} ({getattr(self, name)!r:.60}) must be a mapping; leave it empty for none"
                )
        _check_unit(self.unit)
        _check_budget(self.budget)
        check_certificate(self.certificate, finite=self.may_be_released)
        _check_texts("ledger", self.ledger)
        _check_texts("software", self.software)
        _check_created(self.created)

    @property
    def may_be_released(self) -> bool:
        """Whether the noise protects anybody."""
        return self.status != "NOT PRIVATE"

    @property
    def meaning(self) -> str:
        """The status in words."""
        return _MEANING[self.status]

    @property
    def tells_presence(self) -> bool:
        """Whether the exact number of rows is published although neighbours differ in it."""
        return (
            self.status != "declared"
            and self.unit.get("relation") == "add-remove"
            and self.n_rows is not None
        )

    @property
    def protection(self) -> str:
        """Who is protected, in a sentence."""
        if not self.unit:
            return "Not stated by the publisher."
        unit = Unit.parse(self.unit["relation"], self.unit["max_rows"])
        return unit.describe(n_rows_told=self.n_rows is not None)

    @property
    def guarantee(self) -> Budget | None:
        """What that protection is worth: the budget, or twice that where presence is told; None where no budget is stated."""
        if not self.budget:
            return None
        budget = Budget.from_dict(dict(self.budget))
        return budget.doubled() if self.tells_presence else budget

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read plain values back; what is unknown, and what is wrong, is a `ReleaseError`."""
        known = [one.name for one in fields(cls)]
        if not isinstance(values, Mapping) or "status" not in values:
            raise ReleaseError("a statement must be a mapping with a status")
        for key in values:
            if key not in known:
                raise ReleaseError(f"statement: unknown key {key!r:.60}{did_you_mean(str(key), known)}")
        return cls(**values)


def _check_rows(n_rows: object) -> None:
    if n_rows is None:
        return
    if isinstance(n_rows, bool) or not isinstance(n_rows, int) or not 0 <= n_rows < MOST_ROWS:
        raise ReleaseError(
            f"n_rows ({n_rows!r:.60}) must be a whole number from 0 to 2**53, or None where it is not public"
        )


def _check_unit(unit: Mapping[str, Any]) -> None:
    if not unit:
        return
    if set(unit) != {"relation", "max_rows"}:
        raise ReleaseError("unit must hold relation and max_rows, or nothing")
    try:
        parsed = Unit.parse(unit["relation"], unit["max_rows"])
    except DpcipherError as wrong:
        raise ReleaseError(str(wrong)) from None
    if parsed.max_rows >= _MOST_MAX_ROWS:
        raise ReleaseError(f"max_rows ({parsed.max_rows:.3g}) must be below 2**63")


def _check_budget(budget: Mapping[str, Any]) -> None:
    if not budget:
        return
    try:
        Budget.from_dict(budget)
    except DpcipherError as wrong:
        raise ReleaseError(f"budget: {wrong}") from None


def _check_texts(name: str, values: Mapping[str, Any]) -> None:
    """A few texts of a line each: people read them on the certificate."""
    texts = [*values, *values.values()]
    if len(values) > _MOST_TEXTS or any(
        not isinstance(text, str) or len(text) > _LONGEST_TEXT for text in texts
    ):
        raise ReleaseError(
            f"{name} must hold at most {_MOST_TEXTS} texts by name, each of at most {_LONGEST_TEXT} characters"
        )
    try:
        check_plain(texts)
    except ValueError as wrong:
        raise ReleaseError(f"{name}: {wrong}") from None


def _check_created(created: object) -> None:
    try:
        if created != "":
            datetime.fromisoformat(created[:_LONGEST_TEXT])  # type: ignore[index]
    except (TypeError, ValueError):
        raise ReleaseError(
            f"created ({created!r:.60}) must be a date such as 2024-01-31, or empty where it is not known"
        ) from None
