"""Evaluate end to end on small tables, and what marks its result as the curator's."""

import json
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcipher.drawing.card import CuratorOnly
from dpcipher.drawing.curator_only import WATERMARK, private_folder
from dpcipher.errors import NotPrivate, ParameterError, WorkloadError
from dpcipher.evaluation.scores import evaluate, level_frame
from dpcipher.release.release import Release
from dpcipher.schema.declared import column
from dpcipher.schema.schema import Schema

SCHEMA = Schema(
    (
        column("sex", "categorical", levels=("F", "M")),
        column("age", "integer", min=0, max=99, bins=5),
        column("work", "categorical", levels=("none", "part", "full"), missing="level"),
        column("owner", "boolean"),
    )
)


def people(seed: int, n: int = 200) -> pd.DataFrame:
    """Rows of the schema; work is sometimes missing."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    work = rng.choice(["none", "part", "full", None], n, p=[0.3, 0.3, 0.3, 0.1])
    owner = rng.random(n) < np.where(sex == "M", 0.7, 0.3)
    return pd.DataFrame({"sex": sex, "age": rng.integers(0, 100, n), "work": work, "owner": owner})


def test_rows_against_themselves_score_perfectly() -> None:
    """No distance, full marks, intervals that coincide."""
    found = evaluate(people(0), people(0), SCHEMA)
    assert found.tvd == {1: 0, 2: 0, 3: 0}
    assert found.linf == {1: 0, 2: 0, 3: 0}
    assert found.k_marginal == {1: 1000, 2: 1000, 3: 1000}
    assert found.overlap == 1
    assert found.propensity.pmse == pytest.approx(0, abs=1e-10)


def test_scores_are_means_and_maxima_over_tables() -> None:
    """One-way TVD by hand from value counts; the summary numbers from the per-table ones."""
    private, synthetic = people(0), people(1, 300)
    found = evaluate(private, synthetic, SCHEMA)
    shares = [part["sex"].value_counts(normalize=True) for part in (private, synthetic)]
    by_name = found.per_table(1).set_index("table")
    assert by_name.loc["sex", "tvd"] == pytest.approx((shares[0] - shares[1]).abs().sum() / 2)
    assert found.tvd[2] == pytest.approx(found.per_table(2)["tvd"].mean())
    assert found.worst_tvd[2] == found.per_table(2)["tvd"].iloc[0]
    assert found.linf[3] == found.per_table(3)["linf"].max()
    assert found.mean_linf[3] <= found.linf[3]


def test_a_columns_score_is_the_mean_over_its_tables() -> None:
    """Three pairs hold each of four columns."""
    found = evaluate(people(0), people(1), SCHEMA)
    pairs = [one.tvd for one in found.tables[2] if "work" in one.attrs]
    assert len(pairs) == 3
    assert found.per_column().loc["work", "tvd_2"] == pytest.approx(np.mean(pairs))


def test_several_sets_are_averaged() -> None:
    """The TVD of two sets is the mean of theirs, table by table."""
    each = [evaluate(people(0), people(seed), SCHEMA).tvd[2] for seed in (1, 2)]
    assert evaluate(people(0), [people(1), people(2)], SCHEMA).tvd[2] == pytest.approx(np.mean(each))


def test_cost_normalisation_multiplies_by_cells() -> None:
    """The full table has 2·5·4·2 = 80 cells; measuring 40 halves the score."""
    found = evaluate(people(0), people(1), SCHEMA)
    assert found.normalised(40)["tvd"][2] == pytest.approx(found.tvd[2] / 2)
    assert found.normalised(36, full=36)["linf"] == found.linf


def test_a_classifier_is_scored_on_held_out_rows() -> None:
    """Owner depends on sex, so training on either side beats the most common level."""
    found = evaluate(people(0, 800), people(1, 800), SCHEMA, holdout=people(2, 500), predict="owner")
    assert found.accuracy is not None
    assert found.accuracy.target == "owner"
    assert found.accuracy.synthetic > found.accuracy.majority + 0.05


def test_a_model_is_compared_on_both_sides() -> None:
    """The same rows agree in every sign and significance, and their intervals coincide."""
    found = evaluate(people(0), people(0), SCHEMA, formula="owner ~ sex + work + age")
    assert found.model is not None
    assert found.model.sss.counts["Best"] == 6
    assert found.model.overlap == pytest.approx(1)
    assert "sex[T.M]" in found.model.private.terms
    assert "work[T.(missing)]" in found.model.private.terms


def test_models_see_levels_in_their_declared_order() -> None:
    """The first declared level is the reference, and a missing cell is a level where the schema says so."""
    codes = SCHEMA.encode(__import__("pyarrow").Table.from_pandas(people(0)))
    frame = level_frame(codes, SCHEMA)
    assert list(frame["work"].cat.categories) == ["none", "part", "full", "(missing)"]
    assert frame["work"].isna().sum() == 0
    assert (frame["work"] == "(missing)").sum() == people(0)["work"].isna().sum()


def test_a_target_needs_held_out_rows_and_must_exist() -> None:
    """Testing on the rows one trained on would flatter."""
    with pytest.raises(ParameterError, match="together"):
        evaluate(people(0), people(1), SCHEMA, predict="owner")
    with pytest.raises(WorkloadError, match="did you mean 'owner'"):
        evaluate(people(0), people(1), SCHEMA, predict="ownr", holdout=people(2))


def test_no_rows_are_refused() -> None:
    """Nothing can be compared with nothing."""
    with pytest.raises(ParameterError, match="synthetic must hold at least one row"):
        evaluate(people(0), people(1).iloc[:0], SCHEMA)


def test_scores_are_marked_in_type_text_and_file_mode(tmp_path: Path) -> None:
    """Whoever prints or saves them cannot miss whose they are."""
    found = evaluate(people(0), people(1), SCHEMA)
    assert isinstance(found, CuratorOnly)
    assert str(found).splitlines()[0] == WATERMARK
    assert found.to_dict()["curator_only"] == WATERMARK
    path = found.save(tmp_path / "mine" / "scores")
    assert path.read_text().startswith(WATERMARK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_plain_values_are_json() -> None:
    """For the command line's --json."""
    found = evaluate(people(0), people(1), SCHEMA, formula="owner ~ sex")
    assert json.loads(json.dumps(found.to_dict()))["tvd"]["2"] == found.tvd[2]


def test_a_folder_with_a_release_is_refused(tmp_path: Path) -> None:
    """A release lies there, under whatever name: the curator's files must not, and the folder stays as it was."""
    release = Release.from_tables(
        {(name,): np.ones(size) for name, size in zip(SCHEMA.attrs, SCHEMA.shape, strict=True)},
        SCHEMA,
        scale=1.0,
    )
    release.save(tmp_path / "any.parquet")
    tmp_path.chmod(0o755)
    with pytest.raises(NotPrivate, match=r"any.parquet, which is publishable"):
        private_folder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_folder_in_use_for_something_else_is_refused(tmp_path: Path) -> None:
    """It would be closed to everybody else."""
    (tmp_path / "notes.txt").touch()
    with pytest.raises(NotPrivate, match="in use for something else"):
        private_folder(tmp_path)


def test_an_empty_folder_open_to_others_is_closed_and_may_be_used_again(tmp_path: Path) -> None:
    """It becomes 0700 and says whose it is; the next run finds its own mark."""
    tmp_path.chmod(0o755)
    folder = private_folder(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "CURATOR-ONLY.txt").read_text().startswith(WATERMARK)
    assert private_folder(tmp_path) == folder
