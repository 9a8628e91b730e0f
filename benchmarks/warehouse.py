"""Tables counted where they live: bytes moved and processor time of DuckDB and PostgreSQL, beside fetching all rows; and ways to count in SQL.

usage: DPCIPHER_DATA=FOLDER python benchmarks/warehouse.py [ROWS=1000000]
"""

import itertools
import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from common import markdown, real, write_page

import dpcipher as dc
from dpcipher.curator.count import open_counts, receive
from dpcipher.curator.kernel import few_joint_tables
from dpcipher.curator.request import Person
from dpcipher.curator.warehouse.queries import Query, counting_query
from dpcipher.curator.warehouse.rows import WarehouseRows

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
TICKS = os.sysconf("SC_CLK_TCK")
SOME_WAYS = 20  # of a hundred rows: the ways to count are compared on a fifth of them


def adult(n_rows: int) -> tuple[pa.Table, pa.Table, dc.Schema, dc.Schema]:
    """Adult's rows drawn with replacement, as whole numbers and as texts, with a person for about every five of them; and a schema for each."""
    codes, shape = real("adult")
    rng = np.random.default_rng(0)
    codes = codes[rng.integers(0, len(codes), n_rows)]
    who = pa.array(rng.integers(0, n_rows // 5, n_rows))
    names = [f"c{axis}" for axis in range(len(shape))]
    numbers = pa.table(
        [*(pa.array(codes[:, axis].astype(np.int64)) for axis in range(len(shape))), who], [*names, "who"]
    )
    words = [
        pa.array([f"level {code:03}" for code in range(size)]).take(pa.array(codes[:, axis]))
        for axis, size in enumerate(shape)
    ]
    columns = tuple(
        dc.schema.Column(name, "categorical", levels=[f"level {code:03}" for code in range(size)])
        for name, size in zip(names, shape, strict=True)
    )
    return (
        numbers,
        pa.table([*words, who], [*names, "who"]),
        dc.Schema.from_domain(dict(zip(names, shape, strict=True))),
        dc.Schema(columns),
    )


class Duck:
    """DuckDB in this process, on one thread."""

    name = "DuckDB"

    def __init__(self) -> None:
        self.ibis = ibis.duckdb.connect(threads=1)

    def load(self, name: str, rows: pa.Table) -> None:
        self.ibis.con.register("incoming", rows)
        self.ibis.con.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self.ibis.con.unregister("incoming")

    def fetch(self, name: str, columns: list[str]) -> tuple[pa.Table, int]:
        """All rows here, and their bytes."""
        rows = self.ibis.con.sql(f"SELECT {', '.join(columns)} FROM {name}").to_arrow_table()
        return rows, rows.nbytes

    def seconds(self, work: Callable[[], Any]) -> float:
        """Processor time; the engine is in this process."""
        started = time.process_time()
        work()
        return time.process_time() - started

    def run(self, sql: str) -> None:
        self.ibis.con.execute(sql).fetchall()


class Postgres:
    """PostgreSQL in a process of its own, on one core."""

    name = "PostgreSQL"

    def __init__(self, folder: Path) -> None:
        self.ibis = ibis.postgres.connect(host=str(folder), user="postgres", database="postgres")
        self.ibis.con.execute("SET max_parallel_workers_per_gather = 0")
        self._stat = Path(f"/proc/{self.ibis.con.info.backend_pid}/stat")

    def load(self, name: str, rows: pa.Table) -> None:
        kinds = {pa.int64(): "BIGINT", pa.string(): "TEXT"}
        columns = ", ".join(f"{field.name} {kinds[field.type]}" for field in rows.schema)
        self.ibis.con.execute(f"CREATE TABLE {name} ({columns})")
        sink = pa.BufferOutputStream()
        pacsv.write_csv(rows, sink, pacsv.WriteOptions(include_header=False))
        with self.ibis.con.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
            copy.write(sink.getvalue().to_pybytes())
        self.ibis.con.execute(f"ANALYZE {name}")

    def fetch(self, name: str, columns: list[str]) -> tuple[pa.Table, int]:
        """All rows here, in the form that takes the fewest bytes, and their bytes."""
        with (
            self.ibis.con.cursor() as cursor,
            cursor.copy(f"COPY (SELECT {', '.join(columns)} FROM {name}) TO STDOUT (FORMAT csv)") as copy,
        ):
            text = b"".join(bytes(piece) for piece in copy)
        return pacsv.read_csv(pa.BufferReader(text), pacsv.ReadOptions(column_names=columns)), len(text)

    def seconds(self, work: Callable[[], Any]) -> float:
        """Processor time of the server's process and of this one."""
        started = time.process_time() + self._server()
        work()
        return time.process_time() + self._server() - started

    def _server(self) -> float:
        fields = self._stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def run(self, sql: str) -> None:
        self.ibis.con.execute(sql).fetchall()


@contextmanager
def server() -> Iterator[Path]:
    """A PostgreSQL with Debian's settings, in a temporary folder, run by a user without rights."""
    user: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

        def call(program: str, *words: object) -> None:
            command = [str(BINARIES[0] / program), "-D", str(folder / "data"), *map(str, words)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **user)

        call("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8")
        call("pg_ctl", "-o", f"-k {folder} -c listen_addresses=''", "-l", folder / "log", "-w", "start")
        try:
            yield folder
        finally:
            call("pg_ctl", "-m", "fast", "-w", "stop")


def counted(engine: Any, table: str, schema: dc.Schema) -> list[list[object]]:
    """All pairs there, all pairs here of fetched rows, later questions, and persons: bytes and seconds."""
    pairs = list(itertools.combinations(range(len(schema.attrs)), 2))
    names, there = list(schema.names), engine.ibis.table(table)
    state: dict[str, Any] = {}

    def pushed(person: Person | None = None) -> None:
        opened = receive(there, schema, person)
        assert isinstance(opened, WarehouseRows)
        opened.engine.bytes_moved = 0
        state["there"], state["moved"] = opened.tally(pairs), opened.engine.bytes_moved

    def fetched() -> None:
        rows, state["bytes"] = engine.fetch(table, names)
        state["here"] = receive(rows, schema).tally(pairs)

    def chosen() -> None:
        opened = receive(there, schema)
        assert isinstance(opened, WarehouseRows)
        opened.engine.bytes_moved = 0
        truth = open_counts(opened, schema)
        list(truth.many([(0, 4, 8), (4, 6, 8), (3, 5, 13), (4, 6, 13)]))
        truth.close()
        state["later"] = opened.engine.bytes_moved

    time_here = engine.seconds(fetched)
    time_there = engine.seconds(pushed)
    same = all(np.array_equal(a, b) for a, b in zip(state["here"].tables, state["there"].tables, strict=True))
    moved = state["moved"]
    time_later = engine.seconds(chosen)
    time_person = engine.seconds(lambda: pushed(Person("who", 3)))
    whole = state["bytes"]
    return [
        ["all rows fetched, all pairs counted here", f"{whole / 1e6:,.1f}", "100", f"{time_here:.1f}", ""],
        [
            "all pairs counted there",
            f"{moved / 1e6:,.2f}",
            f"{100 * moved / whole:.2f}",
            f"{time_there:.1f}",
            "equal" if same else "DIFFERENT",
        ],
        [
            "all pairs and then four triples",
            f"{state['later'] / 1e6:,.2f}",
            f"{100 * state['later'] / whole:.2f}",
            f"{time_later:.1f}",
            "",
        ],
        [
            "all pairs, at most three rows a person",
            f"{state['moved'] / 1e6:,.2f}",
            f"{100 * state['moved'] / whole:.2f}",
            f"{time_person:.1f}",
            "",
        ],
    ]


def ways(engine: Any, shape: tuple[int, ...]) -> list[list[object]]:
    """Processor time of ways to count all pairs of a table of codes, inside the engine."""
    pairs = list(itertools.combinations(range(len(shape)), 2))
    names = ", ".join(f"c{axis} AS a{axis}" for axis in range(len(shape)))
    coded = ("coded", f"SELECT {names} FROM some_numbers")
    joint = counting_query([coded], "coded", shape, pairs)
    plain = tuple(
        f"SELECT {place}, a{i} * {shape[j]} + a{j}, COUNT(*) FROM coded GROUP BY a{i}, a{j}"
        for place, (i, j) in enumerate(pairs)
    )
    whole = ", ".join(f"a{axis}" for axis in range(len(shape)))
    distinct = ("seen", f"SELECT {whole}, COUNT(*) AS m FROM coded GROUP BY {whole}")
    summed = tuple(
        f"SELECT {place}, a{i} * {shape[j]} + a{j}, SUM(m) FROM seen GROUP BY a{i}, a{j}"
        for place, (i, j) in enumerate(pairs)
    )
    sets = ", ".join(f"(a{i}, a{j})" for i, j in pairs)
    queries = {
        f"margins of {len(set(few_joint_tables(shape, pairs).values()))} joint tables (ours)": joint.sql(
            materialized="MATERIALIZED "
        ),
        "a GROUP BY for each pair": Query((coded,), plain, frozenset({"coded"})).sql(
            materialized="MATERIALIZED "
        ),
        "distinct rows first": Query((coded, distinct), summed, frozenset({"coded", "seen"})).sql(
            materialized="MATERIALIZED "
        ),
        "GROUPING SETS": f"WITH coded AS ({coded[1]}) SELECT {whole}, COUNT(*) FROM coded GROUP BY GROUPING SETS ({sets})",
    }
    return [
        [engine.name, name, f"{engine.seconds(partial(engine.run, sql)):.1f}"]
        for name, sql in queries.items()
    ]


def main(n_rows: int) -> None:
    numbers, words, plain, worded = adult(n_rows)
    moved, compared = [], []
    with server() as folder:
        for engine in (Duck(), Postgres(folder)):
            engine.load("numbers", numbers)
            engine.load("words", words)
            engine.load("some_numbers", numbers.slice(0, n_rows * SOME_WAYS // 100))
            for table, schema in (("numbers", plain), ("words", worded)):
                rows = counted(engine, table, schema)
                moved += [
                    [engine.name, {"numbers": "whole numbers", "words": "texts"}[table], *row] for row in rows
                ]
                print(*moved[-4:], sep="\n", flush=True)
            compared += ways(engine, plain.shape)
            print(*compared[-4:], sep="\n", flush=True)
            engine.ibis.disconnect()
    sections = [
        f"Adult's {n_rows:,} rows drawn with replacement, 14 columns, all 91 pairs; one core. Bytes of DuckDB are those of the arrays that it hands over in this process; those of PostgreSQL are on the wire, "
        "for all rows as CSV, the shortest form that it offers. Processor time is that of the engine and of this process together; encoding public cells to try the engine is in it.",
        markdown(["engine", "columns", "what", "MB", "% of the rows", "seconds", "counts"], moved),
        "## Ways to count in SQL",
        f"All pairs of {n_rows * SOME_WAYS // 100:,} rows of codes. Distinct rows pay where rows repeat, as they do here (drawn with replacement from 48,842), and cost where they do not.",
        markdown(["engine", "way", "seconds"], compared),
    ]
    write_page(
        "warehouse", "Tables counted where they live", f"python benchmarks/warehouse.py {n_rows}", sections
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10**6)
