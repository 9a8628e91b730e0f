"""Bad input through the command line: exit code 1 or 2, a message with name, value, rule and fix, and an untouched ledger."""

import json
from pathlib import Path

import click
import pandas as pd
import pytest
from command_line import PROMISE, Run, curators_folder, measured_release, runner  # noqa: F401

import dpcipher as dc
from dpcipher.cli import as_typed
from dpcipher.privacy.ledger import Ledger

MEASURE = ("measure", "people.csv", "people.yaml", "--ledger", "people.ledger", "-o", "r.parquet")


def measure(*, replacing: dict[str, str] | None = None, more: tuple[str, ...] = ()) -> list[str]:
    """A sound `measure`, with some words replaced and some added."""
    options = {"--epsilon": "2", "--unit": "add-remove", "--max-rows": "1", **(replacing or {})}
    words = [word for name, value in options.items() if value != "absent" for word in (name, value)]
    return [*MEASURE, *words, *more]


BUDGET = [
    ({"--epsilon": "0"}, "epsilon (0) must be a finite number above 0"),
    ({"--epsilon": "-1"}, "epsilon (-1) must be a finite number above 0"),
    ({"--epsilon": "nan"}, "(nan) must be a finite number; try 1"),
    ({"--epsilon": "inf"}, "(inf) must be a finite number; try 1"),
    ({"--epsilon": "one"}, "(one) must be a finite number; try 1"),
    ({"--epsilon": "1/0"}, "(1/0) must be a finite number; try 1"),
    ({"--epsilon": "1e999"}, "epsilon (1e999) must be a finite number above 0"),
    (
        {"--epsilon": "absent"},
        "one of them must be given; try --epsilon 1.0, or --rho 0.1 for Gaussian noise",
    ),
    ({"--delta": "0"}, "delta (0) must be a finite number above 0"),
    ({"--delta": "-1"}, "delta (-1) must be a finite number above 0"),
    ({"--delta": "1"}, "delta (1) must be below 1; try --delta 1e-6"),
    ({"--rho": "1"}, "epsilon (2) and rho (1) must not be given together"),
    ({"--unit": "people"}, "unit ('people') must be 'add-remove' or 'replace'"),
    ({"--unit": "absent"}, "Missing option '--unit'"),
    ({"--max-rows": "0"}, "max_rows (0) must be a whole number of at least 1"),
    ({"--max-rows": "-1"}, "max_rows (-1) must be a whole number of at least 1"),
    ({"--max-rows": "two"}, "'two' is not a valid integer"),
    ({"--sets": "0"}, "sets (0) must be a whole number above 0"),
    ({"--sets": "-1"}, "sets (-1) must be a whole number above 0"),
    ({"--mechanism": "normal"}, "mechanism ('normal') must be 'laplace' or 'gaussian'"),
    (
        {"--mechanism": "gaussian"},
        "delta (None) must be given with --mechanism gaussian and epsilon; try --delta 1e-6",
    ),
    ({"--workload": "0"}, "workload (0) must be an order from 1 to 3"),
    ({"--workload": "4"}, "workload (4) must be an order from 1 to 3"),
    ({"--table": "sex,agee"}, "column 'agee' is not in the schema; did you mean 'age'?"),
    ({"--table": "sex,sex"}, "must name each column once"),
    ({"--table": "sex,age"}, "workload omits the column 'smoker'"),
    ({"--weights": "people.yaml"}, "(people.yaml) must be a plan printed as JSON"),
    ({"--ledger": "absent"}, "Missing option '--ledger'"),
    ({"--unit": "replace"}, "unit (replace, max_rows=1) must be the ledger's: add-remove, max_rows=1"),
    ({"--epsilon": "11"}, "would exceed the ledger 'people'"),
    ({"--person": "passport"}, "no column 'passport'"),
]


@pytest.mark.parametrize(("replacing", "message"), BUDGET)
def test_a_wrong_request_is_refused_before_anything_is_spent(
    folder: Path, run: Run, replacing: dict[str, str], message: str
) -> None:
    """Each with its own message, without a traceback, and with the ledger as it was."""
    words = measure(replacing=replacing)
    if replacing.get("--ledger") == "absent":
        words = [word for word in words if word not in ("--ledger", "people.ledger")]
    before = Path("people.ledger").read_bytes()
    refused = run(*words)
    assert refused.exit_code in (1, 2)
    assert message in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.output
    assert Path("people.ledger").read_bytes() == before
    assert not Path("r.parquet").exists()


def test_swapped_files_are_told_apart(folder: Path, run: Run) -> None:
    """A schema where the rows should stand, and rows where the schema should: the message has them in order."""
    words = measure()
    words[1:3] = ["people.yaml", "people.csv"]
    refused = run(*words)
    assert refused.exit_code == 2
    assert "swap them, dpcipher measure people.csv people.yaml" in " ".join(refused.stderr.split())


def test_a_ledger_in_the_place_of_another_file_is_named(folder: Path, run: Run) -> None:
    """And another file in its place: neither is called damaged, and nothing is charged or changed."""
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    words = measure()
    words[1] = "people.ledger"
    refused = run(*words)
    assert refused.exit_code == 1
    assert "people.ledger: is a ledger, no table" in " ".join(refused.stderr.split())
    for args in (measure(replacing={"--ledger": "people.csv"}), ["ledger", "show", "people.csv"]):
        refused = run(*args)
        assert refused.exit_code == 1
        assert "is no ledger: it is a text file, such as CSV rows" in " ".join(refused.stderr.split())
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


ADVICE = [
    ("try max_rows=1", "try --max-rows 1"),
    ("use engine='table' (small) or engine='rows'.", "use --engine table (small) or --engine rows."),
    ("leave such rows out with missing_person='drop'", "leave such rows out with --missing-person drop"),
    ("or create=True", "or --create"),
    ("try lam=0.01", "try lam=0.01"),
    ("try workload=dc.Auto(max_order=2)", "try workload=dc.Auto(max_order=2)"),
    ("unit (replace, max_rows=1)", "unit (replace, max_rows=1)"),
    ("combine(..., rule='imputations')", "combine(..., rule='imputations')"),
]


@pytest.mark.parametrize(("library", "typed"), ADVICE)
def test_advice_of_the_library_is_given_as_the_command_takes_it(library: str, typed: str) -> None:
    """Options by their names on the command line, flags without a value; calls and other names stay as they are."""
    names = ("--max-rows", "--engine", "--missing-person", "--workload", "--rule")
    known = [click.Option([name]) for name in names] + [click.Option(["--create"], is_flag=True)]
    assert typed == as_typed(library, {str(option.name): option for option in known})


FILES = {
    "ragged": (b"sex,age,smoker\nF,secretvalue\n", "people.csv"),
    "latin-1": ("sex,age,smoker\nsécret,5,true\n".encode("latin-1"), "people.csv"),
    "empty": (b"", "people.csv"),
    "only a header": (b"sex,age,smoker\n", "has none; nothing is charged"),
    "only a header, not ended": (b"sex,age,smoker", "has none; nothing is charged"),
    "duplicate columns": (b"sex,age,age,smoker\nF,5,5,true\n", "'age'"),
    "a missing column": (b"sex,smoker\nF,true\n", "'age'"),
    "a value not in the schema": (b"sex,age,smoker\nsecretvalue,5,true\n", "'sex'"),
    "a missing value": (b"sex,age,smoker\n,5,true\n", "'sex'"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_wrong_table_is_refused_without_quoting_it(folder: Path, run: Run, kind: str) -> None:
    """Files that cannot be read as the schema says: nothing is spent, and no cell is shown."""
    content, named = FILES[kind]
    Path("people.csv").write_bytes(content)
    before = Path("people.ledger").read_bytes()
    refused = run(*measure())
    assert refused.exit_code == 1
    assert named in refused.stderr
    assert "secret" not in refused.output
    assert "s\xe9cret" not in refused.output
    assert Path("people.ledger").read_bytes() == before
    assert not Path("r.parquet").exists()


def test_too_large_a_domain_is_refused_on_the_schema_alone(folder: Path, run: Run) -> None:
    """Even before the data is looked for."""
    Path("huge.json").write_text('{"a": 1000000, "b": 1000000}')
    refused = run(
        "measure", "nowhere.csv", "huge.json", *PROMISE, "--ledger", "people.ledger", "-o", "r.parquet"
    )
    assert refused.exit_code == 1
    assert "1,000,000,000,000 cells" in refused.stderr or "10^12 cells" in refused.stderr


def test_an_unwritable_output_is_refused_before_anything_is_spent(folder: Path, run: Run) -> None:
    """A folder that is not there, and an ending that is not known."""
    before = Path("people.ledger").read_bytes()
    for target in ("nowhere/r.parquet", "r.docx"):
        words = [target if word == "r.parquet" else word for word in measure()]
        refused = run(*words)
        assert refused.exit_code == 1
        assert target in refused.stderr
    assert Path("people.ledger").read_bytes() == before


def test_damaged_and_foreign_release_files_are_refused(measured: Path, run: Run) -> None:
    """Cut short, and no release at all."""
    Path("cut.parquet").write_bytes(measured.read_bytes()[:-100])
    Path("people.parquet").write_text("not parquet")
    for name in ("cut.parquet", "people.parquet", "absent.parquet"):
        refused = run(f"synth {name} -o rows.csv")
        assert refused.exit_code == 1
        assert f"release file ({name})" in refused.stderr
        assert not Path("rows.csv").exists()


SYNTH = [
    ("people.release.parquet -n 0", "n_rows (0) must be a whole number above 0"),
    ("people.release.parquet -n -1", "n_rows (-1) must be a whole number above 0"),
    ("people.release.parquet --given sxe=F", "'sxe'"),
    ("people.release.parquet --given sex=X", "sex"),
    ("people.release.parquet --given age=200", "it has whole numbers from 0 to "),
    ("people.release.parquet --given age=young..", "must be numbers, not 'young'"),
    (
        "people.release.parquet --given age=0.. --given age=5",
        "--given age=0.. is a range and must stand alone",
    ),
    ("people.release.parquet --given sex", "(sex) must have the form NAME=VALUE"),
    ("people.release.parquet --engine fast", "engine ('fast') must be one of"),
    ("people.release.parquet --scale 1", "not both"),
    ("--table sex,age=t.csv", "give RELEASE, or published tables with --table, --schema and --scale"),
    ("--schema people.yaml --scale -1 --table sex,age=t.csv --table smoker=t.csv", "scale (-1.0)"),
    ("--schema people.yaml --scale 1 --table sex,age=t.csv --table sex,age=t.csv", "given twice"),
    ("--schema people.yaml --scale 1 --table sex,age=t.csv", "cannot be read from t.csv"),
]


@pytest.mark.parametrize(("words", "message"), SYNTH)
def test_a_wrong_synthesis_is_refused(measured: Path, run: Run, words: str, message: str) -> None:
    """Nothing half-made is left behind."""
    refused = run(f"synth {words} -o rows.csv")
    assert refused.exit_code in (1, 2)
    assert message in " ".join(refused.stderr.split())
    assert not Path("rows.csv").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("ledger create people.ledger --epsilon 1 --unit add-remove --max-rows 1", 1, "people.ledger"),
        ("ledger show absent.ledger", 1, "absent.ledger"),
        ("ledger show people.csv", 1, "ledger"),
        ("schema show absent.yaml", 1, "absent.yaml: there is no such file"),
        ("schema draft absent.csv -o d.yaml", 1, "absent.csv"),
        ("schema sign people.yaml", 2, "Missing option '--name'"),
        ("plan people.yaml --epsilon 1 --unit add-remove --max-rows 1 --n-rows 0", 1, "n_rows (0)"),
        ("demo -o people.csv", 2, "people.csv"),
        ("demo -o .", 1, "must be new, empty, or an earlier demo's folder"),
        ("mesure", 2, "No such command 'mesure'"),
    ],
)
def test_other_commands_refuse_too(folder: Path, run: Run, words: str, code: int, message: str) -> None:
    """1 for what the library refuses, 2 for wrong usage."""
    refused = run(words)
    assert (refused.exit_code, message in " ".join(refused.stderr.split())) == (code, True), refused.stderr


@pytest.mark.parametrize(
    ("command", "kind", "code"),
    [
        ("schema show absent.yaml --json", "SchemaError", 1),
        ("measure people.csv people.yaml --json -o r.parquet", "MissingParameter", 2),
        ("synth people.yaml -o rows.csv --json", "ReleaseError", 1),
        ("nonsense --json", "NoSuchCommand", 2),
        ("synth people.parquet --no-such-option --json", "NoSuchOption", 2),
    ],
)
def test_errors_are_json_where_results_are(
    command: str, kind: str, code: int, folder: Path, run: Run
) -> None:
    """An object on stdout with the kind, the message and the exit code; the message also on stderr, as without --json."""
    done = run(command)
    assert done.exit_code == code
    said = json.loads(done.stdout)["error"]
    assert said["exit_code"] == code
    assert said["kind"] in (kind, "UsageError")
    assert said["message"] in done.stderr.replace("\n", " ") or said["message"].split(".")[0] in done.stderr
    plain = run(command.replace(" --json", ""))
    assert plain.stdout == ""


def test_a_parquet_file_without_rows_is_refused_and_an_empty_frame_is_measured(
    folder: Path, run: Run
) -> None:
    """A file that was not written whole is not charged; a frame without rows is somebody's neighbour, and charged like any other."""
    frame = pd.read_csv("people.csv")[:0].astype({"sex": str, "age": int, "smoker": bool})
    frame.to_parquet("people.parquet")
    before = Path("people.ledger").read_bytes()
    words = measure()
    words[1] = "people.parquet"
    refused = run(*words)
    assert refused.exit_code == 1
    assert "has none; nothing is charged" in " ".join(refused.stderr.split())
    assert Path("people.ledger").read_bytes() == before
    release = dc.measure(
        frame, dc.Schema.load("people.yaml"), epsilon=2, unit="add-remove", ledger="people.ledger"
    )
    assert release.statement.status == "certified"
    assert len(Ledger.open("people.ledger").entries) == 1


def test_a_level_in_other_capitals_is_suggested(folder: Path, run: Run) -> None:
    """Names and levels differ from what was typed in capitals alone: the hint has them as the schema does."""
    schema = dc.Schema.from_dict(
        {"columns": {"zone": {"kind": "categorical", "levels": ["NORTE", "CENTRO", "SUR"]}}}
    )
    dc.Release.from_tables({"zone": [5, 50, 10]}, schema, scale=1.0).save("zones.parquet")
    for given, hint in (("zone=Centro", "did you mean 'CENTRO'?"), ("Zone=CENTRO", "did you mean 'zone'?")):
        refused = run("synth", "zones.parquet", "-n", "10", "--given", given, "-o", "rows.csv")
        assert refused.exit_code in (1, 2)
        assert hint in " ".join(refused.stderr.split())
