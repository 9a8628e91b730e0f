"""The words of a column for people: titles, units, descriptions and labels of values."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.errors import SchemaError
from dpcipher.schema import Column, Schema, column
from dpcipher.schema.conditions import column_mask

SEX = {"kind": "categorical", "levels": ["1", "2"], "labels": {"1": "Male", "2": "Female", "N": "Not asked"}, "missing_values": ["N"], "title": "Person's gender"}  # fmt: skip


def sex() -> Column:
    """A column of codes with labels."""
    return column("SEX", **SEX)


def test_labels_are_shown_and_values_stay():
    """Pages show the label of a level; the level itself, and with it every file of rows, is its value."""
    assert sex().labels == ("1", "2", "(missing: N)")
    assert sex().shown_labels == ("Male", "Female", "Not asked")
    assert Schema((sex(),)).shown_labels("SEX") == sex().shown_labels


def test_a_condition_takes_the_value_or_the_label():
    """A value comes first; a label that is another level's value asks for that level."""
    for wanted in ("2", 2, "Female"):
        assert column_mask(sex(), wanted).tolist() == [False, True, False]
    crossed = column("x", "categorical", levels=["1", "2"], labels={"1": "2", "2": "two"})
    assert (crossed.find("2"), crossed.find("two")) == (1, 1)


def test_levels_that_would_look_alike_show_their_values_too():
    """Two codes with one label, and a label that is the text of an unlabelled level."""
    declared = column("x", "categorical", levels=["1", "2", "Yes"], labels={"1": "Yes", "2": "No"})
    assert declared.shown_labels == ("Yes (1)", "No", "Yes")


def test_a_label_needs_a_level_of_its_own():
    """501 is the top code of a column with a bin for it; in a bin of many values it labels nothing, and in a list it is an error."""
    unit = column("x", "integer", min=0, max=3, labels={0: "none"})
    assert unit.shown_labels == ("none", "1", "2", "3")
    cut = column("x", "integer", min=0, max=9, bins=2, labels={0: "none", "5..9": "many"})
    assert cut.shown_labels == ("0..4", "many")
    with pytest.raises(SchemaError, match="labels \\('3'\\) must name levels"):
        column("x", "categorical", levels=["1", "2"], labels={3: "?"})


def test_conditions_and_headings_use_the_words():
    """A condition takes a label for its level; a heading has the name that commands take, then the title and unit."""
    schema = Schema(
        (sex(), column("age", "integer", min=0, max=1, unit="years")),
    )
    for wanted in ("1", "Male"):
        assert np.flatnonzero(schema.allowed({"SEX": wanted})[0]).tolist() == [0]
    assert [schema.heading(name) for name in ("SEX", "age")] == ["SEX: Person's gender", "age [years]"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("title", ""),
        ("title", "x" * 201),
        ("title", "two\nlines"),
        ("unit", 7),
        ("description", "x" * 2001),
        ("labels", {"1": ""}),
        ("labels", {"1": "x" * 301}),
        ("labels", ["Male"]),
        ("labels", {"1": "a\u202eb"}),
    ],
)
def test_words_are_short_and_on_one_line(key, text):
    """Nothing is shown that could fill a page, hide text or break out of a line."""
    with pytest.raises(SchemaError, match="column 'SEX'"):
        column("SEX", **{**SEX, key: text})


def test_a_schema_with_words_comes_back_the_same(tmp_path):
    """Through YAML and JSON, with its own title and description, and a signature that covers them."""
    schema = Schema((sex(),), title="People", description="Everybody who was asked.").sign(
        "Ada", "2024-01-31"
    )
    for name in ("a.yaml", "a.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
    assert schema.signed
    assert Schema((column("SEX", **{**SEX, "title": "Sex"}),)).fingerprint() != Schema((sex(),)).fingerprint()  # fmt: skip


def test_a_schema_without_words_has_the_fingerprint_it_had():
    """What is default is not written: the plain values of an old schema, hashed by hand."""
    columns = [{"name": "age", "kind": "integer", "min": 0, "max": 9}]
    plain = json.dumps({"version": 1, "columns": columns}, sort_keys=True, separators=(",", ":"))
    schema = Schema((column("age", "integer", min=0, max=9),))
    assert schema.fingerprint() == hashlib.sha256(plain.encode()).hexdigest()


def test_published_tables_may_name_levels_by_their_labels():
    """An agency's CSV with Male and Female in it is a table of the codes 1 and 2."""
    frame = pd.DataFrame({"SEX": ["Female", "1", "Not asked"], "count": [5, 3, 1]})
    release = dc.Release.from_tables({("SEX",): frame}, Schema((sex(),)), scale=0)
    assert np.asarray(release.project("SEX")).tolist() == [3, 5, 1]


def test_a_label_in_a_column_of_a_billion_levels_costs_nothing():
    """No list of all levels is made to find one of them, in a file of a few bytes that anybody may send."""
    declared = column("x", "integer", min=0, max=2**30, labels={7: "seven"}, missing_values=[-9])
    assert (declared.find("seven"), declared.find("7"), declared.find("eight")) == (7, 7, None)
    assert "labels" not in vars(declared)
    with pytest.raises(SchemaError, match="at most 1000"):
        column("x", "integer", min=0, max=9, labels=dict.fromkeys(range(1001), "x"))
