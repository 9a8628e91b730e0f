"""How a release was made: privacy facts as data, for people and for programs. They are checked, since a file may say anything.

The certificate is what the sampler says that each answer cost. It holds `events`, each with its `type`, `what` was asked in words, the
`share` of the budget it took and its `cost`, and by its type a few facts more; the `measure` (epsilon or rho), the `total`, and `by` whom it
is certified. What else was remarked, such as the `selection`, stands beside them.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Self

from dpcipher.errors import DpcipherError, ReleaseError, did_you_mean
from dpcipher.privacy.budget import Budget, read_fraction
from dpcipher.privacy.unit import Unit
from dpcipher.schema.plain import check_plain

Status = Literal["certified", "unrecorded", "declared", "NOT PRIVATE"]

_MEANING: Mapping[Status, str] = {
    "certified": "noise by OpenDP, budget charged to a ledger before it was drawn",
    "unrecorded": "noise by OpenDP, but no ledger recorded the charge: the curator must keep count of the budget",
    "declared": "declared by their publisher, not certified",
    "NOT PRIVATE": "noise from a seeded generator, for experiments only: NOT PRIVATE, never to be published",
}

_CAP: Mapping[str, tuple[str, ...]] = {"cap": ("enforced", "stated"), "missing_person": ("drop",)}
MOST_ROWS = 2**53  # below it every count is a float of its own
_MOST_MAX_ROWS = 2**63
_MOST_TEXTS, _LONGEST_TEXT = 64, 1_000
_SHARE = re.compile(r"[0-9]+(/[0-9]+)?")
_LONGEST_SHARE = 10_000  # a sum of exact shares may have many digits; it is shown, never computed with
_EVENT_TEXTS = {"what", "type", "l1", "l2_squared"}
_EVENT_NUMBERS = {"tables", "sets", "candidates", "rounds", "sensitivity", "n_rows", "threshold"}


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
        _check_certificate(self.certificate, finite=self.may_be_released)
        _check_failing(self.budget, self.may_fail)
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


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_ROWS


def _check_plain(name: str, value: object) -> None:
    try:
        check_plain(value)
    except ValueError as wrong:
        raise ReleaseError(f"{name}: {wrong}") from None


def _check_rows(n_rows: object) -> None:
    if n_rows is not None and not _is_number(n_rows):
        raise ReleaseError(
            f"n_rows ({n_rows!r:.60}) must be a whole number from 0 to 2**53, or None where it is not public"
        )


def _check_unit(unit: Mapping[str, Any]) -> None:
    if not unit:
        return
    if not {"relation", "max_rows"} <= set(unit) <= {"relation", "max_rows", *_CAP}:
        raise ReleaseError("unit must hold relation and max_rows, perhaps cap and missing_person, or nothing")
    for name in set(unit) & set(_CAP):
        if not isinstance(unit[name], str) or unit[name] not in _CAP[name]:
            raise ReleaseError(f"unit {name} ({unit[name]!r:.60}) must be {' or '.join(_CAP[name])}")
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


def _check_failing(budget: Mapping[str, Any], may_fail: bool) -> None:
    """Refuse an answer that may fail under a promise that allows for no failure."""
    if budget and may_fail:
        try:
            Budget.from_dict(budget).failing()
        except DpcipherError as wrong:
            raise ReleaseError(f"budget: {wrong}") from None


def _check_texts(name: str, values: Mapping[str, Any]) -> None:
    """A few texts of a line each: people read them on the certificate."""
    texts = [*values, *values.values()]
    wrong = any(not isinstance(text, str) or len(text) > _LONGEST_TEXT for text in texts)
    if wrong or len(values) > _MOST_TEXTS:
        raise ReleaseError(
            f"{name} must hold at most {_MOST_TEXTS} texts by name, each of at most {_LONGEST_TEXT} characters"
        )
    _check_plain(name, texts)


def _check_created(created: object) -> None:
    try:
        if created != "":
            datetime.fromisoformat(created[:_LONGEST_TEXT])  # type: ignore[index]
    except (TypeError, ValueError):
        raise ReleaseError(
            f"created ({created!r:.60}) must be a date such as 2024-01-31, or empty where it is not known"
        ) from None


def _check_certificate(certificate: Mapping[str, Any], *, finite: bool) -> None:
    """Refuse a certificate that is in neither form; costs must be finite where the noise is private."""
    if not certificate:
        return
    if any(not isinstance(key, str) for key in certificate):
        raise ReleaseError("certificate must hold its facts by name")
    _check_plain("certificate", dict(certificate))
    if certificate.get("measure") not in ("epsilon", "rho"):
        raise _wrong("measure", certificate.get("measure"), "must be epsilon or rho")
    _check_cost("total", certificate.get("total"), finite)
    if not isinstance(certificate.get("by"), str):
        raise _wrong("by", certificate.get("by"), "must say who certifies")
    if not isinstance(certificate.get("events", []), list | tuple):
        raise _wrong("events", certificate["events"], "must be a list")
    for event in certificate.get("events", []):
        _check_event(event, finite)
    _check_share(certificate.get("share", "0"))
    if "delta" in certificate:
        _check_delta(certificate["delta"])
    _check_selection(certificate.get("selection"))
    _check_found(certificate.get("bins", {"share": "0", "found": {}}), certificate.get("levels", {}))


def _check_event(event: object, finite: bool) -> None:
    if not isinstance(event, Mapping) or not set(event) >= {"what", "share", "cost"}:
        raise _wrong("events", event, "must each hold what, share and cost")
    for name in _EVENT_TEXTS & set(event):
        if not isinstance(event[name], str):
            raise _wrong(name, event[name], "must be a text")
    for name in _EVENT_NUMBERS & set(event):
        _check_number(name, event[name])
    _check_share(event["share"])
    if "delta" in event:
        _check_delta(event["delta"])
    _check_cost("cost", event["cost"], finite)


def _check_cost(name: str, value: object, finite: bool) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= (MOST_ROWS if finite else math.inf):  # type: ignore[operator]
        raise _wrong(name, value, "must be a number, 0 or above")


def _check_share(value: object) -> None:
    if not isinstance(value, str) or len(value) > _LONGEST_SHARE or not _SHARE.fullmatch(value):
        raise _wrong("share", value, "must be a fraction such as '1/20'")


def _check_delta(value: object) -> None:
    """Unlike a share it is computed with, so that it is read as budgets are."""
    try:
        small = read_fraction("delta", value) < 1
    except DpcipherError:
        small = False
    if not small:
        raise _wrong("delta", value, "must be a fraction such as '1/2000000', above 0 and below 1")


def _check_selection(note: object) -> None:
    """How tables were chosen, where they were: numbers of rounds, candidates and tables looked at, the share that it took, and what it was for."""
    if note is None:
        return
    if not isinstance(note, Mapping):
        raise _wrong("selection", note, "must be a mapping")
    for name in ("rounds", "candidates", "shortlist"):
        _check_number(f"selection {name}", note.get(name))
    _check_share(note.get("share"))
    if not isinstance(note.get("predict", ""), str):
        raise _wrong("selection predict", note["predict"], "must be the name of a column")


def _check_found(bins: object, levels: object) -> None:
    """How many bins and levels were found in which columns, and the share that the search for bins took."""
    if not isinstance(bins, Mapping) or not isinstance(bins.get("found"), Mapping):
        raise _wrong("bins", bins, "must hold share and found")
    if not isinstance(levels, Mapping):
        raise _wrong("levels", levels, "must be a mapping")
    _check_share(bins.get("share"))
    for number in (*bins["found"].values(), *levels.values()):
        _check_number("found", number)
    ranges = bins.get("ranges", {})
    if not isinstance(ranges, Mapping) or not all(isinstance(found, Mapping) for found in ranges.values()):
        raise _wrong("ranges", ranges, "must say of each column what was found")
    for found in ranges.values():
        _check_number("rows", found.get("rows"))
        if not isinstance(found.get("guess"), bool):
            raise _wrong("guess", found.get("guess"), "must be true or false")


def _check_number(name: str, number: object) -> None:
    if not _is_number(number):
        raise _wrong(name, number, "must be a whole number, 0 or above")


def _wrong(name: str, value: object, rule: str) -> ReleaseError:
    return ReleaseError(f"certificate: {name} ({value!r:.60}) {rule}")
