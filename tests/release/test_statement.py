"""The statement: checked at birth, since a file may say anything."""

from typing import Any

import forge
import pytest

from dpcipher.errors import ReleaseError
from dpcipher.release.statement import Statement

NUMBERS = {"measure": "rho", "total": 0.5, "by": "somebody"}
EVENT = {"what": "age", "share": "1/2", "cost": 0.5}
NOTE = {"rounds": 1, "candidates": 3, "shortlist": 3, "share": "1/20"}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"status": "Certified"}, r"status \('Certified'\) must be certified or unrecorded"),
    ({"status": None}, "status"),
    *(({name: {}}, f"{name} .* must be") for name in ("status", "n_rows", "created")),
    ({"status": ["certified"]}, "status"),
    *(
        ({"n_rows": bad}, "n_rows .* must be a whole number")
        for bad in ("5", -5, 5.0, float("nan"), True, 2**53, [5], 10**300)
    ),
    *(({name: []}, f"{name} .* must be a mapping") for name in ("unit", "budget", "certificate")),
    *(({name: []}, f"{name} .* must hold at most 64 texts by name") for name in ("ledger", "software")),
    ({"unit": {"relation": "add-remove"}}, "unit must hold max_rows"),
    ({"unit": {"relation": "add-remove", "max_rows": 1, "more": 1}}, "unit: unknown key 'more'"),
    ({"unit": {"relation": "remove", "max_rows": 1}}, r"unit.relation \('remove'\) must be add-remove or replace"),
    ({"unit": {"relation": ["replace"], "max_rows": 1}}, "unit.relation .* must be"),
    *(({"unit": {"relation": "replace", "max_rows": bad}}, "max_rows") for bad in (0, -1, True, "1", 1.0, None, 2**63)),
    ({"budget": {"epsilon": "1e99999999"}}, "budget: epsilon"),
    ({"budget": {"epsilon": 1.0}}, r"budget.epsilon \(1.0\) must be a text"),
    ({"budget": {"delta": "1/10"}}, "budget: epsilon"),
    ({"budget": {"alpha": "1"}}, "budget: "),
    ({"certificate": {"total": 1.0, "by": "x"}}, "certificate must hold measure"),
    ({"certificate": NUMBERS | {"measure": ["rho"]}}, "measure"),
    *(({"certificate": NUMBERS | {"total": bad}}, "total") for bad in (None, "1", -1, True, float("inf"), float("nan"), 10**300)),
    ({"certificate": NUMBERS | {"by": 5}}, "by"),
    ({"certificate": NUMBERS | {"events": {}}}, "events .* must be a list"),
    ({"certificate": NUMBERS | {"events": [1]}}, "events"),
    ({"certificate": NUMBERS | {"events": [{"what": "age", "share": "1/2"}]}}, "events"),
    ({"certificate": NUMBERS | {"events": [EVENT | {"what": 1}]}}, "what"),
    ({"certificate": NUMBERS | {"events": [EVENT | {"share": 0.5}]}}, "share"),
    ({"certificate": NUMBERS | {"events": [EVENT | {"cost": "1"}]}}, "cost"),
    ({"certificate": NUMBERS | {"share": "1e9"}}, "share"),
    ({"certificate": NUMBERS | {"share": "9" * 20_000}}, "share"),
    ({"certificate": NUMBERS | {"selection": 5}}, "selection .* must be a mapping"),
    ({"certificate": NUMBERS | {"selection": {}}}, "selection must hold"),
    *(({"certificate": NUMBERS | {"selection": NOTE | {name: bad}}}, f"selection.{name}") for name in ("rounds", "candidates", "shortlist") for bad in (None, -1, 1.0, True, "1", 10**300)),
    ({"certificate": NUMBERS | {"selection": NOTE | {"share": None}}}, "share"),
    ({"certificate": NUMBERS | {"selection": NOTE | {"predict": 3}}}, r"selection\.predict \(3\) must be a text"),
    *(({"certificate": NUMBERS | {"bins": bad}}, "bins(.found)? .*must (be a mapping|hold)") for bad in (None, 5, {}, {"found": 3, "share": "1"})),
    *(
        ({"certificate": NUMBERS | {"bins": {"found": {}, "share": "0", "ranges": bad}}}, text)
        for bad, text in (
            (5, "ranges .* must be a mapping"),
            ({"x": 5}, r"ranges\.x .* must be a mapping"),
            ({"x": {"rows": -1, "guess": True}}, "rows .* must be a whole number"),
            ({"x": {"rows": 1, "guess": "no"}}, "guess .* must be true or false"),
        )
    ),
    ({"certificate": NUMBERS | {"bins": {"found": {"age": 3}}}}, "share"),
    *(({"certificate": NUMBERS | {"bins": {"share": "1/20", "found": {"age": bad}}}}, "found") for bad in (-1, "3", True, None)),
    ({"certificate": NUMBERS | {"levels": []}}, "levels .* must be a mapping"),
    ({"certificate": NUMBERS | {"levels": {"town": 1.5}}}, r"levels\.town \(1.5\) must be a whole number"),
    ({"certificate": NUMBERS | {1: 2}}, "mapping of names"),
    ({"ledger": {"head": 5}}, "ledger .* must hold at most 64 texts"),
    ({"ledger": {"head": "x" * 1001}}, "ledger .* must hold at most 64 texts"),
    ({"software": {str(i): "1" for i in range(65)}}, "software .* must hold at most 64 texts"),
    ({"software": {"opendp": ["1"]}}, "software .* must hold"),
    ({"software": {"opendp": "\ud800"}}, "software: a text holds half of a surrogate pair"),
    *(({"created": bad}, "created .* must be a date") for bad in ("yesterday", 5, None, ["2024-01-31"], "2024-13-01", "9" * 10_000)),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "why"), WRONG)
def test_a_wrong_statement_is_refused(changes: dict[str, Any], why: str) -> None:
    """In memory and from plain values alike; the message names the fact, in few words."""
    plain = {"status": "certified"} | changes
    with pytest.raises(ReleaseError, match=why) as caught:
        Statement(**plain)
    assert len(str(caught.value)) < 300
    with pytest.raises(ReleaseError, match=why):
        Statement.from_dict(plain)


def test_a_deep_certificate_is_refused() -> None:
    """However deep a remark is nested, and whoever made it."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ReleaseError, match="certificate: lists are nested"):
        Statement(status="certified", certificate=NUMBERS | {"remark": deep})


@pytest.mark.parametrize("plain", [None, [], {}, {"n_rows": 5}, "certified"])
def test_plain_values_must_state_a_status(plain: Any) -> None:
    """Anything else is no statement."""
    with pytest.raises(ReleaseError, match="must be a mapping with a status"):
        Statement.from_dict(plain)


def test_an_unknown_key_is_named() -> None:
    """With the one that was meant."""
    with pytest.raises(ReleaseError, match="unknown key 'n_row'; did you mean 'n_rows'"):
        Statement.from_dict({"status": "declared", "n_row": 5})


@pytest.mark.parametrize("kind", forge.KINDS)
def test_a_statement_survives_plain_values(kind: str) -> None:
    """Both forms of certificate, and remarks that nobody knows, pass."""
    plain = forge.KINDS[kind]()[0]["statement"]
    if plain["certificate"]:
        plain["certificate"]["remark"] = {"of": ["anything", None, 1.5, True]}
    assert Statement.from_dict(plain).to_dict() == plain


def test_only_noise_that_is_not_private_may_cost_infinity() -> None:
    """An experiment without noise states so; no release does."""
    endless = NUMBERS | {"total": float("inf")}
    assert Statement(status="NOT PRIVATE", certificate=endless).certificate["total"] == float("inf")
    with pytest.raises(ReleaseError, match="total"):
        Statement(status="declared", certificate=endless)
