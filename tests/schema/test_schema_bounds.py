"""Schemas that somebody made up: refused with a reason, before they take time or memory."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from dpcipher.errors import SchemaError, SizeError
from dpcipher.schema import Schema, Zero, column
from dpcipher.schema.bins import Bins
from dpcipher.schema.scale import SCALES
from effort import at_most

WIDE = {"kind": "integer", "min": 0, "max": 2**31 - 3}


def columns(**specs):
    """A schema of these columns, as plain values."""
    return {"columns": specs}


BAD = [
    (columns(a={"kind": "categorical", "levels": 5}), r"levels \(5\) must be a list"),
    (columns(a={"kind": "categorical", "levels": "abc"}), r"levels \('abc'\) must be a list"),
    (columns(a={"kind": "categorical", "levels": {"x": 1}}), "levels .* must be a list"),
    (columns(a={"kind": "categorical", "levels": [[1]]}), "levels must be texts"),
    (columns(a={"kind": "number", "edges": 5}), r"edges \(5\) must be a list"),
    (columns(a={"kind": "number", "min": "auto", "max": "auto"}), "needs bins: auto"),
    (columns(a={"kind": "integer", "min": 0, "max": "auto", "bins": 10}), "needs bins: auto"),
    (columns(a={"kind": "number", "edges": "auto"}), "bins: auto finds edges"),
    (columns(a={"kind": "categorical", "levels": "auto"}), "or discover, which finds levels"),
    (columns(a={"kind": "integer", "min": 0, "max": 99, "bins": "automatic"}), "or auto; try"),
    (columns(a={"kind": "number", "edges": [0, [1]]}), r"edges \(\(1,\)\) must be a finite number"),
    (columns(a={"kind": "integer", "min": 10**300, "max": 10**301}), "must be a finite number below"),
    (columns(a={"kind": "number", "min": -(10**305), "max": 0, "bins": 2}), "must be a finite number below"),
    (columns(a={"kind": "integer", "min": 0, "max": [9]}), "must be a finite number"),
    (columns(a={"kind": "date", "min": 0, "max": [9]}), "must be a date"),
    (columns(a={"kind": "integer", "min": 0, "max": 9, "bins": True}), "bins .* must be a whole number"),
    (columns(a={"kind": "boolean", "other": ["x"]}), "other .* must be refuse, nearest or one level"),
    (columns(a={"kind": "boolean", "other": {}}), "other .* must be refuse, nearest or one level"),
    (columns(a={"kind": ["boolean"]}), "kind .* must be one of"),
    (columns(a={"kind": "boolean", "missing": {}}), "missing .* must be level or refuse"),
    ({"columns": [{"name": ["a"], "kind": "boolean"}]}, "name .* must be a text"),
    ({**columns(a={"kind": "boolean"}), "zeros": [{"impossible": {"a": [[True]]}}]}, "must list levels"),
    ({**columns(a={"kind": "boolean"}), "zeros": [{"impossible": {"a": [True] * 3}}]}, "must list levels"),
    ({**columns(a={"kind": "boolean"}), "zeros": [{"impossible": [1]}]}, "a structural zero must be"),
    ({**columns(a=WIDE), "zeros": [{"impossible": {"a": {"min": "x"}}}]}, "touches too many cells"),
    (
        {
            **columns(a={"kind": "integer", "min": 0, "max": 9}),
            "zeros": [{"impossible": {"a": {"min": 10**300}}}],
        },
        "no level within",
    ),
    ({**columns(a={"kind": "boolean"}), "notes": 5}, "notes .* must be a list"),
    ({**columns(a={"kind": "boolean"}), "version": [1]}, "version .* must be 1"),
    ({**columns(a={"kind": "boolean"}), "x" * 100_000: 1}, "unknown key"),
]


@pytest.mark.parametrize(("plain", "why"), BAD)
def test_a_made_up_schema_is_refused_with_a_reason(plain, why, tmp_path):
    """From a file and from plain values alike, in few words."""
    with pytest.raises((SchemaError, SizeError), match=why) as caught:
        Schema.from_dict(plain)
    assert len(str(caught.value)) < 400
    (tmp_path / "s.json").write_text(json.dumps(plain))
    with pytest.raises((SchemaError, SizeError), match=why):
        Schema.load(tmp_path / "s.json")


BOMBS = {
    "bins": columns(**{f"c{i}": {"kind": "number", "min": 0, "max": 1, "bins": 2**20} for i in range(100)}),
    "range": columns(a=WIDE, b={"kind": "date", "min": "0001-01-01", "max": "9999-12-31"}),
    "mask": {**columns(a=WIDE), "zeros": [{"impossible": {"a": {"min": 0}}}]},
    "masks": {
        **columns(**{f"c{i}": {"kind": "integer", "min": 0, "max": 10**6} for i in range(100)}),
        "zeros": [{"impossible": {f"c{i}": {"min": 0} for i in range(100)}}],
    },
    "zeros": {**columns(a={"kind": "boolean"}), "zeros": [{"impossible": {"a": True}}] * 100_000},
    "levels of zeros": {
        **columns(a={"kind": "integer", "min": 0, "max": 10**6}),
        "zeros": [{"impossible": {"a": list(range(100_000))}}] * 10,
    },
    "named levels": {
        **columns(a={"kind": "categorical", "levels": [f"x{i}" for i in range(100_000)]}),
        "zeros": [{"impossible": {"a": [f"x{i}" for i in range(5_000)]}}],
    },
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_bytes_never_ask_for_much(name):
    """Loaded or refused, a schema takes little time and memory, whatever sizes it names."""
    tracemalloc.start()
    with at_most(seconds=10):
        try:
            Schema.from_dict(BOMBS[name])
        except SizeError:
            assert name not in ("range", "named levels")
        else:
            assert name in ("range", "named levels")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.parametrize(
    "text",
    [
        "columns: " + "[" * 5_000,
        "columns: " + "{a: " * 200 + "1" + "}" * 200,
        "columns: {a: {kind: integer, min: 0, max: " + "9" * 5_000 + "}}",
        "columns: {a: {kind: integer, min: 0, max: !!int '" + "59:" * 50_000 + "1'}}",
        "columns: {a: {kind: integer, min: 0, max: !!float '" + "59:" * 50_000 + "1'}}",
        "columns: {a: {kind: integer, min: 0, max: !!int x}}",
        "columns: {a: {kind: boolean, other: !!bool x}}",
        "columns: !!map [a]",
        "columns: !!map a",
        "columns: {a: !!binary eA==}",
        "columns: {a: !!set {b}}",
        "columns: {1: {kind: boolean}, '1': {kind: boolean}}",
        "columns:\n" + "".join(f"  c{i}: 1\n" for i in range(5_000)) + "  c0: 1\n",
    ],
)
def test_made_up_yaml_is_refused(text, tmp_path):
    """Depth, long numbers, odd tags and repeated keys are a SchemaError, at once."""
    (tmp_path / "s.yaml").write_text(text)
    with at_most(seconds=10), pytest.raises(SchemaError, match=r"s\.yaml: is not readable as YAML"):
        Schema.load(tmp_path / "s.yaml")


@pytest.mark.parametrize("kind", ["integer", "date"])
@pytest.mark.parametrize("low", [-np.inf, -7, -2, -1.5, 0, 0.5, 3, 4, 4.5, 9])
@pytest.mark.parametrize("high", [-9, -3, -2.5, 0, 0.5, 3, 4, 6.5, np.inf])
def test_a_span_of_whole_numbers_is_the_same_counted_or_computed(kind, low, high):
    """Bins one wide: arithmetic on the range agrees with a search through its edges."""
    counted, listed = Bins(SCALES[kind], range(-2, 6)), Bins(SCALES[kind], tuple(range(-2, 6)))
    assert counted.between(low, high) == listed.between(low, high)


@pytest.mark.parametrize(
    "levels", [["1", "2", "nan", ""], ["true", "x"], [1, 2, 3], [1.5, 2.0], [True, False]]
)
@pytest.mark.parametrize(
    "value", ["1", "2", "nan", "", "x", "true", 1, 2, 1.5, 2.0, True, False, np.nan, 10**300]
)
def test_a_level_is_found_as_rows_are_coded(levels, value):
    """A value asked for by name has the code that a row with it gets; where rows are missing, its label's."""
    declared = column("a", "categorical", levels=levels)
    try:
        code = int(declared.judged(pa.array([value]))[2][0])
    except OverflowError:
        code = -1
    if code < 0 and isinstance(value, str) and value in declared.labels:
        code = declared.labels.index(value)
    assert declared.find(value) == (code if code >= 0 else None)


def test_a_zero_that_moves_rows_still_works():
    """The checks let through what schemas are for."""
    schema = Schema(
        (column("a", "integer", min=0, max=9), column("b", "categorical", levels=["x", "y"])),
        zeros=(Zero({"a": {"max": 3}, "b": ["y"]}, {"b": "x"}),),
    )
    ((axes, mask),) = schema.zero_masks
    assert axes == (0, 1)
    assert mask.sum() == 4
    assert mask[:4, 1].all()
