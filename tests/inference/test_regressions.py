"""Regressions on weighted cells, against statsmodels on rows, and against the coefficients that made the cells."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit
from statsmodels.miscmodels.ordinal_model import OrderedModel

from dpcipher.errors import ParameterError
from dpcipher.inference.design import make_task
from dpcipher.inference.regression import MOST_NUMBERS, Family, Regression
from dpcipher.schema.schema import Schema
from dpcipher.tables.domain import Floats

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "income", "kind": "categorical", "levels": ["low", "high"]},
            {"name": "age", "kind": "integer", "min": 20, "max": 69, "bins": 5},
            {"name": "sex", "kind": "categorical", "levels": ["F", "M"], "missing": "level"},
            {"name": "school", "kind": "ordinal", "levels": ["none", "some", "all"]},
            {"name": "hours per", "kind": "number", "edges": [0, 1, 3, 9]},
            {"name": "visits", "kind": "integer", "min": 0, "max": 4},
        ]
    }
)


def regression(formula: str, family: Family) -> tuple[Regression, pd.DataFrame]:
    """A regression over the cells of its columns, and the cells."""
    task = make_task(SCHEMA, formula, family)
    return task.regression, task.cells.frame


def rows(cells: int, draws: int = 3) -> Floats:
    """Several tables of counts, every cell with at least one row."""
    return np.random.default_rng(5).integers(1, 12, (draws, cells)).astype(float)


def by_statsmodels(model: Regression, counts: Floats) -> Floats:
    """The same regression on one row for each count."""
    x = np.repeat(model.x, counts.astype(int), axis=0)
    y = np.repeat(model.outcome, counts.astype(int))
    if model.family == "linear":
        return np.asarray(sm.OLS(y, x).fit().params)
    if model.family == "poisson":
        return np.asarray(sm.GLM(y, x, family=sm.families.Poisson()).fit(tol=1e-12).params)
    if model.family == "ordinal":
        fit = OrderedModel(y.astype(int), x, distr="logit").fit(method="bfgs", disp=0, gtol=1e-7)
        cuts = fit.model.transform_threshold_params(fit.params)[1:-1]
        return np.r_[cuts, fit.params[: x.shape[1]]]
    fit = sm.MNLogit(y.astype(int), x).fit(disp=0, method="newton", tol=1e-12)
    return np.asarray(fit.params).T.ravel()


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("income ~ age + sex * school", "logistic"),
        ("income ~ C(age) + log(`hours per`)", "logistic"),
        ("school ~ age + sex", "multinomial"),
        ("school ~ age + sex + visits", "ordinal"),
        ("visits ~ age + sex:school", "poisson"),
        ("age ~ sex + C(visits) + I(`hours per` ** 2)", "linear"),
        ("{age > 40} ~ sex + visits", "logistic"),
    ],
)
def test_every_draw_is_fitted_as_statsmodels_fits_its_rows(formula: str, family: Family) -> None:
    """All draws at once, each on the scale of its own columns; weights may be counts or probabilities."""
    model, cells = regression(formula, family)
    counts = rows(len(cells))
    fits = model.fit_draws(counts)
    beta = fits.coefficients
    assert fits.converged.all()
    assert beta.shape == (3, len(model.terms))
    for draw, table in zip(beta, counts, strict=True):
        np.testing.assert_allclose(draw, by_statsmodels(model, table), atol=2e-5, rtol=2e-5)


def test_the_coefficients_that_made_a_joint_are_found_again() -> None:
    """Where the joint is exact and the model holds, the maximiser is the truth to rounding."""
    model, cells = regression("income ~ age + sex + school", "logistic")
    truth = np.array([-1.0, 0.03, 0.5, -0.4, 0.8])
    share = np.random.default_rng(1).dirichlet(np.ones(len(cells) // 2))
    # Cells come with the outcome, the first column, slowest.
    weights = np.r_[share, share] * np.where(
        model.outcome == 1, expit(model.x @ truth), expit(-model.x @ truth)
    )
    np.testing.assert_allclose(model.fit_draws(weights[None]).coefficients[0], truth, atol=1e-7)


def test_cut_points_and_slopes_of_an_ordinal_joint_are_found_again() -> None:
    """Proportional odds with a sign as in R's polr: a positive slope moves the outcome up."""
    model, cells = regression("school ~ age + sex", "ordinal")
    assert model.terms == ("none|some", "some|all", "age", "sex[T.M]")
    below = expit(np.array([0.5, 2.0]) - (model.x @ [0.02, 0.7])[:, None])
    chance = np.diff(np.c_[np.zeros(len(cells)), below, np.ones(len(cells))], axis=1)
    share = np.random.default_rng(2).dirichlet(np.ones(len(cells) // 3))
    weights = np.tile(share, 3) * chance[np.arange(len(cells)), model.outcome.astype(int)]
    np.testing.assert_allclose(
        model.fit_draws(weights[None]).coefficients[0], [0.5, 2.0, 0.02, 0.7], atol=1e-6
    )


def test_the_scale_of_a_column_only_scales_its_coefficient() -> None:
    """A column in millionths would need steps that Newton's method cuts; the design is scaled first."""
    model, cells = regression("income ~ I(age / 1e6) + sex", "logistic")
    plain, _ = regression("income ~ age + sex", "logistic")
    counts = rows(len(cells))
    np.testing.assert_allclose(
        model.fit_draws(counts).coefficients[:, 1],
        1e6 * plain.fit_draws(counts).coefficients[:, 1],
        rtol=1e-6,
    )


def test_draws_in_parts_are_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory bounds how many draws are fitted at once; the answer does not depend on it."""
    model, cells = regression("income ~ age + sex", "logistic")
    counts = rows(len(cells), 20)
    whole = model.fit_draws(counts).coefficients
    assert counts.size < MOST_NUMBERS
    monkeypatch.setattr("dpcipher.inference.regression.MOST_NUMBERS", 3 * model.x.size)
    np.testing.assert_allclose(model.fit_draws(counts).coefficients, whole, atol=1e-8)


def test_terms_that_follow_from_others_are_unknown() -> None:
    """A number beside its own categories."""
    model, cells = regression("income ~ C(age) + age", "logistic")
    beta = model.fit_draws(rows(len(cells))).coefficients
    assert np.isnan(beta).sum(axis=0).tolist() == [0, 0, 0, 0, 0, 3]


def test_cut_points_are_an_intercept() -> None:
    """An ordinal model cannot do without one: the formula that leaves it out is the one that has it."""
    model, cells = regression("school ~ 0 + sex", "ordinal")
    plain, _ = regression("school ~ sex", "ordinal")
    counts = rows(len(cells))
    assert model.terms == plain.terms
    np.testing.assert_array_equal(model.fit_draws(counts).coefficients, plain.fit_draws(counts).coefficients)


def test_structural_zeros_leave_their_terms_unknown() -> None:
    """A level that no draw gives any weight has no coefficient, and the others keep theirs."""
    model, cells = regression("income ~ sex + school", "logistic")
    counts = rows(len(cells)) * (cells["school"] != "all").to_numpy()
    beta = model.fit_draws(counts).coefficients
    assert np.isnan(beta[:, model.terms.index("school[T.all]")]).all()
    assert np.isfinite(beta[:, :3]).all()


@pytest.mark.parametrize(
    ("formula", "family", "rule"),
    [
        ("income", "logistic", "outcome ~ terms"),
        ("incom ~ sex", "logistic", "did you mean 'income'"),
        ("income ~ agee", "logistic", "did you mean 'age'"),
        ("income ~ log(agee)", "logistic", "did you mean 'age'"),
        ("income ~ age +", "logistic", "cannot be read"),
        ("income ~ .", "logistic", "name the columns"),
        ("income ~ age | sex", "logistic", "leave out"),
        ("income ~ age + income", "logistic", "not among its terms"),
        ("income ~ scale(age)", "logistic", "needs all rows"),
        ("income ~ sin(age)", "logistic", "cannot be used"),
        ("income ~ log(age - 24.5)", "logistic", "finite number for every bin"),
        ("income ~ C(log(age - 30))", "logistic", "finite number for every bin"),
        ("income ~ C(sex, levels=['M'])", "logistic", "must be all levels of its column"),
        ("income ~ {dict()[sex[0]]}", "logistic", "cannot be used"),
        ("income ~ I(age ** )", "logistic", "not an expression|cannot be read"),
        ("school ~ age", "logistic", "family='multinomial'"),
        ("school ~ age", "linear", "must be a finite number for family='linear'"),
        ("age + visits ~ sex", "ordinal", "must be one number"),
        ("I(age - 50) ~ sex", "poisson", "0 or more"),
        ("age + visits ~ sex", "linear", "must be one number"),
    ],
)
def test_wrong_formulas_are_refused(formula: str, family: Family, rule: str) -> None:
    """Each check fires before anything is drawn, and says what to do."""
    with pytest.raises(ParameterError, match=rule):
        regression(formula, family)


def test_numbers_used_only_as_categories_keep_the_names_of_their_bins() -> None:
    """C(age) has the schema's labels; C(age) beside age has the values that stand for the bins."""
    assert regression("income ~ C(age)", "logistic")[0].terms[1] == "C(age)[T.30..39]"
    assert regression("income ~ C(age) + age", "logistic")[0].terms[1] == "C(age)[T.34.5]"


def test_missing_levels_are_dropped_or_kept() -> None:
    """Cells with a missing value stand outside the model unless missing is to be a level."""
    dropped = make_task(SCHEMA, "income ~ sex", "logistic")
    kept = make_task(SCHEMA, "income ~ sex", "logistic", missing="level")
    assert (dropped.cells.keep.sum(), kept.cells.keep.sum()) == (4, 6)
    assert (dropped.cells.dropped, kept.cells.dropped) == (("sex",), ())
    assert kept.terms[-1] == "sex[T.(missing)]"


def test_levels_and_values_follow_the_caller() -> None:
    """The first level is the reference; declared values stand for bins."""
    levels = {"sex": ["M", "F"], "income": ["high", "low"]}
    task = make_task(SCHEMA, "income ~ sex + age", "logistic", levels=levels, values={"age": [1, 2, 3, 4, 5]})
    assert task.terms == ("Intercept", "sex[T.F]", "age")
    plain, frame = regression("income ~ sex + age", "logistic")
    counts = rows(len(frame), 1)
    assert len(frame) == len(task.cells.frame)
    both = [model.fit_draws(counts).coefficients[0] for model in (task.regression, plain)]
    # high as the reference turns every sign, M as the reference turns that of sex again; a year is a tenth of a bin.
    np.testing.assert_allclose(both[0][1:], [both[1][1], -10 * both[1][2]], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"levels": {"sex": ["M"]}}, "in another order"),
        ({"levels": {"sexx": ["M", "F"]}}, "did you mean 'sex'"),
        ({"values": {"age": [1.0]}}, "each of its 5 bins"),
        ({"values": {"sex": [1.0, 2.0]}}, "column with bins"),
        ({"missing": "keep"}, "'drop' or 'level'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], rule: str) -> None:
    """Each check names the option and the rule."""
    with pytest.raises(ParameterError, match=rule):
        make_task(SCHEMA, "income ~ sex + age", "logistic", **options)


def test_a_level_that_leaves_the_outcome_no_choice_has_no_finite_term() -> None:
    """Its term is unknown, the reference level's are its whole column's; the others are those of the rows without that level."""
    rng = np.random.default_rng(8)
    weights = rng.dirichlet(np.ones(24), 5).reshape(5, 2, 4, 3)
    for level, unknown in ((2, [2]), (0, [0, 1, 2, 3])):
        possible = weights.copy()
        possible[:, 1, level] = 0
        schema = Schema.from_domain({"y": 2, "a": 4, "b": 3})
        task = make_task(schema, "y ~ C(a) + C(b)", "logistic")
        fits = task.fit(possible)
        found = fits.coefficients
        assert fits.converged.all()
        assert np.flatnonzero(np.isnan(found[0])).tolist() == unknown
        without = possible.copy()
        without[:, :, level] = 0
        expected = task.fit(without).coefficients
        both = ~np.isnan(found[0]) & ~np.isnan(expected[0])
        assert both[4:].all()
        assert found[:, both] == pytest.approx(expected[:, both], abs=1e-6)
