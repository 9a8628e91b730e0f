"""Formulas that users write: what is refused says the way out, and what is assumed is said."""

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError
from dpcipher.inference.fitted import Models
from dpcipher.inference.regression import Family

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "employed": {"kind": "categorical", "levels": ["no", "yes"]},
            "health": {"kind": "categorical", "levels": ["bad", "fair", "good", "great"]},
            "grade": {"kind": "ordinal", "levels": [1, 2, 3]},
            "marital status": {"kind": "categorical", "levels": ["single", "married"]},
            "age": {"kind": "integer", "min": 20, "max": 79, "bins": 3},
            "born": {"kind": "date", "min": "1950-01-01", "max": "2009-12-31", "bins": 3},
            "rises": {"kind": "time", "min": "04:00", "max": "09:59", "bins": 3},
        }
    }
)


def release(scale: float = 1.0) -> dc.Release:
    """All pairs of the table of 600 rows."""
    rng = np.random.default_rng(2)
    codes = {name: rng.integers(0, len(SCHEMA.labels(name)), 600) for name in SCHEMA.attrs}
    tables = {}
    for first in range(len(SCHEMA.attrs)):
        for second in range(first + 1, len(SCHEMA.attrs)):
            pair = SCHEMA.attrs[first], SCHEMA.attrs[second]
            table = np.zeros([len(SCHEMA.labels(name)) for name in pair])
            np.add.at(table, (codes[pair[0]], codes[pair[1]]), 1)
            tables[pair] = table
    return dc.Release.from_tables(tables, SCHEMA, scale=scale)


RELEASE = release()


def fit(formula: str, family: Family = "logistic", **options: object) -> Models:
    """A model from few draws."""
    return dc.fit_models(RELEASE, formula, family, draws=60, seed=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formula", "family", "rule"),
    [
        ("employed ~ age ~ health", "logistic", "leave out the second '~'"),
        ("employed ~ age | health", "logistic", r"leave out '\|'"),
        ("employed ~ age + offset(born)", "logistic", r"offset\(…\) is not supported; leave it out"),
        ("employed ~ .", "logistic", r"name the columns instead of '\.'$"),
        ("employed ~ marital status", "logistic", "needs backticks, as `marital status`"),
        ("marital status ~ age", "logistic", "needs backticks, as `marital status`"),
        ("health ~ age", "logistic", "try family='multinomial' or 'ordinal', or 'linear' for numbers$"),
        ("age ~ health", "logistic", "try family='multinomial' or 'ordinal', or 'linear' for numbers$"),
        ("grade ~ health", "logistic", "try family='multinomial' or 'ordinal', or 'linear' for numbers$"),
        ("employed ~ age", "linear", r"family='logistic', or .* I\(employed == 'yes'\)$"),
        ("health ~ age", "linear", r"family='multinomial' or 'ordinal', or .* I\(health == 'great'\)$"),
        ("`marital status` ~ age", "poisson", r"I\(`marital status` == 'married'\)$"),
    ],
)
def test_a_formula_that_cannot_be_used_says_what_can(formula: str, family: Family, rule: str) -> None:
    """Whole sentences, and no way out that would be refused in turn."""
    with pytest.raises(ParameterError, match=rule):
        fit(formula, family)


@pytest.mark.parametrize("terms", ["a ~ b", "a | b", "offset(a)", ".", "a b"])
def test_rows_have_formulas_read_the_same_way(terms: str) -> None:
    """Sets of rows refuse what a release refuses."""
    rows = {"y": [0, 1, 0, 1], "a": [1.0, 2.0, 3.0, 3.0], "b": [0.0, 1.0, 1.0, 0.0]}
    with pytest.raises(ParameterError, match=r"second '~'|'\|'|not supported|instead of '\.'|backticks"):
        dc.fit_models(rows, f"y ~ {terms}")


def test_the_ways_out_are_ways() -> None:
    """What the refusals suggest can be fitted; the mean of an indicator is the share of its level."""
    share = fit("I(employed == 'yes') ~ 1", "linear").frame["estimate"][0]
    married = fit("I(`marital status` == 'married') ~ 1", "linear").frame["estimate"][0]
    tables = RELEASE.project("employed"), RELEASE.project("marital status")
    truths = [float(table[1] / table.sum()) for table in tables]
    assert [share, married] == pytest.approx(truths, abs=0.03)
    assert fit("grade ~ age", "linear").terms == ("Intercept", "age")
    assert fit("age ~ grade", "linear").terms[0] == "Intercept"


def test_the_order_of_an_ordinal_outcome_is_said_where_the_schema_does_not_say_it() -> None:
    """Of unordered levels without a given order; an ordinal column, bins, and a given order need no note."""
    order = ["great", "good", "fair", "bad"]
    noted = {
        "as declared": fit("health ~ age", "ordinal"),
        "given": fit("health ~ age", "ordinal", levels={"health": order}),
        "ordinal": fit("grade ~ age", "ordinal"),
        "bins": fit("age ~ grade", "ordinal"),
    }
    said = {name: [note for note in models.notes if "order" in note] for name, models in noted.items()}
    assert {name: len(notes) for name, notes in said.items()} == {
        "as declared": 1, "given": 0, "ordinal": 0, "bins": 0,
    }  # fmt: skip
    assert "bad < fair < good < great" in said["as declared"][0]
    assert "the option levels" in said["as declared"][0]


@pytest.mark.parametrize("terms", ["0 + employed", "employed - 1"])
def test_an_ordinal_model_keeps_its_cut_points_beside_a_reference_level(terms: str) -> None:
    """Without an intercept it is the model with one, as R's polr has it, and a note says so."""
    without, plain = fit(f"grade ~ {terms}", "ordinal"), fit("grade ~ employed", "ordinal")
    assert without.terms == plain.terms == ("1|2", "2|3", "employed[T.yes]")
    np.testing.assert_allclose(without.frame["estimate"], plain.frame["estimate"])
    assert any("leaves out the intercept" in note for note in without.notes)
    assert not any("leaves out the intercept" in note for note in plain.notes)


def test_the_unit_of_dates_and_times_is_said() -> None:
    """A slope per day is 365.25 times smaller than the one per year that the note offers; categories have no unit."""
    days, years = fit("employed ~ born"), fit("employed ~ I(born / 365.25)")
    slopes = [models.frame["estimate"][1] for models in (days, years)]
    assert slopes[1] == pytest.approx(365.25 * slopes[0], rel=1e-4)
    assert any(
        "born: a date counts in days since 1970-01-01" in note and "I(born / 365.25)" in note
        for note in days.notes
    )
    assert any("rises: a time of day counts in seconds" in note for note in fit("employed ~ rises").notes)
    assert not any("1970" in note for note in fit("employed ~ C(born)").notes)


def test_few_exact_rows_are_not_said_to_be_noisy() -> None:
    """Three rows say little by themselves; a table drowned in noise says little for its noise."""
    schema = dc.Schema.from_domain({"y": 2, "x": 2})
    few = dc.Release.from_tables({("y", "x"): [[1, 1], [1, 0]]}, schema, scale=0)
    noisy = dc.Release.from_tables(
        {("y", "x"): [[900, 900], [900, 900]]}, schema, scale=2_000.0, n_rows=3_600
    )
    notes = [" ".join(dc.fit_models(table, "y ~ x", draws=100, seed=1).notes) for table in (few, noisy)]
    assert "the rows are too few" in notes[0]
    assert "the noise leaves" not in notes[0]
    assert "the noise leaves the release little to say" in notes[1]
