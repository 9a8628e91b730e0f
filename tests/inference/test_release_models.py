"""Models straight from a release, against the regression on the very rows and against joints that are known."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from scipy.special import expit

import dpcipher as dc
from dpcipher.errors import ParameterError
from dpcipher.inference.estimate import DrawSummary
from dpcipher.inference.regression import Family
from dpcipher.inference.release_models import noise_share

SCHEMA = dc.Schema.from_dict(
    {
        "columns": [
            {"name": "income", "kind": "categorical", "levels": ["low", "high"]},
            {"name": "age", "kind": "integer", "min": 20, "max": 69, "bins": 5},
            {"name": "sex", "kind": "categorical", "levels": ["F", "M"], "missing": "level"},
        ]
    }
)
TABLES = [("income", "age"), ("income", "sex"), ("age", "sex")]


def people(n_rows: int = 4_000) -> pd.DataFrame:
    """Rows whose income depends on age and sex; the sex of some is unknown."""
    rng = np.random.default_rng(3)
    age, sex = rng.integers(20, 70, n_rows), rng.choice(["F", "M"], n_rows)
    rich = rng.random(n_rows) < expit(-2.5 + 0.05 * age + 0.6 * (sex == "M"))
    sex = np.where(rng.random(n_rows) < 0.1, None, sex)
    return pd.DataFrame({"income": np.where(rich, "high", "low"), "age": age, "sex": sex})


def counts(rows: pd.DataFrame, attrs: tuple[str, ...]) -> np.ndarray:
    """The true table of some columns."""
    codes = np.stack([SCHEMA.column(name).encode(pa.array(rows[name], from_pandas=True)) for name in attrs])
    shape = [SCHEMA.column(name).size for name in attrs]
    return np.bincount(np.ravel_multi_index(tuple(codes), shape), minlength=np.prod(shape)).reshape(shape)


def exact(rows: pd.DataFrame, tables: list[tuple[str, ...]]) -> dc.Release:
    """A release of true tables."""
    return dc.Release.from_tables({attrs: counts(rows, attrs) for attrs in tables}, SCHEMA, scale=0)


def coded(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows as the model sees them: without unknown sex, ages at the middle of their bins."""
    known = rows.dropna()
    return known.assign(
        age=20 + 10 * ((known["age"] - 20) // 10) + 4.5, y=(known["income"] == "high").astype(int)
    )


def test_the_exact_full_table_gives_the_regression_on_its_rows() -> None:
    """Estimates and standard errors are those of maximum likelihood, which with 4,000 rows is what a posterior has too."""
    rows = people()
    found = dc.fit_models(exact(rows, [("income", "age", "sex")]), "income ~ age + sex", seed=1)
    theirs = smf.logit("y ~ age + sex", coded(rows)).fit(disp=0)
    truth, error = theirs.params[list(found.terms)], theirs.bse[list(found.terms)].to_numpy()
    assert found.frame["term"].tolist() == ["Intercept", "age", "sex[T.M]"]
    assert (np.abs(found.frame["estimate"] - truth.to_numpy()) < 0.2 * error).all()
    np.testing.assert_allclose(found.frame["std_error"], error, rtol=0.12)
    # The tables are exact: nothing of the width is noise, and nothing is assumed.
    np.testing.assert_allclose(found.frame["noise_share"], 0, atol=1e-6)
    assert found.frame["measured"].all()
    assert "closed_low" not in found.frame


def test_a_noisy_release_covers_its_rows_and_says_how_much_is_noise() -> None:
    """The noise widens the interval around about the same place."""
    rows = people()
    release = dc.measure(rows, SCHEMA, epsilon=0.5, unit="add-remove")
    found = dc.fit_models(release, "income ~ age + sex", seed=1)
    theirs = smf.logit("y ~ age + sex", coded(rows)).fit(disp=0)
    frame = found.frame
    assert list(frame.columns) == [
        "term", "estimate", "std_error", "low", "high", "p", "noise_share", "measured", "trust", "closed_low", "closed_high",
    ]  # fmt: skip
    assert (frame["low"] < frame["estimate"]).all()
    assert (frame["estimate"] < frame["high"]).all()
    places = list(found.terms)
    assert (np.abs(frame["estimate"] - theirs.params[places].to_numpy()) < 5 * frame["std_error"]).all()
    assert (frame["std_error"] > 0.9 * theirs.bse[places].to_numpy()).all()
    assert frame["noise_share"].between(0.01, 0.99).all()
    assert found.estimates.shape == (1000, 3)
    assert (found.variances == 0).all()
    assert list(found.table().columns) == ["estimate", "std_error", "dof", "low", "high", "significant"]


def test_a_seed_repeats_the_draws() -> None:
    """Sampling costs no privacy and may be seeded."""
    release = exact(people(), TABLES)
    first, second, third = (
        dc.fit_models(release, "income ~ sex", seed=seed, draws=50).frame for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first, second)
    assert not first["estimate"].equals(third["estimate"])


def test_a_term_that_no_table_shows_is_named_and_left_open() -> None:
    """The formula asks for an interaction, so the model does not take it for 0; pairs alone cannot tell it, nor what holds at its reference levels."""
    release = exact(people(), TABLES)
    found = dc.fit_models(release, "income ~ age * sex", seed=1, draws=200)
    frame = found.frame.set_index("term")
    assert frame.index.tolist() == ["Intercept", "age", "sex[T.M]", "age:sex[T.M]"]
    assert not frame["measured"].any()
    assert frame.loc["age:sex[T.M]", "noise_share"] > 0.9
    assert any("age:sex[T.M]: no measured table" in note for note in found.notes)
    known = dc.fit_models(
        exact(people(), [("income", "age", "sex")]), "income ~ age * sex", seed=1, draws=200
    )
    # Effects at a reference level rest on the interaction as it does itself.
    wider = frame["std_error"] / known.frame.set_index("term")["std_error"]
    assert wider["age:sex[T.M]"] > 2
    assert wider["sex[T.M]"] > 2
    assert known.frame["measured"].all()


def test_the_facts_that_draws_were_accepted_on_are_there() -> None:
    """As a value, and as a note that every page and every answer of the command shows."""
    found = dc.fit_models(exact(people(300), TABLES), "income ~ age", seed=1, draws=100)
    assert found.release is not None
    assert not found.release.sampler.faults
    assert found.notes[-1].endswith(found.release.sampler.facts)


def test_what_no_table_shows_is_left_open_unless_asked_otherwise() -> None:
    """Pairs leave the three-way interaction open; taking it for none cannot make anything less sure, Monte Carlo error aside."""
    release = exact(people(), TABLES)
    frame = dc.fit_models(release, "income ~ age + sex", seed=1, draws=400).frame
    assert (frame["closed_high"] - frame["closed_low"] < 1.15 * (frame["high"] - frame["low"])).all()
    none = dc.fit_models(release, "income ~ age + sex", seed=1, draws=400, unmeasured="none")
    assert "closed_low" not in none.frame
    np.testing.assert_allclose(none.frame["low"], frame["closed_low"])
    assert any("taken for none, which the release cannot check" in note for note in none.notes)


def test_a_linear_model_of_main_effects_needs_no_more_than_pairs() -> None:
    """Its normal equations hold pairs alone, so what is left open changes nothing but rounding."""
    options = {
        "seed": 1,
        "draws": 100,
        "missing": "level",
    }  # dropping rows by sex is a question about three columns
    found = dc.fit_models(exact(people(), TABLES), "age ~ income + sex", "linear", **options).frame  # type: ignore[arg-type]
    np.testing.assert_allclose(found["closed_low"], found["low"], rtol=0.002)
    np.testing.assert_allclose(found["closed_high"], found["high"], rtol=0.002)


def test_a_pair_that_was_never_measured_is_open_too() -> None:
    """Income and sex meet in no table: their coefficient is the prior's, not 0."""
    release = exact(people(), [("income", "age"), ("age", "sex")])
    frame = dc.fit_models(release, "income ~ age + sex", seed=1, draws=200).frame.set_index("term")
    assert not frame.loc["sex[T.M]", "measured"]
    assert frame.loc["sex[T.M]", "std_error"] > 0.5
    assert frame.loc["age", "measured"]


def test_bins_and_missing_values_are_explained() -> None:
    """Which value stands for a bin, what another would do, and which rows are left out."""
    found = dc.fit_models(exact(people(), TABLES), "income ~ age + sex", seed=1, draws=50)
    notes = " ".join(found.notes)
    assert "age: its middle stands for each of its 5 bins" in notes
    assert "rows in which sex is missing are left out" in notes
    assert "the 90." in notes or "the 89." in notes
    assert found.release is not None
    assert found.release.bins.columns.tolist() == ["column", "term", "low", "high", "spread"]
    slope = found.release.bins.set_index("term").loc["age"]
    assert slope["low"] == pytest.approx(
        0, abs=1e-3
    )  # equal bins: an end is a shift, and a shift moves no slope
    assert slope["spread"] < -0.05  # values that say nothing about income within a bin dilute the slope
    kept = dc.fit_models(
        exact(people(), TABLES), "income ~ age + sex", seed=1, draws=50, missing="level",
        values={"age": [25, 35, 45, 55, 65]},
    )  # fmt: skip
    assert kept.terms[-1] == "sex[T.(missing)]"
    assert any("the value given stands" in note for note in kept.notes)
    assert not any("left out" in note for note in kept.notes)


def test_little_data_is_said_to_be_the_priors() -> None:
    """Noise of a thousand on a table of a hundred rows says nothing, and the result admits it."""
    rows = people(100)
    tables = {attrs: counts(rows, attrs) for attrs in TABLES}
    release = dc.Release.from_tables(tables, SCHEMA, scale=300.0, n_rows=100)
    found = dc.fit_models(release, "income ~ sex", seed=1, draws=100)
    assert any("leaves the release little to say" in note for note in found.notes)


@pytest.mark.parametrize(
    ("formula", "family", "options", "rule"),
    [
        ("incom ~ age", "logistic", {}, "did you mean 'income'"),
        ("age ~ sex", "logistic", {}, "must have 2"),
        ("income ~ age", "logit", {}, "must be one of"),
        ("income ~ age", "logistic", {"firth": True}, "is for models from sets"),
        ("income ~ age", "logistic", {"sanitizations": 1}, "is for models from sets"),
        ("income ~ age", "logistic", {"draws": 1}, "draws"),
        ("income ~ age", "logistic", {"missing": "keep"}, "'drop' or 'level'"),
        ("income ~ age", "logistic", {"unmeasured": "some"}, "'open' or 'none'"),
        ("income ~ 0", "logistic", {}, "must have a term"),
        ("I(income == 'High') ~ age", "logistic", {}, "is the same for all"),
        ("I(income == 'High') ~ age", "linear", {}, "is the same for all"),
    ],
)
def test_wrong_requests_of_a_release_are_refused(
    formula: str, family: Family, options: dict[str, object], rule: str
) -> None:
    """Each check names the rule and the fix."""
    with pytest.raises(ParameterError, match=rule):
        dc.fit_models(exact(people(300), TABLES), formula, family, **options)  # type: ignore[arg-type]


def test_options_of_a_release_are_refused_for_sets() -> None:
    """Draws of a posterior mean nothing for rows."""
    with pytest.raises(ParameterError, match="is for models from a release"):
        dc.fit_models(people(300).dropna(), "income ~ age", draws=100)


def test_noise_share_is_what_the_table_explains() -> None:
    """A population that scatters around its table with as much variance again is half noise, shrunk or not."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20_000, 3)) * [1.0, 0.0, 2.0]
    population = table * [1, 1, 0.5] + rng.normal(size=(20_000, 3))
    np.testing.assert_allclose(noise_share(table, population), [0.5, 0.0, 0.5], atol=0.02)
    assert np.isnan(noise_share(np.zeros((5, 1)), np.zeros((5, 1)))).all()


def test_draws_give_quantiles_and_tail_probabilities() -> None:
    """By hand on a hundred draws: p agrees with the interval, and never says 0."""
    draws = np.stack([np.arange(1.0, 101), np.arange(100.0) - 2.5, np.zeros(100)], axis=1)
    found = DrawSummary(draws)
    np.testing.assert_allclose(found.estimate, [50.5, 47.0, 0.0])
    np.testing.assert_allclose(found.interval(0.9)[0], [5.05, 1.55, 0.0])
    np.testing.assert_allclose(found.p, [2 / 101, 2 * 4 / 101, 1.0])
    assert found.significant(0.9).tolist() == [True, True, False]
    assert found.significant(0.95).tolist() == [True, False, False]
    with pytest.raises(ParameterError, match="between 0 and 1"):
        found.interval(95)


def test_the_monte_carlo_error_is_that_of_a_normal_quantile() -> None:
    """Against quantiles of many sets of normal draws."""
    draws = np.random.default_rng(1).normal(size=(400, 3_000))
    spread = np.quantile(draws, 0.975, axis=0).std()
    assert DrawSummary(draws).monte_carlo_error() == pytest.approx(spread, rel=0.05)


def test_a_note_says_where_special_values_of_an_ordinal_outcome_stand() -> None:
    """Zero comes after the bins unless the order is given; then the first class is zero, and the cut points are others."""
    spend = {"kind": "number", "edges": [0, 100, 1000], "special": [0]}
    schema = dc.Schema.from_dict(
        {"columns": {"sex": {"kind": "categorical", "levels": ["F", "M"]}, "spend": spend}}
    )
    counts = np.array([[300.0, 200, 500], [200.0, 300, 100]])
    release = dc.Release.from_tables({("sex", "spend"): counts}, schema, scale=2)
    as_coded = dc.fit_models(release, "spend ~ sex", "ordinal", draws=100, seed=1)
    order = ["0", "[0, 100)", "[100, 1000]"]
    ordered = dc.fit_models(release, "spend ~ sex", "ordinal", levels={"spend": order}, draws=100, seed=1)
    about = [[note for note in models.notes if "special values" in note] for models in (as_coded, ordered)]
    assert [len(notes) for notes in about] == [1, 0]
    assert "special values of spend (0)" in about[0][0]
    share = counts[0, 2] / counts[0].sum()
    assert ordered.frame.estimate[0] == pytest.approx(np.log(share / (1 - share)), abs=0.35)
    assert as_coded.frame.estimate[0] < ordered.frame.estimate[0]
