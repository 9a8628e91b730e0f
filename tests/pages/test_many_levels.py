"""What the publishable page draws of columns with many levels, and of cells that cannot be."""

import re

import numpy as np
import pytest

from dpcipher.drawing.bars import Series
from dpcipher.drawing.figures import MOST_LEVELS, pair_figure
from dpcipher.drawing.maps import IMPOSSIBLE, MOST_MAP_LEVELS
from dpcipher.pages.grouped import EXPLAINED, grouped
from dpcipher.pages.report import render
from dpcipher.release.release import Release
from dpcipher.schema import Column, Schema, Zero

LEVELS, TOTAL, SCALE = 2_500, 100_000, 30.0


def released(seed: int) -> tuple[Release, np.ndarray, np.ndarray]:
    """Noisy counts of many levels, the true ones, and codes of rows that follow the truth."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        (Column("code", "integer", min=0, max=LEVELS - 1), Column("sex", "categorical", levels=["F", "M"]))
    )
    codes = np.column_stack([rng.integers(0, LEVELS, TOTAL), rng.integers(0, 2, TOTAL)]).astype(np.int32)
    true = np.bincount(codes[:, 0], minlength=LEVELS).astype(float)
    noisy = true + np.round(rng.laplace(0, SCALE, LEVELS))
    release = Release.from_tables({("code",): noisy, ("sex",): [TOTAL / 2] * 2}, schema, scale={("code",): SCALE, ("sex",): SCALE})  # fmt: skip
    return release, true, codes


def bars(release: Release, compared: np.ndarray) -> Series:
    """All levels, as the page has them before any are left out."""
    counts = release.reconciled.table((0,))
    return Series("code", tuple(map(str, range(LEVELS))), counts, compared, "")


def test_groups_of_neighbours_do_not_pick_the_noise() -> None:
    """The true counts lie in the intervals of the groups; of the largest levels nearly none lies in its own."""
    release, true, _ = released(0)
    shown = grouped(release, 0, bars(release, true), MOST_LEVELS)
    assert len(shown.labels) <= MOST_LEVELS
    assert shown.counts.sum() == pytest.approx(release.reconciled.table((0,)).sum())
    assert shown.compared.sum() == pytest.approx(TOTAL)
    assert shown.bounds is not None
    inside = (shown.bounds[0] <= shown.compared) & (shown.compared <= shown.bounds[1])
    assert inside.mean() > 0.88
    assert abs((shown.counts - shown.compared).mean()) < 30
    largest = bars(release, true).largest(MOST_LEVELS)
    assert (largest.counts - largest.compared).mean() > 100  # what it looked like before


def test_the_intervals_of_groups_hold_the_noise_of_their_sums() -> None:
    """Against the spread of the sums over many draws of the noise."""
    spread = []
    for seed in range(40):
        release, true, _ = released(seed)
        shown = grouped(release, 0, bars(release, true), MOST_LEVELS)
        spread.append(shown.counts - shown.compared)
    assert shown.bounds is not None
    inner = (shown.bounds[1] - shown.counts)[shown.bounds[0] > 0] / 1.96
    assert np.std(spread) == pytest.approx(float(np.median(inner)), rel=0.1)


def test_the_page_says_how_levels_are_grouped() -> None:
    """In the title of the chart, and once in words; not where all levels are drawn."""
    release, _, codes = released(1)
    text = render(release, codes)
    assert "code (2,500 levels, 21 to a bar)" in text
    assert EXPLAINED.split(".")[0] in text
    assert "largest of" not in text


def test_impossible_cells_are_hatched_and_never_filled() -> None:
    """Also where an estimate says otherwise; among folded levels only where all are impossible."""
    impossible = np.zeros((3, 40), dtype=bool)
    impossible[0, 0] = impossible[1, 19:] = True
    rng = np.random.default_rng(0)
    counts = rng.integers(50, 90, (3, 40)).astype(float)
    counts[:, :19] += 100
    labels = (("a", "b", "c"), tuple(f"l{k}" for k in range(40)))
    drawn = pair_figure("t", ("x", "y"), labels, {"released": counts}, np.ones((3, 40)), impossible)
    hatched = drawn.count(f"{IMPOSSIBLE}</title>")
    folded = MOST_MAP_LEVELS  # columns of the map, the last for the levels that are left
    assert drawn.count("<title>") == 3 * folded + 1
    assert drawn.count('class="l-hatch"') == hatched == 1 + 1
    plain = pair_figure("t", ("x", "y"), labels, {"released": counts}, np.ones((3, 40)))
    assert plain.count("<title>") == 3 * folded + 1
    assert "l-hatch" not in plain


def test_structural_zeros_of_a_release_are_hatched_on_its_page() -> None:
    """In all three maps, with a sentence that says why."""
    columns = (
        Column("age", "ordinal", levels=["child", "adult"]),
        Column("job", "categorical", levels=["no", "yes"]),
    )
    tables = {("age", "job"): [[300, 40], [200, 500]]}
    codes = np.array([[0, 0]] * 30 + [[1, 1]] * 70, dtype=np.int32)
    schema = Schema(columns, zeros=(Zero({"age": "child", "job": "yes"}),))
    text = render(Release.from_tables(tables, schema, scale=5.0), codes)
    assert "Hatched cells are empty by the schema" in text
    assert len(re.findall(f"{IMPOSSIBLE}</title>", text)) == 3
    free = render(Release.from_tables(tables, Schema(columns), scale=5.0), codes)
    assert "Hatched" not in free
    assert IMPOSSIBLE not in free
