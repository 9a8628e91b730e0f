"""JSON within bounds: what json reads is read the same, and what would hang or fill the memory is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcipher.errors import did_you_mean
from dpcipher.files.json import MAX_CONTAINERS, MAX_DEPTH, MAX_DIGITS, check_plain, read_json
from effort import at_most

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = (
    st.none() | st.booleans() | st.integers() | finite | st.text(st.characters(exclude_categories=["Cs"]))
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(values)
def test_what_json_writes_is_read_back(value):
    """Any plain value survives, as text and as bytes."""
    text = json.dumps(value)
    assert read_json(text) == value
    assert read_json(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested more than 32 deep"),
        ("[" * 1_000_000, "nested more than 32 deep"),
        ('{"a":' * 100_000, "nested more than 32 deep"),
        ("[" + "[]," * MAX_CONTAINERS + "0]", "more than 1,572,864 lists and objects"),
        ("[NaN]", "NaN is not a number"),
        ("-Infinity", "-Infinity is not a number"),
        ("1e999", "1e999 is too large"),
        ("9" * (MAX_DIGITS + 1), "more than 308 digits"),
        ("-" + "9" * 1_000_000, "more than 308 digits"),
        ('{"a": 1, "a": 1}', "a key appears twice"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('{"\\udfff": 1}', "half of a surrogate pair"),
        (b"\xff", "utf-8"),
        ("[1] 2", "Extra data"),
        ("", "Expecting value"),
    ],
)
def test_what_no_file_of_ours_needs_is_refused_at_once(text, why):
    """Each refusal is a ValueError that says why, within a second of processor time."""
    with at_most(seconds=1.5), pytest.raises(ValueError, match=why):
        read_json(text)


def test_brackets_in_texts_are_not_counted():
    """Levels may look like intervals; a broken text with a million escapes is still judged in linear time."""
    assert read_json(json.dumps(["[" * (2 * MAX_CONTAINERS)])) == ["[" * (2 * MAX_CONTAINERS)]
    with pytest.raises(ValueError, match="lists and objects"):
        read_json("[" * (MAX_CONTAINERS + 1) + '"' + '\\"' * 1_000_000)


def test_depth_counts_lists_and_objects():
    """As deep as allowed is read; one more is not, whatever the value was made by."""
    deep: object = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert read_json(json.dumps(deep)) == deep
    for _ in range(100_000):
        deep = {"a": (deep,)}
    with pytest.raises(ValueError, match="deep"):
        check_plain(deep)


def test_a_hint_is_never_sought_among_endless_names():
    """Names of a made-up file cost no time; a slip of the pen still gets its hint."""
    with at_most(seconds=1.5):
        assert did_you_mean("ab" * 5_000, ["ba" * 5_000] * 900) == ""
        assert did_you_mean("abc", [f"abd{i}" for i in range(100_000)]) == ""
        assert did_you_mean("sxe", ["age", "sex", "x" * 10_000]) == "; did you mean 'sex'?"
