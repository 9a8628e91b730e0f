"""The types that a user's own checker sees: mypy reads this file, nothing runs it."""

from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpcipher as dc
from dpcipher.drawing.plot import Plot
from dpcipher.inference.estimate import Estimate
from dpcipher.inference.models import Models
from dpcipher.joint.stream import RowStream
from dpcipher.methods.base import Fitted
from dpcipher.planning.plan import Plan
from dpcipher.posteriors.posterior import Posterior
from dpcipher.release.trust import Trust
from dpcipher.tables.labelled import Bounds, Marginal


def the_curator(rows: pd.DataFrame, schema: dc.Schema, ledger: Path) -> dc.Release:
    """Plan, create a ledger, measure."""
    assert_type(dc.plan(schema, epsilon=1.0, unit="add-remove"), Plan)
    assert_type(dc.plan(schema, workload=[("a", "b")], rho=0.1, unit="replace", n_rows=100), Plan)
    assert_type(dc.plan(schema, workload="auto", epsilon=1.0, unit="add-remove"), Plan)
    assert_type(dc.plan(schema, workload=dc.Auto(max_order=2), epsilon=1.0, unit="add-remove"), Plan)
    assert_type(dc.Auto(predict="income").predict, str | None)
    ages = dc.Grouped(("age", "sex"), age=[0, 18, 65])
    assert_type(ages, dc.Grouped)
    assert_type(dc.plan(schema, workload=[("age",), ages], rho=0.1, unit="replace"), Plan)
    assert_type(dc.Ledger.create(ledger, epsilon=3.0, unit="add-remove"), dc.Ledger)
    release = dc.measure(
        rows, schema, epsilon=1.0, unit="add-remove", ledger=ledger, save="people.release.parquet"
    )
    assert_type(release, dc.Release)
    assert_type(
        dc.measure(
            rows,
            schema,
            workload=dc.Auto(target=2),
            rho=0.5,
            unit="replace",
            person="id",
            missing_person="drop",
        ),
        dc.Release,
    )
    return release


def the_data_user(release: dc.Release) -> None:
    """Tables with margins, the joint, rows."""
    assert_type(release.project("a"), Marginal)
    assert_type(release.project(("a", "b")), Marginal)
    assert_type(release.interval("a", level=0.9), Bounds)
    assert_type(dc.fit_models(release, "a ~ b", "linear", draws=100, seed=1), Models)
    assert_type(dc.posterior(release, ("a", "b"), draws=100, seed=1, population=False), Posterior)
    assert_type(dc.posterior(release, "a", interactions=3).draws, NDArray[np.float64])
    assert_type(dc.estimate(release, lambda joint: joint[0].sum(), ("a", "b")), Estimate)
    assert_type(dc.solve(release, draws=5), list[dc.Joint])
    assert_type(dc.solve(release, draws=5, columns=("a", "b")), list[dc.Joint])
    joint = dc.solve(release)
    assert_type(joint, dc.Joint | list[dc.Joint])
    assert isinstance(joint, dc.Joint)
    assert_type(joint.project("a"), Marginal)
    assert_type(joint.stream(10, seed=1), RowStream)
    assert_type(joint.stream(10).write("rows.parquet"), None)
    assert_type(dc.solve(release, set=0), dc.Joint)
    assert_type(dc.solve(release, set="all", engine="rows"), list[dc.Joint])
    assert_type(dc.solve(release, set=0, engine=dc.Paper(lam=0.1)), dc.Joint)
    assert_type(dc.solve(release, set=0, engine=dc.Rows(last="a")), dc.Joint)
    assert_type(dc.solve(release, set=0, engine=dc.FullTable()), dc.Joint)
    assert_type(dc.solve(release, set=0).project("a"), Marginal)
    assert_type(dc.trust(release), Trust)
    assert_type(dc.trust(release).frame, pd.DataFrame)
    assert_type(dc.plot(release, "a"), Plot)
    assert_type(dc.plot(dc.solve(release, set=0), ("a", "b")).save("pair.svg"), Path)
    assert_type(release.std_error(("a", "b")), Marginal)
    assert_type(dc.report("people.parquet", "rows.csv", "page.html", key="ada.pub"), Path)
    assert_type(dc.report(release, "rows.csv", "page.html", ledger="people.ledger"), Path)


def the_researcher(rows: pd.DataFrame, schema: dc.Schema) -> None:
    """A whole method: fitting returns a value."""
    fitted = dc.Cipher(epsilon=1.0, unit="add-remove").fit(rows, schema)
    assert_type(fitted, Fitted)
    assert_type(fitted.joint, dc.Joint | list[dc.Joint])
    assert_type(fitted.release, dc.Release | None)
    assert_type(dc.Uniform(unit="replace").fit(rows, schema), Fitted)
    assert_type(dc.Schema.from_domain({"a": 2, "b": 3}), dc.Schema)
    assert_type(dc.Schema.import_dictionary("dictionary.json", table="people"), dc.Schema)
    assert_type(schema.to_frictionless(), dict[str, object])
