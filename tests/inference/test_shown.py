"""Fitted models as people see them: text, HTML, a coefficient plot, plain values."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import t as student
from statsmodels.miscmodels.ordinal_model import OrderedModel

import dpcipher as dc
from dpcipher.drawing.forest import DotLine, forest_plot
from dpcipher.errors import ParameterError
from dpcipher.inference.fitted import Models, ReleaseFit
from dpcipher.inference.shown import headline
from dpcipher.posteriors.sampler import SamplerReport

SCHEMA = dc.Schema.from_domain({"y": 2, "a": 2, "b": 3})


@pytest.fixture(name="models", scope="module")
def from_release() -> Models:
    """A model with a term that no table shows, from exact pairs."""
    table = np.random.default_rng(0).integers(50, 150, (2, 2, 3))
    tables = {("y", "a"): table.sum(2), ("y", "b"): table.sum(1), ("a", "b"): table.sum(0)}
    release = dc.Release.from_tables(tables, SCHEMA, scale=0)
    return dc.fit_models(release, "y ~ C(a) + b", seed=1, draws=100)


def test_the_text_has_every_term_and_note(models: Models) -> None:
    """In full: one line per parameter under a headline, then what to keep in mind."""
    text = models.details
    assert text.startswith(
        "logistic model y ~ C(a) + b, from one release: 100 draws of the joint of 3 columns\n"
    )
    assert all(term in text for term in models.terms)
    assert text.count("\nnote: ") == len(models.notes) > 0
    assert "<0.02" in text or "p" in text


def test_the_plot_is_an_svg_file_with_a_line_per_slope(models: Models) -> None:
    """Intercepts stand in the table alone; every slope has a dot, an interval and the bar of the closed one."""
    drawn = ElementTree.fromstring(dc.plot(models).svg)
    circles = [item for item in drawn.iter() if item.tag.endswith("circle")]
    assert len(circles) == 2 + 1  # and the one in the key
    words = [item.text for item in drawn.iter() if item.tag.endswith("text")]
    assert "C(a)[T.1]" in words
    assert "log odds ratio" in words
    assert "Intercept" not in words


def test_the_grid_of_a_plot_does_not_cross_its_words() -> None:
    """Upright lines stay beside the dots, whatever lies above them; a long name has two lines of words."""
    long = "the number of visits to a doctor[T.more than ten in a year]"
    svg = forest_plot([DotLine("a", 1, -2, 3), DotLine(long, 0, -2, 2)], title="t", axis="x")
    drawn = list(ElementTree.fromstring(svg).iter())
    bases = [float(item.get("y", "nan")) for item in drawn if item.tag.endswith("text")]
    paths = [item.get("d", "") for item in drawn if item.tag.endswith("path")]
    uprights = [tuple(map(float, d[1:].split(" ")[1].split("V"))) for d in paths if "V" in d]
    assert uprights
    assert not any(top < base - 3 < bottom for top, bottom in uprights for base in bases)


def test_the_notebook_shows_table_plot_and_notes(models: Models) -> None:
    """`_repr_html_` escapes what a level or a formula may contain."""
    html = models._repr_html_()
    assert "<table " in html
    assert "<svg " in html
    assert (
        html.count("<li>") == len(models.brief) + 2 + 2
    )  # what trust means, how to see more; the two signs of the plot
    assert "if what no table shows is taken for none" in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("columns", "terms"),
    [
        ("age", ["age", "I(age ** 2)", "age:marriage[T.y]"]),
        ("status", []),
        (("marriage", "marital status"), ["marriage[T.y]", "marital status[T.age]", "age:marriage[T.y]"]),
    ],
)
def test_a_plot_of_a_column_has_the_terms_that_name_it(
    columns: str | tuple[str, ...], terms: list[str]
) -> None:
    """Whole names of columns count: neither part of a longer name nor the name of a level."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
        {
            "y": rng.integers(0, 2, 400),
            "age": rng.integers(1, 9, 400),
            "marriage": rng.choice(["n", "y"], 400),
            "marital status": rng.choice(["a", "age"], 400),
        }
    )
    models = dc.fit_models(rows, "y ~ age * marriage + I(age ** 2) + `marital status`")
    if not terms:
        columns_of = ("y", *rows.columns[1:])
        report = SamplerReport(4, 50, 0.8, 0, 1.0, 200.0, 0.9)
        release = ReleaseFit(
            np.zeros(6),
            np.ones(6, dtype=bool),
            np.zeros(6, dtype=bool),
            None,
            pd.DataFrame(),
            columns_of,
            report,
        )
        with pytest.raises(ParameterError, match="must be in a term"):
            dc.plot(replace(models, release=release), columns)
        return
    titles = [
        item.text
        for item in ElementTree.fromstring(dc.plot(models, columns).svg).iter()
        if item.tag.endswith("title")
    ]
    drawn = {
        text.partition(": ")[0] for text in titles if text and ": " in text and "[" in text.partition(": ")[2]
    }
    assert drawn == set(terms)


def test_names_are_broken_between_words() -> None:
    """A long term goes on in a second line, after a space or before its level, and never in the middle of a word."""
    names = ("education[T.secondary school]", "education[T.postsecondary]", "w" * 30)
    lines = [DotLine(name, 1.234, 0.567, 1.543) for name in names]
    drawn = forest_plot(lines, title="t", axis="x")
    words = [item.text for item in ElementTree.fromstring(drawn).iter() if item.tag.endswith("text")]
    assert {"education[T.secondary", "school]", "education", "[T.postsecondary]", names[2]} <= set(words)


def test_plain_values_are_json(models: Models) -> None:
    """Programs read parameters by name; unknown numbers are null."""
    plain = json.loads(json.dumps(models.to_dict(0.9), allow_nan=False))
    assert plain["level"] == 0.9
    assert [row["term"] for row in plain["parameters"]] == list(models.terms)
    narrow = models.to_frame(0.5)
    assert (narrow["high"] - narrow["low"] < models.frame["high"] - models.frame["low"]).all()


def test_models_over_sets_have_a_frame_and_a_plot_too() -> None:
    """p is Student's, by hand; nothing is said of noise."""
    rng = np.random.default_rng(1)
    sets = [pd.DataFrame({"y": rng.integers(0, 2, 300), "a": rng.integers(0, 3, 300)}) for _ in range(3)]
    models = dc.fit_models(sets, "y ~ a")
    frame = models.frame
    assert list(frame.columns) == ["term", "estimate", "std_error", "low", "high", "p"]
    by_hand = 2 * student.sf(np.abs(frame["estimate"] / frame["std_error"]), models.combined.dof)
    np.testing.assert_allclose(frame["p"], by_hand, rtol=1e-6)
    assert headline(models) == "logistic model y ~ a, over 3 sets"
    assert "<svg " in dc.plot(models).svg


def test_a_plot_survives_what_is_unknown_or_far_out() -> None:
    """A term without an estimate has its name; a wider interval is cut at the edge of the plot."""
    drawn = forest_plot(
        [
            DotLine("a & b", 1.0, 0.5, 1.5, (-1e6, 1e6)),
            DotLine("lost", float("nan"), float("nan"), float("nan")),
        ],
        title="t",
        axis="x",
    )
    assert "not identified" in drawn
    assert "a &amp; b" in drawn
    numbers = [float(word) for word in drawn.replace("M", " ").replace("H", " ").split() if word.isdigit()]
    assert all(abs(number) < 2_000 for number in numbers)


def test_ordinal_and_poisson_models_over_sets_equal_their_row_fits() -> None:
    """The families that a release has, rows have too; one set is the plain fit."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=400)
    y = np.digitize(0.8 * x + rng.logistic(size=400), [-0.5, 1.0])
    frame = pd.DataFrame({"y": y, "x": x, "k": rng.poisson(np.exp(0.3 + 0.4 * x))})
    ordinal = dc.fit_models(frame, "y ~ x", "ordinal")
    fit = OrderedModel(y, x[:, None], distr="logit").fit(method="bfgs", disp=0, gtol=1e-7)
    assert ordinal.terms == ("0|1", "1|2", "x")
    assert ordinal.table().loc["x", "estimate"] == pytest.approx(fit.params[0], abs=1e-4)
    # Ours is by the expected information, theirs by the observed.
    assert ordinal.table().loc["x", "std_error"] == pytest.approx(fit.bse[0], rel=0.06)
    poisson = dc.fit_models(frame, "k ~ x", "poisson").table()
    theirs = sm.GLM(frame["k"], sm.add_constant(x), family=sm.families.Poisson()).fit()
    np.testing.assert_allclose(poisson["estimate"], theirs.params, atol=1e-6)
    np.testing.assert_allclose(poisson["std_error"], theirs.bse, rtol=1e-5)
