"""Columns whose levels are found: what must be declared, and what may be published."""

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dpcipher.errors import DpcipherWarning, SchemaError
from dpcipher.schema import Schema, column
from dpcipher.schema.open_levels import OpenLevels

CITY: dict[str, Any] = {
    "kind": "categorical",
    "levels": "discover",
    "pattern": "[A-Z]{2}[0-9]*",
    "max_length": 4,
}


def city(**options: Any) -> OpenLevels:
    """A column of cities."""
    own = column("city", **{**CITY, **options})
    assert isinstance(own, OpenLevels)
    return own


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pattern": None}, r"pattern \(None\) must be a regular expression that says which texts"),
        ({"max_length": None}, r"max_length \(None\) must be a whole number from 1 to 200"),
        ({"max_length": 201}, r"max_length \(201\)"),
        ({"max_length": True}, r"max_length \(True\)"),
        ({"max_levels": 0}, r"max_levels \(0\)"),
        ({"pattern": "(a"}, r"pattern \('\(a'\) must be a regular expression \(RE2"),
        ({"pattern": "a)|(?:.*"}, r"must be a regular expression \(RE2"),
        ({"pattern": "(?=a)b"}, "no look-around"),
        ({"kind": "ordinal"}, r"levels \(discover\) is for categorical columns"),
        ({"min": 0}, "must not stand beside min"),
        ({"keep": "a"}, r"keep \('a'\) must be a list"),
        ({"keep": [1.5]}, r"keep \(1.5\) must hold texts or whole numbers"),
        ({"other": "nearest"}, r"other \('nearest'\) must be the name"),
    ],
)
def test_what_may_be_published_must_be_declared(options: dict[str, Any], said: str) -> None:
    """A length and a pattern are obligatory, and everything is checked when the schema is read."""
    with pytest.raises(SchemaError, match=said):
        city(**options)


@pytest.mark.parametrize("name", ["keep", "pattern", "max_length", "max_levels"])
def test_only_found_levels_have_such_limits(name: str) -> None:
    """Elsewhere they would be silently without effect."""
    value = {"keep": ["a"], "pattern": "a"}.get(name, 3)
    with pytest.raises(SchemaError, match=f"{name} is for levels: discover"):
        column("x", "categorical", levels=["a", "b"], **{name: value})  # type: ignore[arg-type]


def test_the_whole_text_must_match_and_hold_no_control_characters() -> None:
    """Neither a line end after the pattern nor a wide pattern lets through what a file or a page could not show."""
    texts = ["NY", "NY12", "NY123", "ny", "xNY", "NY\n", "NYZ", "", "(missing)"]
    assert city().fits(pa.array(texts)).tolist() == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
        False,
        False,
    ]
    wide = city(pattern="(?s).*", max_length=20)
    texts = ["é b", "a\x00", "a\n", "a\u2028b", "\ufeffa", "(missing: N)", "=1+1", "(ok)"]
    assert wide.fits(pa.array(texts)).tolist() == [True, False, False, False, False, False, True, True]


def test_an_alternative_in_the_pattern_is_anchored_at_both_ends() -> None:
    """`a|b` means a whole a or a whole b."""
    assert city(pattern="a|b").fits(pa.array(["a", "b", "ax", "xb"])).tolist() == [True, True, False, False]


def test_such_a_column_always_has_other_and_counts_as_the_most_that_may_be_found() -> None:
    """Kept levels first, found ones sorted, the rest last; declared again, it is an ordinary column."""
    column = city(keep=["ZZ", 7], max_levels=3)
    assert column.is_open
    assert column.labels == ("ZZ", "7", "(found 1)", "(found 2)", "(found 3)", "other")
    found = column.closed(["AB", "NY"])
    assert not found.is_open
    assert found.labels == ("ZZ", "7", "AB", "NY", "other")
    assert found.encode(pa.array(["NY", "7.0", "??", "ZZ", "other"])).tolist() == [3, 1, 4, 0, 4]
    assert city(other="elsewhere", keep=["elsewhere"]).closed(["NY"]).labels == ("elsewhere", "NY")


def test_an_open_column_is_written_and_read_as_it_was_and_codes_no_rows() -> None:
    """A schema file keeps it; encoding waits for the levels."""
    schema = Schema((city(keep=["ZZ"], missing="level"), column("x", "boolean")))
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.discovers
    with pytest.raises(SchemaError, match=r"open .* until measure has found them"):
        schema.encode(pa.table({"city": ["NY"], "x": [True]}))


def test_zeros_and_rules_do_not_name_levels_that_nobody_knows_yet() -> None:
    """Refused when the schema is made."""
    columns = {"city": CITY, "x": {"kind": "boolean"}}
    zero = {"impossible": {"city": ["other"], "x": [True]}}
    with pytest.raises(SchemaError, match="must not name 'city', whose levels are not known yet"):
        Schema.from_dict({"columns": columns, "zeros": [zero]})
    with pytest.raises(SchemaError, match="it must not name 'city', whose levels are not known yet"):
        Schema.from_dict({"columns": columns, "rules": ["city == other -> x == true"]})


@pytest.mark.parametrize(("pattern", "warned"), [(".*", True), ("(?s).+", True), ("[^\n]*", True), ("[A-Z]{2}", False), (r"[\pL\pN ]+", False)])  # fmt: skip
def test_a_pattern_that_says_nothing_is_warned_of(tmp_path: Path, pattern: str, warned: bool) -> None:
    """Whoever loads the schema is told that any shared text could be published."""
    Schema((city(pattern=pattern),)).save(tmp_path / "city.yaml")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        Schema.load(tmp_path / "city.yaml")
    assert [one.category for one in told] == [DpcipherWarning] * warned
