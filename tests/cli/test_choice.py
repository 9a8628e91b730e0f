"""`--workload auto`: the tables are chosen with part of the budget, and whoever reads the result is told so."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import PROMISE, Run, curators_folder, facts, runner  # noqa: F401

from dpcipher.release.release import Release

AUTO = ("measure", "town.csv", "town.json", *PROMISE, "--workload", "auto")
LOOK = ("--max-cells", "100", "--max-order", "2")  # less than the whole table has: then it is looked at
OUT = ("--ledger", "town.ledger", "--create", "-o", "town.parquet")


@pytest.fixture(name="town")
def town_folder(folder: Path) -> Path:
    """A table of five columns, where a, b and c go together and the rest is chance."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 3, (2_000, 5))
    rows[:, 1] = np.where(rng.random(2_000) < 0.8, rows[:, 0], rows[:, 1])
    rows[:, 2] = np.where(rng.random(2_000) < 0.8, rows[:, 1], rows[:, 2])
    pd.DataFrame(rows, columns=list("abcde")).to_csv("town.csv", index=False)
    Path("town.json").write_text('{"a": 3, "b": 3, "c": 3, "d": 3, "e": 3}')
    return folder


def test_the_tables_are_chosen_and_the_text_says_so(town: Path, run: Run) -> None:
    """The strongest pair is measured, the ledger pays what was typed, and steps are told while they happen."""
    done = run(*AUTO, *LOOK, *OUT)
    assert done.exit_code == 0, done.output
    release = Release.load("town.parquet")
    pairs = [attrs for attrs in release.workload if len(attrs) > 1]
    assert ("a", "b") in pairs
    assert (
        f"Chosen   {len(pairs)} of 10 candidate tables; 5.33 % of the budget went to the choice"
        in done.stdout
    )
    assert "reading the distances of 10 tables …" in done.stderr
    assert facts(run("ledger show town.ledger --json"))["spent"] == {"epsilon": "2"}


def test_the_json_holds_what_the_release_states(town: Path, run: Run) -> None:
    """The same facts at the top, in the statement and in the file; a given workload has none."""
    told = facts(run(*AUTO, *LOOK, *OUT, "--json"))
    stated = Release.load("town.parquet").statement.certificate["selection"]
    assert told["selection"] == told["statement"]["certificate"]["selection"] == stated
    assert (stated["rounds"], stated["candidates"], stated["share"]) == (1, 10, "4/75")
    given = facts(
        run("measure", *AUTO[1:-2], "--ledger", "other.ledger", "--create", "-o", "given.parquet", "--json")
    )
    assert given["selection"] is None


def test_target_size_and_weights_reach_the_choice(town: Path, run: Run) -> None:
    """A target of two tables leaves two candidates; columns of no weight, an order and small tables leave others."""
    only = facts(run(*AUTO, *OUT, "--target", "a,b", "--target", "d,e", "--json"))
    assert only["selection"]["candidates"] == 2
    assert {tuple(t) for t in only["tables"]} <= {("a", "b"), ("d", "e"), *((c,) for c in "abcde")}
    for option, candidates in (
        (("--column-weight", "e=0", "--target", "2"), 6),
        (LOOK, 10),
        (("--max-order", "2"), 15),
    ):
        Path("town.ledger").unlink()
        Path("town.ledger.witness").unlink()
        assert facts(run(*AUTO, *OUT, *option, "--json", "--force"))["selection"]["candidates"] == candidates


def test_tables_with_a_column_to_predict_come_first(town: Path, run: Run) -> None:
    """Every measured triple holds it; the option reaches the choice."""
    told = facts(run(*AUTO, *OUT, "--predict", "b", "--json"))
    assert any({"a", "b"} <= set(table) for table in told["tables"])
    assert all("b" in table for table in told["tables"] if len(table) > 2)


def test_single_columns_alone_are_said_to_be_so(town: Path, run: Run) -> None:
    """Nothing is chosen from tables of one column, or where no pair is small enough."""
    for number, option in enumerate((("--max-order", "1"), ("--max-cells", "8"))):
        done = run(*AUTO, *option, "--ledger", f"{number}.ledger", "--create", "-o", f"{number}.parquet")
        assert "Chosen   single columns alone" in done.stdout
        assert Release.load(f"{number}.parquet").workload == tuple((column,) for column in "abcde")


def test_several_sets_measure_the_same_choice(town: Path, run: Run) -> None:
    """The choice is made once; every set then has its own noise on it."""
    run(*AUTO, *OUT, "--sets", "2")
    release = Release.load("town.parquet")
    asked = [[table.query for table in release.measurements if table.set == number] for number in (0, 1)]
    assert release.sets == 2
    assert asked[0] == asked[1]


REFUSED = [
    (("--table", "a,b"), "--table names the tables and --workload auto chooses them: leave one out"),
    (("--workload", "best"), "(best) must be an order such as 2, or auto"),
    (("--workload", "2", "--max-order", "2"), "--max-order is for --workload auto; leave it out"),
    (("--predict", "z"), "column 'z' is not in the schema"),
    (("--predict", "a", "--target", "2"), "predict ('a') must stand alone"),
    (("--workload", "2", "--predict", "a"), "--predict is for --workload auto; leave it out"),
    (("--max-order", "0"), "max_order (0) must be a whole number of at least 1"),
    (("--max-cells", "3"), "max_cells (3) must be a whole number of at least 4"),
    (("--target", "6"), "target (6) must be an order from 1 to 5"),
    (
        ("--target", "2", "--target", "a,b"),
        "must be one order, or tables such as --target age,income; not both",
    ),
    (
        ("--target", "2", "--target", "3"),
        "must be one order, or tables such as --target age,income; not both",
    ),
    (("--target", "a,z"), "column 'z' is not in the schema"),
    (("--column-weight", "a"), "(a) must have the form NAME=VALUE"),
    (("--column-weight", "a=much"), "(much) must be a finite number; try 1"),
    (("--column-weight", "a=-1"), "column_weights['a'] (-1.0) must be"),
    (("--column-weight", "z=1"), "column 'z' is not in the schema"),
    (("--column-weight", "a=1", "--column-weight", "a=2"), "(a) must be given once"),
    (("--weights", "plan.json"), "weights are for tables that are given"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_a_wrong_choice_is_refused_before_anything_is_spent(
    town: Path, run: Run, words: tuple[str, ...], message: str
) -> None:
    """With name, value, rule and a way out; no ledger is begun and no release is written."""
    Path("plan.json").write_text('{"tables": [{"attrs": ["a", "b"], "weight": 1.0}]}')
    refused = run(*AUTO, *OUT, *words)
    assert refused.exit_code in (1, 2)
    assert message in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.output
    assert not Path("town.parquet").exists()
    assert not Path("town.ledger").exists()


def test_plan_says_how_the_choice_would_go(town: Path, run: Run) -> None:
    """The steps of the plan are the shares that the release then states, and no data is looked for."""
    request = ("--workload", "auto", "--n-rows", "2000", "--target", "2", "--max-cells", "100")
    planned = facts(run("plan", "town.json", *PROMISE, *request, "--json"))
    made = facts(run(*AUTO, *OUT, "--target", "2", "--max-cells", "100", "--json"))
    assert planned["selection"]["pairs"] == made["selection"]["candidates"] == 10
    assert planned["selection"]["triples"] == 0
    total, one_way, distances, rest = (Fraction(step["share"]) for step in planned["steps"])
    assert total + distances == Fraction(made["selection"]["share"])
    assert total + one_way + distances + rest == 1
    text = run("plan", "town.json", *PROMISE, *request).stdout
    assert text.startswith("Plan     tables chosen out of 10 pairs of at most 100 cells over 5 columns")
    assert planned["selection"]["advice"] in text


def test_plan_refuses_tables_that_are_listed_and_chosen(town: Path, run: Run) -> None:
    """The same usage error as of `measure`."""
    refused = run("plan", "town.json", *PROMISE, "--workload", "auto", "--table", "a,b")
    assert refused.exit_code == 2
    assert "--table names the tables and --workload auto chooses them" in " ".join(refused.stderr.split())
