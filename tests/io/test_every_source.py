"""Every kind of source gives equal codes for equal rows, and a neighbour's row changes no other code."""

import datetime as dt
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcipher.curator.counts import receive
from dpcipher.io.source import open_declared
from dpcipher.schema import Schema, column
from dpcipher.schema.format import FileFormat

Rows = dict[str, list[Any]]
SCHEMA = Schema(
    (
        column("c", "categorical", levels=["01", "N", "NA", "é, ü"], missing="level", other="N"),
        column("o", "ordinal", levels=[3, 1, 2], missing="level", other="missing"),
        column("i", "integer", min=-5, max=94, bins=7, missing="level", other="nearest"),
        column("x", "number", edges=[-1.5, 0, 2.25], missing="level", other="missing"),
        column("b", "boolean", missing="level", other="missing"),
        column("d", "date", min="1960-01-01", max="2030-12-31", bins=9, missing="level", other="missing"),
    )
)
TYPES = pa.schema(
    {"c": pa.string(), "o": pa.int64(), "i": pa.int64(), "x": pa.float64(), "b": pa.bool_(), "d": pa.date32()}
)
DAY = dt.date(2024, 2, 29)
LEVELS = ["01", "N", "é, ü"]
CASES: dict[str, Rows] = {
    "plain": {"c": LEVELS, "o": [1, 2, 3], "i": [-5, 94, 0], "x": [-1.5, 0.0, 2.25], "b": [True, False, True], "d": [DAY] * 3},
    "missing": {"c": [None, "NA"], "o": [None, 2], "i": [7, None], "x": [None, 1e-9], "b": [None, True], "d": [DAY, None]},
    "outside": {"c": ["N"], "o": [1], "i": [4000], "x": [99.0], "b": [False], "d": [dt.date(1960, 1, 1)]},
    "all missing": {name: [None, None] for name in SCHEMA.names},
    "no rows": {name: [] for name in SCHEMA.names},
}  # fmt: skip
EXPECTED = {
    "plain": [[0, 1, 0, 0, 1, 8], [1, 2, 6, 1, 0, 8], [3, 0, 0, 1, 1, 8]],
    "missing": [[4, 3, 0, 2, 2, 8], [2, 2, 7, 1, 1, 9]],
    "outside": [[1, 1, 6, 2, 0, 0]],
    "all missing": [[4, 3, 7, 2, 2, 9]] * 2,
    "no rows": [],
}
# Rows that a neighbour may have: what a typed column can hold, and what stands in columns of no type.
TYPED: list[list[Any]] = [
    [None] * 6,
    ["\u202e", 2**62, -(2**62), float("inf"), True, dt.date(9999, 12, 31)],
    ["", 2**53 + 1, 0, -1e300, False, dt.date(1, 1, 1)],
]
UNTYPED: list[list[Any]] = [
    *TYPED,
    ["x", "N", "9" * 30, "1,5", "maybe", "2024-02-30"],
    ["NaN", 1.5, "1e2", "n/a", "2", "31.01.2024"],
    ["0x1", "1.0", " -3", "--", "TRUE", "2024-01-31 23:30"],
]


class OnlyArrow:
    """An object that offers the stream protocol and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def table(rows: Rows, folder: Path) -> pa.Table:
    """A pyarrow table of declared types."""
    return pa.Table.from_pydict(rows, schema=TYPES)


def objects(rows: Rows, folder: Path) -> pd.DataFrame:
    """A pandas frame of Python objects."""
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in rows.items()})


def polars(rows: Rows, folder: Path) -> Any:
    """A polars frame."""
    return pytest.importorskip("polars").from_arrow(table(rows, folder))


def relation(rows: Rows, folder: Path) -> Any:
    """A DuckDB relation."""
    return pytest.importorskip("duckdb").from_arrow(table(rows, folder))


def ibis_table(rows: Rows, folder: Path) -> Any:
    """A table of DuckDB behind ibis."""
    connection = pytest.importorskip("ibis").duckdb.connect()
    connection.con.register("given", table(rows, folder))
    connection.con.execute("CREATE TABLE people AS SELECT * FROM given")
    return connection.table("people")


def text(cell: Any, format: FileFormat) -> str:
    """A cell as a file of this format writes it."""
    if cell is None:
        return ""
    if isinstance(cell, float) and cell != float("inf"):
        return np.format_float_positional(cell, trim="-").replace(".", format.decimal)
    written = str(cell).replace('"', '""')
    return f'"{written}"' if format.separator != "\t" and any(mark in written for mark in ',;"') else written


def text_file(rows: Rows, folder: Path, name: str = "t.csv", **facts: str) -> Path:
    """A CSV or TSV file as its format is declared."""
    format = FileFormat(**{"separator": ",", **facts})  # type: ignore[arg-type]
    lines = [list(rows), *zip(*rows.values(), strict=True)]
    body = "".join(format.separator.join(text(cell, format) for cell in line) + "\n" for line in lines)
    path = folder / name
    path.write_text(body, encoding=format.encoding)
    return path


def file_of_frame(rows: Rows, folder: Path, ending: str) -> Path:
    """A file by pandas."""
    path = folder / f"t{ending}"
    frame = objects(rows, folder)
    frame.to_csv(path, index=False) if ending.startswith(".csv") else frame.to_excel(path, index=False)
    return path


def parquet(rows: Rows, folder: Path) -> Path:
    """A Parquet file of small groups."""
    pq.write_table(table(rows, folder), folder / "t.parquet", row_group_size=2)
    return folder / "t.parquet"


def sqlite(rows: Rows, folder: Path) -> str:
    """A table of a SQLite file, whose columns declare no type; dates are texts there."""
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    base = sqlite3.connect(path)
    base.execute(f"CREATE TABLE people ({', '.join(rows)})")
    lines = [
        [cell.isoformat() if isinstance(cell, dt.date) else cell for cell in line]
        for line in zip(*rows.values(), strict=True)
    ]
    base.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", lines)
    base.commit()
    base.close()
    return f"{path}::people"


def duckdb_file(rows: Rows, folder: Path) -> str:
    """A table of a DuckDB file."""
    duckdb, path = pytest.importorskip("duckdb"), folder / "t.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as base:
        base.register("given", table(rows, folder))
        base.execute("CREATE TABLE people AS SELECT * FROM given")
    return f"{path}::people"


TYPED_FORMS: dict[str, Callable[[Rows, Path], Any]] = {
    "arrow": table,
    "arrow reader": lambda rows, folder: table(rows, folder).to_reader(max_chunksize=1),
    "arrow batch": lambda rows, folder: pa.RecordBatch.from_pydict(rows, schema=TYPES),
    "arrow dictionary": lambda rows, folder: table(rows, folder).set_column(0, "c", table(rows, folder)["c"].dictionary_encode()),
    "stream": lambda rows, folder: OnlyArrow(table(rows, folder)),
    "pandas": lambda rows, folder: table(rows, folder).to_pandas(),
    "pandas datetimes": lambda rows, folder: table(rows, folder).to_pandas(date_as_object=False),
    "pandas nullable": lambda rows, folder: table(rows, folder).to_pandas().convert_dtypes(),
    "pandas categories": lambda rows, folder: table(rows, folder).to_pandas().astype({"c": "category", "o": "category"}),
    "pandas arrow": lambda rows, folder: table(rows, folder).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars,
    "polars lazy": lambda rows, folder: polars(rows, folder).lazy(),
    "polars categories": lambda rows, folder: polars(rows, folder).cast({"c": pytest.importorskip("polars").Categorical}),
    "duckdb relation": relation,
    "duckdb file": duckdb_file,
    "ibis": ibis_table,
    "parquet": parquet,
    "folder": lambda rows, folder: parquet(rows, folder).parent,
}  # fmt: skip
UNTYPED_FORMS: dict[str, Callable[[Rows, Path], Any]] = {
    "pandas objects": objects,
    "pandas inferred": lambda rows, folder: pd.DataFrame(rows),
    "csv": text_file,
    "csv text path": lambda rows, folder: str(text_file(rows, folder)),
    "csv glob": lambda rows, folder: str(text_file(rows, folder).parent / "*.csv"),
    "csv by pandas": partial(file_of_frame, ending=".csv"),
    "csv.gz": partial(file_of_frame, ending=".csv.gz"),
    "tsv": partial(text_file, name="t.tsv", separator="\t"),
    "declared": partial(text_file, name="t.txt", separator=";", decimal=",", encoding="utf-16"),
    "excel": partial(file_of_frame, ending=".xlsx"),
    "sqlite": sqlite,
}
FORMS = TYPED_FORMS | UNTYPED_FORMS
DECLARED = {"declared": FileFormat(separator=";", decimal=",", encoding="utf-16")}


def codes(form: str, rows: Rows, folder: Path) -> list[list[int]]:
    """The codes of all rows, read from a source of this form."""
    schema = replace(SCHEMA, format=DECLARED.get(form, SCHEMA.format))
    source = open_declared(FORMS[form](rows, folder), schema)
    return [row for batch in source.batches(schema.names) for row in schema.encode(batch).tolist()]


def has_cells(form: str, row: list[int]) -> bool:
    """Whether a row is one: in a sheet, a row without any value cannot be told from the end."""
    return form != "excel" or row != EXPECTED["all missing"][0]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_have_equal_codes(form: str, case: str, tmp_path: Path) -> None:
    """Each library and file format, on each case."""
    expected = [row for row in EXPECTED[case] if has_cells(form, row)]
    assert codes(form, CASES[case], tmp_path) == expected


@pytest.mark.filterwarnings("ignore")  # pandas and polars about what they make of mixtures
@pytest.mark.parametrize("form", FORMS)
def test_a_neighbours_row_changes_no_other_code(form: str, tmp_path: Path) -> None:
    """Whatever is in it, and wherever it stands: the type of a column never follows from its cells."""
    cases = [CASES[case] for case in ("plain", "missing", "outside")]
    rows = {name: [cell for case in cases for cell in case[name]] for name in SCHEMA.names}
    expected = [row for case in ("plain", "missing", "outside") for row in EXPECTED[case]]
    for neighbour in TYPED if form in TYPED_FORMS else UNTYPED:
        for place in (0, 3, len(expected)):
            more = {
                name: [*cells[:place], cell, *cells[place:]]
                for (name, cells), cell in zip(rows.items(), neighbour, strict=True)
            }
            read = codes(form, more, tmp_path)
            assert [*read[:place], *read[len(read) - len(expected) + place :]] == expected, neighbour


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_spark_counts_equal_rows_alike(spark: Any, case: str, tmp_path: Path) -> None:
    """Spark tells counts alone: those of all columns together are those of the codes."""
    frame = spark.createDataFrame(table(CASES[case], tmp_path))
    axes = tuple(range(len(SCHEMA.names)))
    (counts,) = receive(frame.repartition(2), SCHEMA).tally([axes]).tables
    expected = np.zeros(SCHEMA.shape, dtype=np.int64)
    for row in EXPECTED[case]:
        expected[tuple(row)] += 1
    assert np.array_equal(counts, expected)
