"""The public names: other people's scripts call them, so they do not change unnoticed."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcipher as dc

TESTS = Path(__file__).parent
NAMES = [
    "Auto",
    "Cipher",
    "Fourier",
    "FullHistogram",
    "FullTable",
    "Grouped",
    "Independent",
    "Joint",
    "JunctionTree",
    "Ledger",
    "MWEM",
    "Modips",
    "MultinomialDirichlet",
    "Paper",
    "PrivBayes",
    "Release",
    "Rows",
    "Schema",
    "Uniform",
    "audit",
    "combine",
    "compare",
    "estimate",
    "evaluate",
    "fit_models",
    "measure",
    "plan",
    "plot",
    "posterior",
    "report",
    "solve",
    "sss",
    "trust",
]


def test_the_public_names_are_there() -> None:
    """These and no others are exported, and each is documented by a first sentence."""
    assert sorted(dc.__all__) == NAMES
    assert dir(dc) == sorted([*NAMES, "__version__"])
    for name in dc.__all__:
        assert (getattr(dc, name).__doc__ or "").strip(), name


def test_the_package_is_the_command_line_too() -> None:
    """`python -m dpcipher --version` says the name and the version."""
    command = [sys.executable, "-m", "dpcipher", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.split()[-1] == dc.__version__
    assert said.startswith("dpcipher")


def people(n_rows: int = 3_000) -> pd.DataFrame:
    """Rows of a small town: age in years, sex, and a job that depends on both."""
    rng = np.random.default_rng(7)
    age = rng.integers(0, 85, n_rows)
    sex = rng.choice(["F", "M"], n_rows)
    works = (age > 17) & (age < 66) & (rng.random(n_rows) < np.where(sex == "F", 0.7, 0.8))
    return pd.DataFrame({"age": age, "sex": sex, "job": np.where(works, "yes", "no")})


SCHEMA = """
columns:
  - {name: age, kind: integer, min: 0, max: 84}
  - {name: sex, kind: categorical, levels: [F, M]}
  - {name: job, kind: categorical, levels: ["no", "yes"]}
"""


def test_the_story_of_the_three_people(tmp_path: Path) -> None:
    """The calls that the design fixes, in order, with what each must give."""
    data = people()
    (tmp_path / "people.yaml").write_text(SCHEMA)
    schema = dc.Schema.load(tmp_path / "people.yaml")

    plan = dc.plan(schema, workload=2, epsilon=1.0, unit="add-remove", n_rows=3_000)
    assert "344 cells" in str(plan)

    ledger = tmp_path / "people.ledger"
    release = dc.measure(data, schema, workload=2, epsilon=1.0, unit="add-remove", ledger=ledger, create=True)
    path = release.save(tmp_path / "people.release.parquet")
    release = dc.Release.load(path)
    low, high = release.interval(("age", "sex"), level=0.95)
    assert low.shape == high.shape == (85, 2)
    assert (low <= high).all()

    joint = dc.solve(release)
    rows = joint.sample(10_000, seed=1)
    assert isinstance(rows, pd.DataFrame)
    assert list(rows.columns) == ["age", "sex", "job"]
    assert len(rows) == 10_000
    assert rows["age"].between(0, 84).all()
    assert joint.sample(10_000, seed=1).equals(rows)
    table = np.asarray(joint.project(("age", "sex")))
    assert table.shape == (85, 2)
    assert table.sum() == pytest.approx(1)
    assert set(joint.sample(500, seed=1, given={"sex": "F"})["sex"]) == {"F"}

    scores = dc.evaluate(data, rows, schema)
    assert 0 <= scores.tvd[1] <= scores.tvd[2] <= scores.tvd[3] <= 1
    combined = dc.combine([1.0, 1.2, 0.8], [0.1, 0.1, 0.1])
    assert combined.estimate == pytest.approx(1.0)
    assert combined.variance == pytest.approx(0.04 / 3 + 0.1)

    fitted = dc.Cipher(epsilon=1.0, unit="add-remove").fit(data, schema)
    assert len(fitted.sample(1_000)) == 1_000


def test_published_tables_become_rows() -> None:
    """Somebody else's noisy tables, exact ones included, are enough for a joint and rows."""
    schema = dc.Schema.from_domain({"age": 5, "sex": 2, "job": 3})
    truth = np.random.default_rng(0).dirichlet(np.ones(30)).reshape(5, 2, 3) * 1_000
    tables = {("age", "sex"): truth.sum(2), ("sex", "job"): truth.sum(0), ("age", "job"): truth.sum(1)}
    joint = dc.solve(dc.Release.from_tables(tables, schema, scale=0))
    assert isinstance(joint, dc.Joint)
    for attrs, counts in tables.items():
        assert np.asarray(joint.project(attrs)) == pytest.approx(counts / 1_000, abs=1e-4)
    coded = joint.sample(1_000, seed=3)
    assert list(coded.columns) == ["age", "sex", "job"]
    assert all(pd.api.types.is_integer_dtype(coded[name]) for name in coded)


def test_several_sets_give_several_joints() -> None:
    """m independent sanitizations solve to m different joints."""
    schema = dc.Schema.from_domain({"a": 3, "b": 2})
    rows = pd.DataFrame({"a": np.repeat([0, 1, 2], [180, 80, 40])}).assign(b=lambda frame: frame["a"] % 2)
    joints = dc.solve(dc.measure(rows, schema, epsilon=1, unit="replace", sets=3))
    assert len(joints) == 3
    assert all(joint.n_rows == 300 for joint in joints)
    tables = [np.asarray(joint.project(("a", "b"))).tobytes() for joint in joints]
    assert len(set(tables)) == 3


def test_every_test_contains_an_assertion() -> None:
    """A test that asserts nothing is a defect, wherever it stands."""
    idle = []
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                body = ast.dump(node)
                if not any(mark in body for mark in ("Assert(", "'raises'", "assert_", "attr='fail'")):
                    idle.append(f"{path.name}:{node.lineno} {node.name}")
    assert idle == []
