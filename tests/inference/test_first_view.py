"""What a person sees first of a model: one screen with term, estimate, interval and a word on trust; the rest when asked."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

import dpcipher as dc
from dpcipher.inference.models import Models

SURVEY = dc.Schema.from_dict(
    {
        "columns": {
            "income": {"kind": "number", "edges": [0, 1000, 2500, 5000, 10000], "missing": "level"},
            "age": {"kind": "integer", "min": 18, "max": 89, "bins": 4},
            "sex": {"kind": "categorical", "levels": [1, 2], "labels": {1: "Male", 2: "Female"}},
            "grade": {"kind": "ordinal", "levels": [1, 2, 4, 8]},
            "household type": {
                "kind": "categorical",
                "levels": [f"a household of kind {k}" for k in range(6)],
            },
        }
    }
)
FORMULA = "income ~ age + sex + grade + `household type`"


def rows(n: int = 3_000) -> pd.DataFrame:
    """A survey in which income rises with age and grade, and some of it is missing."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.integers(1, 3, n),
            "grade": rng.choice([1, 2, 4, 8], n),
            "household type": rng.choice(SURVEY.labels("household type"), n),
        }
    )
    income = 30 * frame["age"] + 500 * frame["grade"] + 300 * rng.normal(size=n)
    frame.insert(0, "income", np.where(rng.random(n) < 0.1, np.nan, income.clip(0, 9_999).round()))
    return frame


def release(scale: float, n: int = 3_000) -> dc.Release:
    """All pairs of the survey, with noise."""
    codes = SURVEY.encode(pa.Table.from_pandas(rows(n)))
    tables = {}
    for first in range(codes.shape[1]):
        for second in range(first + 1, codes.shape[1]):
            table = np.zeros((SURVEY.shape[first], SURVEY.shape[second]))
            np.add.at(table, (codes[:, first], codes[:, second]), 1)
            tables[SURVEY.attrs[first], SURVEY.attrs[second]] = table
    return dc.Release.from_tables(tables, SURVEY, scale=scale)


@pytest.fixture(name="models", scope="module")
def from_release() -> Models:
    """A linear model of four predictors."""
    return dc.fit_models(release(4.0), FORMULA, draws=100, seed=1)


def test_a_model_of_four_predictors_fits_one_screen(models: Models) -> None:
    """At most 23 lines of 79 characters with every term, its estimate, interval and word; at most three notes, and how to see the rest."""
    lines = str(models).split("\n")
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 79
    table = lines[2 : 2 + len(models.terms)]
    for line, row in zip(table, models.frame.to_dict(orient="records"), strict=True):
        assert f"{row['estimate']:.4g}" in line
        assert f"{row['low']:.4g} to {row['high']:.4g}" in line
        assert line.endswith(row["trust"])
    assert 0 < sum(line.startswith("note: ") for line in lines) <= 3
    assert lines[-1].endswith("print(models.details)")
    assert all(note in models.details for note in models.notes)
    assert all(name in models.details for name in ("std. error", "closed low", "noise"))


def test_the_card_of_a_notebook_is_as_short(models: Models) -> None:
    """The same table and notes beside the plot; the notes in full are not there."""
    card = models._repr_html_()
    assert "trust" in card
    assert "std. error" not in card
    assert not any(note in card for note in models.notes)


def test_a_model_of_many_terms_shows_the_first_and_says_how_many_more() -> None:
    """Cut points go first, since they are on a scale of their own."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "rank": {"kind": "ordinal", "levels": [*range(9)]},
                "place": {"kind": "categorical", "levels": [*range(40)]},
            }
        }
    )
    counts = np.random.default_rng(1).integers(20, 60, schema.shape)
    models = dc.fit_models(
        dc.Release.from_tables({("rank", "place"): counts}, schema, scale=1), "rank ~ place", draws=60, seed=1
    )
    text = str(models)
    assert len(text.split("\n")) <= 23
    assert "0|1" not in text
    assert f"… and {len(models.terms) - text.count('place[')} more terms" in text


def test_the_word_on_trust_follows_noise_and_tables() -> None:
    """Little noise is good, much is noisy or weak, and a pair that was not measured is unmeasured."""
    words = {
        scale: set(dc.fit_models(release(scale), "sex ~ age", draws=200, seed=1).trust)
        for scale in (0.1, 60, 5000)
    }
    assert words[0.1] == {"good"}
    assert words[60] == {"noisy"}
    assert words[5000] == {"weak"}
    margins = {(name,): [100] * len(SURVEY.labels(name)) for name in SURVEY.attrs}
    alone = dc.fit_models(dc.Release.from_tables(margins, SURVEY, scale=1), "sex ~ age", draws=200, seed=1)
    assert alone.trust[1] == "unmeasured"


def test_the_most_important_note_comes_first() -> None:
    """That privacy noise is left out matters more than that a date counts in days or rows are missing."""
    frame = rows()
    frame["born"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(frame["age"], unit="D")
    models = dc.fit_models(frame, "income ~ born", missing="drop")
    notes = [line for line in str(models).split("\n") if line.startswith("note: ")]
    assert "the privacy noise is in no interval" in notes[0]
    assert "born" in notes[-1]


def test_levels_that_are_numbers_enter_as_numbers() -> None:
    """An ordinal column is one slope, that of least squares on the same numbers; C(…) makes categories of it."""
    frame = rows().dropna()
    exact = release(0.0)
    model = dc.fit_models(exact, "age ~ grade", draws=400, seed=1)
    assert model.terms == ("Intercept", "grade")
    middles = np.array([26.5, 44.5, 62.5, 80.5])[SURVEY.encode(pa.Table.from_pandas(rows()))[:, 1]]
    truth = smf.ols("age ~ grade", rows().assign(age=middles)).fit()
    row = model.frame.iloc[1]
    assert row["estimate"] == pytest.approx(truth.params["grade"], abs=0.3 * truth.bse["grade"])
    as_categories = dc.fit_models(exact, "age ~ C(grade)", draws=60, seed=1)
    assert as_categories.terms[1:] == ("C(grade)[T.2]", "C(grade)[T.4]", "C(grade)[T.8]")
    assert "C(grade) makes categories" in str(model)
    joints = dc.solve(exact, draws=2, seed=1)
    assert dc.fit_models(joints, "age ~ grade", seed=1).terms == ("Intercept", "grade")
    score = dc.evaluate(frame, frame, SURVEY, orders=[1], formula="sex ~ grade").model
    assert score is not None
    assert score.private.terms == ("Intercept", "grade")


def test_words_and_texts_stay_categories() -> None:
    """Levels of an ordinal column that are texts, and codes of a categorical one, are categories."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "ill": {"kind": "boolean"},
                "school": {"kind": "ordinal", "levels": ["low", "high"]},
                "place": {"kind": "categorical", "levels": [1, 2]},
            }
        }
    )
    counts = np.array([[[40, 30], [20, 30]], [[10, 30], [50, 20]]])
    whole = dc.Release.from_tables({("ill", "school", "place"): counts}, schema, scale=0)
    terms = dc.fit_models(whole, "ill ~ school + place", draws=60, seed=1).terms
    assert terms == ("Intercept", "school[T.high]", "place[T.2]")
