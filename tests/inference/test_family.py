"""The family that follows from the outcome: the same for a release, its joints and their rows, and the model that it would be by name."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import ParameterError

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "employed": {"kind": "boolean", "missing": "level"},
            "age": {"kind": "integer", "min": 20, "max": 79, "bins": 3},
            "school": {"kind": "ordinal", "levels": ["primary", "college", "university"]},
            "region": {"kind": "categorical", "levels": ["coast", "hills", "town"]},
            "half": {"kind": "number", "edges": [0, 1, 2]},
        }
    }
)
FAMILIES = [
    ("employed ~ age", "logistic"),
    ("age ~ school", "linear"),
    ("school ~ age", "ordinal"),
    ("region ~ age", "multinomial"),
    ("half ~ age", "logistic"),
    ("I(age > 40) ~ school", "logistic"),
    ("np.log(age) ~ school", "linear"),
]


@pytest.fixture(scope="module")
def release() -> dc.Release:
    """A whole table in which everything depends on everything, a little."""
    rng = np.random.default_rng(5)
    counts = 20 + 30 * rng.random(SCHEMA.shape)
    return dc.Release.from_tables({SCHEMA.attrs: counts.round()}, SCHEMA, scale=1.0)


@pytest.mark.parametrize(("formula", "family"), FAMILIES)
def test_a_release_and_its_joints_have_the_family_of_the_outcome(
    release: dc.Release, formula: str, family: str
) -> None:
    """And the very estimates of the model that is asked for by name."""
    for sets, options in (
        (release, {"draws": 60, "seed": 1}),
        (dc.solve(release, draws=2, seed=1), {"seed": 1}),
    ):
        models = dc.fit_models(sets, formula, **options)
        assert models.family == family
        named = dc.fit_models(sets, formula, family, **options)
        pd.testing.assert_frame_equal(models.frame, named.frame)
        assert models.notes == named.notes


def test_rows_have_the_family_of_their_outcome() -> None:
    """Two classes, numbers, categories with an order and without; the linear fit is that of statsmodels."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=300)})
    frame["y"] = 2 * frame["x"] + rng.normal(size=300)
    frame["two"] = (frame["y"] > 0).astype(int)
    frame["word"] = np.where(frame["y"] > 1, "c", np.where(frame["y"] > 0, "b", "a"))
    frame["rank"] = pd.Categorical(frame["word"], ["a", "b", "c"], ordered=True)
    found = {name: dc.fit_models(frame, f"{name} ~ x").family for name in ("two", "y", "word", "rank")}
    assert found == {"two": "logistic", "y": "linear", "word": "multinomial", "rank": "ordinal"}
    ours, theirs = dc.fit_models(frame, "y ~ x").frame, smf.ols("y ~ x", frame).fit()
    np.testing.assert_allclose(ours["estimate"], theirs.params)
    np.testing.assert_allclose(ours["std_error"], theirs.bse)


def test_scores_of_a_model_have_one_family_on_both_sides(release: dc.Release) -> None:
    """That of the column's kind, although the rows are categories there."""
    rows = dc.solve(release).sample(800, seed=1).dropna()
    model = dc.evaluate(rows, rows, SCHEMA, orders=[1], formula="school ~ age").model
    assert model is not None
    assert model.private.family == model.synthetic.family == "ordinal"


def test_the_command_says_which_family_it_took(release: dc.Release, tmp_path) -> None:
    """Of a number, a linear model."""
    release.save(tmp_path / "r.parquet")
    words = ["model", str(tmp_path / "r.parquet"), "age ~ school", "--draws", "60", "--seed", "1"]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert "linear model age ~ school" in said.output


def test_a_family_that_is_none_is_refused(release: dc.Release) -> None:
    """With the nearest one."""
    with pytest.raises(ParameterError, match=r"family \('logit'\) must be one of .*did you mean 'logistic'"):
        dc.fit_models(release, "employed ~ age", "logit")  # type: ignore[arg-type]
