"""Titles, units and labels of a schema stand on every page that shows columns or levels, escaped; rows keep the values."""

import numpy as np
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.evaluation.pages import render as curator_page
from dpcipher.inference.fitted import Models
from dpcipher.inference.shown import with_labels
from dpcipher.pages.columns import dictionary
from dpcipher.pages.report import render
from dpcipher.schema import Schema, column

ODD = "Male <script>alert(1)</script>"


@pytest.fixture
def schema() -> Schema:
    """Two columns with words, one of them hostile."""
    sex = column("SEX", "categorical", levels=["1", "2"], missing_values=["N"], labels={"1": ODD, "2": "Female", "N": "Not asked"}, title="Person's gender")  # fmt: skip
    age = column("AGEP", "integer", min=0, max=3, unit="years", description="Age at the last birthday.")
    return Schema((sex, age), title="A survey")


def released(schema: Schema) -> dc.Release:
    """Somebody's exact tables."""
    return dc.Release.from_tables({("SEX", "AGEP"): np.arange(12.0).reshape(3, 4) + 5}, schema, scale=1.0)


def test_the_report_shows_labels_titles_and_units(schema):
    """The publishable page has every word, each escaped, and the values beside their labels."""
    text = render(released(schema), np.array([[0, 1], [1, 2], [2, 3]], np.int32))
    for words in ("SEX: Person&#x27;s gender", "AGEP [years]", "Age at the last birthday.", "Female", "Not asked", "A survey", "2 = Female"):  # fmt: skip
        assert words in text
    assert "<script>" not in text
    assert "Male &lt;script&gt;" in text


def test_the_curators_page_shows_them_too(schema):
    """Beside the private rows."""
    codes = np.random.default_rng(0).integers(0, [3, 4], (200, 2)).astype(np.int32)
    rows = schema.decode(codes, np.random.default_rng(0))
    scores = dc.evaluate(rows, rows, schema)
    text = curator_page(scores, codes, codes, schema)
    assert "SEX: Person&#x27;s gender" in text
    assert "Female" in text
    assert "<script>" not in text


def test_terms_of_models_show_labels():
    """Of treatment contrasts, of C(…), of a multinomial outcome's classes and an ordinal one's cut points; other terms stay."""
    schema = Schema((
        column("SEX", "categorical", levels=["1", "2"], labels={"2": "Female"}),
        column("EDU", "ordinal", levels=["1", "2"], labels={"1": "none", "2": "school"}),
    ))  # fmt: skip
    terms = ("1|2", "2: SEX[T.2]", "C(SEX)[T.2]:AGEP", "SEX[T.1]", "OTHERSEX")
    models = Models(terms, "ordinal", np.zeros((1, 5)), np.zeros((1, 5)), None, False, (), "EDU ~ SEX")  # type: ignore[arg-type]
    shown = ("none|school", "school: SEX[Female]", "C(SEX)[Female]:AGEP", "SEX[T.1]", "OTHERSEX")
    assert with_labels(models, schema).terms == shown


def test_terms_in_contrasts_and_in_notes_show_labels_too():
    """C(…) with contrasts, names in backticks, and every note that names a term; a column whose name ends alike stays."""
    labels = {"1": "single", "2": "married"}
    schema = Schema((column("my status", "categorical", levels=["1", "2"], labels=labels),))
    terms = ("2: C(`my status`, Treatment('1'))[T.2]", "2: my status[T.2]:age", "2: xmy status[T.2]")
    notes = (f"{terms[0]}, {terms[2]}: few rows", "nothing")
    models = Models(
        terms, "multinomial", np.zeros((1, 3)), np.zeros((1, 3)), None, False, notes, "`my status` ~ a"
    )  # type: ignore[arg-type]
    named = with_labels(models, schema)
    assert named.terms == ("married: C(`my status`, Treatment('1'))[married]", "married: my status[married]:age", "married: xmy status[T.2]")  # fmt: skip
    assert named.notes == (f"{named.terms[0]}, {named.terms[2]}: few rows", "nothing")


def test_a_schema_without_words_adds_no_section():
    """Pages of old schemas look as they did."""
    assert dictionary(Schema.from_domain({"a": 2})) == {}


def test_schema_show_prints_the_words_and_rows_keep_the_values(schema, tmp_path):
    """The command shows labels; what is decoded are the values."""
    schema.save(tmp_path / "s.yaml")
    shown = CliRunner().invoke(main, ["schema", "show", str(tmp_path / "s.yaml")]).output
    assert "Female" in shown
    assert "[years]: Age at the last birthday." in shown
    rows = schema.decode(np.array([[0, 0], [1, 0], [2, 0]], np.int32), np.random.default_rng(0))
    assert rows["SEX"].to_pylist() == ["1", "2", "N"]


def test_a_plan_says_what_its_columns_are(schema):
    """Under the tables, which are named as commands take them; to_dict keeps the names alone."""
    plan = dc.plan(schema, epsilon=1.0, unit="add-remove")
    assert "SEX: Person's gender\nAGEP [years]" in str(plan)
    assert plan.to_dict()["tables"][0]["attrs"] == ["SEX", "AGEP"]
    assert (
        str(dc.plan(Schema.from_domain({"a": 2}), workload=1, epsilon=1.0, unit="add-remove")).count("a:")
        == 0
    )
