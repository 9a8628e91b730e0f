"""Rows of a draw say what they are, and bins are written by a drawn value or by their middle."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcipher as dc
from dpcipher.errors import ParameterError
from dpcipher.joint.imputed import Imputed
from dpcipher.schema import Schema, column

SCHEMA = Schema(
    (
        column("sex", "categorical", levels=["F", "M"]),
        column("age", "integer", edges=[0, 20, 40, 65, 99], special=[29, 30], missing_values=[-9]),
        column("size", "number", min=0, max=2, bins=2, missing="level"),
        column("born", "date", min="2000-01-01", max="2000-12-31", bins=4),
    )
)
RELEASE = dc.Release.from_tables(
    {("sex", "age"): np.full((2, 7), 40), ("size",): [160, 160, 160], ("born",): [120] * 4},
    SCHEMA,
    scale=3.0,
)


@pytest.fixture(scope="module")
def draws() -> list[dc.Joint]:
    """Two draws of a small release."""
    return dc.solve(RELEASE, draws=2, seed=1)


def test_frames_of_a_draw_say_that_they_are_imputations(draws: list[dc.Joint]) -> None:
    """With the columns whose values are drawn inside bins; what is done with a frame does not lose it, and rows of a fit say nothing."""
    frame = draws[0].sample(seed=1)
    assert Imputed.of(frame) == Imputed(binned=("age", "size", "born"))
    assert Imputed.of(frame[frame["sex"] == "F"].dropna().assign(more=1)) == Imputed.of(frame)
    assert Imputed.of(draws[0].sample(seed=1, values="middle")) == Imputed()
    assert Imputed.of(dc.solve(RELEASE, set=0).sample(10)) is None


@pytest.mark.parametrize(
    ("option", "said"),
    [({"n_rows": 7}, "n_rows"), ({"given": {"sex": "F"}}, "given"), ({"independent": True}, "independent")],
)
def test_options_that_the_rule_does_not_allow_for_are_said(
    draws: list[dc.Joint], option: dict[str, object], said: str
) -> None:
    """Each of them alone; the draw's own number of rows is none of them."""
    found = Imputed.of(draws[0].sample(seed=1, **option))
    assert found is not None
    assert found.changed == (said,)
    own = Imputed.of(draws[0].sample(draws[0].n_rows, seed=1))
    assert own is not None
    assert own.changed == ()


def test_parquet_files_and_saved_joints_carry_it(tmp_path: Path, draws: list[dc.Joint]) -> None:
    """What `stream.write` writes, pandas and Arrow read back; a joint that was saved still is a draw."""
    path = tmp_path / "rows.parquet"
    loaded = dc.Joint.load(draws[0].save(tmp_path / "draw.npz"))
    loaded.stream(seed=1).write(path)
    expected = Imputed(binned=("age", "size", "born"))
    assert [Imputed.of(read) for read in (pd.read_parquet(path), pq.read_table(path))] == [expected, expected]


@pytest.mark.parametrize(
    "attrs", ["", "[1]", '{"dpcipher": 1}', '{"dpcipher": {"rule": "imputations", "binned": 3}}']
)
def test_metadata_that_others_wrote_is_no_mark(attrs: str) -> None:
    """Anybody may have written a file: what is not ours is nothing."""
    assert Imputed.of(pa.table({"a": [1]}).replace_schema_metadata({"PANDAS_ATTRS": attrs})) is None


def test_middles_are_the_values_of_the_column_that_are_nearest_to_the_middle(draws: list[dc.Joint]) -> None:
    """By listing the values of every bin; special values and missing ones stay, and so does all that is not drawn."""
    drawn, middle = (draws[0].sample(seed=1, values=values) for values in ("drawn", "middle"))
    bins = [(0, 20), (20, 40), (40, 65), (65, 100)]
    values = {(low, high): {*range(low, high)} - {29, 30} for low, high in bins}
    expected = {
        low: min(values[low, high], key=lambda age: (abs(2 * age - low - high + 1), -age))
        for low, high in bins
    }
    for before, after in zip(drawn["age"], middle["age"], strict=True):
        low = next((low for low, high in bins if low <= before < high), None)
        assert after == (before if before in (29, 30, -9) or low is None else expected[low])
    assert set(middle["size"].dropna()) == {0.5, 1.5}
    days = [number * 366 // 4 for number in range(5)]
    centres = [int((low + high - 1) / 2 + 0.5) for low, high in pairwise(days)]
    assert set(middle["born"]) == {pd.Timestamp("2000-01-01") + pd.Timedelta(days=day) for day in centres}
    assert (drawn["size"].isna() == middle["size"].isna()).all()
    assert (drawn["sex"] == middle["sex"]).all()
    assert (SCHEMA.encode(pa.table(middle)) == SCHEMA.encode(pa.table(drawn))).all()


def test_values_asked_for_stay_and_others_are_refused(draws: list[dc.Joint]) -> None:
    """`given` names a value inside a bin, which is no middle; a misspelt option gets a hint."""
    rows = draws[0].sample(9, seed=1, given={"age": 47}, values="middle")
    assert set(rows["age"]) == {47}
    with pytest.raises(ParameterError, match="did you mean 'middle'"):
        draws[0].sample(9, values="midle")  # type: ignore[arg-type]


def test_rows_of_middles_keep_the_rules() -> None:
    """Where both ends of a span are in one bin their middles are equal, which a strict order does not allow: such rows stay as they were drawn."""
    ages = {"kind": "integer", "edges": [0, 10, 20, 30]}
    schema = dc.Schema.from_dict({"columns": {"first": ages, "last": ages}, "rules": ["first < last"]})
    counts = [[40, 30, 20], [0, 40, 30], [0, 0, 40]]
    joint = dc.solve(dc.Release.from_tables({("first", "last"): counts}, schema, scale=1.0))
    rows = joint.sample(2_000, seed=1, values="middle")
    assert (rows["first"] < rows["last"]).all()
    bins = rows.clip(upper=29) // 10  # the last edge is closed
    apart = rows[bins["first"] != bins["last"]]
    assert len(apart) > 500
    assert set(apart["first"]) | set(apart["last"]) <= {4, 5, 14, 15, 24, 25}
