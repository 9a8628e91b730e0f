"""Tables that are counted where they live: the counts of files, from real engines, with nothing but counts coming back."""

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from handed_counts import handed_counts  # noqa: F401
from warehouses import Server, Warehouse, duckdb_at_hand, each_engine, postgres_at_hand, running_server  # noqa: F401

from dpcipher.curator.count import LocalRows, open_counts, receive
from dpcipher.curator.measure import measure
from dpcipher.curator.request import Person
from dpcipher.curator.truth import Tally
from dpcipher.curator.warehouse import queries, readings
from dpcipher.curator.warehouse.engines import Engine, OtherEngine
from dpcipher.errors import DataError, DpcipherError, ParameterError, SizeError, TableFileError
from dpcipher.marginals.arrays import Axes
from dpcipher.methods import MWEM, Cipher, Independent, PrivBayes
from dpcipher.privacy.ledger import Ledger
from dpcipher.schema import Column, Schema
from dpcipher.tables.read import open_declared

SEX = Column("sex", "categorical", levels=["F", "M"], missing="level", other="missing")
AGE = Column("age", "integer", min=0, max=99, bins=5, missing="level", other="nearest")
PAY = Column("pay", "number", edges=[0, 0.3, 10, 1000], missing="level", other="missing", special=[7])
WORK = Column(
    "work", "ordinal", levels=["none", "part", "full"], missing_values=["N", -9], other="N", missing="level"
)
PEOPLE = Schema((SEX, AGE, PAY, WORK))
TYPES = {"sex": "TEXT", "age": "TEXT", "pay": "DOUBLE PRECISION", "work": "TEXT"}
CELLS: dict[str, list[Any]] = {
    "sex": ["F", "M", "m", None, ""],
    "age": ["5", " 17 ", "1e1", "200", "-3", "99.0", None],
    "pay": [0.0, 0.3, 2.5, 7.0, 1000.0, 1001.0, None],
    "work": ["none", "part", "full", "N", "-9", "-9.0", "?", None],
}
PAIRS: list[Axes] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def people(n_rows: int = 300, seed: int = 1) -> list[list[Any]]:
    """Rows of nasty cells."""
    rng = random.Random(seed)
    return [[rng.choice(cells) for cells in CELLS.values()] for _ in range(n_rows)]


def frame(rows: list[list[Any]], names: Any = tuple(TYPES)) -> pd.DataFrame:
    """The same rows as files have them."""
    return pd.DataFrame(rows, columns=list(names), dtype=object)


def here(data: pd.DataFrame, schema: Schema, tables: list[Axes], person: Person | None = None) -> Tally:
    """The counts of the file path."""
    return LocalRows(open_declared(data, schema), schema, person).tally(tables)


def same(first: Tally, second: Tally) -> bool:
    """Whether counts are equal bit by bit."""
    pairs = zip(first.tables, second.tables, strict=True)
    return first.n_rows == second.n_rows and all(np.array_equal(a, b) for a, b in pairs)


def test_counts_are_those_of_files(warehouse: Warehouse) -> None:
    """Tables of every order, and the number of rows."""
    rows = people()
    tables: list[Axes] = [(), (0,), *PAIRS, (0, 1, 2), (0, 1, 2, 3)]
    there = receive(warehouse.table(TYPES, rows), PEOPLE).tally(tables)
    assert same(there, here(frame(rows), PEOPLE, tables))
    nobody = receive(warehouse.table(TYPES, []), PEOPLE).tally(PAIRS)
    assert nobody.n_rows == 0
    assert not any(table.any() for table in nobody.tables)


def test_a_release_of_a_warehouse(warehouse: Warehouse, handed: list[np.ndarray], tmp_path: Path) -> None:
    """`measure` of an ibis table hands the noise what `measure` of a frame hands it, is charged alike, and gives pandas rows back."""
    rows, said = people(), list[str]()
    options: dict[str, Any] = {"epsilon": 1.0, "unit": "add-remove", "workload": 2}
    measure(frame(rows), PEOPLE, **options)
    local = list(handed)
    handed.clear()
    path = tmp_path / "people.ledger"
    table = warehouse.table({**TYPES, "unused": "TEXT"}, [[*row, "secret"] for row in rows])
    release = measure(table, PEOPLE, ledger=path, create=True, progress=said.append, **options)
    assert all(np.array_equal(a, b) for a, b in zip(local, handed, strict=True))
    assert release.statement.status == "certified"
    assert len(Ledger(path).entries) == 1
    assert release.kind == "pandas"
    assert any("in one query; at most" in line for line in said)
    assert not any("300" in line for line in said)


def test_persons(warehouse: Warehouse) -> None:
    """Which rows of a person count is decided as files decide it; ids are canonical, and nobody's rows are left out."""
    rng = random.Random(3)
    ids = [
        "7",
        "007",
        " 7.0",
        "-7",
        "-07",
        "+8",
        "8",
        "ann",
        "Ann",
        " ann",
        "",
        "NULL",
        "n/a",
        None,
        "0",
        "-0",
        "00.",
        "9" * 30,
        "1e1",
        "\u00a0bo",
    ]
    rows = [[*row, rng.choice(ids)] for row in people(400, seed=4)]
    types = {**TYPES, "who": "TEXT"}
    data, table = frame(rows, types), warehouse.table(types, rows)
    for max_rows in (1, 2, 5, 1000):
        person = Person("who", max_rows, "drop")
        assert same(receive(table, PEOPLE, person).tally(PAIRS), here(data, PEOPLE, PAIRS, person))
    with pytest.raises(DataError, match="rows without a person"):
        receive(table, PEOPLE, Person("who", 2)).tally(PAIRS)


@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE PRECISION", "NUMERIC(9, 2)"])
def test_persons_by_number(warehouse: Warehouse, kind: str) -> None:
    """Numbers are the same persons in every type."""
    rows = [[*row, number] for number, row in zip([1, 2, 2, 3, 3, 3, -1] * 40, people(280), strict=True)]
    types = {**TYPES, "who": kind}
    person = Person("who", 2)
    there = receive(warehouse.table(types, rows), PEOPLE, person).tally(PAIRS)
    assert there.n_rows == 8
    assert same(there, here(frame(rows, types), PEOPLE, PAIRS, person))


STATUS = Column("status", "categorical", levels=["child", "single", "married"])
YEARS = Column("years", "integer", min=0, max=99, bins=20)
CITY = Column("city", "categorical", levels=["Rome", "Bonn", "Lyon"])
LAND = Column("land", "categorical", levels=["IT", "DE", "FR"])
RULED: dict[str, Schema] = {
    "zeros": Schema((STATUS, YEARS, CITY), zeros=Schema.from_dict({"columns": {"status": {"kind": "categorical", "levels": ["child", "single", "married"]},
        "years": {"kind": "integer", "min": 0, "max": 99, "bins": 20}}, "zeros": [{"impossible": {"status": ["single", "married"], "years": {"max": 14}},
        "becomes": {"status": "child"}}, {"impossible": {"status": "child", "years": {"min": 15}}, "becomes": {"status": "single"}}]}).zeros),
    "rules": Schema((STATUS, YEARS, CITY, LAND), rules=({"rule": "years < 15 -> status == child", "breaking": "follow"},
        {"rule": "status == child -> years < 15", "becomes": {"status": "single"}},
        {"determines": {"city": "land"}, "map": {"Rome": "IT", "Bonn": "DE", "Lyon": "FR"}, "breaking": "follow"})),
    "compounds": Schema((STATUS, YEARS, CITY, LAND), compounds={"place": ("city", "land")}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULED)
def test_zeros_rules_and_compounds(warehouse: Warehouse, name: str) -> None:
    """Rows are moved by their own codes, one rule after the other, as files move them."""
    schema, rng = RULED[name], random.Random(5)
    cells: dict[str, list[Any]] = {"status": list(STATUS.levels or ()), "years": list(range(100)), "city": list(CITY.levels or ()), "land": list(LAND.levels or ())}  # fmt: skip
    rows = [[rng.choice(cells[column]) for column in schema.names] for _ in range(400)]
    types = {column: "BIGINT" if column == "years" else "TEXT" for column in schema.names}
    whole = [tuple(range(len(schema.attrs)))]
    there = receive(warehouse.table(types, rows), schema).tally(whole)
    assert same(there, here(frame(rows, schema.names), schema, whole))


def test_found_bins_whose_rules_compare_columns(warehouse: Warehouse) -> None:
    """Rows that break a rule inside a bin are known on the grid of the search, and counted in the bins, as files do it."""
    ends: dict[str, Any] = {"min": 0, "max": 60, "bins": "auto"}
    columns = (Column("first", "integer", **ends), Column("last", "integer", missing="level", **ends))
    rule = {"rule": "first <= last", "becomes": {"last": "(missing)"}}
    found = {"first": [0.0, 10.0, 40.0, 61.0], "last": [0.0, 20.0, 61.0]}
    schema, rng = Schema(columns, rules=(rule,)).closed(found), random.Random(6)
    rows = [[rng.randrange(61), rng.choice([None, *range(61)])] for _ in range(400)]
    there = receive(warehouse.table({"first": "BIGINT", "last": "BIGINT"}, rows), schema).tally([(0, 1)])
    kept = [[first, last] for first, last in rows if last is not None and first <= last]
    assert same(there, here(frame(rows, schema.names), schema, [(0, 1)]))
    assert there.tables[0][:, :2].sum() == len(kept)
    assert there.tables[0][0, 0] == sum(first < 10 and last < 20 for first, last in kept)


REFUSED: dict[str, tuple[Schema, list[Any]]] = {
    "missing": (Schema((Column("sex", "categorical", levels=["F"], other="F"), YEARS)), [None, 5]),
    "unlisted": (Schema((Column("sex", "categorical", levels=["F"]), YEARS)), ["canary", 5]),
    "outside": (Schema((Column("sex", "categorical", levels=["F"]), YEARS)), ["F", 100]),
    "both": (Schema((Column("sex", "categorical", levels=["F"]), YEARS)), [None, None]),
    "a rule": (Schema((Column("sex", "categorical", levels=["F"]), YEARS), rules=("years >= 15",)), ["F", 3]),
    "a zero": (Schema.from_dict({"columns": {"sex": {"kind": "categorical", "levels": ["F", "M"]}, "years": {"kind": "integer", "min": 0, "max": 99, "bins": 20}},
                                 "zeros": [{"impossible": {"sex": "F", "years": {"max": 14}}}]}), ["F", 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_those_of_files(warehouse: Warehouse, name: str, tmp_path: Path) -> None:
    """The same words for the same reason, before anything is charged."""
    schema, row = REFUSED[name]
    rows = [["F", 50]] * 5 + [row]
    with pytest.raises(DataError) as expected:
        here(frame(rows, schema.names), schema, [(0, 1)])
    book = Ledger.create(tmp_path / "people.ledger", epsilon=1, unit="add-remove")
    table = warehouse.table({"sex": "TEXT", "years": "BIGINT"}, rows)
    for workload in (2, "auto"):
        with pytest.raises(DataError) as refused:
            measure(table, schema, workload=workload, epsilon=1, unit="add-remove", ledger=book)
        assert str(refused.value) == str(expected.value)
    assert not book.entries
    assert (
        receive(table.filter(table.years == 50), schema).tally([(0, 1)]).n_rows == 5
    )  # the connection is fit to go on


def test_neighbours_from_the_ibis_table_on(warehouse: Warehouse) -> None:
    """One row more, whatever is in it, changes one cell of every table by one; one person more, at most max_rows."""
    rng = random.Random(6)
    texts = {**dict.fromkeys(TYPES, "TEXT"), "who": "TEXT"}
    cells = [*CELLS["age"], "x", "NaN", "inf", "1e999", "'", "F", "full", "-9", "0.3"]
    rows = [[*(rng.choice(cells) for _ in TYPES), str(rng.randint(1, 9))] for _ in range(60)]
    table = warehouse.table(texts, rows)
    lax = Schema(tuple(Column(**{**vars_of(column), "other": "missing"}) for column in PEOPLE.columns))
    before = [receive(table, lax, person).tally(PAIRS) for person in (None, Person("who", 2))]
    for _ in range(4):
        warehouse.insert(table.get_name(), [[*(rng.choice(cells) for _ in TYPES), "new"] for _ in range(3)])
        after = [receive(table, lax, person).tally(PAIRS) for person in (None, Person("who", 2))]
        assert moved(before[0], after[0]) == 3
        assert moved(before[1], after[1]) <= 2
        warehouse.run(f"DELETE FROM {table.get_name()} WHERE who = 'new'")
    assert same(receive(table, lax).tally(PAIRS), before[0])


def vars_of(column: Column) -> dict[str, Any]:
    """The declaration of a column."""
    return {
        name: getattr(column, name)
        for name in (
            "name",
            "kind",
            "levels",
            "edges",
            "min",
            "max",
            "bins",
            "missing",
            "special",
            "missing_values",
        )
    }


def moved(before: Tally, after: Tally) -> int:
    """The largest L1 distance of a table."""
    return max(int(np.abs(a - b).sum()) for a, b in zip(before.tables, after.tables, strict=True))


def test_order_of_storage_decides_nothing(warehouse: Warehouse) -> None:
    """The same rows in another order are the same table, also where rows of a person are left out."""
    rng = random.Random(8)
    rows = [[*row, str(rng.randint(1, 20))] for row in people(200, seed=9)]
    types, person = {**TYPES, "who": "TEXT"}, Person("who", 3)
    tallies = []
    for _ in range(2):
        rng.shuffle(rows)
        tallies.append(receive(warehouse.table(types, rows), PEOPLE, person).tally(PAIRS))
    assert same(*tallies)


def test_only_counts_come_back(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer has at most one line for each cell of the tables that were asked for, and no question has a cell of a row in it."""
    asked: list[tuple[str, int]] = []
    ask = Engine.ask

    def spy(self: Engine, query: queries.Query) -> queries.Answer:
        answer = ask(self, query)
        asked.append((query.sql(), len(answer[0])))
        return answer

    monkeypatch.setattr(Engine, "ask", spy)
    rows = [*people(500), ["F", "17", 2.5, "canary-3141"]]
    opened = receive(warehouse.table(TYPES, rows), PEOPLE)
    asked.clear()
    opened.tally([(0, 1), (2, 3)])
    cells = 3 * 6 + 5 * 6
    assert [lines <= cells + 2 for _, lines in asked] == [True]
    assert not any("canary" in query for query, _ in asked)


def test_many_tables_take_several_queries_of_one_state(
    warehouse: Warehouse,
    other: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is inserted between two queries is in neither."""
    monkeypatch.setattr("dpcipher.curator.warehouse.rows.MAX_TABLES", 2)
    rows = people()
    table = warehouse.table(TYPES, rows)
    opened, ask = receive(table, PEOPLE), Engine.ask

    def meanwhile(self: Engine, query: queries.Query) -> queries.Answer:
        answer = ask(self, query)
        other.insert(table.get_name(), people(5, seed=11))
        return answer

    monkeypatch.setattr(Engine, "ask", meanwhile)
    assert same(opened.tally(PAIRS), here(frame(rows), PEOPLE, PAIRS))
    monkeypatch.setattr(Engine, "ask", ask)
    assert receive(table, PEOPLE).tally([(0,)]).n_rows == len(rows) + 15


@pytest.fixture
def other(warehouse: Warehouse) -> Iterator[Warehouse]:
    """A second connection to the same tables."""
    if warehouse.name == "duckdb":
        with warehouse.connection.con.cursor() as cursor:
            yield Warehouse(SimpleNamespace(con=cursor), "duckdb")
    else:
        connection = Server(Path(warehouse.connection.con.info.host)).connect()
        yield Warehouse(connection, "postgres")
        connection.disconnect()


def test_tables_asked_for_later(warehouse: Warehouse, other: Warehouse) -> None:
    """`auto` asks what it asks of files, and gets the same counts; afterwards nothing is left behind."""
    rows = people()
    table = warehouse.table(TYPES, rows)
    truth = open_counts(receive(table, PEOPLE), PEOPLE)
    local = here(frame(rows), PEOPLE, [*PAIRS, (0, 1, 3), (0, 1, 2, 3)])
    assert truth.n_rows == local.n_rows
    other.insert(table.get_name(), people(5, seed=12))
    for axes, counts in zip([*PAIRS, (0, 1, 3), (0, 1, 2, 3)], local.tables, strict=True):
        assert np.array_equal(truth.counts(axes), counts)
    assert all(np.array_equal(a, b) for a, b in zip(truth.many([(0, 1), (1, 2, 3)]), [local.tables[0], local.tables[-1].sum(axis=0)], strict=True))  # fmt: skip
    truth.close()
    if warehouse.name == "duckdb":
        assert not warehouse.run("SELECT * FROM duckdb_tables() WHERE temporary").fetchall()
    else:
        assert warehouse.connection.con.info.transaction_status == 0


def test_auto_from_a_warehouse(warehouse: Warehouse, tmp_path: Path) -> None:
    """Tables chosen by looking: a certified release, and a connection fit for the next."""
    table = warehouse.table(TYPES, people(500))
    book = Ledger.create(tmp_path / "people.ledger", epsilon=8, unit="replace")
    for _ in range(2):
        release = measure(table, PEOPLE, workload="auto", epsilon=4, unit="replace", ledger=book)
        assert release.statement.status == "certified"
        assert release.statement.n_rows == 500


def test_a_file_that_is_opened_for_reading_alone(duck: Warehouse, tmp_path: Path) -> None:
    """DuckDB keeps the codes beside the file, which nobody writes to; a view of files is read once."""
    import ibis

    assert duck.name == "duckdb"
    rows, path = people(), tmp_path / "people.duckdb"
    made = Warehouse(ibis.duckdb.connect(path), "duckdb")
    name = made.table(TYPES, rows).get_name()
    made.connection.disconnect()
    before = path.read_bytes()
    opened = ibis.duckdb.connect(path, read_only=True)
    truth = open_counts(receive(opened.table(name), PEOPLE), PEOPLE)
    assert np.array_equal(truth.counts((0, 1, 2)), here(frame(rows), PEOPLE, [(0, 1, 2)]).tables[0])
    truth.close()
    opened.disconnect()
    assert path.read_bytes() == before


def test_a_file_behind_a_view_may_change_after_it_was_opened(duck: Warehouse, tmp_path: Path) -> None:
    """What is asked later is asked of the codes that were read before."""
    rows, path = people(), tmp_path / "people.parquet"
    frame(rows).to_parquet(path)
    duck.run(f"CREATE OR REPLACE VIEW people_file AS SELECT * FROM read_parquet('{path}')")
    truth = open_counts(receive(duck.connection.table("people_file"), PEOPLE), PEOPLE)
    frame(people(7, seed=14)).to_parquet(path)
    assert np.array_equal(truth.counts((1, 2, 3)), here(frame(rows), PEOPLE, [(1, 2, 3)]).tables[0])
    truth.close()


def test_what_cannot_be_counted_there_is_refused(warehouse: Warehouse) -> None:
    """By name, with the way out, and before a row is read."""
    table = warehouse.table({**TYPES, "n": "BIGINT"}, [])
    found = Schema((Column("age", "integer", min=0, max=99, bins="auto"),))
    with pytest.raises(ParameterError, match="bins: auto"):
        receive(table, found)
    many = Schema((Column("n", "categorical", levels=list(range(70_000))),))
    with pytest.raises(SizeError, match=r"column 'n': 70,000 levels"):
        receive(table, many)
    texts = Schema((Column("pay", "categorical", levels=[f"{n}" for n in range(600)]),))
    with pytest.raises(SizeError, match=r"column 'pay': 600 levels"):
        receive(table, texts)
    with pytest.raises(TableFileError, match="no column"):
        receive(table, Schema((Column("absent", "boolean"),)))


def test_an_engine_that_reads_differently_is_refused(
    warehouse: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The test of public cells sees a reading that is not ours: here one that takes " 1 " for no number."""
    monkeypatch.setattr(readings.patterns, "NUMBER", "^(-?[0-9]+)$")
    monkeypatch.setattr(readings.patterns, "NEAR_NUMBER", "^(-?[0-9]+)$")
    table = warehouse.table(TYPES, people(5))
    with pytest.raises(ParameterError, match=r"column 'age' .* would not be read there as files are"):
        receive(table, PEOPLE)


def test_collations_that_take_texts_for_one(duck: Warehouse) -> None:
    """A column in which a equals A is refused: its cells have other codes than in a file."""
    table = duck.table({**TYPES, "sex": "VARCHAR COLLATE NOCASE"}, people(5))
    with pytest.raises(ParameterError, match=r"column 'sex' has a collation"):
        receive(table, PEOPLE)


@pytest.mark.parametrize("method", [Cipher, MWEM, PrivBayes, Independent])
def test_methods_fit_to_a_warehouse(warehouse: Warehouse, method: Any) -> None:
    """A synthesizer asks its questions there, and gives rows as after a file."""
    fitted = method(epsilon=3.0, unit="replace").fit(warehouse.table(TYPES, people(200)), PEOPLE)
    assert list(fitted.sample(20, seed=1).columns) == list(TYPES)


def test_names_that_need_quotes(warehouse: Warehouse) -> None:
    """A column may be called what it likes."""
    name = "we'ird näme %s; --"
    schema = Schema((Column(name, "categorical", levels=["a'b", "\\", "%"], missing="level"), AGE))
    rows = [["a'b", "5"], ["\\", "7"], ["%", None], [None, "99"]]
    table = warehouse.table({name.replace("%", "%"): "TEXT", "age": "TEXT"}, rows)
    there = receive(table, schema).tally([(0, 1)])
    assert same(there, here(frame(rows, [name, "age"]), schema, [(0, 1)]))


def test_long_declarations(warehouse: Warehouse) -> None:
    """Thousands of levels and of bins are within one query."""
    words = Column("words", "categorical", levels=[f"w{n}" for n in range(4_000)], missing="level")
    bins = Column("bins", "number", edges=[n / 8 for n in range(4_000)], missing="level")
    numbers = Column("numbers", "categorical", levels=[7 * n for n in range(2_000)], missing="level")
    schema, rng = Schema((words, bins, numbers)), random.Random(13)
    rows = [
        [f"w{rng.randrange(4_000)}", rng.randrange(3_990) / 8, 7 * rng.randrange(2_000)] for _ in range(200)
    ]
    table = warehouse.table({"words": "TEXT", "bins": "DOUBLE PRECISION", "numbers": "BIGINT"}, rows)
    single: list[Axes] = [(0,), (1,), (2,)]
    assert same(receive(table, schema).tally(single), here(frame(rows, schema.names), schema, single))


def test_an_engine_without_the_functions_is_refused(duck: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose SQL cannot say what is asked of it is named, with the way out."""

    def compile(*_: object) -> str:
        raise NotImplementedError("TryCast")

    table = duck.table(TYPES, people(5))
    monkeypatch.setattr(type(duck.connection), "compile", compile)
    with pytest.raises(ParameterError, match=r"DuckDB.* cannot be encoded there"):
        receive(table, PEOPLE)


def test_an_engine_of_another_make(duck: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query is one state anywhere; several are refused where nobody holds a state, and errors are said in our words."""
    monkeypatch.setattr(
        "dpcipher.curator.warehouse.rows.engine_of", lambda table: OtherEngine(table.get_backend())
    )
    rows = people()
    table = duck.table(TYPES, rows)
    assert same(receive(table, PEOPLE).tally(PAIRS), here(frame(rows), PEOPLE, PAIRS))
    with pytest.raises(ParameterError, match="this workload takes several"):
        measure(table, PEOPLE, workload="auto", epsilon=1, unit="add-remove")
    gone = duck.table(TYPES, rows)
    opened = receive(gone, PEOPLE)
    duck.run(f"DROP TABLE {gone.get_name()}")
    with pytest.raises(DpcipherError, match="could not be counted") as refused:
        opened.tally(PAIRS)
    assert refused.value.__cause__ is None


def test_local_tables_of_ibis_are_read_here() -> None:
    """A memtable is a table of this process."""
    ibis = pytest.importorskip("ibis")
    rows = people(50)
    columns = {name: [row[place] for row in rows] for place, name in enumerate(TYPES)}
    table = ibis.memtable(pa.table(columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ibis asks DuckDB in the old way
        assert same(receive(table, PEOPLE).tally(PAIRS), here(frame(rows), PEOPLE, PAIRS))


def test_rows_of_both_places_are_refused(warehouse: Warehouse) -> None:
    """Neither do rows come here to be joined, nor do ours go there unasked."""
    import ibis

    table = warehouse.table(TYPES, people(5))
    ours = ibis.memtable(pa.table({"sex": ["F"]}))
    with pytest.raises(ParameterError, match="memtable"):
        receive(table.semi_join(ours, "sex"), PEOPLE)
    assert receive(table.filter(table.sex == "F").mutate(age=table.age), PEOPLE).tally([(0,)]).n_rows <= 5
