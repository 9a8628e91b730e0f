"""How a release was made: privacy facts as data, for people and for programs. They are checked, since a file may say anything.

The certificate is what the sampler says that each answer cost. It holds `events`, each with its `type`, `what` was asked in words, the
`share` of the budget it took and its `cost`, and by its type a few facts more; the `measure` (epsilon or rho), the `total`, and `by` whom it
is certified. What else was remarked, such as the `selection`, stands beside them.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict, get_type_hints

from dpcipher.errors import DpcipherError, ReleaseError, did_you_mean
from dpcipher.files.codec import Rule, decode
from dpcipher.files.json import check_plain
from dpcipher.privacy.budget import Budget, read_fraction
from dpcipher.privacy.terms import Relation, Unit

Status = Literal["certified", "unrecorded", "declared", "NOT PRIVATE"]

_MEANING: Mapping[Status, str] = {
    "certified": "noise by OpenDP, budget charged to a ledger before it was drawn",
    "unrecorded": "noise by OpenDP, but no ledger recorded the charge: the curator must keep count of the budget",
    "declared": "declared by their publisher, not certified",
    "NOT PRIVATE": "noise from a seeded generator, for experiments only: NOT PRIVATE, never to be published",
}

_MAY_BE_EMPTY = ("unit", "budget", "certificate")
MOST_ROWS = 2**53  # below it every count is a float of its own
_MOST_TEXTS, _LONGEST_TEXT = 64, 1_000
_LONGEST_SHARE = 10_000  # a sum of exact shares may have many digits; it is shown, never computed with


def _is_date(text: str) -> bool:
    """Whether a text is a date, or a date and a time."""
    try:
        return bool(datetime.fromisoformat(text[:_LONGEST_TEXT]))
    except ValueError:
        return False


def _is_delta(text: str) -> bool:
    """Unlike a share it is computed with, so that it is read as budgets are."""
    try:
        return read_fraction("delta", text) < 1
    except DpcipherError:
        return False


_Whole = Annotated[int, Rule("must be a whole number, 0 or above", lambda number: 0 <= number < MOST_ROWS)]
_Cost = Annotated[float, Rule("must be a number, 0 or above", lambda cost: cost >= 0)]
_Share = Annotated[
    str,
    Rule(
        "must be a fraction such as '1/20'",
        lambda text: len(text) <= _LONGEST_SHARE and re.fullmatch(r"[0-9]+(/[0-9]+)?", text),
    ),
]
_Delta = Annotated[str, Rule("must be a fraction such as '1/2000000', above 0 and below 1", _is_delta)]
_Date = Annotated[
    str,
    Rule(
        "must be a date such as 2024-01-31, or empty where it is not known",
        lambda text: text == "" or _is_date(text),
    ),
]
_Texts = Annotated[
    dict[str, str],
    Rule(
        f"must hold at most {_MOST_TEXTS} texts by name, each of at most {_LONGEST_TEXT} characters",
        lambda texts: (
            len(texts) <= _MOST_TEXTS
            and all(len(text) <= _LONGEST_TEXT for text in (*texts, *texts.values()))
        ),
    ),
]


@dataclass(frozen=True)
class _Unit:
    """Who is protected; `cap` and `missing_person` only where rows of persons were limited."""

    relation: Relation
    max_rows: Annotated[
        int, Rule("must be a whole number from 1, below 2**63", lambda rows: 0 < rows < 2**63)
    ]
    cap: Literal["enforced", "stated"] = "stated"
    missing_person: Literal["drop"] = "drop"


class _Event(TypedDict):
    """What one answer cost. Other facts may stand beside these."""

    what: str
    share: _Share
    cost: _Cost
    type: NotRequired[str]
    l1: NotRequired[str]
    l2_squared: NotRequired[str]
    delta: NotRequired[_Delta]
    tables: NotRequired[_Whole]
    sets: NotRequired[_Whole]
    candidates: NotRequired[_Whole]
    rounds: NotRequired[_Whole]
    sensitivity: NotRequired[_Whole]
    n_rows: NotRequired[_Whole]
    threshold: NotRequired[_Whole]


class _Selection(TypedDict):
    """How tables were chosen: rounds, candidates and tables looked at, the share that it took, and what it was for."""

    rounds: _Whole
    candidates: _Whole
    shortlist: _Whole
    share: _Share
    predict: NotRequired[str]


class _Range(TypedDict):
    """What the search for a column's range found."""

    rows: _Whole
    guess: bool


class _Bins(TypedDict):
    """How many bins were found in which columns, and the share that the search took."""

    share: _Share
    found: dict[str, _Whole]
    ranges: NotRequired[dict[str, _Range]]


class _Certificate(TypedDict):
    """What the sampler's own privacy map says of each answer and of the whole. Other facts may stand beside these."""

    measure: Literal["epsilon", "rho"]
    total: _Cost
    by: str
    events: NotRequired[list[_Event]]
    share: NotRequired[_Share]
    delta: NotRequired[_Delta]
    selection: NotRequired[_Selection | None]
    bins: NotRequired[_Bins]
    levels: NotRequired[dict[str, _Whole]]


class _Facts(TypedDict):
    """What each fact of a statement must be; unit, budget and certificate may be empty, and then say nothing."""

    status: Status
    n_rows: _Whole | None
    unit: _Unit
    budget: dict[str, str]
    certificate: _Certificate
    ledger: _Texts
    software: _Texts
    created: _Date


@dataclass(frozen=True)
class Statement:
    """What was done to the private rows, under which promise.

    `unit`, `budget` and `certificate` are plain values, as they stand in the file: `unit` has `relation` and `max_rows`, and `cap`: "enforced" where a
    column said whose row each is, "stated" where it is the curator's word (and `missing_person`: "drop", where rows of nobody were left out); `budget` has
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

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(_Facts, include_extras=True).items():
            value = getattr(self, name)
            try:
                check_plain(value)
                if value or name not in _MAY_BE_EMPTY or not isinstance(value, Mapping):
                    decode(kind, value, name)
            except ValueError as wrong:
                why = str(wrong) if str(wrong).startswith(name) else f"{name}: {wrong}"
                raise ReleaseError(f"statement: {why}") from None
        certificate = self.certificate
        costs = [certificate.get("total", 0), *(event["cost"] for event in certificate.get("events", ()))]
        if self.may_be_released and max(costs) > MOST_ROWS:
            raise ReleaseError(
                "statement: certificate.total and every cost must be at most 2**53, as noise is private"
            )
        try:
            if self.budget:
                budget = Budget.from_dict(self.budget)
                _ = budget.failing() if self.may_fail else budget
        except DpcipherError as wrong:
            raise ReleaseError(f"budget: {wrong}") from None

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
        relation = self.unit.get("relation")
        return self.status != "declared" and relation == "add-remove" and self.n_rows is not None

    @property
    def protection(self) -> str:
        """Who is protected, in a sentence."""
        if not self.unit:
            return "Not stated by the publisher."
        unit = Unit.parse(self.unit["relation"], self.unit["max_rows"])
        on_trust = self.unit.get("cap") == "stated" and unit.max_rows > 1
        word = (
            " That nobody has more is the curator's word: no column was named that says whose row each is."
            if on_trust
            else ""
        )
        return unit.describe(n_rows_told=self.n_rows is not None) + word

    @property
    def counted(self) -> str:
        """Of which rows the counts are, in a phrase; empty where none was left out. Whether any was, and how many, nobody is told."""
        if self.unit.get("cap") != "enforced":
            return ""
        most = self.unit["max_rows"]
        named = ", without rows that name nobody" if self.unit.get("missing_person") == "drop" else ""
        return f"of at most {most:,} row{'s' if most > 1 else ''} a person{named}"

    @property
    def scope(self) -> str:
        """The same in a sentence, with what it means for margins."""
        if not self.counted:
            return ""
        return f"Counts are {self.counted}: rows beyond that are in no count, and no margin covers them."

    @property
    def guarantee(self) -> Budget | None:
        """What that protection is worth: the budget, or twice that where presence is told; None where no budget is stated."""
        if not self.budget:
            return None
        budget = Budget.from_dict(dict(self.budget))
        if not self.tells_presence:
            return budget
        return budget.failing().doubled() if self.may_fail else budget.doubled()

    @property
    def may_fail(self) -> bool:
        """Whether an answer was of the kind that fails with a small probability, its `delta`."""
        return any("delta" in event for event in self.certificate.get("events", ()))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read plain values back; what is unknown, and what is wrong, is a `ReleaseError`."""
        known = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or "status" not in values:
            raise ReleaseError("a statement must be a mapping with a status")
        for key in values:
            if key not in known:
                raise ReleaseError(f"statement: unknown key {key!r:.60}{did_you_mean(str(key), known)}")
        return cls(**values)


@cache
def software() -> dict[str, str]:
    """What a release of this installation is made with."""
    return {name: _version(name) for name in ("dpcipher", "opendp")}


def _version(name: str) -> str:
    """The version of a package; it may run from a folder without being installed, which must not fail after the charge."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
