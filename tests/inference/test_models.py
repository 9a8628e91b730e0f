"""Models over m sets, against statsmodels and the rule applied by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from statsmodels.miscmodels.ordinal_model import OrderedModel

from dpcipher.errors import ParameterError
from dpcipher.inference.combine import combine
from dpcipher.inference.models import fit_models


def people(seed: int, n: int = 300) -> pd.DataFrame:
    """Rows whose income depends on age and sex."""
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["F", "M"], n), rng.choice(["young", "middle", "old"], n)
    eta = 0.3 + 0.8 * (sex == "M") - 0.9 * (age == "young")
    chance = 1 / (1 + np.exp(-eta))
    income = np.where(rng.random(n) < chance, "high", "base")
    pay = 10 + 3 * (sex == "M") + rng.normal(size=n)
    return pd.DataFrame({"income": income, "sex": sex, "age": age, "pay": pay})


def test_a_logistic_model_over_sets_is_the_rule_applied_to_each_fit() -> None:
    """Each fit equals statsmodels'; the combination equals `combine` of those."""
    sets = [people(seed) for seed in range(3)]
    found = fit_models(sets, "income ~ sex + age")
    fits = [
        smf.logit("y ~ sex + age", one.assign(y=(one["income"] == "high").astype(int))).fit(disp=0)
        for one in sets
    ]
    np.testing.assert_allclose(found.estimates, [fit.params for fit in fits], atol=1e-7)
    by_hand = combine([fit.params for fit in fits], [fit.bse**2 for fit in fits])
    np.testing.assert_allclose(found.table()["std_error"], by_hand.std_error, atol=1e-7)
    np.testing.assert_allclose(found.table()["dof"], by_hand.dof, rtol=1e-5)
    assert found.terms == ("Intercept", "sex[T.M]", "age[T.old]", "age[T.young]")
    assert not found.firth


def test_a_linear_model_equals_statsmodels() -> None:
    """Coefficients and standard errors of least squares."""
    one = people(4)
    found, theirs = (
        fit_models(one, "pay ~ sex * age", "linear").table(),
        smf.ols("pay ~ sex * age", one).fit(),
    )
    np.testing.assert_allclose(found["estimate"], theirs.params, atol=1e-9)
    np.testing.assert_allclose(found["std_error"], theirs.bse, atol=1e-9)


def test_a_multinomial_model_names_class_and_term() -> None:
    """The first level is the reference; others prefix their terms."""
    found = fit_models(
        [people(1), people(2)], "age ~ sex", "multinomial", levels={"age": ["young", "middle", "old"]}
    )
    assert found.terms == ("middle: Intercept", "middle: sex[T.M]", "old: Intercept", "old: sex[T.M]")
    theirs = smf.mnlogit(
        "age_code ~ sex",
        people(1).assign(age_code=lambda d: d["age"].map({"young": 0, "middle": 1, "old": 2})),
    ).fit(disp=0)
    np.testing.assert_allclose(found.estimates[0], theirs.params.to_numpy().T.ravel(), atol=1e-7)


def test_separation_in_one_set_penalises_all_of_them_and_says_so() -> None:
    """Nobody old has a high income in set 2: the estimate would be minus infinity there."""
    apart = people(1)
    apart.loc[apart["age"] == "old", "income"] = "base"
    found = fit_models([people(0), apart], "income ~ age")
    assert found.firth
    assert np.isfinite(found.estimates).all()
    assert "Firth" in found.notes[0]
    assert "set(s) 2" in found.notes[0]
    counts = pd.crosstab(apart["age"], apart["income"]) + 0.5
    odds = np.log(counts["high"] / counts["base"])
    assert found.estimates[1, 1] == pytest.approx(odds["old"] - odds["middle"], abs=1e-6)


def test_separation_without_the_penalty_is_refused() -> None:
    """`firth=False` insists on maximum likelihood, which does not exist here."""
    apart = people(1)
    apart.loc[apart["age"] == "old", "income"] = "base"
    with pytest.raises(ParameterError, match="no finite fit"):
        fit_models(apart, "income ~ age", firth=False)


def test_a_level_missing_from_one_set_leaves_its_parameter_unknown() -> None:
    """Other parameters keep their place and their value."""
    lacking = people(1)
    lacking = lacking[lacking["age"] != "old"]
    found = fit_models([people(0), lacking], "income ~ sex + age")
    assert np.isnan(found.table().loc["age[T.old]", "estimate"])
    assert np.isfinite(found.table().loc["sex[T.M]", "estimate"])
    assert any("age[T.old]" in note and "set(s) 2" in note for note in found.notes)


def test_arrow_tables_and_frames_are_the_same_sets() -> None:
    """The kind of table does not matter, nor does a frame of the caller change."""
    frame = people(0)
    before = frame.copy()
    by_arrow = fit_models(
        [pa.Table.from_pandas(people(1)), pa.Table.from_pandas(frame)], "income ~ sex + age"
    )
    by_frame = fit_models((people(1), frame), "income ~ sex + age")
    np.testing.assert_allclose(by_arrow.estimates, by_frame.estimates)
    pd.testing.assert_frame_equal(frame, before)


def test_declared_categories_of_all_sets_are_joined() -> None:
    """A category that only the second set declares is a parameter, unknown in the first."""
    first = people(0)[lambda d: d["age"] != "old"].astype({"age": pd.CategoricalDtype(["young", "middle"])})
    second = people(1).astype({"age": pd.CategoricalDtype(["young", "middle", "old"])})
    found = fit_models([first, second], "income ~ age")
    assert found.terms == ("Intercept", "age[T.middle]", "age[T.old]")
    assert np.isnan(found.estimates[0, 2])


def test_one_set_is_flagged() -> None:
    """One frame is m = 1."""
    assert any("m = 1" in note for note in fit_models(people(0), "income ~ sex").notes)


def test_the_text_shows_the_notes() -> None:
    """Printing a result does not lose its caveats."""
    assert "note: m = 1" in fit_models(people(0), "income ~ sex").details


@pytest.mark.parametrize(
    ("formula", "family", "rule"),
    [
        ("income", "logistic", "outcome ~ terms"),
        ("incom ~ sex", "logistic", "did you mean 'income'"),
        ("income ~ sx", "logistic", "must be a column of the sets; did you mean 'sex'"),
        ("income ~ poly(agee, 2)", "logistic", "must be a column of the sets; did you mean 'age'"),
        ("income ~ sex + log(income)", "logistic", "outcome on the left that is not among its terms"),
        ("pay ~ log(sex)", "linear", "cannot be used"),
        ("pay ~ sqrt(pay2)", "linear", "did you mean 'pay'"),
        ("income ~ sqrt(pay)", "logistic", r"no function 'sqrt'; write np\.sqrt"),
        ("income ~ log(0 * pay)", "logistic", "finite number in every row"),
        ("pay > 10 ~ sex", "logistic", r"braces, as \{age > 40\}"),
        ("pay + age ~ sex", "linear", "arithmetic stands in"),
        ("age ~ sex", "logistic", "family='multinomial'"),
        ("one ~ sex", "logistic", "at least 2 levels, and has 1; model"),
        ("income ~ sex", "logit", "did you mean|must be one of"),
    ],
)
def test_wrong_requests_are_refused(formula: str, family: Any, rule: str) -> None:
    """Each check fires, and says what to do."""
    with pytest.raises(ParameterError, match=rule):
        fit_models(people(0).assign(one=1), formula, family)


def test_sets_with_other_columns_are_refused() -> None:
    """m sets are m draws of the same table."""
    with pytest.raises(ParameterError, match="same columns"):
        fit_models([people(0), people(1).drop(columns="sex")], "income ~ age")


@pytest.mark.parametrize("terms", ["0 + sex + pay", "sex + pay - 1"])
def test_an_ordinal_model_over_sets_keeps_its_cut_points(terms: str) -> None:
    """Without an intercept it is the model with one, as from a release and as statsmodels has it, which takes no intercept."""
    order, sets = {"age": ["young", "middle", "old"]}, [people(1, 600), people(2, 600)]
    without, plain = (
        fit_models(sets, f"age ~ {right}", "ordinal", levels=order) for right in (terms, "sex + pay")
    )
    assert without.terms == ("young|middle", "middle|old", "sex[T.M]", "pay")
    np.testing.assert_array_equal(without.estimates, plain.estimates)
    for data, found in zip(sets, without.estimates, strict=True):
        x = np.c_[data["sex"] == "M", data["pay"]].astype(float)
        y = pd.Categorical(data["age"], order["age"]).codes
        theirs = OrderedModel(y, x, distr="logit").fit(method="bfgs", disp=0, gtol=1e-8)
        np.testing.assert_allclose(found[2:], theirs.params[:2], atol=1e-4)
    assert any("leaves out the intercept" in note for note in without.notes)
    assert not any("leaves out the intercept" in note for note in plain.notes)


def test_a_transform_of_all_rows_means_the_same_in_every_set() -> None:
    """`scale` takes mean and deviation of the rows of all sets, and `C` of a number the values of all, whichever a set has."""
    sets = [people(seed).assign(kids=np.arange(300) % (3 + seed)) for seed in range(2)]
    pay = pd.concat(sets)["pay"]
    found = fit_models(sets, "income ~ scale(pay)").estimates[:, 1]
    plain = fit_models(sets, "income ~ pay").estimates[:, 1]
    np.testing.assert_allclose(found / plain, pay.std(), rtol=1e-6)
    kids = fit_models(sets, "income ~ C(kids)")
    assert kids.terms == ("Intercept", "C(kids)[T.1]", "C(kids)[T.2]", "C(kids)[T.3]")
    assert np.isnan(kids.estimates).tolist() == [[False, False, False, True], [False] * 4]


def test_missing_values_inside_a_transform_are_seen() -> None:
    """Also of a column that stands in a transform of all rows."""
    data = people(1)
    data.loc[:9, "pay"] = np.nan
    with pytest.raises(ParameterError, match=r"pay.*missing='drop'"):
        fit_models(data, "income ~ poly(pay, 2)")
    found = fit_models(data, "income ~ poly(pay, 2)", missing="drop")
    assert found.estimates == pytest.approx(fit_models(data[10:], "income ~ poly(pay, 2)").estimates)


def test_an_outcome_may_be_an_expression() -> None:
    """As from a release: the logarithm of a number, and a condition, against statsmodels."""
    sets = [people(1), people(2)]
    logs = fit_models(sets, "log(pay) ~ sex", "linear").estimates
    theirs = [smf.ols("np.log(pay) ~ sex", data).fit().params for data in sets]
    np.testing.assert_allclose(logs, theirs, atol=1e-9)
    high = fit_models(sets, "{pay > 11} ~ sex").estimates
    theirs = [
        smf.logit("y ~ sex", data.assign(y=(data["pay"] > 11).astype(int))).fit(disp=0).params
        for data in sets
    ]
    np.testing.assert_allclose(high, theirs, atol=1e-6)


@pytest.mark.parametrize("kind", ["pandas", "python"])
def test_dates_count_in_days(kind: str) -> None:
    """As those of a release do, and not as one level each; a note has the unit."""
    days = pd.Series(pd.date_range("2020-01-01", periods=50))
    born = days if kind == "pandas" else days.dt.date
    data = pd.DataFrame({"born": born, "pay": np.random.default_rng(1).normal(size=50)})
    data.loc[0, "born"] = None
    found = fit_models(data, "pay ~ born", "linear", missing="drop")
    slope, start = np.polyfit(18262 + np.arange(1, 50), data["pay"][1:], 1)
    assert found.terms == ("Intercept", "born")
    np.testing.assert_allclose(found.estimates[0], [start, slope], rtol=1e-6)
    assert any("days since 1970-01-01" in note for note in found.notes)
