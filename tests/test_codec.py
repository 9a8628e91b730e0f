"""Typed facts from plain values: what is refused, and in which words."""

import datetime
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np
import pytest

from dpcipher.files.codec import Rule, as_plain, check_fields, decode, is_number, is_whole

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


@dataclass(frozen=True)
class Checked:
    """Facts that are checked as they are made, in Python as in files."""

    ends: tuple[int, ...]
    width: Annotated[int | None, Rule("must be 1 or more", lambda width: width is None or width >= 1)] = None
    start: float | Literal["auto"] = "auto"
    inner: Facts | None = None

    def __post_init__(self) -> None:
        check_fields(self)


def test_a_constructor_checks_what_a_file_is_checked_for() -> None:
    """Lists, arrays and ranges become tuples of Python's numbers; facts that are typed already stay."""
    for ends in ([1, 2], np.array([1, 2]), range(1, 3), (np.int64(1), 2)):
        assert Checked(ends, width=np.int8(3)) == Checked((1, 2), width=3)  # type: ignore[arg-type]
    inner = Facts("a")
    assert Checked((), inner=inner).inner is inner
    assert decode(Checked, {"ends": [1], "start": 2, "inner": {"kind": "a"}}, "") == Checked(
        (1,), None, 2.0, inner
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"ends": 5}, r"^ends \(5\) must be a list"),
        ({"ends": [1, "x"]}, r"^ends\[1\] \('x'\) must be a whole number"),
        ({"width": 0}, r"^width \(0\) must be 1 or more"),
        ({"width": "3"}, r"^width \('3'\) must be 1 or more"),
        ({"start": "never"}, r"^start \('never'\) must be a number or auto"),
        ({"start": True}, "must be a number or auto"),
        ({"inner": 7}, "must be a mapping or left out"),
    ],
)
def test_a_constructor_refuses_what_a_file_is_refused_for(wrong: dict[str, Any], why: str) -> None:
    """The place, the value and the rule, the same from Python and from a file."""
    facts = {"ends": [1], **wrong}
    with pytest.raises(ValueError, match=why):
        Checked(**facts)
    with pytest.raises(ValueError, match=why):
        decode(Checked, facts, "")


def test_truth_values_are_no_numbers() -> None:
    """The one place where that is decided; dates are their texts."""
    assert [is_number(value) for value in (1, 1.5, True, "1", None)] == [True, True, False, False, False]
    assert [is_whole(value) for value in (1, 1.0, True, 2**80)] == [True, False, False, True]
    assert as_plain([datetime.date(2024, 1, 31), np.bool_(True)]) == ("2024-01-31", True)
