"""Every column of a release file is forged in turn, as anybody can with pyarrow; the metadata stays, and so does the ledger."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from forge import manner, rewritten

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import ReleaseError

KEY = b"dpcipher"
SCHEMA = {
    "age": {"kind": "integer", "min": 0, "max": 2},
    "sex": {"kind": "categorical", "levels": ["F", "M"]},
    "job": {"kind": "categorical", "levels": ["none", "some"]},
}
LEDGER = "people.ledger"


@pytest.fixture(scope="module", name="folder")
def paid_releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases that a ledger knows: plain tables, and centred ones, whose file has a column of rows too."""
    folder = tmp_path_factory.mktemp("paid")
    schema = dc.Schema.from_dict({"columns": SCHEMA})
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(0, 3, 300),
            "sex": rng.choice(["F", "M"], 300),
            "job": rng.choice(["none", "some"], 300),
        }
    )
    ledger = dc.Ledger.create(folder / LEDGER, epsilon=10, delta=1e-6, unit="add-remove", name="people")
    promise = {"unit": "add-remove", "ledger": ledger, "epsilon": 1}
    dc.measure(people, schema, workload=2, save=folder / "plain.parquet", **promise)
    wide = dc.Schema.from_domain({f"c{number}": 3 for number in range(16)})
    rows = pd.DataFrame(np.repeat(rng.integers(0, 3, (3_000, 8)), 2, axis=1), columns=list(wide.attrs))
    dc.measure(rows, wide, workload="auto", delta=1e-9, save=folder / "centred.parquet", **promise)
    return folder


def swap(column: pa.Array) -> pa.Array:
    """The first value and the last change places, where they differ; else all become another."""
    values = column.to_pylist()
    values[0], values[-1] = values[-1], values[0]
    return pa.array(values, column.type)


def other(column: pa.Array) -> pa.Array:
    """One value is another: a number one larger, a text with a letter more."""
    values = column.to_pylist()
    place = next(i for i, value in enumerate(values) if value is not None)
    values[place] += "x" if isinstance(values[place], str) else 1
    return pa.array(values, column.type)


def absent(column: pa.Array) -> pa.Array:
    """The first value is gone."""
    return pa.array([None, *column.to_pylist()[1:]], column.type)


def retyped(column: pa.Array) -> pa.Array:
    """The same bytes as another type: counts as times, texts as bytes; other numbers in half their bits."""
    kinds = {pa.int64(): pa.timestamp("us"), pa.string(): pa.binary(), pa.int32(): pa.int16()}
    return column.cast(kinds.get(column.type, pa.float32()), safe=False)


FORGERIES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "swap": swap, "other": other, "absent": absent, "retyped": retyped,
}  # fmt: skip
LAST = {"plain": ["level_2", "count"], "centred": ["count", "rows"]}


def written(path: Path, table: pa.Table, metadata: bytes) -> Path:
    """A file in the manner of the release's own: neither statistics nor types of Arrow."""
    return rewritten(path, table, metadata.decode())


def noticed(path: Path, ledger: Path) -> str:
    """What the library says of a forged file; the command line says the same, and confirms nothing."""
    with pytest.raises(ReleaseError, match="is damaged") as caught:
        dc.Release.load(path)
    result = CliRunner().invoke(main, ["release", "verify", str(path), "--ledger", str(ledger)])
    assert result.exit_code != 0
    assert "is damaged" in result.output
    assert "recorded" not in result.output
    return str(caught.value)


@pytest.mark.parametrize("kind", LAST)
def test_a_column_that_is_forged_is_noticed(kind: str, folder: Path, tmp_path: Path) -> None:
    """A value, its place, its absence and its type, in each column; the same file rewritten without a change is confirmed."""
    source = folder / f"{kind}.parquet"
    table, metadata = pq.read_table(source), pq.read_metadata(source).metadata[KEY]
    assert table.column_names[-2:] == LAST[kind]
    honest = written(tmp_path / "honest.parquet", table, metadata)
    result = CliRunner().invoke(main, ["release", "verify", str(honest), "--ledger", str(folder / LEDGER)])
    assert result.exit_code == 0, result.output
    for place, name in enumerate(table.column_names):
        for how, forge in FORGERIES.items():
            column = table.column(name).combine_chunks()
            forged = forge(column)
            if forged.equals(column):  # one set: the first value is the last
                continue
            changed = table.set_column(place, name, forged)
            said = noticed(written(tmp_path / "r.parquet", changed, metadata), folder / LEDGER)
            assert name in said or how in ("absent", "retyped") or name == "count"


def test_a_column_more_or_less_or_elsewhere_is_noticed(folder: Path, tmp_path: Path) -> None:
    """A column that nobody wrote, one that is missing, a name that changed, two that changed places; rows in another order, or one more."""
    source = folder / "plain.parquet"
    table, metadata = pq.read_table(source), pq.read_metadata(source).metadata[KEY]
    names = table.column_names
    tables = [
        table.append_column("rows", table.column("count")),
        table.drop_columns(["level_2"]),
        table.rename_columns([*names[:-1], "counts"]),
        table.rename_columns([*names[:3], "level_2", "level_1", "count"]),
        table.select(["set", "table", "attrs", "level_2", "level_1", "count"]),
        table.take(list(range(len(table)))[::-1]),
        pa.concat_tables([table, table.slice(0, 1)]),
    ]
    for changed in tables:
        assert noticed(written(tmp_path / "r.parquet", changed, metadata), folder / LEDGER)


def test_facts_that_other_readers_act_on_are_noticed(folder: Path, tmp_path: Path) -> None:
    """Smallest and largest values, by which queries skip rows; types of Arrow, which change what numbers look like; facts of other programs."""
    source = folder / "plain.parquet"
    table, metadata = pq.read_table(source), pq.read_metadata(source).metadata[KEY]
    path = tmp_path / "r.parquet"
    for table_, options in (
        (table, {"write_statistics": True}),
        (table, {"write_statistics": True, "write_page_index": True}),
        (table, {"store_schema": True}),
        (table, {"sorting_columns": [pq.SortingColumn(0)]}),
        (table, {"compression": "zstd"}),
        (table.replace_schema_metadata({KEY: metadata, b"pandas": b"{}"}), {"store_schema": True}),
    ):
        with pq.ParquetWriter(path, table_.schema, **manner(table.schema) | options) as writer:
            writer.write_table(table_)
            writer.add_key_value_metadata({KEY: metadata})
        with pytest.raises(ReleaseError, match="damaged"):
            dc.Release.load(path)
