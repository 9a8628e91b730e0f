"""What is drawn of columns with many levels, and of cells that cannot be: decided by public facts, so that the noise is not chosen."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc
from dpcipher.schema import Column, Zero, column

SCALE, EACH = 30.0, 40
IMPOSSIBLE = "impossible by the schema"


def bars(picture: str) -> list[tuple[str, float, float, float]]:
    """What the bars of a picture tell the pointer: label, count, and the ends of the interval."""
    cell = r"<title>([^<>]+): (-?[\d,.]+) \(95 %: (-?[\d,.]+) to (-?[\d,.]+)\)"
    return [
        (unescape(label), *(float(number.replace(",", "")) for number in numbers))
        for label, *numbers in re.findall(cell, picture)
    ]


def cells(picture: str, unit: str = "") -> dict[tuple[str, str], float]:
    """What the cells of a heat map tell the pointer."""
    number = r"([+\-−]?[\d,.]+)"
    cell = rf"<title>([^<>,:]+), ([^<>,:]+): {number}{unit}(?:, hidden by the noise)?</title>"
    return {
        (first, second): float(value.replace(",", "").replace("−", "-"))
        for first, second, value in re.findall(cell, picture)
    }


def release_of(schema: dc.Schema, names: tuple[str, ...], true: np.ndarray, seed: int) -> dc.Release:
    """One noisy table."""
    noisy = true + np.round(np.random.default_rng(seed).laplace(0, SCALE, true.shape))
    return dc.Release.from_tables({names: noisy}, schema, scale=SCALE)


def truths(labels: Iterator[str] | list[str], levels: list[str], each: float) -> list[float]:
    """How many rows there really are in each group of levels, by its label alone."""
    places = {level: place for place, level in enumerate(levels)}
    sums = []
    for label in labels:
        if many := re.fullmatch(r"all ([\d,]+) others", label):
            sums.append(each * int(many[1].replace(",", "")))
        else:
            first, _, last = label.partition(" – ")
            sums.append(each * (places[last or first] - places[first] + 1))
    return sums


ORDERED = column("code", "integer", min=0, max=2_499)
LISTED = column("code", "categorical", levels=[f"c{k:04}" for k in range(2_500)])


@pytest.mark.parametrize("column", [ORDERED, LISTED], ids=["ordered", "listed"])
def test_bars_of_many_levels_hold_the_truth(column: Column, tmp_path: Path) -> None:
    """2,500 levels of 40 rows, scale 30, on plot and page: bars are right on average and 95 % of intervals hold the truth. The largest ones averaged 140.6."""
    schema = dc.Schema((column,))
    gaps, inside = [], []
    for seed in range(12):
        release = release_of(schema, ("code",), np.full(2_500, float(EACH)), seed)
        drawn = bars(dc.plot(release, "code").svg)
        assert len(drawn) in (119, 120)
        true = np.array(truths([label for label, *_ in drawn], list(column.labels), EACH))
        assert true.sum() == 2_500 * EACH
        counts, low, high = np.array([numbers for _, *numbers in drawn]).T
        gaps.extend((counts - true) / np.sqrt(true / EACH * 2 * SCALE**2))
        # Ends are printed as whole rows.
        inside.extend((low - 0.5 <= true) & (true <= high + 0.5))
    assert abs(np.mean(gaps)) < 3.5 / np.sqrt(len(gaps))
    assert np.std(gaps) == pytest.approx(1, abs=0.1)
    # The noise of a single level is Laplace's, of which a normal interval holds 93.7 %; where it ends at 0, more.
    assert 0.92 < np.mean(inside) < 0.98
    rows = pd.DataFrame({"code": np.repeat(column.labels, 2)})
    rows["code"] = rows["code"].astype(int) if column is ORDERED else rows["code"]
    page = dc.report(release, rows, tmp_path / "r.html", rows_from="invented here").read_text(
        encoding="utf-8"
    )
    assert bars(page.replace("; synthetic rows", "")) == drawn  # one way to draw, on plots and pages
    assert "levels are added up" in page
    assert "largest of" not in page


@pytest.mark.parametrize(
    "other",
    [
        column("other", "categorical", levels=[f"o{k}" for k in range(100)]),
        column("other", "ordinal", levels=["low", "middle", "high"], missing="level"),
    ],
    ids=["listed", "few"],
)
def test_cells_of_heat_maps_hold_the_truth(other: Column, tmp_path: Path) -> None:
    """A column of 100 levels against another, on plot and page: cells are right on average, and rows that follow the truth do not seem to miss something."""
    declared = column("age", "integer", min=0, max=99)
    schema, shape = dc.Schema((declared, other)), (100, other.size)
    private = pd.DataFrame([(age, None if label == "(missing)" else label) for age in range(100) for label in other.labels], columns=["age", "other"])  # fmt: skip
    pull, errors = [], []
    for seed in range(8):
        release = release_of(schema, ("age", "other"), np.full(shape, float(EACH)), seed)
        plot = dc.plot(release, ("age", "other"))
        drawn = cells(plot.svg)
        assert len(drawn) == 20 * min(other.size, 20)
        sizes = np.array(truths([a for a, _ in drawn], list(declared.labels), 1)) * truths([b for _, b in drawn], list(other.labels), 1)  # fmt: skip
        assert sizes.sum() == np.prod(shape)
        spread = np.sqrt(sizes * 2 * SCALE**2)
        pull.extend((np.array(list(drawn.values())) - EACH * sizes) / spread)
        page = dc.report(release, private, tmp_path / f"{seed}.html", rows_from="invented here").read_text(
            encoding="utf-8"
        )
        assert all(svg in page for svg in plot.panels.values())  # one way to draw, on plots and pages
        errors.extend(cells(page, unit=" standard errors").values())
    # Synthetic counts are scaled to the noisy total, which takes a little of the noise away.
    for gaps in (pull, errors):
        assert abs(np.mean(gaps)) < 4 / np.sqrt(len(gaps))
        assert np.mean(np.abs(gaps) <= 2) == pytest.approx(0.954, abs=4 * 0.21 / np.sqrt(len(gaps)))


def test_margins_of_sums_hold_the_covariances() -> None:
    """Two tables share a column: errors of its levels go together, and the margin of a sum is that of `query`."""
    schema = dc.Schema((column("code", "integer", min=0, max=499), column("sex", "categorical", levels=["F", "M"])))  # fmt: skip
    rng = np.random.default_rng(3)
    tables = {("code", "sex"): rng.integers(10, 90, (500, 2)), ("code",): rng.integers(80, 90, 500), ("sex",): [25_000, 24_000]}  # fmt: skip
    release = dc.Release.from_tables(tables, schema, scale={("code", "sex"): 30.0, ("code",): 11.0, ("sex",): 1.0})  # fmt: skip
    drawn = bars(dc.plot(release, "code").svg)
    assert len(drawn) == 100
    for place, (label, count, low, high) in enumerate(drawn):
        answer = release.query("code", where={"code": {"min": 5 * place, "max": 5 * place + 4}})
        assert label == f"{5 * place} – {5 * place + 4}"
        assert count == pytest.approx(answer.estimate, abs=0.5)
        assert (low, high) == pytest.approx(answer.interval(), abs=0.51)


def test_special_levels_keep_a_bar_of_their_own() -> None:
    """They have no place in the order of the others."""
    declared = column("pay", "integer", min=0, max=999, special=[-1], missing="level")
    schema = dc.Schema((declared, column("job", "categorical", levels=["a", "b"])))
    counts = np.random.default_rng(0).integers(20, 60, (1002, 2))
    release = dc.Release.from_tables({("pay", "job"): counts}, schema, scale=SCALE)
    labels = [label for label, *_ in bars(dc.plot(release, "pay").svg)]
    assert labels[:2] == ["0 – 8", "9 – 17"]
    assert labels[-3:] == ["999", "-1", "(missing)"]
    _, count, low, high = bars(dc.plot(release, "pay").svg)[0]
    answer = release.query("pay", where={"pay": {"min": 0, "max": 8}})
    assert (count, low, high) == pytest.approx((answer.estimate, *answer.interval()), abs=0.51)


def test_pairs_that_are_ranked_by_noise_say_so(tmp_path: Path) -> None:
    """Trust as text, card and plot, and the page; which then promises nothing that the choice has spoilt."""
    names = [f"c{k}" for k in range(8)]
    schema = dc.Schema.from_domain(dict.fromkeys(names, 3))
    rng = np.random.default_rng(0)
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    release = dc.Release.from_tables({pair: 100 + rng.integers(-9, 9, (3, 3)) for pair in pairs}, schema, scale=5.0)  # fmt: skip
    trust = dc.trust(release)
    ranked = "ranked by noisy counts"
    assert all(ranked in text for text in (str(trust), trust._repr_html_(), dc.plot(trust).note))
    rows = pd.DataFrame(rng.integers(0, 3, (50, 8)), columns=names)
    page = dc.report(release, rows, tmp_path / "r.html", rows_from="invented here").read_text(
        encoding="utf-8"
    )
    assert ranked in page
    assert "Shown are 12 of 28 pairs" in page
    assert "The worst of many tables are above 1 by chance alone" in page
    assert "would be within 2 in about 19 cells of 20" not in page
    few = dc.Release.from_tables({pairs[0]: np.full((3, 3), 50)}, dc.Schema.from_domain({"c0": 3, "c1": 3}), scale=5.0)  # fmt: skip
    page = dc.report(few, rows[["c0", "c1"]], tmp_path / "few.html", rows_from="invented here").read_text(
        encoding="utf-8"
    )
    assert "would be within 2 in about 19 cells of 20" in page


def test_impossible_cells_are_hatched_and_never_filled() -> None:
    """Also where levels are added up, if all of them are impossible."""
    columns = (
        column("age", "ordinal", levels=["child", "adult"]),
        column("pay", "integer", min=0, max=39),
    )
    tables = {("age", "pay"): np.full((2, 40), 60.0)}
    schema = dc.Schema(columns, zeros=(Zero({"age": "child", "pay": {"min": 21}}),))
    drawn = dc.plot(dc.Release.from_tables(tables, schema, scale=5.0), ("age", "pay")).svg
    assert drawn.count(f"{IMPOSSIBLE}</title>") == drawn.count('class="l-hatch"') == 9
    assert "child, 22–23: " not in re.sub(rf": {IMPOSSIBLE}", "", drawn)
    assert cells(drawn)["child", "20 – 21"] == pytest.approx(60, abs=3)  # one of its two levels is possible
    plain = dc.plot(dc.Release.from_tables(tables, dc.Schema(columns), scale=5.0), ("age", "pay")).svg
    assert len(cells(plain)) == 40
    assert "l-hatch" not in plain


def test_structural_zeros_of_a_release_are_hatched_on_its_page(tmp_path: Path) -> None:
    """In all three maps, with a sentence that says why."""
    columns = (
        column("age", "ordinal", levels=["child", "adult"]),
        column("job", "categorical", levels=["no", "yes"]),
    )
    tables = {("age", "job"): [[300, 40], [200, 500]]}
    rows = pd.DataFrame({"age": ["child"] * 30 + ["adult"] * 70, "job": ["no"] * 30 + ["yes"] * 70})
    schema = dc.Schema(columns, zeros=(Zero({"age": "child", "job": "yes"}),))
    release = dc.Release.from_tables(tables, schema, scale=5.0)
    text = dc.report(release, rows, tmp_path / "zeros.html", rows_from="invented here").read_text(
        encoding="utf-8"
    )
    assert "Hatched cells are empty by the schema" in text
    assert len(re.findall(f"{IMPOSSIBLE}</title>", text)) == 3
    release = dc.Release.from_tables(tables, dc.Schema(columns), scale=5.0)
    free = dc.report(release, rows, tmp_path / "free.html", rows_from="invented here").read_text(
        encoding="utf-8"
    )
    assert "Hatched" not in free
    assert IMPOSSIBLE not in free
