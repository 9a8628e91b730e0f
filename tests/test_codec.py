"""Typed facts from plain values: what is refused, and in which words."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from dpcipher.files.codec import Rule, decode

Small = Annotated[int, Rule("must be below 10", lambda number: number < 10)]


class Note(TypedDict):
    """An open mapping."""

    what: str
    cost: NotRequired[float]


@dataclass(frozen=True)
class Facts:
    """A closed one."""

    kind: Literal["a", "b"]
    sizes: list[Small] = field(default_factory=list)
    notes: dict[str, Note] = field(default_factory=dict)
    most: Small | None = None
    other: Any = None


def test_plain_values_become_typed_ones() -> None:
    """Defaults fill what is left out; whole numbers are numbers; remarks stay."""
    plain = {
        "kind": "a",
        "sizes": [1, 2],
        "notes": {"x": {"what": "y", "cost": 1, "more": [None]}},
        "most": 3,
    }
    facts = decode(Facts, plain, "facts")
    assert facts == Facts("a", [1, 2], {"x": {"what": "y", "cost": 1.0, "more": [None]}}, 3)  # type: ignore[typeddict-unknown-key]
    assert decode(Facts, {"kind": "b", "most": None, "other": {1: 2}}, "facts") == Facts("b", other={1: 2})


@pytest.mark.parametrize(
    ("plain", "why"),
    [
        (5, r"facts \(5\) must be a mapping"),
        ([], r"facts \(\[\]\) must be a mapping"),
        ({}, "facts must hold kind"),
        ({"kind": "c"}, r"facts\.kind \('c'\) must be a or b"),
        ({"kind": ["a"]}, "must be a or b"),
        ({"kind": "a", "size": []}, "facts: unknown key 'size'; did you mean 'sizes'"),
        ({"kind": "a", 1: []}, "mapping of names"),
        ({"kind": "a", "sizes": "12"}, r"facts\.sizes \('12'\) must be a list"),
        ({"kind": "a", "sizes": [1, 10]}, r"facts\.sizes\[1\] \(10\) must be below 10"),
        ({"kind": "a", "sizes": [True]}, r"sizes\[0\] \(True\) must be below 10"),
        ({"kind": "a", "sizes": [1.0]}, r"sizes\[0\] \(1.0\) must be below 10"),
        ({"kind": "a", "notes": {"x": {}}}, r"facts\.notes\.x must hold what"),
        ({"kind": "a", "notes": {"x": {"what": 1}}}, r"facts\.notes\.x\.what \(1\) must be a text"),
        ({"kind": "a", "notes": {"x": {"what": "", "cost": "1"}}}, r"x\.cost \('1'\) must be a number"),
        ({"kind": "a", "notes": {"x": {"what": "", "cost": True}}}, r"x\.cost \(True\) must be a number"),
        ({"kind": "a", "notes": {1: {}}}, r"a key of facts\.notes \(1\) must be a text"),
        ({"kind": "a", "most": "1"}, r"facts\.most \('1'\) must be a whole number or left out"),
        ({"kind": "a", "most": 11}, r"facts\.most \(11\) must be below 10"),
    ],
)
def test_wrong_values_are_refused_with_their_place(plain: object, why: str) -> None:
    """Place, value and rule."""
    with pytest.raises(ValueError, match=why):
        decode(Facts, plain, "facts")
