"""Synthetic rows break no rule, in any engine and by any method, and what that costs is reported."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from ruled import RULES, SCHEMA, SMALL, broken, people

import dpcipher as dc
from dpcipher.errors import ConditionError, DpcipherError, DpcipherWarning, SchemaError
from dpcipher.joint.core import Core
from dpcipher.joint.dense import DenseTable
from dpcipher.joint.joint import Joint
from dpcipher.joint.network import Network, Node
from dpcipher.joint.report import SolveReport
from dpcipher.joint.rules import Enforcer
from dpcipher.methods import (
    MWEM,
    Cipher,
    Fourier,
    FullHistogram,
    Independent,
    JunctionTree,
    Modips,
    MultinomialDirichlet,
    PrivBayes,
    Synthesizer,
    Uniform,
)
from dpcipher.privacy.draws import Draws
from dpcipher.release.release import Release
from dpcipher.schema import Schema, column
from dpcipher.schema.rules import compiled


def release(schema: Schema, n_rows: int = 5000) -> Release:
    """Exact pair tables of generated people."""
    rows = people(n_rows)[list(schema.names)]
    codes = schema.encode(arrow_rows(rows))
    tables = {}
    for i, left in enumerate(schema.attrs):
        for j in range(i + 1, len(schema.attrs)):
            table = np.zeros((schema.shape[i], schema.shape[j]))
            np.add.at(table, (codes[:, i], codes[:, j]), 1)
            tables[left, schema.attrs[j]] = table
    return Release.from_tables(tables, schema, scale=2.0)


def arrow_rows(rows: pd.DataFrame) -> pa.Table:
    """Rows as Arrow."""
    return pa.Table.from_pandas(rows, preserve_index=False)


def independent_joint(schema: Schema, *, dense: bool = False, seed: int = 0) -> Joint:
    """Independent columns: an engine that knows of no rule."""
    rng = np.random.default_rng(seed)
    one_way = [rng.dirichlet(np.full(size, 5.0)) for size in schema.shape]
    core: Core = Network(schema.shape, tuple(Node((axis,), (), table) for axis, table in enumerate(one_way)))
    if dense:
        core = DenseTable(core.project(tuple(range(len(schema.shape)))))
    return Joint(schema, core, 1000, SolveReport("independent"))


@pytest.mark.parametrize("engine", ["table", "rows", "paper"])
def test_no_row_of_an_engine_breaks_a_rule(engine: str) -> None:
    """Evenly drawn, independent and conditional rows; the engines hold the compiled rules themselves, so no row is drawn again."""
    schema = SMALL if engine == "paper" else SCHEMA
    joint = dc.solve(release(schema), engine=engine)
    assert joint.health.rules is not None
    assert joint.health.rules.redrawn == 0
    for rows in (
        joint.sample(20_000, seed=1),
        joint.sample(5000, seed=2, independent=True),
        joint.sample(3000, seed=3, given={"age": "0..4"}),
        joint.sample(3000, seed=4, given={"start": "20..29"}),
    ):
        assert set(broken(rows).values()) == {0}


@pytest.mark.parametrize(
    "method",
    [
        Cipher,
        FullHistogram,
        MWEM,
        PrivBayes,
        Fourier,
        MultinomialDirichlet,
        Modips,
        JunctionTree,
        Independent,
        Uniform,
    ],
)
@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_no_row_of_a_method_breaks_a_rule(method: type[Synthesizer]) -> None:
    """Every synthesizer, through its own fit."""
    options = {"n_rows": 500} if method is MultinomialDirichlet else {}
    schema = SMALL
    codes = schema.encode(arrow_rows(people(500)[list(schema.names)]))
    fitted = method(2.0, unit="add-remove", **options).fit_counts(
        codes, schema, draws=Draws.seeded(1), codes=True
    )
    rows = fitted.sample(2000, seed=1)
    for table in rows if isinstance(rows, list) else [rows]:
        assert set(broken(table).values()) == {0}


@pytest.mark.parametrize("method", [PrivBayes, JunctionTree, Independent, Uniform])
@pytest.mark.filterwarnings("ignore::dpcipher.errors.DpcipherWarning")
def test_no_row_of_a_large_network_breaks_a_rule(method: type[Synthesizer]) -> None:
    """Beyond the table that a network is written out to, rows are what keeps the rules."""
    codes = SCHEMA.encode(arrow_rows(people(500)))
    fitted = method(2.0, unit="add-remove").fit_counts(codes, SCHEMA, draws=Draws.seeded(1), codes=True)
    assert not isinstance(fitted.joints[0].core, DenseTable)
    assert set(broken(fitted.sample(3000, seed=1)).values()) == {0}


@pytest.mark.parametrize("dense", [False, True])
def test_an_engine_that_knows_no_rule_is_made_to_keep_them(dense: bool) -> None:
    """Independent columns break every rule; what is handed out breaks none, says what it cost, and keeps the columns of conditions."""
    joint = independent_joint(SCHEMA, dense=dense)
    tally = joint.tally()
    stream = joint.stream(20_000, seed=1)
    parts = [stream.batch(number, tally=tally).to_pandas() for number in range(len(stream))]
    rows = pd.concat(parts)
    assert set(broken(rows).values()) == {0}
    cost = tally.cost
    assert cost.n_rows == 20_000
    assert 0.3 < cost.redrawn < 1
    assert cost.moved["married"] > 0.05
    assert "drawn again" in str(cost)
    ages = np.histogram(rows["age"], bins=[0, 5, 15, 30, 60, 100])[0] / len(rows)
    assert np.abs(ages - np.asarray(joint.project("age"))).sum() / 2 < 0.02
    assert cost.moved["age"] < 0.02


def test_the_judge_sees_rules_that_nobody_enforces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of rows the same draw breaks every rule: the tests above see something."""
    monkeypatch.setattr(
        Enforcer, "_valued", lambda self, codes, tally=None: (self.decode(codes), np.ones(len(codes), bool))
    )
    counts = broken(independent_joint(SCHEMA).sample(20_000, seed=1))
    assert min(counts.values()) > 0


def test_rules_too_wide_for_a_table_are_kept_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no rule may become a mask, all are watched, and the table engine's rows still break none."""
    monkeypatch.setattr(compiled, "MAX_RULE_CELLS", 1)
    schema = Schema(SCHEMA.columns, rules=RULES)
    assert schema.zero_masks == ()
    assert len(schema.compiled.watched) == len(RULES)
    joint = dc.solve(release(schema), engine="table")
    assert set(broken(joint.sample(10_000, seed=1)).values()) == {0}
    assert joint.health.rules is not None
    assert joint.health.rules.redrawn > 0


def test_rejection_leaves_the_conditional_distribution() -> None:
    """Given the condition's level, rows follow the joint restricted to the rule; the condition's column stays as it was."""
    schema = Schema(
        Schema.from_domain({"a": 2, "b": 3, "c": 3}).columns, rules=("a == 0 -> b == 0 or c == 0",)
    )
    joint = independent_joint(schema, seed=3)
    wanted = joint.core.project((0, 1, 2)).copy()
    share = wanted[0].sum()
    wanted[0, 1:, 1:] = 0
    wanted[0] *= share / wanted[0].sum()
    rows = joint.sample(100_000, seed=1, independent=True).to_numpy()
    seen = np.zeros(schema.shape)
    np.add.at(seen, tuple(rows.T), 1 / len(rows))
    assert np.abs(seen - wanted).sum() / 2 < 0.01


@pytest.mark.parametrize("rule", ["x == y", "x < y", "x != y", "x <= y and y <= z", "x == y and y == z"])
def test_columns_are_compared_inside_bins(rule: str) -> None:
    """Equal reals have no chance of being drawn: one value is copied, within its bin."""
    columns = tuple(column(name, "number", edges=[0, 4, 10]) for name in "xyz")
    rows = independent_joint(Schema(columns, rules=(rule,))).sample(3000, seed=1)
    x, y, z = (rows[name] for name in "xyz")
    kept = {
        "x == y": x == y,
        "x < y": x < y,
        "x != y": x != y,
        "x <= y and y <= z": (x <= y) & (y <= z),
        "x == y and y == z": (x == y) & (y == z),
    }
    assert kept[rule].all()
    assert rows["x"].nunique() > 500


def test_a_condition_that_rules_forbid_is_refused() -> None:
    """No endless search: given and the rules contradict each other."""
    joint = independent_joint(SCHEMA)
    with pytest.raises(ConditionError, match="structural zero"):
        joint.sample(10, given={"age": "0..4", "married": "yes"})
    dense = independent_joint(SMALL, dense=True)
    with pytest.raises(ConditionError, match="given"):
        dense.sample(10, given={"age": ["0..4"], "married": ["no", "yes"]})


def test_rules_that_contradict_one_another_inside_bins_are_reported() -> None:
    """Levels allow it, values never do: said when the joint is made, and when rows are drawn."""
    columns = tuple(column(name, "integer", min=0, max=9, bins=1) for name in "xy")
    schema = Schema(columns, rules=("x < y", "y < x"))
    table = Release.from_tables({("x", "y"): np.array([[9.0]])}, schema, scale=0)
    with pytest.warns(DpcipherWarning, match="no rows can be drawn"):
        joint = dc.solve(table)
    with pytest.raises(DpcipherError, match="contradict one another inside bins"):
        joint.sample(10)
    with pytest.raises(SchemaError, match="leaves no row possible"):
        Schema(columns, rules=("x < 0",))


def test_a_saved_joint_keeps_its_rules_and_their_cost(tmp_path: Path) -> None:
    """Rules are in the schema of the file, the cost in its report."""
    joint = dc.solve(release(SMALL, 1000))
    again = Joint.load(joint.save(tmp_path / "people.npz"))
    assert again.schema.rules == SMALL.rules
    assert again.health.rules == joint.health.rules
    assert again.sample(500, seed=1).equals(joint.sample(500, seed=1))
