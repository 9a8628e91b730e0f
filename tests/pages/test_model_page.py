"""The page about a model says what holds for this model, and nothing that does not."""

from pathlib import Path

import numpy as np
import pytest

import dpcipher as dc
from dpcipher.errors import ReleaseError, TableFileError
from dpcipher.pages.model import model_report, render

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "employed": {"kind": "categorical", "levels": ["no", "yes"]},
            "sex": {"kind": "categorical", "levels": ["F", "M"]},
            "age": {"kind": "integer", "min": 20, "max": 79, "bins": 3},
        }
    }
)
TABLE = np.random.default_rng(0).integers(50, 150, (2, 2, 3))
RELEASE = dc.Release.from_tables(
    {("employed", "sex"): TABLE.sum(2), ("employed", "age"): TABLE.sum(1), ("sex", "age"): TABLE.sum(0)},
    SCHEMA,
    scale=1.0,
)


def page(formula: str, **options: str) -> str:
    """The page about a model from few draws."""
    models = dc.fit_models(RELEASE, formula, draws=50, seed=1, **options)  # type: ignore[arg-type]
    return render(models, RELEASE)


def test_the_pale_bar_is_explained_where_there_is_one() -> None:
    """From pairs alone the three-way interaction is left open; the bar and its sentence go together."""
    opened = page("employed ~ sex + age")
    assert "the pale bar is the interval when they are taken for none" in opened
    assert 'class="l-pale"' in opened


@pytest.mark.parametrize(
    ("formula", "options"), [("employed ~ sex", {}), ("employed ~ sex + age", {"unmeasured": "none"})]
)
def test_no_bar_is_explained_where_there_is_none(formula: str, options: dict[str, str]) -> None:
    """One pair shows all of its model; and interactions that are taken for none are not said to be left open."""
    closed = page(formula, **options)
    assert 'class="l-pale"' not in closed
    assert "pale bar" not in closed
    assert "left open" not in closed
    assert ("taken for none, which the release cannot check" in closed) == bool(options)


def test_the_unit_of_a_slope_is_said_beside_the_plot() -> None:
    """A slope per year of age is a dot beside steps between levels; without numbers there is nothing to say."""
    assert "per unit" in page("employed ~ age")
    assert "per unit" not in page("employed ~ sex")


def test_a_page_that_would_not_open_is_refused(tmp_path: Path) -> None:
    """It is HTML and must be called so, in a folder that is there."""
    models = dc.fit_models(RELEASE, "employed ~ sex", draws=20, seed=1)
    with pytest.raises(TableFileError, match=r"must end in \.html"):
        model_report(models, RELEASE, tmp_path / "page.txt")
    with pytest.raises(ReleaseError, match="choose another place"):
        model_report(models, RELEASE, tmp_path / "nowhere" / "page.html")
    assert not any(tmp_path.iterdir())
    assert model_report(models, RELEASE, tmp_path / "page.HTM").exists()
