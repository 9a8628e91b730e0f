"""Several sets from one release: proper draws, and the rules that combine them, by hand and by simulation."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import dpcipher as dc
from dpcipher.cli import main
from dpcipher.errors import ParameterError, SizeError
from dpcipher.inference.combine import RULES, Combined, Rule, combine
from dpcipher.joint.imputed import Imputed
from dpcipher.privacy.draws import SeededNoise
from dpcipher.schema import column
from dpcipher.tables.domain import Floats
from dpcipher.tables.measurement import Noise

SCHEMA = dc.Schema.from_domain({"a": 2, "b": 2})
TRUTH = np.array([[0.35, 0.25], [0.15, 0.25]])
ODDS = float(np.log(TRUTH[0, 0] * TRUTH[1, 1] / TRUTH[0, 1] / TRUTH[1, 0]))
SETS, ROWS, SCALE = 5, 600, 16.0


def release(seed: int) -> dc.Release:
    """A noisy table of rows that are a sample of the truth."""
    rows = np.random.default_rng(seed).multinomial(ROWS, TRUTH.ravel()).reshape(2, 2)
    counts = SeededNoise(seed).add(rows.astype(np.int64), Noise("laplace", SCALE))
    return dc.Release.from_tables({("a", "b"): counts}, SCHEMA, scale=SCALE)


def log_odds(counts: Floats) -> tuple[float, float]:
    """The log odds ratio of a table and its variance."""
    cells = np.asarray(counts, dtype=float) + 0.5
    return float(np.log(cells[0, 0] * cells[1, 1] / cells[0, 1] / cells[1, 0])), float((1 / cells).sum())


def table_of(rows: pd.DataFrame) -> Floats:
    """The counts of synthetic rows."""
    return np.bincount(2 * rows["a"] + rows["b"], minlength=4).reshape(2, 2).astype(float)


def covers(combined: Combined) -> bool:
    """Whether the interval holds the truth."""
    low, high = combined.interval(0.95)
    return bool(low <= ODDS <= high)


def test_the_rules_by_hand() -> None:
    """Rubin's T = W + (1 + 1/m)B and Raghunathan, Reiter and Rubin's T = (1 + 1/m)B - W, worked on paper for m = 3."""
    rubin = combine([1.0, 2.0, 6.0], [1.0, 2.0, 3.0], rule="imputations")
    assert float(rubin.variance) == pytest.approx(2 + 28 / 3)
    assert float(rubin.dof) == pytest.approx(2 * (1 + 2 / (28 / 3)) ** 2)
    synthetic = combine([1.0, 2.0, 6.0], [1.0, 2.0, 3.0], rule="population")
    assert float(synthetic.variance) == pytest.approx(28 / 3 - 2)
    assert float(synthetic.dof) == pytest.approx(2 * (1 - 2 / (28 / 3)) ** 2)
    assert float(combine([1.0, 1.1], [5.0, 5.0], rule="population").variance) == 5.0  # not below zero
    assert float(combine([1.0, 1.0], [5.0, 5.0], rule="imputations").dof) == np.inf


def test_rules_are_checked() -> None:
    """A misspelt rule and a single set are refused."""
    with pytest.raises(ParameterError, match="imputations"):
        combine([1.0, 2.0], [1.0, 1.0], rule="imputation")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="two sets"):
        combine([1.0], [1.0], rule="imputations")


@pytest.mark.parametrize("rule", RULES)
def test_a_combined_estimate_says_which_rule_it_is_by_and_for_which_sets(rule: Rule) -> None:
    """The rule is a field, and the first note names it with the call that makes such sets."""
    found = combine([1.0, 2.0], [1.0, 1.0], rule=rule)
    made_by = {"sanitizations": "measure(sets=m)", "imputations": "solve(release, draws=m)"}
    assert found.rule == rule
    assert f"rule={rule!r}" in found.notes[0]
    assert made_by.get(rule, "posterior(release, columns)") in found.notes[0]


def test_draws_of_one_sanitization_are_combined_as_imputations() -> None:
    """What the refusal of the paper's rule advises is accepted: the number of sanitizations is no matter of the other rules."""
    said = combine([1.0, 3.0], [0.5, 0.5], rule="imputations", sanitizations=1)
    assert said == combine([1.0, 3.0], [0.5, 0.5], rule="imputations")
    with pytest.raises(ParameterError, match="rule='imputations'"):
        combine([1.0, 3.0], [0.5, 0.5], sanitizations=1)


def test_intervals_of_both_rules_cover_and_those_of_the_wrong_rule_do_not() -> None:
    """Over many releases, Rubin's rule on table draws and the fully synthetic rule on population draws hold the truth; the rule for m sanitizations
    does not, since sets of one release share its noise."""
    hits: dict[str, list[bool]] = {"imputations": [], "population": [], "sanitizations": []}
    for seed in range(60):
        source = release(seed)
        joints = dc.solve(source, draws=SETS, seed=seed)
        sets = [log_odds(table_of(joint.sample(seed=number))) for number, joint in enumerate(joints)]
        estimates, variances = zip(*sets, strict=True)
        for rule in ("imputations", "sanitizations"):
            hits[rule].append(covers(combine(estimates, variances, rule=rule)))  # type: ignore[arg-type]
        rng = np.random.default_rng([1, seed])
        drawn = dc.posterior(source, ("a", "b"), draws=SETS, seed=seed)
        tables = [rng.multinomial(ROWS, one.ravel()).reshape(2, 2) for one in drawn.draws]
        estimates, variances = zip(*map(log_odds, tables), strict=True)
        hits["population"].append(covers(combine(estimates, variances, rule="population")))
    assert np.mean(hits["imputations"]) >= 0.89
    assert np.mean(hits["population"]) >= 0.87
    assert np.mean(hits["sanitizations"]) < np.mean(hits["imputations"]) - 0.05


def test_draws_are_joints_with_their_own_rows() -> None:
    """Every joint has its own table and number of rows, and says how to combine; a seed repeats them."""
    first, again = (dc.solve(release(1), draws=3, seed=2) for _ in range(2))
    tables = [np.asarray(joint.project(("a", "b"))) for joint in first]
    assert len({table.tobytes() for table in tables}) == 3
    assert len({joint.n_rows for joint in first}) > 1
    assert [joint.n_rows for joint in first] == [joint.n_rows for joint in again]
    assert any("imputations" in note for note in first[0].health.notes)
    assert "raking" not in str(first[0].health)  # draws have no engine of that kind


def test_what_cannot_be_drawn_is_refused() -> None:
    """One draw, an engine with its options, and a table too large are refused with advice."""
    with pytest.raises(ParameterError, match="draws"):
        dc.solve(release(0), draws=1)
    with pytest.raises(ParameterError, match="engine"):
        dc.solve(release(0), draws=3, engine="paper")  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"^engine must be left out with draws"):
        dc.solve(release(0), draws=3, engine=dc.Paper(lam=0.1))  # type: ignore[call-overload]
    wide = dc.Schema.from_domain({f"v{number}": 10 for number in range(6)})
    tables = {(name,): np.full(10, 50) for name in wide.attrs}
    large = dc.Release.from_tables(tables, wide, scale=1.0)
    for columns in (None, [f"v{number}" for number in range(5)]):
        with pytest.raises(SizeError, match=r"columns=.*measure"):
            dc.solve(large, draws=3, columns=columns)
    many = dc.Schema.from_domain({f"v{number}": 2 for number in range(150)})
    with pytest.raises(SizeError, match=r"has about 10\^45 cells"):
        dc.solve(dc.Release.from_tables({(name,): [50, 50] for name in many.attrs}, many, scale=1.0), draws=3)
    with pytest.raises(ParameterError, match=r"columns.*without draws.*project"):
        dc.solve(large, columns="v0")  # type: ignore[call-overload]


def test_draws_of_some_columns_are_those_of_the_posterior() -> None:
    """From a table too large to be drawn whole: the joints have these columns alone, in this order, with the posterior's own numbers."""
    sizes = {"a": 2, "b": 2, "wide": 100, "wider": 100}
    tables = {("a", "b"): np.array([[210, 150], [90, 150]]), ("b", "wide"): np.full((2, 100), 3)}
    source = dc.Release.from_tables(
        {**tables, ("wider",): np.full(100, 6)}, dc.Schema.from_domain(sizes), scale=4.0
    )
    joints = dc.solve(source, draws=2, columns=("b", "a"), seed=3)
    drawn = dc.posterior(source, ("b", "a"), draws=2, seed=3, population=False)
    assert [joint.schema.names for joint in joints] == [("b", "a")] * 2
    assert all(
        np.allclose(np.asarray(joint.project(("b", "a"))), table)
        for joint, table in zip(joints, drawn.draws, strict=True)
    )
    assert list(joints[0].sample(9, seed=1).columns) == ["b", "a"]
    assert any("2 of 4 columns" in note for note in joints[0].health.notes)


def test_draws_name_the_numbers_that_are_known_up_to_bins() -> None:
    """The note names the column and the way out; a column with a level for each number has none."""
    ages = column("age", "integer", min=20, max=79, bins=3)
    schema = dc.Schema((ages, column("children", "integer", min=0, max=3)))
    source = dc.Release.from_tables({("age", "children"): np.full((3, 4), 40)}, schema, scale=4.0)
    notes = [note for note in dc.solve(source, draws=2)[0].health.notes if "bins" in note]
    assert len(notes) == 1
    assert notes[0].startswith("age: ")
    assert "values='middle'" in notes[0]


def synth(*words: str) -> Result:
    """What `dpcipher synth` does."""
    return CliRunner().invoke(main, ["synth", *words])


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file of a release of two columns, in the folder that commands work in."""
    monkeypatch.chdir(tmp_path)
    return str(release(0).save(tmp_path / "a.release.parquet"))


def test_the_command_writes_one_file_a_draw(saved: str) -> None:
    """`dpcipher synth --draws 3` gives three files of rows, and says once what holds for all of them."""
    done = synth(saved, "--draws", "3", "--seed", "1", "-o", "rows.csv")
    assert done.exit_code == 0, done.output
    sets = [pd.read_csv(f"rows-{number}.csv") for number in (1, 2, 3)]
    assert len({rows.to_csv() for rows in sets}) == 3
    assert all(list(rows.columns) == ["a", "b"] for rows in sets)
    assert done.stdout.count("Wrote ") == 3
    assert done.stdout.count("rule='imputations'") == 2  # fit_models and combine, in one line
    assert done.stdout.count("engine posterior") == 1


def test_the_command_tells_programs_the_rule_and_what_it_assumes(saved: str) -> None:
    """With --json; Parquet files carry the rule themselves."""
    done = synth(saved, "--draws", "2", "--columns", "a", "--seed", "1", "-o", "rows.parquet", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["rule"] == "imputations"
    assert any("1 of 2 columns" in note for note in told["notes"])
    sets = [pd.read_parquet(item["rows"]) for item in told["files"]]
    assert [list(rows.columns) for rows in sets] == [["a"]] * 2
    assert [Imputed.of(rows) for rows in sets] == [Imputed()] * 2


def test_stata_and_spss_files_tell_people_the_rule(tmp_path: Path) -> None:
    """In the label of the file and, in SPSS, its notes; rows of a fit say nothing of the kind."""
    pyreadstat = pytest.importorskip("pyreadstat")
    schema = dc.Schema(
        (column("a", "boolean"), column("age", "integer", min=20, max=79, bins=3)), title="Who was ill"
    )
    source = dc.Release.from_tables({schema.attrs: np.full((2, 3), 50)}, schema, scale=2.0)
    drawn, fitted = dc.solve(source, draws=2, seed=1)[0], dc.solve(source, set=0)
    for ending, read in {"dta": pyreadstat.read_dta, "sav": pyreadstat.read_sav}.items():
        drawn.stream(seed=1).write(tmp_path / f"drawn.{ending}")
        fitted.stream(seed=1).write(tmp_path / f"fitted.{ending}")
        about, plain = (read(str(tmp_path / f"{name}.{ending}"))[1] for name in ("drawn", "fitted"))
        assert about.file_label == "Imputation: pool by Rubin's rule; Who was ill"
        assert (plain.file_label, list(plain.notes)) == ("Who was ill", [])
    said = " ".join(line.strip() for line in about.notes)
    assert "pool the results by Rubin's rule" in said
    assert "Values of age were drawn inside bins" in said


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("-n", "100000"), "wrong size"),
        (("--given", "a=1"), "keep those with the condition"),
        (("--independent",), "too wide"),
        (("--engine", "table"), "no engine"),
        (("--reading", "averaged"), "no engine"),
    ],
)
def test_options_that_break_the_rule_are_refused(saved: str, option: tuple[str, ...], reason: str) -> None:
    """With what they would do to it, before anything is drawn."""
    done = synth(saved, "--draws", "2", *option, "-o", "rows.csv")
    assert done.exit_code == 2
    assert "must be left out with --draws" in done.output
    assert reason in " ".join(done.output.split())
    assert not list(Path().glob("rows*"))


def test_columns_without_draws_and_unknown_values_are_refused(saved: str) -> None:
    """Each with what to do."""
    assert "--columns needs --draws" in synth(saved, "--columns", "a", "-o", "rows.csv").output
    refused = synth(saved, "--values", "midle", "-o", "rows.csv")
    assert "did you mean 'middle'" in refused.output


def test_the_command_writes_middles(tmp_path: Path) -> None:
    """`--values middle` writes one number for each bin."""
    schema = dc.Schema((column("age", "integer", min=0, max=19, bins=4),))
    path = dc.Release.from_tables({("age",): [40, 30, 20, 10]}, schema, scale=2.0).save(
        tmp_path / "r.parquet"
    )
    done = synth(str(path), "--values", "middle", "-o", str(tmp_path / "rows.csv"))
    assert done.exit_code == 0, done.output
    assert set(pd.read_csv(tmp_path / "rows.csv")["age"]) == {2, 7, 12, 17}
