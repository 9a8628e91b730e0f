"""How a release was made: privacy facts as data, for people and for programs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from dpcipher.privacy.budget import Budget
from dpcipher.privacy.unit import Unit

Status = Literal["certified", "unrecorded", "declared", "NOT PRIVATE"]

_MEANING: Mapping[Status, str] = {
    "certified": "noise by OpenDP, budget charged to a ledger before it was drawn",
    "unrecorded": "noise by OpenDP, but no ledger recorded the charge: the curator must keep count of the budget",
    "declared": "declared by their publisher, not certified",
    "NOT PRIVATE": "noise from a seeded generator, for experiments only: NOT PRIVATE, never to be published",
}


@dataclass(frozen=True)
class Statement:
    """What was done to the private rows, under which promise.

    `unit`, `budget` and `certificate` are plain values, as they stand in the file: `unit` has `relation` and `max_rows`; `budget` has
    the exact fractions charged; `certificate` what the sampler's own privacy map says of each table and of the whole. `n_rows` is the number of
    rows only where it is public.
    """

    status: Status
    n_rows: int | None = None
    unit: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)
    ledger: Mapping[str, Any] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    created: str = ""

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
        """Read plain values back; unknown keys are refused by the constructor."""
        return cls(**values)
