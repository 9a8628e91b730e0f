"""The curator's and the data user's story, command by command."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from command_line import PROMISE, Run, curators_folder, facts, measured_release, runner  # noqa: F401

from dpcipher.joint.joint import Joint
from dpcipher.release.release import Release
from dpcipher.schema.schema import Schema


def test_a_schema_is_drafted_refused_signed_and_accepted(folder: Path, run: Run) -> None:
    """A draft drawn from data cannot make a release until a person has signed it; an edit voids the signature."""
    assert run("schema draft people.csv -o draft.yaml").exit_code == 0
    measure = (
        "measure",
        "people.csv",
        "draft.yaml",
        *PROMISE,
        "--ledger",
        "people.ledger",
        "-o",
        "r.parquet",
    )
    refused = run(*measure)
    assert refused.exit_code == 1
    assert "has not been signed off" in refused.stderr
    assert run("schema check draft.yaml").exit_code == 1
    assert run("schema", "sign", "draft.yaml", "--name", "Ada Curator", "--unchanged").exit_code == 0
    assert run("schema check draft.yaml").exit_code == 0
    assert run(*measure).exit_code == 0
    text = Path("draft.yaml").read_text(encoding="utf-8")
    Path("draft.yaml").write_text(text.replace("max: 99", "max: 98"), encoding="utf-8")
    assert "was edited after its sign-off" in run("schema check draft.yaml").stderr


def test_schema_show_lists_columns_levels_and_state(folder: Path, run: Run) -> None:
    """For people a line per column; for programs the schema itself."""
    shown = run("schema show people.yaml")
    assert "age     integer          4 levels  0..24, 25..49, 50..74, 75..99" in shown.stdout
    assert Schema.from_dict(facts(run("schema show people.yaml --json"))) == Schema.load("people.yaml")


def test_plan_says_what_measure_then_does(folder: Path, run: Run) -> None:
    """Cells and scales of the plan are those in the release file."""
    planned = facts(run("plan", "people.yaml", *PROMISE, "--n-rows", "400", "--json"))
    run("measure", "people.csv", "people.yaml", *PROMISE, "--ledger", "people.ledger", "-o", "r.parquet")
    release = Release.load("r.parquet")
    made = dict(zip(release.workload, release.measurements, strict=True))
    for table in planned["tables"]:
        one = made[tuple(table["attrs"])]
        assert (table["n_cells"], table["scale"]) == (one.values.size, one.noise.scale)


def test_measure_charges_exactly_what_was_typed(folder: Path, run: Run) -> None:
    """0.1 is one tenth: ten such charges use up a limit of 1 exactly, and the eleventh is refused."""
    run("ledger create small.ledger --epsilon 1 --unit add-remove --max-rows 1")
    tenth = "measure people.csv people.yaml --epsilon 0.1 --unit add-remove --max-rows 1 --workload 1 --ledger small.ledger --force -o r.parquet"
    assert [run(tenth).exit_code for _ in range(10)] == [0] * 10
    eleventh = run(tenth)
    assert eleventh.exit_code == 1
    assert "would exceed the ledger 'small'" in eleventh.stderr
    shown = facts(run("ledger show small.ledger --json"))
    assert (shown["spent"], shown["left"], len(shown["entries"])) == ({"epsilon": "1"}, {"epsilon": "0"}, 10)


def test_measure_reports_what_was_promised(folder: Path, run: Run) -> None:
    """The words and the JSON name budget, unit and status; the file on disk is the one described."""
    call = ("measure", "people.csv", "people.yaml", *PROMISE, "--ledger", "people.ledger", "-o", "r.parquet")
    text = run(*call).stdout
    assert "epsilon = 2 (pure differential privacy)" in text
    assert "Protects the presence of any one row." in text
    told = facts(run(*call, "--json", "--force"))
    assert told["statement"]["status"] == "certified"
    assert told["checksum"] == Release.load("r.parquet").checksum


def test_measure_takes_tables_sets_weights_and_gaussian_noise(folder: Path, run: Run) -> None:
    """A chosen workload, two sets, the plan's own weights."""
    tables = ("--table", "sex,age", "--table", "smoker", "--sets", "2")
    promise = ("--rho", "0.5", "--unit", "replace", "--max-rows", "2")
    Path("plan.json").write_text(
        run("plan", "people.yaml", *promise, *tables, "--json").stdout, encoding="utf-8"
    )
    told = facts(
        run(
            "measure", "people.csv", "people.yaml", *promise, *tables,
            "--weights", "plan.json", "--ledger", "other.ledger", "--create", "--name", "the others", "-o", "r.parquet", "--json",
        )
    )  # fmt: skip
    release = Release.load("r.parquet")
    weights = [table["weight"] for table in json.loads(Path("plan.json").read_text())["tables"]]
    sigmas = [table.noise.scale for table in release.measurements if table.set == 0]
    assert (told["tables"], release.sets) == ([["sex", "age"], ["smoker"]], 2)
    assert np.square(sigmas[1] / sigmas[0]) == np.float64(weights[0] / weights[1]).round(9) or np.isclose(
        np.square(sigmas[1] / sigmas[0]), weights[0] / weights[1]
    )
    assert facts(run("ledger show other.ledger --json"))["name"] == "the others"


def test_synth_writes_rows_as_csv_and_parquet(measured: Path, run: Run) -> None:
    """The same seed gives the same rows in either format, with the columns of the private table."""
    told = facts(run("synth people.release.parquet -n 50 --seed 1 -o rows.csv --json"))
    assert run("synth people.release.parquet -n 50 --seed 1 -o rows.parquet").exit_code == 0
    csv, parquet = pd.read_csv("rows.csv"), pq.read_table("rows.parquet").to_pandas()
    assert told["files"][0]["n_rows"] == len(csv) == len(parquet) == 50
    assert list(csv.columns) == ["sex", "age", "smoker"]
    assert csv["age"].tolist() == parquet["age"].tolist()


def test_synth_defaults_to_the_noisy_total(measured: Path, run: Run) -> None:
    """Without -n there are as many rows as the release says."""
    run("synth people.release.parquet -o rows.csv")
    assert len(pd.read_csv("rows.csv")) == Release.load(measured).n_rows


def test_synth_given_a_value_keeps_to_it(measured: Path, run: Run) -> None:
    """Conditions hold in every row."""
    run("synth people.release.parquet -n 40 --given sex=F --given age=30 -o rows.csv")
    rows = pd.read_csv("rows.csv")
    assert set(rows["sex"]) == {"F"}
    assert rows["age"].between(25, 49).all()


def test_synth_given_a_column_twice_takes_either_value(measured: Path, run: Run) -> None:
    """A repeated column is a list of values, and of bins by their labels."""
    run(
        "synth people.release.parquet -n 60 --given sex=F --given sex=M --given age=5 --given age=25..49 -o rows.csv"
    )
    rows = pd.read_csv("rows.csv")
    assert set(rows["sex"]) == {"F", "M"}
    assert (rows["age"].between(25, 49) | (rows["age"] == 5)).all()
    assert (rows["age"] == 5).any()
    assert rows["age"].nunique() > 2


def test_synth_given_a_range_draws_the_bins_inside_it(measured: Path, run: Run) -> None:
    """As {min, max} in Python: with both ends, without one, and with a word where it cuts bins."""
    for text, low, high in (("25..74", 25, 74), ("50..", 50, 99), ("..24", 0, 24)):
        drawn = run(f"synth people.release.parquet -n 60 --given age={text} --force -o rows.csv")
        ages = pd.read_csv("rows.csv")["age"]
        assert ages.between(low, high).all()
        assert ages.nunique() > 5
        assert "cuts bins" not in drawn.stderr
    assert (
        "cuts bins" in run("synth people.release.parquet -n 60 --given age=20..60 --force -o rows.csv").stderr
    )


def test_a_saved_joint_gives_the_same_rows_again(measured: Path, run: Run) -> None:
    """--save-joint, then draw from the joint without solving."""
    run("synth people.release.parquet -n 30 --seed 2 --save-joint people.npz -o a.csv")
    run("synth people.npz -n 30 --seed 2 -o b.csv")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert Joint.load("people.npz").schema.names == ("sex", "age", "smoker")


def test_several_sets_give_several_files(folder: Path, run: Run) -> None:
    """m sanitizations, m tables of rows."""
    run(
        "measure",
        "people.csv",
        "people.yaml",
        *PROMISE,
        "--sets",
        "2",
        "--ledger",
        "people.ledger",
        "-o",
        "r.parquet",
    )
    told = facts(run("synth r.parquet -n 20 -o rows.csv --json"))
    assert [file["rows"] for file in told["files"]] == ["rows-1.csv", "rows-2.csv"]
    assert [len(pd.read_csv(file["rows"])) for file in told["files"]] == [20, 20]


def test_published_tables_become_rows(folder: Path, run: Run) -> None:
    """CSV files that some agency published, exact here: the rows have their shares."""
    pd.DataFrame(
        {
            "sex": ["F"] * 4 + ["M"] * 4,
            "age": ["0..24", "25..49", "50..74", "75..99"] * 2,
            "count": [10, 20, 30, 40, 40, 30, 20, 10],
        }
    ).to_csv("t1.csv", index=False)
    pd.DataFrame({"smoker": ["False", "True", "(missing)"], "count": [120, 60, 20]}).to_csv(
        "t2.csv", index=False
    )
    done = run(
        "synth --schema people.yaml --scale 0 --table sex,age=t1.csv --table smoker=t2.csv -n 200 -o rows.csv"
    )
    assert done.exit_code == 0, done.output
    rows = pd.read_csv("rows.csv")
    counts = pd.crosstab(rows["sex"], pd.cut(rows["age"], [-1, 24, 49, 74, 99])).to_numpy()
    assert np.abs(counts - [[10, 20, 30, 40], [40, 30, 20, 10]]).max() <= 1
    assert abs(rows["smoker"].isna().sum() - 20) <= 2


def test_ledger_show_tells_limit_spent_and_left(measured: Path, run: Run) -> None:
    """For people, line by line."""
    shown = run("ledger show people.ledger").stdout
    assert "Limit    epsilon = 10 (pure differential privacy)" in shown
    assert "Spent    epsilon = 2" in shown
    assert "Left     epsilon = 8" in shown
    assert "released" in shown


def test_synth_of_drowned_tables_warns_on_stderr(folder: Path, run: Run) -> None:
    """Tables that add up to less than nothing give no rows by default, and one line says so."""
    Path("sex.csv").write_text("sex,count\nF,-40\nM,-60\n", encoding="utf-8")
    Path("sex.yaml").write_text("columns:\n  sex: {kind: categorical, levels: [F, M]}\n", encoding="utf-8")
    done = run("synth --schema sex.yaml --scale 30 --table sex=sex.csv -o rows.csv --json")
    (file,) = facts(done)["files"]
    assert file["engine"] == "uniform"
    assert file["n_rows"] == len(pd.read_csv("rows.csv")) == 0
    assert [f"Warning: {text}" for text in file["warnings"]] == [
        line for line in done.stderr.splitlines() if line.startswith("Warning")
    ]


def test_rows_are_checked_against_a_schema(folder: Path, run: Run) -> None:
    """Marked for the curator on its first line, exit code 1 where rows would be refused, and nothing is written."""
    before = sorted(path.name for path in folder.iterdir())
    good = run("schema check people.yaml --data people.csv")
    assert good.exit_code == 0
    assert good.stdout.startswith("CURATOR ONLY")
    text = (folder / "people.csv").read_text()
    (folder / "odd.csv").write_text(text.replace("\nF,", "\nX,", 3).replace(",", ";"))
    odd = run("schema check people.yaml --data odd.csv --json")
    assert odd.exit_code == 1
    found = json.loads(odd.stdout)
    assert found["format"] == {"separator": ";"}
    assert next(iter(found)) == "curator_only"
    assert not found["fits"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "odd.csv"])
