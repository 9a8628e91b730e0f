"""Tables with levels in groups in a request: parsed, planned, measured, weighed and asked for on the command line."""

import copy
import json
import pickle
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import BudgetError, DpcipherError, SizeError, WorkloadError
from dpcipher.schema.workload import Workload
from dpcipher.tables.query import Groups, Query

SCHEMA = dc.Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 99},
            "sex": {"kind": "categorical", "levels": ["F", "M"]},
            "state": {"kind": "categorical", "levels": ["NY", "ME", "TX", "CA"]},
        }
    }
)
BY_SEX = dc.Grouped(("sex", "age"), age=[0, 18, 65])
REGIONS = dc.Grouped(("sex", "state"), state={"north": ["ME", "NY"], "south": ["CA", "TX"]})
TABLES = [("age",), BY_SEX, ("age", "sex"), REGIONS]
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(0, 100, 3000),
        "sex": RNG.choice(["F", "M"], 3000),
        "state": RNG.choice(["NY", "ME", "TX", "CA"], 3000),
    }
)
TERMS = {"epsilon": 1.0, "unit": "add-remove"}


def test_a_workload_holds_queries_beside_tables() -> None:
    """Tables in the order of the schema, what each asks of the rows, its cells, and which no other covers cell by cell."""
    workload = Workload.parse(SCHEMA, TABLES)
    assert workload.tables == (("age",), dc.Grouped(("age", "sex"), age=[0, 18, 65]), ("age", "sex"), REGIONS)
    assert [tuple(table) for table in workload.tables[1:]] == [
        ("age", "sex"),
        ("age", "sex"),
        ("sex", "state"),
    ]
    runs = Groups.runs([0, 18, 65], 100)
    assert workload.queries[:3] == (Query((0,)), Query((0, 1), (runs, None)), Query((0, 1)))
    assert workload.cells == (100, 6, 200, 4)
    assert workload.maximal() == (("age", "sex"), REGIONS)
    assert Workload.parse(SCHEMA, 2).maximal() == (("age", "sex"), ("age", "state"), ("sex", "state"))
    assert Workload.parse(SCHEMA, workload) == workload


def test_grouped_tables_are_values() -> None:
    """Equal whatever the order of their columns, never equal to a plain tuple, and the same after pickle and copy."""
    other = dc.Grouped(("age", "sex"), age=(0, 18, 65))
    assert other == BY_SEX
    assert hash(BY_SEX) == hash(other)
    assert BY_SEX != ("sex", "age") != BY_SEX
    assert BY_SEX not in [("sex", "age")]
    assert dc.Grouped(("age", "sex"), age=[0, 18]) != BY_SEX
    assert pickle.loads(pickle.dumps(REGIONS)) == copy.deepcopy(REGIONS) == REGIONS
    assert eval(repr(REGIONS), {"Grouped": dc.Grouped}) == REGIONS
    odd = dc.Grouped(("age in years",), **{"age in years": np.array([0, 18])})
    assert eval(repr(odd), {"Grouped": dc.Grouped}) == odd


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        (
            [BY_SEX, dc.Grouped(("age", "sex"), age=[range(18), range(18, 65), range(65, 100)]), ("state",)],
            "twice",
        ),
        ([BY_SEX], "omits the column 'state'"),
        ([dc.Grouped(("age", "sex"), age=[0, 18.5]), ("state",)], "18.5, which is no level"),
        ([dc.Grouped(("age", "state"), state=["NY", "CA", "TX"]), ("sex",)], "ascending"),
    ],
)
def test_wrong_groups_are_refused(tables: list, why: str) -> None:
    """The same query twice, columns in no table, levels that are none."""
    with pytest.raises(WorkloadError, match=why):
        Workload.parse(SCHEMA, tables)


def test_groups_of_levels_that_are_yet_to_be_found_are_refused() -> None:
    """They have no levels to name."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "age": {"kind": "integer", "min": 0, "max": 99, "bins": "auto"},
                "sex": {"kind": "categorical", "levels": ["F", "M"]},
            }
        }
    )
    with pytest.raises(WorkloadError, match="groups of age must be of levels that the schema declares"):
        dc.plan(schema, workload=[BY_SEX], **TERMS)
    others = [("age",), dc.Grouped(("age", "sex"), sex=[["F"], ["M"]])]
    assert dc.plan(schema, workload=others, n_rows=1000, **TERMS).tables[1].attrs[1] == "sex"


def _expected() -> list[np.ndarray]:
    ages, sexes = PEOPLE["age"], pd.Categorical(PEOPLE["sex"], ["F", "M"])
    runs = pd.cut(ages, [0, 18, 65, 100], right=False, labels=False)
    north = pd.Categorical(np.where(PEOPLE["state"].isin(["NY", "ME"]), "n", "s"), ["n", "s"])
    cells = [
        pd.Series(np.bincount(ages, minlength=100)),
        pd.crosstab(runs, sexes),
        pd.crosstab(pd.Categorical(ages, range(100)), sexes, dropna=False),
        pd.crosstab(sexes, north),
    ]
    return [np.asarray(one) for one in cells]


@pytest.mark.parametrize("chunks", [1, 3000])
def test_rows_are_counted_by_level_and_merged_before_noise_is_drawn(chunks: int) -> None:
    """With next to no noise every table is that of pandas, from one row a hundred times as from thousands."""
    people = PEOPLE if chunks > 1 else PEOPLE.head(100)
    release = dc.measure(people, SCHEMA, workload=TABLES, epsilon=200.0, unit="add-remove")
    if chunks > 1:
        for one, counts in zip(release.measurements, _expected(), strict=True):
            assert np.abs(one.values - counts).max() <= 1
            assert (one.values != counts).mean() < 0.01
    assert [one.query for one in release.measurements] == list(Workload.parse(SCHEMA, TABLES).queries)
    assert abs(release.n_rows - len(people)) <= 1


def test_a_group_costs_what_a_level_costs() -> None:
    """One row more moves one count by one, in groups as in levels: plan and measure give both the same noise, and sets their own."""
    plan = dc.plan(SCHEMA, workload=TABLES, sets=2, n_rows=3000, **TERMS)
    release = dc.measure(PEOPLE, SCHEMA, workload=TABLES, sets=2, **TERMS)
    assert {table.noise for table in plan.tables} == {one.noise for one in release.measurements}
    assert [table.n_cells for table in plan.tables] == [100, 6, 200, 4]
    assert release.sets == 2
    assert "age (3 groups) × sex" in str(plan)
    errors = {table.attrs: table.reconciled_sd for table in plan.tables}
    known = [release.reconcile(0).variance(query) for query in Workload.parse(SCHEMA, TABLES).queries]
    assert list(errors.values()) == pytest.approx([np.sqrt(variance.mean()) for variance in known])


def test_weights_are_given_by_table() -> None:
    """The plan's own, a user's in another order of columns; what is no table is refused by its name."""
    plan = dc.plan(SCHEMA, workload=TABLES, n_rows=3000, **TERMS)
    assert set(plan.weights) == set(Workload.parse(SCHEMA, TABLES).tables)
    weights = {("age",): 1, BY_SEX: 2, ("sex", "age"): 4, REGIONS: 1}
    release = dc.measure(PEOPLE, SCHEMA, workload=TABLES, weights=weights, **TERMS)
    assert [round(1 / one.noise.scale, 3) for one in release.measurements] == [0.125, 0.25, 0.5, 0.125]
    with pytest.raises(BudgetError, match="not a table of the workload"):
        dc.measure(
            PEOPLE,
            SCHEMA,
            workload=TABLES,
            weights={**weights, dc.Grouped(("age", "sex"), age=[0, 50]): 1},
            **TERMS,
        )


def test_cipher_takes_them_and_other_methods_say_that_they_do_not() -> None:
    """And so do the options of a choice."""
    fitted = dc.Cipher(epsilon=50.0, unit="add-remove", workload=TABLES).fit(PEOPLE, SCHEMA)
    assert fitted.release.workload[1] == dc.Grouped(("age", "sex"), age=["0", "18", "65"])
    assert fitted.joints[0].project("age").sum() == pytest.approx(1)
    for method in (
        dc.MWEM(1.0, unit="replace", workload=TABLES),
        dc.Fourier(1.0, unit="add-remove", workload=TABLES),
    ):
        with pytest.raises(WorkloadError, match="Cipher and measure take"):
            method.fit(PEOPLE, SCHEMA)
    with pytest.raises(DpcipherError, match="target"):
        dc.Auto(target=[BY_SEX])


def test_groups_of_more_levels_than_can_be_solved_are_refused_before_rows_are_read() -> None:
    """A release of them can be measured; a method that solves would pay for nothing."""
    schema = dc.Schema.from_domain(dict.fromkeys("abc", 10_000))
    tables = [dc.Grouped(("a", other), **{"a": [0, 5000], other: [0, 5000]}) for other in "bc"]
    assert Workload.parse(schema, tables).n_cells == 8
    with pytest.raises(SizeError, match="at most 134,217,728 can be solved"):
        dc.Cipher(1.0, unit="add-remove", workload=tables).fit("no such file.csv", schema)


def test_groups_that_tie_too_much_to_reconcile_are_refused_before_rows_are_read() -> None:
    """Crossing groups of many columns: what could not be reconciled is neither planned nor charged."""
    schema = dc.Schema.from_domain({f"c{number}": 12 for number in range(20)})
    crossing = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]], [range(4), range(4, 8), range(8, 12)]
    tables: list = [(attr,) for attr in schema.attrs]
    tables += [
        dc.Grouped(pair, **{pair[0]: crossing[turn], pair[1]: crossing[0]})
        for pair in combinations(schema.attrs, 2)
        for turn in (0, 1)
    ]
    for call in (
        lambda: dc.plan(schema, workload=tables, **TERMS),
        lambda: dc.measure("no such file.csv", schema, workload=tables, **TERMS),
        lambda: dc.Cipher(workload=tables, **TERMS).fit("no such file.csv", schema),
    ):
        with pytest.raises(SizeError, match=r"tie [0-9,]+ functions"):
            call()


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    """Brackets hold first levels, lists or names; the plan's weights go on to measure; published tables take brackets, too."""
    SCHEMA.save(tmp_path / "s.yaml")
    PEOPLE.to_csv(tmp_path / "p.csv", index=False)

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    tables = [
        "--table",
        "age",
        "--table",
        "sex,age[0,18, 65]",
        "--table",
        "age,sex",
        "--table",
        "sex,state[north=ME|NY,south=CA|TX]",
    ]
    terms = ["--epsilon", "100", "--unit", "add-remove", *tables]
    (tmp_path / "plan.json").write_text(
        run("plan", str(tmp_path / "s.yaml"), *terms, "--json"), encoding="utf-8"
    )
    planned = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert planned["tables"][1]["groups"] == {"age": ["0", "18", "65"]}
    ledger = ["--ledger", str(tmp_path / "l"), "--create", "--weights", str(tmp_path / "plan.json")]
    said = run(
        "measure",
        str(tmp_path / "p.csv"),
        str(tmp_path / "s.yaml"),
        *terms,
        *ledger,
        "-o",
        str(tmp_path / "r.parquet"),
        "--json",
    )
    assert json.loads(said)["tables"][3] == {
        "attrs": ["sex", "state"],
        "groups": {"state": {"north": ["NY", "ME"], "south": ["TX", "CA"]}},
    }
    release = dc.Release.load(tmp_path / "r.parquet")
    assert [one.query for one in release.measurements] == list(Workload.parse(SCHEMA, TABLES).queries)
    assert release.project(("sex", "state")).levels[1] == ("north", "south")
    for name, table in {"a": BY_SEX, "b": REGIONS, "c": ("age",)}.items():
        release.project(table).to_frame("count").to_csv(tmp_path / f"{name}.csv", index=False)
    names = {"a": "age[0,18,65],sex", "b": "sex,state[north=ME|NY,south=CA|TX]", "c": "age"}
    published = [
        word for name, table in names.items() for word in ("--table", f"{table}={tmp_path / f'{name}.csv'}")
    ]
    run(
        "synth",
        "--schema",
        str(tmp_path / "s.yaml"),
        "--scale",
        "1",
        *published,
        "-n",
        "500",
        "-o",
        str(tmp_path / "rows.csv"),
    )
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 500
    wrong = CliRunner().invoke(
        main, ["plan", str(tmp_path / "s.yaml"), *terms[:4], "--table", "age[0,400],sex", "--table", "state"]
    )
    assert wrong.exit_code != 0
    assert "400" in wrong.output
    assert "no level" in wrong.output
