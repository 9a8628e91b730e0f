"""Open columns: the grid they are coded on, the edges that conditions force, and the closed schema that is found."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpcipher.errors import SchemaError, SizeError
from dpcipher.schema import Column, Schema, column
from dpcipher.schema.bins import Bins
from dpcipher.schema.document import Provenance
from dpcipher.schema.open_bins import MAX_GRID, OpenBins, band_edges
from dpcipher.schema.rules.rule import Zero
from dpcipher.schema.scale import INTEGER

AGE = column("age", "integer", min=0, max=99, bins="auto")
INCOME = column("income", "number", min=0, max=1e6, bins="auto", max_bins=20)
OPEN = [
    AGE,
    INCOME,
    column("born", "date", min="1920-01-01", max="2020-12-31", bins="auto"),
    column("start", "time", min="auto", max="auto", bins="auto"),
    column("debt", "number", min="auto", max="auto", bins="auto"),
    column("pay", "integer", min=0, max="auto", bins="auto"),
    column("ever", "date", min="auto", max="auto", bins="auto"),
    column("wide", "integer", min=-(10**12), max=10**12, bins="auto", missing="level"),
]


def points_of(kind: str, low: object, high: object) -> np.ndarray:
    """The points of the grid of an open column."""
    own = column("x", kind, min=low, max=high, bins="auto")
    assert isinstance(own, OpenBins)
    return own.points


def edges_of(column: Column) -> np.ndarray:
    """The edges of a cut column."""
    assert isinstance(column.domain, Bins)
    return np.asarray(column.domain.edges)


@pytest.mark.parametrize("column", OPEN, ids=lambda column: column.name)
def test_an_open_column_has_the_size_of_the_most_bins_and_a_grid_that_holds_them(column: Column) -> None:
    """What a plan counts with are points of the grid, and the grid is fine and public."""
    grid = Schema((column,)).on_grid().columns[0]
    assert column.domain.size == (column.max_bins or 64)
    assert set(edges_of(column)) <= set(edges_of(grid))
    assert 64 < grid.domain.size <= MAX_GRID
    assert not grid.is_open


@pytest.mark.parametrize("declared", OPEN, ids=lambda column: column.name)
def test_an_open_schema_survives_its_file(declared: Column, tmp_path: Path) -> None:
    """It loads as it was saved, with the same fingerprint, and so does what it is closed to."""
    schema = Schema((declared, column("sex", "categorical", levels=["F", "M"])))
    points = edges_of(schema.on_grid().columns[0])
    closed = schema.closed({declared.name: points[[0, 5, 6, -2, -1]].tolist()})
    for made in (schema, closed):
        made.save(tmp_path / "schema.yaml", force=True)
        assert Schema.load(tmp_path / "schema.yaml") == made
        assert Schema.load(tmp_path / "schema.yaml").fingerprint() == made.fingerprint()
    assert closed.shape[0] - schema.on_grid().shape[0] == 4 - (len(points) - 1)
    np.testing.assert_array_equal(edges_of(closed.columns[0]), points[[0, 5, 6, -2, -1]])


def test_closing_keeps_the_codes_of_every_value() -> None:
    """A value goes to the same bin by way of the grid as straight from the closed schema."""
    rng = np.random.default_rng(0)
    values = pa.array(np.concatenate([[0.0, 1e6], rng.uniform(0, 1e6, 500), rng.uniform(0, 100, 500)]))
    schema = Schema((INCOME,))
    grid = schema.on_grid().columns[0]
    chosen = edges_of(grid)[[0, 1, 7, 20_000, 100_000]]
    by_grid = np.searchsorted(chosen, edges_of(grid)[:-1], "right") - 1
    straight = schema.closed({"income": chosen.tolist()}).columns[0].encode(values)
    np.testing.assert_array_equal(by_grid[grid.encode(values)], straight)


def test_a_last_bin_of_one_whole_number_can_be_declared() -> None:
    """The last edge is closed, so that repeating it says that value alone; numbers have no such bin."""
    assert column("x", "integer", edges=[0, 10, 99, 99]).labels == ("0..9", "10..98", "99")
    with pytest.raises(SchemaError, match="increasing"):
        column("x", "number", edges=[0, 10, 99, 99])
    with pytest.raises(SchemaError, match="increasing"):
        column("x", "integer", edges=[0, 10, 10, 99])


def test_thresholds_of_zeros_are_edges() -> None:
    """Of a range its ends, of a value its cell, and what is declared beside them."""
    zero = Zero({"age": {"max": 14}, "income": [50.0, 0.0]})
    schema = Schema((column("age", "integer", min=0, max=99, bins="auto", edges=[65]), INCOME), zeros=(zero,))
    assert schema.column("age").edges == (15, 65)
    assert schema.column("income").edges == (10.0, 50.0, 60.0)
    assert {15, 65} <= set(edges_of(schema.column("age")))
    assert Schema.from_dict(schema.to_dict()) == schema
    closed = schema.closed({"age": [0, 15, 65, 100], "income": [0, 10, 50, 60, 1e6]})
    np.testing.assert_array_equal(np.argwhere(closed.zero_masks[0][1]), [[0, 0], [0, 2]])


def test_a_condition_on_open_bins_names_values_and_not_labels() -> None:
    """A label of bins that may not be found is refused before anything is asked, and so is a value beyond the range."""
    for wanted in ("0..1", 200, {"max": -1}):
        with pytest.raises(SchemaError):
            Schema((AGE, INCOME), zeros=(Zero({"age": wanted}),))


def test_two_open_columns_in_one_zero_keep_their_grids() -> None:
    """Rows are judged cell by cell, so that no mask of both grids is made: rows inside the zero are moved, all others stay."""
    wide = {"min": 0, "max": 99_999, "bins": "auto"}
    columns = (column("a", "integer", **wide), column("b", "integer", **wide))
    zero = Zero({"a": {"max": 9_999}, "b": {"min": 50_000}}, {"b": 0})
    grid = Schema(columns, zeros=(zero,)).on_grid()
    assert grid.shape == (100_000, 100_000)
    codes = grid.encode(pa.table({"a": [5, 5, 10_000], "b": [49_999, 50_000, 50_000]}))
    assert codes.tolist() == [[5, 49_999], [5, 0], [10_000, 50_000]]


def test_a_sign_off_covers_what_was_found_and_a_draft_stays_a_draft() -> None:
    """Found edges are a private answer, so that who signed the rest need not sign again; nothing else is lifted."""
    drawn = Schema((AGE,), provenance=Provenance(drawn_from_data=True))
    unsigned = drawn.closed({"age": [0, 50, 100]})
    assert unsigned.drawn_from_data
    assert not unsigned.signed
    signed = drawn.sign("Ann", "2024-01-31").closed({"age": [0, 50, 100]})
    assert signed.drawn_from_data
    assert signed.signed
    assert any("found privately" in note for note in signed.provenance.notes)


def test_a_schema_without_open_columns_is_its_own_grid() -> None:
    """Nothing changes for it."""
    schema = Schema.from_domain({"a": 3})
    assert schema.on_grid() is schema
    assert not schema.is_open


@pytest.mark.parametrize(
    "facts",
    [
        {"kind": "categorical", "bins": "auto"},
        {"kind": "integer", "bins": "auto"},
        {"kind": "integer", "min": 9, "max": 0, "bins": "auto"},
        {"kind": "integer", "min": 0, "max": 9, "bins": "auto", "max_bins": 0},
        {"kind": "integer", "min": 0, "max": 9, "bins": 3, "max_bins": 4},
        {"kind": "integer", "min": 0, "max": 9, "bins": "auto", "edges": [5, 3]},
        {"kind": "integer", "min": 0, "max": 9, "bins": "auto", "edges": [0]},
        {"kind": "integer", "min": 0, "max": 9, "bins": "aut"},
        {"kind": "integer", "min": 0, "max": "auto", "bins": 3},
        {"kind": "integer", "min": 0, "max": "auto", "bins": "auto", "missing": "level", "other": "missing"},
        {"kind": "time", "min": "24:00", "max": "auto", "bins": "auto"},
    ],
)
def test_declarations_without_a_grid_are_refused(facts: dict[str, Any]) -> None:
    """Each by the name of what is wrong."""
    with pytest.raises(SchemaError, match="'x'"):
        column("x", **facts)


def test_more_forced_edges_than_bins_are_refused() -> None:
    """Before anything is read."""
    with pytest.raises(SizeError, match="max_bins"):
        column("x", "integer", min=0, max=99, bins="auto", max_bins=3, edges=[1, 2, 3])


def test_an_open_column_codes_no_rows() -> None:
    """Its bins are not there yet."""
    with pytest.raises(SchemaError, match="release"):
        Schema((AGE,)).encode(pa.table({"age": [1]}))


def test_times_of_day_go_to_their_bins_and_come_back() -> None:
    """From text, Arrow times and timestamps alike."""
    declared = column("t", "time", min="00:00", max="23:59:59", bins=24, missing="level")
    assert declared.labels[8] == "08:00..08:59:59"
    cells: list[pa.Array] = [
        pa.array(["08:30", "8:30:59.9", "2024-01-31 08:00:00", None]),
        pa.array([dt.time(8, 30), dt.time(8, 59, 59), dt.time(8), None]),
        pa.array([dt.datetime(2024, 1, 31, 8, minute) for minute in (0, 1, 2)] + [None]),
    ]
    for array in cells:
        assert declared.encode(array).tolist() == [8, 8, 8, 24]
    drawn = declared.decode(np.array([8, 23, 24]), np.random.default_rng(0)).to_pylist()
    assert dt.time(8) <= drawn[0] < dt.time(9)
    assert drawn[2] is None
    assert declared.find("23:59") == 23
    assert declared.find("24:01") is None


@pytest.mark.parametrize(
    ("step", "seconds"), [("00:01", 60), ("00:15", 900), ("01:00", 3600), ("00:00:30", 30)]
)
def test_times_come_back_on_their_step(step: str, seconds: int) -> None:
    """Declared bins or bins still to be found: whole minutes stay whole, and no bin is found between two of them."""
    declared = column("t", "time", min="06:00", max="21:59:59", bins=8, step=step)
    drawn = declared.decode(np.repeat(np.arange(8), 200), np.random.default_rng(0)).to_pylist()
    counted = [time.hour * 3600 + time.minute * 60 + time.second for time in drawn]
    assert {count % seconds for count in counted} == {0}
    assert len(set(counted)) > 8
    assert declared.encode(pa.array(["08:01:07"])).tolist() == [1]
    own = column("t", "time", min="auto", max="auto", bins="auto", step=step)
    assert isinstance(own, OpenBins)
    points = own.points
    assert {int(point) % seconds for point in points[1:-1]} == {0}
    assert column(**declared.to_spec()) == declared


@pytest.mark.parametrize("step", [60, "00:00", "quarter", "24:00", True, 0.5])
def test_a_step_of_times_is_a_time(step: object) -> None:
    """Anything else is refused, with the way to write it."""
    with pytest.raises(SchemaError, match=r"step .* must be a time"):
        column("t", "time", min="06:00", max="21:59:59", bins=8, step=step)  # type: ignore[arg-type]


def test_grids_have_round_edges() -> None:
    """A step is 1, 2 or 5 times a power of ten, and exact in the decimals that print it."""
    assert points_of("number", 0.0, 1e6)[:3].tolist() == [0.0, 10.0, 20.0]
    assert points_of("number", 0.05, 1.0)[:3].tolist() == [0.05, 0.05001, 0.05002]
    assert points_of("integer", 3, 1_000_003)[:4].tolist() == [3, 10, 20, 30]


def test_bands_of_an_open_range_begin_at_powers_of_two() -> None:
    """Of both signs, with zero between them."""
    points = points_of("integer", "auto", "auto")
    starts = points[band_edges(INTEGER, points)].tolist()
    assert {-4, -2, -1, 0, 1, 2, 4, 1024} <= set(starts)
    assert 3 not in starts
    assert starts[0] == points[0]


def test_cells_without_a_value_are_no_cells() -> None:
    """A step, decimals or special values leave every cell of the grid a value, and with it every bin that can be found."""
    income = column("x", "number", min=0, max=1000, bins="auto", step=100, special=[0, 300])
    grid = Schema((income,)).on_grid().columns[0]
    assert edges_of(grid).tolist() == [0, 200, 400, 500, 600, 700, 800, 900, 999.99, 1000]
    age = Schema((column("x", "integer", min=0, max=5, bins="auto", special=[0, 5]),)).on_grid().columns[0]
    assert edges_of(age).tolist() == [0, 2, 3, 4, 6]
    cents = column("x", "number", min=0, max="auto", bins="auto", decimals=2)
    assert edges_of(Schema((cents,)).on_grid().columns[0])[-1] * 100 < 2**53
    with pytest.raises(SchemaError, match="leave a value"):
        column("x", "integer", min=0, max=9, bins="auto", special=[4], edges=[4, 5])


def test_thresholds_of_rules_are_edges() -> None:
    """Also beside special values, and known before any bins are found."""
    schema = Schema.from_dict(
        {
            "columns": {
                "age": {"kind": "integer", "min": 0, "max": 99, "bins": "auto", "special": [99]},
                "job": {"kind": "categorical", "levels": ["N", "a"]},
            },
            "rules": ["age < 15 -> job == N"],
        }
    )
    assert schema.column("age").edges == (15,)
    closed = schema.closed({"age": [0, 15, 60, 100]})
    ((_, mask),) = closed.zero_masks
    assert mask.tolist() == [[False, True], [False, False], [False, False], [False, False]]
    with pytest.raises(SchemaError):
        schema.closed({"age": [0, 20, 100]})
