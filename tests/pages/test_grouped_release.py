"""Tables in groups of levels look like any other: everything shown equals what is shown of a release whose schema has the groups as its levels."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpcipher as dc
from dpcipher.pages.matching import match_tables
from dpcipher.release.shown import draw

BANDS = ["0 – 3", "4 – 7", "8 – 11"]
REST = {
    "sex": {"kind": "categorical", "levels": ["F", "M"]},
    "pay": {"kind": "ordinal", "levels": list("abcde")},
}
FINE = dc.Schema.from_dict({"columns": {"age": {"kind": "integer", "min": 0, "max": 11}, **REST}})
BANDED = dc.Schema.from_dict({"columns": {"age": {"kind": "ordinal", "levels": BANDS}, **REST}})
COUNTS = {
    ("age", "sex"): np.array([[300, 40], [180, 160], [60, 250]]),
    ("age", "pay"): np.random.default_rng(1).integers(20, 90, (3, 5)),
}
AGES = {"age": [0, 4, 8]}


def _both() -> tuple[dc.Release, dc.Release]:
    grouped = dc.Release.from_tables(COUNTS, FINE, groups=dict.fromkeys(COUNTS, AGES), scale=8.0)
    return grouped, dc.Release.from_tables(COUNTS, BANDED, scale=8.0)


def test_frames_intervals_and_answers_are_those_of_levels() -> None:
    """Labels, counts, errors, bounds and a share."""
    grouped, banded = _both()
    for attrs in (("age",), ("sex", "age"), ("pay",), ("pay", "age")):
        for verb in ("project", "std_error", "interval"):
            first, second = (getattr(one, verb)(attrs).frame for one in (grouped, banded))
            assert first.equals(second) or np.allclose(
                first.select_dtypes("number"), second.select_dtypes("number")
            )
            assert first[list(attrs)].equals(second[list(attrs)])
    asked = grouped.query(("age", "sex"), where={"age": {"min": 4}, "sex": "M"}, share=True)
    assert asked.estimate == pytest.approx(
        banded.query(("age", "sex"), where={"age": BANDS[1:], "sex": "M"}, share=True).estimate
    )


def test_trust_is_that_of_levels() -> None:
    """Signal, noise, and what a pair is good for."""
    first, second = (dc.trust(one).frame for one in _both())
    assert first.columns.equals(second.columns)
    np.testing.assert_allclose(first.select_dtypes("number"), second.select_dtypes("number"), rtol=1e-9)
    assert first["good_for"].tolist() == second["good_for"].tolist()


@pytest.mark.parametrize("columns", [("age",), ("sex",), ("age", "sex"), ("pay", "age")])
def test_pictures_are_those_of_levels(columns: tuple[str, ...]) -> None:
    """Bars with their margins and heat maps, label by label."""
    first, second = (draw(one, columns) for one in _both())
    assert list(first.panels.values()) == list(second.panels.values())


def test_a_card_says_in_how_many_tables_levels_are_in_groups() -> None:
    """And nothing of it where there are none."""
    first, second = (one._repr_html_() for one in _both())
    assert "in 2 tables" in first
    assert "in groups" not in second


def test_the_publishable_page_shows_groups_and_compares_rows_by_them(tmp_path: Path) -> None:
    """Rows of single years are added up to the groups of each table."""
    grouped, _ = _both()
    rows = dc.solve(grouped).sample(2000, seed=1)
    page = dc.report(grouped, rows, tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(band in page for band in BANDS)
    assert "age (3 groups) × sex" in page
    matches = {
        match.attrs: match
        for match in match_tables(grouped, FINE.encode(pa.Table.from_pandas(rows, preserve_index=False)))
    }
    assert {match.cells for match in matches.values()} == {6, 15}
    assert max(match.rms for match in matches.values()) < 2
