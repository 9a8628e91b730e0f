"""Rows outside a range that was found: coded on the grid and given new codes, or coded by the closed schema, they are the same rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpcipher.curator.measure import measure
from dpcipher.engines.solve import solve
from dpcipher.pages.choices import found_bins
from dpcipher.planning.plan import plan
from dpcipher.release.shown import found_ranges
from dpcipher.schema import Schema, column
from dpcipher.selection.edges import inhabited_bands, rows_to_find, sides_of_zero, stand_out
from dpcipher.selection.search import Search

OPEN: dict[str, Any] = {"min": "auto", "max": "auto", "bins": "auto"}


def spans(n: int, seed: int) -> pd.DataFrame:
    """Pairs of days, counted from some day on, of which the second is not before the first, and a level; some long before the others."""
    rng = np.random.default_rng(seed)
    start = np.where(rng.random(n) < 0.05, rng.integers(0, 300, n), rng.integers(8_000, 9_000, n))
    frame = pd.DataFrame({"start": start, "end": start + rng.integers(0, 200, n)})
    return frame.assign(x=np.where(frame["start"] < 100, "a", rng.choice(["a", "b"], n)))


def schema_of(kind: Any, open_columns: list[str], rules: tuple[str, ...] = ("start <= end",)) -> Schema:
    """Both columns open, or one of them."""
    closed: dict[str, Any] = {"edges": [0, 100, *range(300, 10_000, 300)]}
    columns = [column(name, kind, **(OPEN if name in open_columns else closed)) for name in ("start", "end")]
    return Schema((*columns, column("x", "categorical", levels=["a", "b"])), rules=rules)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("open_columns", [["start"], ["end"], ["start", "end"]], ids=str)
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_new_codes_of_the_grid_are_the_codes_of_the_closed_schema(
    kind: str, open_columns: list[str], seed: int
) -> None:
    """Whatever range is found: no row that keeps the rules is refused or moved by it, and none is counted in a structural zero."""
    schema = schema_of(kind, open_columns, ("start <= end", "start < 100 -> x == a"))
    table = pa.Table.from_pandas(spans(500, seed), preserve_index=False)
    grid, rng = schema.on_grid(), np.random.default_rng(seed)
    codes, found = grid.encode(table), {}
    for name in open_columns:
        points = np.asarray(grid.column(name).domain.edges)  # type: ignore[union-attr]
        near = points[(points >= 50) & (points <= 9_000)]
        found[name] = sorted({*rng.choice(near, 6, replace=False).tolist(), 99.0, 100.0, 102.0})
    closed = schema.closed(found)
    for name in open_columns:
        axis = schema.attrs.index(name)
        search = Search(schema.column(name), grid.column(name), axis, zcdp=True, differences=False)
        codes[:, axis] = search.recoding(closed.column(name), found[name])[codes[:, axis]]
    assert np.array_equal(codes, closed.encode(table))
    for axes, mask in closed.zero_masks:
        assert not mask[tuple(codes[:, list(axes)].T)].any()


def test_a_found_schema_takes_the_rows_that_it_was_found_from() -> None:
    """Early rows that go to the first bin of `start` keep the rule, though that bin begins after their `end`; drawn rows keep it by their values."""
    schema, frame = schema_of("integer", ["start"]), spans(3_000, 1)
    frame.loc[:20, ["start", "end"]] = [1, 2]
    for _ in range(3):
        release = measure(frame, schema, epsilon=0.2, unit="add-remove")
        again = measure(frame, release.schema, epsilon=0.2, unit="add-remove")
        assert again.schema.fingerprint() == release.schema.fingerprint()
        rows: Any = solve(release).sample(2_000, seed=1)
        assert (rows["start"] <= rows["end"]).all()


KINDS: list[tuple[str, Any, Any]] = [
    ("integer", 0, 1_200),
    ("number", 0, 1_200),
    ("date", "1970-01-01", "1980-12-31"),
]


@pytest.mark.parametrize("found", [False, True], ids=["declared range", "found range"])
@pytest.mark.parametrize(("kind", "low", "high"), KINDS)
def test_rows_are_judged_on_the_grid_of_the_search_and_then_by_their_bins(
    tmp_path: Path, kind: Any, low: Any, high: Any, found: bool
) -> None:
    """Of 5,000 rows some hundred end before they start, nearly all inside a bin: the release that finds the bins moves them, those that use the bins again count them where they are."""
    rng, ends = np.random.default_rng(1), OPEN if found else {"min": low, "max": high, "bins": "auto"}
    start = rng.integers(0, 1_000, 5_000)
    frame = pd.DataFrame({"start": start, "end": np.clip(start + rng.integers(-5, 200, 5_000), 0, 1_200)})
    broken = int((frame["end"] < frame["start"]).sum())
    if kind == "date":
        frame = frame.apply(lambda days: pd.to_datetime(days, unit="D"))
    columns = (column("start", kind, **ends), column("end", kind, missing="level", **ends))
    schema = Schema(columns, rules=({"rule": "start <= end", "becomes": {"end": "(missing)"}},))
    terms: Any = {"epsilon": 50.0, "unit": "add-remove", "workload": 1}
    release = measure(frame, schema, **terms)
    release.schema.save(tmp_path / "found.yaml")
    again = measure(frame, Schema.load(tmp_path / "found.yaml"), **terms)
    (first, second) = (float(np.asarray(each.project(("end",)))[-1]) for each in (release, again))
    assert second < broken / 2
    # A row whose two values share a cell of the grid is not known to break it.
    assert 0.85 * broken - 5 < first <= broken + 5
    assert sum(release.schema.shape) < 200
    coded = release.schema.encode(pa.Table.from_pandas(frame, preserve_index=False))
    assert (coded[:, 1] == release.schema.shape[1] - 1).sum() == pytest.approx(second, abs=5)


def test_runs_of_bands_stand_out_together() -> None:
    """Four bands of two standard deviations each, none of which is clear by itself; noise of the same size elsewhere is not taken in."""
    counts = np.zeros(60)
    counts[[5, 11, 50]] = 20.0
    counts[30:34] = 20.0
    found = inhabited_bands(counts, np.zeros(60), [slice(0, 60)], 10.0, laplace=False)
    assert found == (30, 34)


def test_the_other_side_of_zero_is_taken_in_where_rows_are_clearly_there() -> None:
    """What is empty around zero costs neither side anything; a side in which there may be noise alone is left out."""
    starts = np.array([*-(2.0 ** np.arange(20, -20, -1)), 0.0, *(2.0 ** np.arange(-20, 20))])
    counts = np.zeros(len(starts))
    counts[-3:] = 1_000.0
    sides = sides_of_zero(starts)
    assert inhabited_bands(counts, np.zeros(len(starts)), sides, 10.0, laplace=True) == (78, 81)
    counts[1] = 30.0
    assert inhabited_bands(counts, np.zeros(len(starts)), sides, 10.0, laplace=True) == (78, 81)
    counts[2:5] = 60.0
    assert inhabited_bands(counts, np.zeros(len(starts)), sides, 10.0, laplace=True) == (1, 81)


@pytest.mark.parametrize("laplace", [False, True])
def test_a_range_stands_out_from_the_rows_that_are_said_on(laplace: bool) -> None:
    """Drawn noise, rows over ten bands: 19 times out of 20 with so many rows, hardly ever with a third of them, and never by noise alone."""
    rng, sd, bands = np.random.default_rng(2), 40.0, 161
    powers, sides = np.abs(np.arange(bands) - 80.0) % 60, [slice(0, 80), slice(80, 81), slice(81, bands)]

    def often(rows: float) -> float:
        counts = np.zeros(bands)
        counts[81:91] = rows / 10
        noise = (
            rng.laplace(scale=sd / np.sqrt(2), size=(1_000, bands))
            if laplace
            else rng.normal(scale=sd, size=(1_000, bands))
        )
        return float(np.mean([stand_out(counts + one, powers, sides, sd, laplace=laplace) for one in noise]))

    enough = rows_to_find(bands, sd, laplace=laplace)
    assert often(enough) > 0.93
    assert often(enough / 3) < 0.3
    assert often(0) < 0.03


def test_a_release_says_whether_its_range_is_a_guess() -> None:
    """Fifty rows stand out of no such noise, and fifty thousand always do; the statement outlives a file, and pages and commands read it."""
    schema = Schema((column("x", "number", **OPEN), column("y", "boolean")))
    rng = np.random.default_rng(1)
    for n, guess in ((50, True), (50_000, False)):
        frame = pd.DataFrame({"x": rng.lognormal(5, 1, n), "y": rng.random(n) < 0.5})
        release = measure(frame, schema, epsilon=1.0, unit="add-remove")
        found = release.statement.certificate["bins"]["ranges"]["x"]
        assert found["guess"] is guess
        planned = plan(schema, epsilon=1.0, unit="add-remove", n_rows=n)
        assert planned.bins[0].rows_to_find == pytest.approx(found["rows"], rel=1e-3)
        assert any("too few to find the range of x" in text for text in planned.warnings) is guess
        (said,) = found_ranges(release)
        assert said.startswith("A guess for x" if guess else "Found for x")
        assert any(said[1:] in text for text in found_bins(release))


def test_a_declared_range_is_not_spoken_of() -> None:
    """Only what was found can be a guess."""
    schema = Schema((column("x", "number", min=0, max=100, bins="auto"), column("y", "boolean")))
    frame = pd.DataFrame({"x": [1.0] * 50, "y": [True] * 50})
    release = measure(frame, schema, epsilon=1.0, unit="add-remove")
    assert "ranges" not in release.statement.certificate["bins"]
    assert found_ranges(release) == []
