"""A table measured twice in one set: both measurements are kept, and every estimate uses both."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcipher.cli.measure import release_facts, release_text
from dpcipher.pages.report import match_tables, render, strongest_pairs
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

SCHEMA = Schema.from_domain({"age": 3, "sex": 2, "job": 2})
ROUGH, FINE = Noise("gaussian", 6.0), Noise("gaussian", 3.0)
STATEMENT = Statement(
    status="certified", unit={"relation": "add-remove", "max_rows": 1}, budget={"rho": "1/10"}
)


def repeated() -> Release:
    """Ages twice, with variances 36 and 9, and two other tables that say nothing about ages but their total."""
    tables = (
        Measurement(Query(SCHEMA.axes(("age",))), np.array([100, 210, 290]), ROUGH),
        Measurement(Query(SCHEMA.axes(("sex", "job"))), np.array([[90, 160], [150, 200]]), FINE),
        Measurement(Query(SCHEMA.axes(("age",))), np.array([110, 200, 300]), FINE),
        Measurement(Query(SCHEMA.axes(("sex",))), np.array([240, 360]), ROUGH),
    )
    return Release(SCHEMA, tables, STATEMENT)


def merged(release: Release) -> Release:
    """The same release with the mean of the two ages, weighted 1 to 4, and variance 1 / (1/36 + 1/9) = 7.2."""
    ages = Measurement(
        Query(SCHEMA.axes(("age",))), np.array([108.0, 202.0, 298.0]), Noise("gaussian", 7.2**0.5)
    )
    return replace(release, measurements=(ages, release.measurements[1], release.measurements[3]))


def test_each_table_is_in_the_workload_once() -> None:
    """In the order of their first measurement."""
    assert repeated().workload == (("age",), ("sex", "job"), ("sex",))
    assert len(repeated().measurements) == 4


def test_both_measurements_survive_the_file(tmp_path: Path) -> None:
    """Each with its counts and its noise; a reader tells them apart by the number of the table."""
    before = repeated()
    path = before.save(tmp_path / "r.parquet")
    after = Release.load(path)
    assert after.checksum == before.checksum
    assert after.workload == before.workload
    assert after.sets == 1
    for one, other in zip(before.measurements, after.measurements, strict=True):
        assert (one.query, one.noise, one.set) == (other.query, other.noise, other.set)
        assert np.array_equal(one.values, other.values)
    frame = pd.read_parquet(path)
    ages = frame[frame["attrs"] == "age"]
    assert ages.groupby("table")["count"].agg(list).to_dict() == {0: [100, 210, 290], 2: [110, 200, 300]}


def test_a_repeat_is_averaged_by_inverse_variance() -> None:
    """By hand: weights 1/36 and 1/9 are one and four fifths."""
    tables = tuple(one for one in repeated().measurements if one.query.axes == (0,))
    alone = Release(Schema.from_domain({"age": 3}), tables, STATEMENT)
    np.testing.assert_allclose(np.asarray(alone.project(("age",))), [108, 202, 298])
    np.testing.assert_allclose(alone.reconciled.variance((0,)), 7.2)
    assert alone.reconciled.total == pytest.approx(608)
    assert alone.query(("age",), where={"age": SCHEMA.labels("age")[0]}).std_error == pytest.approx(7.2**0.5)


def test_two_measurements_say_what_their_mean_says() -> None:
    """Estimates, intervals, queries and the number of rows are those of one table with the mean and its variance."""
    two, one = repeated(), merged(repeated())
    assert two.n_rows == one.n_rows
    for attrs in (("age",), ("sex",), ("job", "sex")):
        np.testing.assert_allclose(np.asarray(two.project(attrs)), np.asarray(one.project(attrs)))
        np.testing.assert_allclose(two.interval(attrs), one.interval(attrs))
    weights = np.array([1.0, -1.0, 0.5])
    ours, theirs = two.query(("age",), weights), one.query(("age",), weights)
    assert (ours.estimate, ours.std_error) == pytest.approx((theirs.estimate, theirs.std_error))


def test_neither_measurement_is_ignored() -> None:
    """Changing either one changes the estimate, by its weight."""
    base = np.asarray(repeated().project(("age",)))
    moved = []
    for place in (0, 2):
        tables = list(repeated().measurements)
        tables[place] = replace(tables[place], values=tables[place].values + np.array([50, -50, 0]))
        moved.append(np.asarray(replace(repeated(), measurements=tuple(tables)).project(("age",))) - base)
    np.testing.assert_allclose(moved, [[10, -10, 0], [40, -40, 0]], atol=1e-9)


def test_two_measurements_that_contradict_each_other_are_noticed() -> None:
    """The disagreement lists both, and grows when one of them is spoilt."""
    spoilt = list(repeated().measurements)
    spoilt[0] = replace(spoilt[0], values=spoilt[0].values + np.array([300, 0, -300]))
    calm, loud = (
        repeated().reconciled.disagreement,
        replace(repeated(), measurements=tuple(spoilt)).reconciled.disagreement,
    )
    assert [misfit.axes for misfit in calm.tables] == [(0,), (1, 2), (0,), (1,)]
    assert abs(calm.overall.sigmas) < 4
    assert loud.overall.sigmas > 10
    assert loud.tables[0].sigmas > 10


def test_what_is_said_of_a_release_names_each_table_once() -> None:
    """The command line counts three tables; the page lists both noises of the one that was measured twice."""
    release = repeated()
    assert release_facts(release, Path("r"))["tables"] == [["age"], ["sex", "job"], ["sex"]]
    assert "Tables   3 over 3 columns, 12 noisy cells" in release_text(release, Path("r"))
    rows = np.indices((3, 2, 2)).reshape(3, -1).T.astype(np.int32)
    assert sorted(one.attrs for one in match_tables(release, rows)) == [("age",), ("sex",), ("sex", "job")]
    assert strongest_pairs(release) == [(1, 2)]
    page = render(release, rows)
    assert "All 3 measured tables" in page
    assert f"<td>{ROUGH.variance**0.5:.4g}, again {FINE.variance**0.5:.4g}</td>" in page
