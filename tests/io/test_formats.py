"""Files as people have them: each is read exactly as the schema declares, and gives the codes of a plain CSV file."""

import ast
import datetime as dt
import gzip
import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcipher
from dpcipher.curator.draft import draft
from dpcipher.errors import DpcipherWarning, MissingExtra, SchemaError, TableFileError
from dpcipher.io.sniff import guess_format
from dpcipher.io.source import coded_rows, open_declared, open_table
from dpcipher.schema import Schema, column
from dpcipher.schema.format import FileFormat

CANARY = "Zebra4711"
COLUMNS = (
    column(
        "city",
        "categorical",
        levels=["Köln", "Paris; France", 'the "Hague"'],
        missing="level",
        other="missing",
    ),
    column("pay", "number", edges=[0, 1000.5, 2000, 100_000], missing="level", other="missing"),
    column("age", "integer", min=0, max=99, missing="level", other="missing"),
    column("grade", "ordinal", levels=[1.5, 2.5], missing="level", other="missing"),
    column("code", "categorical", levels=["1,5", "1.5"], missing="level", other="missing"),
)
ROWS = [
    ("Köln", 1000.25, 40, 1.5, "1,5"),
    ("Paris; France", 99_999.75, 7, 2.5, "1.5"),
    ('the "Hague"', 1500.0, 99, 1.5, "1,5"),
    ("", "", "", "", ""),
]
EXPECTED = [[0, 0, 40, 0, 0], [1, 2, 7, 1, 1], [2, 1, 99, 0, 0], [3, 3, 100, 2, 2]]


def number(value: Any, decimal: str, thousands: str) -> str:
    """A number as an office program writes it."""
    if not isinstance(value, float):
        return str(value)
    whole, _, fraction = f"{value:,}".partition(".")
    return whole.replace(",", thousands) + (decimal + fraction if fraction != "0" else "")


def text_file(separator: str = ",", decimal: str = ".", thousands: str = "", quote: str = '"') -> str:
    """The rows, written by hand: every cell in quotes."""
    lines = [[column.name for column in COLUMNS]]
    lines += [[*(number(cell, decimal, thousands) for cell in row)] for row in ROWS]
    escaped = [[quote + cell.replace(quote, 2 * quote) + quote for cell in line] for line in lines]
    return "".join(separator.join(line) + "\r\n" for line in escaped)


def codes(data: object, **format: Any) -> list[list[int]]:
    """The codes of all rows under a declared format."""
    return coded_rows(data, Schema(COLUMNS, format=FileFormat(**format)), "data").tolist()


FORMATS: list[dict[str, Any]] = [
    {},
    {"separator": "semicolon", "decimal": ","},
    {"separator": ";", "decimal": ",", "thousands": ".", "encoding": "latin-1"},
    {"separator": "tab", "encoding": "utf-16"},
    {"thousands": ","},
    {"separator": "|", "thousands": "'", "encoding": "cp1252"},
    {"thousands": " ", "decimal": ",", "quote": "'"},
]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".txt", ".txt.gz"])
@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_a_file_is_read_as_its_format_is_declared(
    format: dict[str, Any], ending: str, tmp_path: Path
) -> None:
    """Separators, encodings and marks of numbers; text columns keep their commas."""
    declared = FileFormat(**format)
    text = text_file(declared.separator or ",", declared.decimal, declared.thousands or "", declared.quote)
    raw, path = text.encode(declared.encoding), tmp_path / f"rows{ending}"
    path.write_bytes(gzip.compress(raw) if ending.endswith(".gz") else raw)
    assert codes(path, **format) == EXPECTED


def test_a_tsv_file_needs_no_format(tmp_path: Path) -> None:
    """Its name says that tabs separate; what is declared wins."""
    (tmp_path / "rows.tsv").write_text(text_file("\t"), encoding="utf-8")
    assert codes(tmp_path / "rows.tsv") == EXPECTED
    (tmp_path / "odd.tsv").write_text(text_file(";"), encoding="utf-8")
    assert codes(tmp_path / "odd.tsv", separator=";") == EXPECTED


def test_notes_beside_the_tables_of_a_folder_are_not_read(tmp_path: Path) -> None:
    """A .txt file is a table where it is named; in a folder it may be about the tables."""
    (tmp_path / "rows.csv").write_text(text_file(), encoding="utf-8")
    (tmp_path / "readme.txt").write_text("What the columns mean", encoding="utf-8")
    assert codes(tmp_path) == EXPECTED


def test_a_file_that_begins_as_utf_16_does_is_called_so(tmp_path: Path) -> None:
    """By its first two bytes, which no row can change; other bytes that are no UTF-8 may be anything."""
    (tmp_path / "wide.csv").write_bytes(text_file().encode("utf-16"))
    (tmp_path / "west.csv").write_bytes(text_file().encode("latin-1"))
    with pytest.raises(TableFileError, match=r"format: {encoding: utf-16}, .* iconv -f utf-16"):
        codes(tmp_path / "wide.csv")
    with pytest.raises(TableFileError, match=r"such as format: {encoding: latin-1}"):
        codes(tmp_path / "west.csv")


def test_a_number_of_another_format_is_no_number(tmp_path: Path) -> None:
    """Under a decimal comma 1.500 may be anything, so that it follows `other`; each cell is judged by itself."""
    schema = Schema((column("x", "number", edges=[0, 2, 2000], other="missing", missing="level"),),
                    format=FileFormat(separator=";", decimal=","))  # fmt: skip
    cells = ["1,5", "1.500", "1500", "1,5e1", ",5", "", "1.5", "1.500,5", " 1,5 ", "-0,0"]
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *(f"{cell};" for cell in cells)]), encoding="utf-8")
    assert coded_rows(tmp_path / "t.csv", schema, "data")[:, 0].tolist() == [0, 2, 1, 1, 0, 2, 2, 2, 0, 0]
    for place, cell in enumerate(cells):
        (tmp_path / "one.csv").write_text(f"x;y\n{cell};", encoding="utf-8")
        alone = coded_rows(tmp_path / "one.csv", schema, "data")[:, 0].tolist()
        assert alone == [coded_rows(tmp_path / "t.csv", schema, "data")[place, 0]]


def test_quotes_may_be_cells(tmp_path: Path) -> None:
    """`quote: none` takes a quotation mark for what it is."""
    schema = Schema((column("x", "categorical", levels=['5"', "a"]),), format=FileFormat(quote="none"))
    (tmp_path / "t.csv").write_text('x,y\n5",1\na,2\n')
    assert coded_rows(tmp_path / "t.csv", schema, "data").ravel().tolist() == [0, 1]


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_a_format_comes_back_from_its_file(format: dict[str, Any], tmp_path: Path) -> None:
    """YAML and JSON give it back; the default is not written, so that old fingerprints stay."""
    schema = Schema(COLUMNS, format=FileFormat(**format))
    assert ("format" in schema.to_dict()) == bool(format)
    for ending in ("yaml", "json"):
        schema.save(tmp_path / f"s.{ending}")
        back = Schema.load(tmp_path / f"s.{ending}")
        assert back.format == schema.format
        assert back.fingerprint() == schema.fingerprint()


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"separator": "x"}, "separator"),
        ({"separator": ""}, "separator"),
        ({"encoding": "utf9"}, "did you mean 'utf-8'"),
        ({"encoding": ["utf-8"]}, "encoding"),
        ({"encoding": "unicode_escape"}, "encoding"),
        ({"decimal": ";"}, "decimal"),
        ({"thousands": ","  , "decimal": ","}, "different marks"),
        ({"thousands": "."}, "different marks"),
        ({"quote": "''"}, "quote"),
        ({"seperator": ";"}, "did you mean 'separator'"),
        ([";"], "mapping"),
    ],
)  # fmt: skip
def test_a_format_that_means_nothing_is_refused(spec: Any, rule: str) -> None:
    """The message names the key, the value and what may stand there."""
    with pytest.raises(SchemaError, match=rule):
        Schema.from_dict({"columns": {"a": {"kind": "boolean"}}, "format": spec})


def test_a_byte_outside_the_encoding_is_refused_and_not_quoted(tmp_path: Path) -> None:
    """As with UTF-8: before any charge, with what to change."""
    (tmp_path / "t.csv").write_bytes(b"a\n" + CANARY.encode() + b"\x81\n")
    for encoding, hint in (("cp1252", "must be cp1252 text"), ("utf-8", "format: {encoding: latin-1}")):
        schema = Schema((column("a", "boolean"),), format=FileFormat(encoding=encoding))
        with pytest.raises(TableFileError, match=hint) as caught:
            list(open_declared(tmp_path / "t.csv", schema).batches(["a"]))
        assert CANARY not in str(caught.value)


# Workbooks


def workbook(path: Path, rows: list[list[Any]], name: str = "Sheet") -> Path:
    """A workbook of one sheet."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = name
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_cells_of_a_sheet_are_what_was_stored(tmp_path: Path) -> None:
    """Numbers, texts, dates and truth values beside one another, each for itself; empty rows are none."""
    schema = Schema(
        (
            column("x", "categorical", levels=["1", "a", "2024-01-31"], missing="level", other="missing"),
            column("b", "boolean", missing="level"),
            column("d", "date", min="2024-01-01", max="2024-12-31", bins=12, missing="level"),
        )
    )
    rows = [
        ["x", "b", "d", None],
        [1, True, dt.datetime(2024, 2, 3)],
        ["a", False, dt.date(2024, 12, 31)],
        [None, None, None],
        [dt.datetime(2024, 1, 31), None, "2024-05-05"],
        [1.0],
        ["#N/A", 0, None],
    ]
    path = workbook(tmp_path / "t.xlsx", rows, "People")
    expected = [[0, 1, 1], [1, 0, 11], [2, 2, 4], [0, 2, 12], [3, 0, 12]]
    assert coded_rows(path, schema, "data").tolist() == expected
    assert coded_rows(f"{path}::People", schema, "data").tolist() == expected
    with pytest.raises(TableFileError, match="no sheet 'people'; it has 1 sheets; did you mean 'People'"):
        open_table(f"{path}::people")
    one_by_one = [
        coded_rows(workbook(tmp_path / "one.xlsx", [rows[0], row]), schema, "data").tolist()[0]
        for row in rows[1:]
        if any(cell is not None for cell in row)
    ]
    assert one_by_one == expected


def test_several_sheets_are_said_where_none_is_named(tmp_path: Path) -> None:
    """The first is read, with a warning; who names one needs none."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for sheet in (book.active, book.create_sheet("more")):
        sheet.append(["a"])
        sheet.append([sheet.title])
    path = tmp_path / "two.xlsx"
    book.save(path)
    with pytest.warns(
        DpcipherWarning, match=r"two.xlsx: has 2 sheets, and the first is read; name one: two.xlsx::SHEET"
    ):
        first = open_table(path)
    (batch,) = first.batches(["a"])
    assert batch.column(0).to_pylist() == ["Sheet"]
    (batch,) = open_table(f"{path}::more").batches(["a"])
    assert batch.column(0).to_pylist() == ["more"]


def test_workbooks_that_are_refused_quote_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row beyond the header, an empty sheet, damage; and where openpyxl is missing, the command that installs it."""
    wide = workbook(tmp_path / "wide.xlsx", [["a"], ["x"], [None], ["x", CANARY]])
    with pytest.raises(
        TableFileError, match="a row has more cells"
    ) as caught:  # as `schema check` counts rows
        list(open_table(wide).batches(["a"]))
    assert CANARY not in str(caught.value)
    with pytest.raises(TableFileError, match="empty"):
        open_table(workbook(tmp_path / "empty.xlsx", []))
    (tmp_path / "bad.xlsx").write_bytes(wide.read_bytes()[:-100])
    with pytest.raises(TableFileError, match="Excel workbook"):
        open_table(tmp_path / "bad.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpcipher\[excel\]'"):
        open_table(wide)


# Databases


def test_cells_of_sqlite_keep_their_own_types(tmp_path: Path) -> None:
    """Integers, reals, texts, blobs and nothing in one column: as in a column of objects, and one by one."""
    values = [1, 1.0, "1", b"1", b"\xff", "é", None, 2.5, "01", 2**62]
    declared = column("odd \"name\"", "categorical", levels=["1", "é", "2.5"], missing="level", other="missing")  # fmt: skip
    schema, path = Schema((declared,)), tmp_path / "t.db"
    with sqlite3.connect(path) as base:
        base.execute('CREATE TABLE people ("odd ""name""", other)')
        base.executemany("INSERT INTO people VALUES (?, 0)", [(value,) for value in values])
        base.execute("INSERT INTO people SELECT CAST(x'FF41' AS TEXT), 0")  # a text that is no UTF-8
    base.close()
    frame = pd.DataFrame({declared.name: pd.Series([*values, b"\xff"], dtype=object)})
    expected = coded_rows(frame, schema, "data").ravel().tolist()
    assert expected == [0, 0, 0, 0, 3, 1, 3, 2, 0, 3, 3]
    before = path.read_bytes()
    assert coded_rows(f"{path}::people", schema, "data").ravel().tolist() == expected
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    for look in (open_table, guess_format):
        with pytest.raises(TableFileError, match="holds tables; name one of them"):
            look(path)
    with pytest.raises(TableFileError, match="no table 'persons'; it has 1 tables"):
        open_table(f"{path}::persons")
    with pytest.raises(TableFileError, match="name one of them"):
        open_table(path)


@pytest.mark.parametrize("mode", ["WAL", "PERSIST", "DELETE"])
def test_a_sqlite_file_that_is_being_written_is_refused(mode: str, tmp_path: Path) -> None:
    """Where rows stand in a journal beside the file; once they are in it, it is read, and stays as it is."""
    path, schema = tmp_path / "t.db", Schema.from_domain({"a": 2})
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE t (a)")
    writer.execute(f"PRAGMA journal_mode = {mode}")
    writer.executemany("INSERT INTO t VALUES (?)", [(0,), (1,)])
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(
        TableFileError, match=r"has rows that another program has not yet written into it \(in t.db-"
    ):
        open_table(f"{path}::t")
    writer.execute("COMMIT")
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if mode == "PERSIST":  # which leaves the journal where it is
        writer.execute("PRAGMA journal_mode = DELETE")
    assert coded_rows(f"{path}::t", schema, "data").ravel().tolist() == [0, 1, 1]
    writer.close()
    before = path.read_bytes()
    for _ in range(
        2
    ):  # under WAL, SQLite leaves an empty journal of its own behind, which is no sign of a writer
        assert coded_rows(f"{path}::t", schema, "data").ravel().tolist() == [0, 1, 1]
    assert path.read_bytes() == before
    assert mode == "WAL" or list(tmp_path.iterdir()) == [path]


def test_rows_that_come_while_a_sqlite_file_is_read_are_not_counted(tmp_path: Path) -> None:
    """One transaction sees one state of the table."""
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        writer.executemany("INSERT INTO t VALUES (?)", [(row % 2,) for row in range(70_000)])
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    batches = open_table(f"{path}::t").batches(["a"])
    first = next(batches)
    with writer:
        writer.execute("UPDATE t SET a = 5")
    assert first.num_rows < 70_000
    assert {cell for batch in batches for cell in batch.column("a").to_pylist()} <= {"0", "1"}
    writer.close()


def test_tables_of_duckdb(tmp_path: Path) -> None:
    """The same rows as from a frame."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.duckdb"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 5, 1000), "b c": rng.choice(["x", "y"], 1000)})
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE people AS SELECT * FROM frame")
    schema = Schema((column("b c", "categorical", levels=["x", "y"]), column("a", "integer", min=0, max=4)))
    assert np.array_equal(coded_rows(f"{path}::people", schema, "data"), coded_rows(frame, schema, "data"))
    with pytest.raises(TableFileError, match="no table 'People'; it has 1 tables; did you mean 'people'"):
        open_table(f"{path}::People")


def test_files_that_are_no_database(tmp_path: Path) -> None:
    """Damage and other files, and a path that is not there."""
    (tmp_path / "t.db").write_bytes(b"SQLite format 3\0" + CANARY.encode() * 100)
    (tmp_path / "d.db").write_bytes(b"\0" * 8 + b"DUCK" + CANARY.encode() * 100)
    (tmp_path / "t.csv").write_text("a\n")
    for name, hint in (
        ("t.db", "as SQLite"),
        ("d.db", "as DuckDB"),
        ("t.csv", "neither"),
        ("x.db", "no such file"),
    ):
        with pytest.raises(TableFileError, match=hint) as caught:
            open_table(f"{tmp_path / name}::t")
        assert CANARY not in str(caught.value)


# Detection, for a person to declare


@pytest.mark.parametrize("format", FORMATS[:5], ids=str)
def test_a_format_is_detected(format: dict[str, Any], tmp_path: Path) -> None:
    """What `draft` proposes is what the file was written with."""
    declared = FileFormat(**format)
    rows = pd.DataFrame({"a": ["ä", "b", "c"] * 9, "x": [1234.5, 2.25, 0.125] * 9, "n": [1, 2, 3] * 9})
    rows["x"] = [number(value, declared.decimal, declared.thousands or "") for value in rows["x"]]
    path = tmp_path / "t.csv"
    rows.to_csv(path, sep=declared.separator or ",", index=False, encoding=declared.encoding)
    expected = "cp1252" if declared.encoding == "latin-1" else declared.encoding
    proposed = guess_format(path)
    assert proposed.format == FileFormat(**{**format, "encoding": expected})
    drafted = draft(path)
    assert drafted.format == proposed.format
    assert drafted.column("x").kind == "number"
    assert len(coded_rows(path, drafted, "data")) == 27


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize(("mark", "thousands"), [("'", "'"), (" ", " "), ("\u00a0", " "), ("\u202f", " ")])
def test_apostrophes_and_spaces_between_thousands_are_detected(
    tmp_path: Path, mark: str, thousands: str, decimal: str
) -> None:
    """As they write in Switzerland and France; texts with such marks are left alone."""
    values = np.round(np.random.default_rng(1).lognormal(7, 1, 300), 2)
    rows = pd.DataFrame(
        {"pay": [number(value, decimal, mark) for value in values], "code": ["12 34", "56 78", "a'b"] * 100}
    )
    rows.to_csv(tmp_path / "t.csv", sep=";", index=False)
    assert guess_format(tmp_path / "t.csv").format == FileFormat(
        separator=";", decimal=decimal, thousands=thousands
    )
    drafted = draft(tmp_path / "t.csv")
    assert (drafted.column("pay").kind, drafted.column("code").kind) == ("number", "categorical")
    assert len(coded_rows(tmp_path / "t.csv", drafted, "data")) == 300
    rows[["code"]].to_csv(tmp_path / "t.csv", index=False)
    assert guess_format(tmp_path / "t.csv").format == FileFormat()


def test_texts_with_commas_are_no_decimal_commas(tmp_path: Path) -> None:
    """Thousands, lists and dates are left alone, and a column with decimal points speaks against a comma."""
    for cells, point in ((["1,234", "5,678"], "1"), (["1,2,3", "4,5,6"], "1"), (["1,5", "2,5"], "0.5")):
        pd.DataFrame({"x": cells, "y": [point] * 2}).to_csv(tmp_path / "t.csv", index=False)
        assert guess_format(tmp_path / "t.csv").format.decimal == "."
    pd.DataFrame({"d": ["01.02.2020", "03.04.2021"]}).to_csv(tmp_path / "t.csv", index=False)
    assert guess_format(tmp_path / "t.csv").format == FileFormat()


def test_only_drafts_and_checks_may_guess() -> None:
    """What measures private rows reads as declared: one row could change a guess."""
    source = Path(dpcipher.__file__).parent
    callers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "dpcipher.io.sniff"
    }
    assert callers <= {"curator/draft.py", "curator/check.py"}


def test_names_are_hinted_at_and_others_counted(tmp_path: Path) -> None:
    """A name that differs in case is quoted, since the schema says it too; other names are not."""
    path = tmp_path / "t.csv"
    path.write_text(f"AGE,{CANARY},b\n1,2,3\n")
    with pytest.raises(TableFileError, match="no column 'age'; did you mean 'AGE'") as caught:
        open_table(path).batches(["age"])
    assert CANARY not in str(caught.value)
    with pytest.raises(TableFileError, match="2 columns of the table are not in the schema") as caught:
        open_table(path).batches(["b", "sex"])
    assert CANARY not in str(caught.value)
    path.write_text("age;sex\n1;2\n")
    with pytest.raises(TableFileError, match="separator"):
        open_table(path).batches(["age", "sex"])
