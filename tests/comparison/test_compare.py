"""Compare: equal terms, repeatable cells, resuming after a kill, and output for the curator alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpcipher
import dpcipher as dc
from dpcipher.cli import main
from dpcipher.drawing.curator_only import WATERMARK
from dpcipher.errors import ParameterError, SizeError
from dpcipher.evaluation.compare import compare
from dpcipher.evaluation.runs import read_rows
from dpcipher.evaluation.scores import evaluate
from dpcipher.methods import MWEM, FullHistogram, Uniform
from dpcipher.privacy.draws import Draws
from dpcipher.schema.schema import Schema

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 2})
ROWS = pd.DataFrame(
    np.random.default_rng(2).integers(0, (2, 3, 2), (200, 3)) % (2, 3, 1), columns=list("abc")
)
CALL = {
    "methods": ["full-histogram", "independent", "uniform"],
    "epsilons": [0.5, 4],
    "repeats": 3,
    "unit": "add-remove",
}


def scores(comparison) -> pd.DataFrame:
    """Everything but the time it took."""
    return comparison.frame.drop(columns="seconds")


def test_every_cell_is_there_and_scored() -> None:
    """Three methods, two epsilons, three repeats; distances between 0 and 1; the uniform table is the worst here."""
    found = compare(ROWS, SCHEMA, **CALL, workers=1)
    assert len(found.frame) == 18
    assert found.scores == ["tvd_1", "linf_1", "tvd_2", "linf_2", "tvd_3", "linf_3"]
    assert found.frame[found.scores].to_numpy().min() >= 0
    assert found.frame[found.scores].to_numpy().max() <= 1
    table = found.table("tvd_1")
    assert list(table.columns) == [0.5, 4.0]
    assert table.loc["uniform", 4.0] > table.loc["full-histogram", 4.0]


def test_scores_are_those_of_evaluate() -> None:
    """One cell again by hand: the same seed, the same rows, scored by the public function."""
    found = compare(
        ROWS, SCHEMA, methods=["full-histogram"], epsilons=[1.0], repeats=1, unit="replace", workers=1
    )
    from dpcipher.evaluation.runs import Run

    seed = Run("full-histogram", 1.0, 0).seed(0)
    counts = np.zeros(SCHEMA.shape, dtype=int)
    np.add.at(counts, tuple(ROWS.to_numpy().T), 1)
    fitted = FullHistogram(1.0, unit="replace").fit_counts(counts, SCHEMA, draws=Draws.seeded(seed))
    codes = np.concatenate(
        list(fitted.joint.core.sample(200, np.random.default_rng([seed, 1]), independent=True))
    )
    expected = evaluate(ROWS, pd.DataFrame(codes, columns=list("abc")), SCHEMA)
    assert found.frame.loc[0, "tvd_2"] == pytest.approx(expected.tvd[2])
    assert found.frame.loc[0, "linf_3"] == pytest.approx(expected.linf[3])


def test_cells_do_not_depend_on_company_order_or_workers() -> None:
    """One method alone, all of them, and two processes give the same numbers."""
    all_of_them = scores(compare(ROWS, SCHEMA, **CALL, workers=1))
    parallel = scores(compare(ROWS, SCHEMA, **CALL, workers=2))
    pd.testing.assert_frame_equal(all_of_them, parallel)
    alone = scores(compare(ROWS, SCHEMA, **CALL | {"methods": ["independent"]}, workers=1))
    same = all_of_them[all_of_them["method"] == "independent"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, same)
    other = scores(compare(ROWS, SCHEMA, **CALL, workers=1, seed=1))
    assert not other["tvd_2"].equals(all_of_them["tvd_2"])


def test_a_torn_journal_goes_on_to_the_same_result(tmp_path) -> None:
    """Cut after any number of cells, in the middle of a line too, and resumed: what an uninterrupted run gives."""
    whole = scores(compare(ROWS, SCHEMA, **CALL, workers=1, out=tmp_path / "whole"))
    lines = (tmp_path / "whole" / "cells.jsonl").read_bytes().splitlines(keepends=True)
    for kept, torn in ((0, b""), (1, b""), (7, lines[7][:11]), (18, lines[18][:-1])):
        folder = tmp_path / f"cut{kept}"
        compare(ROWS, SCHEMA, **CALL | {"repeats": 1}, workers=1, out=folder)
        (folder / "cells.jsonl").write_bytes(b"".join(lines[:kept]) + torn)
        pd.testing.assert_frame_equal(whole, scores(compare(ROWS, SCHEMA, **CALL, workers=1, out=folder)))
        assert len((folder / "cells.jsonl").read_bytes().splitlines()) == 19


SCRIPT = """
import sys
import pandas as pd
from dpcipher.evaluation.compare import compare
from dpcipher.evaluation.runs import read_rows
from dpcipher.methods import MWEM
from dpcipher.schema.schema import Schema
rows = pd.read_csv(sys.argv[1])
compare(rows, Schema.from_domain({"a": 2, "b": 3, "c": 2}), methods={"slow": MWEM(1.0, unit="replace", passes=400)},
        epsilons=[0.5, 4.0], repeats=12, unit="replace", workers=2, out=sys.argv[2])
"""


def test_a_killed_run_resumes_to_the_same_result(tmp_path) -> None:
    """kill -9 in the middle of a run of two workers, then the same call again."""
    data, out = tmp_path / "rows.csv", tmp_path / "out"
    ROWS.to_csv(data, index=False)
    source = str(Path(dpcipher.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(data), str(out)],
        env={**os.environ, "PYTHONPATH": source},
        start_new_session=True,
    )
    journal = out / "cells.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 3) and time.monotonic() < deadline:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = journal.read_bytes().count(b"\n") - 1
    methods = {"slow": MWEM(1.0, unit="replace", passes=400)}
    call = {"methods": methods, "epsilons": [0.5, 4.0], "repeats": 12, "unit": "replace", "workers": 1}
    resumed = scores(compare(ROWS, SCHEMA, **call, out=out))
    assert 0 < finished < 24
    pd.testing.assert_frame_equal(resumed, scores(compare(ROWS, SCHEMA, **call)))


def test_a_folder_of_another_experiment_is_refused(tmp_path) -> None:
    """Other rows, another seed, another unit: never mixed. More repeats or epsilons are an extension."""
    out = tmp_path / "out"
    compare(ROWS, SCHEMA, **CALL, workers=1, out=out)
    for change in ({"seed": 9}, {"unit": "replace"}, {"methods": ["uniform"]}):
        with pytest.raises(ParameterError, match="another comparison"):
            compare(ROWS, SCHEMA, **CALL | change, workers=1, out=out)
    with pytest.raises(ParameterError, match="another comparison"):
        compare(ROWS.iloc[1:], SCHEMA, **CALL, workers=1, out=out)
    longer = compare(ROWS, SCHEMA, **CALL | {"repeats": 4, "epsilons": [0.5, 4, 8]}, workers=1, out=out)
    assert len(longer.frame) == 36


def test_what_is_written_is_for_the_curator_alone(tmp_path) -> None:
    """A folder of mode 0700, files of mode 0600, a watermark in all of them and in the text."""
    found = compare(ROWS, SCHEMA, **CALL, workers=1, out=tmp_path / "out")
    page = found.write_page(tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "out").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert WATERMARK in file.read_text()
    assert str(found).startswith(WATERMARK)
    assert found.to_dict()["curator_only"] == WATERMARK
    assert page.read_text().count("<svg") == 6 * (2 + 1)  # dots at each of two epsilons, and curves


def test_progress_counts_every_cell() -> None:
    """From nothing to all."""
    seen: list[tuple[int, int]] = []
    compare(ROWS, SCHEMA, **CALL, workers=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 18) for done in range(19)]


def test_own_methods_have_own_labels() -> None:
    """A mapping of synthesizers: their options are kept, their epsilon is replaced."""
    mine = {"two rounds": MWEM(9.0, unit="replace", rounds=2), "nothing": Uniform(9.0, unit="replace")}
    found = compare(ROWS, SCHEMA, methods=mine, epsilons=[1.0], repeats=2, unit="replace", workers=1)
    assert list(found.table().index) == ["two rounds", "nothing"]


@pytest.mark.parametrize(
    "change",
    [{"methods": ["mwen"]}, {"methods": "mwem"}, {"methods": []}, {"epsilons": []}, {"epsilons": [0]}, {"epsilons": 1.0},
     {"repeats": 0}, {"workers": 0}, {"unit": "rows"}, {"n_rows": 0}, {"orders": [4]}],
)  # fmt: skip
def test_bad_requests_are_refused(change: dict[str, object]) -> None:
    """Before anything is fitted."""
    with pytest.raises(ValueError):  # noqa: PT011 - each names its own parameter
        compare(ROWS, SCHEMA, **{"workers": 1} | CALL | change)
    with pytest.raises(ParameterError, match="did you mean 'mwem'"):
        compare(ROWS, SCHEMA, **CALL | {"methods": ["mwen"]})


def test_unknown_scores_and_too_large_schemas_are_refused() -> None:
    """A misspelt score, and a method that needs the full table of a large schema."""
    found = compare(ROWS, SCHEMA, **CALL | {"repeats": 1}, workers=1)
    with pytest.raises(ParameterError, match="tvd_2"):
        found.table("tdv_2")
    wide = Schema.from_domain({f"c{number}": 100 for number in range(9)})
    with pytest.raises(SizeError, match="full table"):
        compare("no such file", wide, methods=["full-histogram"], epsilons=[1.0], repeats=1, unit="replace")


def test_the_command_compares_and_resumes(tmp_path) -> None:
    """The example of the help page: a table on stdout, progress on stderr, a page in a folder of its own."""
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    SCHEMA.save(tmp_path / "rows.yaml")
    call = ["compare", str(tmp_path / "rows.csv"), str(tmp_path / "rows.yaml"), "--methods", "uniform,independent",
            "--epsilons", "0.5,2", "--repeats", "2", "--unit", "add-remove", "--workers", "1", "-o", str(tmp_path / "report.html")]  # fmt: skip
    first = CliRunner().invoke(main, call)
    assert first.exit_code == 0, first.output
    assert WATERMARK in first.stdout
    assert "8 of 8 fits" in first.stderr
    assert (tmp_path / "report" / "report.html").stat().st_mode & 0o777 == 0o600
    again = CliRunner().invoke(main, [*call, "--json"])
    assert len(json.loads(again.stdout)["cells"]) == 8
    assert "0 of 8" not in again.stderr
    wrong = CliRunner().invoke(main, [*call[:4], "uniformm", *call[5:]])
    assert wrong.exit_code == 1
    assert "did you mean 'uniform'" in wrong.stderr


def test_a_method_that_cannot_run_is_left_out_visibly(tmp_path: Path) -> None:
    """The others run all the same; text, page and plain values say which one did not, and why. Where none can run, that is an error."""
    wide = Schema.from_domain({f"c{i}": 10 for i in range(12)})
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (50, 12)), columns=list(wide.names))
    found = compare(
        rows, wide, methods=["full-histogram", "uniform"], epsilons=[1], repeats=1, orders=[1], unit="add-remove", workers=1
    )  # fmt: skip
    assert list(found.table().index) == ["uniform"]
    assert list(found.skipped) == ["full-histogram"]
    assert found.to_dict()["skipped"] == found.skipped
    assert "full-histogram: left out:" in str(found)
    assert str(found).count("not run") == len(found.scores)
    text = found.write_page(tmp_path / "curator").read_text(encoding="utf-8")
    assert "Methods that could not run" in text
    assert "<td>not run</td>" in text
    with pytest.raises(SizeError):
        compare(rows, wide, methods=["full-histogram"], unit="add-remove")


def test_open_bins_under_an_order_rule_and_levels_to_be_found_are_compared() -> None:
    """A generous budget leaves little distance in the bins that stand for those to be found, and among the frequent texts; rules break nothing."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 50, 3_000)
    people = pd.DataFrame(
        {
            "start": first,
            "end": first + rng.integers(0, 50, 3_000),
            "city": rng.choice(["ab", "cd", "ef", "X1"], 3_000, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )
    schema = Schema.from_dict(
        {
            "columns": {
                "start": {"kind": "integer", "min": 0, "max": 99, "bins": "auto"},
                "end": {"kind": "integer", "min": 0, "max": 99, "bins": "auto"},
                "city": {"kind": "categorical", "levels": "discover", "pattern": "[a-z]+", "max_length": 4},
            },
            "rules": ["start <= end"],
        }
    )
    result = compare(
        people, schema, methods=["cipher", "uniform"], epsilons=[100.0], delta=1e-6, repeats=1, orders=[1, 2],
        unit="add-remove", workers=1,
    )  # fmt: skip
    near, far = (result.table("tvd_1").loc[name, 100.0] for name in ("cipher", "uniform"))
    assert near < 0.08 < far


def test_texts_are_scored_by_the_most_frequent_ones() -> None:
    """As many as may be found; the others, and texts that may not be found, count as other."""
    schema = Schema.from_dict(
        {
            "columns": {
                "city": {
                    "kind": "categorical",
                    "levels": "discover",
                    "pattern": "[a-z]+",
                    "max_length": 4,
                    "keep": ["zz"],
                    "max_levels": 2,
                }
            }
        }
    )
    cells = ["b", "a", "c", "a", "b", "A7", "zz", "c", "c"]
    codes, scored = read_rows(pd.DataFrame({"city": cells}), schema).scored()
    assert [scored.column("city").labels[code] for code in codes[:, 0]] == [
        "other", "a", "c", "a", "other", "other", "zz", "c", "c"
    ]  # fmt: skip


OTHERS = {
    "unit": dc.FullHistogram(1.0, unit="replace"),
    "max_rows": dc.FullHistogram(1.0, unit="add-remove", max_rows=50),
    "delta": dc.FullHistogram(1.0, unit="add-remove", delta=1e-6),
    "rho": dc.Cipher(rho=0.1, epsilon=None, unit="add-remove"),
}


@pytest.mark.parametrize("word", OTHERS)
def test_methods_that_promise_something_else_are_refused_before_rows_are_read(word: str) -> None:
    """Their scores would stand beside those of methods with another unit; of rho the epsilon cannot be replaced."""
    with pytest.raises(ParameterError, match=rf"methods\['mine'\] has {word}"):
        dc.compare("absent.csv", SCHEMA, methods={"mine": OTHERS[word]}, unit="add-remove")


def test_the_same_epsilon_is_run_once() -> None:
    """However it is written: its runs would be the same to the last digit."""
    options = {"methods": ["uniform"], "repeats": 2, "unit": "add-remove", "workers": 1}
    assert len(dc.compare(ROWS, SCHEMA, epsilons=[1.0, 1, np.float64(1)], **options).frame) == 2


def test_a_journal_of_other_rows_in_open_bins_is_refused(tmp_path: Path) -> None:
    """Rows that differ inside the bins in which scores compare are other rows."""
    schema = dc.Schema.from_dict(
        {
            "columns": {
                "x": {"kind": "integer", "min": 0, "max": 999, "bins": "auto"},
                "y": {"kind": "boolean"},
            }
        }
    )
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"x": rng.integers(0, 499, 300) * 2, "y": rng.random(300) < 0.5})
    options = {
        "methods": ["independent"],
        "epsilons": [1.0],
        "repeats": 1,
        "unit": "add-remove",
        "workers": 1,
    }
    dc.compare(rows, schema, out=tmp_path / "mine", **options)
    dc.compare(rows, schema, out=tmp_path / "mine", **options)
    with pytest.raises(ParameterError, match="holds another comparison"):
        dc.compare(rows.assign(x=rows["x"] + 1), schema, out=tmp_path / "mine", **options)


def test_an_order_beyond_the_columns_is_refused() -> None:
    """By a method as by `measure` and `plan`; the default is the one table of a single column."""
    schema = dc.Schema.from_domain({"a": 2, "b": 3, "c": 2})
    with pytest.raises(ParameterError, match=r"workload \(4\) must be an order from 1 to 3"):
        dc.Cipher(1.0, unit="add-remove", workload=4).fit("absent.csv", schema)


def test_experiments_hide_the_number_of_rows_that_a_fit_hides() -> None:
    """Under replace with a person the rows beyond the cap were left out, so how many are left is private: a method is not told."""
    counts = np.array([[400, 200], [100, 300]])
    schema = dc.Schema.from_domain({"a": 2, "b": 2})
    for person, told in ((None, 1_000), ("pid", None)):
        method = dc.FullHistogram(0.1, unit="replace", person=person)
        fitted = method.fit_counts(counts, schema, draws=Draws.seeded(1))
        assert fitted.statement.n_rows == told
