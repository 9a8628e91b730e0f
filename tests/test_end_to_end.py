"""From a CSV of real people to synthetic rows, with a column of every kind, through files alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc

SCHEMA = """
columns:
  - {name: PUMA, kind: categorical, levels: [25-00503, 25-00703, 25-01000, 25-01300, 25-02800]}
  - {name: AGEP, kind: integer, min: 0, max: 99, bins: 20}
  - {name: SEX, kind: categorical, levels: ["1", "2"]}
  - {name: EDU, kind: ordinal, levels: [N, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]}
  - {name: PINCP, kind: number, edges: [-20000, 0.5, 10000, 25000, 50000, 100000, 2000000], missing: level, other: nearest}
  - {name: deaf, kind: boolean}
  - {name: born, kind: date, min: "1919-01-01", max: "2020-01-01", bins: 10, missing: level, other: missing}
  - {name: DREM, kind: categorical, levels: [N, "1", "2"]}
"""


def people(folder: Path) -> pd.DataFrame:
    """The NIST excerpt, with a birth date derived from the age, a boolean, and missing incomes as empty cells."""
    raw = pd.read_csv(folder / "nist_ma2019" / "ma2019.csv", keep_default_na=False, dtype=str)
    born = [
        f"{2019 - int(age)}-06-{1 + i % 28:02d}" if int(age) < 90 else "" for i, age in enumerate(raw["AGEP"])
    ]
    return pd.DataFrame(
        {
            "PUMA": raw["PUMA"],
            "AGEP": raw["AGEP"],
            "SEX": raw["SEX"],
            "EDU": raw["EDU"],
            "PINCP": raw["PINCP"].where(raw["PINCP"] != "N", ""),
            "deaf": np.where(raw["DEAR"] == "1", "true", "false"),
            "born": born,
            "DREM": raw["DREM"],
        }
    )


def test_real_rows_of_every_kind_survive_the_journey(data_folder: Path, tmp_path: Path) -> None:
    """Curator: schema, CSV, ledger, release file. Data user: release file, rows of the same kinds with like tables."""
    rows = people(data_folder)
    rows.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.yaml").write_text(SCHEMA)
    schema = dc.Schema.load(tmp_path / "people.yaml")
    dc.measure(
        tmp_path / "people.csv",
        schema,
        epsilon=8,
        unit="add-remove",
        ledger=tmp_path / "people.ledger",
        create=True,
        save=tmp_path / "people.release.parquet",
    )
    release = dc.Release.load(tmp_path / "people.release.parquet")
    assert release.statement.status == "certified"
    assert abs(release.n_rows - len(rows)) < 100

    joint = dc.solve(release)
    assert isinstance(joint, dc.Joint)
    made = joint.sample(seed=5)
    assert list(made.columns) == list(rows.columns)
    assert pd.api.types.is_integer_dtype(made["AGEP"])
    assert pd.api.types.is_float_dtype(made["PINCP"])
    assert pd.api.types.is_bool_dtype(made["deaf"])
    assert pd.api.types.is_datetime64_any_dtype(made["born"])
    assert made["AGEP"].between(0, 99).all()
    assert set(made["EDU"]) <= set(rows["EDU"])
    assert made["PINCP"].isna().mean() == pytest.approx((rows["PINCP"] == "").mean(), abs=0.02)
    assert made["born"].isna().mean() == pytest.approx((rows["born"] == "").mean(), abs=0.02)

    scores = dc.evaluate(tmp_path / "people.csv", made, schema)
    assert scores.tvd[1] < 0.02
    assert scores.tvd[2] < 0.06
    # the strong dependence between age and birth survives: the oldest were born first
    old, young = made[made["AGEP"] > 70]["born"].dropna(), made[made["AGEP"] < 20]["born"].dropna()
    assert old.median() < pd.Timestamp("1955-01-01") < pd.Timestamp("1990-01-01") < young.median()
    share = np.asarray(joint.project(("SEX",)))
    assert share == pytest.approx(rows["SEX"].value_counts(normalize=True).sort_index().to_numpy(), abs=0.01)
    low, high = release.interval(("SEX", "PUMA"))
    truth = pd.crosstab(rows["SEX"], rows["PUMA"]).to_numpy()
    assert ((low <= truth) & (truth <= high)).mean() >= 0.5


def test_a_joint_from_real_rows_saves_and_conditions(data_folder: Path, tmp_path: Path) -> None:
    """A saved chain draws the same rows; a condition on two columns holds in every row."""
    path = data_folder / "adult" / "adult.csv"
    schema = dc.Schema.load(data_folder / "adult" / "adult-domain.json")
    release = dc.measure(path, schema, epsilon=1, delta=1e-9, unit="add-remove")
    joint = dc.solve(release)
    assert isinstance(joint, dc.Joint)
    assert joint.health.engine == "rows"
    again = dc.Joint.load(joint.save(tmp_path / "adult.joint.npz"))
    assert again.sample(2_000, seed=1).equals(joint.sample(2_000, seed=1))
    some = joint.sample(500, seed=2, given={"sex": 1, "race": 2})
    assert set(some["sex"]) == {1}
    assert set(some["race"]) == {2}
    assert 0 < joint.effective_rows(500, {"sex": 1, "race": 2}) <= 500
