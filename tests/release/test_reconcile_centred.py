"""Centred tables and the number of rows beside them: least squares against dense algebra, the release and its file."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dpcipher as dc
from dpcipher.errors import ReleaseError
from dpcipher.release import file
from dpcipher.release.release import Release
from dpcipher.release.statement import Statement
from dpcipher.schema.schema import Schema
from dpcipher.tables.measurement import Measurement, Noise
from dpcipher.tables.query import Query

sys.path.insert(0, str(Path(__file__).parent))
import forge
from brute_gls import BruteGLS, assert_same, reader
from measured import noisy, reconcile, runs, told, told_runs

SHAPE = (2, 4, 3, 1)
WORKLOADS = {
    "columns and pairs": [((0,), 1.0), ((1,), 2.0), ((2,), 1.0), ((3,), 1.0), ((0, 1), 3.0), ((1, 2), 4.0)],
    "a table measured twice": [((0, 1), 3.0), ((1, 2), 2.0), ((0, 1), 1.0), ((3,), 1.0)],
    "lone columns": [((0,), 1.0), ((1,), 2.0), ((2, 3), 0.5)],
    "a triple": [((0, 1, 2), 3.0), ((1, 2), 1.0), ((3,), 1.0)],
}


def observe(rng, workload) -> tuple[np.ndarray, list[Measurement]]:
    """A random joint table, and its margins less their mean with noise."""
    joint, measured = rng.integers(0, 30, SHAPE).astype(float), []
    for axes, variance in workload:
        levels = [SHAPE[axis] for axis in axes]
        counts = (reader(SHAPE, axes) @ joint.ravel()).reshape(levels) + rng.normal(0, variance**0.5, levels)
        measured.append(noisy(axes, counts - counts.mean(), variance, centred=True))
    return joint, measured


@pytest.mark.parametrize("coarse", [False, True], ids=["alone", "with coarse counts"])
@pytest.mark.parametrize("public", [False, True], ids=["noisy total", "public total"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_equals_brute_force(workload, public, coarse) -> None:
    """Every table, every variance, a random linear query and the overall χ² equal dense least squares on the joint table."""
    rng = np.random.default_rng(3)
    joint, measured = observe(rng, workload)
    centred = [told(one) for one in measured]
    rows = joint.sum() + rng.normal(0, 2)
    plain = [] if public else [noisy((), np.asarray(rows), 4.0)]
    counted = [runs(1, [0, 2], np.array([90.0, 110.0]), 1.5, 4)] if coarse else []
    found = reconcile(SHAPE, [*measured, *plain, *counted], total=joint.sum() if public else None)
    expected = BruteGLS(
        SHAPE,
        [told(one) for one in plain],
        total=joint.sum() if public else None,
        coarse=[told_runs(one) for one in counted],
        centred=centred,
    )
    assert_same(found, expected, rng)
    assert found.disagreement.overall.dof == expected.dof


def test_the_misfit_of_a_table_is_that_of_its_contrasts() -> None:
    """A centred column against a pair that holds it: χ² of the difference of both, which have the variances 2 and 3·4, over its degrees of freedom."""
    rng = np.random.default_rng(4)
    _, (column, pair) = observe(rng, [((2,), 2.0), ((1, 2), 3.0)])
    gap = told(pair)[1].sum(axis=0) - told(column)[1]
    found = reconcile(SHAPE, [column, pair], total=500.0).disagreement.tables
    for misfit in found:
        assert misfit.dof == 2
        assert misfit.chi2 == pytest.approx((gap**2).sum() / (2.0 + 3.0 * 4))


def test_counts_get_their_rows_back() -> None:
    """For engines that start from measured tables."""
    _, measured = observe(np.random.default_rng(5), WORKLOADS["columns and pairs"])
    for table in reconcile(SHAPE, measured, total=360.0).in_counts():
        assert table.counts.sum() == pytest.approx(360.0)


def test_centred_tables_need_rows_and_no_impossible_cell() -> None:
    """Nothing else tells their number, and structural zeros go by cells."""
    _, measured = observe(np.random.default_rng(5), [((0, 1), 1.0), ((2,), 1.0), ((3,), 1.0)])
    with pytest.raises(ReleaseError, match="need the number of rows"):
        reconcile(SHAPE, measured)
    zero = ((0, 1), np.eye(2, 4, dtype=bool))
    with pytest.raises(ReleaseError, match="structural zeros"):
        reconcile(SHAPE, measured, total=10.0, zeros=(zero,))


# In a release and its file.

SCHEMA = Schema.from_domain({"age": 3, "sex": 2})
NOISE = Noise("gaussian", 12.0)
TOTAL = Measurement(Query(()), np.array(1_000), Noise("gaussian", 5.0))
PUBLIC = Measurement(Query(()), np.array(1_000), Noise("none", 0.0))
TABLES = (
    Measurement(Query((0, 1), centred=True), np.array([[310, -290], [55, 405], [-430, -60]]), NOISE),
    Measurement(Query((0,), centred=True), np.array([20, 230, -240]), Noise("gaussian", 3.0)),
)
CELLS = np.concatenate([table.values.ravel() for table in TABLES]).tolist()


def centred_release(*totals: Measurement, n_rows: int | None = None) -> Release:
    """A release of two centred tables."""
    return Release(SCHEMA, (*TABLES, *totals), Statement("certified", n_rows=n_rows))


@pytest.mark.parametrize("public", [False, True], ids=["noisy total", "public total"])
def test_a_release_gives_counts(public: bool) -> None:
    """Cells are counts times the number of cells, less the rows: dense algebra says the same as the release."""
    release = centred_release(PUBLIC, n_rows=1_000) if public else centred_release(TOTAL)
    centred = [
        ((0, 1), (TABLES[0].values - TABLES[0].values.mean()) / 6, NOISE.variance / 36),
        ((0,), (TABLES[1].values - TABLES[1].values.mean()) / 3, TABLES[1].noise.variance / 9),
    ]
    rows = ((), np.asarray(1_000.0), 0.0 if public else TOTAL.noise.variance)
    expected = BruteGLS((3, 2), [rows], centred=centred)
    for name, axes in {"age": (0,), "sex": (1,)}.items():
        np.testing.assert_allclose(release.project(name).values, expected.table(axes))
        variances = np.diag(expected.table_covariance(axes))
        np.testing.assert_allclose(release.std_error(name).values ** 2, variances)
    assert release.n_rows == 1_000
    assert "1,000" in release._repr_html_()


def test_files_hold_totals(tmp_path: Path) -> None:
    """What is written is read."""
    release = centred_release(TOTAL)
    again = Release.load(release.save(tmp_path / "r.parquet"))
    assert again.checksum == release.checksum
    total = again.measurements[-1]
    assert (total.query, total.values.tolist(), total.noise) == (Query(()), 1_000, TOTAL.noise)
    np.testing.assert_allclose(again.project("age").values, release.project("age").values)


def test_other_tools_find_rows_in_the_file(tmp_path: Path) -> None:
    """Each table by itself: counts that add up to the number of rows; files of plain tables have no such column."""
    cells = pq.read_table(centred_release(TOTAL).save(tmp_path / "r.parquet")).to_pandas()
    assert cells.groupby("attrs", observed=True)["rows"].sum().round(6).tolist() == [1_000] * 3
    age = cells[cells["attrs"] == "age"]
    assert age["rows"].diff()[1:].tolist() == pytest.approx((age["count"].diff()[1:] / 3).tolist())
    plain = Release.from_tables({("age", "sex"): TABLES[0].values}, SCHEMA, scale=3.0)
    assert "rows" not in pq.read_table(plain.save(tmp_path / "plain.parquet")).column_names


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"noise": "none", "scale": 0.0}, "must have noise"),
        ({"noise": "normal"}, "noise .* must be laplace"),
        ({"set": 1}, "the number of rows beside them, in every set"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_wrong_totals_in_a_file_are_refused(
    change: dict, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever computes the checksum too still gets no further."""
    path = centred_release(TOTAL).save(tmp_path / "r.parquet")
    monkeypatch.setattr(file, "checksum", lambda *_: forge.facts_of(path)["checksum"])
    with pytest.raises(ReleaseError, match=why):
        Release.load(forge.with_change(path, change))


def test_a_file_that_lost_its_totals_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables would be taken for counts."""
    path = centred_release(TOTAL).save(tmp_path / "r.parquet")
    monkeypatch.setattr(file, "checksum", lambda *_: forge.facts_of(path)["checksum"])
    with pytest.raises(ReleaseError, match="the number of rows beside them"):
        Release.load(forge.with_facts(path, {"measurements": forge.facts_of(path)["measurements"][:-1]}))


def test_what_cannot_be_centred_is_refused() -> None:
    """Laplace noise, a public number that is another, and structural zeros."""
    with pytest.raises(ReleaseError, match="public number of rows"):
        centred_release(replace(PUBLIC, values=np.array(999)), n_rows=1_000)
    laplace = replace(TABLES[0], noise=Noise("laplace", 3.0))
    with pytest.raises(ReleaseError, match="Gaussian"):
        Release(SCHEMA, (laplace, TOTAL), Statement("declared"))


def test_a_column_that_is_counted_by_levels_stands_beside_centred_tables() -> None:
    """As coarse counts do where a column has few bins: dense algebra says the same, and the file holds it."""
    ages = Measurement(Query((0,)), np.array([350, 430, 240]), Noise("gaussian", 4.0))
    release = Release(SCHEMA, (*TABLES, ages, TOTAL), Statement("declared"))
    centred = [(one.query.axes, *one.in_rows()) for one in TABLES]
    plain = [(one.query.axes, *one.in_rows()) for one in (ages, TOTAL)]
    expected = BruteGLS((3, 2), plain, centred=centred)
    for name, axes in {"age": (0,), "sex": (1,)}.items():
        np.testing.assert_allclose(release.project(name).values, expected.table(axes))
        variances = np.diag(expected.table_covariance(axes))
        np.testing.assert_allclose(release.std_error(name).values ** 2, variances)
    drawn = dc.posterior(release, "age", draws=800, seed=1, population=False)
    counts = drawn.draws * drawn.rows[:, None]
    np.testing.assert_allclose(counts.std(axis=0), release.std_error("age").values, rtol=0.15)
    pair = replace(ages, query=Query((0, 1)), values=np.ones((3, 2), int))
    with pytest.raises(ReleaseError, match="must all be so"):
        Release(SCHEMA, (*TABLES, pair, TOTAL), Statement("declared"))
