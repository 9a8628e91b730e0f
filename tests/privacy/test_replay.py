"""The same answers make the same release: recorded on a table, replayed on its neighbours, with public names alone.

What a neighbour may not change: the questions (kinds, scales, shapes, number), the release and its certificate, synthetic rows, progress, warnings,
errors, what is printed, and files; moments and ids aside. And all answers together cost no more than the budget.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import betabinom

import dpcipher as dc
from tape import Run, command, rho_of, run

Row = dict[str, Any]
Call = Callable[[Any, Callable[[str], None]], Any]


@dataclass(frozen=True)
class Case:
    """A call on private rows; `worst` are rows of a person that neighbours have, and the first row of the table is another's.

    `times` is how far the call's budget goes for this unit: twice where the number of rows was declared public.
    """

    call: Call
    rows: pd.DataFrame
    worst: Sequence[Row]
    options: dict[str, Any]
    rare: int = 0
    extra: int = 0  # rows of the person beyond those that count
    times: float = 1.0
    asks: bool = True

    @property
    def pure(self) -> bool:
        """Whether the budget is pure epsilon."""
        return self.options.get("delta") is None and "rho" not in self.options

    @property
    def budget(self) -> float:
        """What all answers may cost: epsilon, or rho by an independent conversion, from half of delta where levels are found."""
        if "rho" in self.options:
            return float(self.options["rho"])
        if self.pure:
            return float(self.options["epsilon"])
        return rho_of(self.options["epsilon"], self.options["delta"] / (2 if self.rare else 1))

    def neighbours(self) -> Iterator[pd.DataFrame]:
        """A person's rows come, or other rows of that person's, in the same place and order."""
        number = self.options.get("max_rows", 1) + self.extra
        for row in self.worst:
            more = pd.DataFrame([row] * number).astype(self.rows.dtypes)
            left = (
                self.rows.iloc[number:] if self.options["unit"] == "replace" or self.times > 1 else self.rows
            )
            yield pd.concat([more, left], ignore_index=True)


def replayed(case: Case) -> list[Run]:
    """The case on its table and, with the same answers, on all neighbours."""
    here = run(case.call, case.rows, rare=case.rare)
    return [here, *(run(case.call, other, like=here, rare=case.rare) for other in case.neighbours())]


def leaks(case: Case, runs: Sequence[Run]) -> list[str]:
    """What tells neighbours apart beyond the answers that are paid for."""
    here, *others = runs
    found = [f"the first run fails: {here.error}"] if here.error else []
    if bool(here.questions) != case.asks:
        found.append(f"{len(here.questions)} questions are asked")
    shown = here.shown()
    for place, there in enumerate(others, 1):
        found += [
            f"{part} of neighbour {place}: {seen}, not {shown[part]}"
            for part, seen in there.shown().items()
            if seen != shown[part]
        ]
        cost, most = sum(there.costs(here, pure=case.pure, rare=case.rare)), case.times * case.budget
        if cost > most * (1 + 1e-9):
            found.append(f"neighbour {place} costs {cost:.9g} of {most:.9g}")
    return found


def coded(shape: Sequence[int], n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Columns c0, c1, …; each but the first is a copy of the one before, seven times in ten. The first row is all zeros."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, shape, (n_rows, len(shape)))
    for place in range(1, len(shape)):
        copied = codes[:, place - 1] % shape[place]
        codes[:, place] = np.where(rng.random(n_rows) < 0.7, copied, codes[:, place])
    codes[:3] = 0
    return pd.DataFrame(codes, columns=[f"c{place}" for place in range(len(shape))])


def parities(n_rows: int) -> pd.DataFrame:
    """Fourteen bits, with one parity of three and one of four."""
    codes = np.random.default_rng(8).integers(0, 2, (n_rows, 14))
    codes[:, 2] = codes[:, 0] ^ codes[:, 1]
    codes[:, 6] = codes[:, 3] ^ codes[:, 4] ^ codes[:, 5]
    codes[:3] = 0
    return pd.DataFrame(codes, columns=[f"c{place}" for place in range(14)])


def domain(rows: pd.DataFrame, shape: Sequence[int]) -> dc.Schema:
    """A schema of codes."""
    return dc.Schema.from_domain(dict(zip(rows.columns, shape, strict=True)))


def measured(
    rows: pd.DataFrame, schema: dc.Schema, worst: Sequence[Row], *, options: dict[str, Any], **about: Any
) -> Case:
    """A case of `measure`, with a ledger and a saved release."""

    def call(table: Any, progress: Callable[[str], None]) -> Any:
        return dc.measure(
            table,
            schema,
            progress=progress,
            ledger="people.ledger",
            create=True,
            save="people.release.parquet",
            **options,
        )

    return Case(call, rows, worst, options, **about)


def grid(shape: Sequence[int], n_rows: int, **options: Any) -> Case:
    """A case of coded rows; the neighbours have a row in the far corner, or one as the first."""
    rows = coded(shape, n_rows)
    far = {name: size - 1 for name, size in zip(rows.columns, shape, strict=True)}
    return measured(rows, domain(rows, shape), [far, dict.fromkeys(rows.columns, 0)], options=options)


def declared(**columns: Any) -> dc.Schema:
    """A schema of columns as in a file."""
    return dc.Schema.from_dict({"columns": columns})


def incomes(n_rows: int = 3_000) -> pd.DataFrame:
    """Ages and skewed incomes."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"age": rng.integers(0, 99, n_rows), "income": np.round(rng.lognormal(9, 1, n_rows))})
    rows.loc[:4] = [30, 5_000.0]
    return rows


OPEN = declared(
    age={"kind": "integer", "min": 0, "max": 99, "bins": "auto"},
    income={"kind": "number", "min": 0, "max": 1_000_000, "bins": "auto", "max_bins": 20},
)
OPEN_RANGE = declared(
    age={"kind": "integer", "min": 0, "max": 99, "bins": 5},
    income={"kind": "number", "min": "auto", "max": "auto", "bins": "auto", "max_bins": 16},
)
OUTLIERS: list[Row] = [
    {"age": 98, "income": 1e6},
    {"age": 0, "income": 0.0},
    {"age": 30, "income": 123_456.0},
]


def cities(counts: dict[str, int]) -> pd.DataFrame:
    """A row a person, so many of each city."""
    names = [name for name, number in counts.items() for _ in range(number)]
    return pd.DataFrame(
        {
            "city": names,
            "sex": (["F", "M"] * len(names))[: len(names)],
            "id": [f"p{place}" for place in range(len(names))],
        }
    )


def levels(most: int, counts: dict[str, int], **options: Any) -> Case:
    """Levels found with a cap: a person's lone texts, and rows of the cities that the cap decides between."""
    schema = declared(
        city={
            "kind": "categorical",
            "levels": "discover",
            "pattern": "[A-Z]+[0-9]*",
            "max_length": 6,
            "max_levels": most,
        },
        sex={"kind": "categorical", "levels": ["F", "M"]},
    )
    worst = [{"city": city, "sex": "M", "id": "one"} for city in ("LONE", "AA", "BB", "CC", "FEW")]
    return measured(
        cities(counts), schema, worst, options={"epsilon": 8.0, "delta": 1e-4, **options}, rare=12
    )


CITIES = {"CC": 300, "BB": 300, "AA": 300, "BIG": 900, "FEW": 4}
ADD, REPLACE = {"unit": "add-remove"}, {"unit": "replace"}

MEASURED: dict[str, Callable[[], Case]] = {
    "pairs": lambda: grid((3, 3, 2), 300, workload=2, epsilon=1.0, **ADD),
    "pairs, replaced": lambda: grid((3, 3, 2), 300, workload=2, epsilon=1.0, max_rows=3, **REPLACE),
    "triples, sets": lambda: grid((3, 3, 2), 300, workload=3, epsilon=1.0, delta=1e-6, sets=3, max_rows=2, **ADD),
    "quadruples": lambda: grid((2, 3, 2, 3, 2), 300, workload=4, rho=0.3, **REPLACE),
    "weights": lambda: grid(
        (3, 3, 2), 300, workload=[("c0", "c1"), ("c2",)], weights={("c0", "c1"): 3.0, ("c2",): 1.0}, rho=0.2, **ADD
    ),
    "a small table by design": lambda: grid((2, 3, 2, 4), 2_000, workload=dc.Auto(), epsilon=2.0, **ADD),
    "a small table by design, replaced": lambda: grid((2, 3, 2, 4), 2_000, workload=dc.Auto(), epsilon=2.0, sets=2, **REPLACE),
    "chosen tables": lambda: grid((3,) * 10, 2_000, workload=dc.Auto(), epsilon=6.0, **ADD),
    "chosen tables, centred": lambda: grid((3,) * 10, 2_000, workload=dc.Auto(), epsilon=3.0, delta=1e-6, sets=2, **ADD),
    "chosen tables, replaced": lambda: grid((3,) * 10, 2_000, workload=dc.Auto(max_order=2), rho=0.5, max_rows=2, **REPLACE),
    "a shortlist that spans": lambda: grid((3,) * 24, 1_500, workload=dc.Auto(max_order=2), epsilon=0.4, **ADD),
    "to predict": lambda: grid((3,) * 10, 2_000, workload=dc.Auto(predict="c4"), epsilon=6.0, **REPLACE),
    "chosen quadruples": lambda: measured(
        parities(4_000), domain(parities(3), (2,) * 14), [dict.fromkeys(parities(3).columns, 1), {name: place % 2 for place, name in enumerate(parities(3).columns)}],
        options={"workload": dc.Auto(max_cells=1000), "epsilon": 40.0, **ADD},
    ),
    "found bins": lambda: measured(incomes(), OPEN, OUTLIERS, options={"epsilon": 2.0, **ADD}),
    "found bins, sets, replaced": lambda: measured(
        incomes(), OPEN, OUTLIERS, options={"epsilon": 2.0, "delta": 1e-6, "sets": 2, "max_rows": 3, **REPLACE}
    ),
    "a found range": lambda: measured(incomes(), OPEN_RANGE, OUTLIERS, options={"rho": 0.5, **ADD}),
    "found levels": lambda: levels(50, CITIES, **ADD),
    "found levels with a cap": lambda: levels(2, CITIES, **ADD),
    "found levels with a cap, replaced": lambda: levels(3, CITIES, max_rows=2, **REPLACE),
    "a public number of rows": lambda: measured(
        coded((3, 3), 200), domain(coded((3, 3), 3), (3, 3)), [{"c0": 2, "c1": 1}],
        options={"epsilon": 1.0, "n_rows_public": True, **ADD}, times=2.0,
    ),
}  # fmt: skip


# What the certificate of a case must tell of, so that a case stays what it is called.
STEPS: dict[str, Sequence[str]] = {
    "a small table by design": ["number of rows", "c0 × c1 × c2 × c3"],
    "chosen tables": ["tables to look at", "distances of"],
    "chosen tables, centred": ["number of rows", "centred"],
    "a shortlist that spans": ["of 276 tables to look at"],
    "to predict": ["'predict': 'c4'"],
    "chosen quadruples": ["of 364 tables to look at", "of 1001 tables to look at", "c3 × c4 × c5 × c6"],
    "found bins": ["intervals of age", "intervals of income", " groups"],
    "a found range": ["intervals of income", "'ranges'"],
    "found levels with a cap": ["levels of city", "'levels': {'city': 2}"],
}


@pytest.mark.parametrize("name", MEASURED)
def test_a_measurement_tells_a_neighbour_by_its_answers_alone(name: str) -> None:
    """Whatever `measure` offers, written with a ledger and a saved release."""
    case = MEASURED[name]()
    runs = replayed(case)
    assert leaks(case, runs) == []
    here = runs[0]
    assert {"people.ledger", "people.release.parquet"} <= set(here.files)
    told = str(here.result.statement.certificate)
    assert [step for step in STEPS.get(name, ()) if step not in told] == []


def visits(schema_of: dict[str, Any], extra: int, **options: Any) -> Case:
    """Two hundred people with up to four rows; the first has more rows than count."""
    rng = np.random.default_rng(6)
    persons = np.repeat(np.arange(200), rng.integers(1, 5, 200))
    own = options.get("max_rows", 1) + extra
    rows = pd.DataFrame({"id": [*["one"] * own, *(f"p{place}" for place in persons)]})
    rows["ward"] = [*["AA"] * own, *rng.choice(["AA", "BB", "CC"], len(persons))]
    rows["ill"] = [*["no"] * own, *rng.choice(["no", "yes"], len(persons))]
    worst = [
        {"id": "one", "ward": ward, "ill": ill}
        for ward, ill in (("CC", "yes"), ("AA", "yes"), ("LONE", "no"))
    ]
    if options["unit"] == "add-remove":
        rows = rows.iloc[own:].reset_index(drop=True)
    options = {"workload": 2, "person": "id", **options}
    return measured(
        rows, declared(**schema_of), worst, options=options, extra=extra, rare=12 if "delta" in options else 0
    )


ILL = {"kind": "categorical", "levels": ["no", "yes"]}
WARDS = {"ward": {"kind": "categorical", "levels": ["AA", "BB", "CC"], "other": "CC"}, "ill": ILL}
FOUND_WARDS = {"ward": {"kind": "categorical", "levels": "discover", "pattern": "[A-Z]+", "max_length": 6, "max_levels": 2}, "ill": ILL}  # fmt: skip
PERSONS: dict[str, Callable[[], Case]] = {
    "come and go": lambda: visits(WARDS, 0, epsilon=1.0, max_rows=2, **ADD),
    "have more rows than count": lambda: visits(WARDS, 4, epsilon=1.0, max_rows=2, **ADD),
    "have other rows than they had": lambda: visits(WARDS, 4, rho=0.2, max_rows=3, **REPLACE),
    "have texts of their own": lambda: visits(FOUND_WARDS, 4, epsilon=8.0, delta=1e-4, max_rows=3, **REPLACE),
    "choose no tables": lambda: visits(WARDS, 4, epsilon=3.0, workload=dc.Auto(), max_rows=2, **ADD),
}


@pytest.mark.parametrize("name", PERSONS)
def test_a_person_with_several_rows_is_told_by_the_answers_alone(name: str) -> None:
    """Rows beyond those that count change nothing, in number or in kind."""
    case = PERSONS[name]()
    assert leaks(case, replayed(case)) == []


SKEWED = {(0, 0, 0): 100, (0, 1, 1): 30, (1, 0, 1): 20, (1, 1, 0): 50}
BUDGETS: list[dict[str, float]] = [{"epsilon": 3.0}, {"epsilon": 8.0, "delta": 1e-6}, {"epsilon": 0.02}]
METHODS: dict[str, Any] = {
    "cipher": dc.Cipher,
    "cipher, sets": partial(dc.Cipher, workload=2, sets=2),
    "cipher, chosen tables": partial(dc.Cipher, workload=dc.Auto()),
    "full histogram": dc.FullHistogram,
    "mwem": partial(dc.MWEM, workload=2, rounds=2),
    "mwem, cells": partial(dc.MWEM, workload=1, rounds=2, queries="cells"),
    "priv-bayes": dc.PrivBayes,
    "fourier": dc.Fourier,
    "modips": partial(dc.Modips, sets=2),
    "junction tree": dc.JunctionTree,
    "junction tree, pairs measured": partial(dc.JunctionTree, selection="laplace"),
    "independent": dc.Independent,
    "uniform": dc.Uniform,
    "multinomial-dirichlet": partial(dc.MultinomialDirichlet, n_rows=60),
}


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_tells_a_neighbour_by_its_answers_alone(name: str, budget: dict[str, float]) -> None:
    """The release, certificate, joint rows, warnings and ledger of a fit, under both units."""
    codes = np.repeat(list(SKEWED), list(SKEWED.values()), axis=0)
    rows = pd.DataFrame(codes, columns=["c0", "c1", "c2"])
    schema, last = domain(rows, (2, 2, 2)), dict.fromkeys(rows.columns, 1)
    for unit, max_rows in (("add-remove", 1), ("replace", 2)):
        options = {**budget, "unit": unit, "max_rows": max_rows}

        def fit(table: Any, _: Callable[[str], None], options: dict[str, Any] = options) -> Any:
            return METHODS[name](ledger="people.ledger", create=True, **options).fit(table, schema)

        case = Case(fit, rows, [last, last | {"c1": 0}], options, asks=(name, unit) != ("uniform", "replace"))
        assert leaks(case, replayed(case)) == []


def test_a_method_finds_bins_and_levels_by_its_answers_alone() -> None:
    """An open schema, through a method."""
    options = {"epsilon": 8.0, "delta": 1e-4, "max_rows": 2, **ADD}
    schema = declared(age={"kind": "integer", "min": 0, "max": 99, "bins": "auto"}, **FOUND_WARDS)
    rows = visits(WARDS, 0, **options).rows
    rows["age"] = np.random.default_rng(7).integers(20, 60, len(rows))
    worst = [{"id": "one", "ward": ward, "ill": "no", "age": 99} for ward in ("AA", "CC", "LONE")]

    def fit(table: Any, _: Callable[[str], None]) -> Any:
        return dc.Cipher(person="id", workload=2, **options).fit(table, schema)

    case = Case(fit, rows, worst, options, rare=12, extra=3)
    assert leaks(case, replayed(case)) == []


# Readers: the same table, whatever holds it


TYPED = declared(
    sex={"kind": "categorical", "levels": ["F", "M"], "missing": "level"},
    age={"kind": "integer", "edges": [0, 30, 60, 99]},
    pay={"kind": "number", "edges": [0, 1000.5, 100_000], "missing": "level"},
    grade={"kind": "ordinal", "levels": [1, 2, 3]},
)


def typed(n_rows: int = 240) -> pd.DataFrame:
    """Texts, whole numbers, fractions, and cells that are missing."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"sex": rng.choice(["F", "M", None], n_rows), "age": rng.integers(1, 90, n_rows)})
    rows["pay"] = np.where(rng.random(n_rows) < 0.1, np.nan, np.round(rng.uniform(10, 5_000, n_rows), 2))
    rows["grade"] = rng.integers(1, 4, n_rows)
    rows.loc[:4] = ["F", 20, 500.25, 1]
    return rows


def counted(rows: pd.DataFrame) -> np.ndarray:
    """All pairs of the typed columns by pandas' own means, cell after cell."""
    codes = pd.DataFrame(
        {
            "sex": rows["sex"].map({"F": 0, "M": 1}).fillna(2),
            "age": np.searchsorted([30, 60], rows["age"], side="right"),
            "pay": np.where(rows["pay"].isna(), 2, rows["pay"] >= 1000.5),
            "grade": rows["grade"] - 1,
        }
    ).astype(int)
    tables = []
    for one, other in combinations(codes, 2):
        crossed = pd.crosstab(codes[one], codes[other])
        tables.append(crossed.reindex(index=range(3), columns=range(3), fill_value=0).to_numpy().ravel())
    return np.concatenate(tables)


def sqlite(rows: pd.DataFrame, folder: Path) -> str:
    """A table of a SQLite file."""
    (folder / "rows.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "rows.db")) as connection:
        rows.to_sql("people", connection, index=False)
    return f"{folder / 'rows.db'}::people"


def duckdb_file(rows: pd.DataFrame, folder: Path) -> str:
    """A table of a DuckDB file."""
    duckdb = pytest.importorskip("duckdb")
    (folder / "rows.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("frame", pa.Table.from_pandas(rows, preserve_index=False))
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return f"{folder / 'rows.duckdb'}::people"


def duckdb_relation(rows: pd.DataFrame, folder: Path) -> Any:
    """A relation in memory."""
    return (
        pytest.importorskip("duckdb").connect().from_arrow(pa.Table.from_pandas(rows, preserve_index=False))
    )


def written(name: str, write: Callable[[pd.DataFrame, Path], Any]) -> Callable[[pd.DataFrame, Path], Any]:
    """A reader of a file that pandas writes."""

    def give(rows: pd.DataFrame, folder: Path) -> Path:
        write(rows, folder / name)
        return folder / name

    return give


def arrow(rows: pd.DataFrame) -> pa.Table:
    """The rows as Arrow has them."""
    return pa.Table.from_pandas(rows, preserve_index=False)


READERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "csv": written("rows.csv", lambda rows, path: rows.to_csv(path, index=False)),
    "csv.gz": written("rows.csv.gz", lambda rows, path: rows.to_csv(path, index=False)),
    "tsv": written("rows.tsv", lambda rows, path: rows.to_csv(path, index=False, sep="\t")),
    "parquet": written("rows.parquet", lambda rows, path: rows.to_parquet(path)),
    "excel": written("rows.xlsx", lambda rows, path: rows.to_excel(path, index=False)),
    "sqlite": sqlite,
    "duckdb file": duckdb_file,
    "duckdb relation": duckdb_relation,
    "pandas": lambda rows, folder: rows,
    "pandas, objects": lambda rows, folder: rows.astype(object),
    "polars": lambda rows, folder: pytest.importorskip("polars").from_arrow(arrow(rows)),
    "polars, lazy": lambda rows, folder: pytest.importorskip("polars").from_arrow(arrow(rows)).lazy(),
    "arrow": lambda rows, folder: arrow(rows),
    "arrow, batches": lambda rows, folder: arrow(rows).to_reader(max_chunksize=50),
}  # fmt: skip


def reader_leaks(give: Callable[[pd.DataFrame], Any]) -> list[str]:
    """What differs from the counts of pandas, and what neighbours are told apart by beside the answers."""
    rows, options = typed(), {"epsilon": 1.0, "workload": 2, **REPLACE}

    def call(table: pd.DataFrame, progress: Callable[[str], None]) -> Any:
        return dc.measure(give(table), TYPED, progress=progress, save="people.release.parquet", **options)

    worst: list[Row] = [
        {"sex": None, "age": 98, "pay": float("nan"), "grade": 3},
        {"sex": "M", "age": 59, "pay": 99_999.75, "grade": 2},
    ]
    case = Case(call, rows, worst, options)
    runs = replayed(case)
    return leaks(case, runs) + [
        f"other counts: {ran.questions[0].truth}"
        for ran, table in zip(runs, (rows, *case.neighbours()), strict=True)
        if ran.questions[0].truth.tolist() != counted(table).tolist()
    ]


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_counts_the_same_and_tells_no_more(reader: str, tmp_path: Path) -> None:
    """Files, databases, frames and streams."""
    assert reader_leaks(lambda rows: READERS[reader](rows, tmp_path)) == []


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_counts_the_same_and_tells_no_more(spark: Any, tmp_path: Path) -> None:
    """A frame whose rows are counted by workers; the answers are drawn here."""

    def give(rows: pd.DataFrame) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        rows.to_parquet(path)
        return spark.read.parquet(str(path))

    assert reader_leaks(give) == []


# The command line, refusals, and the law of drawn rows


@pytest.mark.parametrize(
    "words", [[], ["--json"], ["--workload", "auto", "--sets", "2"], ["--person", "id"]], ids=str
)
def test_the_command_tells_a_neighbour_by_its_answers_alone(words: list[str], tmp_path: Path) -> None:
    """Both streams, the release and the ledger of `dpcipher measure`, with wards that are found."""
    options = {"epsilon": 8.0, "delta": 1e-4, "max_rows": 3, **ADD}
    rows = visits(WARDS, 3, **options).rows
    declared(**FOUND_WARDS).save(tmp_path / "people.yaml")
    asked = ["--epsilon", "8", "--delta", "1e-4", "--unit", "add-remove", "--max-rows", "3", "--ledger", "people.ledger", "--create"]  # fmt: skip

    def call(table: pd.DataFrame, _: Callable[[str], None]) -> None:
        table.to_csv(tmp_path / "people.csv", index=False)
        command(
            "measure",
            str(tmp_path / "people.csv"),
            str(tmp_path / "people.yaml"),
            *asked,
            *words,
            "-o",
            "people.release.parquet",
        )

    worst = [{"id": "one", "ward": ward, "ill": "yes"} for ward in ("AA", "CC", "LONE")]
    case = Case(call, rows, worst, options, rare=12, extra=3 if "--person" in words else 0)
    runs = replayed(case)
    assert leaks(case, runs) == []
    here = runs[0]
    assert "people.release.parquet" in here.files
    assert here.printed


def test_a_refusal_is_the_same_for_neighbours() -> None:
    """A ledger that holds too little: the same words, and the same files."""
    rows, last = coded((3, 3), 200), {"c0": 2, "c1": 2}

    def call(table: Any, progress: Callable[[str], None]) -> Any:
        dc.Ledger.create("people.ledger", epsilon=1.0, unit="add-remove", name="people")
        for _ in range(2):
            dc.measure(
                table,
                domain(rows, (3, 3)),
                epsilon=0.75,
                unit="add-remove",
                ledger="people.ledger",
                progress=progress,
            )

    here = run(call, rows)
    assert here.error is not None
    assert here.error[0] == "LedgerExceeded"
    assert run(call, pd.concat([rows, pd.DataFrame([last])]), like=here).shown() == here.shown()


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("unit", ["add-remove", "replace"])
def test_an_urn_that_may_fail_pays_for_every_row_of_a_person(unit: str, max_rows: int) -> None:
    """The prior that the bounds of the draws show: rows told by more than their part of epsilon are, over all steps of a person, rarer than half of delta.

    A step from one row to the next has ε/k, and its failures count e^(ε/k) times as much for each step before it.
    """
    rows, drawn, cells, delta = coded((4, 4, 4), 50), 60, 64, 1e-6
    method = dc.MultinomialDirichlet(3.0, delta=delta, unit=unit, max_rows=max_rows, n_rows=drawn)
    here = run(lambda table, _: method.fit(table, domain(rows, (4, 4, 4))), rows)
    bounds = [int(question.truth) for question in here.questions]
    steps = set(np.diff(bounds).tolist())
    assert len(bounds) == drawn
    assert len(steps) == 1
    prior = (bounds[0] / steps.pop() - len(rows)) / cells
    rho = rho_of(3.0, delta / 2)
    assert here.result.statement.certificate["events"][0]["cost"] == pytest.approx(rho, rel=1e-6)
    each = (2 * rho) ** 0.5 / max_rows
    held = np.arange(1_000)
    least = np.floor(np.expm1(each) * (prior + held))
    told = betabinom.sf(least, drawn, prior + held + 1, (cells - 1) * prior).max()
    assert told * np.exp(each * np.arange(max_rows)).sum() <= delta / 2
    assert told * np.exp(each * np.arange(max_rows)).sum() > delta / 20
